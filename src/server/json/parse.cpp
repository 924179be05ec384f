#include "server/json/parse.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <vector>

#include "server/json/api_error.h"

namespace coterie::server {
namespace {

/// Walks over a text's brackets and separators, strings left out.
class LimitCheck {
  public:
    explicit LimitCheck(const JsonLimits& limits) : limits_(limits) {}

    void run(std::string_view body) {
        bool in_string = false;
        for (std::size_t i = 0; i < body.size(); ++i) {
            if (!in_string) {
                in_string = body[i] == '"';
                see(body[i], i);
            } else if (body[i] == '\\') {
                ++i;
            } else {
                in_string = body[i] != '"';
            }
        }
    }

  private:
    struct Level {
        bool is_object;
        std::size_t separators;
    };

    void see(char c, std::size_t at) {
        if (c == '[' || c == '{') levels_.push_back({c == '{', 0});
        if ((c == ']' || c == '}') && !levels_.empty()) levels_.pop_back();
        if (static_cast<int>(levels_.size()) > limits_.depth) {
            throw ApiError(
                400, fmt::format("the body is nested deeper than {} levels, at byte {}", limits_.depth, at));
        }
        if (c != ',' || levels_.empty()) return;
        if (++elements_ >= limits_.elements) {
            throw ApiError(
                400, fmt::format("the body has more than {} elements, at byte {}", limits_.elements, at));
        }
        if (++levels_.back().separators >= limits_.keys && levels_.back().is_object) {
            throw ApiError(400, fmt::format("an object has more than {} keys, at byte {}", limits_.keys, at));
        }
    }

    const JsonLimits& limits_;
    std::vector<Level> levels_;
    std::size_t elements_ = 0;
};

}  // namespace

Json parse_object(std::string_view body, const JsonLimits& limits) {
    LimitCheck(limits).run(body);
    Json value;
    try {
        value = Json::parse(body);
    } catch (const nlohmann::json::parse_error& error) {
        throw ApiError(400, fmt::format("the body is not valid JSON, at byte {}", error.byte), {},
                       "invalid_json");
    } catch (const nlohmann::json::exception&) {
        throw ApiError(400, "the body holds a number that is too big", {}, "invalid_json");
    }
    if (!value.is_object()) throw ApiError(400, "the body must be a JSON object", {}, "invalid_json");
    return value;
}

std::string dump(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace coterie::server
