#pragma once

#include <chrono>
#include <cstddef>

namespace coterie::server {

/// What a client may cost before it is turned away.
struct HttpLimits {
    std::size_t body_bytes = 64 << 20;              ///< more is answered with 413
    std::size_t header_bytes = 64 << 10;            ///< of a request, all lines together: 431
    int connections = 256;                          ///< at the same time: 503
    std::chrono::milliseconds header_time{10'000};  ///< from a request's first byte to its body
    /// For a body: this and what a connection of 64 KiB/s needs.
    std::chrono::milliseconds body_time{30'000};
    std::chrono::milliseconds idle_time{30'000};   ///< between two requests of one connection
    std::chrono::milliseconds write_time{30'000};  ///< in which a client must take something
};

}  // namespace coterie::server
