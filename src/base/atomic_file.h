#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/temporary_path.h"

namespace coterie {

/// Writes a file that appears under its name only when complete: a temporary file beside it, flushed to disk
/// and renamed by `commit`, removed without it and
/// by signals that end the program. Only its owner may read it. A symbolic link of that name is
/// replaced, never followed.
class AtomicFile {
  public:
    /// Throws Io where the folder does not take a new file.
    explicit AtomicFile(std::string path);
    ~AtomicFile();
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;

    /// Takes all bytes or throws Io that says how many were taken before.
    void write(std::span<const std::byte> bytes);
    /// Throws Io; what stood under the name before is then still there.
    void commit();

  private:
    [[noreturn]] void fail_write() const;

    std::string path_;
    std::string temporary_;  ///< empty once committed
    std::optional<TemporaryPath> removal_;
    int descriptor_ = -1;
    std::uint64_t written_ = 0;
};

}  // namespace coterie
