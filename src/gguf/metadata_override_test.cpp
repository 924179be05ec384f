#include "gguf/metadata_override.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "gguf/archive.h"
#include "gguf/content_hash.h"
#include "gguf/test_files.h"

namespace coterie::gguf {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(const std::string& text) {
    try {
        static_cast<void>(parse_metadata_override(text));
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
        return error.what();
    }
    return {};
}

TEST(MetadataOverrideTest, NamesWhatIsMalformed) {
    const std::pair<const char*, const char*> cases[] = {{"", "no KEY="},
                                                         {"=int:1", "no KEY="},
                                                         {"key", "no KEY="},
                                                         {"key=1", "no TYPE:"},
                                                         {"key=u32:1", "no type 'u32'"},
                                                         {"key=:1", "no type ''"},
                                                         {"key=int:", "'' is no"},
                                                         {"key=int:1.5", "'1.5' is no"},
                                                         {"key=int:99999999999999999999", "64 bits"},
                                                         {"key=float:x", "'x'"},
                                                         {"key=float:nan", "not finite"},
                                                         {"key=bool:1", "true or false"}};
    for (const auto& [text, names] : cases)
        EXPECT_THAT(refusal(text), AllOf(HasSubstr(std::string("--override-kv ") + text), HasSubstr(names)));
}

Archive archive_with(std::vector<MetadataOverride> overrides, testing::Bytes& bytes) {
    Header header;
    header.set("count", std::uint32_t{8});
    header.set("scale", 1.5F);
    header.set("flag", false);
    header.set("name", std::string_view("old"));
    header.set_array<std::uint32_t>("list", std::vector<std::uint32_t>{1, 2});
    bytes = testing::with_pattern(header);
    Archive archive = Archive::from_bytes(bytes, "m.gguf");
    archive.override_metadata(std::move(overrides));
    return archive;
}

TEST(MetadataOverrideTest, ValuesAreReadAsIfTheFileHadThem) {
    testing::Bytes bytes;
    std::vector<MetadataOverride> overrides;
    for (const char* text : {"count=int:5", "count=int:6", "scale=float:-0.25", "flag=bool:true",
                             "name=str:a: b=c", "new=int:-3", "empty=str:"})
        overrides.push_back(parse_metadata_override(text));
    const Archive moved = archive_with(std::move(overrides), bytes);  // views survive the move
    const Metadata& metadata = moved.metadata();
    EXPECT_EQ(metadata.integer("count"), 6);
    EXPECT_EQ(metadata.number("scale"), -0.25);
    EXPECT_TRUE(metadata.boolean("flag"));
    EXPECT_EQ(metadata.string("name"), "a: b=c");
    EXPECT_EQ(metadata.integer("new"), -3);
    EXPECT_EQ(metadata.string("empty"), "");
    EXPECT_EQ(metadata.entries().size(), 7u);
}

/// What was learnt or saved with other values belongs to another model.
TEST(MetadataOverrideTest, OverridesAreAPartOfTheContent) {
    testing::Bytes bytes;
    testing::Bytes same;
    const std::uint64_t five = content_hash(archive_with({parse_metadata_override("count=int:5")}, bytes));
    EXPECT_EQ(five, content_hash(archive_with({parse_metadata_override("count=int:5")}, same)));
    EXPECT_NE(five, content_hash(archive_with({parse_metadata_override("count=int:6")}, same)));
    EXPECT_NE(five, content_hash(archive_with({parse_metadata_override("other=int:5")}, same)));
}

TEST(MetadataOverrideTest, AnotherKindThanTheFilesIsRefused) {
    for (const char* text : {"name=int:1", "count=str:x", "count=float:1.5", "list=int:1", "flag=float:1"}) {
        testing::Bytes bytes;
        try {
            archive_with({parse_metadata_override(text)}, bytes);
            ADD_FAILURE() << text;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
            const std::string key(text, std::string(text).find('='));
            EXPECT_THAT(error.what(), AllOf(HasSubstr("--override-kv " + key), HasSubstr("m.gguf")));
        }
    }
    testing::Bytes bytes;
    EXPECT_EQ(archive_with({parse_metadata_override("scale=int:2")}, bytes).metadata().number("scale"), 2.0);
}

}  // namespace
}  // namespace coterie::gguf
