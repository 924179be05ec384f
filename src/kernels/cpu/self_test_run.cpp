#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/error.h"
#include "base/split_mix.h"
#include "kernels/cpu/self_test.h"
#include "kernels/reference/reference.h"
#include "quant/random_blocks.h"

namespace coterie::cpu {
namespace {

constexpr std::uint64_t kSeed = 0xc07e41e;
constexpr std::int64_t kPagePositions = 64;

using Floats = std::vector<float>;

Floats random_floats(std::int64_t n, SplitMix64& random) {
    Floats values(static_cast<std::size_t>(n));
    for (float& value : values) value = random.next_float() * 8.0f - 4.0f;
    return values;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (std::isnan(a[i]) && std::isnan(b[i])) continue;
        if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i])) return false;
    }
    return a.size() == b.size();
}

[[noreturn]] void refuse(const KernelTable& table, std::string_view kernel) {
    fail(ErrorCode::Internal,
         "self-test: the {} kernel '{}' does not give the bits of the scalar law on this machine; choose the "
         "scalar "
         "instruction set and please report it",
         table.name, kernel);
}

/// A few tokens in both forms, each array padded to whole groups.
class Tokens {
  public:
    Tokens(std::int64_t count, std::int64_t columns, SplitMix64& random)
        : groups_(activation_groups(columns)),
          values_(static_cast<std::size_t>(count * groups_ * kGroupValues)),
          quants_(values_.size()),
          scales_(static_cast<std::size_t>(count * groups_)),
          scaled_sums_(scales_.size()),
          half_sums_(scales_.size() * 2) {
        for (std::int64_t t = 0; t < count; ++t) {
            float* values = values_.data() + t * groups_ * kGroupValues;
            for (std::int64_t i = 0; i < columns; ++i) values[i] = random.next_float() * 8.0f - 4.0f;
            const QuantisedActivation row = quantised_row(t);
            coterie::quantise_activation(values, columns, row);
            rows_.push_back({columns, values, row.quants, row.scales, row.scaled_sums, row.half_sums});
        }
    }

    const std::vector<ActivationRow>& rows() const { return rows_; }

  private:
    QuantisedActivation quantised_row(std::int64_t t) {
        const std::int64_t group = t * groups_;
        return {quants_.data() + group * kGroupValues, scales_.data() + group, scaled_sums_.data() + group,
                half_sums_.data() + group * 2};
    }

    std::int64_t groups_;
    AlignedBuffer<float> values_;
    AlignedBuffer<std::int8_t> quants_;
    AlignedBuffer<float> scales_;
    AlignedBuffer<float> scaled_sums_;
    AlignedBuffer<std::int16_t> half_sums_;
    std::vector<ActivationRow> rows_;
};

/// Enough rows for a whole strip of any instruction set and a rest, enough tokens for the decode and prompt
/// paths.
void test_matmul(const KernelTable& table, DataType type, SplitMix64& random) {
    constexpr std::int64_t kRows = 35;
    constexpr std::int64_t kColumns = 768;
    constexpr std::int64_t kTokens = 11;
    const DataTypeTraits& row_type = traits(type);
    if (!row_type.dot) return;
    const std::int64_t bytes = row_bytes(type, kColumns).value();
    std::vector<std::byte> weights(static_cast<std::size_t>(kRows * bytes));
    RandomBlocks(type, 0.05f).fill(random, kRows * kColumns / row_type.block_values, weights.data());
    const Tokens tokens(kTokens, kColumns, random);

    Floats expected(kRows * kTokens);
    for (std::int64_t t = 0; t < kTokens; ++t) {
        for (std::int64_t r = 0; r < kRows; ++r) {
            expected[static_cast<std::size_t>(t * kRows + r)] =
                row_type.dot(weights.data() + r * bytes, tokens.rows()[static_cast<std::size_t>(t)]);
        }
    }
    for (const std::int64_t count : {std::int64_t{1}, kTokens}) {
        Floats out(static_cast<std::size_t>(kRows * count));
        table.matmul[static_cast<std::size_t>(type)]({.weights = weights.data(),
                                                      .row_bytes = bytes,
                                                      .columns = kColumns,
                                                      .rows = kRows,
                                                      .activations = tokens.rows().data(),
                                                      .tokens = count,
                                                      .out = out.data(),
                                                      .out_token_stride = kRows});
        const auto wanted = std::span<const float>(expected).first(out.size());
        if (!same_bits(wanted, out)) refuse(table, "matmul " + std::string(row_type.name));
    }
}

void test_quantiser(const KernelTable& table, SplitMix64& random) {
    constexpr std::int64_t kColumns = 1000;
    constexpr std::int64_t kGroups = activation_groups(kColumns);
    struct Row {
        alignas(64) std::int8_t quants[kGroups * kGroupValues];
        alignas(64) float scales[kGroups];
        alignas(64) float scaled_sums[kGroups];
        alignas(64) std::int16_t half_sums[kGroups * 2];
        QuantisedActivation view() { return {quants, scales, scaled_sums, half_sums}; }
    };
    const Floats values = random_floats(kColumns, random);
    Row expected{};
    Row actual{};
    coterie::quantise_activation(values.data(), kColumns, expected.view());
    table.quantise_activation(values.data(), kColumns, actual.view());
    const bool same =
        std::equal(std::begin(expected.quants), std::end(expected.quants), actual.quants) &&
        std::equal(std::begin(expected.half_sums), std::end(expected.half_sums), actual.half_sums) &&
        same_bits(expected.scales, actual.scales) && same_bits(expected.scaled_sums, actual.scaled_sums);
    if (!same) refuse(table, "quantise_activation");
}

