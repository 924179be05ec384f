#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <span>
#include <vector>

#include "kernels/cuda/activations.h"
#include "kernels/cuda/check.h"
#include "quant/activation_for_test.h"

namespace coterie::cuda::testing {

/// An array on the device that is filled from the host and read back.
template <typename T>
class DeviceArray {
  public:
    explicit DeviceArray(std::size_t count) : count_(count) {
        void* memory = nullptr;
        // Whole units of sixteen bytes, as weights want them (matmul.h).
        check(cudaMalloc(&memory, std::max<std::size_t>((bytes() + 15) / 16 * 16, 16)), "cudaMalloc");
        data_ = static_cast<T*>(memory);
        check(cudaMemset(data_, 0xff, bytes()), "cudaMemset");
    }
    explicit DeviceArray(std::span<const T> values) : DeviceArray(values.size()) { write(values); }
    explicit DeviceArray(const std::vector<T>& values) : DeviceArray(std::span<const T>(values)) {}
    ~DeviceArray() { cudaFree(data_); }
    DeviceArray(const DeviceArray&) = delete;
    DeviceArray& operator=(const DeviceArray&) = delete;

    T* get() const { return data_; }
    /// `count` values, as many as there are.
    void write(std::span<const T> values) {
        check(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice), "cudaMemcpy");
    }
    std::vector<T> read() const {
        std::vector<T> values(count_);
        check(cudaDeviceSynchronize(), "a kernel");
        check(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost), "cudaMemcpy");
        return values;
    }

  private:
    std::size_t bytes() const { return count_ * sizeof(T); }
    std::size_t count_;
    T* data_ = nullptr;
};

/// Memory that host and device both see.
template <typename T>
class MappedArray {
  public:
    explicit MappedArray(std::size_t count) {
        void* memory = nullptr;
        check(cudaHostAlloc(&memory, count * sizeof(T), cudaHostAllocMapped), "cudaHostAlloc");
        data_ = static_cast<T*>(memory);
        std::memset(memory, 0, count * sizeof(T));
    }
    ~MappedArray() { cudaFreeHost(data_); }
    MappedArray(const MappedArray&) = delete;
    MappedArray& operator=(const MappedArray&) = delete;
    T* get() const { return data_; }
    T& operator[](std::size_t i) const { return data_[i]; }

  private:
    T* data_ = nullptr;
};

/// Rows of both forms on the device, from rows on the host.
class DeviceActivations {
  public:
    DeviceActivations(const std::vector<ActivationForTest>& rows, std::int64_t columns)
        : columns_(columns),
          groups_((activation_groups(columns) + 3) / 4 * 4),
          values_(rows.size() * static_cast<std::size_t>(groups_ * 32)),
          memory_(static_cast<std::size_t>(
              ActivationBuffer::bytes(static_cast<std::int64_t>(rows.size()), groups_))) {
        buffer_ = ActivationBuffer::in(memory_.get(), static_cast<std::int64_t>(rows.size()), groups_);
        for (std::size_t t = 0; t < rows.size(); ++t) upload(rows[t].row(), static_cast<std::int64_t>(t));
    }
    Activations view() const { return {values_.get(), groups_ * 32, buffer_}; }

  private:
    void upload(const ActivationRow& row, std::int64_t t) {
        const std::int64_t groups = activation_groups(columns_);
        std::vector<float> scales;
        for (std::int64_t g = 0; g < groups; ++g)
            scales.insert(scales.end(), {row.scales[g], row.scaled_sums[g]});
        const auto copy = [](auto* to, const auto* from, std::int64_t count) {
            check(cudaMemcpy(to, from, static_cast<std::size_t>(count) * sizeof *to, cudaMemcpyHostToDevice),
                  "cudaMemcpy");
        };
        copy(values_.get() + t * groups_ * 32, row.values, columns_);
        copy(buffer_.quants + t * groups_ * 32, row.quants, groups * 32);
        copy(buffer_.scales + t * groups_ * 2, scales.data(), groups * 2);
        copy(buffer_.half_sums + t * groups_ * 2, row.half_sums, groups * 2);
    }

    std::int64_t columns_;
    std::int64_t groups_;
    DeviceArray<float> values_;
    DeviceArray<std::byte> memory_;
    ActivationBuffer buffer_;
};

/// The same bits, or both NaN.
inline bool same(float a, float b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
           (std::isnan(a) && std::isnan(b));
}

inline ::testing::AssertionResult all_same(std::span<const float> actual, std::span<const float> expected) {
    if (actual.size() < expected.size()) return ::testing::AssertionFailure() << "too short";
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (same(actual[i], expected[i])) continue;
        return ::testing::AssertionFailure()
               << "value " << i << " is " << actual[i] << ", the law says " << expected[i];
    }
    return ::testing::AssertionSuccess();
}

/// Where kernels put the quantised form of rows.
class DeviceQuants {
  public:
    DeviceQuants(std::int32_t rows, std::int32_t width)
        : rows_(rows),
          groups_((width + 127) / 128 * 4),
          memory_(static_cast<std::size_t>(ActivationBuffer::bytes(rows, groups_))) {
        view = ActivationBuffer::in(memory_.get(), rows, groups_);
    }
    /// Whether row t is what the law makes of `values`.
    void expect_row(std::int32_t t, const float* values, std::int32_t width) const {
        const std::vector<std::byte> bytes = memory_.read();
        const ActivationForTest expected(std::vector<float>(values, values + width));
        const ActivationRow row = expected.row();
        const ActivationBuffer host =
            ActivationBuffer::in(const_cast<std::byte*>(bytes.data()), rows_, groups_);
        for (std::int64_t g = 0; g < (width + 31) / 32; ++g) {
            const std::int64_t index = t * groups_ + g;
            for (std::int64_t i = 0; i < 32; ++i)
                EXPECT_EQ(host.quants[index * 32 + i], row.quants[g * 32 + i]) << g;
            EXPECT_TRUE(same(host.scales[2 * index], row.scales[g])) << g;
            EXPECT_TRUE(same(host.scales[2 * index + 1], row.scaled_sums[g])) << g;
            EXPECT_EQ(host.half_sums[2 * index], row.half_sums[2 * g]);
            EXPECT_EQ(host.half_sums[2 * index + 1], row.half_sums[2 * g + 1]);
        }
    }
    ActivationBuffer view;

  private:
    std::int32_t rows_;
    std::int64_t groups_;
    DeviceArray<std::byte> memory_;
};

}  // namespace coterie::cuda::testing
