#include "chat/frame_channel.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <poll.h>
#include <sys/socket.h>

namespace coterie {
namespace {

constexpr std::size_t kLongestError = 64 << 10;

/// Waits until the socket can be read or written; false once the deadline has passed.
bool wait_for(int socket, short events, Deadline until) {
    for (;;) {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
        if (left.count() <= 0) return false;
        pollfd waited{.fd = socket, .events = events, .revents = 0};
        if (poll(&waited, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 60'000))) > 0) return true;
    }
}

bool must_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

Talk send_all(int socket, std::string_view data, Deadline until) {
    while (!data.empty()) {
        if (!wait_for(socket, POLLOUT, until)) return Talk::TooLate;
        const ssize_t sent = send(socket, data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && !must_wait()) return Talk::Ended;
        if (sent > 0) data.remove_prefix(static_cast<std::size_t>(sent));
    }
    return Talk::Done;
}

Talk receive_all(int socket, char* data, std::size_t size, Deadline until) {
    while (size > 0) {
        if (!wait_for(socket, POLLIN, until)) return Talk::TooLate;
        const ssize_t received = recv(socket, data, size, MSG_DONTWAIT);
        if (received == 0 || (received < 0 && !must_wait())) return Talk::Ended;
        if (received > 0) {
            data += received;
            size -= static_cast<std::size_t>(received);
        }
    }
    return Talk::Done;
}

}  // namespace

Talk send_frame(int socket, std::string_view body, Deadline until) {
    std::array<char, 4> header{};
    for (std::size_t i = 0; i < header.size(); ++i) header[i] = static_cast<char>(body.size() >> (8 * i));
    const Talk talk = send_all(socket, {header.data(), header.size()}, until);
    return talk == Talk::Done ? send_all(socket, body, until) : talk;
}

Talk receive_reply(int socket, std::size_t longest_answer_bytes, Deadline until, WorkerReply& reply) {
    std::array<char, 5> header{};
    if (const Talk talk = receive_all(socket, header.data(), header.size(), until); talk != Talk::Done) {
        return talk;
    }
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i)
        length |= std::size_t{static_cast<unsigned char>(header[i])} << (8 * i);
    const char mark = header[4];
    if (length == 0 || (mark != '+' && mark != '-')) return Talk::Ended;
    if (length - 1 > std::max(longest_answer_bytes, kLongestError)) return Talk::Ended;
    reply.accepted = mark == '+';
    reply.body.resize(length - 1);
    return receive_all(socket, reply.body.data(), reply.body.size(), until);
}

}  // namespace coterie
