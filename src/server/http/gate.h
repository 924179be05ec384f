#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/message.h"

namespace coterie::server {

struct GateOptions {
    std::vector<std::string> keys = {};  ///< any of them opens; empty: no key is asked for
    std::vector<std::string> allowed_hosts =
        {};                                      ///< names under which the server may be called, without port
    std::vector<std::string> cors_origins = {};  ///< pages of other origins that may call; "*": all
};

/// Reads a file of keys, one a line; empty lines and those that begin with # do not count. Throws NotFound,
/// and InvalidArgument for a file without any.
std::vector<std::string> read_key_file(const std::string& path);

/// Who may come in, decided by the header alone.
///
/// Keys are compared in constant time, by their digests. Pages of other origins are turned away unless they
/// are allowed. Where no key protects the server, it answers only under an address or a name of its own, so
/// that no page can reach it by pointing a name of its own at it.
class Gate {
  public:
    explicit Gate(const GateOptions& options);

    enum class Verdict { Open, NoKey, WrongKey, WrongHost, WrongOrigin };
    Verdict judge(const HttpRequest& request) const;
    /// What to tell the client.
    static std::string_view explain(Verdict verdict);

    /// Headers for a page of another origin that may call; empty for others.
    std::vector<std::pair<std::string, std::string>> cors_headers(const HttpRequest& request) const;

    /// Paths that need no key: they neither compute, show nor change anything.
    static bool needs_no_key(const HttpRequest& request);

  private:
    using Digest = std::array<unsigned char, 32>;
    Verdict judge_key(const HttpRequest& request) const;
    bool host_allowed(std::string_view host) const;
    bool origin_allowed(const HttpRequest& request) const;
    static Digest digest(std::string_view text);

    std::vector<Digest> keys_;
    std::vector<std::string> hosts_;  ///< in lower case
    std::vector<std::string> origins_;
};

}  // namespace coterie::server
