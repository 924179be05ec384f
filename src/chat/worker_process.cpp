#include "chat/worker_process.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/error.h"
#include "chat/embedded.h"
#include "chat/frame_channel.h"
#include "chat/worker_launch.h"

namespace coterie {
namespace {

/// Grace for a process that closed its end to leave by itself, so that its own status is seen and not our
/// signal.
constexpr auto kGrace = std::chrono::milliseconds(200);

[[noreturn]] void fail_system(const char* call) {
    fail(ErrorCode::Io, "chat templates: cannot start their process: {}: {}", call, std::strerror(errno));
}

/// A pipe that already holds the whole program and has no writer: the interpreter's standard input.
OwnedDescriptor program_pipe() {
    std::string program;
    for (const EmbeddedText& part : embedded_worker_program()) program += part.text;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail_system("pipe2");
    OwnedDescriptor read_end(ends[0]);
    const OwnedDescriptor write_end(ends[1]);
    // A pipe takes 64 KiB without a reader (pipe(7)), or one page in a process group that has opened very
    // many.
    fcntl(write_end.get(), F_SETPIPE_SZ, static_cast<int>(program.size()));
    fcntl(write_end.get(), F_SETFL, O_NONBLOCK);
    if (write(write_end.get(), program.data(), program.size()) != static_cast<ssize_t>(program.size())) {
        fail_system("write");
    }
    return read_end;
}

}  // namespace

OwnedDescriptor& OwnedDescriptor::operator=(OwnedDescriptor&& other) noexcept {
    if (this != &other) {
        close();
        descriptor_ = other.release();
    }
    return *this;
}

void OwnedDescriptor::close() {
    if (descriptor_ >= 0) ::close(release());
}

int OwnedDescriptor::release() { return std::exchange(descriptor_, -1); }

WorkerProcess::WorkerProcess(const WorkerOptions& options) : options_(options) {
    OwnedDescriptor program = program_pipe();
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail_system("socketpair");
    channel_ = OwnedDescriptor(ends[0]);
    keeper_ = std::thread(&WorkerProcess::keep, this, std::move(program), OwnedDescriptor(ends[1]));
}

/// The keeper's life: start, wait to be told, end the child, collect its status. The child stays a zombie
/// until then, so its id cannot have passed to another process when it is signalled.
void WorkerProcess::keep(OwnedDescriptor program, OwnedDescriptor channel) {
    const pid_t id = launch_worker({.python = options_.python.c_str(),
                                    .cpu_seconds = options_.cpu_seconds,
                                    .longest_answer_bytes = options_.longest_answer_bytes,
                                    .memory_bytes = options_.memory_bytes,
                                    .program = program.get(),
                                    .channel = channel.get()});
    program.close();
    channel.close();
    process_id_ = id;
    stop_.acquire();
    if (id <= 0) return;
    siginfo_t ended{};
    for (auto waited = kGrace; waited.count() > 0 && ended.si_pid == 0;
         waited -= std::chrono::milliseconds(5)) {
        if (waitid(P_PID, static_cast<id_t>(id), &ended, WEXITED | WNOHANG | WNOWAIT) != 0) break;
        if (ended.si_pid == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    kill(id, SIGKILL);
    while (waitpid(id, &wait_status_, 0) < 0 && errno == EINTR) continue;
}

int WorkerProcess::stop() {
    channel_.close();
    if (keeper_.joinable()) {
        stop_.release();
        keeper_.join();
        process_id_ = 0;
    }
    return wait_status_;
}

Talk WorkerProcess::exchange(std::string_view request, std::chrono::milliseconds deadline,
                             WorkerReply& reply) {
    const auto until = std::chrono::steady_clock::now() + deadline;
    // A process that ended early may have said why: its reply is read even where it did not take the whole
    // request.
    if (send_frame(channel_.get(), request, until) == Talk::TooLate) return Talk::TooLate;
    return receive_reply(channel_.get(), options_.longest_answer_bytes, until, reply);
}

Talk WorkerProcess::receive(std::chrono::milliseconds deadline, WorkerReply& reply) {
    const auto until = std::chrono::steady_clock::now() + deadline;
    return receive_reply(channel_.get(), options_.longest_answer_bytes, until, reply);
}

}  // namespace coterie
