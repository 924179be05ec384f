#include <algorithm>

#include "engine/forward/cuda/gpu_check.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/moe.h"
#include "kernels/reference/reference.h"

namespace coterie::engine {
namespace {

using Floats = std::vector<float>;

constexpr float kEpsilon = 1e-6f;

std::span<const float> row_of(const Floats& rows, std::int64_t row, std::int64_t width) {
    return std::span(rows).subspan(static_cast<std::size_t>(row * width), static_cast<std::size_t>(width));
}

void check_norm(GpuCheck& check, std::int32_t rows, std::int32_t width) {
    const Floats x = check.random_values(rows * width);
    const Floats y = check.random_values(rows * width);
    const Floats weight = check.random_values(width);
    cuda::NormArgs args;
    args.x = {check.put(x), width, rows, width};
    args.y = check.put(y);
    args.weight = check.put(weight);
    args.run = width;
    args.epsilon = kEpsilon;
    args.out = check.take<float>(rows * width);
    args.quantised = take_quantised(check, rows, width);
    cuda::rms_norm(args, check.handle());
    for (std::int64_t r = 0; r < rows; ++r) {
        Floats law(static_cast<std::size_t>(width));
        reference::add(row_of(x, r, width).data(), row_of(y, r, width).data(), width, law.data());
        check.expect("rms_norm", args.x.data + r * width, law);
        reference::rms_norm(law.data(), weight.data(), width, kEpsilon, law.data());
        check.expect("rms_norm", args.out + r * width, law);
        check.expect_quantised("rms_norm", args.quantised, r, law);
    }
}

void check_gate(GpuCheck& check, cuda::Gate activation, std::int32_t rows, std::int32_t width) {
    const Floats gate = check.random_values(rows * width);
    const Floats up = check.random_values(rows * width);
    cuda::GateArgs args;
    args.gate = {check.put(gate), width, rows, width};
    args.up = check.put(up);
    args.activation = activation;
    args.quantised = take_quantised(check, rows, width);
    cuda::gate(args, check.handle());
    const bool plain = activation == cuda::Gate::SwiGlu;
    for (std::int64_t r = 0; r < rows; ++r) {
        Floats law(static_cast<std::size_t>(width));
        (plain ? reference::swiglu : reference::swiglu_oai)(row_of(gate, r, width).data(),
                                                            row_of(up, r, width).data(), width, law.data());
        check.expect(plain ? "swiglu" : "swiglu_oai", args.gate.data + r * width, law);
        check.expect_quantised(plain ? "swiglu" : "swiglu_oai", args.quantised, r, law);
    }
}

void check_add_and_quantise(GpuCheck& check, std::int32_t rows, std::int32_t width) {
    const Floats x = check.random_values(rows * width);
    const Floats y = check.random_values(rows * width);
    const cuda::Rows on_device{check.put(x), width, rows, width};
    const cuda::ActivationBuffer quantised = take_quantised(check, rows, width);
    cuda::add(on_device, check.put(y), check.handle());
    cuda::quantise(on_device, quantised, check.handle());
    for (std::int64_t r = 0; r < rows; ++r) {
        Floats law(static_cast<std::size_t>(width));
        reference::add(row_of(x, r, width).data(), row_of(y, r, width).data(), width, law.data());
        check.expect("add", on_device.data + r * width, law);
        check.expect_quantised("quantise", quantised, r, law);
    }
}

/// A few tokens at the end of one sequence of two pages, by the law and on the device.
class TestAttention {
  public:
    static constexpr std::int32_t kHeads = 4;
    static constexpr std::int32_t kKvHeads = 2;
    static constexpr std::int32_t kPositions = 70;  ///< held already
    static constexpr std::int32_t kPages = 2;
    static constexpr float kScale = 0.1f;

