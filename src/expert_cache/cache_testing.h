#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "base/split_mix.h"
#include "devices/fake_device.h"
#include "expert_cache/expert_cache.h"

/// What tests of the running cache share: experts with known bytes, a simple policy, fake devices.
namespace coterie::expert_cache::testing_support {

/// Admits from the `uses`-th miss on; the victim is the least used, unless it was used more than the
/// incoming.
class CountingPolicy final : public Policy {
  public:
    CountingPolicy(std::int32_t experts, std::int32_t uses)
        : counts_(static_cast<std::size_t>(experts)), uses_(uses) {}

    void used(std::int32_t expert, std::int64_t, bool) override { ++counts_[at(expert)]; }
    bool admits(std::int32_t expert, std::int64_t) const override { return counts_[at(expert)] >= uses_; }
    std::int32_t victim(std::span<const std::int32_t> candidates, std::int32_t incoming,
                        std::int64_t) override {
        std::int32_t least = candidates.front();
        for (const std::int32_t expert : candidates) {
            if (counts_[at(expert)] < counts_[at(least)]) least = expert;
        }
        return counts_[at(least)] <= counts_[at(incoming)] ? least : -1;
    }
    double worth(std::int32_t expert, std::int64_t) const override { return counts_[at(expert)]; }
    void inserted(std::int32_t, std::int64_t) override { ++resident; }
    void removed(std::int32_t, std::int64_t) override { --resident; }

    std::int32_t resident = 0;

  private:
    static std::size_t at(std::int32_t expert) { return static_cast<std::size_t>(expert); }
    std::vector<std::int32_t> counts_;
    std::int32_t uses_;
};

inline PolicyFactory counting_policies(std::int32_t uses) {
    return [uses](std::int32_t, std::int32_t experts, std::int32_t) {
        return std::make_unique<CountingPolicy>(experts, uses);
    };
}

/// The experts of a model in RAM, with random bytes that differ everywhere.
class HostModel {
  public:
    HostModel(std::vector<LayerShape> layers, HostMemory memory, std::uint64_t seed)
        : layers_(std::move(layers)), memory_(memory) {
        SplitMix64 random(seed);
        for (const LayerShape& layer : layers_) {
            auto& experts = bytes_.emplace_back(static_cast<std::size_t>(layer.experts));
            for (auto& expert : experts) {
                expert.resize(layer.expert_bytes);
                for (std::byte& byte : expert) byte = std::byte(random.next() & 0xff);
            }
        }
    }

    const std::vector<LayerShape>& layers() const { return layers_; }
    const std::vector<std::byte>& bytes(ExpertKey key) const {
        return bytes_[static_cast<std::size_t>(key.layer)][static_cast<std::size_t>(key.expert)];
    }
    /// Gate, up and down of uneven sizes.
    ExpertSource source() const {
        return [this](ExpertKey key) {
            const std::span<const std::byte> all = bytes(key);
            const std::size_t gate = all.size() / 2;
            const std::size_t up = all.size() / 3;
            return HostExpert{.pieces = {all.first(gate), all.subspan(gate, up), all.subspan(gate + up)},
                              .memory = memory_};
        };
    }
    /// What stands on a device now.
    bool matches(const FakeDevice& device, DeviceAddress address, ExpertKey key) const {
        const auto& expected = bytes(key);
        return std::memcmp(device.resolve(address, expected.size()), expected.data(), expected.size()) == 0;
    }

  private:
    std::vector<LayerShape> layers_;
    HostMemory memory_;
    std::vector<std::vector<std::vector<std::byte>>> bytes_;
};

inline FakeDeviceSpec small_device(std::uint64_t memory_bytes, double link_rate = 1e9) {
    return {.memory_bytes = memory_bytes,
            .link_rate = link_rate,
            .latency = std::chrono::microseconds(5),
            .memory_rate = 1e10,
            .granularity_bytes = 4096};
}

inline CacheOptions manual_options() {
    CacheOptions options;
    options.maintenance = Maintenance::Manual;
    options.poison_freed = true;
    options.patience = std::chrono::milliseconds(20);
    options.uploads.chunk_bytes = 1000;
    return options;
}

}  // namespace coterie::expert_cache::testing_support
