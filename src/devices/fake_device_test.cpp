#include "devices/fake_device.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <thread>

#include "base/error.h"

namespace coterie {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kGranule = 4096;

FakeDeviceSpec spec(double link_rate = 1e6, Nanoseconds latency = Nanoseconds(0)) {
    return {.memory_bytes = 16 * kGranule,
            .link_rate = link_rate,
            .latency = latency,
            .memory_rate = 0,
            .granularity_bytes = kGranule};
}

Bytes numbers(std::size_t count) {
    Bytes bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = std::byte(i % 251);
    return bytes;
}

struct FakeDeviceTest : testing::Test {
    SimulatedClock clock;
    FakeMachine machine{clock, {spec()}, 0};
    FakeDevice& device = machine.device(0);
    std::unique_ptr<FakeStream> stream = device.create_fake_stream();
    std::unique_ptr<Event> event = device.create_event();
    std::unique_ptr<DeviceMemory> memory = device.allocate(8 * kGranule);

    const std::byte* at(DeviceAddress address) { return device.resolve(address, 1); }
    Bytes read(DeviceAddress address, std::uint64_t bytes) {
        const std::byte* data = device.resolve(address, bytes);
        return Bytes(data, data + bytes);
    }
};

TEST_F(FakeDeviceTest, ACopyTakesLatencyAndBytesOverRate) {
    FakeMachine slow(clock, {spec(1e6, milliseconds(2))}, 0);
    const auto target = slow.device(0).allocate(kGranule);
    const auto copies = slow.device(0).create_stream();
    const auto done = slow.device(0).create_event();
    const Bytes source = numbers(1000);
    copies->copy_to_device(target->address(), source);
    copies->record(*done);
    EXPECT_EQ(done->state(), EventState::Pending);
    EXPECT_EQ(done->wait(seconds(1)), EventState::Reached);
    EXPECT_EQ(clock.now(), milliseconds(3));
}

TEST_F(FakeDeviceTest, BytesArriveWhenTheCopyEndsAndNotBefore) {
    const Bytes source = numbers(1000);
    stream->copy_to_device(memory->address(), source);
    clock.advance(microseconds(999));
    machine.pump();
    EXPECT_EQ(*at(memory->address()), FakeDevice::kPoison);
    clock.advance(microseconds(1));
    machine.pump();
    EXPECT_EQ(read(memory->address(), 1000), source);
}

TEST_F(FakeDeviceTest, ASourceOverwrittenTooEarlyGivesWrongBytes) {
    Bytes source = numbers(1000);
    stream->copy_to_device(memory->address(), source);
    source.assign(1000, std::byte{7});
    stream->synchronise();
    EXPECT_EQ(read(memory->address(), 1000), source);
}

TEST_F(FakeDeviceTest, AStreamRunsInOrder) {
    const Bytes source = numbers(256);
    Bytes back(256);
    stream->copy_to_device(memory->address(), source);
    stream->launch(
        [&] {
            std::byte* data = device.resolve(memory->address(), 256);
            std::reverse(data, data + 256);
        },
        milliseconds(1));
    stream->copy_on_device(memory->address() + kGranule, memory->address(), 256);
    stream->fill(memory->address(), 256, std::byte{3});
    stream->copy_to_host(back, memory->address() + kGranule);
    stream->synchronise();
    Bytes expected = source;
    std::reverse(expected.begin(), expected.end());
    EXPECT_EQ(back, expected);
    EXPECT_EQ(read(memory->address(), 256), Bytes(256, std::byte{3}));
    EXPECT_EQ(clock.now(), milliseconds(1) + 2 * microseconds(256));
}

TEST_F(FakeDeviceTest, StreamsRunBesideEachOtherAndWaitForEvents) {
    const auto other = device.create_fake_stream();
    Nanoseconds first{0};
    Nanoseconds second{0};
    stream->launch([&] { first = clock.now(); }, milliseconds(5));
    stream->record(*event);
    other->launch([] {}, milliseconds(2));
    other->wait_for(*event);
    other->launch([&] { second = clock.now(); }, milliseconds(1));
    other->synchronise();
    EXPECT_EQ(first, milliseconds(5));
    EXPECT_EQ(second, milliseconds(6));
}

TEST_F(FakeDeviceTest, OneEngineADirectionServesInTheOrderOfArrival) {
    const auto other = device.create_stream();
    const auto back = device.create_stream();
    const Bytes source = numbers(1000);
    Bytes target(1000);
    back->copy_to_host(target, memory->address());
    stream->copy_to_device(memory->address() + kGranule, source);
    other->copy_to_device(memory->address() + 2 * kGranule, source);
    stream->copy_to_device(memory->address() + 3 * kGranule, source);
    back->synchronise();
    EXPECT_EQ(clock.now(), milliseconds(1));
    other->synchronise();
    EXPECT_EQ(clock.now(), milliseconds(2));
    stream->synchronise();
    EXPECT_EQ(clock.now(), milliseconds(3));
}

TEST_F(FakeDeviceTest, LinksAndTheCpuShareTheRam) {
    FakeMachine shared(clock, {spec(2e6), spec(2e6)}, 3e6);
    const Bytes source = numbers(1000);
    std::vector<std::unique_ptr<DeviceMemory>> targets;
    std::vector<std::unique_ptr<Stream>> streams;
    {
        const FakeMachine::CpuReading reading(shared, 10e6);
        for (int i = 0; i < 2; ++i) {
            targets.push_back(shared.device(i).allocate(1000));
            streams.push_back(shared.device(i).create_stream());
            streams.back()->copy_to_device(targets.back()->address(), source);
        }
        clock.advance(microseconds(500));  // 1e6 for each of the three: half is there
    }
    for (const auto& each : streams) each->synchronise();  // 1.5e6 each for the rest
    EXPECT_NEAR(static_cast<double>(clock.now().count()), 500e3 + 500.0 / 1.5 * 1e3, 2);
    shared.read_ram(3000, 10e6);
    EXPECT_NEAR(static_cast<double>(clock.now().count()), 1500e3 + 500.0 / 1.5 * 1e3, 4);
}

TEST_F(FakeDeviceTest, EventsStartReachedAndCanBeRecordedAgain) {
    EXPECT_EQ(event->state(), EventState::Reached);
    for (int i = 0; i < 3; ++i) {
        stream->launch([] {}, milliseconds(1));
        stream->record(*event);
        EXPECT_EQ(event->wait(microseconds(10)), EventState::Pending);
        EXPECT_EQ(event->wait(seconds(1)), EventState::Reached);
    }
    EXPECT_EQ(clock.now(), milliseconds(3));
}

TEST_F(FakeDeviceTest, OnlyMappedMemoryCountsAndIsPoisonedAtFirst) {
    memory.reset();
    const auto range = device.reserve(64 * kGranule);  // more than the device has
    EXPECT_EQ(device.free_bytes(), 16 * kGranule);
    range->map(3 * kGranule, 2 * kGranule);
    EXPECT_EQ(device.free_bytes(), 14 * kGranule);
    EXPECT_EQ(read(range->address() + 3 * kGranule, 2 * kGranule), Bytes(2 * kGranule, FakeDevice::kPoison));
    EXPECT_THROW(device.resolve(range->address() + 2 * kGranule, kGranule + 1), Error);
    EXPECT_THROW(range->map(4 * kGranule, kGranule), Error);
    std::memset(device.resolve(range->address() + 4 * kGranule, kGranule), 1, kGranule);
    range->unmap(4 * kGranule, kGranule);
    EXPECT_THROW(device.resolve(range->address() + 3 * kGranule, kGranule + 1), Error);
    EXPECT_THROW(range->unmap(4 * kGranule, kGranule), Error);
    range->map(4 * kGranule, kGranule);
    EXPECT_EQ(*at(range->address() + 4 * kGranule), FakeDevice::kPoison);
}

TEST_F(FakeDeviceTest, RefusesWhatDoesNotFit) {
    EXPECT_EQ(device.free_bytes(), 8 * kGranule);
    try {
        device.allocate(9 * kGranule);
        FAIL() << "not refused";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::OutOfMemory);
    }
    EXPECT_EQ(device.free_bytes(), 8 * kGranule);
    memory.reset();
    EXPECT_NO_THROW(device.allocate(9 * kGranule));
}

