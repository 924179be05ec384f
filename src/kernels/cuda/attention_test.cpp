#include "kernels/cuda/attention.h"

#include <gtest/gtest.h>

#include "kernels/cpu/ops_testing.h"
#include "kernels/cuda/device_array_for_test.h"
#include "kernels/reference/reference.h"

namespace coterie::cuda {
namespace {

using namespace testing;
using cpu::CacheType;
using cpu::testing::kSeed;
using cpu::testing::random_values;
using cpu::testing::Values;

constexpr std::int64_t kPagePositions = 64;

/// Which kernels are asked: a block a page, the same where the last page's block joins, a block for all pages
/// of a token, or one for several tokens.
enum class Way { Pages, Joined, Serial, Prompt };

struct Shape {
    std::int32_t heads;
    std::int32_t kv_heads;
    std::int32_t key_width;
    std::int32_t value_width;
    CacheType keys;
    CacheType values;
    std::int32_t window;
    bool sinks;
    Way way;
    std::vector<std::int32_t> positions;  ///< the last one of each sequence
};

/// A prompt's tokens are the last 11 of each sequence, so that blocks of 8 have several; else one of each.
struct Tokens {
    explicit Tokens(const Shape& shape) {
        for (std::size_t s = 0; s < shape.positions.size(); ++s) {
            const std::int32_t last = shape.positions[s];
            for (std::int32_t p = shape.way == Way::Prompt ? std::max(0, last - 10) : last; p <= last; ++p) {
                sequences.push_back(static_cast<std::int32_t>(s));
                positions.push_back(p);
            }
        }
    }
    std::vector<std::int32_t> sequences;
    std::vector<std::int32_t> positions;
};

std::ostream& operator<<(std::ostream& out, const Shape& s) {
    return out << s.heads << "/" << s.kv_heads << " heads of " << s.key_width << "/" << s.value_width
               << " types " << static_cast<int>(s.keys) << "/" << static_cast<int>(s.values) << " window "
               << s.window << (s.sinks ? " sinks" : "") << " way " << static_cast<int>(s.way);
}

std::vector<Shape> shapes() {
    std::vector<Shape> list;
    for (const Way way : {Way::Pages, Way::Joined, Way::Serial, Way::Prompt}) {
        for (const CacheType type : {CacheType::F32, CacheType::F16, CacheType::Q8_0}) {
            list.push_back({32, 4, 128, 128, type, type, 0, false, way, {0, 63, 64, 700}});
            list.push_back({12, 2, 96, 64, type, CacheType::F16, 0, true, way, {5, 200}});
            list.push_back({8, 8, 64, 64, CacheType::F16, type, 128, true, way, {1000, 3, 127, 128}});
        }
        list.push_back({5, 1, 256, 256, CacheType::F16, CacheType::F16, 0, false, way, {64 * 140 + 3}});
        list.push_back({6, 2, 80, 80, CacheType::F32, CacheType::F32, 40, false, way, {100}});
        list.push_back({4, 2, 160, 160, CacheType::F16, CacheType::F16, 0, false, way, {70, 130}});
    }
    return list;
}

/// A pool of pages with the rows of every sequence scattered over it.
class Cache {
  public:
    Cache(const Shape& shape, SplitMix64& random) : shape_(shape) {
        key_head_ =
            static_cast<std::uint64_t>(cpu::cache_row_bytes(shape.keys, shape.key_width) + 15) / 16 * 16;
        value_head_ =
            static_cast<std::uint64_t>(cpu::cache_row_bytes(shape.values, shape.value_width) + 15) / 16 * 16;
        const auto kv = static_cast<std::uint64_t>(shape.kv_heads);
        key_part_ = {.offset = 64, .row_bytes = key_head_ * kv, .head_bytes = key_head_, .type = shape.keys};
        value_part_ = {.offset = 64 + key_part_.row_bytes * kPagePositions,
                       .row_bytes = value_head_ * kv,
                       .head_bytes = value_head_,
                       .type = shape.values};
        page_bytes_ = value_part_.offset + value_part_.row_bytes * kPagePositions;
        for (const std::int32_t position : shape.positions) stride_ = std::max(stride_, position / 64 + 1);
        const std::size_t sequences = shape.positions.size();
        numbers_.resize(sequences * static_cast<std::size_t>(stride_));
        const std::size_t pool = numbers_.size();
        for (std::size_t i = 0; i < pool; ++i) numbers_[i] = static_cast<std::uint32_t>((i * 7 + 3) % pool);
        if (pool % 7 == 0) {
            for (std::size_t i = 0; i < pool; ++i) numbers_[i] = static_cast<std::uint32_t>(pool - 1 - i);
        }
        bytes_.assign(pool * page_bytes_, std::byte{0xff});
        for (std::size_t s = 0; s < sequences; ++s) fill(static_cast<std::int32_t>(s), random);
    }

