#include "engine/forward/cuda/gpu_check.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"

namespace coterie::engine {
namespace {

constexpr std::uint64_t kSeed = 0xc07e41e;
constexpr std::uint64_t kMemoryBytes = std::uint64_t{16} << 20;  ///< more than any part takes
constexpr std::uint64_t kAlignment = 256;

DeviceAddress address_of(const void* p) { return DeviceAddress{reinterpret_cast<std::uint64_t>(p)}; }

bool same(float a, float b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
           (std::isnan(a) && std::isnan(b));
}

std::vector<float> random_row(SplitMix64& random, std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = random.next_float() * 8.0f - 4.0f;
    return values;
}

}  // namespace

GpuCheck::GpuCheck(CudaDevice& device, CudaStream& stream)
    : device_(device), stream_(stream), random_(kSeed), memory_(device.allocate(kMemoryBytes)) {}

std::vector<float> GpuCheck::random_values(std::int64_t count) { return random_row(random_, count); }

void GpuCheck::clear() {
    stream_.synchronise();
    used_ = 0;
}

std::byte* GpuCheck::take_bytes(std::uint64_t bytes) {
    const std::uint64_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    COTERIE_CHECK(whole <= kMemoryBytes - used_);
    const std::uint64_t address = static_cast<std::uint64_t>(memory_->address()) + used_;
    stream_.fill(DeviceAddress{address}, whole, std::byte{0xff});
    used_ += whole;
    return reinterpret_cast<std::byte*>(address);
}

void GpuCheck::upload(void* to, std::span<const std::byte> from) {
    if (from.empty()) return;
    stream_.copy_to_device(address_of(to), from);
    stream_.synchronise();  // the caller's memory may go
}

void GpuCheck::download(std::span<std::byte> to, const void* from) {
    if (to.empty()) return;
    stream_.copy_to_host(to, address_of(from));
    stream_.synchronise();
}

void GpuCheck::expect(std::string_view kernel, const float* device_values, std::span<const float> law) {
    const std::vector<float> values = read(device_values, static_cast<std::int64_t>(law.size()));
    if (!std::equal(values.begin(), values.end(), law.begin(), same)) refuse(kernel);
}

void GpuCheck::expect_quantised(std::string_view kernel, const cuda::ActivationBuffer& buffer,
                                std::int64_t row, std::span<const float> law) {
    const LawRow expected(law);
    const ActivationRow view = expected.view();
    const std::int64_t groups = activation_groups(view.columns);
    const cuda::ActivationBuffer at = buffer.from(row);
    const auto quants = read(at.quants, groups * kGroupValues);
    const auto half_sums = read(at.half_sums, groups * 2);
    const auto scales = read(at.scales, groups * 2);
    bool right = std::equal(quants.begin(), quants.end(), view.quants) &&
                 std::equal(half_sums.begin(), half_sums.end(), view.half_sums);
    for (std::int64_t g = 0; g < groups; ++g) {
        const auto i = static_cast<std::size_t>(2 * g);
        right = right && same(scales[i], view.scales[g]) && same(scales[i + 1], view.scaled_sums[g]);
    }
    if (!right) refuse(kernel);
}

void GpuCheck::refuse(std::string_view kernel) const {
    fail(ErrorCode::Internal,
         "self-test: the kernel '{}' does not give the bits of the scalar law on {}; run on the CPU with "
         "-ngl 0 and please report it",
         kernel, device_.info().name);
}

LawRow::LawRow(std::span<const float> values)
    : columns_(static_cast<std::int64_t>(values.size())),
      values_(static_cast<std::size_t>(activation_groups(columns_) * kGroupValues)),
      quants_(values_.size()),
      scales_(static_cast<std::size_t>(activation_groups(columns_))),
      scaled_sums_(scales_.size()),
      half_sums_(2 * scales_.size()) {
    std::copy(values.begin(), values.end(), values_.data());
    quantise_activation(values_.data(), columns_,
                        {quants_.data(), scales_.data(), scaled_sums_.data(), half_sums_.data()});
}

ActivationRow LawRow::view() const {
    return {columns_, values_.data(), quants_.data(), scales_.data(), scaled_sums_.data(), half_sums_.data()};
}

TestRows::TestRows(GpuCheck& check, std::int64_t rows, std::int64_t columns) {
    const std::int64_t groups = buffer_groups(columns);
    const std::int64_t stride = groups * kGroupValues;
    std::vector<float> values(static_cast<std::size_t>(rows * stride));
    AlignedBuffer<std::byte> host(static_cast<std::size_t>(cuda::ActivationBuffer::bytes(rows, groups)));
    const cuda::ActivationBuffer buffer = cuda::ActivationBuffer::in(host.data(), rows, groups);
    for (std::int64_t r = 0; r < rows; ++r) {
        const ActivationRow view = rows_.emplace_back(check.random_values(columns)).view();
        const cuda::ActivationBuffer to = buffer.from(r);
        const std::int64_t own = activation_groups(columns);
        std::copy_n(view.values, own * kGroupValues, values.data() + r * stride);
        std::copy_n(view.quants, own * kGroupValues, to.quants);
        std::copy_n(view.half_sums, own * 2, to.half_sums);
        for (std::int64_t g = 0; g < own; ++g) {
            to.scales[2 * g] = view.scales[g];
            to.scales[2 * g + 1] = view.scaled_sums[g];
        }
    }
    std::byte* quantised = check.put(std::vector<std::byte>(host.span().begin(), host.span().end()));
    device_ = {check.put(values), stride, cuda::ActivationBuffer::in(quantised, rows, groups)};
}

cuda::ActivationBuffer take_quantised(GpuCheck& check, std::int64_t rows, std::int64_t columns) {
    const std::int64_t groups = buffer_groups(columns);
    return cuda::ActivationBuffer::in(check.take<std::byte>(cuda::ActivationBuffer::bytes(rows, groups)),
                                      rows, groups);
}

}  // namespace coterie::engine
