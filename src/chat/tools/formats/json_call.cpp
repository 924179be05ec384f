#include "chat/tools/formats/json_call.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "chat/tools/json_object_scanner.h"

namespace coterie {
namespace {

using Json = nlohmann::ordered_json;
using Kind = JsonCallHead::Kind;

/// Reads fixed parts one after the other, white space before each left aside.
class HeadReader {
  public:
    explicit HeadReader(std::string_view text) : text_(text) {}

    Kind expect(std::string_view part) {
        skip_space();
        const std::string_view rest = text_.substr(position_);
        if (rest.starts_with(part)) {
            position_ += part.size();
            return Kind::Whole;
        }
        return part.starts_with(rest) ? Kind::Partly : Kind::No;
    }

    /// A string without escapes.
    Kind read_string(std::string& value) {
        if (const Kind quote = expect("\""); quote != Kind::Whole) return quote;
        const std::size_t end = text_.find_first_of("\"\\", position_);
        if (end == std::string_view::npos) return Kind::Partly;
        if (text_[end] == '\\') return Kind::No;
        value = text_.substr(position_, end - position_);
        position_ = end + 1;
        return Kind::Whole;
    }

    /// Before the next character that is no white space.
    Kind peek(char expected) {
        skip_space();
        if (position_ == text_.size()) return Kind::Partly;
        return text_[position_] == expected ? Kind::Whole : Kind::No;
    }

    std::size_t position() const { return position_; }

  private:
    void skip_space() { position_ = std::min(text_.find_first_not_of(" \t\r\n", position_), text_.size()); }

    std::string_view text_;
    std::size_t position_ = 0;
};

}  // namespace

JsonCallHead read_json_call_head(std::string_view text) {
    HeadReader reader(text);
    JsonCallHead head{Kind::Whole};
    std::string key;
    const auto require = [&](Kind kind) {
        if (head.kind == Kind::Whole) head.kind = kind;
        return head.kind == Kind::Whole;
    };
    if (!require(reader.expect("{")) || !require(reader.read_string(key))) return head;
    if (!require(key == "name" ? Kind::Whole : Kind::No)) return head;
    if (!require(reader.expect(":")) || !require(reader.read_string(head.name))) return head;
    if (!require(reader.expect(",")) || !require(reader.read_string(key))) return head;
    if (!require(key == "arguments" || key == "parameters" ? Kind::Whole : Kind::No)) return head;
    if (!require(reader.expect(":")) || !require(reader.peek('{'))) return head;
    head.bytes = reader.position();
    return head;
}

std::optional<JsonCall> read_json_call(const std::string& text) {
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object() || !json.contains("name") || !json.at("name").is_string()) return std::nullopt;
    JsonCall call{json.at("name").get<std::string>(), "{}", ""};
    if (json.contains("id") && json.at("id").is_string()) call.id = json.at("id").get<std::string>();
    const char* const key = json.contains("arguments") ? "arguments" : "parameters";
    if (!json.contains(key) || json.at(key).is_null()) return call;
    const Json& arguments = json.at(key);
    call.arguments = arguments.is_string() ? arguments.get<std::string>() : arguments.dump();
    if (!is_json_object(call.arguments)) return std::nullopt;
    return call;
}

}  // namespace coterie
