#include "devices/cuda/cuda_device.h"

#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "devices/cuda/cuda_check.h"

namespace coterie {
namespace {

using cuda_device::check;
using cuda_device::driver;

constexpr int kOldestCapability = 75;

void* pointer(DeviceAddress address) { return reinterpret_cast<void*>(static_cast<std::uint64_t>(address)); }
DeviceAddress address_of(void* p) { return DeviceAddress{reinterpret_cast<std::uint64_t>(p)}; }

std::string hexadecimal(std::span<const unsigned char> bytes) {
    std::string text;
    for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
    return text;
}

/// What all objects of a device share; it outlives none of them.
struct Shared {
    int index = 0;
    std::atomic<bool> lost{false};

    void make_current() const { check(cudaSetDevice(index), "cudaSetDevice"); }
    /// An error that no later call survives.
    void note(cudaError_t result) {
        switch (result) {
            case cudaSuccess:
            case cudaErrorNotReady:
            case cudaErrorMemoryAllocation:
            case cudaErrorInvalidValue:
                return;
            default:
                lost = true;
        }
    }
    void call(cudaError_t result, std::string_view name) {
        note(result);
        check(result, name);
    }
};

class Memory final : public DeviceMemory {
  public:
    Memory(Shared& shared, std::uint64_t bytes) : shared_(shared), bytes_(bytes) {
        shared_.make_current();
        check(cudaMalloc(&data_, bytes), "an allocation of " + std::to_string(bytes) + " bytes");
    }
    ~Memory() override {
        cudaSetDevice(shared_.index);
        cudaFree(data_);
    }
    DeviceAddress address() const override { return address_of(data_); }
    std::uint64_t bytes() const override { return bytes_; }

  private:
    Shared& shared_;
    std::uint64_t bytes_;
    void* data_ = nullptr;
};

class Pinned final : public PinnedMemory {
  public:
    Pinned(Shared& shared, std::uint64_t bytes, unsigned flags) : shared_(shared), bytes_(bytes) {
        shared_.make_current();
        check(cudaHostAlloc(&data_, std::max<std::uint64_t>(bytes, 1), flags),
              "page-locked memory of " + std::to_string(bytes) + " bytes");
    }
    ~Pinned() override {
        cudaSetDevice(shared_.index);
        cudaFreeHost(data_);
    }
    std::span<std::byte> span() override { return {static_cast<std::byte*>(data_), bytes_}; }

  private:
    Shared& shared_;
    std::uint64_t bytes_;
    void* data_ = nullptr;
};

/// Memory comes in granules with a handle each, because the driver takes away only what it gave in one piece.
class Range final : public AddressRange {
  public:
    Range(Shared& shared, std::uint64_t bytes, std::uint64_t granule)
        : shared_(shared), bytes_(bytes), granule_(granule), handles_(bytes / granule) {
        shared_.make_current();
        check(driver().address_reserve(&base_, bytes, 0, 0, 0), "cuMemAddressReserve");
    }
    ~Range() override {
        cudaSetDevice(shared_.index);
        drop(0, handles_.size());
        driver().address_free(base_, bytes_);
    }
    DeviceAddress address() const override { return DeviceAddress{base_}; }
    std::uint64_t bytes() const override { return bytes_; }

    void map(std::uint64_t offset, std::uint64_t bytes) override {
        COTERIE_CHECK(offset % granule_ == 0 && bytes % granule_ == 0 && offset + bytes <= bytes_);
        shared_.make_current();
        const std::size_t begin = offset / granule_;
        const std::size_t end = begin + bytes / granule_;
        CUresult result = CUDA_SUCCESS;
        for (std::size_t i = begin; i < end && result == CUDA_SUCCESS; ++i) result = map_granule(i);
        const CUmemAccessDesc access{location(), CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        if (result == CUDA_SUCCESS) result = driver().set_access(base_ + offset, bytes, &access, 1);
        if (result == CUDA_SUCCESS) return;
        drop(begin, end);
        check(result, "the mapping of " + std::to_string(bytes) + " bytes");
    }

    void unmap(std::uint64_t offset, std::uint64_t bytes) override {
        COTERIE_CHECK(offset % granule_ == 0 && bytes % granule_ == 0 && offset + bytes <= bytes_);
        shared_.make_current();
        drop(offset / granule_, (offset + bytes) / granule_);
    }

  private:
    CUmemLocation location() const {
        CUmemLocation location{};
        location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        location.id = shared_.index;
        return location;
    }
    CUresult map_granule(std::size_t i) {
        CUmemAllocationProp properties{};
        properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location = location();
        CUmemGenericAllocationHandle handle = 0;
        if (const CUresult result = driver().create(&handle, granule_, &properties, 0);
            result != CUDA_SUCCESS)
            return result;
        const CUresult result = driver().map(base_ + i * granule_, granule_, 0, handle, 0);
        if (result == CUDA_SUCCESS) {
            handles_[i] = handle;
        } else {
            driver().release(handle);
        }
        return result;
    }
    void drop(std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            if (!handles_[i]) continue;
            driver().unmap(base_ + i * granule_, granule_);
            driver().release(*handles_[i]);
            handles_[i].reset();
        }
    }

