#include "base/temporary_path.h"

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <optional>
#include <sys/wait.h>
#include <unistd.h>

namespace coterie {
namespace {

namespace fs = std::filesystem;

/// What ends a process that makes both files and keeps one of them.
int ends_with(int signal, const fs::path& whole, const fs::path& half) {
    const pid_t child = ::fork();
    if (child == 0) {
        std::optional<TemporaryPath> first(whole.string());
        const TemporaryPath second(half.string());
        std::ofstream(whole) << "whole";
        std::ofstream(half) << "half";
        first.reset();
        std::raise(signal);
        _exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(TemporaryPath, GoesWithASignalThatEndsTheProgram) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        const fs::path whole = fs::path(testing::TempDir()) / "coterie_temporary_whole";
        const fs::path half = fs::path(testing::TempDir()) / "coterie_temporary_half";
        EXPECT_EQ(ends_with(signal, whole, half), signal);
        EXPECT_TRUE(fs::exists(whole));
        EXPECT_FALSE(fs::exists(half));
        fs::remove(whole);
    }
}

TEST(TemporaryPath, ManyAtOnceAreFine) {
    std::vector<std::unique_ptr<TemporaryPath>> paths;
    for (int i = 0; i < 40; ++i) paths.push_back(std::make_unique<TemporaryPath>("/nowhere/at/all"));
}

}  // namespace
}  // namespace coterie
