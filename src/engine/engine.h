#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/forward/step.h"
#include "engine/offload_options.h"
#include "gguf/archive.h"
#include "kv_cache/byte_stream.h"
#include "models/model.h"

/// The door to a loaded model: everything above (scheduler, commands, benchmarks) includes this header only.
namespace coterie::engine {

using TokenId = std::int32_t;

struct EngineOptions {
    int threads = 0;           ///< 0: one per physical core
    std::int64_t context = 0;  ///< positions all sequences together may hold; 0: 4096, or the model's if less
    std::int64_t batch = 512;  ///< tokens computed in one step at most
    /// Tokens of a prompt that go through the layers together at most, where devices hold experts; at least
    /// `batch`.
    std::int64_t window = 0;
    models::CacheFormat cache;   ///< element types of keys and values
    std::int64_t snapshots = 8;  ///< recurrent states kept per sequence
    OffloadOptions offload;      ///< devices that hold experts; none: the CPU computes all
};

/// The context that an engine takes for `context` 0: 4096, or the model's if less.
std::int64_t context_or_default(std::int64_t context, const models::ModelConfig& config);

/// Told while the model's bytes are brought into memory.
using LoadProgress = FunctionRef<void(std::uint64_t done, std::uint64_t total)>;

class DeviceForward;
class Engine;
class Offload;

/// One timeline of tokens and everything the model remembers of it. Made by an engine, which must outlive it.
class Sequence {
  public:
    std::span<const TokenId> tokens() const { return tokens_; }
    std::int64_t length() const { return static_cast<std::int64_t>(tokens_.size()); }

    /// Drops everything from position n on, as far as the model's state allows (recurrent layers go back to a
    /// snapshot), and returns the new length.
    std::int64_t truncate(std::int64_t n);

    /// Another sequence of the same tokens, which shares memory with this one.
    Sequence fork() const;

    /// The largest length <= n that `truncate(n)` can go back to. Requires 0 <= n <= length().
    std::int64_t restorable(std::int64_t n) const { return state_.restorable(n); }
    /// Lets a model with recurrent layers come back to the current length; free for others.
    void snapshot() { state_.snapshot(); }
    /// Pages of the engine that n more tokens would take.
    std::int64_t pages_missing(std::int64_t n) const { return state_.pages_missing(n); }

    SequenceState& state() { return state_; }

  private:
    friend class Engine;
    void abandon_step();
    explicit Sequence(SequenceState state) : state_(std::move(state)) {}

    std::vector<TokenId> tokens_;
    SequenceState state_;
};

/// New tokens of one sequence in a step.
struct Slice {
    Sequence* sequence;
    std::span<const TokenId> tokens;
    enum class Logits { None, Last, All } logits = Logits::Last;
};

/// A loaded model and the threads and memory to run it. One thread calls it at a time.
///
/// A token's logits depend on the tokens before it and on nothing else: not on how they were cut into steps,
/// on other sequences of the step, on the number of threads or the instruction set
/// (docs/canonical-arithmetic.md).
class Engine {
  public:
    /// Builds the model and allocates everything that steps need. Throws what building a model throws, and
    /// OutOfMemory. The archive's bytes are read when steps first touch them, or by `load` before.
    Engine(std::shared_ptr<const gguf::Archive> archive, const EngineOptions& options);
    ~Engine();

    /// Brings all weights into memory; an exception of `progress` ends it.
    void load(LoadProgress progress) const;

    const models::ModelConfig& config() const { return model_->config; }
    const models::Model& model() const { return *model_; }
    const gguf::Archive& archive() const { return *archive_; }
    int threads() const;
    std::int64_t batch() const { return options_.batch; }
    /// The tokens of a step that nothing is gained by exceeding: batch(), or with devices a prompt's largest
    /// window.
    std::int64_t window() const { return options_.window; }
    /// The most tokens that a step may hold where nobody waits for it: several windows on several GPUs, which
    /// work on one after the other at once.
    std::int64_t longest_step() const;
    std::int64_t context() const { return options_.context; }

    Sequence make_sequence();

    /// Between requests, while none runs: what devices hold may be shared out anew. Changes no result.
    void request_ended();

    /// Pages of kPageTokens tokens that all sequences share; sequences of equal beginnings hold them
    /// together.
    std::int64_t pages() const { return static_cast<std::int64_t>(pool_->pages()); }
    std::int64_t free_pages() const { return static_cast<std::int64_t>(pool_->free_pages()); }
    /// What a sequence and each of its snapshots take outside the pages: 0 without recurrent layers.
    std::uint64_t recurrent_bytes() const { return layout_->fixed_bytes(); }
    const StateLayout& layout() const { return *layout_; }

    /// Writes tokens and state, byte-exact, for this model and configuration only.
    void save(const Sequence& sequence, ByteSink& sink) const;
    /// Reads what `save` wrote. Nothing where the engine has too few free pages; throws InvalidFile for what
    /// is foreign, cut or damaged.
    std::optional<Sequence> restore(ByteSource& source);

    /// The experts on fake devices; null where there are none.
    Offload* offload();
    /// The GPUs that run the steps; null where the CPU does.
    DeviceForward* device();
    /// Where parts of a prompt should end, a multiple of so many positions: a GPU computes whole cells of
    /// them in a way of its own (docs/adr/0008-prompt-cells.md). 1 on the CPU.
    std::int64_t prompt_grid() const;
    /// What is counted of this run's routing; null where nothing is.
    expert_cache::RoutingProfile* profile();

    /// Computes one step of at most longest_step() tokens and appends them to their sequences. Logits of the
    /// wanted rows go to `consumer` in order; `row` counts all tokens of the step. Throws InvalidArgument for
    /// a token outside the vocabulary and OutOfMemory where the context is full; sequences are then
    /// unchanged.
    void step(std::span<const Slice> slices, LogitsConsumer consumer, StepObserver* observer = nullptr);

    /// Told before the first step of `extend` and after each: tokens held before it, held now, and wanted.
    using ExtendProgress = FunctionRef<void(std::int64_t held, std::int64_t done, std::int64_t total)>;

    /// Makes the sequence hold exactly `tokens`, computing only what it does not hold yet (at least the last
    /// token), in steps of batch() or in the windows that the devices plan, and returns the last token's
    /// logits, valid until the next call. Where the observer throws, the sequence keeps the steps before.
    /// Requires: tokens not empty.
    std::span<const float> extend(Sequence& sequence, std::span<const TokenId> tokens, StepObserver* observer,
                                  ExtendProgress progress);
    std::span<const float> extend(Sequence& sequence, std::span<const TokenId> tokens) {
        return extend(sequence, tokens, nullptr, [](std::int64_t, std::int64_t, std::int64_t) {});
    }

  private:
    void check_tokens(std::span<const TokenId> tokens) const;
    std::vector<StepSlice> prepare(std::span<const Slice> slices);
    std::uint64_t fingerprint() const;

    std::shared_ptr<const gguf::Archive> archive_;
    EngineOptions options_;
    std::unique_ptr<models::Model> model_;
    std::optional<StateLayout> layout_;
    struct Compute;  ///< threads, operations, devices
    class DeviceStep;
    std::unique_ptr<Compute> compute_;
    std::unique_ptr<BlockPool> pool_;  ///< goes before the device whose memory it may be
    std::vector<TokenId> step_tokens_;
    std::vector<std::int64_t> logits_rows_;
    std::vector<float> last_logits_;
};

}  // namespace coterie::engine
