#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "base/function_ref.h"
#include "gguf/file_reading.h"

namespace coterie::gguf {

/// The bytes of one file: mapped read-only, or lent by the program (the embedded model). Moving it keeps the
/// bytes where they are.
///
/// A mapped file that another program cuts while it is in use ends this program (SIGBUS), as it does with any
/// mapping.
class File {
  public:
    /// Throws NotFound, Io or InvalidArgument (a directory or a device), naming the path.
    static File open(const std::filesystem::path& path);

    /// `bytes` must outlive the File; `name` is what messages call it.
    static File from_bytes(std::span<const std::byte> bytes, std::string name);

    std::span<const std::byte> bytes() const { return bytes_; }
    const std::string& name() const { return name_; }

    /// Brings all pages into memory, telling `progress` how many of this file's bytes are there so far. An
    /// exception from `progress` ends it. Throws Io where the disk cannot be read.
    void prefault(FunctionRef<void(std::uint64_t bytes_done)> progress) const;

    /// Puts memory of this program's own in place of the mapping, with the same bytes at the same addresses:
    /// in huge pages where the system has them, read by several threads. A GPU can read such memory directly
    /// and the CPU reads it faster, but it counts as used, which a mapping does not. Nobody may read the
    /// bytes meanwhile. Does nothing for lent bytes. Returns how it was read: Cached also where the file
    /// system cannot do what `wish` says. Throws OutOfMemory with the mapping as it was, or Io, and then the
    /// bytes are gone.
    Reading take_into_memory(Reading wish, FunctionRef<void(std::uint64_t bytes_done)> progress) const;

  private:
    struct Unmap {
        std::size_t bytes;
        void operator()(void* address) const;
    };

    File(std::span<const std::byte> bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}

    std::span<const std::byte> bytes_;
    std::string name_;
    std::unique_ptr<void, Unmap> mapping_;  ///< null for lent bytes
};

}  // namespace coterie::gguf
