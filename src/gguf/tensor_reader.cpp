#include "gguf/tensor_reader.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <optional>
#include <string>

#include "base/checked.h"
#include "gguf/header_reader.h"
#include "gguf/name_index.h"
#include "gguf/printable.h"

namespace coterie::gguf {
namespace {

/// Ids that were in use once; their tensors were laid out for programs that are gone.
std::string_view retired_type(std::uint32_t id) {
    switch (id) {
        case 4:
            return "Q4_2";
        case 5:
            return "Q4_3";
        case 31:
            return "Q4_0_4_4";
        case 32:
            return "Q4_0_4_8";
        case 33:
            return "Q4_0_8_8";
        case 36:
            return "IQ4_NL_4_4";
        case 37:
            return "IQ4_NL_4_8";
        case 38:
            return "IQ4_NL_8_8";
        default:
            return {};
    }
}

const DataTypeTraits& read_data_type(Cursor& cursor) {
    const std::uint64_t at = cursor.offset();
    const auto id = cursor.take<std::uint32_t>("the type");
    if (const DataTypeTraits* found = find_data_type(id)) return *found;
    if (const std::string_view retired = retired_type(id); !retired.empty()) {
        cursor.refuse(ErrorCode::Unsupported, at,
                      "has the retired type {} ({}), which current programs no longer read; get a newer file",
                      id, retired);
    }
    cursor.refuse(ErrorCode::Unsupported, at,
                  "has the unknown type {}; the file needs another program or a newer version of this one{}",
                  id, id >= 97 && id < 512 ? " (types from 97 on belong to the ik_llama.cpp fork)" : "");
}

int read_rank(Cursor& cursor) {
    const std::uint64_t at = cursor.offset();
    const auto rank = cursor.take<std::uint32_t>("the number of dimensions");
    if (rank >= 1 && rank <= 4) return static_cast<int>(rank);
    cursor.refuse(ErrorCode::InvalidFile, at, "has {} dimensions, 1 to 4 are allowed; the file is damaged",
                  rank);
}

/// Bytes of a tensor of `dims`, whose product may be anything up to 2^252.
std::uint64_t size_of(Cursor& cursor, std::uint64_t at, const Tensor& tensor, const DataTypeTraits& type) {
    if (tensor.dims[0] % type.block_values != 0) {
        cursor.refuse(ErrorCode::InvalidFile, at,
                      "rows of {} elements are no whole number of {} blocks of {}; the file is damaged or "
                      "badly converted",
                      tensor.dims[0], type.name, type.block_values);
    }
    std::optional<std::uint64_t> values = 1;
    for (const std::int64_t dim : tensor.dims) {
        if (values) values = checked_multiply(*values, static_cast<std::uint64_t>(dim));
    }
    std::optional<std::uint64_t> bytes;
    if (values && *values <= INT64_MAX) {
        bytes = checked_multiply(*values / static_cast<std::uint64_t>(type.block_values),
                                 static_cast<std::uint64_t>(type.block_bytes));
    }
    if (!bytes || *bytes > INT64_MAX) {
        cursor.refuse(ErrorCode::InvalidFile, at, "its shape {} is larger than any file; the file is damaged",
                      shape_text(tensor));
    }
    return *bytes;
}

void read_dims(Cursor& cursor, Tensor& tensor) {
    tensor.dims.fill(1);
    for (int i = 0; i < tensor.rank; ++i) {
        const std::uint64_t at = cursor.offset();
        const auto dim = cursor.take<std::uint64_t>("a dimension");
        if (dim == 0 || dim > INT64_MAX) {
            cursor.refuse(ErrorCode::InvalidFile, at, "dimension {} is {}; the file is damaged", i, dim);
        }
        tensor.dims[static_cast<std::size_t>(i)] = static_cast<std::int64_t>(dim);
    }
}

TensorInfo read_tensor_info(Cursor& cursor, std::uint64_t alignment) {
    TensorInfo info{};
    const std::uint64_t start = cursor.offset();
    info.tensor.name = cursor.take_string(kMaxNameBytes, "the tensor's name");
    if (info.tensor.name.empty()) {
        cursor.refuse(ErrorCode::InvalidFile, start,
                      "the tensor's name is empty; the file is damaged or badly converted");
    }
    cursor.set_name(info.tensor.name);
    info.tensor.rank = read_rank(cursor);
    const std::uint64_t dims_at = cursor.offset();
    read_dims(cursor, info.tensor);
    const DataTypeTraits& type = read_data_type(cursor);
    info.tensor.type = type.type;
    info.bytes = size_of(cursor, dims_at, info.tensor, type);
    info.offset_at = cursor.offset();
    info.offset = cursor.take<std::uint64_t>("the offset");
    if (info.offset % alignment != 0) {
        cursor.refuse(ErrorCode::InvalidFile, info.offset_at,
                      "its offset {} is no multiple of the file's alignment {}; the file is damaged",
                      info.offset, alignment);
    }
    return info;
}

/// Refuses a tensor that does not lie inside the file.
Tensor locate(Cursor& cursor, const TensorInfo& info, std::span<const std::byte> file_bytes,
              std::uint64_t data_offset) {
    const auto begin = checked_add(data_offset, info.offset);
    const auto end = begin ? checked_add(*begin, info.bytes) : std::nullopt;
    if (!end || *end > file_bytes.size()) {
        cursor.set_name(info.tensor.name);
        cursor.refuse(ErrorCode::InvalidFile, info.offset_at,
                      "its {} bytes at offset {} of the data (which starts at byte {}) end past the file's "
                      "{} bytes; the file is cut short or damaged, download it again",
                      info.bytes, info.offset, data_offset, file_bytes.size());
    }
    Tensor tensor = info.tensor;
    tensor.bytes = file_bytes.subspan(*begin, info.bytes);
    tensor.file_offset = *begin;
    return tensor;
}

void check_overlaps(Cursor& cursor, const std::vector<TensorInfo>& infos) {
    std::vector<std::uint32_t> order(infos.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return infos[a].offset < infos[b].offset; });
    for (std::size_t i = 1; i < order.size(); ++i) {
        const TensorInfo& before = infos[order[i - 1]];
        const TensorInfo& after = infos[order[i]];
        if (before.offset + before.bytes <= after.offset) continue;
        cursor.set_name(before.tensor.name);
        cursor.refuse(ErrorCode::InvalidFile, before.offset_at,
                      "its {} bytes at offset {} overlap tensor '{}' at offset {}; the file is damaged",
                      before.bytes, before.offset, printable(after.tensor.name), after.offset);
    }
}

void check_names(Cursor& cursor, const std::vector<Tensor>& tensors, const std::vector<TensorInfo>& infos) {
    const auto duplicate = NameIndex(tensors).duplicate();
    if (!duplicate) return;
    cursor.set_name(tensors[duplicate->first].name);
    cursor.refuse(ErrorCode::InvalidFile, infos[duplicate->second].offset_at,
                  "the name stands twice in the file, as tensors {} and {}; get another copy of the model",
                  duplicate->first + 1, duplicate->second + 1);
}

}  // namespace

std::vector<TensorInfo> read_tensor_infos(Cursor& cursor, std::uint64_t count, std::uint64_t alignment) {
    std::vector<TensorInfo> infos;
    infos.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
        cursor.enter("tensor", i, count);
        infos.push_back(read_tensor_info(cursor, alignment));
    }
    cursor.leave();
    return infos;
}

std::vector<Tensor> locate_tensors(Cursor& cursor, const std::vector<TensorInfo>& infos,
                                   std::span<const std::byte> file_bytes, std::uint64_t data_offset) {
    std::vector<Tensor> tensors;
    tensors.reserve(infos.size());
    cursor.enter("tensor", 0, infos.size());
    for (const TensorInfo& info : infos) tensors.push_back(locate(cursor, info, file_bytes, data_offset));
    check_overlaps(cursor, infos);
    check_names(cursor, tensors, infos);
    cursor.leave();
    return tensors;
}

}  // namespace coterie::gguf