    Shared& shared_;
    std::uint64_t bytes_;
    std::uint64_t granule_;
    std::vector<std::optional<CUmemGenericAllocationHandle>> handles_;
    CUdeviceptr base_ = 0;
};

class CudaEvent final : public Event {
  public:
    explicit CudaEvent(Shared& shared) : shared_(shared) {
        shared_.make_current();
        check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
    }
    ~CudaEvent() override {
        cudaSetDevice(shared_.index);
        cudaEventDestroy(event_);
    }
    EventState state() const override {
        if (shared_.lost) return EventState::Failed;
        const cudaError_t result = cudaEventQuery(event_);
        if (result == cudaErrorNotReady) return EventState::Pending;
        shared_.note(result);
        return result == cudaSuccess ? EventState::Reached : EventState::Failed;
    }
    EventState wait(std::chrono::nanoseconds limit) const override {
        const auto end = std::chrono::steady_clock::now() + limit;
        EventState now = state();
        while (now == EventState::Pending && std::chrono::steady_clock::now() < end) {
            std::this_thread::yield();
            now = state();
        }
        return now;
    }
    cudaEvent_t event() const { return event_; }

  private:
    Shared& shared_;
    cudaEvent_t event_ = nullptr;
};

class StreamOfDevice final : public CudaStream {
  public:
    explicit StreamOfDevice(Shared& shared) : shared_(shared) {
        shared_.make_current();
        cuda_device::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    }
    ~StreamOfDevice() override {
        cudaSetDevice(shared_.index);
        cudaStreamDestroy(stream_);
    }
    CUstream_st* handle() const override { return stream_; }
    void check() override {
        const cudaError_t result = cudaStreamQuery(stream_);
        if (result != cudaErrorNotReady) shared_.call(result, "work on the GPU");
    }

    void copy_to_device(DeviceAddress to, std::span<const std::byte> from) override {
        copy(pointer(to), from.data(), from.size(), cudaMemcpyHostToDevice);
    }
    void copy_to_host(std::span<std::byte> to, DeviceAddress from) override {
        copy(to.data(), pointer(from), to.size(), cudaMemcpyDeviceToHost);
    }
    void copy_on_device(DeviceAddress to, DeviceAddress from, std::uint64_t bytes) override {
        copy(pointer(to), pointer(from), bytes, cudaMemcpyDeviceToDevice);
    }
    void fill(DeviceAddress to, std::uint64_t bytes, std::byte value) override {
        shared_.make_current();
        shared_.call(cudaMemsetAsync(pointer(to), static_cast<int>(value), bytes, stream_), "a fill");
    }
    void record(Event& event) override {
        shared_.make_current();
        shared_.call(cudaEventRecord(static_cast<CudaEvent&>(event).event(), stream_), "cudaEventRecord");
    }
    void wait_for(const Event& event) override {
        shared_.make_current();
        shared_.call(cudaStreamWaitEvent(stream_, static_cast<const CudaEvent&>(event).event(), 0),
                     "cudaStreamWaitEvent");
    }
    void synchronise() override {
        shared_.make_current();
        shared_.call(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    }

  private:
    void copy(void* to, const void* from, std::uint64_t bytes, cudaMemcpyKind kind) {
        shared_.make_current();
        shared_.call(cudaMemcpyAsync(to, from, bytes, kind, stream_),
                     "a copy of " + std::to_string(bytes) + " bytes");
    }

    Shared& shared_;
    cudaStream_t stream_ = nullptr;
};

class Registration final : public HostRegistration {
  public:
    Registration(Shared& shared, std::byte* begin) : shared_(shared), begin_(begin) {}
    ~Registration() override {
        cudaSetDevice(shared_.index);
        cudaHostUnregister(begin_);
    }

  private:
    Shared& shared_;
    std::byte* begin_;
};

class DeviceOfCuda final : public CudaDevice {
  public:
    DeviceOfCuda(DeviceInfo info, int capability) : info_(std::move(info)), capability_(capability) {
        shared_.index = info_.index;
        shared_.make_current();
        CUmemAllocationProp properties{};
        properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        properties.location.id = info_.index;
        std::size_t granularity = 0;
        check(driver().granularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
              "cuMemGetAllocationGranularity");
        granularity_ = granularity;
    }

