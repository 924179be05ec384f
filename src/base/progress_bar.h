#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace coterie {

/// One line on standard error that says how far a long piece of work is: percent, amount, rate. Shown only on
/// a terminal, from half a second on, ten times a second at most; the line is cleared at the end.
class ProgressBar {
  public:
    enum class Unit { Bytes, Tokens };

    ProgressBar(std::string label, Unit unit);
    ~ProgressBar();
    ProgressBar(const ProgressBar&) = delete;
    ProgressBar& operator=(const ProgressBar&) = delete;

    void update(std::uint64_t done, std::uint64_t total);

    /// "loading  [=====>    ]  52 %  9.6 of 18.6 GB  2.1 GB/s", for `update` and tests.
    static std::string line(const std::string& label, Unit unit, std::uint64_t done, std::uint64_t total,
                            double seconds);

  private:
    using Clock = std::chrono::steady_clock;

    std::string label_;
    Unit unit_;
    bool terminal_;
    bool shown_ = false;
    Clock::time_point start_ = Clock::now();
    Clock::time_point drawn_ = start_;
};

}  // namespace coterie
