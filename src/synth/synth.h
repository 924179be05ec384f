#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "gguf/writer.h"
#include "synth/hit_rates.h"
#include "synth/tensor_plan.h"

/// Synthetic GGUF files: the shapes of a named model, random weights, and routers whose choices follow a
/// power law, so that an expert cache can be measured without a download (docs/synth.md). The door of this
/// folder.
namespace coterie::synth {

struct Options {
    std::string shape = "qwen3-30b-a3b";
    std::int64_t layers = 0;  ///< of the trunk; 0: all the model has
    std::string quant = "q4_k_m";
    double skew = 1.0;            ///< exponent of the experts' popularity, 0 to 4; 0: all alike
    std::int64_t topics = 1;      ///< groups of tokens that share experts, 1 (none) to 64
    double topic_strength = 1.0;  ///< of a topic's part of a router's logits, against the token's own; 0 to 8
    std::uint64_t seed = 1;
};

/// Names for help texts.
std::string shape_names();
std::string quant_names();

/// Tokens of equal topic tend to the same experts.
constexpr std::int64_t topic_of_token(std::int64_t token, std::int64_t topics) { return token % topics; }

struct PartSize {
    std::string_view name;
    std::uint64_t bytes;
};

/// What a file would be, without writing it.
struct Plan {
    std::string title;  ///< "qwen3-30b-a3b, 48 layers, q4_k_m"
    std::uint64_t file_bytes;
    std::vector<PartSize> parts;  ///< metadata first, then those that the model has
    std::int64_t expert_layers;   ///< layers with routed experts
    std::int64_t experts;         ///< of such a layer
    std::int64_t experts_used;
    std::uint64_t smallest_expert_bytes;  ///< gate, up and down; mixes give layers different types
    std::uint64_t largest_expert_bytes;
    std::uint64_t trunk_expert_bytes;  ///< of all routed experts of the trunk
    std::vector<HitRate> hit_rates;  ///< by simulation of the same routing, random tokens in runs of a topic
};

/// Throws InvalidArgument for options outside their ranges and unknown names, with what is possible.
Plan plan(const Options& options);

/// The plan as a table for people, with a line feed at the end.
std::string render(const Plan& plan);

/// The hit rates alone.
std::vector<HitRate> predict_hit_rates(const Options& options);

using Progress = FunctionRef<void(std::uint64_t done_bytes, std::uint64_t total_bytes)>;

/// Writes the file tensor by tensor with a few MiB of memory per thread (`threads` 0: one per physical core).
/// The same options give the same bytes on every machine. Throws what `plan` throws, InvalidArgument where
/// `path` exists and may not be overwritten, and Io where the disk has too little space, before it writes; an
/// exception of `progress` ends the writing and leaves nothing behind.
void write(const Options& options, const std::filesystem::path& path, gguf::Overwrite overwrite, int threads,
           Progress progress);

/// The same file in memory, for tests.
std::vector<std::byte> make_bytes(const Options& options, int threads);

}  // namespace coterie::synth
