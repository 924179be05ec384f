#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "expert_cache/expert_key.h"
#include "expert_cache/slots/layer_shape.h"

namespace coterie::expert_cache {

/// A set of experts, one bit each, whole words a layer: what holds for all experts of a layer is a few
/// operations on words. `Word`: std::uint64_t, or an atomic one where one thread writes and others look.
template <typename Word>
class LayerBitsOf {
  public:
    static constexpr std::int32_t kBits = 64;

    explicit LayerBitsOf(std::span<const LayerShape> layers) {
        std::size_t words = 0;
        for (const LayerShape& layer : layers) {
            first_.push_back(words);
            words += static_cast<std::size_t>((layer.experts + kBits - 1) / kBits);
        }
        first_.push_back(words);
        words_ = std::vector<Word>(words);
    }

    std::span<Word> layer(std::int32_t layer) {
        const auto index = static_cast<std::size_t>(layer);
        return std::span(words_).subspan(first_[index], first_[index + 1] - first_[index]);
    }
    std::span<const Word> layer(std::int32_t layer) const {
        const auto index = static_cast<std::size_t>(layer);
        return std::span(words_).subspan(first_[index], first_[index + 1] - first_[index]);
    }
    std::span<Word> all() { return words_; }

    static std::size_t word(std::int32_t expert) { return static_cast<std::size_t>(expert / kBits); }
    static std::uint64_t bit(std::int32_t expert) { return std::uint64_t{1} << (expert % kBits); }

  private:
    std::vector<std::size_t> first_;  ///< [layers + 1]
    std::vector<Word> words_;
};

/// For one thread, or under a lock.
class LayerBits : public LayerBitsOf<std::uint64_t> {
  public:
    using LayerBitsOf::LayerBitsOf;
    bool has(ExpertKey key) const { return (layer(key.layer)[word(key.expert)] & bit(key.expert)) != 0; }
    void set(ExpertKey key, bool is) {
        std::uint64_t& of = layer(key.layer)[word(key.expert)];
        of = is ? of | bit(key.expert) : of & ~bit(key.expert);
    }
};

/// Calls `see(expert)` for each bit, in ascending order.
template <typename See>
void for_each_bit(std::span<const std::uint64_t> words, See see) {
    for (std::size_t w = 0; w < words.size(); ++w) {
        for (std::uint64_t left = words[w]; left != 0; left &= left - 1) {
            see(static_cast<std::int32_t>(w) * 64 + std::countr_zero(left));
        }
    }
}

}  // namespace coterie::expert_cache
