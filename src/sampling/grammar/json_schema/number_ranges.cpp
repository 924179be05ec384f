#include "sampling/grammar/json_schema/number_ranges.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "base/error.h"

namespace coterie::grammar {
namespace {

constexpr std::size_t kFreeDigits = 18;
constexpr std::size_t kMaxDigits = 60;

/// Digits of one range: writes what lies between a lower and an upper text of digits.
class DigitRange {
  public:
    explicit DigitRange(RuleSet& rules) : rules_(rules) {}

    ExpressionId digit(char first, char last) {
        return rules_.characters({{static_cast<char32_t>(first), static_cast<char32_t>(last)}});
    }
    ExpressionId digits(std::size_t least, std::size_t most) {
        return rules_.repeat(digit('0', '9'), static_cast<std::uint32_t>(least),
                             static_cast<std::uint32_t>(most));
    }

    /// Numbers of the length of both texts, `at` digits of which are written. A limit that is not tight was
    /// left behind by a digit before.
    ExpressionId of_length(const std::string& low, const std::string& high, std::size_t at = 0,
                           bool tight_low = true, bool tight_high = true) {
        if (!tight_low && !tight_high) return digits(low.size() - at, low.size() - at);
        if (at == low.size()) return rules_.nothing();
        const char first = tight_low ? low[at] : '0';
        const char last = tight_high ? high[at] : '9';
        return branch(first, last, tight_low, tight_high, [&](bool keeps_low, bool keeps_high) {
            return of_length(low, high, at + 1, keeps_low, keeps_high);
        });
    }

    /// Whole numbers without leading zeros; an empty `high` is none.
    ExpressionId whole(const std::string& low, const std::string& high) {
        const std::size_t longest = high.empty() ? std::max(kFreeDigits, low.size() + 1) : high.size();
        std::vector<ExpressionId> lengths;
        for (std::size_t length = low.size(); length <= longest; ++length) {
            std::string first = low;
            if (length > low.size()) first.assign(length, '0')[0] = '1';
            const std::string last = length == high.size() ? high : std::string(length, '9');
            if (first <= last) lengths.push_back(of_length(first, last));
        }
        return rules_.choice(std::move(lengths));
    }

    /// One digit from `first` to `last` and then what `rest` gives for the limits that are still tight.
    template <typename Rest>
    ExpressionId branch(char first, char last, bool tight_low, bool tight_high, Rest rest) {
        std::vector<ExpressionId> ways;
        const auto add = [&](char from, char to, bool keeps_low, bool keeps_high) {
            if (from <= to) ways.push_back(rules_.sequence({digit(from, to), rest(keeps_low, keeps_high)}));
        };
        if (first == last && tight_low && tight_high) {
            add(first, last, true, true);
            return rules_.choice(std::move(ways));
        }
        if (first > last) return rules_.choice({});
        const char inner_first = tight_low ? static_cast<char>(first + 1) : first;
        const char inner_last = tight_high ? static_cast<char>(last - 1) : last;
        if (tight_low) add(first, first, true, tight_high && first == last);
        add(inner_first, inner_last, false, false);
        if (tight_high && !(tight_low && first == last)) add(last, last, false, true);
        return rules_.choice(std::move(ways));
    }

  private:
    RuleSet& rules_;
};

/// The digits behind a point, between those of two bounds (where they are tight), as a number below 1.
class FractionRange {
  public:
    FractionRange(RuleSet& rules, const Bound* least, const Bound* most)
        : rules_(rules), digits_(rules), least_(least), most_(most) {
        if (least) low_ = least->value.fraction;
        if (most) high_ = most->value.fraction;
        const std::size_t length = std::max(low_.size(), high_.size());
        low_.resize(length, '0');
        high_.resize(length, '0');
    }

