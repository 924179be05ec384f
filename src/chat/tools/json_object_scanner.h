#pragma once

#include <cstddef>
#include <string_view>

namespace coterie {

/// Finds the end of a JSON object in a text that comes in pieces. It counts brackets outside strings; whether
/// the whole is JSON is asked when it is there.
class JsonObjectScanner {
  public:
    /// How many bytes of the text belong to the object.
    std::size_t feed(std::string_view text);
    bool is_complete() const { return started_ && depth_ == 0; }

  private:
    int depth_ = 0;
    bool started_ = false;
    bool in_string_ = false;
    bool escaped_ = false;
};

/// Whether the text is one JSON object.
bool is_json_object(std::string_view text);

}  // namespace coterie
