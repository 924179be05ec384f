#include "expert_cache/slots/host_store.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"

namespace coterie::expert_cache {
namespace {

constexpr std::uint64_t kAlignment = 256;

std::unique_ptr<PinnedMemory> try_to_pin(Device* device, std::uint64_t bytes) {
    if (device == nullptr || bytes == 0) return nullptr;
    try {
        return device->allocate_pinned(bytes);
    } catch (const Error&) {  // ordinary memory then goes through staging buffers
        return nullptr;
    }
}

}  // namespace

HostStore::HostStore(std::span<const LayerShape> layers, std::span<const std::int32_t> places,
                     Device* device) {
    COTERIE_CHECK(places.size() == layers.size());
    for (std::size_t i = 0; i < layers.size(); ++i) {
        Layer& layer = layers_.emplace_back();
        layer.experts = layers[i].experts;
        layer.expert_bytes = layers[i].expert_bytes;
        layer.place_bytes = sized(checked_align_up(layers[i].expert_bytes, kAlignment));
        layer.offset = bytes_;
        layer.places.resize(static_cast<std::size_t>(std::clamp(places[i], 0, layer.experts)));
        layer.place_of =
            std::make_unique<std::atomic<std::int32_t>[]>(static_cast<std::size_t>(layer.experts));
        for (std::int32_t e = 0; e < layer.experts; ++e) layer.place_of[static_cast<std::size_t>(e)] = -1;
        bytes_ = sized(checked_add(bytes_, sized(checked_multiply(layer.places.size(), layer.place_bytes))));
    }
    std::size_t all = 0;
    for (const Layer& layer : layers_) all += layer.places.size();
    leaving_.reserve(all);
    pinned_ = try_to_pin(device, bytes_);
    if (!pinned_) pageable_ = AlignedBuffer<std::byte>(bytes_);
    base_ = pinned_ ? pinned_->span().data() : pageable_.data();
}

HostStore::~HostStore() = default;

std::byte* HostStore::address(const Layer& layer, std::int32_t place) const {
    return base_ + layer.offset + static_cast<std::uint64_t>(place) * layer.place_bytes;
}

HostStore::Place& HostStore::place_at(std::int32_t layer, std::int32_t place) {
    return at(layer).places[static_cast<std::size_t>(place)];
}

const std::byte* HostStore::find(ExpertKey key) const {
    const Layer& layer = at(key.layer);
    const std::int32_t place = layer.place_of[static_cast<std::size_t>(key.expert)].load();
    return place < 0 ? nullptr : address(layer, place);
}

std::optional<std::int32_t> HostStore::claim(ExpertKey key) {
    Layer& layer = at(key.layer);
    const auto free = std::find_if(layer.places.begin(), layer.places.end(),
                                   [](const Place& place) { return place.state == State::Free; });
    if (free == layer.places.end()) return std::nullopt;
    free->state = State::Filling;
    free->expert = key.expert;
    return static_cast<std::int32_t>(free - layer.places.begin());
}

std::span<std::byte> HostStore::bytes_of(std::int32_t layer, std::int32_t place) {
    return {address(at(layer), place), static_cast<std::size_t>(at(layer).expert_bytes)};
}

void HostStore::publish(std::int32_t layer, std::int32_t place) {
    Place& of = place_at(layer, place);
    COTERIE_CHECK(of.state == State::Filling);
    of.state = State::Holding;
    at(layer).place_of[static_cast<std::size_t>(of.expert)].store(place);
}

void HostStore::abandon(std::int32_t layer, std::int32_t place) {
    Place& of = place_at(layer, place);
    COTERIE_CHECK(of.state == State::Filling);
    of = {};
}

void HostStore::leave(ExpertKey key, StepEpochs& epochs) {
    auto& place_of = at(key.layer).place_of[static_cast<std::size_t>(key.expert)];
    const std::int32_t place = place_of.exchange(-1);
    if (place < 0) return;
    place_at(key.layer, place).state = State::Leaving;
    place_at(key.layer, place).left = epochs.retire();
    leaving_.push_back({key.layer, place});
}

void HostStore::reclaim(std::uint64_t oldest_step) {
    std::erase_if(leaving_, [&](const LeftPlace& left) {
        Place& place = place_at(left.layer, left.place);
        if (place.left >= oldest_step) return false;
        place = {};
        return true;
    });
}

std::int32_t HostStore::held(std::int32_t layer) const {
    return static_cast<std::int32_t>(
        std::count_if(at(layer).places.begin(), at(layer).places.end(),
                      [](const Place& place) { return place.state == State::Holding; }));
}

void HostStore::check_integrity() const {
    for (const Layer& layer : layers_) {
        std::int32_t named = 0;
        for (std::int32_t e = 0; e < layer.experts; ++e) {
            const std::int32_t place = layer.place_of[static_cast<std::size_t>(e)].load();
            if (place < 0) continue;
            ++named;
            const Place& of = layer.places[static_cast<std::size_t>(place)];
            COTERIE_CHECK(of.state == State::Holding && of.expert == e);
        }
        const auto holding = std::count_if(layer.places.begin(), layer.places.end(),
                                           [](const Place& place) { return place.state == State::Holding; });
        COTERIE_CHECK(named == holding);
    }
}

}  // namespace coterie::expert_cache
