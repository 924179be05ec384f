#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <sys/types.h>

struct ssl_ctx_st;
struct ssl_st;

namespace coterie::server {

using SocketTime = std::chrono::steady_clock::time_point;

/// A server's certificate and key, for any number of connections.
class TlsContext {
  public:
    /// PEM files. Throws InvalidFile naming the file that OpenSSL refuses; NotFound for one that is missing.
    TlsContext(const std::string& certificate_file, const std::string& key_file);

    ssl_ctx_st* get() const { return context_.get(); }

  private:
    struct Free {
        void operator()(ssl_ctx_st* context) const;
    };
    std::unique_ptr<ssl_ctx_st, Free> context_;
};

/// A connected socket, encrypted or not, on which nothing waits for longer than it is told.
class Socket {
  public:
    /// Takes the descriptor over. `tls` null: plain.
    Socket(int descriptor, const TlsContext* tls);
    ~Socket();
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;

    /// Bytes read; 0 at the end; -1 after the deadline or an error.
    ssize_t read(char* into, std::size_t size, SocketTime deadline);
    /// All of them, or false.
    bool write(const char* from, std::size_t size, std::chrono::milliseconds patience);

    /// Tells the other side that nothing more comes; it can still be read.
    void finish_writing();

    /// Whether something can be read in time; the end counts.
    bool readable(SocketTime deadline) const;
    bool writable() const;
    /// Whether the other side has not closed the connection.
    bool peer_present() const;

    int descriptor() const { return descriptor_; }

  private:
    struct Free {
        void operator()(ssl_st* session) const;
    };
    bool wait(short events, SocketTime deadline) const;
    ssize_t read_some(char* into, std::size_t size, short& wanted);
    ssize_t write_some(const char* from, std::size_t size, short& wanted);

    int descriptor_;
    std::unique_ptr<ssl_st, Free> session_;  ///< null: plain
};

}  // namespace coterie::server
