#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/split_mix.h"
#include "devices/cuda/cuda_device.h"
#include "kernels/cpu/route.h"
#include "kernels/cuda/activations.h"
#include "kernels/cuda/moe.h"
#include "kernels/cuda/row_ops.h"
#include "quant/activation.h"
#include "quant/data_type.h"

namespace coterie::engine {

/// What the parts of the GPU's self-test share: arrays on the device, their way there and back, and the
/// refusal.
class GpuCheck {
  public:
    GpuCheck(CudaDevice& device, CudaStream& stream);

    cuda::StreamHandle handle() const { return stream_.handle(); }
    std::vector<float> random_values(std::int64_t count);
    SplitMix64& random() { return random_; }

    /// All arrays go; what the stream does with them is over first.
    void clear();
    /// An array of bytes 0xff on the device until `clear`: floats that no kernel has written are NaN.
    template <typename T>
    T* take(std::int64_t count) {
        return reinterpret_cast<T*>(take_bytes(static_cast<std::uint64_t>(count) * sizeof(T)));
    }
    template <typename T>
    T* put(const std::vector<T>& values) {
        T* to = take<T>(static_cast<std::int64_t>(values.size()));
        upload(to, std::as_bytes(std::span(values)));
        return to;
    }
    template <typename T>
    std::vector<T> read(const T* from, std::int64_t count) {
        std::vector<T> values(static_cast<std::size_t>(count));
        download(std::as_writable_bytes(std::span(values)), from);
        return values;
    }

    /// Refuses where the device's values are not these (NaN is NaN).
    void expect(std::string_view kernel, const float* device_values, std::span<const float> law);
    /// The same for rows' quantised form: of row `row`, whose values are `law`.
    void expect_quantised(std::string_view kernel, const cuda::ActivationBuffer& buffer, std::int64_t row,
                          std::span<const float> law);
    /// Throws Internal.
    [[noreturn]] void refuse(std::string_view kernel) const;

  private:
    std::byte* take_bytes(std::uint64_t bytes);
    void upload(void* to, std::span<const std::byte> from);
    void download(std::span<std::byte> to, const void* from);

    CudaDevice& device_;
    CudaStream& stream_;
    SplitMix64 random_;
    std::unique_ptr<DeviceMemory> memory_;
    std::uint64_t used_ = 0;
};

/// A row in both forms by the law.
class LawRow {
  public:
    explicit LawRow(std::span<const float> values);
    ActivationRow view() const;

  private:
    std::int64_t columns_;
    AlignedBuffer<float> values_;
    AlignedBuffer<std::int8_t> quants_;
    AlignedBuffer<float> scales_;
    AlignedBuffer<float> scaled_sums_;
    AlignedBuffer<std::int16_t> half_sums_;
};

/// Random rows on the host and, in both forms, on the device.
class TestRows {
  public:
    TestRows(GpuCheck& check, std::int64_t rows, std::int64_t columns);
    ActivationRow row(std::int64_t i) const { return rows_[static_cast<std::size_t>(i)].view(); }
    const cuda::Activations& on_device() const { return device_; }

  private:
    std::vector<LawRow> rows_;
    cuda::Activations device_;
};

/// Groups of a row in an ActivationBuffer: a multiple of 4.
constexpr std::int64_t buffer_groups(std::int64_t columns) {
    return (activation_groups(columns) + 3) / 4 * 4;
}
/// Room for rows' quantised form.
cuda::ActivationBuffer take_quantised(GpuCheck& check, std::int64_t rows, std::int64_t columns);

/// One token's routing, of which no expert is missing.
class TestRoute {
  public:
    TestRoute(GpuCheck& check, const cpu::Routing& routing);
    /// Everything but the logits.
    const cuda::RouteArgs& args() const { return args_; }
    /// Whether `args`' outputs are what the law makes of `logits`.
    void expect(std::string_view kernel, const cuda::RouteArgs& args, std::span<const float> logits) const;

  private:
    GpuCheck& check_;
    std::vector<float> bias_;  ///< of the selection
    cuda::RouteArgs args_;
};

/// The parts of `check_gpu_kernels`.
void check_dense_products(GpuCheck& check, DataType type);
void check_expert_products(GpuCheck& check, DataType type);
void check_row_kernels(GpuCheck& check);
void check_route(GpuCheck& check, const cpu::Routing& routing);
void check_combine(GpuCheck& check);
void check_normed_products(GpuCheck& check, DataType type);
void check_normed_route(GpuCheck& check, const cpu::Routing& routing);
void check_expert_combine(GpuCheck& check, DataType type);
/// Heads of `width` values, a multiple of 32 up to cuda::kWidestHead.
void check_attention(GpuCheck& check, cpu::CacheType type, std::int32_t width);

}  // namespace coterie::engine