TEST_F(FakeDeviceTest, AddressesOfOtherDevicesAndOfTheHostAreCaught) {
    FakeMachine two(clock, {spec(), spec()}, 0);
    const auto there = two.device(1).allocate(10);
    EXPECT_NO_THROW(two.device(1).resolve(there->address(), 10));
    EXPECT_THROW(two.device(0).resolve(there->address(), 10), Error);
    const Bytes host(10);
    EXPECT_THROW(device.resolve(DeviceAddress{reinterpret_cast<std::uint64_t>(host.data())}, 1), Error);
}

TEST_F(FakeDeviceTest, AnAllocationIsRefusedByNumberOrByLimit) {
    device.refuse_allocation(2);
    const auto first = device.allocate(1);
    EXPECT_THROW(device.allocate(1), Error);
    const auto second = device.allocate(1);
    device.limit_memory(11 * kGranule);
    const auto third = device.allocate(1);
    EXPECT_THROW(device.allocate(1), Error);
}

TEST_F(FakeDeviceTest, ARefusedCopyThrowsAndTheStreamGoesOn) {
    const Bytes source = numbers(10);
    device.refuse_copy(1);
    EXPECT_THROW(stream->copy_to_device(memory->address(), source), Error);
    stream->copy_to_device(memory->address(), source);
    stream->synchronise();
    EXPECT_EQ(read(memory->address(), 10), source);
}

