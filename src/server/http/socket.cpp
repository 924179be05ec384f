#include "server/http/socket.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"

namespace coterie::server {
namespace {

std::string tls_error() {
    char text[256] = "unknown error";
    if (const unsigned long code = ERR_get_error()) ERR_error_string_n(code, text, sizeof text);
    return text;
}

void require_file(const std::string& path) {
    if (!std::filesystem::exists(path)) fail(ErrorCode::NotFound, "{}: no such file", path);
}

}  // namespace

void TlsContext::Free::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }
void Socket::Free::operator()(ssl_st* session) const { SSL_free(session); }

TlsContext::TlsContext(const std::string& certificate_file, const std::string& key_file)
    : context_(SSL_CTX_new(TLS_server_method())) {
    if (!context_) fail(ErrorCode::Internal, "TLS: {}", tls_error());
    require_file(certificate_file);
    require_file(key_file);
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
    SSL_CTX_set_mode(context_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (SSL_CTX_use_certificate_chain_file(context_.get(), certificate_file.c_str()) != 1) {
        fail(ErrorCode::InvalidFile, "{}: no usable certificate: {}", certificate_file, tls_error());
    }
    if (SSL_CTX_use_PrivateKey_file(context_.get(), key_file.c_str(), SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context_.get()) != 1) {
        fail(ErrorCode::InvalidFile, "{}: no usable key for the certificate: {}", key_file, tls_error());
    }
}

Socket::Socket(int descriptor, const TlsContext* tls) : descriptor_(descriptor) {
    fcntl(descriptor_, F_SETFL, fcntl(descriptor_, F_GETFL) | O_NONBLOCK);
    if (tls == nullptr) return;
    session_.reset(SSL_new(tls->get()));
    if (!session_) return;
    SSL_set_fd(session_.get(), descriptor_);
    SSL_set_accept_state(session_.get());  // the handshake comes with the first read
}

Socket::~Socket() {
    if (session_) SSL_shutdown(session_.get());
    session_.reset();
    shutdown(descriptor_, SHUT_RDWR);
    close(descriptor_);
}

bool Socket::wait(short events, SocketTime deadline) const {
    while (true) {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
        pollfd entry{descriptor_, events, 0};
        const auto patience = std::clamp<std::int64_t>(left.count(), 0, 60'000);
        const int ready = poll(&entry, 1, static_cast<int>(patience));
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) return false;
        if (ready == 0 && std::chrono::steady_clock::now() >= deadline) return false;
    }
}

/// Sets `wanted` to what must be waited for before another try; 0: none helps.
ssize_t Socket::read_some(char* into, std::size_t size, short& wanted) {
    wanted = 0;
    if (!session_) {
        const ssize_t count = recv(descriptor_, into, size, 0);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) wanted = POLLIN;
        return count;
    }
    ERR_clear_error();
    const int count = SSL_read(session_.get(), into, static_cast<int>(std::min<std::size_t>(size, 1 << 20)));
    if (count > 0) return count;
    const int error = SSL_get_error(session_.get(), count);
    if (error == SSL_ERROR_ZERO_RETURN) return 0;
    if (error == SSL_ERROR_WANT_READ) wanted = POLLIN;
    if (error == SSL_ERROR_WANT_WRITE) wanted = POLLOUT;
    return -1;
}

ssize_t Socket::write_some(const char* from, std::size_t size, short& wanted) {
    wanted = 0;
    if (!session_) {
        const ssize_t count = send(descriptor_, from, size, MSG_NOSIGNAL);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) wanted = POLLOUT;
        return count;
    }
    ERR_clear_error();
    const int count = SSL_write(session_.get(), from, static_cast<int>(std::min<std::size_t>(size, 1 << 20)));
    if (count > 0) return count;
    const int error = SSL_get_error(session_.get(), count);
    if (error == SSL_ERROR_WANT_READ) wanted = POLLIN;
    if (error == SSL_ERROR_WANT_WRITE) wanted = POLLOUT;
    return -1;
}

ssize_t Socket::read(char* into, std::size_t size, SocketTime deadline) {
    while (true) {
        short wanted = 0;
        const ssize_t count = read_some(into, size, wanted);
        if (count >= 0 || wanted == 0) return count;
        if (!wait(wanted, deadline)) return -1;
    }
}

bool Socket::write(const char* from, std::size_t size, std::chrono::milliseconds patience) {
    while (size > 0) {
        short wanted = 0;
        const ssize_t count = write_some(from, size, wanted);
        if (count > 0) {
            from += count;
            size -= static_cast<std::size_t>(count);
        } else if (wanted == 0 || !wait(wanted, std::chrono::steady_clock::now() + patience)) {
            return false;
        }
    }
    return true;
}

void Socket::finish_writing() {
    if (session_) SSL_shutdown(session_.get());
    shutdown(descriptor_, SHUT_WR);
}

bool Socket::readable(SocketTime deadline) const {
    if (session_ && SSL_pending(session_.get()) > 0) return true;
    return wait(POLLIN, deadline);
}

bool Socket::writable() const { return wait(POLLOUT, std::chrono::steady_clock::now()); }

bool Socket::peer_present() const {
    pollfd entry{descriptor_, POLLIN | POLLRDHUP, 0};
    if (poll(&entry, 1, 0) <= 0) return true;
    if ((entry.revents & (POLLHUP | POLLERR | POLLRDHUP)) != 0) return false;
    char byte = 0;
    return recv(descriptor_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
}

}  // namespace coterie::server
