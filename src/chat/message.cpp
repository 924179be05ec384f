#include "chat/message.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "chat/json_text.h"

namespace coterie {

std::string_view role_name(Role role) {
    switch (role) {
        case Role::System:
            return "system";
        case Role::Developer:
            return "developer";
        case Role::User:
            return "user";
        case Role::Assistant:
            return "assistant";
        case Role::Tool:
            return "tool";
    }
    COTERIE_CHECK(!"a role that is not in the list");
    return {};
}

Message::Message(Role role, std::string_view text)
    : json_("{\"role\":" + json_string(role_name(role), "role") +
            ",\"content\":" + json_string(text, "message text") + "}") {}

Message Message::from_json(std::string json) {
    require_json(json, JsonKind::Object, "message");
    const auto message = nlohmann::json::parse(json);
    if (const auto role = message.find("role"); role == message.end() || !role->is_string()) {
        fail(ErrorCode::InvalidArgument, "message: its \"role\" is missing or not a string");
    }
    return Message(std::move(json));
}

std::string to_json(std::span<const Message> messages) {
    std::string array = "[";
    for (const Message& message : messages) {
        if (array.size() > 1) array += ',';
        array += message.json();
    }
    return array + "]";
}

}  // namespace coterie