TEST_F(FakeDeviceTest, AFailedCopyFailsItsStreamUntilItIsSynchronised) {
    const Bytes source = numbers(10);
    const auto other = device.create_fake_stream();
    const auto joined = device.create_event();
    int ran = 0;
    device.fail_copy(1);
    stream->copy_to_device(memory->address(), source);
    stream->launch([&] { ++ran; }, milliseconds(1));
    stream->record(*event);
    other->wait_for(*event);
    other->launch([&] { ++ran; }, milliseconds(1));
    other->record(*joined);
    EXPECT_EQ(joined->wait(seconds(1)), EventState::Failed);
    EXPECT_EQ(event->state(), EventState::Failed);
    EXPECT_EQ(ran, 0);
    EXPECT_EQ(*at(memory->address()), FakeDevice::kPoison);
    EXPECT_THROW(stream->synchronise(), Error);
    stream->synchronise();
    stream->copy_to_device(memory->address(), source);
    stream->record(*event);
    EXPECT_EQ(event->wait(seconds(1)), EventState::Reached);
    EXPECT_EQ(read(memory->address(), 10), source);
}

TEST_F(FakeDeviceTest, AKernelThatThrowsFailsItsStream) {
    stream->launch([] { fail(ErrorCode::Internal, "out of range"); }, milliseconds(1));
    stream->record(*event);
    EXPECT_EQ(event->wait(seconds(1)), EventState::Failed);
    EXPECT_THROW(stream->synchronise(), Error);
}

TEST_F(FakeDeviceTest, SlowCopiesTakeTheirFactorLonger) {
    const Bytes source = numbers(1000);
    device.slow_copies(10);
    stream->copy_to_device(memory->address(), source);
    stream->synchronise();
    EXPECT_EQ(clock.now(), milliseconds(10));
}

TEST_F(FakeDeviceTest, AStalledCopyDoesNotHangTheWaiting) {
    const Bytes source = numbers(1000);
    device.slow_copies(1e12);
    stream->copy_to_device(memory->address(), source);
    stream->record(*event);
    EXPECT_EQ(event->wait(seconds(1)), EventState::Pending);
    EXPECT_THROW(stream->synchronise(), Error);
}

TEST_F(FakeDeviceTest, ALostDeviceFailsAllThatWasQueuedAndRefusesTheRest) {
    FakeMachine two(clock, {spec(), spec()}, 0);
    const auto healthy_memory = two.device(1).allocate(1000);
    const auto lost_memory = two.device(0).allocate(1000);
    const auto healthy = two.device(1).create_stream();
    const auto dying = two.device(0).create_stream();
    const auto done = two.device(0).create_event();
    const Bytes source = numbers(1000);
    two.device(0).lose_at_copy(2);
    healthy->copy_to_device(healthy_memory->address(), source);
    dying->copy_to_device(lost_memory->address(), source);
    dying->copy_to_device(lost_memory->address(), source);
    dying->record(*done);
    EXPECT_FALSE(two.device(0).lost());
    EXPECT_EQ(done->wait(seconds(1)), EventState::Failed);
    EXPECT_TRUE(two.device(0).lost());
    EXPECT_THROW(dying->synchronise(), Error);
    EXPECT_THROW(dying->copy_to_device(lost_memory->address(), source), Error);
    EXPECT_THROW(two.device(0).allocate(1), Error);
    EXPECT_THROW(two.device(0).free_bytes(), Error);
    healthy->synchronise();
    EXPECT_EQ(*two.device(1).resolve(healthy_memory->address() + 5, 1), std::byte{5});
}

TEST_F(FakeDeviceTest, AStreamThatGoesFreesItsEngine) {
    const Bytes source = numbers(1000);
    auto gone = device.create_stream();
    gone->copy_to_device(memory->address(), source);
    stream->copy_to_device(memory->address() + kGranule, source);
    gone->record(*event);
    gone.reset();
    EXPECT_EQ(event->state(), EventState::Failed);
    stream->synchronise();
    EXPECT_EQ(clock.now(), milliseconds(1));
}

TEST(FakeMachine, WithARealClockWaitsTakeTheirTime) {
    SteadyClock clock;
    FakeMachine machine(clock, {spec(1e6)}, 0);
    const auto memory = machine.device(0).allocate(3000);
    const auto stream = machine.device(0).create_stream();
    const Bytes source = numbers(3000);
    const Nanoseconds start = clock.now();
    stream->copy_to_device(memory->address(), source);
    stream->synchronise();
    EXPECT_GE(clock.now() - start, milliseconds(3));
}

TEST(FakeMachine, ThreadsMayUseStreamsOfTheirOwn) {
    SimulatedClock clock;
    FakeMachine machine(clock, {spec(1e9)}, 1e9);
    FakeDevice& device = machine.device(0);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            const auto memory = device.allocate(kGranule);
            const auto stream = device.create_stream();
            for (int round = 0; round < 50; ++round) {
                const Bytes source(kGranule, std::byte(t * 50 + round));
                Bytes back(kGranule);
                stream->copy_to_device(memory->address(), source);
                stream->copy_to_host(back, memory->address());
                stream->synchronise();
                ASSERT_EQ(back, source);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace coterie
