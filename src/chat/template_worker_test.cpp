#include "chat/template_worker.h"

#include <chrono>
#include <csignal>
#include <gmock/gmock.h>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "chat/template.h"
#include "chat/test_support.h"

namespace coterie {
namespace {

using chat_test::error_of;
using testing::HasSubstr;

/// An executable file in place of the interpreter.
class FakeInterpreter {
  public:
    explicit FakeInterpreter(const std::string& text) {
        const int descriptor = mkstemp(path_.data());
        EXPECT_EQ(write(descriptor, text.data(), text.size()), static_cast<ssize_t>(text.size()));
        EXPECT_EQ(fchmod(descriptor, 0755), 0);
        close(descriptor);
    }
    ~FakeInterpreter() { unlink(path_.c_str()); }
    const std::string& path() const { return path_; }

  private:
    std::string path_ = testing::TempDir() + "interpreterXXXXXX";
};

ChatTemplate compile(const std::shared_ptr<TemplateWorker>& worker, const std::string& source) {
    return ChatTemplate::compile(worker, source, "test");
}

std::string start_error(const std::string& python) {
    const auto worker = std::make_shared<TemplateWorker>(WorkerOptions{.python = python});
    return error_of(ErrorCode::Unsupported, [&] { compile(worker, "x"); });
}

bool is_running(pid_t process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    std::string id, name, state;
    file >> id >> name >> state;
    return file && state != "Z" && state != "X";
}

TEST(TemplateWorker, StartsOnlyWhenNeeded) {
    const auto worker = std::make_shared<TemplateWorker>();
    EXPECT_EQ(worker->process_id(), 0);
    EXPECT_EQ(compile(worker, "{{ 1 }}").render({}), "1");
    EXPECT_TRUE(is_running(worker->process_id()));
}

TEST(TemplateWorker, PrepareStartsItWithoutWaiting) {
    const auto worker = std::make_shared<TemplateWorker>();
    // From a thread that ends at once: the process must not end with it.
    std::thread([&] { worker->prepare(); }).join();
    const auto compiled = compile(worker, "{{ 1 }}");
    const pid_t process = worker->process_id();
    worker->prepare();
    EXPECT_EQ(compiled.render({}), "1");
    EXPECT_EQ(worker->process_id(), process);
}

TEST(TemplateWorker, EndsItsProcess) {
    auto worker = std::make_shared<TemplateWorker>();
    compile(worker, "x");
    const pid_t process = worker->process_id();
    worker.reset();
    EXPECT_FALSE(is_running(process));
}

TEST(TemplateWorker, SaysWhatToInstall) {
    EXPECT_EQ(start_error("/no/such/python3"),
              "chat templates need /no/such/python3; install it with: apt-get install python3-jinja2");
    const FakeInterpreter without_jinja(
        "#!/usr/bin/python3 -I\n"
        "import sys\n"
        "sys.modules['jinja2'] = None\n"
        "exec(compile(sys.stdin.read(), 'worker', 'exec'))\n");
    EXPECT_THAT(start_error(without_jinja.path()),
                HasSubstr("install it with: apt-get install python3-jinja2"));
    const FakeInterpreter failing("#!/bin/sh\nexit 3\n");
    EXPECT_THAT(start_error(failing.path()), HasSubstr("did not start (exit status 3)"));
}

TEST(TemplateWorker, RefusesAnInterpreterThatBabbles) {
    const FakeInterpreter babbling("#!/bin/sh\nprintf 'not a frame at all' >&3\n");
    EXPECT_THAT(start_error(babbling.path()), HasSubstr("did not start"));
    const FakeInterpreter boasting("#!/bin/sh\nprintf '\\377\\377\\377\\377+' >&3\n");
    EXPECT_THAT(start_error(boasting.path()), HasSubstr("did not start"));
}

// The interpreter stands in for a template that broke out of the sandbox.
TEST(TemplateWorker, ConfinesTheProcess) {
    const FakeInterpreter curious(
        "#!/usr/bin/python3 -I\n"
        "import json, os, resource, signal, socket, struct\n"
        "def permitted(action):\n"
        "    try:\n"
        "        action()\n"
        "    except (OSError, MemoryError, ValueError):\n"
        "        return False\n"
        "    return True\n"
        "actions = {\n"
        "    'socket': socket.socket,\n"
        "    'fork': os.fork,\n"
        "    'write': lambda: open('/tmp/coterie_worker_test', 'w'),\n"
        "    'remove': lambda: os.rmdir('/tmp/coterie_no_such_folder') if os.path.exists('/') else 0,\n"
        "    'signal': lambda: os.kill(os.getppid(), 0),\n"
        "    'memory': lambda: bytearray(600 << 20),\n"
        "}\n"
        "found = [name for name, action in actions.items() if permitted(action)]\n"
        "found += sorted(set(os.environ) - {'LC_CTYPE', 'TZ'})\n"
        "for descriptor in range(4, 32):\n"
        "    try:\n"
        "        path = os.readlink(f'/proc/self/fd/{descriptor}')\n"
        "        found += [] if 'interpreter' in path else [path]\n"
        "    except OSError:\n"
        "        pass\n"
        "body = b'-' + json.dumps({'kind': 'dependency', 'message': ' '.join(found) or 'nothing',\n"
        "                          'line': None}).encode()\n"
        "os.write(3, struct.pack('<I', len(body)) + body)\n");
    setenv("COTERIE_TEST_SECRET", "x", 1);
    EXPECT_THAT(start_error(curious.path()), HasSubstr("(nothing)"));
    unsetenv("COTERIE_TEST_SECRET");
}

TEST(TemplateWorker, ReplacesAProcessThatWasKilled) {
    const auto worker = std::make_shared<TemplateWorker>();
    const auto compiled = compile(worker, "{{ 1 }}");
    const pid_t first = worker->process_id();
    kill(first, SIGKILL);
    EXPECT_EQ(compiled.render({}), "1");
    EXPECT_NE(worker->process_id(), first);
}

TEST(TemplateWorker, GivesUpOnAProcessThatEndsTwice) {
    const FakeInterpreter dying(
        "#!/usr/bin/python3 -I\n"
        "import os\n"
        "os.write(3, b'\\x01\\x00\\x00\\x00+')\n"
        "os.read(3, 1)\n"
        "os.abort()\n");
    const auto worker = std::make_shared<TemplateWorker>(WorkerOptions{.python = dying.path()});
    EXPECT_EQ(error_of(ErrorCode::Internal, [&] { compile(worker, "x"); }),
              "chat template test: its process ended twice (signal 6)");
}

TEST(TemplateWorker, StopsWhatTakesTooLongOnTheClock) {
    const auto worker = std::make_shared<TemplateWorker>(
        WorkerOptions{.cpu_seconds = 60, .deadline = std::chrono::milliseconds(100)});
    const auto endless =
        compile(worker, "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}");
    EXPECT_EQ(error_of(ErrorCode::InvalidArgument, [&] { endless.render({}); }),
              "chat template test: stopped after 100 ms");
}

TEST(TemplateWorker, KeepsTheLimitsOfSizes) {
    const auto worker = std::make_shared<TemplateWorker>(
        WorkerOptions{.longest_request_bytes = 1000, .longest_answer_bytes = 10});
    EXPECT_EQ(compile(worker, "{{ 'x' * 10 }}").render({}), "xxxxxxxxxx");
    const auto longer = compile(worker, "{{ 'x' * 11 }}");
    EXPECT_EQ(error_of(ErrorCode::InvalidArgument, [&] { longer.render({}); }),
              "chat template test: its text is longer than 10 bytes");
    const auto wide = compile(worker, "{{ 'é' * 6 }}");
    EXPECT_THAT(error_of(ErrorCode::InvalidArgument, [&] { wide.render({}); }),
                HasSubstr("longer than 10 bytes"));
    const RenderRequest request{.messages = "[" + std::string(1000, ' ') + "]"};
    EXPECT_THAT(error_of(ErrorCode::InvalidArgument, [&] { wide.render(request); }),
                HasSubstr("at most 1000"));
}

TEST(TemplateWorker, ServesMoreTemplatesThanItKeeps) {
    const auto worker = std::make_shared<TemplateWorker>();
    std::vector<ChatTemplate> compiled;
    for (int i = 0; i < 40; ++i) compiled.push_back(compile(worker, "{{ " + std::to_string(i) + " }}"));
    for (int i = 0; i < 40; ++i) {
        EXPECT_EQ(compiled[static_cast<std::size_t>(i)].render({}), std::to_string(i));
    }
}

TEST(TemplateWorker, ServesSeveralThreads) {
    const auto worker = std::make_shared<TemplateWorker>();
    const auto compiled = compile(worker, "{{ messages[0].content }}");
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&compiled, i] {
            const std::string text = std::to_string(i);
            for (int run = 0; run < 50; ++run) {
                EXPECT_EQ(compiled.render({.messages = R"([{"role":"user","content":")" + text + "\"}]"}),
                          text);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
}

// A killed program cannot end its worker, and a worker that loops does not see that its pipe was closed.
TEST(TemplateWorker, NeverOutlivesThisProgram) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t program = fork();
    if (program == 0) {
        const auto worker = std::make_shared<TemplateWorker>(
            WorkerOptions{.cpu_seconds = 600, .deadline = std::chrono::minutes(10)});
        const auto endless =
            compile(worker, "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}");
        const pid_t process = worker->process_id();
        std::thread([&] { endless.render({}); }).detach();
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        if (write(ends[1], &process, sizeof process) != sizeof process) _exit(1);
        kill(getpid(), SIGKILL);
    }
    pid_t process = 0;
    close(ends[1]);
    ASSERT_EQ(read(ends[0], &process, sizeof process), static_cast<ssize_t>(sizeof process));
    close(ends[0]);
    waitpid(program, nullptr, 0);
    for (int i = 0; i < 200 && is_running(process); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_FALSE(is_running(process));
}

}  // namespace
}  // namespace coterie
