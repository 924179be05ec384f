#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>

#include "expert_cache/expert_key.h"

namespace coterie::expert_cache {

enum class HostMemory {
    Pageable,  ///< copied through pinned staging buffers
    Pinned,    ///< a device reads it directly
};

/// Where an expert's bytes stand in RAM: gate, up and down, as in the file. In a slot they follow each other
/// without a gap. The bytes stay and do not change while the cache lives.
struct HostExpert {
    std::array<std::span<const std::byte>, 3> pieces;
    HostMemory memory = HostMemory::Pageable;
};

/// Called from any thread, under the cache's lock.
using ExpertSource = std::function<HostExpert(ExpertKey)>;

}  // namespace coterie::expert_cache
