#include "gguf/check.h"

#include <algorithm>
#include <array>
#include <bit>
#include <fmt/format.h>
#include <limits>
#include <mutex>
#include <span>

#include "gguf/printable.h"

namespace coterie::gguf {
namespace {

constexpr std::int64_t kDecodedValues = 4096;  // 16 KiB of floats on the stack; whole blocks of all types
constexpr std::int64_t kPieceBytes = std::int64_t{1} << 18;  // what one worker takes at a time

constexpr std::size_t kMaxPlaces = 10000;

bool is_integer_type(DataType type) {
    return type == DataType::I8 || type == DataType::I16 || type == DataType::I32 || type == DataType::I64;
}

bool is_finite(float value) { return (std::bit_cast<std::uint32_t>(value) & 0x7F800000U) != 0x7F800000U; }

struct Damage {
    std::int64_t blocks = 0;
    std::int64_t first = std::numeric_limits<std::int64_t>::max();

    void add(std::int64_t block) {
        ++blocks;
        first = std::min(first, block);
    }
    void add(const Damage& other) {
        blocks += other.blocks;
        first = std::min(first, other.first);
    }
};

/// Checks the blocks [begin, end) of a tensor; every scale of a block shows in the values it decodes to,
/// because even zero times an infinite scale is NaN.
Damage check_blocks(const DataTypeTraits& type, std::span<const std::byte> bytes, std::int64_t begin,
                    std::int64_t end) {
    Damage damage;
    std::array<float, kDecodedValues> values;
    const std::int64_t step = kDecodedValues / type.block_values;
    for (std::int64_t block = begin; block < end; block += step) {
        const std::int64_t count = std::min(step, end - block);
        type.decode(&bytes[static_cast<std::size_t>(block * type.block_bytes)], count * type.block_values,
                    values.data());
        for (std::int64_t i = 0; i < count; ++i) {
            const float* first = values.data() + i * type.block_values;
            if (!std::all_of(first, first + type.block_values, is_finite)) damage.add(block + i);
        }
    }
    return damage;
}

Damage check_slice(const DataTypeTraits& type, std::span<const std::byte> bytes, ThreadPool& threads) {
    const std::int64_t blocks = static_cast<std::int64_t>(bytes.size()) / type.block_bytes;
    const std::int64_t piece = std::max<std::int64_t>(1, kPieceBytes / type.block_bytes);
    std::mutex mutex;
    Damage total;
    threads.parallel_for(blocks, piece, [&](std::int64_t begin, std::int64_t end) {
        const Damage damage = check_blocks(type, bytes, begin, end);
        const std::lock_guard lock(mutex);
        total.add(damage);
    });
    return total;
}

void check_tensor(const Tensor& tensor, ThreadPool& threads, std::vector<BadData>& found) {
    const DataTypeTraits& type = traits(tensor.type);
    if (is_integer_type(tensor.type)) return;
    const std::int64_t slice_blocks = tensor.values() / tensor.slices() / type.block_values;
    for (std::int64_t i = 0; i < tensor.slices() && found.size() < kMaxPlaces; ++i) {
        const Damage damage = check_slice(type, tensor.slice(i), threads);
        if (damage.blocks == 0) continue;
        found.push_back({.tensor = std::string(tensor.name),
                         .expert = tensor.rank >= 3 ? std::optional(i) : std::nullopt,
                         .blocks = damage.blocks,
                         .first_block = i * slice_blocks + damage.first});
    }
}

}  // namespace

std::vector<BadData> check_data(const Archive& archive, ThreadPool& threads,
                                FunctionRef<void(std::uint64_t)> progress) {
    std::vector<BadData> found;
    std::uint64_t done = 0;
    for (const Tensor& tensor : archive.tensors()) {
        check_tensor(tensor, threads, found);
        done += tensor.bytes.size();
        progress(done);
    }
    return found;
}

std::string bad_data_text(const BadData& bad) {
    return fmt::format("{}{}: {} block{} hold{} NaN or infinity, the first is block {}",
                       printable(bad.tensor), bad.expert ? fmt::format(", expert {}", *bad.expert) : "",
                       bad.blocks, bad.blocks == 1 ? "" : "s", bad.blocks == 1 ? "s" : "", bad.first_block);
}

}  // namespace coterie::gguf
