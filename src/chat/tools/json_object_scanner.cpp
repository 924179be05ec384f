#include "chat/tools/json_object_scanner.h"

#include <nlohmann/json.hpp>

namespace coterie {

std::size_t JsonObjectScanner::feed(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string_) {
            if (!escaped_ && c == '"') in_string_ = false;
            escaped_ = !escaped_ && c == '\\';
            continue;
        }
        if (c == '"') in_string_ = true;
        if (c == '{' || c == '[') ++depth_;
        if (c == '}' || c == ']') --depth_;
        started_ = true;
        if (depth_ <= 0) {
            depth_ = 0;
            return i + 1;
        }
    }
    return text.size();
}

bool is_json_object(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    return first != std::string_view::npos && text[first] == '{' && nlohmann::json::accept(text);
}

}  // namespace coterie
