#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

#include "chat/worker_process.h"

namespace coterie {

using Deadline = std::chrono::steady_clock::time_point;

/// Sends four little-endian length bytes and the body over a stream socket.
Talk send_frame(int socket, std::string_view body, Deadline until);

/// Receives a frame whose first byte is '+' or '-'. A frame that is longer than any honest one (an answer of
/// the longest size, or a short error) or opens otherwise counts as `Talk::Ended`.
Talk receive_reply(int socket, std::size_t longest_answer_bytes, Deadline until, WorkerReply& reply);

}  // namespace coterie
