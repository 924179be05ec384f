#include "gguf/content_hash.h"

#include <gtest/gtest.h>

#include "gguf/test_files.h"

namespace coterie::gguf {
namespace {

std::uint64_t hash_of(const testing::Bytes& bytes) {
    return content_hash(Archive::from_bytes(bytes, "model"));
}

Header two_tensors(const std::string& second, std::int64_t rows) {
    Header header;
    header.add_tensor({"token_embd.weight", DataType::F32, {8, 3}});
    header.add_tensor({second, DataType::F16, {4, rows}});
    return header;
}

TEST(ContentHashTest, IsOfTheTensorsAndNotOfTheMetadata) {
    const std::uint64_t hash = hash_of(testing::with_pattern(two_tensors("a", 3)));
    Header described = two_tensors("a", 3);
    described.set("general.name", "another name");
    EXPECT_EQ(hash_of(testing::with_pattern(described)), hash);
    EXPECT_NE(hash_of(testing::with_pattern(two_tensors("b", 3))), hash);
    EXPECT_NE(hash_of(testing::with_pattern(two_tensors("a", 4))), hash);
}

TEST(ContentHashTest, SeesAChangedWeight) {
    testing::Bytes bytes = testing::with_pattern(two_tensors("a", 3));
    const std::uint64_t hash = hash_of(bytes);
    const Archive archive = Archive::from_bytes(bytes, "model");
    bytes[archive.tensor("a").file_offset + 5] ^= std::byte{1};
    EXPECT_NE(hash_of(bytes), hash);
}

}  // namespace
}  // namespace coterie::gguf
