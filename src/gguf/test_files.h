#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include "gguf/reader.h"
#include "gguf/writer.h"

/// What the tests of this folder share: files built by the writer, files built byte by byte, and a folder to
/// put them.
namespace coterie::gguf::testing {

using Bytes = std::vector<std::byte>;

/// Byte b of tensor t is t * 31 + b, so that each tensor's data is its own.
inline std::byte pattern(std::size_t tensor, std::uint64_t at) {
    return static_cast<std::byte>(tensor * 31 + at);
}

inline constexpr auto write_pattern = [](std::size_t tensor, TensorOutput& output) {
    for (std::uint64_t at = 0; output.left() > 0; ++at) {
        const std::byte value = pattern(tensor, at);
        output.append(std::span(&value, 1));
    }
};

inline Bytes with_pattern(const Header& header) { return write_bytes(header, write_pattern); }

/// A file put together byte by byte, to be wrong on purpose.
class RawFile {
  public:
    explicit RawFile(std::uint32_t version = 3, std::uint64_t tensors = 0, std::uint64_t keys = 0) {
        text("GGUF").u32(version).u64(tensors).u64(keys);
    }
    RawFile& u8(std::uint8_t value) { return append(value); }
    RawFile& u32(std::uint32_t value) { return append(value); }
    RawFile& u64(std::uint64_t value) { return append(value); }
    RawFile& text(std::string_view value) {
        for (const char c : value) bytes_.push_back(static_cast<std::byte>(c));
        return *this;
    }
    RawFile& string(std::string_view value) { return u64(value.size()).text(value); }
    RawFile& zeros(std::size_t count) {
        bytes_.resize(bytes_.size() + count);
        return *this;
    }
    RawFile& tensor(std::string_view name, const std::vector<std::uint64_t>& dims, std::uint32_t type,
                    std::uint64_t offset) {
        string(name).u32(static_cast<std::uint32_t>(dims.size()));
        for (const std::uint64_t dim : dims) u64(dim);
        return u32(type).u64(offset);
    }
    operator Bytes() const { return bytes_; }  // NOLINT(google-explicit-constructor): reads as the bytes

  private:
    template <typename T>
    RawFile& append(T value) {
        for (const std::byte byte : std::as_bytes(std::span(&value, 1))) bytes_.push_back(byte);
        return *this;
    }
    Bytes bytes_;
};

/// A value of every type, scalar and array, and tensors of several types and ranks.
inline Header header_of_everything(std::uint32_t alignment = Header::kDefaultAlignment) {
    Header header(alignment);
    header.set("general.architecture", "test");
    header.set("u8", std::uint8_t{200});
    header.set("i8", std::int8_t{-100});
    header.set("u16", std::uint16_t{60000});
    header.set("i16", std::int16_t{-30000});
    header.set("u32", std::uint32_t{4000000000});
    header.set("i32", std::int32_t{-2000000000});
    header.set("u64", std::uint64_t{9000000000000000000});
    header.set("i64", std::int64_t{-9000000000000000000});
    header.set("f32", 0.1F);
    header.set("f64", 0.1);
    header.set("true", true);
    header.set("empty", "");
    header.set_array<float>("floats", std::vector<float>{1.5F, -2.5F, 1e30F});
    header.set_array<std::uint16_t>("shorts", std::vector<std::uint16_t>{1, 2, 65535});
    header.set_array<std::int32_t>("none", std::span<const std::int32_t>());
    header.set_array("words", std::vector<std::string>{"one", "", "\u0120three", "f\xFF"});
    header.add_tensor({"token_embd.weight", DataType::F32, {8, 3}});
    header.add_tensor({"output_norm.weight", DataType::F16, {5}});
    header.add_tensor({"blk.0.ffn_gate_exps.weight", DataType::Q8_0, {32, 2, 3}});
    header.add_tensor({"blk.0.ffn_down_exps.weight", DataType::Q4_K, {256, 1, 3}});
    header.add_tensor({"blk.0.four", DataType::I16, {1, 2, 3, 4}});
    return header;
}

/// A small split model: tensors of `first` and `count` - 1 more files, each with one tensor.
inline Header shard_header(std::uint16_t number, std::uint16_t count, std::int32_t total) {
    Header header;
    if (number == 0) header.set("general.architecture", "test");
    header.set("split.no", number);
    header.set("split.count", count);
    header.set("split.tensors.count", total);
    header.add_tensor({fmt::format("blk.{}.weight", number), DataType::F32, {4}});
    return header;
}

/// The seeds of the fuzzer, by file name: small valid files that together reach every branch of the reader.
inline std::map<std::string, Bytes> fuzz_seeds() {
    std::map<std::string, Bytes> seeds;
    seeds["everything.gguf"] = with_pattern(header_of_everything());
    seeds["alignment-64.gguf"] = with_pattern(header_of_everything(64));
    seeds["shard.gguf"] = with_pattern(shard_header(0, 1, 1));
    seeds["no-content.gguf"] = with_pattern(Header());
    Bytes old = with_pattern(header_of_everything());
    old[4] = std::byte{2};
    seeds["version-2.gguf"] = old;
    return seeds;
}

/// An empty folder of its own, removed with all it holds.
class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "gguf-XXXXXX").string();
        path_ = ::mkdtemp(name.data());
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const std::filesystem::path& path() const { return path_; }

    std::filesystem::path write(const std::string& name, const Bytes& bytes) const {
        std::ofstream(path_ / name, std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        return path_ / name;
    }

  private:
    std::filesystem::path path_;
};

inline Bytes read_all(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

/// The message of the Error that `action` must throw; empty if it throws none.
template <typename Action>
std::string message_of(Action action) {
    try {
        action();
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

inline std::string refusal(const Bytes& bytes) {
    return message_of([&] { read_directory(bytes, "model.gguf"); });
}

}  // namespace coterie::gguf::testing
