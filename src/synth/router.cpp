#include "synth/router.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "quant/random_blocks.h"
#include "synth/tensor_plan.h"

namespace coterie::synth {
namespace {

constexpr auto kReserved = static_cast<std::size_t>(kReservedDimensions);

/// Solves G X = B in place (X replaces B, `width` columns) for a symmetric positive definite G by
/// elimination.
void solve(std::vector<double>& g, std::size_t size, std::vector<double>& b, std::size_t width) {
    const auto subtract = [&](std::size_t row, std::size_t from) {
        const double factor = g[row * size + from] / g[from * size + from];
        for (std::size_t i = from; i < size; ++i) g[row * size + i] -= factor * g[from * size + i];
        for (std::size_t i = 0; i < width; ++i) b[row * width + i] -= factor * b[from * width + i];
    };
    for (std::size_t pivot = 0; pivot < size; ++pivot) {
        COTERIE_CHECK(g[pivot * size + pivot] > 0.0);
        for (std::size_t row = 0; row < size; ++row) {
            if (row != pivot) subtract(row, pivot);
        }
    }
    for (std::size_t row = 0; row < size; ++row) {
        for (std::size_t i = 0; i < width; ++i) b[row * width + i] /= g[row * size + row];
    }
}

}  // namespace

ReservedPart::ReservedPart(DataType type, std::int64_t topics, std::uint64_t seed)
    : topics_(topics), topic_bytes_(static_cast<std::size_t>(*row_bytes(type, kReservedDimensions))) {
    bytes_.resize(static_cast<std::size_t>(topics) * topic_bytes_);
    values_.resize(static_cast<std::size_t>(topics) * kReserved);
    SplitMix64 random(seed ^ 0xe3bedu);
    const std::int64_t blocks = topics * kReservedDimensions / traits(type).block_values;
    RandomBlocks(type, 1.0f).fill(random, blocks, bytes_.data());
    traits(type).decode(bytes_.data(), topics * kReservedDimensions, values_.data());
    find_readers();
}

std::span<const float> ReservedPart::embedding(std::int64_t topic) const {
    return std::span(values_).subspan(static_cast<std::size_t>(topic) * kReserved, kReserved);
}

/// With the v_t as rows of V, the smallest such u_t are the rows of (V V^T)^-1 V.
void ReservedPart::find_readers() {
    const auto topics = static_cast<std::size_t>(topics_);
    std::vector<double> products(topics * topics);
    for (std::size_t s = 0; s < topics; ++s) {
        for (std::size_t t = 0; t < topics; ++t) {
            double sum = 0.0;
            for (std::size_t i = 0; i < kReserved; ++i) {
                sum += static_cast<double>(values_[s * kReserved + i]) *
                       static_cast<double>(values_[t * kReserved + i]);
            }
            products[s * topics + t] = sum;
        }
    }
    readers_.assign(values_.begin(), values_.end());
    solve(products, topics, readers_, kReserved);
}

void ReservedPart::write_router_row(const RoutingModel& model, std::int64_t popularity_rank,
                                    std::span<float> row) const {
    for (std::size_t i = 0; i < kReserved; ++i) {
        double sum = 0.0;
        for (std::int64_t t = 0; t < topics_; ++t) {
            sum += static_cast<double>(model.fixed_part(popularity_rank, t)) *
                   readers_[static_cast<std::size_t>(t) * kReserved + i];
        }
        row[i] = static_cast<float>(sum) / kReservedNormWeight;
    }
}

std::vector<std::int64_t> popularity_ranks(std::int64_t experts, SplitMix64& random) {
    std::vector<std::int64_t> ranks(static_cast<std::size_t>(experts));
    std::iota(ranks.begin(), ranks.end(), std::int64_t{0});
    for (std::size_t i = ranks.size(); i > 1; --i) std::swap(ranks[i - 1], ranks[random.next() % i]);
    return ranks;
}

}  // namespace coterie::synth
