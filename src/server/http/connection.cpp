#include "server/http/connection.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cstring>
#include <netdb.h>

namespace coterie::server {
namespace {

constexpr std::size_t kBufferBytes = 16 << 10;
constexpr std::size_t kSlowestBytesPerMillisecond = 64;

SocketTime in(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

}  // namespace

bool Connection::wait_for_request(SocketTime deadline) {
    if (position_ == buffer_.size() && (!socket_.readable(deadline) || !socket_.peer_present())) return false;
    deadline_ = in(limits_.header_time);
    header_left_ = limits_.header_bytes;
    in_header_ = true;
    return true;
}

void Connection::begin_body(std::size_t length) {
    in_header_ = false;
    body_read_ = 0;
    const std::size_t counted = std::min(length, limits_.body_bytes);
    deadline_ = in(limits_.body_time + std::chrono::milliseconds(counted / kSlowestBytesPerMillisecond));
}

ssize_t Connection::read(char* into, std::size_t size) {
    if (position_ == buffer_.size()) {
        buffer_.resize(kBufferBytes);
        const ssize_t count = socket_.read(buffer_.data(), buffer_.size(), deadline_);
        position_ = 0;
        buffer_.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
        if (count <= 0) return count;
    }
    std::size_t count = std::min(size, buffer_.size() - position_);
    if (in_header_) {
        count = std::min(count, header_left_);
        header_too_long_ = count == 0;
        if (header_too_long_) return -1;
        header_left_ -= count;
    } else {
        body_read_ += count;
    }
    std::memcpy(into, buffer_.data() + position_, count);
    position_ += count;
    return static_cast<ssize_t>(count);
}

ssize_t Connection::write(const char* from, std::size_t size) {
    if (header_too_long_) return static_cast<ssize_t>(size);
    return socket_.write(from, size, limits_.write_time) ? static_cast<ssize_t>(size) : -1;
}

void Connection::discard_input() {
    socket_.finish_writing();
    const SocketTime deadline = in(std::chrono::milliseconds(2000));
    std::size_t left = 4 * limits_.body_bytes;
    char scrap[kBufferBytes];
    while (left > 0) {
        const ssize_t count = socket_.read(scrap, sizeof scrap, deadline);
        if (count <= 0) return;
        left -= std::min(left, static_cast<std::size_t>(count));
    }
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    char host[NI_MAXHOST] = "";
    char service[NI_MAXSERV] = "";
    if (getpeername(socket_.descriptor(), reinterpret_cast<sockaddr*>(&address), &length) != 0) return;
    if (getnameinfo(reinterpret_cast<sockaddr*>(&address), length, host, sizeof host, service, sizeof service,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        return;
    }
    ip = host;
    port = std::atoi(service);
}

}  // namespace coterie::server
