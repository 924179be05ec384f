#include "program.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <poll.h>
#include <spawn.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace coterie::commands_test {
namespace {

constexpr int kSilenceMilliseconds = 120'000;  ///< a program that says nothing for so long hangs

struct Pipe {
    int read_end;
    int write_end;
};

Pipe make_pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error(std::strerror(errno));
    return {ends[0], ends[1]};
}

/// Removed when the test program ends.
const std::string& cache_folder() {
    static const TemporaryFolder folder;
    static const std::string path = folder.file("cache");
    return path;
}

std::vector<std::string> environment_for(const Program::Setting& setting) {
    std::vector<std::string> result = setting.environment;
    // Routing profiles are kept by default; a test's must meet nobody else's.
    const bool given = std::any_of(result.begin(), result.end(),
                                   [](const auto& text) { return text.starts_with("XDG_CACHE_HOME="); });
    if (!given) result.push_back("XDG_CACHE_HOME=" + cache_folder());
    for (char** variable = environ; *variable; ++variable) {
        const std::string_view text(*variable);
        if (text.starts_with("COTERIE_") || text.starts_with("XDG_CACHE_HOME=")) continue;
        result.emplace_back(text);
    }
    return result;
}

/// Pointers into the strings, and the null behind them that exec wants.
std::vector<char*> pointers(std::vector<std::string>& strings) {
    std::vector<char*> result;
    for (std::string& text : strings) result.push_back(text.data());
    result.push_back(nullptr);
    return result;
}

pid_t spawn(std::vector<std::string> arguments, const Program::Setting& setting, int input, int output,
            int errors) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
    const auto redirect = [&](int stream, const std::string& path) {
        if (path == "-")
            posix_spawn_file_actions_addclose(&actions, stream);
        else if (!path.empty())
            posix_spawn_file_actions_addopen(&actions, stream, path.c_str(), O_WRONLY, 0);
    };
    redirect(STDOUT_FILENO, setting.output_to);
    redirect(STDERR_FILENO, setting.errors_to);
    // The test ignores SIGPIPE and may run where Ctrl-C is ignored; the program should meet the defaults.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&defaults, signal);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);

    arguments.insert(arguments.begin(), setting.name);
    std::vector<std::string> environment = environment_for(setting);
    pid_t process = -1;
    const int error = posix_spawn(&process, COTERIE_PROGRAM, &actions, &attributes,
                                  pointers(arguments).data(), pointers(environment).data());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw std::runtime_error(std::strerror(error));
    return process;
}

/// Appends what can be read; false at the end.
bool read_some(int& from, std::string& to) {
    char buffer[65536];
    const ssize_t count = read(from, buffer, sizeof buffer);
    if (count > 0) {
        to.append(buffer, static_cast<std::size_t>(count));
        return true;
    }
    close(from);
    from = -1;
    return false;
}

}  // namespace

Program::Program(std::vector<std::string> arguments, const Setting& setting) {
    std::signal(SIGPIPE, SIG_IGN);  // a program that ends early leaves input unread
    const Pipe input = make_pipe();
    const Pipe output = make_pipe();
    const Pipe errors = make_pipe();
    process_ = spawn(std::move(arguments), setting, input.read_end, output.write_end, errors.write_end);
    close(input.read_end);
    close(output.write_end);
    close(errors.write_end);
    input_ = input.write_end;
    output_ = output.read_end;
    errors_ = errors.read_end;
}

Program::~Program() {
    for (const int stream : {input_, output_, errors_}) {
        if (stream >= 0) close(stream);
    }
    if (process_ < 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
}

void Program::send(std::string_view text) {
    while (!text.empty()) {
        const ssize_t count = write(input_, text.data(), text.size());
        if (count <= 0) return;
        text.remove_prefix(static_cast<std::size_t>(count));
    }
}

void Program::close_input() {
    if (input_ >= 0) close(input_);
    input_ = -1;
}

/// Waits for either stream and reads it; false when both have ended.
bool Program::read_more() {
    pollfd streams[] = {{output_, POLLIN, 0}, {errors_, POLLIN, 0}};  // poll passes over -1
    if (output_ < 0 && errors_ < 0) return false;
    if (poll(streams, 2, kSilenceMilliseconds) <= 0) {
        ADD_FAILURE() << "the program hangs; it said: " << outcome_.output << outcome_.errors;
        kill(process_, SIGKILL);
        return false;
    }
    if (streams[0].revents != 0) read_some(output_, outcome_.output);
    if (streams[1].revents != 0) read_some(errors_, outcome_.errors);
    return true;
}

void Program::wait_for_output(std::size_t bytes) {
    while (outcome_.output.size() < bytes && output_ >= 0 && read_more()) {
    }
}

void Program::wait_for_errors(std::string_view text) {
    while (outcome_.errors.find(text) == std::string::npos && errors_ >= 0 && read_more()) {
    }
}

void Program::wait_for_end_of_output() {
    while (output_ >= 0 && read_more()) {
    }
}

void Program::send_signal(int signal) {
    if (process_ > 0) kill(process_, signal);
}

void Program::interrupt() { send_signal(SIGINT); }

Outcome Program::finish() {
    close_input();
    while (read_more()) {
    }
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = -1;
    outcome_.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return outcome_;
}

Outcome run(std::vector<std::string> arguments, std::string_view input) {
    Program program(std::move(arguments));
    program.send(input);
    return program.finish();
}

std::string output_of(std::vector<std::string> arguments, std::string_view input) {
    const Outcome outcome = run(std::move(arguments), input);
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    return outcome.output;
}

void expect_error(std::vector<std::string> arguments, int status, const std::vector<std::string>& texts) {
    const Outcome outcome = run(std::move(arguments));
    EXPECT_EQ(outcome.status, status) << outcome.errors;
    EXPECT_EQ(outcome.output, "");
    EXPECT_TRUE(outcome.errors.starts_with("coterie: error: ")) << outcome.errors;
    EXPECT_TRUE(outcome.errors.ends_with('\n')) << outcome.errors;
    EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
    for (const std::string& text : texts) {
        EXPECT_NE(outcome.errors.find(text), std::string::npos) << outcome.errors << "lacks: " << text;
    }
}

TemporaryFolder::TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "coterie-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error(std::strerror(errno));
    path_ = name;
}

TemporaryFolder::~TemporaryFolder() { std::filesystem::remove_all(path_); }

void write_file(const std::string& path, std::string_view bytes) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    EXPECT_TRUE(file) << path;
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace coterie::commands_test
