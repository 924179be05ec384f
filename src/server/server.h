#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "server/api/router.h"
#include "server/http/gate.h"
#include "server/http/http_server.h"
#include "server/http/limits.h"
#include "server/service/service.h"

namespace coterie::server {

struct ServerOptions {
    std::string host = "127.0.0.1";
    int port = 8080;
    GateOptions gate;
    HttpLimits limits;
    bool open_to_all = false;      ///< another address than loopback without keys is meant
    std::string certificate_file;  ///< with key_file: TLS
    std::string key_file;
};

/// Whether only this machine can reach the address.
bool is_loopback(const std::string& host);

/// The HTTP side of `coterie serve`: opens its port at once, answers "loading" until it is given a service,
/// then serves that.
class Server {
  public:
    /// Throws InvalidArgument for an address that others reach without a key that says who they are, Io where
    /// the port is taken, and what certificates throw.
    explicit Server(ServerOptions options);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    /// "http://127.0.0.1:8080"
    const std::string& url() const { return url_; }

    /// Serves this from now on; it must outlive the server.
    void begin(Service& service);
    /// New requests are turned away from now on: 503.
    void close() { closing_ = true; }

  private:
    std::optional<HttpResponse> admit(const HttpRequest& request) const;
    HttpResponse handle(const HttpRequest& request) const;
    HttpResponse answer(const HttpRequest& request) const;
    HttpResponse health() const;
    /// With the headers that every response has.
    HttpResponse finished(HttpResponse response, const HttpRequest& request) const;
    HttpCallbacks callbacks() const;

    ServerOptions options_;
    Gate gate_;
    Router router_;  ///< filled before ready_ is set
    std::atomic<bool> ready_{false};
    std::atomic<bool> closing_{false};
    std::unique_ptr<HttpServer> http_;
    std::string url_;
    std::thread thread_;
};

}  // namespace coterie::server
