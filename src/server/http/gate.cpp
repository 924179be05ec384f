#include "server/http/gate.h"

#include <algorithm>
#include <arpa/inet.h>
#include <fstream>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "base/error.h"

namespace coterie::server {
namespace {

constexpr const char* kUsualHeaders = "Authorization, Content-Type, X-Api-Key, Anthropic-Version";

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kBlanks = " \t\r\n";
    const std::size_t first = text.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// Names of hosts and of schemes are the same in any case.
std::string lower(std::string_view text) {
    std::string result(text);
    for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return result;
}

/// "localhost:8080" -> "localhost", "[::1]:8080" -> "::1".
std::string_view without_port(std::string_view host) {
    if (host.substr(0, 1) == "[") return host.substr(1, host.find(']') - 1);
    return host.substr(0, host.find(':'));
}

bool is_address(std::string_view host) {
    const std::string text(host);
    unsigned char bytes[16];
    return inet_pton(AF_INET, text.c_str(), bytes) == 1 || inet_pton(AF_INET6, text.c_str(), bytes) == 1;
}

std::string_view behind(std::string_view text, std::string_view mark) {
    const std::size_t at = text.find(mark);
    return at == std::string_view::npos ? text : text.substr(at + mark.size());
}

/// The key that a request shows, by any of the headers that clients use.
std::string_view shown_key(const HttpRequest& request) {
    const std::string_view authorization = request.header("authorization");
    constexpr std::string_view kScheme = "bearer ";
    if (lower(authorization.substr(0, kScheme.size())) == kScheme) {
        return trimmed(authorization.substr(kScheme.size()));
    }
    return trimmed(request.header("x-api-key"));
}

/// RFC 9110, 5.6.2.
bool is_token(std::string_view text) {
    constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
    const auto belongs = [&](char c) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        return letter || (c >= '0' && c <= '9') || kMarks.find(c) != std::string_view::npos;
    };
    return !text.empty() && std::all_of(text.begin(), text.end(), belongs);
}

/// The headers that a page wants to send: clients' libraries have more of them than could be listed here.
std::string headers_asked_for(const HttpRequest& request) {
    std::string_view rest = request.header("access-control-request-headers");
    std::string names;
    while (!rest.empty()) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        const std::string_view name = trimmed(rest.substr(0, comma));
        rest.remove_prefix(std::min(comma + 1, rest.size()));
        if (!is_token(name)) continue;
        if (!names.empty()) names += ", ";
        names += name;
    }
    return names;
}

}  // namespace

std::vector<std::string> read_key_file(const std::string& path) {
    std::ifstream file(path);
    if (!file) fail(ErrorCode::NotFound, "--api-key-file {}: cannot be read", path);
    std::vector<std::string> keys;
    for (std::string line; std::getline(file, line);) {
        const std::string_view key = trimmed(line);
        if (!key.empty() && key.front() != '#') keys.emplace_back(key);
    }
    if (keys.empty()) fail(ErrorCode::InvalidArgument, "--api-key-file {}: holds no key", path);
    return keys;
}

Gate::Gate(const GateOptions& options) : origins_(options.cors_origins) {
    for (const std::string& host : options.allowed_hosts) hosts_.push_back(lower(host));
    for (const std::string& key : options.keys) keys_.push_back(digest(key));
}

Gate::Digest Gate::digest(std::string_view text) {
    Digest result;
    SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), result.data());
    return result;
}

bool Gate::needs_no_key(const HttpRequest& request) {
    if (request.method == "OPTIONS") return true;
    if (request.method != "GET" && request.method != "HEAD") return false;
    return request.path == "/health" || request.path == "/v1/health" || request.path == "/" ||
           request.path.rfind("/assets/", 0) == 0 || request.path == "/favicon.ico";
}

Gate::Verdict Gate::judge(const HttpRequest& request) const {
    if (!host_allowed(request.header("host"))) return Verdict::WrongHost;
    if (!origin_allowed(request)) return Verdict::WrongOrigin;
    return needs_no_key(request) ? Verdict::Open : judge_key(request);
}

Gate::Verdict Gate::judge_key(const HttpRequest& request) const {
    if (keys_.empty()) return Verdict::Open;
    const std::string_view shown = shown_key(request);
    if (shown.empty()) return Verdict::NoKey;
    const Digest given = digest(shown);
    int matches = 0;  // all are compared, so that the time tells nothing
    for (const Digest& key : keys_)
        matches |= CRYPTO_memcmp(given.data(), key.data(), key.size()) == 0 ? 1 : 0;
    return matches != 0 ? Verdict::Open : Verdict::WrongKey;
}

bool Gate::host_allowed(std::string_view host) const {
    if (!keys_.empty()) return true;
    const std::string name = lower(without_port(host));
    if (name == "localhost" || is_address(name)) return true;
    return std::find(hosts_.begin(), hosts_.end(), name) != hosts_.end();
}

bool Gate::origin_allowed(const HttpRequest& request) const {
    const std::string_view origin = request.header("origin");
    if (origin.empty() || lower(behind(origin, "://")) == lower(request.header("host"))) return true;
    return std::any_of(origins_.begin(), origins_.end(),
                       [&](const std::string& allowed) { return allowed == "*" || allowed == origin; });
}

std::vector<std::pair<std::string, std::string>> Gate::cors_headers(const HttpRequest& request) const {
    const std::string_view origin = request.header("origin");
    if (origin.empty() || origins_.empty() || !origin_allowed(request)) return {};
    const std::string asked_for = headers_asked_for(request);
    return {{"Access-Control-Allow-Origin", std::string(origin)},
            {"Access-Control-Allow-Headers", asked_for.empty() ? kUsualHeaders : asked_for},
            {"Access-Control-Allow-Methods", "GET, POST, OPTIONS"},
            {"Access-Control-Expose-Headers", "Retry-After"},
            {"Vary", "Origin, Access-Control-Request-Headers"}};
}

std::string_view Gate::explain(Verdict verdict) {
    switch (verdict) {
        case Verdict::NoKey:
            return "this server asks for an API key: send it as Authorization: Bearer KEY or X-Api-Key: KEY";
        case Verdict::WrongKey:
            return "the API key is not one of this server's";
        case Verdict::WrongHost:
            return "the Host header names another host; start the server with --allowed-host NAME if it is "
                   "its own";
        case Verdict::WrongOrigin:
            return "pages of this origin may not call; start the server with --cors ORIGIN if they should";
        case Verdict::Open:
            break;
    }
    return "";
}

}  // namespace coterie::server
