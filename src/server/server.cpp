#include "server/server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "server/api/endpoints.h"
#include "server/http/socket.h"
#include "server/json/api_error.h"
#include "server/json/parse.h"
#include "server/page/assets.h"

namespace coterie::server {
namespace {

std::unique_ptr<TlsContext> make_tls(const ServerOptions& options) {
    if (options.certificate_file.empty() && options.key_file.empty()) return nullptr;
    if (options.certificate_file.empty() || options.key_file.empty()) {
        fail(ErrorCode::InvalidArgument, "TLS needs both --ssl-cert-file and --ssl-key-file");
    }
    return std::make_unique<TlsContext>(options.certificate_file, options.key_file);
}

void check_address(const ServerOptions& options) {
    if (is_loopback(options.host) || !options.gate.keys.empty() || options.open_to_all) return;
    fail(ErrorCode::InvalidArgument,
         "--host {}: others could use this server without a key; give --api-key KEY or --api-key-file FILE, "
         "or "
         "--no-key-needed if that is meant",
         options.host);
}

}  // namespace

bool is_loopback(const std::string& host) {
    if (host == "localhost") return true;
    in_addr four{};
    if (inet_pton(AF_INET, host.c_str(), &four) == 1) return ntohl(four.s_addr) >> 24 == 127;
    in6_addr six{};
    return inet_pton(AF_INET6, host.c_str(), &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

Server::Server(ServerOptions options) : options_(std::move(options)), gate_(options_.gate) {
    check_address(options_);
    auto tls = make_tls(options_);
    const char* scheme = tls ? "https" : "http";
    http_ = std::make_unique<HttpServer>(callbacks(), options_.limits, std::move(tls));
    const int port = http_->bind(options_.host, options_.port);
    const bool six = options_.host.find(':') != std::string::npos;
    url_ = fmt::format("{}://{}:{}", scheme, six ? "[" + options_.host + "]" : options_.host, port);
    thread_ = std::thread([this] { http_->serve(); });
}

Server::~Server() {
    http_->stop();
    thread_.join();
}

void Server::begin(Service& service) {
    add_chat_completions(router_, service);
    add_completions(router_, service);
    add_native_completion(router_, service);
    add_embeddings(router_, service);
    add_models(router_, service);
    add_responses(router_, service);
    add_messages(router_, service);
    add_tokens(router_, service);
    add_state(router_, service);
    add_metrics(router_, service);
    add_cache(router_, service);
    ready_ = true;
}

HttpCallbacks Server::callbacks() const {
    return {.admit = [this](const HttpRequest& request) { return admit(request); },
            .handle = [this](const HttpRequest& request) { return handle(request); },
            .fail =
                [this](int status, const std::string& message, const HttpRequest& request) {
                    return finished(error_response(status, message, request.path), request);
                }};
}

std::optional<HttpResponse> Server::admit(const HttpRequest& request) const {
    const Gate::Verdict verdict = gate_.judge(request);
    if (verdict == Gate::Verdict::Open) return std::nullopt;
    const bool key = verdict == Gate::Verdict::NoKey || verdict == Gate::Verdict::WrongKey;
    return finished(error_response(key ? 401 : 403, std::string(Gate::explain(verdict)), request.path, {},
                                   key ? "invalid_api_key" : "forbidden"),
                    request);
}

HttpResponse Server::handle(const HttpRequest& request) const { return finished(answer(request), request); }

HttpResponse Server::finished(HttpResponse response, const HttpRequest& request) const {
    for (auto& header : gate_.cors_headers(request)) response.headers.push_back(std::move(header));
    response.headers.emplace_back("X-Content-Type-Options", "nosniff");
    return response;
}

HttpResponse Server::answer(const HttpRequest& request) const {
    try {
        if (request.method == "OPTIONS") return {.status = 204, .content_type = "text/plain"};
        if (request.path == "/health" || request.path == "/v1/health") return health();
        if (const auto asset = page_response(request)) return *asset;
        if (!ready_) return error_response(503, "the model is being loaded", request.path, {}, "loading");
        if (closing_)
            return error_response(503, "the server is shutting down", request.path, {}, "shutting_down");
        return router_.handle(request);
    } catch (const ApiError& error) {
        return error_response(error, request.path);
    } catch (const Error& error) {
        if (http_status(error.code()) >= 500)
            log::error("{} {}: {}", request.method, request.path, error.what());
        return error_response(http_status(error.code()), error.what(), request.path);
    } catch (const std::bad_alloc&) {
        return error_response(503, "out of memory", request.path);
    }
}

HttpResponse Server::health() const {
    if (ready_ && !closing_) return {.body = dump({{"status", "ok"}})};
    return error_response(503, ready_ ? "the server is shutting down" : "the model is being loaded",
                          "/health", {}, ready_ ? "shutting_down" : "loading");
}

}  // namespace coterie::server
