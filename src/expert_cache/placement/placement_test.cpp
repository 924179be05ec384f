#include "expert_cache/placement/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/split_mix.h"
#include "expert_cache/placement/slot_shares.h"

namespace coterie::expert_cache {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr std::uint64_t kSeed = 77;

/// Qwen3-30B-A3B as Q4_K_M: 48 layers, 128 experts, 8 used, half of the layers with a larger down matrix.
ModelFacts qwen3() {
    ModelFacts model;
    model.embedding_bytes = 175 * kMiB;
    model.output_bytes = 255 * kMiB;
    model.workspace_bytes = 300 * kMiB;
    for (std::int32_t i = 0; i < 48; ++i) {
        LayerFacts layer;
        layer.dense_bytes = 11'000'000;
        layer.kv_bytes_per_token = 2048;
        layer.experts = 128;
        layer.experts_used = 8;
        layer.expert_bytes = i % 2 == 0 ? 2'654'208 : 3'059'712;
        model.layers.push_back(layer);
    }
    return model;
}

Costs desktop_costs(std::size_t devices) {
    DeviceCosts device;
    device.link_bytes_per_second = 24e9;
    device.contended_link_bytes_per_second = 20e9;
    device.copy_seconds = 8e-6;
    device.memory_bytes_per_second = 936e9;
    device.handoff_seconds = 15e-6;
    device.compute = {{.expert_seconds = 0, .row_seconds = 0.05e-6}};
    Costs costs;
    costs.kinds = {"Q4_K"};
    costs.cpu.read_bytes_per_second = 42e9;
    costs.cpu.handoff_seconds = 15e-6;
    costs.cpu.compute = {{.expert_seconds = 0, .row_seconds = 20e-6}};
    costs.devices.assign(devices, device);
    costs.ram_bytes_per_second = 44e9;
    return costs;
}

PlacementRequest usual_request() {
    PlacementRequest request;
    request.ram_bytes = 64 * kGiB;
    request.reserve_bytes = 400 * kMiB;
    request.staging_bytes = 64 * kMiB;
    request.dense = DensePlace::Devices;
    return request;
}

std::vector<DeviceFacts> devices(const std::vector<std::uint64_t>& free_bytes) {
    std::vector<DeviceFacts> result;
    for (const std::uint64_t bytes : free_bytes) result.push_back({"test device", bytes});
    return result;
}

PlacementResult plan(const std::vector<std::uint64_t>& free_bytes, const PlacementRequest& request,
                     const UsageCounts* usage = nullptr) {
    return plan_placement(qwen3(), devices(free_bytes), desktop_costs(free_bytes.size()), request, usage);
}

Placement placed(const PlacementResult& result) {
    if (const auto* refusal = std::get_if<Refusal>(&result)) ADD_FAILURE() << refusal->problem;
    return std::get<Placement>(result);
}

std::int32_t slots_of(const Placement& placement, std::size_t layer) {
    std::int32_t slots = 0;
    for (const DevicePlan& device : placement.devices) slots += device.slots[layer];
    return slots;
}

TEST(PlacementTest, TwelveGibOfVramHoldACache) {
    const Placement placement = placed(plan({12 * kGiB}, usual_request()));
    EXPECT_EQ(placement.strategy, Strategy::Cache);
    const DevicePlan& device = placement.devices.at(0);
    EXPECT_EQ(device.layer_count, 48);
    EXPECT_EQ(device.dense_bytes, 48 * std::uint64_t{11'000'000} + 255 * kMiB);
    EXPECT_EQ(device.kv_bytes, 48 * std::uint64_t{2048} * 4096);
    EXPECT_EQ(placement.ram.dense_bytes, 175 * kMiB);
    // Layers with smaller experts have more slots: equal bytes.
    EXPECT_NEAR(slots_of(placement, 0) * 2'654'208.0, slots_of(placement, 1) * 3'059'712.0, 3'059'712);
    EXPECT_GT(placement.hit_rate, 0.85);
    EXPECT_LT(placement.hit_rate, 0.95);
    EXPECT_FALSE(placement.exclusive);
    EXPECT_FALSE(placement.profiled);
}

TEST(PlacementTest, AModelThatFitsIsResident) {
    const Placement placement = placed(plan({24 * kGiB}, usual_request()));
    EXPECT_EQ(placement.strategy, Strategy::Resident);
    EXPECT_EQ(placement.hit_rate, 1);
    for (std::size_t layer = 0; layer < 48; ++layer) EXPECT_EQ(slots_of(placement, layer), 128);
    const double bytes = 48.0 * 8 * (2'654'208 + 3'059'712) / 2 + 48 * 11e6 + 255.0 * kMiB;
    EXPECT_NEAR(placement.seconds_per_token, bytes / 936e9, 1e-9);
}

TEST(PlacementTest, DenseWeightsOnTheCpuLeaveVramToExperts) {
    PlacementRequest request = usual_request();
    request.dense = DensePlace::Cpu;
    const Placement placement = placed(plan({8 * kGiB, 4 * kGiB}, request));
    EXPECT_EQ(placement.strategy, Strategy::Cache);
    EXPECT_EQ(placement.ram.kv_bytes, 48 * std::uint64_t{2048} * 4096);
    for (const DevicePlan& device : placement.devices) {
        EXPECT_EQ(device.dense_bytes + device.kv_bytes + device.workspace_bytes, 0U);
        EXPECT_LT(device.unused_bytes, std::uint64_t{3'059'712});
    }
    // Every layer has slots on both, by their memory less the reserve.
    for (std::size_t layer = 0; layer < 48; ++layer) {
        EXPECT_GT(placement.devices[0].slots[layer], placement.devices[1].slots[layer]);
        EXPECT_GT(placement.devices[1].slots[layer], 0);
    }
}

TEST(PlacementTest, UnevenDevicesShareTheLayersByMemory) {
    const Placement placement = placed(plan({12 * kGiB, 4 * kGiB}, usual_request()));
    const auto& all = placement.devices;
    EXPECT_EQ(all[0].first_layer, 0);
    EXPECT_EQ(all[1].first_layer, all[0].layer_count);
    EXPECT_EQ(all[0].layer_count + all[1].layer_count, 48);
    EXPECT_NEAR(all[0].layer_count, 36.7, 1.5);
}

TEST(PlacementTest, AProfileGivesSlotsWhereTheyHitMost) {
    // Even layers use 8 experts only, odd ones all alike.
    UsageCounts usage;
    for (std::size_t layer = 0; layer < 48; ++layer) {
        std::vector<double> counts(128, layer % 2 == 0 ? 0.0 : 10.0);
        for (std::size_t i = 0; i < 8; ++i) counts[i * 3] = layer % 2 == 0 ? 160.0 : 10.0;
        usage.push_back(counts);
    }
    const Placement placement = placed(plan({6 * kGiB}, usual_request(), &usage));
    EXPECT_TRUE(placement.profiled);
    EXPECT_EQ(placement.strategy, Strategy::Cache);
    EXPECT_EQ(placement.layer_hit_rates[0], slots_of(placement, 0) >= 10 ? 1 : 0.75);
    EXPECT_LE(slots_of(placement, 0), 10);
    EXPECT_GT(slots_of(placement, 1), 50);
}

TEST(PlacementTest, CpuMoeKeepsExpertsOfTheFirstLayers) {
    PlacementRequest request = usual_request();
    request.cpu_moe_layers = 40;
    const Placement some = placed(plan({8 * kGiB}, request));
    EXPECT_EQ(some.strategy, Strategy::Resident);
    EXPECT_EQ(slots_of(some, 39), 0);
    EXPECT_EQ(slots_of(some, 40), 128);
    EXPECT_EQ(some.layer_hit_rates[39], 0);
    EXPECT_NEAR(some.hit_rate, 8.0 / 48, 1e-12);
    request.cpu_moe_layers = 48;
    const Placement none = placed(plan({8 * kGiB}, request));
    EXPECT_EQ(none.strategy, Strategy::CpuOnly);
    EXPECT_THAT(none.reason, HasSubstr("--cpu-moe"));
}

TEST(PlacementTest, WithoutCacheWholeLayersAreFixed) {
    PlacementRequest request = usual_request();
    request.cache = PlacementRequest::Cache::Off;
    const Placement placement = placed(plan({12 * kGiB}, request));
    EXPECT_EQ(placement.strategy, Strategy::Static);
    for (std::size_t layer = 0; layer < 48; ++layer) {
        EXPECT_TRUE(slots_of(placement, layer) == 0 || slots_of(placement, layer) == 128);
    }
    EXPECT_EQ(slots_of(placement, 47), 128);
    EXPECT_LT(placed(plan({12 * kGiB}, usual_request())).seconds_per_token, placement.seconds_per_token);
}

TEST(PlacementTest, ASlowLinkCannotFeedACache) {
    Costs costs = desktop_costs(1);
    costs.devices[0].link_bytes_per_second = costs.devices[0].contended_link_bytes_per_second = 0.1e9;
    const Placement placement =
        placed(plan_placement(qwen3(), devices({12 * kGiB}), costs, usual_request(), nullptr));
    EXPECT_EQ(placement.strategy, Strategy::Static);
    EXPECT_THAT(placement.reason, HasSubstr("the links move"));
    EXPECT_THAT(placement.reason, HasSubstr("whole layers stay"));
}

TEST(PlacementTest, ASlowDeviceIsLeftOut) {
    Costs costs = desktop_costs(1);
    costs.devices[0].memory_bytes_per_second = 10e9;
    costs.devices[0].handoff_seconds = 1e-3;
    PlacementRequest request = usual_request();
    request.dense = DensePlace::Cpu;
    const Placement placement =
        placed(plan_placement(qwen3(), devices({12 * kGiB}), costs, request, nullptr));
    EXPECT_EQ(placement.strategy, Strategy::CpuOnly);
    EXPECT_THAT(placement.reason, HasSubstr("the CPU alone"));
}

TEST(PlacementTest, RamHoldsOnlyWhatDevicesDoNotWhereItMust) {
    PlacementRequest request = usual_request();
    request.ram_bytes = 10 * kGiB;
    const Placement tight = placed(plan({12 * kGiB}, request));
    EXPECT_TRUE(tight.exclusive);
    EXPECT_EQ(tight.ram.disk_bytes, 0U);
    EXPECT_LT(tight.ram.expert_bytes, 10 * kGiB);
    request.ram_bytes = 4 * kGiB;
    const Placement past = placed(plan({12 * kGiB}, request));
    EXPECT_FALSE(past.exclusive) << "not even RAM and devices together hold it";
    EXPECT_GT(past.ram.disk_bytes, 0U);
    EXPECT_EQ(past.ram.expert_bytes + past.ram.dense_bytes + past.ram.kv_bytes + past.ram.workspace_bytes +
                  past.ram.pinned_bytes,
              4 * kGiB);
    request.ram_content = RamContent::Exclusive;
    const Placement asked = placed(plan({12 * kGiB}, request));
    EXPECT_TRUE(asked.exclusive);
    EXPECT_LT(asked.ram.disk_bytes, past.ram.disk_bytes);
    const Placement cpu = placed(plan({}, request));
    EXPECT_FALSE(cpu.exclusive);
    EXPECT_GT(cpu.ram.disk_bytes, 0U);
}

/// A refusal says what is missing, and its nearest request works.
void expect_refusal(const std::vector<std::uint64_t>& free_bytes, const PlacementRequest& request,
                    const std::string& problem, const std::string& way_out) {
    const PlacementResult result = plan(free_bytes, request);
    const auto* refusal = std::get_if<Refusal>(&result);
    ASSERT_NE(refusal, nullptr);
    EXPECT_THAT(refusal->problem, HasSubstr(problem));
    EXPECT_THAT(refusal->way_out, HasSubstr(way_out));
    EXPECT_GT(refusal->missing_bytes, 0U);
    ASSERT_TRUE(refusal->nearest.has_value());
    placed(plan(free_bytes, *refusal->nearest));
}

TEST(PlacementTest, ALongContextIsRefusedWithTheLongestThatFits) {
    PlacementRequest request = usual_request();
    request.context = 262'144;
    expect_refusal({12 * kGiB}, request, "for the context", "(-c ");
    const PlacementResult result = plan({12 * kGiB}, request);
    const std::int64_t context = std::get<Refusal>(result).nearest->context;
    EXPECT_GT(context, 64'000);
    request.context = context + 64;  // the next page is one too many
    EXPECT_TRUE(std::holds_alternative<Refusal>(plan({12 * kGiB}, request)));
}

TEST(PlacementTest, RefusalsNameWhatIsMissing) {
    PlacementRequest request = usual_request();
    request.slots_per_layer = 100;
    expect_refusal({12 * kGiB}, request, "100 slots in every layer", "--expert-cache ");
    request = usual_request();
    request.vram_bytes = {20 * kGiB};
    expect_refusal({12 * kGiB}, request, "--vram asks for", "what is free");
    request = usual_request();
    expect_refusal({900 * kMiB}, request, "for dense weights", "on the CPU");
    request.dense = DensePlace::Cpu;
    request.ram_bytes = 2 * kGiB;
    request.context = 65'536;
    expect_refusal({12 * kGiB}, request, "RAM needs", "(-c ");
    request.context = 64;
    request.ram_bytes = 100 * kMiB;
    const PlacementResult hopeless = plan({12 * kGiB}, request);
    EXPECT_FALSE(std::get<Refusal>(hopeless).nearest.has_value());
    EXPECT_THAT(std::get<Refusal>(hopeless).way_out, HasSubstr("smaller model"));
    request.machine_ram_bytes = 4 * kGiB;
    expect_refusal({12 * kGiB}, request, "RAM needs", "--ram ");
    request.ram_bytes = std::get<Refusal>(plan({12 * kGiB}, request)).nearest->ram_bytes - kMiB;
    EXPECT_TRUE(std::holds_alternative<Refusal>(plan({12 * kGiB}, request)));  // it was the least that works
}

TEST(PlacementTest, SlotsByNumberAreTaken) {
    PlacementRequest request = usual_request();
    request.slots_per_layer = 20;
    const Placement placement = placed(plan({12 * kGiB, 12 * kGiB}, request));
    for (std::size_t layer = 0; layer < 48; ++layer) EXPECT_EQ(slots_of(placement, layer), 20);
    EXPECT_GT(placement.devices[0].unused_bytes, kGiB);
}

/// As the running cache counts them: of few slots few are spare, and none of a complete layer.
TEST(PlacementTest, SpareSlotsHoldNothing) {
    const SlotCounts slots{{0, 1, 4, 40, 64}, {0, 0, 0, 8, 64}};
    const std::vector<std::int32_t> residents{0, 1, 3, 44, 128};
    for (std::size_t layer = 0; layer < residents.size(); ++layer) {
        EXPECT_EQ(residents_of_layer(slots, layer, 128, 2), residents[layer]) << layer;
    }
}

TEST(PlacementTest, SizesThatOverflowAreRefused) {
    ModelFacts model = qwen3();
    model.layers[3].kv_bytes_per_token = std::numeric_limits<std::uint64_t>::max() / 4096;
    EXPECT_THROW(plan_placement(model, devices({12 * kGiB}), desktop_costs(1), usual_request(), nullptr),
                 Error);
}

/// Bytes of every device and of RAM add up to what may be used, whatever is asked for.
TEST(PlacementTest, RandomPlansAddUp) {
    SplitMix64 random(kSeed);
    const auto below = [&](std::uint64_t count) { return random.next() % count; };
    int refused = 0;
    for (int i = 0; i < 60; ++i) {
        SCOPED_TRACE("seed " + std::to_string(kSeed) + ", plan " + std::to_string(i));
        std::vector<std::uint64_t> free_bytes(below(4));
        for (std::uint64_t& bytes : free_bytes) bytes = below(16 * kGiB);
        PlacementRequest request = usual_request();
        request.dense = below(2) == 0 ? DensePlace::Cpu : DensePlace::Devices;
        request.context = static_cast<std::int64_t>(1 + below(40'000));
        request.ram_bytes = (4 + below(40)) * kGiB;
        request.cpu_moe_layers = static_cast<std::int32_t>(below(3) == 0 ? below(50) : 0);
        request.cache = below(4) == 0 ? PlacementRequest::Cache::Off : PlacementRequest::Cache::Auto;
        const PlacementResult result = plan(free_bytes, request);
        if (const auto* refusal = std::get_if<Refusal>(&result)) {
            ++refused;
            EXPECT_GT(refusal->missing_bytes, 0U);
            if (refusal->nearest) placed(plan(free_bytes, *refusal->nearest));
            continue;
        }
        const Placement& placement = std::get<Placement>(result);
        for (std::size_t d = 0; d < free_bytes.size(); ++d) {
            const DevicePlan& device = placement.devices[d];
            EXPECT_EQ(device.dense_bytes + device.kv_bytes + device.workspace_bytes + device.slot_bytes +
                          device.reserve_bytes + device.unused_bytes,
                      free_bytes[d]);
        }
        const RamPlan& ram = placement.ram;
        EXPECT_LE(ram.dense_bytes + ram.kv_bytes + ram.workspace_bytes + ram.expert_bytes + ram.pinned_bytes,
                  request.ram_bytes);
        for (std::size_t layer = 0; layer < 48; ++layer) EXPECT_LE(slots_of(placement, layer), 128);
        EXPECT_GE(placement.hit_rate, 0);
        EXPECT_LE(placement.hit_rate, 1 + 1e-12);
    }
    EXPECT_GT(refused, 0);
    EXPECT_LT(refused, 40);
}

}  // namespace
}  // namespace coterie::expert_cache
