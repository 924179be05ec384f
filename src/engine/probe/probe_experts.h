#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "engine/probe/machine_profile.h"
#include "models/model.h"

namespace coterie::engine {

/// What an expert is made of.
struct ExpertShape {
    std::string kind;  ///< as placement_facts.h names it
    models::FfnActivation activation = models::FfnActivation::SwiGlu;
    DataType gate = DataType::Q4_K;
    DataType up = DataType::Q4_K;
    DataType down = DataType::Q4_K;
    std::int64_t width = 2048;  ///< of its input and output
    std::int64_t hidden = 768;  ///< rows of gate and up
};

/// Of a model of 30B parameters, 3B of them used, at Q4_K: where no model is given.
ExpertShape usual_expert();
/// One for each kind of the model's routed experts; none where it has none. Reads no weights.
std::vector<ExpertShape> expert_shapes(const models::Model& model);

inline constexpr std::size_t kProbeBytes = std::size_t{512} << 20;  ///< more than caches hold

/// Experts of one shape with random weights, so many that those used long ago are in no cache.
class ProbeExperts {
  public:
    /// At least 8 of them, and `bytes` in all. Throws OutOfMemory.
    ProbeExperts(ThreadPool& pool, const ExpertShape& shape, std::size_t bytes = kProbeBytes);
    ~ProbeExperts();
    ProbeExperts(const ProbeExperts&) = delete;
    ProbeExperts& operator=(const ProbeExperts&) = delete;

    std::int64_t count() const { return static_cast<std::int64_t>(gate_.data.size()); }
    const models::ExpertMatrix& gate() const { return gate_; }
    const models::ExpertMatrix& up() const { return up_; }
    const models::ExpertMatrix& down() const { return down_; }
    /// All of them; page-aligned.
    std::span<const std::byte> memory() const { return {memory_, bytes_}; }

    /// How long the CPU takes for one that is in no cache, on all threads of the pool.
    ExpertTimes measure(ThreadPool& pool) const;

  private:
    void place(models::ExpertMatrix& matrix, std::uint64_t offset);

    const ExpertShape shape_;
    models::ExpertMatrix gate_;
    models::ExpertMatrix up_;
    models::ExpertMatrix down_;
    std::uint64_t stride_ = 0;  ///< from one expert to the next
    std::size_t bytes_ = 0;
    std::byte* memory_ = nullptr;
};

}  // namespace coterie::engine
