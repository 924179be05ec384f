#pragma once

#include <cstddef>
#include <string>

namespace coterie {

/// The name of a file that is not whole yet: it is removed where SIGINT, SIGTERM or SIGHUP end the program,
/// if nobody else handles them.
class TemporaryPath {
  public:
    explicit TemporaryPath(const std::string& path);
    ~TemporaryPath();
    TemporaryPath(const TemporaryPath&) = delete;
    TemporaryPath& operator=(const TemporaryPath&) = delete;

  private:
    std::size_t entry_;
};

}  // namespace coterie
