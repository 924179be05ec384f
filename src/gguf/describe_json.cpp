#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "gguf/describe.h"
#include "gguf/expert_summary.h"

namespace coterie::gguf {
namespace {

using Json = nlohmann::ordered_json;

template <typename Array, typename Convert>
Json first_values(const Array& values, std::size_t count, Convert convert) {
    Json list = Json::array();
    for (auto at = values.begin(); list.size() < count; ++at) list.push_back(convert(*at));
    return list;
}

Json first_elements(const Value& value, std::size_t count) {
    switch (value.type) {
        case ValueType::String:
            return first_values(value.strings(), count, [](std::string_view v) { return std::string(v); });
        case ValueType::Bool:
            return first_values(value.integers(), count, [](std::int64_t v) { return v != 0; });
        case ValueType::U64:
            return first_values(value.integers(), count,
                                [](std::int64_t v) { return static_cast<std::uint64_t>(v); });
        case ValueType::F32:
            return first_values(value.numbers(), count, [](double v) { return static_cast<float>(v); });
        case ValueType::F64:
            return first_values(value.numbers(), count, [](double v) { return v; });
        default:
            return first_values(value.integers(), count, [](std::int64_t v) { return v; });
    }
}

Json value_json(const Value& value, std::size_t limit) {
    if (!value.is_array) return first_elements(value, 1)[0];
    if (value.count <= limit) return first_elements(value, value.count);
    return {{"type", name(value.type)}, {"count", value.count}, {"first", first_elements(value, limit)}};
}

Json metadata_json(const Metadata& metadata, std::size_t limit) {
    Json object = Json::object();
    // Keys are unique: pushing them saves ordered_json's search for each.
    auto& pairs = object.get_ref<Json::object_t&>();
    for (const auto& [key, value] : metadata.entries()) {
        pairs.push_back({std::string(key), value_json(value, limit)});
    }
    return object;
}

Json files_json(const Archive& archive) {
    Json list = Json::array();
    for (const File& file : archive.files())
        list.push_back({{"name", file.name()}, {"bytes", file.bytes().size()}});
    return list;
}

Json experts_json(const Archive& archive) {
    Json list = Json::array();
    for (const auto& [number, layer] : summarise_experts(archive)) {
        list.push_back({{"layer", number},
                        {"experts", layer.experts},
                        {"bytes_per_expert", layer.bytes_per_expert},
                        {"types", layer.types}});
    }
    return list;
}

Json tensors_json(const Archive& archive) {
    Json list = Json::array();
    for (const Tensor& tensor : archive.tensors()) {
        Json dims = Json::array();
        for (int i = 0; i < tensor.rank; ++i) dims.push_back(tensor.dims[static_cast<std::size_t>(i)]);
        list.push_back({{"name", tensor.name},
                        {"type", traits(tensor.type).name},
                        {"dims", std::move(dims)},
                        {"bytes", tensor.bytes.size()},
                        {"file", tensor.shard},
                        {"offset", tensor.file_offset}});
    }
    return list;
}

}  // namespace

std::string describe_json(const Archive& archive, const DescribeOptions& options) {
    Json document = {{"name", archive.name()},
                     {"files", files_json(archive)},
                     {"bytes", archive.total_bytes()},
                     {"version", archive.version()},
                     {"alignment", archive.alignment()},
                     {"metadata", metadata_json(archive.metadata(), options.array_values)},
                     {"experts", experts_json(archive)}};
    if (options.tensors) document["tensors"] = tensors_json(archive);
    return document.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace coterie::gguf
