#pragma once

#include <span>
#include <string>
#include <string_view>

namespace coterie {

enum class Role { System, Developer, User, Assistant, Tool };

std::string_view role_name(Role role);

/// One message of a chat: the JSON object of OpenAI's chat API, kept as text. A request's message goes to the
/// template as the client wrote it, with the order of its keys, its tool calls and fields this program does
/// not know.
class Message {
  public:
    /// Throws InvalidArgument for text that is not valid UTF-8.
    Message(Role role, std::string_view text);

    /// Takes one message of a request. Throws InvalidArgument unless it is a JSON object with a string
    /// "role".
    static Message from_json(std::string json);

    const std::string& json() const { return json_; }

  private:
    explicit Message(std::string json) : json_(std::move(json)) {}

    std::string json_;
};

/// The messages as one JSON array, the form that a template is rendered with.
std::string to_json(std::span<const Message> messages);

}  // namespace coterie