    TestAttention(GpuCheck& check, cpu::CacheType type, std::int32_t width, std::int32_t tokens)
        : check_(check), type_(type), width_(width), tokens_(tokens), pairs_(width / 4) {
        const auto row = static_cast<std::uint64_t>(cpu::cache_row_bytes(type, width) + 15) / 16 * 16;
        keys_ = {.offset = 0, .row_bytes = kKvHeads * row, .head_bytes = row, .type = type};
        values_ = keys_;
        values_.offset = kPageRows * keys_.row_bytes;
        page_bytes_ = 2 * values_.offset;
        pool_.resize(kPages * page_bytes_);
        for (std::int32_t p = 0; p < kPositions; ++p) {
            for (std::int32_t h = 0; h < kKvHeads; ++h) {
                store(check.random_values(width).data(), keys_, p, h);
                store(check.random_values(width).data(), values_, p, h);
            }
        }
        queries_ = check.random_values(tokens * kHeads * width);
        new_keys_ = check.random_values(tokens * kKvHeads * width);
        new_values_ = check.random_values(tokens * kKvHeads * width);
        norm_ = check.random_values(width);
        cosines_ = check.random_values(tokens * pairs_);
        sines_ = check.random_values(tokens * pairs_);
        sinks_ = check.random_values(kHeads);
        compute_law();
    }

    /// What the device is given: new memory each time.
    cuda::AttentionInputs inputs() const {
        cuda::AttentionInputs inputs;
        inputs.queries = {check_.put(queries_), kHeads * width_, tokens_, kHeads * width_};
        inputs.keys = {check_.put(new_keys_), kKvHeads * width_, tokens_, kKvHeads * width_};
        inputs.values = {check_.put(new_values_), kKvHeads * width_, tokens_, kKvHeads * width_};
        inputs.heads = kHeads;
        inputs.kv_heads = kKvHeads;
        inputs.key_width = inputs.value_width = width_;
        inputs.query_norm = inputs.key_norm = check_.put(norm_);
        inputs.query_epsilon = inputs.key_epsilon = kEpsilon;
        inputs.query_pairs = inputs.key_pairs = pairs_;
        inputs.cosines = check_.put(cosines_);
        inputs.sines = check_.put(sines_);
        std::vector<std::int32_t> positions;
        for (std::int32_t t = 0; t < tokens_; ++t) positions.push_back(kPositions + t);
        inputs.places = {check_.put(positions),
                         check_.put(std::vector<std::int32_t>(static_cast<std::size_t>(tokens_), 0)),
                         check_.put(std::vector<std::uint32_t>{0, 1}), kPages};
        inputs.cache = {check_.put(start_), page_bytes_, keys_, values_};
        return inputs;
    }
    cuda::AttentionArgs arguments(const cuda::AttentionInputs& inputs) const {
        cuda::AttentionArgs args;
        args.queries = inputs.queries;
        args.heads = kHeads;
        args.kv_heads = kKvHeads;
        args.key_width = args.value_width = width_;
        args.scale = kScale;
        args.sinks = check_.put(sinks_);
        args.places = inputs.places;
        args.cache = inputs.cache;
        args.out = check_.take<float>(tokens_ * kHeads * width_);
        args.out_stride = kHeads * width_;
        args.quantised = take_quantised(check_, tokens_, kHeads * width_);
        args.pages = kPages;
        return args;
    }
    void expect(const char* kernel, const cuda::AttentionArgs& args) const {
        for (std::int64_t t = 0; t < tokens_; ++t) {
            const std::span<const float> law = row_of(law_, t, kHeads * width_);
            check_.expect(kernel, args.out + t * args.out_stride, law);
            check_.expect_quantised(kernel, args.quantised, t, law);
        }
        const auto pool = check_.read(args.cache.base, static_cast<std::int64_t>(pool_.size()));
        if (pool != pool_) check_.refuse("store_attention_inputs");
    }

  private:
    static constexpr std::int32_t kPageRows = 64;

