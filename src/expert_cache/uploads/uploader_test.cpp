#include "expert_cache/uploads/uploader.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "expert_cache/cache_testing.h"

namespace coterie::expert_cache {
namespace {

using namespace testing_support;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint64_t kSeed = 11;
constexpr std::uint64_t kBytes = 5000;

class UploaderTest : public testing::TestWithParam<HostMemory> {
  protected:
    UploaderTest() { options.chunk_bytes = 1000; }

    void make() { uploader = std::make_unique<Uploader>(device, clock, reading, options); }
    DeviceAddress place(std::int32_t expert) const {
        return memory->address() + static_cast<std::uint64_t>(expert) * kBytes;
    }
    bool submit(std::int32_t expert) {
        return uploader->submit(
            {.key = {0, expert}, .slot = expert, .to = place(expert), .from = model.source()({0, expert})});
    }
    bool pump() {
        return uploader->pump(*ready, [&](const UploadResult& result) { results.push_back(result); });
    }
    void pump_until_done(Nanoseconds limit = std::chrono::seconds(10)) {
        const Nanoseconds deadline = clock.now() + limit;
        while (pump() && clock.now() < deadline) clock.advance(microseconds(1));
    }
    bool arrived(std::int32_t expert) { return model.matches(device, place(expert), {0, expert}); }

