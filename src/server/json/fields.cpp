#include "server/json/fields.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "server/json/api_error.h"

namespace coterie::server {

Fields::Fields(const Json& object, std::string path) : object_(&object), path_(std::move(path)) {
    if (!object.is_object()) refuse_field(path_, "must be an object");
}

std::string Fields::path(std::string_view name) const {
    return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

std::string Fields::at(const std::string& path, std::size_t index) {
    return fmt::format("{}[{}]", path, index);
}

const Json* Fields::find(std::string_view name) const {
    const auto found = object_->find(std::string(name));
    return found == object_->end() || found->is_null() ? nullptr : &*found;
}

const Json& Fields::required(std::string_view name) const {
    const Json* value = find(name);
    if (!value) refuse_field(path(name), "is missing");
    return *value;
}

std::string Fields::required_string(std::string_view name) const {
    required(name);
    return *string(name);
}

std::string Fields::required_word(std::string_view name, const std::vector<std::string>& words) const {
    required(name);
    return *word(name, words);
}

std::optional<bool> Fields::boolean(std::string_view name) const {
    const Json* value = find(name);
    if (!value) return std::nullopt;
    if (!value->is_boolean()) refuse_field(path(name), "must be true or false");
    return value->get<bool>();
}

std::optional<double> Fields::number(std::string_view name, double least, double most) const {
    const Json* value = find(name);
    if (!value) return std::nullopt;
    if (!value->is_number()) refuse_field(path(name), "must be a number");
    const auto number = value->get<double>();
    if (!(number >= least && number <= most)) {
        refuse_field(path(name), fmt::format("must be between {} and {}, not {}", least, most, number));
    }
    return number;
}

std::optional<std::int64_t> Fields::integer(std::string_view name, std::int64_t least,
                                            std::int64_t most) const {
    const Json* value = find(name);
    if (!value) return std::nullopt;
    const auto number = this->number(name, static_cast<double>(least), static_cast<double>(most));
    if (std::trunc(*number) != *number) refuse_field(path(name), "must be a whole number");
    const bool exact =
        value->is_number_integer() &&
        !(value->is_number_unsigned() && value->get<std::uint64_t>() > static_cast<std::uint64_t>(most));
    return exact ? std::clamp(value->get<std::int64_t>(), least, most)
                 : std::clamp(static_cast<std::int64_t>(std::min(*number, 9.2e18)), least, most);
}

std::optional<std::string> Fields::string(std::string_view name) const {
    const Json* value = find(name);
    if (!value) return std::nullopt;
    if (!value->is_string()) refuse_field(path(name), "must be a string");
    return value->get<std::string>();
}

std::optional<std::string> Fields::word(std::string_view name, const std::vector<std::string>& words) const {
    auto value = string(name);
    if (value && std::find(words.begin(), words.end(), *value) == words.end()) {
        refuse_field(path(name), fmt::format("must be one of {}, not '{}'", fmt::join(words, ", "), *value));
    }
    return value;
}

std::vector<std::string> Fields::strings(std::string_view name, std::size_t most) const {
    const Json* value = find(name);
    if (!value) return {};
    if (value->is_string()) return {value->get<std::string>()};
    if (!value->is_array()) refuse_field(path(name), "must be a string or an array of strings");
    const Json* list = array(name, most);
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < list->size(); ++i) {
        if (!(*list)[i].is_string()) refuse_field(at(path(name), i), "must be a string");
        texts.push_back((*list)[i].get<std::string>());
    }
    return texts;
}

const Json* Fields::array(std::string_view name, std::size_t most) const {
    const Json* value = find(name);
    if (!value) return nullptr;
    if (!value->is_array()) refuse_field(path(name), "must be an array");
    if (value->size() > most) {
        refuse_field(path(name),
                     fmt::format("has {} elements, and at most {} are taken", value->size(), most));
    }
    return value;
}

std::optional<Fields> Fields::object(std::string_view name) const {
    const Json* value = find(name);
    if (!value) return std::nullopt;
    return Fields(*value, path(name));
}

}  // namespace coterie::server
