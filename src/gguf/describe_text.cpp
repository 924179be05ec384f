#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <iterator>
#include <map>

#include "gguf/describe.h"
#include "gguf/expert_summary.h"
#include "gguf/printable.h"

namespace coterie::gguf {
namespace {

using Output = std::back_insert_iterator<std::string>;

std::string size_text(std::uint64_t bytes) {
    constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
    return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.2f} {}", value, kUnits[unit]);
}

template <typename Array, typename Render>
std::string list_text(const Array& values, std::size_t limit, Render render) {
    std::string text;
    std::size_t shown = 0;
    for (auto at = values.begin(); shown < std::min(limit, values.size()); ++at, ++shown) {
        text += (shown == 0 ? "" : ", ") + render(*at);
    }
    if (shown < values.size()) text += shown == 0 ? "..." : ", ...";
    return text;
}

std::string elements_text(const Value& value, const DescribeOptions& options) {
    const std::size_t limit = value.is_array ? options.array_values : 1;
    switch (value.type) {
        case ValueType::String:
            return list_text(value.strings(), limit, [&](std::string_view text) {
                return value.is_array ? '"' + printable(text, options.string_bytes) + '"'
                                      : printable(text, options.string_bytes);
            });
        case ValueType::Bool:
            return list_text(value.integers(), limit,
                             [](std::int64_t v) -> std::string { return v ? "true" : "false"; });
        case ValueType::U64:
            return list_text(value.integers(), limit,
                             [](std::int64_t v) { return fmt::format("{}", static_cast<std::uint64_t>(v)); });
        case ValueType::F32:
            return list_text(value.numbers(), limit,
                             [](double v) { return fmt::format("{}", static_cast<float>(v)); });
        case ValueType::F64:
            return list_text(value.numbers(), limit, [](double v) { return fmt::format("{}", v); });
        default:
            return list_text(value.integers(), limit, [](std::int64_t v) { return fmt::format("{}", v); });
    }
}

void append_files(Output out, const Archive& archive) {
    fmt::format_to(out, "{}\n", archive.name());
    fmt::format_to(out, "GGUF version {}, {} in {} file{}, {} keys, {} tensors, alignment {}\n",
                   archive.version(), size_text(archive.total_bytes()), archive.files().size(),
                   archive.files().size() == 1 ? "" : "s", archive.metadata().entries().size(),
                   archive.tensors().size(), archive.alignment());
}

void append_metadata(Output out, const Archive& archive, const DescribeOptions& options) {
    fmt::format_to(out, "\nMetadata\n");
    for (const auto& [key, value] : archive.metadata().entries()) {
        const std::string type = value.is_array ? fmt::format("{}[{}]", name(value.type), value.count)
                                                : std::string(name(value.type));
        fmt::format_to(out, "  {:<48} {:<16} {}\n", printable(key), type, elements_text(value, options));
    }
}

void append_types(Output out, const Archive& archive) {
    struct Sum {
        std::size_t tensors = 0;
        std::uint64_t bytes = 0;
    };
    std::map<DataType, Sum> sums;
    for (const Tensor& tensor : archive.tensors()) {
        ++sums[tensor.type].tensors;
        sums[tensor.type].bytes += tensor.bytes.size();
    }
    if (sums.empty()) return;
    fmt::format_to(out, "\nTypes\n");
    for (const auto& [type, sum] : sums) {
        fmt::format_to(out, "  {:<10} {:>6} tensors {:>14}\n", traits(type).name, sum.tensors,
                       size_text(sum.bytes));
    }
}

void append_experts(Output out, const Archive& archive) {
    const auto layers = summarise_experts(archive);
    if (layers.empty()) return;
    fmt::format_to(out, "\nExperts\n");
    for (const auto& [number, layer] : layers) {
        fmt::format_to(out, "  layer {:<4} {:>5} experts of {:>12}", number, layer.experts,
                       size_text(layer.bytes_per_expert));
        for (const auto& [matrix, types] : layer.types)
            fmt::format_to(out, "  {} {}", printable(matrix), types);
        fmt::format_to(out, "\n");
    }
}

void append_tensors(Output out, const Archive& archive) {
    fmt::format_to(out, "\nTensors\n");
    for (const Tensor& tensor : archive.tensors()) {
        fmt::format_to(out, "  {:<48} {:<8} {:<24} {:>12}  file {} byte {}\n", printable(tensor.name),
                       traits(tensor.type).name, shape_text(tensor), size_text(tensor.bytes.size()),
                       tensor.shard + 1, tensor.file_offset);
    }
}

}  // namespace

std::string describe_text(const Archive& archive, const DescribeOptions& options) {
    std::string text;
    const Output out = std::back_inserter(text);
    append_files(out, archive);
    append_metadata(out, archive, options);
    append_types(out, archive);
    append_experts(out, archive);
    if (options.tensors) append_tensors(out, archive);
    return text;
}

}  // namespace coterie::gguf
