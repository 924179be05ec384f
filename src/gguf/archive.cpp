#include "gguf/archive.h"

#include <numeric>
#include <utility>

#include "base/error.h"
#include "gguf/printable.h"
#include "gguf/shard_name.h"
#include "gguf/split_set.h"

namespace coterie::gguf {
namespace {

std::vector<Directory> read_directories(const std::vector<File>& files) {
    std::vector<Directory> directories;
    directories.reserve(files.size());
    for (const File& file : files) directories.push_back(read_directory(file.bytes(), file.name()));
    return directories;
}

std::vector<Tensor> all_tensors(const std::vector<Directory>& directories) {
    std::vector<Tensor> tensors;
    for (std::size_t shard = 0; shard < directories.size(); ++shard) {
        for (Tensor tensor : directories[shard].tensors) {
            tensor.shard = static_cast<std::uint32_t>(shard);
            tensors.push_back(tensor);
        }
    }
    return tensors;
}

}  // namespace

Archive::Archive(std::string name, std::vector<File> files, Directory first, std::vector<Tensor> tensors)
    : name_(std::move(name)),
      files_(std::move(files)),
      version_(first.version),
      alignment_(first.alignment),
      metadata_(std::move(first.metadata)),
      tensors_(std::move(tensors)),
      index_(tensors_) {}

Archive Archive::open(const std::filesystem::path& path) {
    const auto shard = parse_shard_name(path);
    std::vector<File> files;
    if (shard) {
        files = open_split_files(*shard);
    } else {
        files.push_back(File::open(path));
    }
    auto directories = read_directories(files);
    if (shard) {
        check_split_set(directories);
    } else {
        check_not_split(directories.front());
    }
    auto tensors = all_tensors(directories);
    return {path.string(), std::move(files), std::move(directories.front()), std::move(tensors)};
}

Archive Archive::from_bytes(std::span<const std::byte> bytes, std::string name) {
    Directory directory = read_directory(bytes, name);
    check_not_split(directory);
    std::vector<File> files;
    files.push_back(File::from_bytes(bytes, name));
    auto tensors = std::move(directory.tensors);
    return {std::move(name), std::move(files), std::move(directory), std::move(tensors)};
}

void Archive::override_metadata(std::vector<MetadataOverride> overrides) {
    COTERIE_CHECK(overrides_.empty());
    overrides_ = std::move(overrides);
    metadata_ = gguf::override_metadata(metadata_, overrides_);
}

std::uint64_t Archive::total_bytes() const {
    return std::accumulate(files_.begin(), files_.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const File& file) { return sum + file.bytes().size(); });
}

const Tensor* Archive::find_tensor(std::string_view name) const {
    const auto at = index_.find(name);
    return at ? &tensors_[*at] : nullptr;
}

const Tensor& Archive::tensor(std::string_view name) const {
    const Tensor* found = find_tensor(name);
    if (!found) {
        fail(ErrorCode::InvalidFile,
             "{}: tensor '{}' is missing; get another copy of the model or convert it again", name_,
             printable(name));
    }
    return *found;
}

void Archive::prefault(FunctionRef<void(std::uint64_t)> progress) const {
    std::uint64_t before = 0;
    for (const File& file : files_) {
        file.prefault([&](std::uint64_t done) { progress(before + done); });
        before += file.bytes().size();
    }
}

Reading Archive::take_into_memory(Reading wish, FunctionRef<void(std::uint64_t)> progress) const {
    std::uint64_t before = 0;
    Reading read = wish;
    for (const File& file : files_) {
        read = file.take_into_memory(read, [&](std::uint64_t done) { progress(before + done); });
        before += file.bytes().size();
    }
    return read;
}

}  // namespace coterie::gguf