    std::byte* row(const cuda::PagePartView& part, std::int32_t position, std::int32_t head) {
        return pool_.data() + static_cast<std::uint64_t>(position / kPageRows) * page_bytes_ + part.offset +
               static_cast<std::uint64_t>(position % kPageRows) * part.row_bytes +
               static_cast<std::uint64_t>(head) * part.head_bytes;
    }
    void store(const float* values, const cuda::PagePartView& part, std::int32_t position,
               std::int32_t head) {
        reference::store_cache(type_, values, width_, row(part, position, head));
    }
    /// A head as attention sees it.
    Floats prepared(const float* head, std::int32_t token) const {
        Floats out(static_cast<std::size_t>(width_));
        reference::rms_norm(head, norm_.data(), width_, kEpsilon, out.data());
        reference::rope_halves(out.data(), cosines_.data() + token * pairs_, sines_.data() + token * pairs_,
                               pairs_);
        return out;
    }
    void compute_law() {
        start_ = pool_;
        for (std::int32_t t = 0; t < tokens_; ++t) {
            for (std::int32_t h = 0; h < kKvHeads; ++h) {
                const std::int64_t at = (t * kKvHeads + h) * width_;
                store(prepared(new_keys_.data() + at, t).data(), keys_, kPositions + t, h);
                store(new_values_.data() + at, values_, kPositions + t, h);
            }
        }
        law_.resize(queries_.size());
        for (std::int32_t t = 0; t < tokens_; ++t) {
            for (std::int32_t h = 0; h < kHeads; ++h) attend(t, h);
        }
    }
    void attend(std::int32_t token, std::int32_t head) {
        const std::int64_t at = (token * kHeads + head) * width_;
        const Floats query = prepared(queries_.data() + at, token);
        const std::int32_t kv = head / (kHeads / kKvHeads);
        const std::byte* keys[] = {row(keys_, 0, kv), row(keys_, kPageRows, kv)};
        const std::byte* values[] = {row(values_, 0, kv), row(values_, kPageRows, kv)};
        reference::attention({.queries = query.data(),
                              .heads = 1,
                              .key_width = width_,
                              .value_width = width_,
                              .key_pages = keys,
                              .value_pages = values,
                              .key_stride = static_cast<std::int64_t>(keys_.row_bytes),
                              .value_stride = static_cast<std::int64_t>(values_.row_bytes),
                              .key_type = type_,
                              .value_type = type_,
                              .first = 0,
                              .last = kPositions + token,
                              .scale = kScale,
                              .sinks = sinks_.data() + head,
                              .out = law_.data() + at,
                              .out_stride = width_});
    }