    /// A point and digits, or nothing where the whole number alone lies within.
    ExpressionId fraction() {
        std::vector<ExpressionId> ways = {rules_.sequence({rules_.bytes("."), rest(0, least_, most_, 1)})};
        if (may_stop(0, least_, most_)) ways.push_back(rules_.nothing());
        return rules_.choice(std::move(ways));
    }

  private:
    /// Whether the digits before `at`, as they are, lie within the limits that are tight.
    bool may_stop(std::size_t at, bool tight_low, bool tight_high) const {
        const auto is_rest_zero = [at](const std::string& digits) {
            return digits.find_first_not_of('0', at) == std::string::npos;
        };
        if (tight_low && !(is_rest_zero(low_) && least_->inclusive)) return false;
        return !tight_high || !is_rest_zero(high_) || most_->inclusive;
    }

    /// At least `must` more digits.
    ExpressionId rest(std::size_t at, bool tight_low, bool tight_high, std::size_t must) {
        if (!tight_low && !tight_high) return digits_.digits(must, kFreeDigits);
        if (at == low_.size()) return behind_bounds(tight_low, tight_high, must);
        const char first = tight_low ? low_[at] : '0';
        const char last = tight_high ? high_[at] : '9';
        const ExpressionId more = digits_.branch(
            first, last, tight_low, tight_high,
            [&](bool keeps_low, bool keeps_high) { return rest(at + 1, keeps_low, keeps_high, 0); });
        if (must == 0 && may_stop(at, tight_low, tight_high)) return rules_.choice({more, rules_.nothing()});
        return more;
    }

    /// All digits of a bound are written: more of them make the number greater, unless they are zeros.
    ExpressionId behind_bounds(bool tight_low, bool tight_high, std::size_t must) {
        const auto count = static_cast<std::uint32_t>(must);
        if (tight_high) {
            const bool equal_fits = most_->inclusive && (!tight_low || least_->inclusive);
            return equal_fits ? rules_.repeat(rules_.bytes("0"), count, kFreeDigits) : rules_.choice({});
        }
        if (least_->inclusive) return digits_.digits(must, kFreeDigits);
        return rules_.sequence({rules_.repeat(rules_.bytes("0"), 0, kFreeDigits), digits_.digit('1', '9'),
                                digits_.digits(0, kFreeDigits)});
    }

