#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace coterie::server {

/// What a request's header says of its body.
struct BodyFraming {
    bool chunked = false;      ///< the body itself tells where it ends
    std::uint64_t length = 0;  ///< bytes otherwise; 0: there is none
    int refusal = 0;           ///< a status where nothing can be read: 400, 501; 0: none
    std::string problem = {};  ///< in words

    bool refused() const { return refusal != 0; }
    bool no_body() const { return !chunked && length == 0; }
};

/// Follows RFC 9112, 6.3: neither a length nor a coding means that there is no body. What two readers could
/// understand differently is refused, because what follows the body would be a request to one of them alone.
/// `lengths`, `codings`: values of Content-Length and Transfer-Encoding, as often as they stand in the
/// header.
BodyFraming read_framing(const std::vector<std::string>& lengths, const std::vector<std::string>& codings);

}  // namespace coterie::server