/// Runs the same op of both tables on the same inputs; `call(function, out)` may read what is in `out`.
template <typename Function, typename Call>
void compare(const KernelTable& table, const char* name, Function law, Function function, Floats out,
             Call call) {
    Floats expected = out;
    call(law, expected.data());
    call(function, out.data());
    if (!same_bits(expected, out)) refuse(table, name);
}

void test_rows(const KernelTable& table, std::int64_t n, SplitMix64& random) {
    const Floats x = random_floats(n, random);
    const Floats y = random_floats(n, random);
    const Floats start = random_floats(n, random);
    const float* a = x.data();
    const float* b = y.data();
    const auto unary = [&](auto f, float* out) { f(a, n, out); };
    const auto binary = [&](auto f, float* out) { f(a, b, n, out); };
    const auto rope = [&](auto f, float* out) { f(out, a, b, n / 2); };
    const auto check = [&](const char* name, auto law, auto function, auto call) {
        compare(table, name, law, function, start, call);
    };
    using Unary = void (*)(const float*, std::int64_t, float*);
    using Binary = void (*)(const float*, const float*, std::int64_t, float*);
    check("rms_norm", &reference::rms_norm, table.rms_norm,
          [&](auto f, float* out) { f(a, b, n, 1e-6f, out); });
    check("l2_norm", &reference::l2_norm, table.l2_norm, [&](auto f, float* out) { f(a, n, 1e-6f, out); });
    check("add", &reference::add, table.add, binary);
    check("add_scaled", &reference::add_scaled, table.add_scaled,
          [&](auto f, float* out) { f(a, 0.3f, n, out); });
    check("multiply", &reference::multiply, table.multiply, binary);
    check("swiglu", Binary{&reference::swiglu}, table.swiglu, binary);
    check("swiglu_oai", Binary{&reference::swiglu_oai}, table.swiglu_oai, binary);
    check("silu", Unary{&reference::silu}, table.silu, unary);
    check("sigmoid", Unary{&reference::sigmoid}, table.sigmoid, unary);
    check("softplus", Unary{&reference::softplus}, table.softplus, unary);
    check("softmax", &reference::softmax, table.softmax, unary);
    check("dot_f32", &reference::dot_f32, table.dot_f32, [&](auto f, float* out) { *out = f(a, b, n); });
    check("rope_adjacent", &reference::rope_adjacent, table.rope_adjacent, rope);
    check("rope_halves", &reference::rope_halves, table.rope_halves, rope);
}

void test_delta_rule(const KernelTable& table, SplitMix64& random) {
    constexpr std::int64_t kKeys = 128;
    constexpr std::int64_t kValues = 16;
    const Floats query = random_floats(kKeys, random);
    const Floats key = random_floats(kKeys, random);
    const Floats value = random_floats(kValues, random);
    // The state, and behind it the output.
    const Floats start = random_floats((kKeys + 1) * kValues, random);
    compare(table, "delta_rule", &reference::delta_rule, table.delta_rule, start, [&](auto f, float* memory) {
        f({.state = memory,
           .query = query.data(),
           .key = key.data(),
           .value = value.data(),
           .log_decay = -0.2f,
           .beta = 0.6f,
           .scale = 0.1f,
           .key_dim = kKeys,
           .value_dim = kValues,
           .out = memory + kKeys * kValues});
    });
}

/// Cache rows of both kinds, and attention over two pages of them.
void test_cache(const KernelTable& table, CacheType type, SplitMix64& random) {
    constexpr std::int64_t kHeads = 5;
    constexpr std::int64_t kWidth = 96;
    const std::int64_t stride = cache_row_bytes(type, kWidth);
    std::vector<std::byte> rows(static_cast<std::size_t>(2 * kPagePositions * stride));
    std::vector<std::byte> expected(static_cast<std::size_t>(stride));
    for (std::int64_t position = 0; position < 2 * kPagePositions; ++position) {
        const Floats row = random_floats(kWidth, random);
        std::byte* stored = rows.data() + position * stride;
        table.store_cache(type, row.data(), kWidth, stored);
        reference::store_cache(type, row.data(), kWidth, expected.data());
        if (!std::equal(expected.begin(), expected.end(), stored)) refuse(table, "store_cache");
    }
    const std::byte* pages[] = {rows.data(), rows.data() + kPagePositions * stride};
    const Floats queries = random_floats(kHeads * kWidth, random);
    const Floats sinks = random_floats(kHeads, random);
    compare(table, "attention", &reference::attention, table.attention, Floats(kHeads * kWidth),
            [&](auto f, float* out) {
                f({.queries = queries.data(),
                   .heads = kHeads,
                   .key_width = kWidth,
                   .value_width = kWidth,
                   .key_pages = pages,
                   .value_pages = pages,
                   .key_stride = stride,
                   .value_stride = stride,
                   .key_type = type,
                   .value_type = type,
                   .first = 3,
                   .last = 2 * kPagePositions - 7,
                   .scale = 0.1f,
                   .sinks = sinks.data(),
                   .out = out,
                   .out_stride = kWidth});
            });
}

}  // namespace

void self_test(const KernelTable& table, std::span<const DataType> types) {
    SplitMix64 random(kSeed);
    test_quantiser(table, random);
    for (const DataType type : types) test_matmul(table, type, random);
    for (const std::int64_t n : {64, 1000}) test_rows(table, n, random);
    test_delta_rule(table, random);
    for (const CacheType type : {CacheType::F32, CacheType::F16, CacheType::Q8_0})
        test_cache(table, type, random);
}

}  // namespace coterie::cpu
