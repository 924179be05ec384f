#include "engine/probe/gpu_probe.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "devices/cuda/cuda_device.h"
#include "engine/probe/median.h"
#include "kernels/cpu/memory_bandwidth.h"
#include "kernels/cuda/hand_off.h"

namespace coterie::engine {
namespace {

constexpr int kRounds = 9;
constexpr std::uint64_t kCopyBytes = std::uint64_t{64} << 20;  ///< larger ones are not faster
/// Of a copy within the GPU: more than its caches hold, where that much is free.
constexpr std::uint64_t kOwnBytes = std::uint64_t{256} << 20;
constexpr int kContendedRounds = 30;
constexpr std::uint64_t kExchanges = 2000;
constexpr auto kPatience = std::chrono::seconds(5);  ///< the first launch loads the kernel

using SteadyTime = std::chrono::steady_clock::time_point;

SteadyTime now() { return std::chrono::steady_clock::now(); }
double seconds(SteadyTime from, SteadyTime to) { return std::chrono::duration<double>(to - from).count(); }

/// Copies between a GPU and host memory, timed whole.
class Copies {
  public:
    explicit Copies(CudaDevice& device)
        : upload_(device.create_stream()),
          download_(device.create_stream()),
          to_(device.allocate(kCopyBytes)),
          from_(device.allocate(kCopyBytes)) {}

    double to_device(std::span<const std::byte> memory) {
        const SteadyTime start = now();
        upload_->copy_to_device(to_->address(), memory);
        upload_->synchronise();
        return static_cast<double>(memory.size()) / seconds(start, now());
    }
    double from_device(std::span<std::byte> memory) {
        const SteadyTime start = now();
        download_->copy_to_host(memory, from_->address());
        download_->synchronise();
        return static_cast<double>(memory.size()) / seconds(start, now());
    }
    double both(std::span<const std::byte> up, std::span<std::byte> down) {
        const SteadyTime start = now();
        upload_->copy_to_device(to_->address(), up);
        download_->copy_to_host(down, from_->address());
        upload_->synchronise();
        download_->synchronise();
        return static_cast<double>(up.size() + down.size()) / seconds(start, now());
    }

  private:
    std::unique_ptr<Stream> upload_;
    std::unique_ptr<Stream> download_;
    std::unique_ptr<DeviceMemory> to_;
    std::unique_ptr<DeviceMemory> from_;
};

/// Bytes per second that a copy within the GPU reads and writes.
double measure_own_memory(CudaDevice& device) {
    const auto stream = device.create_stream();
    const std::uint64_t bytes = std::clamp(device.free_bytes() / 4, kCopyBytes, kOwnBytes);
    const auto from = device.allocate(bytes);
    const auto to = device.allocate(bytes);
    stream->fill(from->address(), bytes, std::byte{1});
    stream->synchronise();
    return median_of(kRounds, [&] {
        constexpr int kCopies = 8;  // beside which the wait for the last one is short
        const SteadyTime start = now();
        for (int copy = 0; copy < kCopies; ++copy)
            stream->copy_on_device(to->address(), from->address(), bytes);
        stream->synchronise();
        return 2.0 * kCopies * static_cast<double>(bytes) / seconds(start, now());
    });
}

struct EndsReading {
    std::atomic<bool>& reads;
    ~EndsReading() { reads = false; }
};

/// The link goes on for as long as the CPU needs to read all its memory several times.
void measure_contended(Copies& copies, std::span<const std::byte> pinned, ThreadPool& pool, GpuTimes& times) {
    cpu::MemoryReader reader(pool);
    reader.pass();
    std::atomic<bool> reads{true};
    auto copying = std::async(std::launch::async, [&] {
        std::vector<double> rates;
        while (reads) rates.push_back(copies.to_device(pinned));
        return rates;
    });
    std::vector<double> read_rates;
    {
        const EndsReading end{reads};  // before the copies are waited for, whatever happens
        for (int round = 0; round < kContendedRounds; ++round) read_rates.push_back(reader.pass());
    }
    times.contended_to_device = median(copying.get());
    times.contended_ram_read = median(std::move(read_rates));
}

void measure_link(CudaDevice& device, ThreadPool& pool, GpuTimes& times) {
    Copies copies(device);
    const auto up = device.allocate_pinned(kCopyBytes);
    const auto down = device.allocate_pinned(kCopyBytes);
    std::fill(up->span().begin(), up->span().end(), std::byte{1});
    times.to_device = median_of(kRounds, [&] { return copies.to_device(up->span()); });
    times.from_device = median_of(kRounds, [&] { return copies.from_device(down->span()); });
    times.both_ways = median_of(kRounds, [&] { return copies.both(up->span(), down->span()); });
    measure_contended(copies, up->span(), pool, times);
    std::vector<std::byte> pageable(kCopyBytes, std::byte{1});
    times.pageable_to_device = median_of(kRounds, [&] { return copies.to_device(pageable); });
    times.pageable_from_device = median_of(kRounds, [&] { return copies.from_device(pageable); });
}

/// The host's side of the exchange. Whatever happens, the device is let go in the end.
class HandOffHost {
  public:
    explicit HandOffHost(CudaDevice& device)
        : stream_(device.create_cuda_stream()), memory_(device.allocate_mapped(cuda::HandOffWords::kBytes)) {
        std::fill(memory_->span().begin(), memory_->span().end(), std::byte{0});
        words_ = cuda::HandOffWords::in(memory_->span().data());
        device.make_current();
    }
    ~HandOffHost() {
        *words_.reply = cuda::HandOffWords::kReleased;
        try {
            stream_->synchronise();
        } catch (const Error&) {  // is on its way already, or nobody waits for this stream
        }
    }
    HandOffHost(const HandOffHost&) = delete;
    HandOffHost& operator=(const HandOffHost&) = delete;

    /// Seconds from one request to the next, with nothing between but the reply.
    double measure() {
        cuda::hand_off(words_, kExchanges, stream_->handle());
        std::vector<double> times;
        SteadyTime last = now();
        for (std::uint64_t round = 1; round <= kExchanges; ++round) {
            const SteadyTime asked = await(round);
            *words_.reply = round;
            if (round > 1) times.push_back(seconds(last, asked));
            last = asked;
        }
        stream_->synchronise();
        return median(std::move(times));
    }

  private:
    SteadyTime await(std::uint64_t round) {
        const SteadyTime begin = now();
        while (*words_.request < round) {
            if (now() - begin < kPatience && *words_.failed == 0) continue;
            stream_->check();
            fail(ErrorCode::Internal,
                 "the exchange of words with the GPU stopped in round {}; the machine may be overloaded",
                 round);
        }
        return now();
    }

    std::unique_ptr<CudaStream> stream_;
    std::unique_ptr<PinnedMemory> memory_;
    cuda::HandOffWords words_;
};

}  // namespace

GpuTimes measure_gpu(const DeviceInfo& gpu, ThreadPool& pool) {
    const std::unique_ptr<CudaDevice> device = open_cuda_device(gpu.index);
    GpuTimes times;
    times.index = gpu.index;
    times.name = gpu.name;
    measure_link(*device, pool, times);
    times.own_memory = measure_own_memory(*device);
    times.hand_off_seconds = HandOffHost(*device).measure();
    return times;
}

}  // namespace coterie::engine
