#pragma once

#include <atomic>

namespace coterie::expert_cache {

/// Tells uploads that the CPU is reading experts from RAM, which they would slow down. Any thread, any number
/// at once.
class CpuReading {
  public:
    class Scope {
      public:
        explicit Scope(CpuReading& reading) : reading_(reading) { reading_.readers_.fetch_add(1); }
        ~Scope() { reading_.readers_.fetch_sub(1); }
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;

      private:
        CpuReading& reading_;
    };
    bool active() const { return readers_.load(std::memory_order_relaxed) != 0; }

  private:
    std::atomic<int> readers_{0};
};

}  // namespace coterie::expert_cache
