#include "gguf/split_set.h"

#include <fmt/format.h>
#include <string>
#include <string_view>

#include "base/error.h"
#include "gguf/printable.h"

namespace coterie::gguf {
namespace {

constexpr std::string_view kNumber = "split.no";  // from 0
constexpr std::string_view kCount = "split.count";
constexpr std::string_view kTensors = "split.tensors.count";
constexpr std::string_view kArchitecture = "general.architecture";

/// The file's number as names have it. Unsigned, because the key may hold anything.
std::uint64_t number_from_one(const Metadata& metadata) {
    return static_cast<std::uint64_t>(metadata.integer(kNumber, 0)) + 1;
}

void check_files_exist(const ShardName& name) {
    constexpr int kNamesShown = 50;
    std::string missing;
    int count = 0;
    for (int number = 1; number <= name.count; ++number) {
        std::error_code ignored;
        const auto path = name.path_of(number);
        if (std::filesystem::exists(path, ignored)) continue;
        if (++count <= kNamesShown) missing += (count > 1 ? ", " : "") + path.filename().string();
    }
    if (count == 0) return;
    if (count > kNamesShown) missing += fmt::format(" and {} more", count - kNamesShown);
    fail(ErrorCode::NotFound,
         "{}: {} of the {} files of this split model are missing: {}; put them into the same folder",
         name.path_of(name.number).string(), count, name.count, missing);
}

void check_keys(const Directory& directory, std::int64_t number, std::int64_t count) {
    const Metadata& metadata = directory.metadata;
    if (!metadata.has(kNumber) || !metadata.has(kCount)) {
        fail(ErrorCode::InvalidFile,
             "{}: its name says file {} of {}, but it has no keys '{}' and '{}'; it is not part of a split "
             "model: rename it, or get the right file",
             metadata.file(), number + 1, count, kNumber, kCount);
    }
    if (metadata.integer(kNumber) == number && metadata.integer(kCount) == count) return;
    fail(ErrorCode::InvalidFile,
         "{}: its name says file {} of {}, its keys '{}' and '{}' say file {} of {}; it belongs elsewhere, "
         "get the right file",
         metadata.file(), number + 1, count, kNumber, kCount, number_from_one(metadata),
         metadata.integer(kCount));
}

/// What every file of a set must agree on, as far as it has it.
void check_agreement(const Metadata& first, const Metadata& other) {
    if (other.integer(kTensors, first.integer(kTensors)) != first.integer(kTensors)) {
        fail(ErrorCode::InvalidFile,
             "{}: key '{}' is {}, but {} in {}; the file is from another model, get the right one",
             other.file(), kTensors, other.integer(kTensors), first.integer(kTensors), first.file());
    }
    const auto architecture = first.string(kArchitecture, "");
    if (other.string(kArchitecture, architecture) != architecture) {
        fail(ErrorCode::InvalidFile,
             "{}: key '{}' is '{}', but '{}' in {}; the file is from another model, get the right one",
             other.file(), kArchitecture, printable(other.string(kArchitecture)), printable(architecture),
             first.file());
    }
}

void check_tensor_total(const std::vector<Directory>& directories) {
    const Metadata& first = directories.front().metadata;
    std::string counts;
    std::int64_t total = 0;
    for (const Directory& directory : directories) {
        total += static_cast<std::int64_t>(directory.tensors.size());
        counts += fmt::format("{}{}", counts.empty() ? "" : " + ", directory.tensors.size());
    }
    if (total == first.integer(kTensors)) return;
    fail(ErrorCode::InvalidFile,
         "{}: key '{}' promises {} tensors, the {} files hold {} ({}); one of them is from another model, "
         "get the set again",
         first.file(), kTensors, first.integer(kTensors), directories.size(), total, printable(counts));
}

void check_tensor_names(const std::vector<Directory>& directories) {
    std::vector<Tensor> all;
    std::vector<const Directory*> owner;
    for (const Directory& directory : directories) {
        all.insert(all.end(), directory.tensors.begin(), directory.tensors.end());
        owner.resize(all.size(), &directory);
    }
    const auto duplicate = NameIndex(all).duplicate();
    if (!duplicate) return;
    fail(ErrorCode::InvalidFile, "{}: byte {}: tensor '{}' is also in {}; get the set again",
         owner[duplicate->second]->metadata.file(), all[duplicate->second].file_offset,
         printable(all[duplicate->second].name), owner[duplicate->first]->metadata.file());
}

}  // namespace

std::vector<File> open_split_files(const ShardName& name) {
    check_files_exist(name);
    std::vector<File> files;
    for (int number = 1; number <= name.count; ++number) files.push_back(File::open(name.path_of(number)));
    return files;
}

void check_not_split(const Directory& directory) {
    const Metadata& metadata = directory.metadata;
    const std::int64_t count = metadata.integer(kCount, 1);
    if (count <= 1) return;
    fail(ErrorCode::InvalidFile,
         "{}: is file {} of a model split into {}, but its name does not end in '-{:05}-of-{:05}.gguf'; give "
         "the files their names back",
         metadata.file(), number_from_one(metadata), count, number_from_one(metadata), count);
}

void check_split_set(const std::vector<Directory>& directories) {
    const auto count = static_cast<std::int64_t>(directories.size());
    for (std::int64_t i = 0; i < count; ++i) check_keys(directories[static_cast<std::size_t>(i)], i, count);
    for (const Directory& directory : directories) {
        check_agreement(directories.front().metadata, directory.metadata);
    }
    check_tensor_names(directories);
    check_tensor_total(directories);
}

}  // namespace coterie::gguf