    SimulatedClock clock;
    FakeMachine machine{clock, {small_device(1 << 20)}, 0};
    FakeDevice& device = machine.device(0);
    HostModel model{{{8, kBytes}}, GetParam(), kSeed};
    std::unique_ptr<DeviceMemory> memory = device.allocate(8 * kBytes);
    std::unique_ptr<Event> ready = device.create_event();
    CpuReading reading;
    UploadOptions options;
    std::unique_ptr<Uploader> uploader;
    std::vector<UploadResult> results;
};

TEST_P(UploaderTest, UploadsArriveWholeAndInOrder) {
    make();
    for (std::int32_t e = 0; e < 8; ++e) ASSERT_TRUE(submit(e));
    pump_until_done();
    ASSERT_EQ(results.size(), 8u);
    for (std::int32_t e = 0; e < 8; ++e) {
        EXPECT_EQ(results[static_cast<std::size_t>(e)].slot, e);
        EXPECT_EQ(results[static_cast<std::size_t>(e)].outcome, UploadOutcome::Done);
        EXPECT_TRUE(arrived(e));
    }
}

TEST_P(UploaderTest, AnUploadIsDoneOnlyWhenItsBytesAreThere) {
    make();
    ASSERT_TRUE(submit(0));
    while (results.empty()) {
        pump();
        ASSERT_TRUE(arrived(0) || results.empty());
        clock.advance(Nanoseconds(100));
    }
    EXPECT_TRUE(arrived(0));
    EXPECT_GE(clock.now(), microseconds(5));
}

TEST_P(UploaderTest, TheQueueHasAnEnd) {
    options.queue_length = 2;
    make();
    EXPECT_TRUE(submit(0));
    EXPECT_TRUE(submit(1));
    EXPECT_FALSE(submit(2));
    EXPECT_EQ(uploader->room(), 0);
    pump_until_done();
    EXPECT_EQ(uploader->room(), 2);
    EXPECT_TRUE(submit(2));
}

TEST_P(UploaderTest, WithoutBudgetNothingIsSent) {
    options.bytes_per_token = 1000;
    options.budget_tokens = 3;
    make();
    ASSERT_TRUE(submit(0));
    EXPECT_FALSE(pump());
    EXPECT_EQ(*device.resolve(place(0), 1), FakeDevice::kPoison);
    uploader->grant(1);
    pump_until_done();
    EXPECT_TRUE(results.empty());
    EXPECT_NE(*device.resolve(place(0), 1), FakeDevice::kPoison);
    uploader->grant(100);  // saves up three tokens' worth
    pump_until_done();
    EXPECT_TRUE(results.empty());
    uploader->ignore_budget(true);
    pump_until_done();
    EXPECT_EQ(results.size(), 1u);
    EXPECT_TRUE(arrived(0));
}

TEST_P(UploaderTest, ChunksWaitWhileTheCpuReadsButNotForEver) {
    options.longest_yield = milliseconds(1);
    make();
    ASSERT_TRUE(submit(0));
    {
        const CpuReading::Scope scope(reading);
        for (int i = 0; i < 90; ++i) pump(), clock.advance(microseconds(10));
        EXPECT_EQ(*device.resolve(place(0), 1), FakeDevice::kPoison);
        clock.advance(microseconds(100));
        pump();  // one chunk
        clock.advance(microseconds(100));
        pump();
        EXPECT_NE(*device.resolve(place(0), 1), FakeDevice::kPoison);
        EXPECT_EQ(*device.resolve(place(0) + 4999, 1), FakeDevice::kPoison);
    }
    pump_until_done(milliseconds(1));
    EXPECT_EQ(results.size(), 1u);
}

TEST_P(UploaderTest, ACancelledUploadEndsWhenItsChunksHave) {
    make();
    for (std::int32_t e = 0; e < 3; ++e) ASSERT_TRUE(submit(e));
    pump();
    uploader->cancel_all();
    pump();
    EXPECT_TRUE(results.empty());  // chunks of the first are under way
    pump_until_done();
    ASSERT_EQ(results.size(), 3u);
    for (const UploadResult& result : results) EXPECT_EQ(result.outcome, UploadOutcome::Cancelled);
    ASSERT_TRUE(submit(4));
    pump_until_done();
    EXPECT_EQ(results.back().outcome, UploadOutcome::Done);
}

TEST_P(UploaderTest, AFailedChunkFailsItsUploadAndLaterOnesGoOn) {
    make();
    device.fail_copy(2);
    ASSERT_TRUE(submit(0));
    pump_until_done();
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(results[0].outcome, UploadOutcome::Failed);
    ASSERT_TRUE(submit(1));
    pump_until_done();
    EXPECT_EQ(results[1].outcome, UploadOutcome::Done);
    EXPECT_TRUE(arrived(1));
}

TEST_P(UploaderTest, ARefusedChunkFailsItsUploadAndLaterOnesGoOn) {
    make();
    device.refuse_copy(3);
    ASSERT_TRUE(submit(0));
    ASSERT_TRUE(submit(1));
    pump_until_done();
    ASSERT_EQ(results.size(), 2u);
    EXPECT_EQ(results[0].outcome, UploadOutcome::Failed);
    EXPECT_EQ(results[1].outcome, UploadOutcome::Done);
    EXPECT_TRUE(arrived(1));
}

TEST_P(UploaderTest, ALostDeviceFailsAllUploads) {
    make();
    device.lose_at_copy(2);
    for (std::int32_t e = 0; e < 3; ++e) ASSERT_TRUE(submit(e));
    pump_until_done();
    ASSERT_EQ(results.size(), 3u);
    for (const UploadResult& result : results) EXPECT_EQ(result.outcome, UploadOutcome::Failed);
}

TEST_P(UploaderTest, ACopyThatDoesNotEndIsFoundByTheWatchdog) {
    options.watchdog = milliseconds(5);
    make();
    device.slow_copies(1e12);
    ASSERT_TRUE(submit(0));
    pump_until_done(milliseconds(10));
    EXPECT_TRUE(uploader->stuck());
    EXPECT_TRUE(results.empty());  // its slot may still be written
}

TEST_P(UploaderTest, UploadsWriteAfterTheirSlotsAreReady) {
    make();
    const auto stream = device.create_fake_stream();
    stream->launch([] {}, milliseconds(3));
    stream->record(*ready);
    ASSERT_TRUE(submit(0));
    pump_until_done();
    EXPECT_GE(clock.now(), milliseconds(3));
    EXPECT_TRUE(arrived(0));
}

INSTANTIATE_TEST_SUITE_P(Memory, UploaderTest, testing::Values(HostMemory::Pageable, HostMemory::Pinned),
                         [](const auto& parameter) {
                             return parameter.param == HostMemory::Pinned ? "Pinned" : "Pageable";
                         });

}  // namespace
}  // namespace coterie::expert_cache
