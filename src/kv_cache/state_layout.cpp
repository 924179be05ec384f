#include "kv_cache/state_layout.h"

#include <optional>
#include <string_view>
#include <xxhash.h>

#include "base/checked.h"
#include "base/error.h"

namespace coterie {
namespace {

constexpr std::uint64_t kAlignmentBytes = 64;
constexpr std::uint64_t kAlignmentFloats = kAlignmentBytes / sizeof(float);

struct CacheBlock {
    std::string_view name;
    std::int64_t values;
    std::uint64_t bytes;
};

CacheBlock cache_block(cpu::CacheType type) {
    switch (type) {
        case cpu::CacheType::F32:
            return {"f32", 1, 4};
        case cpu::CacheType::F16:
            return {"f16", 1, 2};
        case cpu::CacheType::Q8_0:
            return {"q8_0", 32, 34};
    }
    fail(ErrorCode::Internal, "internal error: unknown cache type {}", static_cast<int>(type));
}

std::uint64_t require(std::optional<std::uint64_t> size, std::int64_t layer) {
    if (!size) fail(ErrorCode::InvalidArgument, "layer {}: the size of its state overflows 64 bits", layer);
    return *size;
}

void require_positive(std::int64_t value, std::int64_t layer, std::string_view what) {
    if (value < 1)
        fail(ErrorCode::InvalidArgument, "layer {}: {} is {}, must be at least 1", layer, what, value);
}

/// Bytes of `width` values; `flag` is the command line's way out when they are no whole blocks.
std::uint64_t row_bytes(std::int64_t layer, std::string_view what, std::int64_t width, cpu::CacheType type,
                        std::string_view flag) {
    require_positive(width, layer, what);
    const CacheBlock block = cache_block(type);
    if (width % block.values != 0) {
        fail(ErrorCode::InvalidArgument,
             "layer {}: {} {} is not a multiple of {}, which cache type {} needs; use {} f16", layer, what,
             width, block.values, block.name, flag);
    }
    return require(checked_multiply(static_cast<std::uint64_t>(width / block.values), block.bytes), layer);
}

}  // namespace

StateLayout::StateLayout(std::vector<LayerState> layers)
    : layers_(std::move(layers)), places_(layers_.size()) {
    for (std::int64_t i = 0; i < this->layers(); ++i) {
        std::visit([&](const auto& state) { place(i, state); }, layer(i));
    }
    // The whole state of a sequence is addressed by signed 64-bit byte counts.
    require(checked_multiply(recurrent_floats_, 2 * sizeof(float)), this->layers());
    require(checked_multiply(page_bytes_, 2), this->layers());
}

void StateLayout::place(std::int64_t index, const KeyValueLayer& layer) {
    require_positive(layer.kv_heads, index, "number of kv heads");
    const std::uint64_t key_bytes = row_bytes(index, "key width", layer.key_width, layer.key_type, "-ctk");
    const std::uint64_t value_bytes =
        row_bytes(index, "value width", layer.value_width, layer.value_type, "-ctv");
    Place& place = places_[static_cast<std::size_t>(index)];
    place.keys = add_part(index, layer.kv_heads, key_bytes);
    place.values = add_part(index, layer.kv_heads, value_bytes);
}

void StateLayout::place(std::int64_t index, const LatentLayer& layer) {
    const std::uint64_t key_bytes = row_bytes(index, "latent width", layer.width, layer.type, "-ctk");
    row_bytes(index, "latent value width", layer.value_width, layer.type, "-ctk");
    if (layer.value_width > layer.width) {
        fail(ErrorCode::InvalidArgument, "layer {}: latent value width {} exceeds the latent width {}", index,
             layer.value_width, layer.width);
    }
    Place& place = places_[static_cast<std::size_t>(index)];
    place.keys = place.values = add_part(index, 1, key_bytes);
}

void StateLayout::place(std::int64_t index, const RecurrentLayer& layer) {
    require_positive(layer.floats, index, "recurrent state size");
    places_[static_cast<std::size_t>(index)].recurrent_offset = recurrent_floats_;
    const auto end = require(checked_add(recurrent_floats_, static_cast<std::uint64_t>(layer.floats)), index);
    recurrent_floats_ = require(checked_align_up(end, kAlignmentFloats), index);
}

std::size_t StateLayout::add_part(std::int64_t index, std::int64_t heads, std::uint64_t head_bytes) {
    const auto row = require(checked_multiply(head_bytes, static_cast<std::uint64_t>(heads)), index);
    const auto bytes = require(checked_multiply(row, kPageTokens), index);
    parts_.push_back({.offset = page_bytes_,
                      .row_bytes = row,
                      .head_bytes = head_bytes,
                      .heads = heads,
                      .first_head = heads_});
    const auto end = require(checked_add(page_bytes_, bytes), index);
    page_bytes_ = require(checked_align_up(end, kAlignmentBytes), index);
    token_bytes_ += row;  // below page_bytes_, so it cannot overflow
    heads_ += heads;
    return parts_.size() - 1;
}

std::uint64_t StateLayout::fingerprint() const {
    std::vector<std::int64_t> words;
    for (const LayerState& state : layers_) {
        words.push_back(static_cast<std::int64_t>(state.index()));
        if (const auto* kv = std::get_if<KeyValueLayer>(&state)) {
            words.insert(words.end(), {kv->kv_heads, kv->key_width, kv->value_width,
                                       static_cast<std::int64_t>(kv->key_type),
                                       static_cast<std::int64_t>(kv->value_type)});
        } else if (const auto* latent = std::get_if<LatentLayer>(&state)) {
            words.insert(words.end(),
                         {latent->width, latent->value_width, static_cast<std::int64_t>(latent->type)});
        } else {
            words.push_back(std::get<RecurrentLayer>(state).floats);
        }
    }
    return XXH64(words.data(), words.size() * sizeof(std::int64_t), 0);
}

}  // namespace coterie
