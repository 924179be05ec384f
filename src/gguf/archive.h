#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "gguf/file.h"
#include "gguf/metadata_override.h"
#include "gguf/name_index.h"
#include "gguf/reader.h"

namespace coterie::gguf {

/// A model as it lies on disk: one GGUF file, or all files of a split model seen as one.
///
/// Opening reads only directories, never weights. Tensors, names and strings are views that live as long as
/// the Archive, also after it is moved.
class Archive {
  public:
    /// Opens a file; given any one file of a split set, the set. All files of the set must be there and
    /// belong together: it refuses with the names of all missing ones, or of the one that is from another
    /// model.
    static Archive open(const std::filesystem::path& path);

    /// Opens a file that is already in memory (the embedded model); `bytes` must outlive the Archive.
    static Archive from_bytes(std::span<const std::byte> bytes, std::string name);

    /// For messages and listings: the path that was opened.
    const std::string& name() const { return name_; }

    std::span<const File> files() const { return files_; }
    std::uint64_t total_bytes() const;  ///< of all files

    std::uint32_t version() const { return version_; }
    std::uint64_t alignment() const { return alignment_; }
    const Metadata& metadata() const { return metadata_; }  ///< of the first file

    /// Lets values stand for the file's from now on; see gguf/metadata_override.h for what is refused. Views
    /// of metadata from before stay valid. At most once.
    void override_metadata(std::vector<MetadataOverride> overrides);
    std::span<const MetadataOverride> overrides() const { return overrides_; }

    std::span<const Tensor> tensors() const { return tensors_; }  ///< in the order of the files

    /// Null where there is none.
    const Tensor* find_tensor(std::string_view name) const;

    /// Throws InvalidFile naming file and tensor where there is none.
    const Tensor& tensor(std::string_view name) const;

    /// Brings all files into memory; see File::prefault. `progress` counts over all files.
    void prefault(FunctionRef<void(std::uint64_t bytes_done)> progress) const;
    /// The same in memory of this program's own; see File::take_into_memory. Returns Direct where all files
    /// were read so.
    Reading take_into_memory(Reading wish, FunctionRef<void(std::uint64_t bytes_done)> progress) const;

  private:
    Archive(std::string name, std::vector<File> files, Directory first, std::vector<Tensor> tensors);

    std::string name_;
    std::vector<File> files_;
    std::uint32_t version_;
    std::uint64_t alignment_;
    std::vector<MetadataOverride> overrides_;  ///< fixed once the metadata borrows them
    Metadata metadata_;
    std::vector<Tensor> tensors_;
    NameIndex index_;
};

}  // namespace coterie::gguf
