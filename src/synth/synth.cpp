#include "synth/synth.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "base/error.h"
#include "synth/disk_space.h"
#include "synth/metadata.h"
#include "synth/router.h"
#include "synth/weights.h"

namespace coterie::synth {
namespace {

constexpr std::int64_t kMostTopics = 64;  // a quarter of the reserved dimensions: readers stay small

template <typename T>
void check_range(std::string_view flag, T value, T least, T most) {
    if (value >= least && value <= most) return;  // false for NaN as well
    fail(ErrorCode::InvalidArgument, "{} is {}; it must be from {} to {}", flag, value, least, most);
}

/// The options resolved: everything of a file but its weights.
struct Blueprint {
    explicit Blueprint(const Options& options)
        : shape(find_shape(options.shape)),
          layers(options.layers == 0 ? shape.layers : options.layers),
          mix(options.quant) {
        check_range<std::int64_t>("--layers", layers, 1, shape.layers);
        check_range("--skew", options.skew, 0.0, 4.0);
        check_range<std::int64_t>("--topics", options.topics, 1, kMostTopics);
        check_range("--topic-strength", options.topic_strength, 0.0, 8.0);
        tensors = plan_tensors(shape, layers, mix);
        set_model_keys(header, shape, layers, mix);
        header.set("coterie.synth.shape", shape.name);
        header.set("coterie.synth.skew", options.skew);
        header.set("coterie.synth.topics", static_cast<std::uint32_t>(options.topics));
        header.set("coterie.synth.topic_strength", options.topic_strength);
        header.set("coterie.synth.seed", options.seed);
        set_vocabulary_keys(header, shape);
        for (const PlannedTensor& tensor : tensors) {
            header.add_tensor({tensor.name, tensor.type, tensor.dims});
        }
    }

    const Shape& shape;
    std::int64_t layers;
    QuantMix mix;
    std::vector<PlannedTensor> tensors;
    gguf::Header header;
};

RoutingModel make_routing(const Options& options, const Shape& shape) {
    return RoutingModel({.experts = shape.experts,
                         .used = shape.experts_used,
                         .skew = options.skew,
                         .topics = options.topics,
                         .topic_strength = options.topic_strength,
                         .seed = options.seed});
}

/// Makes the tensors of a blueprint when the writer asks for them.
class Source {
  public:
    Source(const Blueprint& blueprint, const Options& options, int threads)
        : blueprint_(blueprint),
          model_(make_routing(options, blueprint.shape)),
          reserved_(blueprint.tensors[0].type, options.topics, options.seed),
          maker_(model_, reserved_, options.seed, threads) {
        for (std::size_t i = 0; i < blueprint.tensors.size(); ++i) {
            total_bytes_ += blueprint.header.tensor_bytes(i);
        }
    }

    void write(std::size_t tensor, gguf::TensorOutput& output, Progress progress) {
        maker_.write(blueprint_.tensors[tensor], output, [&](std::uint64_t bytes) {
            done_bytes_ += bytes;
            progress(done_bytes_, total_bytes_);
        });
    }

  private:
    const Blueprint& blueprint_;
    RoutingModel model_;
    ReservedPart reserved_;
    WeightMaker maker_;
    std::uint64_t done_bytes_ = 0;
    std::uint64_t total_bytes_ = 0;
};

void add_part_sizes(const Blueprint& blueprint, Plan& plan) {
    std::array<std::uint64_t, kParts> bytes{};
    std::uint64_t of_tensors = 0;
    for (std::size_t i = 0; i < blueprint.tensors.size(); ++i) {
        const std::uint64_t size = blueprint.header.tensor_bytes(i);
        bytes[static_cast<std::size_t>(blueprint.tensors[i].part)] += size;
        of_tensors += size;
    }
    plan.parts.push_back({"metadata, padding", plan.file_bytes - of_tensors});
    for (int part = 0; part < kParts; ++part) {
        const std::uint64_t size = bytes[static_cast<std::size_t>(part)];
        if (size > 0) plan.parts.push_back({name(static_cast<Part>(part)), size});
    }
    plan.trunk_expert_bytes = bytes[static_cast<std::size_t>(Part::Experts)];
}

/// Layer by layer; the expert tensors of a layer stand together.
void add_expert_sizes(const Blueprint& blueprint, Plan& plan) {
    std::uint64_t layer_bytes = 0;
    const auto close_layer = [&] {
        if (layer_bytes == 0) return;
        const std::uint64_t expert = layer_bytes / static_cast<std::uint64_t>(plan.experts);
        plan.smallest_expert_bytes =
            plan.expert_layers == 0 ? expert : std::min(plan.smallest_expert_bytes, expert);
        plan.largest_expert_bytes = std::max(plan.largest_expert_bytes, expert);
        ++plan.expert_layers;
        layer_bytes = 0;
    };
    for (std::size_t i = 0; i < blueprint.tensors.size(); ++i) {
        if (blueprint.tensors[i].part == Part::Experts) {
            layer_bytes += blueprint.header.tensor_bytes(i);
        } else {
            close_layer();
        }
    }
    close_layer();
}

}  // namespace

std::string shape_names() {
    std::string names;
    for (const Shape& shape : all_shapes()) {
        if (!names.empty()) names += ", ";
        names += shape.name;
    }
    return names;
}

std::string quant_names() { return quant_mix_names(); }

std::vector<HitRate> predict_hit_rates(const Options& options) {
    const Blueprint checked(options);
    return simulate_hit_rates(make_routing(options, checked.shape), {});
}

Plan plan(const Options& options) {
    const Blueprint blueprint(options);
    Plan plan{};
    plan.title =
        fmt::format("{}, {} layers, {}", blueprint.shape.name, blueprint.layers, blueprint.mix.name());
    plan.file_bytes = blueprint.header.file_bytes();
    plan.experts = blueprint.shape.experts;
    plan.experts_used = blueprint.shape.experts_used;
    add_part_sizes(blueprint, plan);
    add_expert_sizes(blueprint, plan);
    plan.hit_rates = simulate_hit_rates(make_routing(options, blueprint.shape), {});
    return plan;
}

void write(const Options& options, const std::filesystem::path& path, gguf::Overwrite overwrite, int threads,
           Progress progress) {
    if (overwrite == gguf::Overwrite::No && std::filesystem::exists(path)) {
        fail(ErrorCode::InvalidArgument, "{}: exists already and is kept; use --force to replace it",
             path.string());
    }
    const Blueprint blueprint(options);
    check_disk_space(path, blueprint.header.file_bytes());
    Source source(blueprint, options, threads);
    gguf::write_file(path, blueprint.header, overwrite, [&](std::size_t tensor, gguf::TensorOutput& output) {
        source.write(tensor, output, progress);
    });
}

std::vector<std::byte> make_bytes(const Options& options, int threads) {
    const Blueprint blueprint(options);
    Source source(blueprint, options, threads);
    const auto ignore = [](std::uint64_t, std::uint64_t) {};
    return gguf::write_bytes(blueprint.header, [&](std::size_t tensor, gguf::TensorOutput& output) {
        source.write(tensor, output, ignore);
    });
}

}  // namespace coterie::synth
