#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/json/json.h"

namespace coterie::server {

/// The texts of a chat that people and tools wrote, as opposed to the model: places in its messages.
///
/// What stands there is never a marker of the template, whatever it looks like.
class WrittenMessages {
  public:
    /// Checks the messages' shape; throws ApiError naming the message. Takes strings and arrays of text
    /// parts.
    explicit WrittenMessages(Json messages);

    const std::vector<std::string>& texts() const { return texts_; }
    /// The messages as JSON with these texts in place of the written ones, which they are as many as.
    std::string with(const std::vector<std::string>& texts);

    /// Takes the last message off if it is the assistant's, and returns its text: an answer that the client
    /// has begun.
    std::string take_begun_answer();

    std::size_t size() const;

  private:
    void add_message(Json& message, const std::string& path);
    void add_part(Json& part, const std::string& path, bool written);

    std::unique_ptr<Json, void (*)(Json*)> messages_;
    std::vector<std::string> texts_;
    std::vector<Json*> places_;
};

}  // namespace coterie::server