    void fill(std::int32_t sequence, SplitMix64& random) {
        for (std::int32_t position = 0; position <= shape_.positions[static_cast<std::size_t>(sequence)];
             ++position) {
            for (std::int32_t h = 0; h < shape_.kv_heads; ++h) {
                const auto key = random_values(Values::Ordinary, shape_.key_width, random);
                reference::store_cache(shape_.keys, key.data(), shape_.key_width,
                                       row(key_part_, sequence, position, h));
                const auto value = random_values(Values::Ordinary, shape_.value_width, random);
                reference::store_cache(shape_.values, value.data(), shape_.value_width,
                                       row(value_part_, sequence, position, h));
            }
        }
    }
    std::byte* row(const PagePartView& part, std::int32_t sequence, std::int32_t position,
                   std::int32_t head) {
        return page(sequence, position / 64) + part.offset +
               static_cast<std::uint64_t>(position % 64) * part.row_bytes +
               static_cast<std::uint64_t>(head) * part.head_bytes;
    }
    std::byte* page(std::int32_t sequence, std::int32_t index) {
        return bytes_.data() + numbers_[static_cast<std::size_t>(sequence * stride_ + index)] * page_bytes_;
    }
    CachePages on(const DeviceArray<std::byte>& array) const {
        return {array.get(), page_bytes_, key_part_, value_part_};
    }

