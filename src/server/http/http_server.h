#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/http/limits.h"
#include "server/http/message.h"

namespace coterie::server {

class TlsContext;

/// What an HTTP server asks of whoever uses it.
struct HttpCallbacks {
    /// Looks at a request's header alone; a response ends it before its body is read.
    std::function<std::optional<HttpResponse>(const HttpRequest&)> admit;
    /// Answers a request. What it throws becomes a response through `fail`.
    HttpHandler handle;
    /// The response for a request that went wrong with this status; an empty one where none could be read.
    std::function<HttpResponse(int status, const std::string& message, const HttpRequest&)> fail;
};

/// HTTP/1.1 over TCP, one thread a connection, within limits. Knows nothing of what it serves.
class HttpServer {
  public:
    /// `tls` may be null.
    HttpServer(HttpCallbacks callbacks, const HttpLimits& limits, std::unique_ptr<TlsContext> tls);
    ~HttpServer();

    /// Opens the port, 0: any free one; the number. Throws Io where that is not possible.
    int bind(const std::string& host, int port);
    /// Serves until `stop`; requests that run then are finished first.
    void serve();
    /// Any thread may call it, after another has called `serve` or is about to.
    void stop();

  private:
    class Library;
    std::unique_ptr<Library> library_;
};

}  // namespace coterie::server
