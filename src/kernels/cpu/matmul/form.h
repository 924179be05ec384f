#pragma once

/// How a type's codes and scales become a row's sum; the forms of docs/canonical-arithmetic.md that the
/// kernels share.
namespace coterie::cpu::matmul {

/// What multiplies the integer sums of a group of 32 values.
enum class Scales {
    Group,       ///< one exact binary32 `ds`
    Half,        ///< an integer for each 16 values, then one `ds`
    TwoUpdates,  ///< one `ds` for each 16 values, each an update of its own
};

/// The term added to the scaled sum.
enum class Minimum {
    None,
    Group,  ///< ms * scaled_sum
    Half,   ///< ms * (an integer for each 16 values times the half's sum)
};

/// One type's form. `offset` is what is subtracted from each unsigned code. `terms` products of a pair of
/// codes with a pair of activations (each at most 127) can be added in 16 bits; signed codes have 0 as their
/// offset.
struct Form {
    bool is_signed = false;
    int offset = 0;
    int terms = 8;
    Scales scales = Scales::Group;
    Minimum minimum = Minimum::None;
};

/// The largest number of terms for codes up to `largest` (in magnitude): a power of two that divides a half.
constexpr int terms_for(int largest, Scales scales) {
    int terms = scales == Scales::Group ? 8 : 4;
    while (terms > 1 && terms * 2 * largest * 127 > 32767) terms /= 2;
    return terms;
}

constexpr Form unsigned_form(int largest, int offset, Scales scales = Scales::Group,
                             Minimum minimum = Minimum::None) {
    return {false, offset, terms_for(largest, scales), scales, minimum};
}

constexpr Form signed_form(int largest, Scales scales = Scales::Group) {
    return {true, 0, terms_for(largest, scales), scales, Minimum::None};
}

}  // namespace coterie::cpu::matmul
