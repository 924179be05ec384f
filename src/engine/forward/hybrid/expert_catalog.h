#pragma once

#include <cstdint>
#include <vector>

#include "engine/forward/expert_pass.h"
#include "expert_cache/slots/layer_shape.h"
#include "expert_cache/uploads/host_expert.h"
#include "models/model.h"

namespace coterie::engine {

/// How a layer's experts stand in a slot: gate, up and down, byte for byte as in the file, one after the
/// other.
struct SlotLayout {
    std::uint64_t up_offset;
    std::uint64_t down_offset;
    std::uint64_t bytes;

    /// The job with its matrices read from a slot at `slot`. Scales and biases stay where they are: they
    /// belong to the dense weights.
    ExpertJob in_slot(const ExpertJob& job, const std::byte* slot) const;
};

/// All routed experts of a model: their sizes, and where their bytes are in RAM.
class ExpertCatalog {
  public:
    /// The model must outlive the catalog.
    explicit ExpertCatalog(const models::Model& model);

    bool empty() const { return experts_ == 0; }
    std::int64_t experts() const { return experts_; }  ///< of all layers
    /// [layers]; layers without routed experts have none.
    const std::vector<expert_cache::LayerShape>& shapes() const { return shapes_; }
    const SlotLayout& layout(int layer) const { return layouts_[static_cast<std::size_t>(layer)]; }
    const models::MoeFfn* layer(int layer) const { return layers_[static_cast<std::size_t>(layer)]; }
    int layers() const { return static_cast<int>(layers_.size()); }

    std::uint64_t largest_expert() const;
    std::int64_t largest_hidden() const;  ///< columns of the widest down matrix

    /// Numbers of equal types and shapes, [layers], for Costs.
    const std::vector<std::int32_t>& kinds() const { return kinds_; }
    std::int32_t kind_count() const { return kind_count_; }

    expert_cache::HostExpert source(expert_cache::ExpertKey key) const;
    /// Whether the bytes stand in memory that devices read directly.
    void set_host_memory(expert_cache::HostMemory memory) { host_memory_ = memory; }
    expert_cache::HostMemory host_memory() const { return host_memory_; }

  private:
    void add(int layer, const models::MoeFfn& ffn);
    std::int32_t kind_of(const models::MoeFfn& ffn) const;

    std::vector<const models::MoeFfn*> layers_;
    std::vector<SlotLayout> layouts_;
    std::vector<expert_cache::LayerShape> shapes_;
    std::vector<std::int32_t> kinds_;
    std::int32_t kind_count_ = 0;
    std::int64_t experts_ = 0;
    expert_cache::HostMemory host_memory_ = expert_cache::HostMemory::Pageable;
};

}  // namespace coterie::engine
