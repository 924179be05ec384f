#pragma once

#include <compare>
#include <cstdint>

namespace coterie::expert_cache {

/// One expert of one layer of the model.
struct ExpertKey {
    std::int32_t layer;
    std::int32_t expert;

    friend auto operator<=>(const ExpertKey&, const ExpertKey&) = default;
};

}  // namespace coterie::expert_cache