    const Shape& shape_;
    std::uint64_t key_head_ = 0;
    std::uint64_t value_head_ = 0;
    std::uint64_t page_bytes_ = 0;
    PagePartView key_part_;
    PagePartView value_part_;
    std::int32_t stride_ = 1;
    std::vector<std::uint32_t> numbers_;
    std::vector<std::byte> bytes_;
};

/// The reference's answer for one token.
std::vector<float> expected_row(const Shape& shape, Cache& cache, std::int32_t sequence, std::int32_t last,
                                const float* queries, const std::vector<float>& sinks) {
    std::vector<float> out(static_cast<std::size_t>(shape.heads * shape.value_width));
    const std::int32_t group = shape.heads / shape.kv_heads;
    for (std::int32_t kv = 0; kv < shape.kv_heads; ++kv) {
        std::vector<const std::byte*> keys;
        std::vector<const std::byte*> values;
        for (std::int32_t p = 0; p <= last / 64; ++p) {
            keys.push_back(cache.row(cache.key_part_, sequence, 64 * p, kv));
            values.push_back(cache.row(cache.value_part_, sequence, 64 * p, kv));
        }
        reference::attention({.queries = queries + kv * group * shape.key_width,
                              .heads = group,
                              .key_width = shape.key_width,
                              .value_width = shape.value_width,
                              .key_pages = keys.data(),
                              .value_pages = values.data(),
                              .key_stride = static_cast<std::int64_t>(cache.key_part_.row_bytes),
                              .value_stride = static_cast<std::int64_t>(cache.value_part_.row_bytes),
                              .key_type = shape.keys,
                              .value_type = shape.values,
                              .first = shape.window > 0 ? std::max(0, last - shape.window + 1) : 0,
                              .last = last,
                              .scale = 0.1f,
                              .sinks = shape.sinks ? sinks.data() + kv * group : nullptr,
                              .out = out.data() + kv * group * shape.value_width,
                              .out_stride = shape.value_width});
    }
    return out;
}

TEST(Attention, FollowsTheLaw) {
    SplitMix64 random(kSeed);
    for (const Shape& shape : shapes()) {
        SCOPED_TRACE(::testing::PrintToString(shape));
        Cache cache(shape, random);
        const Tokens places(shape);
        const auto tokens = static_cast<std::int32_t>(places.positions.size());
        const std::int64_t stride = (shape.heads * shape.key_width + 31) / 32 * 32;
        const std::int64_t out_stride = (shape.heads * shape.value_width + 31) / 32 * 32;
        const std::vector<float> queries = random_values(Values::Ordinary, tokens * stride, random);
        const std::vector<float> sinks = random_values(Values::Ordinary, shape.heads, random);
        const DeviceArray<std::byte> pool(cache.bytes_);
        const DeviceArray<float> device_queries(queries);
        const DeviceArray<float> device_sinks(sinks);
        const DeviceArray<std::int32_t> positions(places.positions);
        const DeviceArray<std::int32_t> sequences(places.sequences);
        const DeviceArray<std::uint32_t> pages(cache.numbers_);
        const DeviceArray<float> out(static_cast<std::size_t>(tokens * out_stride));
        const DeviceArray<float> partials(
            static_cast<std::size_t>(tokens * shape.heads * cache.stride_ * (shape.value_width + 2)));
        const DeviceArray<std::uint32_t> arrivals(
            std::vector<std::uint32_t>(static_cast<std::size_t>(tokens * shape.heads), 0u));
        const std::int64_t groups = (out_stride / 32 + 3) / 4 * 4;
        const DeviceArray<std::byte> quants(
            static_cast<std::size_t>(ActivationBuffer::bytes(tokens, groups)));
        AttentionArgs args;
        args.queries = {device_queries.get(), stride, tokens, shape.heads * shape.key_width};
        args.heads = shape.heads;
        args.kv_heads = shape.kv_heads;
        args.key_width = shape.key_width;
        args.value_width = shape.value_width;
        args.scale = 0.1f;
        args.window = shape.window;
        args.sinks = shape.sinks ? device_sinks.get() : nullptr;
        args.places = {positions.get(), sequences.get(), pages.get(), cache.stride_};
        args.cache = cache.on(pool);
        args.out = out.get();
        args.out_stride = out_stride;
        if (shape.value_width % 32 == 0) args.quantised = ActivationBuffer::in(quants.get(), tokens, groups);
        args.partials = shape.way == Way::Pages || shape.way == Way::Joined ? partials.get() : nullptr;
        args.arrivals = shape.way == Way::Joined ? arrivals.get() : nullptr;
        args.pages = cache.stride_;
        (shape.way == Way::Prompt ? prompt_attention : attention)(args, nullptr);
        const std::vector<float> result = out.read();
        const std::vector<std::byte> quantised = quants.read();
        for (std::int32_t t = 0; t < tokens; ++t) {
            const std::int32_t position = places.positions[static_cast<std::size_t>(t)];
            const std::vector<float> expected =
                expected_row(shape, cache, places.sequences[static_cast<std::size_t>(t)], position,
                             queries.data() + t * stride, sinks);
            EXPECT_TRUE(
                all_same(std::span(result).subspan(static_cast<std::size_t>(t * out_stride)), expected))
                << "token " << t << " at position " << position;
            if (shape.value_width % 32 != 0) continue;
            const ActivationForTest law(expected);
            EXPECT_EQ(std::memcmp(quantised.data() + t * groups * 32, law.row().quants, expected.size()), 0);
        }
    }
}

TEST(AttentionInputs, NormaliseRotateAndStore) {
    SplitMix64 random(kSeed);
    for (const CacheType type : {CacheType::F32, CacheType::F16, CacheType::Q8_0}) {
        for (const bool norm : {false, true}) {
            const Shape shape{6, 2, 96, 64, type, type, 0, false, Way::Pages, {130, 5}};
            Cache cache(shape, random);
            constexpr std::int32_t kPairs = 32;
            const std::vector<float> queries = random_values(Values::Ordinary, 2 * 576, random);
            const std::vector<float> keys = random_values(Values::Ordinary, 2 * 192, random);
            const std::vector<float> values = random_values(Values::Ordinary, 2 * 128, random);
            const std::vector<float> weight = random_values(Values::Ordinary, 96, random);
            const std::vector<float> cosines = random_values(Values::Ordinary, 2 * kPairs, random);
            const std::vector<float> sines = random_values(Values::Ordinary, 2 * kPairs, random);
            const DeviceArray<std::byte> pool(cache.bytes_);
            const DeviceArray<float> device_queries(queries);
            const DeviceArray<float> device_keys(keys);
            const DeviceArray<float> device_values(values);
            const DeviceArray<float> device_weight(weight);
            const DeviceArray<float> device_cosines(cosines);
            const DeviceArray<float> device_sines(sines);
            const DeviceArray<std::int32_t> positions(shape.positions);
            const DeviceArray<std::int32_t> sequences(std::vector<std::int32_t>{0, 1});
            const DeviceArray<std::uint32_t> pages(cache.numbers_);
            AttentionInputs args;
            args.queries = {device_queries.get(), 576, 2, 576};
            args.keys = {device_keys.get(), 192, 2, 192};
            args.values = {device_values.get(), 128, 2, 128};
            args.heads = shape.heads;
            args.kv_heads = shape.kv_heads;
            args.key_width = shape.key_width;
            args.value_width = shape.value_width;
            args.query_norm = norm ? device_weight.get() : nullptr;
            args.key_norm = args.query_norm;
            args.query_epsilon = args.key_epsilon = 1e-6f;
            args.query_pairs = args.key_pairs = kPairs;
            args.cosines = device_cosines.get();
            args.sines = device_sines.get();
            args.places = {positions.get(), sequences.get(), pages.get(), cache.stride_};
            args.cache = cache.on(pool);
            store_attention_inputs(args, nullptr);

            const auto prepared = [&](const float* head, std::int32_t t) {
                std::vector<float> row(head, head + 96);
                if (norm) reference::rms_norm(row.data(), weight.data(), 96, 1e-6f, row.data());
                reference::rope_halves(row.data(), cosines.data() + t * kPairs, sines.data() + t * kPairs,
                                       kPairs);
                return row;
            };
            const std::vector<float> rotated = device_queries.read();
            for (std::int32_t t = 0; t < 2; ++t) {
                for (std::int32_t h = 0; h < shape.heads; ++h) {
                    const std::size_t begin = static_cast<std::size_t>(t * 576 + h * 96);
                    EXPECT_TRUE(
                        all_same(std::span(rotated).subspan(begin), prepared(queries.data() + begin, t)));
                }
                const std::int32_t position = shape.positions[static_cast<std::size_t>(t)];
                for (std::int32_t h = 0; h < shape.kv_heads; ++h) {
                    const auto key = prepared(keys.data() + t * 192 + h * 96, t);
                    reference::store_cache(type, key.data(), 96, cache.row(cache.key_part_, t, position, h));
                    reference::store_cache(type, values.data() + t * 128 + h * 64, 64,
                                           cache.row(cache.value_part_, t, position, h));
                }
            }
            EXPECT_TRUE(pool.read() == cache.bytes_) << "type " << static_cast<int>(type);
        }
    }
}

/// A single token's, in one kernel and in those that the tests above hold to the law.
TEST(AttentionOfStep, IsThatOfItsParts) {
    SplitMix64 random(kSeed);
    for (Shape shape : shapes()) {
        if (shape.way == Way::Serial || shape.way == Way::Prompt) continue;
        SCOPED_TRACE(::testing::PrintToString(shape));
        for (const bool norm : {false, true}) {
            shape.positions.resize(1);
            Cache cache(shape, random);
            const std::int32_t pairs = shape.key_width / 4;
            const auto values_of = [&](std::int64_t count) {
                return random_values(Values::Ordinary, count, random);
            };
            const std::vector<float> queries = values_of(shape.heads * shape.key_width);
            const DeviceArray<float> keys(values_of(shape.kv_heads * shape.key_width));
            const DeviceArray<float> values(values_of(shape.kv_heads * shape.value_width));
            const DeviceArray<float> weight(values_of(shape.key_width));
            const DeviceArray<float> cosines(values_of(pairs));
            const DeviceArray<float> sines(values_of(pairs));
            const DeviceArray<float> sinks(values_of(shape.heads));
            const DeviceArray<std::int32_t> positions(shape.positions);
            const DeviceArray<std::int32_t> sequences(std::vector<std::int32_t>{0});
            const DeviceArray<std::uint32_t> pages(cache.numbers_);
            const std::int64_t out_stride = (shape.heads * shape.value_width + 31) / 32 * 32;
            const std::int64_t groups = (out_stride / 32 + 3) / 4 * 4;

            struct Result {
                std::vector<float> out;
                std::vector<std::byte> quantised;
                std::vector<std::byte> pool;
            };
            const auto run = [&](bool at_once) {
                const DeviceArray<std::byte> pool(cache.bytes_);
                const DeviceArray<float> device_queries(queries);
                const DeviceArray<float> out(static_cast<std::size_t>(out_stride));
                const DeviceArray<float> partials(
                    static_cast<std::size_t>(shape.heads * cache.stride_ * (shape.value_width + 2)));
                const DeviceArray<std::uint32_t> arrivals(
                    std::vector<std::uint32_t>(static_cast<std::size_t>(shape.heads), 0u));
                const DeviceArray<std::byte> quants(
                    static_cast<std::size_t>(ActivationBuffer::bytes(1, groups)));
                AttentionInputs inputs;
                inputs.queries = {device_queries.get(), shape.heads * shape.key_width, 1,
                                  shape.heads * shape.key_width};
                inputs.keys = {keys.get(), shape.kv_heads * shape.key_width, 1,
                               shape.kv_heads * shape.key_width};
                inputs.values = {values.get(), shape.kv_heads * shape.value_width, 1,
                                 shape.kv_heads * shape.value_width};
                inputs.heads = shape.heads;
                inputs.kv_heads = shape.kv_heads;
                inputs.key_width = shape.key_width;
                inputs.value_width = shape.value_width;
                inputs.query_norm = norm ? weight.get() : nullptr;
                inputs.key_norm = inputs.query_norm;
                inputs.query_epsilon = inputs.key_epsilon = 1e-6f;
                inputs.query_pairs = inputs.key_pairs = pairs;
                inputs.cosines = cosines.get();
                inputs.sines = sines.get();
                inputs.places = {positions.get(), sequences.get(), pages.get(), cache.stride_};
                inputs.cache = cache.on(pool);
                AttentionArgs args;
                args.queries = inputs.queries;
                args.heads = shape.heads;
                args.kv_heads = shape.kv_heads;
                args.key_width = shape.key_width;
                args.value_width = shape.value_width;
                args.scale = 0.1f;
                args.window = shape.window;
                args.sinks = shape.sinks ? sinks.get() : nullptr;
                args.places = inputs.places;
                args.cache = inputs.cache;
                args.out = out.get();
                args.out_stride = out_stride;
                if (shape.value_width % 32 == 0)
                    args.quantised = ActivationBuffer::in(quants.get(), 1, groups);
                args.partials = partials.get();
                args.arrivals = shape.way == Way::Joined ? arrivals.get() : nullptr;
                args.pages = cache.stride_;
                if (at_once) {
                    attention_of_step(inputs, args, nullptr);
                } else {
                    store_attention_inputs(inputs, nullptr);
                    attention(args, nullptr);
                }
                return Result{out.read(), quants.read(), pool.read()};
            };
            const Result parts = run(false);
            const Result whole = run(true);
            EXPECT_TRUE(all_same(whole.out, parts.out));
            EXPECT_TRUE(whole.quantised == parts.quantised);
            EXPECT_TRUE(whole.pool == parts.pool);
        }
    }
}

/// Rows [first, last] of one sequence, of which those of cell [128, 192) are a cell of the step or, `alone`,
/// all of it.
struct CellRun {
    std::vector<float> out;
    std::vector<std::byte> quantised;
    std::int64_t stride;
    std::int64_t groups;
};

CellRun run_cell(const Shape& shape, const Cache& cache, const std::vector<float>& queries,
                 const std::vector<float>& sinks, std::int32_t first, std::int32_t last) {
    const std::int32_t tokens = last - first + 1;
    std::vector<std::int32_t> positions;
    std::vector<std::uint8_t> in_cells;
    for (std::int32_t p = first; p <= last; ++p) {
        positions.push_back(p);
        in_cells.push_back(p >= 128 && p < 192 ? 1 : 0);
    }
    const std::int64_t query_stride = shape.heads * shape.key_width;
    CellRun run;
    run.stride = shape.heads * shape.value_width;
    run.groups = run.stride / 32;
    const DeviceArray<std::byte> pool(cache.bytes_);
    const DeviceArray<float> device_queries(
        std::span<const float>(queries).subspan(static_cast<std::size_t>(first * query_stride)));
    const DeviceArray<float> device_sinks(sinks);
    const DeviceArray<std::int32_t> device_positions(positions);
    const DeviceArray<std::int32_t> sequences(std::vector<std::int32_t>(positions.size(), 0));
    const DeviceArray<std::uint32_t> pages(cache.numbers_);
    const DeviceArray<std::uint8_t> flags(in_cells);
    const DeviceArray<std::int32_t> first_rows(std::vector<std::int32_t>{128 - first});
    const DeviceArray<float> out(static_cast<std::size_t>(tokens * run.stride));
    const DeviceArray<std::byte> quants(
        static_cast<std::size_t>(ActivationBuffer::bytes(tokens, run.groups)));
    AttentionArgs args;
    args.queries = {device_queries.get(), query_stride, tokens, shape.heads * shape.key_width};
    args.heads = shape.heads;
    args.kv_heads = shape.kv_heads;
    args.key_width = shape.key_width;
    args.value_width = shape.value_width;
    args.scale = 0.1f;
    args.window = shape.window;
    args.sinks = shape.sinks ? device_sinks.get() : nullptr;
    args.places = {device_positions.get(), sequences.get(), pages.get(), cache.stride_, flags.get()};
    args.cache = cache.on(pool);
    args.out = out.get();
    args.out_stride = run.stride;
    args.quantised = ActivationBuffer::in(quants.get(), tokens, run.groups);
    args.pages = cache.stride_;
    EXPECT_TRUE(attends_in_cells(args));
    attention_of_cells(args, {first_rows.get(), 1}, nullptr);
    if (tokens > kPagePositions) prompt_attention(args, nullptr);
    run.out = out.read();
    run.quantised = quants.read();
    return run;
}

TEST(AttentionOfCells, IsCloseToTheLawAndTheSameInAnyCompany) {
    SplitMix64 random(kSeed);
    for (const CacheType type : {CacheType::F16, CacheType::Q8_0}) {
        for (const Shape& shape : {Shape{8, 2, 128, 128, type, type, 0, false, Way::Prompt, {200}},
                                   Shape{3, 3, 64, 64, type, CacheType::F16, 0, true, Way::Prompt, {200}},
                                   Shape{6, 2, 96, 96, CacheType::F16, type, 100, true, Way::Prompt, {200}},
                                   Shape{4, 1, 64, 64, type, type, 7, false, Way::Prompt, {200}}}) {
            SCOPED_TRACE(::testing::PrintToString(shape));
            Cache cache(shape, random);
            const std::int64_t width = shape.heads * shape.key_width;
            const std::vector<float> queries = random_values(Values::Ordinary, 201 * width, random);
            const std::vector<float> sinks = random_values(Values::Ordinary, shape.heads, random);
            const CellRun mixed = run_cell(shape, cache, queries, sinks, 125, 200);
            const CellRun alone = run_cell(shape, cache, queries, sinks, 128, 191);
            const auto row_of = [](const CellRun& run, std::int64_t row) {
                return std::span(run.out).subspan(static_cast<std::size_t>(row * run.stride),
                                                  static_cast<std::size_t>(run.stride));
            };
            for (std::int32_t position = 125; position <= 200; ++position) {
                const std::vector<float> expected =
                    expected_row(shape, cache, 0, position, queries.data() + position * width, sinks);
                const std::span<const float> row = row_of(mixed, position - 125);
                if (position < 128 || position >= 192) {
                    EXPECT_TRUE(all_same(row, expected)) << "position " << position;
                    continue;
                }
                EXPECT_TRUE(all_same(row, row_of(alone, position - 128))) << "position " << position;
                double error = 0;
                double power = 0;
                for (std::size_t i = 0; i < expected.size(); ++i) {
                    error += (row[i] - expected[i]) * (row[i] - expected[i]);
                    power += expected[i] * expected[i];
                }
                EXPECT_LT(error, 1e-6 * power) << "position " << position;
                const ActivationForTest law(std::vector<float>(row.begin(), row.end()));
                EXPECT_EQ(std::memcmp(mixed.quantised.data() + (position - 125) * mixed.groups * 32,
                                      law.row().quants, expected.size()),
                          0);
            }
        }
    }
}

}  // namespace
}  // namespace coterie::cuda
