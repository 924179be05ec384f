#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sampling/grammar/rule_set.h"

namespace coterie::grammar {

/// A finite decimal number.
struct Decimal {
    bool negative = false;
    std::string whole = "0";    ///< digits without leading zeros
    std::string fraction = {};  ///< digits without trailing zeros

    /// Reads a JSON number. Nothing for one of more than 60 digits.
    static std::optional<Decimal> parse(const std::string& text);
    bool is_zero() const { return whole == "0" && fraction.empty(); }
};

struct Bound {
    Decimal value;
    bool inclusive = true;
};

/// Integers from `least` to `most`; without a limit, of up to 18 digits.
ExpressionId integers_between(RuleSet& rules, std::optional<std::int64_t> least,
                              std::optional<std::int64_t> most);

/// Numbers without exponents between the bounds, with up to 18 digits on each side of the point (or one more
/// than the bounds have).
ExpressionId numbers_between(RuleSet& rules, const std::optional<Bound>& least,
                             const std::optional<Bound>& most);

}  // namespace coterie::grammar
