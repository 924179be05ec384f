#include "base/standard_streams.h"

#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

namespace coterie {

void say(std::string_view text) {
    static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
    static_cast<void>(std::fflush(stderr));
}

void hold_standard_streams() {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(stream, F_GETFD) >= 0) continue;
        // The lowest free number is given, which is this one. An output for reading only refuses what is
        // written.
        static_cast<void>(::open("/dev/null", O_RDONLY));
    }
}

}  // namespace coterie
