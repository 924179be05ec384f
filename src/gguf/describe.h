#pragma once

#include <cstddef>
#include <string>

#include "gguf/archive.h"

namespace coterie::gguf {

struct DescribeOptions {
    std::size_t array_values = 8;    ///< arrays longer than this are cut to it
    std::size_t string_bytes = 160;  ///< in text, strings longer than this are cut to it
    bool tensors = true;             ///< list every tensor
};

/// A listing for people: the files, metadata, experts per layer, and the tensors.
std::string describe_text(const Archive& archive, const DescribeOptions& options);

/// The same as one JSON object with keys `name`, `files`, `bytes`, `version`, `alignment`, `metadata`,
/// `experts` and `tensors`. A cut array is an object with its `type`, `count` and `first` values; numbers
/// that JSON does not have (NaN, infinity) are null, and bytes that are not UTF-8 become U+FFFD.
std::string describe_json(const Archive& archive, const DescribeOptions& options);

}  // namespace coterie::gguf
