#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/function_ref.h"

namespace CLI {
class App;
}

namespace coterie::cli::bench {

/// The flags of which bench takes several values: every combination of them is measured, and the values of
/// the flag that was widened last change fastest.
class Sweep {
  public:
    /// Lets a flag that `command` already has for one value of `target` take several, with commas between
    /// them or as the flag is repeated. Its names, help, group, environment variable and check stay, and
    /// without it `target` is as it was. `field` is what reports call the value. T: int, std::int64_t or
    /// std::string. Requires: the flag stands in a group and has a check; `target` outlives this.
    template <typename T>
    void widen(CLI::App& command, const std::string& flag, const std::string& field, T& target);
    /// The same for a flag whose values may hold commas: it may only be repeated.
    void widen_repeated(CLI::App& command, const std::string& flag, std::string& target);

    /// The fields of the flags that were given.
    std::vector<std::string> given() const;

    /// Calls `measure` once for every combination, with it in the targets.
    void for_each(FunctionRef<void()> measure) const { choose(0, measure); }

  private:
    struct Axis {
        std::string field;  ///< empty: every report names it anyway
        std::function<std::size_t()> values;
        std::function<void(std::size_t)> set;
    };
    void choose(std::size_t axis, FunctionRef<void()> measure) const;

    std::vector<Axis> axes_;
};

}  // namespace coterie::cli::bench
