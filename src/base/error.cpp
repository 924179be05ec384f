#include "base/error.h"

#include <cstring>

namespace coterie {

int exit_status(ErrorCode code) {
    switch (code) {
        case ErrorCode::InvalidArgument:
            return 2;
        case ErrorCode::NotFound:
        case ErrorCode::InvalidFile:
        case ErrorCode::Unsupported:
            return 3;
        case ErrorCode::OutOfMemory:
            return 4;
        case ErrorCode::Io:
            return 5;
        case ErrorCode::Cancelled:
            return 130;
        case ErrorCode::Internal:
            break;
    }
    return 1;
}

void fail_check(const char* condition, const char* file, int line) {
    const char* name = std::strrchr(file, '/');
    fail(ErrorCode::Internal, "internal error: '{}' does not hold ({}:{}); please report it", condition,
         name ? name + 1 : file, line);
}

}  // namespace coterie
