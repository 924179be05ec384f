#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace coterie {

class WorkerProcess;
struct WorkerReply;

struct WorkerOptions {
    /// Debian's interpreter, which has python3-jinja2 beside it; the first one in PATH may be another.
    std::string python = "/usr/bin/python3";
    double cpu_seconds =
        0.5;  ///< processor time of a request, and 1 s more for each 4 MB; 200 KB take 0.01 s
    std::chrono::milliseconds deadline{
        10'000};  ///< a request's time on the clock, however busy the machine is
    std::chrono::milliseconds start_deadline{30'000};  ///< of the interpreter, which a cold disk may hold up
    std::size_t memory_bytes = 512 << 20;              ///< address space of the process
    std::size_t longest_request_bytes = 64 << 20;
    std::size_t longest_answer_bytes = 64 << 20;
};

/// A template as the worker needs it: its id is unique in this program.
struct TemplateText {
    std::uint64_t id = 0;
    std::string name;
    std::string source;
    std::string variables_json;  ///< object of variables that every rendering of it gets
};

/// Renders chat templates in a process of its own (ADR 0005). Templates are programs from untrusted files:
/// they run in the reference library's sandbox, in a process without network, files to write, children or
/// much memory, and within a time limit. The process starts when it is first needed and is replaced when it
/// ends; it never outlives this one.
///
/// Thread-safe: requests wait for each other.
class TemplateWorker {
  public:
    explicit TemplateWorker(WorkerOptions options = {});
    ~TemplateWorker();
    TemplateWorker(const TemplateWorker&) = delete;
    TemplateWorker& operator=(const TemplateWorker&) = delete;

    /// Starts the process and returns at once; its start (0.15 s) then runs beside the loading of a model.
    void prepare();

    /// Throws InvalidFile for a template with a syntax error, Unsupported where Python or Jinja is not
    /// installed.
    void compile(const TemplateText& text);

    /// `variables` is a JSON object with at least the array "messages". Errors are those of
    /// `ChatTemplate::render`.
    std::string render(const TemplateText& text, std::string_view variables_json);

    /// The running process, 0 if there is none: for tests and diagnosis.
    pid_t process_id();

  private:
    std::string answer(const TemplateText& text, const std::string& request);
    WorkerReply exchange(const TemplateText& text, const std::string& request);
    WorkerProcess& started_process();
    [[noreturn]] void fail_start(int wait_status);

    const WorkerOptions options_;
    std::mutex mutex_;  // guards process_ and the talk with it
    std::unique_ptr<WorkerProcess> process_;
};

}  // namespace coterie
