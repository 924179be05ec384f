#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/atomic_file.h"

namespace coterie {

/// Where a saved state goes, one piece after another: memory for a parked chat, or a file.
class ByteSink {
  public:
    virtual ~ByteSink() = default;
    /// Takes all bytes or throws Io.
    virtual void write(std::span<const std::byte> bytes) = 0;
};

/// Where a saved state comes from. Its size is known before the first byte is read.
class ByteSource {
  public:
    virtual ~ByteSource() = default;
    virtual std::uint64_t size() const = 0;
    /// What error messages call it.
    virtual const std::string& name() const = 0;
    /// Fills `bytes` with what comes next; throws InvalidFile where the source ends before.
    virtual void read(std::span<std::byte> bytes) = 0;
};

class MemorySink final : public ByteSink {
  public:
    void write(std::span<const std::byte> bytes) override {
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    }
    const std::vector<std::byte>& bytes() const { return bytes_; }

  private:
    std::vector<std::byte> bytes_;
};

/// Reads borrowed bytes.
class MemorySource final : public ByteSource {
  public:
    explicit MemorySource(std::span<const std::byte> bytes, std::string name = "saved state")
        : bytes_(bytes), name_(std::move(name)) {}
    std::uint64_t size() const override { return bytes_.size(); }
    const std::string& name() const override { return name_; }
    void read(std::span<std::byte> bytes) override;

  private:
    std::span<const std::byte> bytes_;
    std::size_t position_ = 0;
    std::string name_;
};

/// A file that appears under its name only when complete.
class FileSink final : public ByteSink {
  public:
    /// Throws Io where the folder does not take a new file.
    explicit FileSink(std::string path) : file_(std::move(path)) {}

    void write(std::span<const std::byte> bytes) override { file_.write(bytes); }
    void commit() { file_.commit(); }

  private:
    AtomicFile file_;
};

/// Reads a regular file; symbolic links and anything else are refused (InvalidFile), a missing one is
/// NotFound.
class FileSource final : public ByteSource {
  public:
    explicit FileSource(std::string path);
    ~FileSource() override;
    FileSource(const FileSource&) = delete;
    FileSource& operator=(const FileSource&) = delete;

    std::uint64_t size() const override { return size_; }
    const std::string& name() const override { return path_; }
    void read(std::span<std::byte> bytes) override;

  private:
    std::string path_;
    std::uint64_t size_ = 0;
    int descriptor_ = -1;
};

}  // namespace coterie
