#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "base/thread_pool.h"
#include "gguf/archive.h"

namespace coterie::gguf {

/// A place in a file's data that decodes to NaN or infinity.
struct BadData {
    std::string tensor;
    std::optional<std::int64_t> expert;  ///< index in the third dimension, where the tensor has one
    std::int64_t blocks;                 ///< damaged blocks (values, for plain floats)
    std::int64_t first_block;            ///< the first of them, counted from the start of the tensor

    bool operator==(const BadData&) const = default;
};

/// Decodes all tensor data and reports every tensor, and in tensors of experts every expert, with values that
/// are not finite: a scale that is NaN or infinite, or a plain float. Integer tensors have none. `progress`
/// is told the bytes of tensor data checked so far.
std::vector<BadData> check_data(const Archive& archive, ThreadPool& threads,
                                FunctionRef<void(std::uint64_t bytes_done)> progress);

/// "blk.1.ffn_down_exps.weight, expert 20: 3 blocks hold NaN or infinity, the first is block 81920"
std::string bad_data_text(const BadData& bad);

}  // namespace coterie::gguf