    GpuCheck& check_;
    cpu::CacheType type_;
    std::int32_t width_;
    std::int32_t tokens_;
    std::int32_t pairs_;
    cuda::PagePartView keys_;
    cuda::PagePartView values_;
    std::uint64_t page_bytes_ = 0;
    std::vector<std::byte> pool_;   ///< with the new tokens
    std::vector<std::byte> start_;  ///< without them
    Floats queries_, new_keys_, new_values_, norm_, cosines_, sines_, sinks_;
    Floats law_;  ///< [tokens][heads][width]
};

}  // namespace

void check_row_kernels(GpuCheck& check) {
    constexpr std::int32_t kRows = 2;
    constexpr std::int32_t kWidth = 1536;
    check.clear();
    check_norm(check, kRows, kWidth);
    check_add_and_quantise(check, kRows, kWidth);
    for (const cuda::Gate activation : {cuda::Gate::SwiGlu, cuda::Gate::SwiGluOai})
        check_gate(check, activation, kRows, kWidth);
}

TestRoute::TestRoute(GpuCheck& check, const cpu::Routing& routing)
    : check_(check), bias_(check.random_values(routing.experts)) {
    args_.routing = routing;
    args_.tokens = args_.max_tokens = 1;
    args_.logits_stride = routing.experts;
    args_.selection_bias = check.put(bias_);
    args_.residents =
        check.put(std::vector<std::uint64_t>(static_cast<std::size_t>(routing.experts), 4096));  // no misses
    args_.experts = check.take<std::int32_t>(routing.used);
    args_.weights = check.take<float>(routing.used);
    args_.slots = check.take<std::uint64_t>(routing.used);
    args_.counters = {.step = check.put(std::vector<std::uint64_t>{1}),
                      .missing = check.put(std::vector<std::uint32_t>{0}),
                      .routed = check.put(std::vector<std::uint32_t>{0}),
                      .experts = check.take<std::int32_t>(routing.used),
                      .weights = check.take<float>(routing.used)};
}

void TestRoute::expect(std::string_view kernel, const cuda::RouteArgs& args,
                       std::span<const float> logits) const {
    const cpu::Routing& routing = args.routing;
    std::vector<std::int32_t> experts(static_cast<std::size_t>(routing.used));
    Floats weights(experts.size());
    Floats scratch(static_cast<std::size_t>(3 * routing.experts));
    cpu::route(*cpu::kernels_for(cpu::InstructionSet::Scalar), routing, logits.data(), bias_.data(),
               scratch.data(), experts.data(), weights.data());
    check_.expect(kernel, args.weights, weights);
    if (check_.read(args.experts, routing.used) != experts) check_.refuse(kernel);
}

void check_route(GpuCheck& check, const cpu::Routing& routing) {
    check.clear();
    const Floats logits = check.random_values(routing.experts);
    const TestRoute route(check, routing);
    cuda::RouteArgs args = route.args();
    args.logits = check.put(logits);
    cuda::route(args, check.handle());
    route.expect("route", args, logits);
}

void check_combine(GpuCheck& check) {
    constexpr std::int32_t kUsed = 4;
    constexpr std::int32_t kWidth = 512;
    check.clear();
    const Floats rows = check.random_values(kUsed * kWidth);
    const Floats weights = check.random_values(kUsed);
    const Floats shared = check.random_values(kWidth);
    const Floats gate = check.random_values(1);
    cuda::CombineArgs args;
    args.used = kUsed;
    args.out = {check.take<float>(kWidth), kWidth, 1, kWidth};
    args.rows = check.put(rows);
    args.stride = kWidth;
    args.slots = check.put(std::vector<std::uint64_t>(kUsed, 4096));
    args.weights = check.put(weights);
    args.shared = check.put(shared);
    args.shared_gate = check.put(gate);
    args.counters.step = check.put(std::vector<std::uint64_t>{1});
    args.counters.missing = check.put(std::vector<std::uint32_t>{0});
    cuda::combine(args, check.handle());
    Floats law(kWidth, 0.0f);
    for (std::int64_t rank = 0; rank < kUsed; ++rank) {
        reference::add_scaled(row_of(rows, rank, kWidth).data(), weights[static_cast<std::size_t>(rank)],
                              kWidth, law.data());
    }
    float share = 0.0f;
    reference::sigmoid(gate.data(), 1, &share);
    reference::add_scaled(shared.data(), share, kWidth, law.data());
    check.expect("combine", args.out.data, law);
}

void check_attention(GpuCheck& check, cpu::CacheType type, std::int32_t width) {
    check.clear();
    const TestAttention one(check, type, width, 1);
    const std::int64_t heads = TestAttention::kHeads;
    for (const bool in_pages : {false, true}) {
        const cuda::AttentionInputs inputs = one.inputs();
        cuda::AttentionArgs args = one.arguments(inputs);
        if (in_pages) {
            args.partials = check.take<float>(heads * TestAttention::kPages * (width + 2));
            args.arrivals = check.put(std::vector<std::uint32_t>(static_cast<std::size_t>(heads), 0));
        }
        cuda::attention_of_step(inputs, args, check.handle());
        one.expect("attention", args);
    }
    const TestAttention several(check, type, width, 3);
    const cuda::AttentionInputs inputs = several.inputs();
    const cuda::AttentionArgs args = several.arguments(inputs);
    cuda::store_attention_inputs(inputs, check.handle());
    cuda::prompt_attention(args, check.handle());
    several.expect("prompt_attention", args);
}

}  // namespace coterie::engine