    const DeviceInfo& info() const override { return info_; }
    std::uint64_t free_bytes() const override {
        shared_.make_current();
        std::size_t free = 0;
        std::size_t total = 0;
        check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
        return free;
    }
    bool lost() const override { return shared_.lost; }
    std::unique_ptr<DeviceMemory> allocate(std::uint64_t bytes) override {
        return std::make_unique<Memory>(shared_, bytes);
    }
    std::unique_ptr<PinnedMemory> allocate_pinned(std::uint64_t bytes) override {
        return std::make_unique<Pinned>(shared_, bytes, cudaHostAllocPortable);
    }
    std::unique_ptr<PinnedMemory> allocate_mapped(std::uint64_t bytes) override {
        return std::make_unique<Pinned>(shared_, bytes, cudaHostAllocPortable | cudaHostAllocMapped);
    }
    std::unique_ptr<AddressRange> reserve(std::uint64_t bytes) override {
        return std::make_unique<Range>(shared_, bytes, granularity_);
    }
    std::uint64_t mapping_granularity() const override { return granularity_; }
    std::unique_ptr<Stream> create_stream() override { return std::make_unique<StreamOfDevice>(shared_); }
    std::unique_ptr<CudaStream> create_cuda_stream() override {
        return std::make_unique<StreamOfDevice>(shared_);
    }
    std::unique_ptr<Event> create_event() override { return std::make_unique<CudaEvent>(shared_); }
    void make_current() const override { shared_.make_current(); }
    /// Whole: a copy may not cross from one registration into the next.
    std::unique_ptr<HostRegistration> register_memory(std::span<const std::byte> memory) override {
        shared_.make_current();
        auto* begin = const_cast<std::byte*>(memory.data());
        for (const unsigned extra : {static_cast<unsigned>(cudaHostRegisterReadOnly), 0u}) {
            if (cudaHostRegister(begin, memory.size(), cudaHostRegisterPortable | extra) == cudaSuccess)
                return std::make_unique<Registration>(shared_, begin);
            cudaGetLastError();  // it is not to be found by the next launch
        }
        return nullptr;
    }
    int compute_capability() const override { return capability_; }

  private:
    DeviceInfo info_;
    int capability_;
    mutable Shared shared_;
    std::uint64_t granularity_ = 0;
};

}  // namespace

CudaGraph::CudaGraph(CudaStream& stream, const std::function<void()>& body) {
    check(cudaStreamBeginCapture(stream.handle(), cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
    cudaGraph_t graph = nullptr;
    try {
        body();
    } catch (...) {
        cudaStreamEndCapture(stream.handle(), &graph);
        if (graph != nullptr) cudaGraphDestroy(graph);
        throw;
    }
    check(cudaStreamEndCapture(stream.handle(), &graph), "cudaStreamEndCapture");
    const cudaError_t result = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    check(result, "cudaGraphInstantiate");
}

CudaGraph::~CudaGraph() {
    if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
}

void CudaGraph::launch(CudaStream& stream) const {
    check(cudaGraphLaunch(executable_, stream.handle()), "cudaGraphLaunch");
}

DeviceList list_devices() {
    int count = 0;
    if (const cudaError_t result = cudaGetDeviceCount(&count); result != cudaSuccess) {
        return {.devices = {}, .note = std::string("no NVIDIA GPU is usable: ") + cudaGetErrorString(result)};
    }
    DeviceList list;
    for (int i = 0; i < count; ++i) {
        cudaDeviceProp properties{};
        check(cudaGetDeviceProperties(&properties, i), "cudaGetDeviceProperties");
        list.devices.push_back(
            {.name = properties.name,
             .index = i,
             .memory_bytes = properties.totalGlobalMem,
             .uuid = hexadecimal({reinterpret_cast<const unsigned char*>(properties.uuid.bytes),
                                  sizeof properties.uuid.bytes})});
    }
    return list;
}

std::unique_ptr<Device> open_device(int index) { return open_cuda_device(index); }

std::unique_ptr<CudaDevice> open_cuda_device(int index) {
    const DeviceList list = list_devices();
    if (index < 0 || static_cast<std::size_t>(index) >= list.devices.size()) {
        fail(ErrorCode::InvalidArgument, "there is no GPU {}; {} found{}", index, list.devices.size(),
             list.note.empty() ? "" : " (" + list.note + ")");
    }
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
    const int capability = 10 * properties.major + properties.minor;
    if (capability < kOldestCapability) {
        fail(ErrorCode::Unsupported, "GPU {} ({}) has compute capability {}.{}; 7.5 or later is needed",
             index, properties.name, properties.major, properties.minor);
    }
    return std::make_unique<DeviceOfCuda>(list.devices[static_cast<std::size_t>(index)], capability);
}

}  // namespace coterie
