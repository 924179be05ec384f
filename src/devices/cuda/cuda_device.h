#pragma once

#include <functional>
#include <memory>

#include "devices/device.h"

struct CUstream_st;
struct CUgraphExec_st;

/// What kernels need of an NVIDIA GPU beside the device interface.
namespace coterie {

/// A stream whose handle kernels take.
class CudaStream : public Stream {
  public:
    virtual CUstream_st* handle() const = 0;
    /// Throws where work of this stream has failed; never blocks.
    virtual void check() = 0;
};

/// Work that was recorded once and is launched whole, again and again, with the same addresses.
class CudaGraph {
  public:
    /// Records what `body` queues on `stream` instead of running it. Throws what `body` throws.
    CudaGraph(CudaStream& stream, const std::function<void()>& body);
    ~CudaGraph();
    CudaGraph(const CudaGraph&) = delete;
    CudaGraph& operator=(const CudaGraph&) = delete;

    void launch(CudaStream& stream) const;

  private:
    CUgraphExec_st* executable_ = nullptr;
};

/// Host memory that stays in RAM and that the device reads at the link's full rate, until this goes.
class HostRegistration {
  public:
    virtual ~HostRegistration() = default;
};

/// One NVIDIA GPU.
class CudaDevice : public Device {
  public:
    /// Makes this the calling thread's GPU, for launches of kernels.
    virtual void make_current() const = 0;
    virtual std::unique_ptr<CudaStream> create_cuda_stream() = 0;
    /// Host memory that the device reads and writes at the same address, uncached there.
    virtual std::unique_ptr<PinnedMemory> allocate_mapped(std::uint64_t bytes) = 0;
    /// Null where the system refuses: copies then go through staging buffers.
    virtual std::unique_ptr<HostRegistration> register_memory(std::span<const std::byte> memory) = 0;
    /// 10 * major + minor of its compute capability.
    virtual int compute_capability() const = 0;
};

/// As `open_device`, for callers that launch kernels. Throws Unsupported for a GPU older than the kernels.
std::unique_ptr<CudaDevice> open_cuda_device(int index);

}  // namespace coterie
