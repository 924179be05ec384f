#include <gtest/gtest.h>

#include "gguf/archive.h"
#include "gguf/test_files.h"

namespace coterie::gguf {
namespace {

// The seeds in the repository are what today's writer makes of `fuzz_seeds`.
TEST(FuzzCorpusTest, SeedsAreCurrent) {
    const auto corpus = std::filesystem::path(COTERIE_SOURCE_DIR) / "tests/fuzz/gguf";
    const auto fresh = std::filesystem::path(::testing::TempDir()) / "gguf-seeds";
    std::filesystem::create_directories(fresh);
    for (const auto& [name, bytes] : testing::fuzz_seeds()) {
        std::ofstream(fresh / name, std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        EXPECT_NO_THROW(Archive::from_bytes(bytes, name));
        EXPECT_TRUE(testing::read_all(corpus / name) == bytes)
            << name << " is out of date: cp " << (fresh / name) << ' ' << corpus;
    }
}

}  // namespace
}  // namespace coterie::gguf
