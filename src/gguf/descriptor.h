#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace coterie::gguf {

/// A file opened for reading; -1 where that failed, with errno as `open` left it.
class Descriptor {
  public:
    explicit Descriptor(const char* path, int flags = 0)
        : value_(::open(path, O_RDONLY | O_CLOEXEC | flags)) {}
    ~Descriptor() {
        if (value_ >= 0) ::close(value_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int value() const { return value_; }

  private:
    int value_;
};

}  // namespace coterie::gguf
