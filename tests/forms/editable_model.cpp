#include "editable_model.h"

#include <algorithm>
#include <stdexcept>

namespace coterie::testing {
namespace {

template <typename T>
void copy_numbers(gguf::Header& header, std::string_view key, const gguf::Value& value) {
    std::vector<T> numbers;
    for (std::size_t i = 0; i < value.count; ++i)
        numbers.push_back(gguf::load<T>(value.bytes.data() + i * sizeof(T)));
    if (value.is_array) {
        header.set_array<T>(key, numbers);
    } else {
        header.set(key, numbers[0]);
    }
}

void copy_value(gguf::Header& header, std::string_view key, const gguf::Value& value) {
    using gguf::ValueType;
    switch (value.type) {
        case ValueType::U8:
            return copy_numbers<std::uint8_t>(header, key, value);
        case ValueType::I8:
            return copy_numbers<std::int8_t>(header, key, value);
        case ValueType::U16:
            return copy_numbers<std::uint16_t>(header, key, value);
        case ValueType::I16:
            return copy_numbers<std::int16_t>(header, key, value);
        case ValueType::U32:
            return copy_numbers<std::uint32_t>(header, key, value);
        case ValueType::I32:
            return copy_numbers<std::int32_t>(header, key, value);
        case ValueType::F32:
            return copy_numbers<float>(header, key, value);
        case ValueType::U64:
            return copy_numbers<std::uint64_t>(header, key, value);
        case ValueType::I64:
            return copy_numbers<std::int64_t>(header, key, value);
        case ValueType::F64:
            return copy_numbers<double>(header, key, value);
        case ValueType::Bool:
            return header.set(key, gguf::load<std::uint8_t>(value.bytes.data()) != 0);
        case ValueType::String: {
            std::vector<std::string> texts;
            for (const std::string_view text : value.strings()) texts.emplace_back(text);
            if (value.is_array) return header.set_array(key, texts);
            return header.set(key, texts[0]);
        }
        case ValueType::Array:
            break;
    }
    throw std::logic_error("a value type that files do not have");
}

}  // namespace

EditableModel::EditableModel(const std::string& path) : source_(gguf::Archive::open(path)) {
    for (const gguf::Tensor& tensor : source_.tensors()) {
        TensorData data{{std::string(tensor.name), tensor.type, {}},
                        {tensor.bytes.begin(), tensor.bytes.end()}};
        data.spec.dims.assign(tensor.dims.begin(), tensor.dims.begin() + tensor.rank);
        put(std::move(data));
    }
}

EditableModel::TensorData& EditableModel::tensor(const std::string& name) { return tensors_.at(name); }

EditableModel::TensorData EditableModel::take(const std::string& name) {
    TensorData data = std::move(tensors_.at(name));
    tensors_.erase(name);
    return data;
}

void EditableModel::rename(const std::string& from, const std::string& to) {
    TensorData data = take(from);
    data.spec.name = to;
    put(std::move(data));
}

std::vector<std::string> EditableModel::names() const {
    std::vector<std::string> names;
    for (const auto& [name, data] : tensors_) names.push_back(name);
    return names;
}

std::shared_ptr<const gguf::Archive> EditableModel::build() {
    gguf::Header header;
    for (const gguf::MetadataEntry& entry : source_.metadata().entries()) {
        const std::string key(entry.name);
        if (removed_keys.contains(key) || integers.contains(key) || numbers.contains(key) ||
            strings.contains(key))
            continue;
        copy_value(header, key, entry.value);
    }
    for (const auto& [key, value] : integers) header.set(key, value);
    for (const auto& [key, value] : numbers) header.set(key, value);
    for (const auto& [key, value] : strings) header.set(key, std::string_view(value));
    std::vector<const TensorData*> order;
    for (const auto& [name, data] : tensors_) {
        header.add_tensor(data.spec);
        order.push_back(&data);
    }
    built_.push_back(gguf::write_bytes(header, [&](std::size_t i, gguf::TensorOutput& output) {
        output.append(std::span<const std::byte>(order[i]->bytes));
    }));
    return std::make_shared<gguf::Archive>(gguf::Archive::from_bytes(built_.back(), "edited.gguf"));
}

EditableModel::TensorData join_rows(const std::string& name,
                                    const std::vector<EditableModel::TensorData>& parts) {
    EditableModel::TensorData joined;
    joined.spec = parts[0].spec;
    joined.spec.name = name;
    joined.spec.dims[1] = 0;
    for (const auto& part : parts) joined.spec.dims[1] += part.spec.dims[1];
    const std::int64_t matrices = joined.spec.dims.size() > 2 ? joined.spec.dims[2] : 1;
    for (std::int64_t m = 0; m < matrices; ++m) {
        for (const auto& part : parts) {
            const auto bytes = static_cast<std::ptrdiff_t>(part.bytes.size()) / matrices;
            joined.bytes.insert(joined.bytes.end(), part.bytes.begin() + m * bytes,
                                part.bytes.begin() + (m + 1) * bytes);
        }
    }
    return joined;
}

}  // namespace coterie::testing
