#pragma once

// Only for http_server.cpp: the library's header is large.
#include <httplib.h>
#include <string>

#include "server/http/limits.h"
#include "server/http/socket.h"

namespace coterie::server {

/// One connection as the HTTP library reads and writes it: buffered, with a limit on each request's header
/// and on the time that its parts may take.
class Connection final : public httplib::Stream {
  public:
    Connection(int descriptor, const TlsContext* tls, const HttpLimits& limits)
        : socket_(descriptor, tls), limits_(limits) {}

    /// Whether a request comes before `deadline`; then its time begins.
    bool wait_for_request(SocketTime deadline);
    /// The header has been read; a body of this length follows (0: of none, or of unknown length).
    void begin_body(std::size_t length);
    /// Bytes read since `begin_body`.
    std::size_t body_read() const { return body_read_; }
    /// Ends the answers, then reads on and forgets it, for a moment: a client that is still sending would not
    /// see the last answer if the connection went at once.
    void discard_input();

    bool peer_present() const { return socket_.peer_present(); }
    /// Once it is, nothing that the library writes arrives: it would call the request malformed.
    bool header_too_long() const { return header_too_long_; }
    void write_over_library(const std::string& text) {
        socket_.write(text.data(), text.size(), limits_.write_time);
    }

    bool is_readable() const override { return true; }
    bool is_writable() const override { return socket_.writable() && socket_.peer_present(); }
    ssize_t read(char* into, std::size_t size) override;
    ssize_t write(const char* from, std::size_t size) override;
    void get_remote_ip_and_port(std::string& ip, int& port) const override;
    void get_local_ip_and_port(std::string&, int&) const override {}
    socket_t socket() const override { return socket_.descriptor(); }

  private:
    Socket socket_;
    const HttpLimits& limits_;
    SocketTime deadline_{};
    std::size_t header_left_ = 0;
    bool in_header_ = true;
    bool header_too_long_ = false;
    std::size_t body_read_ = 0;
    std::string buffer_;
    std::size_t position_ = 0;  ///< in the buffer
};

}  // namespace coterie::server
