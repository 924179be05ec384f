#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace coterie {

/// Writes a file that appears under its name only when complete: a temporary file beside it, flushed to disk
/// and renamed by `commit`, removed without it. Only its owner may read it. A symbolic link of that name is
/// replaced, never followed.
class AtomicFile {
  public:
    /// Throws Io where the folder does not take a new file.
    explicit AtomicFile(std::string path);
    ~AtomicFile();
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;

    /// Takes all bytes or throws Io.
    void write(std::span<const std::byte> bytes);
    /// Throws Io; what stood under the name before is then still there.
    void commit();

  private:
    [[noreturn]] void fail_write() const;

    std::string path_;
    std::string temporary_;  ///< empty once committed
    int descriptor_ = -1;
};

}  // namespace coterie
