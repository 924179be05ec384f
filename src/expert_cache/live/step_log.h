#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "expert_cache/policy/policy.h"
#include "expert_cache/slots/layer_bits.h"

namespace coterie::expert_cache {

/// What a step remembers of its routing until it is learnt from. Written by the step's thread alone; only
/// `reads` may be looked at by others.
class StepLog {
  public:
    /// A layer's experts of one token, at most 64.
    struct Run {
        std::int32_t layer;
        std::int32_t token;  ///< within the step
        std::uint32_t first;
        std::uint32_t count;
        std::uint64_t missed;  ///< bit i: its i-th use
    };
    static constexpr std::size_t kLongestRun = 64;

    StepLog(std::span<const LayerShape> layers, std::size_t devices, std::size_t most_uses)
        : reads(layers), uses_of(devices + 1), paid_back(devices), uses_(most_uses) {
        runs_.reserve(most_uses);
    }

    void begin(bool learning) {
        learns = learning;
        tokens = 0;
        forget_uses();
        forget_reads();
    }
    /// The step reads nothing any more of what it was given so far.
    void forget_reads() {
        for (auto& word : reads.all()) word.store(0, std::memory_order_relaxed);
    }
    void forget_uses() {
        used_ = 0;
        runs_.clear();
    }

    /// From now on the step reads an expert of this layer of `reads`.
    void read(std::span<std::atomic<std::uint64_t>> layer, std::int32_t expert) {
        auto& word = layer[reads.word(expert)];
        word.store(word.load(std::memory_order_relaxed) | reads.bit(expert), std::memory_order_relaxed);
    }

    /// Any thread.
    bool is_read(ExpertKey key) const {
        return (reads.layer(key.layer)[reads.word(key.expert)].load(std::memory_order_relaxed) &
                reads.bit(key.expert)) != 0;
    }

    /// How many uses the next run may have; 0: what there is has to be learnt first.
    std::size_t room() const { return std::min(uses_.size() - used_, kLongestRun); }
    /// `missed`: bit i says so of the i-th expert. Requires: room for all of them.
    void add_run(std::int32_t layer, std::int32_t token, std::span<const std::int32_t> experts,
                 std::uint64_t missed) {
        runs_.push_back({layer, token, static_cast<std::uint32_t>(used_),
                         static_cast<std::uint32_t>(experts.size()), missed});
        ExpertUse* to = uses_.data() + used_;
        for (std::size_t i = 0; i < experts.size(); ++i) {
            to[i] = {.expert = static_cast<std::uint16_t>(experts[i]), .hit = (missed >> i & 1) == 0};
        }
        used_ += experts.size();
    }

    std::span<const Run> runs() const { return runs_; }
    std::span<const ExpertUse> uses(const Run& run) const {
        return std::span(uses_).subspan(run.first, run.count);
    }

    LayerBitsOf<std::atomic<std::uint64_t>> reads;  ///< by the step
    // Not counted elsewhere yet.
    std::vector<std::uint64_t> uses_of;    ///< [1 + devices]: misses, then each device's hits
    std::vector<std::uint64_t> paid_back;  ///< [devices]
    std::int32_t tokens = 0;
    bool learns = true;

  private:
    std::vector<ExpertUse> uses_;
    std::size_t used_ = 0;   ///< of uses_
    std::vector<Run> runs_;  ///< reserved once: a run has a use at least
};

}  // namespace coterie::expert_cache
