#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

namespace coterie {

/// An owned, fixed-size array of trivial values on a 64-byte boundary, zero at first.
template <typename T>
class AlignedBuffer {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    AlignedBuffer() = default;
    explicit AlignedBuffer(std::size_t count) : count_(count) {
        if (count == 0) return;
        if (count > (SIZE_MAX - kAlignment) / sizeof(T)) throw std::bad_alloc();
        const std::size_t bytes = (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
        data_.reset(static_cast<T*>(std::aligned_alloc(kAlignment, bytes)));
        if (!data_) throw std::bad_alloc();
        std::uninitialized_value_construct_n(data_.get(), count);
    }

    T* data() { return data_.get(); }
    const T* data() const { return data_.get(); }
    std::size_t size() const { return count_; }
    T& operator[](std::size_t i) { return data_.get()[i]; }
    const T& operator[](std::size_t i) const { return data_.get()[i]; }
    std::span<T> span() { return {data(), count_}; }
    std::span<const T> span() const { return {data(), count_}; }

  private:
    static constexpr std::size_t kAlignment = 64;
    struct Free {
        void operator()(T* p) const { std::free(p); }
    };
    std::unique_ptr<T, Free> data_;
    std::size_t count_ = 0;
};

}  // namespace coterie
