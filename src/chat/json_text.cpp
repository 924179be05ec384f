#include "chat/json_text.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace coterie {
namespace {

/// Checks a text without building its values; remembers the first error.
struct Checker : nlohmann::json_sax<nlohmann::json> {
    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(number_integer_t) override { return true; }
    bool number_unsigned(number_unsigned_t) override { return true; }
    bool number_float(number_float_t, const string_t&) override { return true; }
    bool string(string_t&) override { return true; }
    bool binary(binary_t&) override { return true; }
    bool start_object(std::size_t) override { return true; }
    bool key(string_t&) override { return true; }
    bool end_object() override { return true; }
    bool start_array(std::size_t) override { return true; }
    bool end_array() override { return true; }
    bool parse_error(std::size_t position, const std::string&,
                     const nlohmann::json::exception& problem) override {
        error_position = position;
        // The library's text opens with its own error number and position in brackets and before a colon.
        const std::string_view text = problem.what();
        const std::size_t colon = text.find(": ");
        error = text.substr(colon == std::string_view::npos ? 0 : colon + 2);
        return false;
    }

    std::size_t error_position = 0;
    std::string error;
};

/// The library quotes what it last read, which need not be valid UTF-8: an error text must be.
std::string printable(std::string_view text) {
    std::string clean;
    for (const char c : text) clean += (c >= ' ' && c <= '~') ? c : '?';
    return clean;
}

}  // namespace

std::string json_string(std::string_view text, std::string_view what) {
    try {
        return nlohmann::json(text).dump();
    } catch (const nlohmann::json::type_error&) {
        fail(ErrorCode::InvalidArgument, "{}: it is not valid UTF-8", what);
    }
}

void require_json(std::string_view json, JsonKind kind, std::string_view what) {
    Checker checker;
    if (!nlohmann::json::sax_parse(json, &checker)) {
        fail(ErrorCode::InvalidArgument, "{}: not valid JSON at byte {}: {}", what, checker.error_position,
             printable(checker.error));
    }
    // The parser skips a byte order mark, which could not be pasted: it counts as something else here.
    const std::size_t first = json.find_first_not_of(" \t\r\n");
    if (json[first] != (kind == JsonKind::Array ? '[' : '{')) {
        fail(ErrorCode::InvalidArgument, "{}: not a JSON {}", what,
             kind == JsonKind::Array ? "array" : "object");
    }
}

}  // namespace coterie
