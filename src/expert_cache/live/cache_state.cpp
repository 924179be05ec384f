#include "expert_cache/live/cache_state.h"

#include <algorithm>

#include "base/error.h"
#include "expert_cache/slots/shares.h"

namespace coterie::expert_cache {
namespace {

// More than a step fetches before its copies are looked at again.
constexpr std::size_t kFetches = 256;
// Experts on their way back to RAM at a time; others wait in their slots.
constexpr std::size_t kReturns = 16;

std::size_t slot_limit(std::span<const LayerShape> layers) {
    std::size_t slots = 0;
    for (const LayerShape& layer : layers) slots += static_cast<std::size_t>(layer.experts);
    return slots;
}

/// Slots of each of the device's own layers, but those that stay on the host, for equal parts of `bytes`.
std::vector<std::int32_t> equal_shares(const DeviceCache& device, std::span<const LayerShape> layers,
                                       CacheOptions::Layers own, std::uint64_t bytes) {
    std::vector<Share> shares;
    for (std::int32_t l = 0; l < device.slots.layers(); ++l) {
        const bool here = l >= own.begin && l < own.end;
        const std::int32_t experts = here ? layers[static_cast<std::size_t>(l)].experts : 0;
        shares.push_back({.weight = experts > 0 ? 1.0 : 0.0,
                          .slot_bytes = device.slots.slot_bytes(l),
                          .capacity = experts});
    }
    share_out(shares, bytes, device.device.mapping_granularity());
    std::vector<std::int32_t> slots;
    for (const Share& share : shares) slots.push_back(share.slots);
    return slots;
}

void map_slots(DeviceCache& device) {
    for (std::int32_t l = 0; l < device.slots.layers(); ++l) {
        const std::int32_t slots = device.wanted[static_cast<std::size_t>(l)];
        if (slots < 0 || slots > device.slots.capacity(l)) {
            fail(ErrorCode::InvalidArgument, "layer {} has {} experts and cannot have {} slots on {}", l,
                 device.slots.capacity(l), slots, device.device.info().name);
        }
        if (!device.slots.grow(l, slots)) {
            fail(ErrorCode::OutOfMemory,
                 "{} refuses memory for expert slots at layer {}, after {} bytes; give the cache less "
                 "(--vram)",
                 device.device.info().name, l, device.slots.mapped_bytes());
        }
    }
}

}  // namespace

DeviceCache::DeviceCache(Device& of, std::int32_t number, std::span<const LayerShape> layers,
                         const Clock& clock, const CpuReading& reading, const UploadOptions& options)
    : device(of),
      device_number(number),
      slots(of, layers),
      uploader(of, clock, reading, options),
      stream(of.create_stream()),
      maintained(of.create_event()),
      fill_limit(layers.size()),
      wanted(layers.size()),
      fetches(kFetches),
      residents(layers) {
    retired.reserve(slot_limit(layers));
    for (Fetch& fetch : fetches) fetch.done = of.create_event();
}

DeviceCache::~DeviceCache() {
    try {
        stream->synchronise();
    } catch (const Error&) {  // nobody is left to hear of it
    }
}

CacheState::CacheState(const std::vector<Device*>& given, std::vector<LayerShape> shapes,
                       ExpertSource bytes_of, const PolicyFactory& factory, Clock& time,
                       const CacheOptions& chosen)
    : layers(std::move(shapes)),
      source(std::move(bytes_of)),
      clock(time),
      options(chosen),
      residency(layers),
      arriving(layers),
      doomed(layers),
      considered(layers) {
    COTERIE_CHECK(given.size() < 255);
    COTERIE_CHECK(options.layers.empty() || options.layers.size() == given.size());
    COTERIE_CHECK(options.slots.size() == given.size() || options.bytes.size() == given.size());
    if (!options.host_places.empty()) {
        host = std::make_unique<HostStore>(layers, options.host_places, given.empty() ? nullptr : given[0]);
    }
    for (std::size_t d = 0; d < given.size(); ++d) {
        devices.push_back(std::make_unique<DeviceCache>(*given[d], static_cast<std::int32_t>(d), layers,
                                                        clock, reading, options.uploads));
        DeviceCache& device = *devices.back();
        device.wanted = options.slots.empty()
                            ? equal_shares(device, layers, layers_of(device), options.bytes[d])
                            : options.slots[d];
        COTERIE_CHECK(device.wanted.size() == layers.size());
        if (host) device.returns.resize(kReturns);
        for (Return& back : device.returns) back.done = given[d]->create_event();
        map_slots(device);
    }
    std::int32_t most_slots = 0;
    for (std::int32_t l = 0; l < layer_count(); ++l) {
        const std::int32_t experts = layers[static_cast<std::size_t>(l)].experts;
        std::int32_t slots = 0;
        for (const auto& device : devices) slots += device->slots.slots(l);
        policies.push_back(experts > 0 ? factory(l, experts, std::min(slots, experts)) : nullptr);
        victims.emplace_back(static_cast<std::size_t>(experts), -1);
        most_slots = std::max(most_slots, experts);
    }
    set_fill_limits();
    candidates.resize(static_cast<std::size_t>(most_slots));
    may_go.reserve(static_cast<std::size_t>(most_slots / LayerBits::kBits + 1));
    upload_results.reserve(devices.size() * static_cast<std::size_t>(options.uploads.queue_length));
    logs.reserve(StepEpochs::kSteps);
    for (std::int32_t i = 0; i < StepEpochs::kSteps; ++i) {
        logs.emplace_back(layers, devices.size(), static_cast<std::size_t>(options.logged_uses));
    }
}

CacheOptions::Layers CacheState::layers_of(const DeviceCache& device) const {
    const auto d = static_cast<std::size_t>(device.device_number);
    CacheOptions::Layers own =
        options.layers.empty() ? CacheOptions::Layers{0, layer_count()} : options.layers[d];
    own.begin = std::max(own.begin, options.first_layer);
    return own;
}

HostExpert CacheState::bytes_of(ExpertKey key) const {
    const std::byte* place = host ? host->find(key) : nullptr;
    if (place == nullptr) return source(key);
    const auto bytes = layers[static_cast<std::size_t>(key.layer)].expert_bytes;
    return {.pieces = {std::span(place, static_cast<std::size_t>(bytes)), {}, {}}, .memory = host->memory()};
}

void CacheState::set_fill_limits() {
    for (std::int32_t layer = 0; layer < layer_count(); ++layer) {
        std::int32_t everywhere = 0;
        for (const auto& device : devices) everywhere += device->out.load() ? 0 : device->slots.slots(layer);
        const bool all = everywhere >= layers[static_cast<std::size_t>(layer)].experts;
        for (const auto& device : devices) {
            const std::int32_t slots = device->slots.slots(layer);
            device->fill_limit[static_cast<std::size_t>(layer)] =
                slots - spare_of(slots, options.spare_slots, all ? Complete::Yes : Complete::No);
            device->overfull = true;
        }
    }
}

bool CacheState::has_room(const DeviceCache& device, std::int32_t layer) const {
    return !device.out.load() && device.slots.count(layer, SlotState::Free) > 0 &&
           device.slots.count(layer, SlotState::Resident) + device.slots.count(layer, SlotState::Filling) <
               device.fill_limit[static_cast<std::size_t>(layer)];
}

}  // namespace coterie::expert_cache