    RuleSet& rules_;
    DigitRange digits_;
    const Bound* least_;
    const Bound* most_;
    std::string low_;
    std::string high_;
};

/// Adds one to, or takes one from, a whole number that is not 0 in the latter case.
std::string shifted(std::string digits, int by) {
    for (std::size_t i = digits.size(); i-- > 0;) {
        const int digit = digits[i] - '0' + by;
        digits[i] = static_cast<char>('0' + (digit + 10) % 10);
        if (digit >= 0 && digit <= 9) break;
        if (i == 0 && by > 0) digits.insert(digits.begin(), '1');
    }
    const std::size_t first = digits.find_first_not_of('0');
    return first == std::string::npos ? "0" : digits.substr(first);
}

int compare_whole(const std::string& a, const std::string& b) {
    if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
    return a.compare(b);
}

/// Numbers that are not negative, from `least` to `most`; no `most` is no limit.
ExpressionId magnitudes(RuleSet& rules, const Bound& least, const Bound* most) {
    DigitRange digits(rules);
    const auto with = [&](const std::string& whole, const Bound* low, const Bound* high) {
        return rules.sequence({rules.bytes(whole), FractionRange(rules, low, high).fraction()});
    };
    const std::string& low = least.value.whole;
    if (most && compare_whole(low, most->value.whole) > 0) return rules.choice({});
    if (most && low == most->value.whole) {
        std::string a = least.value.fraction;
        std::string b = most->value.fraction;
        a.resize(std::max(a.size(), b.size()), '0');
        b.resize(a.size(), '0');
        return a > b ? rules.choice({}) : with(low, &least, most);
    }
    std::vector<ExpressionId> ways = {with(low, &least, nullptr)};
    if (most) ways.push_back(with(most->value.whole, nullptr, most));
    const std::string first = shifted(low, 1);
    const std::string last = most ? shifted(most->value.whole, -1) : "";
    if (!most || compare_whole(first, last) <= 0) {
        ways.push_back(
            rules.sequence({digits.whole(first, last), FractionRange(rules, nullptr, nullptr).fraction()}));
    }
    return rules.choice(std::move(ways));
}

Bound magnitude(const Bound& bound) {
    Bound result = bound;
    result.value.negative = false;
    return result;
}

}  // namespace

std::optional<Decimal> Decimal::parse(const std::string& text) {
    Decimal decimal;
    const std::size_t start = text.starts_with('-') ? 1 : 0;
    const std::size_t e = std::min(text.find_first_of("eE"), text.size());
    const std::size_t point = std::min(text.find('.'), e);
    std::string whole = text.substr(start, point - start);
    std::string fraction = point < e ? text.substr(point + 1, e - point - 1) : "";
    int exponent = 0;
    if (e < text.size()) {
        const std::size_t digits = text[e + 1] == '+' ? e + 2 : e + 1;
        const auto read = std::from_chars(text.data() + digits, text.data() + text.size(), exponent);
        if (read.ec != std::errc() || std::abs(exponent) > static_cast<int>(kMaxDigits)) return std::nullopt;
    }
    for (; exponent > 0; --exponent) {
        whole += fraction.empty() ? '0' : fraction[0];
        if (!fraction.empty()) fraction.erase(0, 1);
    }
    for (; exponent < 0; ++exponent) {
        fraction.insert(fraction.begin(), whole.empty() ? '0' : whole.back());
        if (!whole.empty()) whole.pop_back();
    }
    fraction.resize(fraction.find_last_not_of('0') + 1);
    const std::size_t first = whole.find_first_not_of('0');
    decimal.whole = first == std::string::npos ? "0" : whole.substr(first);
    decimal.fraction = fraction;
    decimal.negative = start == 1 && !decimal.is_zero();
    if (decimal.whole.size() + decimal.fraction.size() > kMaxDigits) return std::nullopt;
    return decimal;
}

ExpressionId integers_between(RuleSet& rules, std::optional<std::int64_t> least,
                              std::optional<std::int64_t> most) {
    const auto magnitude_of = [](std::int64_t value) {
        const auto bits = static_cast<std::uint64_t>(value);
        return std::to_string(value < 0 ? 0 - bits : bits);
    };
    DigitRange digits(rules);
    std::vector<ExpressionId> ways;
    if (!least || *least < 0) {
        const std::string low = most && *most < 0 ? magnitude_of(*most) : "1";
        const std::string high = least ? magnitude_of(*least) : "";
        ways.push_back(rules.sequence({rules.bytes("-"), digits.whole(low, high)}));
    }
    if (!most || *most >= 0) {
        const std::string low = least && *least > 0 ? magnitude_of(*least) : "0";
        ways.push_back(digits.whole(low, most ? magnitude_of(*most) : ""));
    }
    return rules.choice(std::move(ways));
}

ExpressionId numbers_between(RuleSet& rules, const std::optional<Bound>& least,
                             const std::optional<Bound>& most) {
    const Bound zero;
    std::vector<ExpressionId> ways;
    if (!least || least->value.negative) {
        const Bound low = most && most->value.negative ? magnitude(*most) : Bound{{}, false};
        const std::optional<Bound> high = least ? std::optional(magnitude(*least)) : std::nullopt;
        ways.push_back(rules.sequence({rules.bytes("-"), magnitudes(rules, low, high ? &*high : nullptr)}));
    }
    if (!most || !most->value.negative) {
        const Bound low = least && !least->value.negative ? *least : zero;
        ways.push_back(magnitudes(rules, low, most ? &*most : nullptr));
    }
    return rules.choice(std::move(ways));
}

}  // namespace coterie::grammar
