#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace coterie::server {

/// A request as handlers see it: read whole, within the limits.
struct HttpRequest {
    std::string method;
    std::string path;
    std::multimap<std::string, std::string> headers;  ///< names in lower case
    std::map<std::string, std::string> query;
    std::string body;
    std::string peer;               ///< the client's address
    std::function<bool()> present;  ///< whether the client is still there; empty: yes

    /// The first of that name (lower case); empty where there is none.
    std::string_view header(const std::string& name) const {
        const auto found = headers.find(name);
        return found == headers.end() ? std::string_view() : std::string_view(found->second);
    }

    /// Who asks, for fairness: whoever shows the same key from the same address.
    std::string client() const {
        return peer + '\n' + std::string(header("authorization")) + '\n' + std::string(header("x-api-key"));
    }
};

/// Takes a streamed body piece by piece.
class StreamWriter {
  public:
    virtual ~StreamWriter() = default;
    /// False once the client has left: nothing written later arrives.
    virtual bool write(std::string_view bytes) = 0;
    virtual bool present() const = 0;
};

struct HttpResponse {
    int status = 200;
    std::string content_type = "application/json; charset=utf-8";
    std::string body = {};
    std::vector<std::pair<std::string, std::string>> headers = {};
    /// Where set, writes the body in place of `body`. Must not throw.
    std::function<void(StreamWriter&)> stream = {};
};

using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

}  // namespace coterie::server
