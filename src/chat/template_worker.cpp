#include "chat/template_worker.h"

#include <csignal>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include "base/error.h"
#include "chat/json_text.h"
#include "chat/worker_process.h"

namespace coterie {
namespace {

struct Problem {
    std::string kind;
    std::string message;
    std::string place;  ///< ", line 12", or nothing
};

Problem parse_problem(const std::string& body) {
    const auto json = nlohmann::json::parse(body, nullptr, false);
    COTERIE_CHECK(json.is_object());
    const auto& line = json.at("line");
    return {json.at("kind"), json.at("message"),
            line.is_number() ? fmt::format(", line {}", line.get<int>()) : std::string{}};
}

[[noreturn]] void fail_for(const TemplateText& text, const Problem& problem) {
    if (problem.kind == "syntax") {
        fail(ErrorCode::InvalidFile,
             "chat template {}{}: {}; name another with --chat-template or --chat-template-file", text.name,
             problem.place, problem.message);
    }
    if (problem.kind == "raised") {
        fail(ErrorCode::InvalidArgument, "the chat template refuses this chat: {}", problem.message);
    }
    if (problem.kind == "request") fail(ErrorCode::InvalidArgument, "{}", problem.message);
    fail(ErrorCode::InvalidArgument, "chat template {}{}: {}", text.name, problem.place, problem.message);
}

std::string compile_request(const TemplateText& text) {
    return fmt::format(R"({{"do":"compile","id":{},"source":{},"variables":{}}})", text.id,
                       json_string(text.source, "chat template " + text.name), text.variables_json);
}

std::string how_it_ended(int wait_status) {
    if (WIFSIGNALED(wait_status)) return fmt::format("signal {}", WTERMSIG(wait_status));
    return fmt::format("exit status {}", WEXITSTATUS(wait_status));
}

}  // namespace

TemplateWorker::TemplateWorker(WorkerOptions options) : options_(std::move(options)) {}
TemplateWorker::~TemplateWorker() = default;

void TemplateWorker::prepare() {
    const std::lock_guard lock(mutex_);
    if (!process_) process_ = std::make_unique<WorkerProcess>(options_);
}

void TemplateWorker::compile(const TemplateText& text) {
    const std::lock_guard lock(mutex_);
    answer(text, compile_request(text));
}

std::string TemplateWorker::render(const TemplateText& text, std::string_view variables_json) {
    const std::string request =
        fmt::format(R"({{"do":"render","id":{},"variables":{}}})", text.id, variables_json);
    const std::lock_guard lock(mutex_);
    return answer(text, request);
}

pid_t TemplateWorker::process_id() {
    const std::lock_guard lock(mutex_);
    return process_ ? process_->id() : 0;
}

/// The answer's text. A process that was replaced, or has had many templates, is given this one again.
std::string TemplateWorker::answer(const TemplateText& text, const std::string& request) {
    if (request.size() > options_.longest_request_bytes) {
        fail(ErrorCode::InvalidArgument, "chat of {} bytes: a chat template is given at most {}",
             request.size(), options_.longest_request_bytes);
    }
    for (bool compiled_again = false;; compiled_again = true) {
        WorkerReply reply = exchange(text, request);
        if (reply.accepted) return std::move(reply.body);
        const Problem problem = parse_problem(reply.body);
        if (problem.kind == "memory") process_.reset();
        if (problem.kind != "unknown" || compiled_again) fail_for(text, problem);
        answer(text, compile_request(text));
    }
}

/// One request and its reply. A process that ended for no reason of its own is replaced once.
WorkerReply TemplateWorker::exchange(const TemplateText& text, const std::string& request) {
    for (bool replaced = false;; replaced = true) {
        WorkerReply reply;
        const Talk talk = started_process().exchange(request, options_.deadline, reply);
        if (talk == Talk::Done) return reply;
        const int status = process_->stop();
        process_.reset();
        if (talk == Talk::TooLate) {
            fail(ErrorCode::InvalidArgument, "chat template {}: stopped after {} ms", text.name,
                 options_.deadline.count());
        }
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF) {
            fail(ErrorCode::InvalidArgument, "chat template {}: stopped, it takes too much processor time",
                 text.name);
        }
        if (replaced) {
            fail(ErrorCode::Internal, "chat template {}: its process ended twice ({})", text.name,
                 how_it_ended(status));
        }
    }
}

WorkerProcess& TemplateWorker::started_process() {
    if (!process_) process_ = std::make_unique<WorkerProcess>(options_);
    if (process_->ready()) return *process_;
    WorkerReply reply;
    const Talk talk = process_->receive(options_.start_deadline, reply);
    if (talk == Talk::Done && reply.accepted) {
        process_->set_ready();
        return *process_;
    }
    const int status = process_->stop();
    process_.reset();
    if (talk != Talk::Done) fail_start(status);
    fail(ErrorCode::Unsupported,
         "chat templates need Jinja for {} ({}); install it with: apt-get install python3-jinja2",
         options_.python, parse_problem(reply.body).message);
}

void TemplateWorker::fail_start(int wait_status) {
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == WorkerProcess::kCannotRun) {
        fail(ErrorCode::Unsupported,
             "chat templates need {}; install it with: apt-get install python3-jinja2", options_.python);
    }
    fail(ErrorCode::Unsupported, "chat templates: {} did not start ({})", options_.python,
         how_it_ended(wait_status));
}

}  // namespace coterie
