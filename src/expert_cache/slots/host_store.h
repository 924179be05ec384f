#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "devices/device.h"
#include "expert_cache/expert_key.h"
#include "expert_cache/slots/layer_shape.h"
#include "expert_cache/slots/step_epochs.h"
#include "expert_cache/uploads/host_expert.h"

namespace coterie::expert_cache {

/// The part of RAM that holds the experts which no device holds (exclusive residency): for each layer some
/// places, each as large as one of its experts. An expert's gate, up and down stand there one after the
/// other, as in a slot. What finds no place is read from the model's file.
///
/// A place goes Free -> Filling -> Holding -> Leaving -> Free. `find` takes no lock, and what it gave may be
/// read until the step that asked ends: a place that an expert has left is reused only when no step is
/// running any more that may have found it (StepEpochs). All else under the cache's lock.
class HostStore {
  public:
    /// `places`: [layers]. Pinned by `device` where it gives that much, else ordinary memory. Throws
    /// OutOfMemory.
    HostStore(std::span<const LayerShape> layers, std::span<const std::int32_t> places, Device* device);
    ~HostStore();

    /// Null: the expert has no place.
    const std::byte* find(ExpertKey key) const;
    HostMemory memory() const { return pinned_ ? HostMemory::Pinned : HostMemory::Pageable; }
    std::uint64_t bytes() const { return bytes_; }

    /// A place to fill for an expert that has none, or nothing.
    std::optional<std::int32_t> claim(ExpertKey key);
    std::span<std::byte> bytes_of(std::int32_t layer, std::int32_t place);
    /// It is filled.
    void publish(std::int32_t layer, std::int32_t place);
    /// It will not be filled, and nothing writes it any more.
    void abandon(std::int32_t layer, std::int32_t place);
    /// The expert is elsewhere now, if it was here.
    void leave(ExpertKey key, StepEpochs& epochs);
    /// Frees what experts have left and no step reads.
    void reclaim(std::uint64_t oldest_step);

    std::int32_t held(std::int32_t layer) const;
    /// Throws Internal unless table and places agree.
    void check_integrity() const;

  private:
    enum class State : std::uint8_t { Free, Filling, Holding, Leaving };
    struct Place {
        State state = State::Free;
        std::int32_t expert = -1;
        std::uint64_t left = 0;
    };
    struct LeftPlace {
        std::int32_t layer;
        std::int32_t place;
    };
    struct Layer {
        std::uint64_t expert_bytes = 0;
        std::uint64_t place_bytes = 0;
        std::uint64_t offset = 0;
        std::vector<Place> places;
        std::unique_ptr<std::atomic<std::int32_t>[]> place_of;  ///< [experts]; -1: none
        std::int32_t experts = 0;
    };
    Layer& at(std::int32_t layer) { return layers_[static_cast<std::size_t>(layer)]; }
    const Layer& at(std::int32_t layer) const { return layers_[static_cast<std::size_t>(layer)]; }
    Place& place_at(std::int32_t layer, std::int32_t place);
    std::byte* address(const Layer& layer, std::int32_t place) const;

    std::vector<Layer> layers_;
    std::uint64_t bytes_ = 0;
    std::vector<LeftPlace> leaving_;  ///< reserved once
    std::unique_ptr<PinnedMemory> pinned_;
    AlignedBuffer<std::byte> pageable_;
    std::byte* base_ = nullptr;
};

}  // namespace coterie::expert_cache
