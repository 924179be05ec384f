#include "server/http/body_framing.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <strings.h>

namespace coterie::server {
namespace {

BodyFraming refusal_of(int status, std::string problem) {
    return {.refusal = status, .problem = std::move(problem)};
}

BodyFraming read_length(const std::string& text) {
    BodyFraming framing;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, framing.length);
    if (error == std::errc() && stop == end) return framing;
    return refusal_of(400, fmt::format("Content-Length: '{}' is no number of bytes", text));
}

}  // namespace

BodyFraming read_framing(const std::vector<std::string>& lengths, const std::vector<std::string>& codings) {
    if (!codings.empty()) {
        if (!lengths.empty()) {
            return refusal_of(400, "Content-Length and Transfer-Encoding contradict each other; send one");
        }
        if (codings.size() == 1 && strcasecmp(codings.front().c_str(), "chunked") == 0)
            return {.chunked = true};
        return refusal_of(501, fmt::format("Transfer-Encoding: '{}' is not known; send chunked, or "
                                           "Content-Length",
                                           fmt::join(codings, ", ")));
    }
    if (lengths.empty()) return {};
    const bool same = std::all_of(lengths.begin(), lengths.end(),
                                  [&](const std::string& other) { return other == lengths.front(); });
    if (!same) {
        return refusal_of(
            400, fmt::format("Content-Length differs from Content-Length: {}", fmt::join(lengths, ", ")));
    }
    return read_length(lengths.front());
}

}  // namespace coterie::server
