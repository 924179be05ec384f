#include "gguf/metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

#include "gguf/test_files.h"

namespace coterie::gguf {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;

/// Metadata of a file written with `fill`.
class Written {
  public:
    template <typename Fill>
    explicit Written(Fill fill) : bytes_(write(fill)), metadata_(read_directory(bytes_, "m.gguf").metadata) {}
    const Metadata* operator->() const { return &metadata_; }

  private:
    template <typename Fill>
    static testing::Bytes write(Fill fill) {
        Header header;
        fill(header);
        return testing::with_pattern(header);
    }
    testing::Bytes bytes_;
    Metadata metadata_;
};

TEST(MetadataTest, KeepsEveryTypeAndValue) {
    const auto bytes = testing::with_pattern(testing::header_of_everything());
    const Metadata metadata = read_directory(bytes, "m.gguf").metadata;
    EXPECT_EQ(metadata.integer("u8"), 200);
    EXPECT_EQ(metadata.integer("i8"), -100);
    EXPECT_EQ(metadata.integer("u16"), 60000);
    EXPECT_EQ(metadata.integer("i16"), -30000);
    EXPECT_EQ(metadata.integer("u32"), 4000000000);
    EXPECT_EQ(metadata.integer("i32"), -2000000000);
    EXPECT_EQ(metadata.integer("u64"), 9000000000000000000);
    EXPECT_EQ(metadata.integer("i64"), -9000000000000000000);
    EXPECT_EQ(metadata.number("f32"), static_cast<double>(0.1F));
    EXPECT_EQ(metadata.number("f64"), 0.1);
    EXPECT_TRUE(metadata.boolean("true"));
    EXPECT_EQ(metadata.string("empty"), "");
    EXPECT_EQ(metadata.string("general.architecture"), "test");
    EXPECT_THAT(metadata.numbers("floats").to_vector(), ElementsAre(1.5, -2.5, static_cast<double>(1e30F)));
    EXPECT_THAT(metadata.integers("shorts").to_vector(), ElementsAre(1, 2, 65535));
    EXPECT_EQ(metadata.integers("none").size(), 0U);
    EXPECT_THAT(metadata.strings("words").to_vector(), ElementsAre("one", "", "\u0120three", "f\xFF"));
    EXPECT_EQ(metadata.entries()[1].name, "u8");
    EXPECT_EQ(metadata.entries()[1].value.type, ValueType::U8);
    EXPECT_EQ(metadata.entries().size(), 17U);
}

TEST(MetadataTest, ViewsIterateAndStayInTheFile) {
    const auto bytes = testing::with_pattern(testing::header_of_everything());
    const Metadata metadata = read_directory(bytes, "m.gguf").metadata;
    double sum = 0;
    for (const double value : metadata.numbers("shorts")) sum += value;
    EXPECT_EQ(sum, 1 + 2 + 65535);
    for (const std::string_view word : metadata.strings("words")) {
        const auto* at = reinterpret_cast<const std::byte*>(word.data());
        EXPECT_TRUE(at > bytes.data() && at + word.size() <= bytes.data() + bytes.size());
    }
}

TEST(MetadataTest, IsLiberalAboutIntegerTypes) {
    const Written m([](Header& header) {
        header.set("one.u64", std::uint64_t{1});
        header.set("one.i8", std::int8_t{1});
        header.set("one.bool", true);
        header.set("two.u16", std::uint16_t{2});
    });
    for (const char* key : {"one.u64", "one.i8", "one.bool"}) {
        EXPECT_EQ(m->integer(key), 1);
        EXPECT_EQ(m->number(key), 1.0);
        EXPECT_TRUE(m->boolean(key));
    }
    EXPECT_EQ(m->number("two.u16"), 2.0);
    EXPECT_THAT(message_of([&] { m->boolean("two.u16"); }), HasSubstr("m.gguf: key 'two.u16' is 2"));
}

TEST(MetadataTest, FallbacksServeOnlyMissingKeys) {
    const Written m([](Header& header) { header.set("text", "x"); });
    EXPECT_EQ(m->integer("missing", 7), 7);
    EXPECT_EQ(m->number("missing", 0.5), 0.5);
    EXPECT_TRUE(m->boolean("missing", true));
    EXPECT_EQ(m->string("missing", "default"), "default");
    EXPECT_THAT(m->integers_per_layer("missing", 2, 5), ElementsAre(5, 5));
    EXPECT_THAT(m->numbers_per_layer("missing", 2, 0.5), ElementsAre(0.5, 0.5));
    EXPECT_THAT(message_of([&] { m->integer("text", 7); }),
                HasSubstr("m.gguf: key 'text' is of type string where an integer is meant"));
}

TEST(MetadataTest, NamesFileAndKeyOfWhatIsMissing) {
    const Written m([](Header&) {});
    const auto names_it = AllOf(HasSubstr("m.gguf"), HasSubstr("key 'a.b' is missing"));
    EXPECT_THAT(message_of([&] { m->integer("a.b"); }), names_it);
    EXPECT_THAT(message_of([&] { m->number("a.b"); }), names_it);
    EXPECT_THAT(message_of([&] { m->boolean("a.b"); }), names_it);
    EXPECT_THAT(message_of([&] { m->string("a.b"); }), names_it);
    EXPECT_THAT(message_of([&] { m->strings("a.b"); }), names_it);
    EXPECT_THAT(message_of([&] { m->integers("a.b"); }), names_it);
    EXPECT_THAT(message_of([&] { m->numbers_per_layer("a.b", 3); }), names_it);
}

TEST(MetadataTest, RefusesOtherKinds) {
    const Written m([](Header& header) {
        header.set("float", 1.5F);
        header.set("nan", std::numeric_limits<float>::quiet_NaN());
        header.set("huge", std::uint64_t{1} << 63);
        header.set_array<std::uint32_t>("list", std::vector<std::uint32_t>{1});
        header.set_array("words", std::vector<std::string>{"a"});
    });
    EXPECT_THAT(message_of([&] { m->integer("float"); }), HasSubstr("of type f32 where an integer is meant"));
    EXPECT_THAT(message_of([&] { m->number("nan"); }), HasSubstr("not a finite number"));
    EXPECT_THAT(message_of([&] { m->integer("huge"); }), HasSubstr("holds 9223372036854775808"));
    EXPECT_THAT(message_of([&] { m->integer("list"); }),
                HasSubstr("an array of u32 where a single value is meant"));
    EXPECT_THAT(message_of([&] { m->string("float"); }), HasSubstr("where a string is meant"));
    EXPECT_THAT(message_of([&] { m->strings("list"); }), HasSubstr("where an array of strings is meant"));
    EXPECT_THAT(message_of([&] { m->numbers("words"); }), HasSubstr("where an array of numbers is meant"));
}

TEST(MetadataTest, SpreadsAScalarOverTheLayers) {
    const Written m([](Header& header) {
        header.set("scalar", std::uint32_t{3});
        header.set_array<std::int32_t>("array", std::vector<std::int32_t>{1, 0, 2});
        header.set_array<float>("floats", std::vector<float>{0.5F, 7});
        const bool flags[] = {true, false};
        header.set_array<bool>("flags", flags);
    });
    EXPECT_THAT(m->integers_per_layer("scalar", 3), ElementsAre(3, 3, 3));
    EXPECT_THAT(m->numbers_per_layer("scalar", 2), ElementsAre(3.0, 3.0));
    EXPECT_THAT(m->integers_per_layer("array", 3), ElementsAre(1, 0, 2));
    EXPECT_THAT(m->integers_per_layer("array", 2), ElementsAre(1, 0));
    EXPECT_THAT(m->numbers_per_layer("floats", 2), ElementsAre(0.5, 7.0));
    EXPECT_THAT(m->integers_per_layer("flags", 2), ElementsAre(1, 0));
    EXPECT_THAT(message_of([&] { m->integers_per_layer("array", 4); }),
                HasSubstr("key 'array' has 3 values for 4 layers"));
}

}  // namespace
}  // namespace coterie::gguf
