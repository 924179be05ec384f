#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/json/json.h"

namespace coterie::server {

/// Reads a request's fields. A missing field and one that is null are the same; a field of the wrong type or
/// out of its range is refused with ApiError 400 that names it. Borrows the object.
class Fields {
  public:
    /// `path` names the object in errors; empty for the whole request. Refuses anything but an object.
    explicit Fields(const Json& object, std::string path = {});

    bool has(std::string_view name) const { return find(name) != nullptr; }
    /// The value, whatever it is; null where it is missing or JSON's null.
    const Json* find(std::string_view name) const;
    const Json& required(std::string_view name) const;

    std::optional<bool> boolean(std::string_view name) const;
    std::optional<std::int64_t> integer(std::string_view name, std::int64_t least, std::int64_t most) const;
    std::optional<double> number(std::string_view name, double least, double most) const;
    std::optional<std::string> string(std::string_view name) const;
    std::string required_string(std::string_view name) const;
    /// One of the words.
    std::optional<std::string> word(std::string_view name, const std::vector<std::string>& words) const;
    std::string required_word(std::string_view name, const std::vector<std::string>& words) const;
    /// A string, or an array of at most `most` strings; empty where missing.
    std::vector<std::string> strings(std::string_view name, std::size_t most) const;
    /// Null where missing.
    const Json* array(std::string_view name, std::size_t most) const;
    std::optional<Fields> object(std::string_view name) const;

    /// "messages[2].content" for a name below this object.
    std::string path(std::string_view name) const;
    static std::string at(const std::string& path, std::size_t index);

  private:
    const Json* object_;
    std::string path_;
};

}  // namespace coterie::server
