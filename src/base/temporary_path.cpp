#include "base/temporary_path.h"

#include <array>
#include <atomic>
#include <climits>
#include <csignal>
#include <cstring>
#include <unistd.h>

namespace coterie {
namespace {

/// What a signal's handler can read at any moment.
struct Entry {
    std::atomic<bool> taken{false};
    std::atomic<bool> complete{false};
    char path[PATH_MAX];
};

constexpr std::size_t kNone = 8;
std::array<Entry, kNone> g_entries;

void remove_all_and_end(int signal) {
    for (Entry& entry : g_entries) {
        if (entry.complete.load()) ::unlink(entry.path);
    }
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

void handle(int signal) {
    struct sigaction now = {};
    if (sigaction(signal, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) return;
    struct sigaction action = {};
    action.sa_handler = remove_all_and_end;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
}

std::size_t take_entry() {
    for (std::size_t i = 0; i < g_entries.size(); ++i) {
        if (!g_entries[i].taken.exchange(true)) return i;
    }
    return kNone;  // then a signal leaves the file behind
}

}  // namespace

TemporaryPath::TemporaryPath(const std::string& path) : entry_(take_entry()) {
    if (entry_ == kNone || path.size() >= PATH_MAX) return;
    std::memcpy(g_entries[entry_].path, path.c_str(), path.size() + 1);
    g_entries[entry_].complete = true;
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) handle(signal);
}

TemporaryPath::~TemporaryPath() {
    if (entry_ == kNone) return;
    g_entries[entry_].complete = false;
    g_entries[entry_].taken = false;
}

}  // namespace coterie
