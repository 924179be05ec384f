#pragma once

namespace coterie::expert_cache {

/// Whether something else read RAM during a copy.
enum class RamUse { Alone, Contended };

}  // namespace coterie::expert_cache
