#include "server/chat/written_messages.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "server/json/api_error.h"
#include "server/json/fields.h"
#include "server/json/parse.h"

namespace coterie::server {

WrittenMessages::WrittenMessages(Json messages)
    : messages_(new Json(std::move(messages)), [](Json* owned) { delete owned; }) {
    if (messages_->empty()) refuse_field("messages", "must hold at least one message");
    for (std::size_t i = 0; i < messages_->size(); ++i)
        add_message((*messages_)[i], Fields::at("messages", i));
}

std::size_t WrittenMessages::size() const { return messages_->size(); }

void WrittenMessages::add_message(Json& message, const std::string& path) {
    const Fields fields(message, path);
    const std::string role =
        fields.required_word("role", {"system", "developer", "user", "assistant", "tool", "function"});
    const auto content = message.find("content");
    const bool written = role != "assistant";
    const std::string place = fields.path("content");
    if (content == message.end() || content->is_null()) {
        if (written) refuse_field(place, "is missing");
        return;  // an answer may be calls alone
    }
    if (content->is_array()) {
        for (std::size_t i = 0; i < content->size(); ++i)
            add_part((*content)[i], Fields::at(place, i), written);
    } else if (!content->is_string()) {
        refuse_field(place, "must be a string or an array of text parts");
    } else if (written) {
        places_.push_back(&*content);
        texts_.push_back(content->get<std::string>());
    }
}

void WrittenMessages::add_part(Json& part, const std::string& path, bool written) {
    const Fields fields(part, path);
    const std::string type = fields.string("type").value_or("text");
    if (type != "text" && type != "refusal") {
        refuse_field(path, fmt::format("parts of type '{}' are not supported; this model reads text", type));
    }
    const auto text = part.find(type);
    if (text == part.end() || !text->is_string()) refuse_field(fields.path(type), "must be a string");
    if (!written) return;
    places_.push_back(&*text);
    texts_.push_back(text->get<std::string>());
}

std::string WrittenMessages::with(const std::vector<std::string>& texts) {
    for (std::size_t i = 0; i < places_.size(); ++i) *places_[i] = texts[i];
    return dump(*messages_);
}

std::string WrittenMessages::take_begun_answer() {
    const Json& last = messages_->back();
    if (messages_->size() < 2 || last["role"] != "assistant" || last.contains("tool_calls")) return {};
    std::string text;
    const auto content = last.find("content");
    if (content != last.end() && content->is_string()) text = content->get<std::string>();
    if (content != last.end() && content->is_array()) {
        for (const Json& part : *content) text += part.value("text", "");
    }
    messages_->erase(messages_->size() - 1);  // nothing in it is written: no place points there
    return text;
}

}  // namespace coterie::server
