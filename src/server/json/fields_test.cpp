#include "server/json/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "server/json/api_error.h"
#include "server/json/parse.h"
#include "server/json/refused_for_test.h"

namespace coterie::server {
namespace {

TEST(Fields, TakesMissingAndNullForTheSame) {
    const Json body = Json::parse(R"({"a": null, "b": 0})");
    const Fields fields(body);
    EXPECT_FALSE(fields.integer("a", 0, 1));
    EXPECT_FALSE(fields.integer("missing", 0, 1));
    EXPECT_EQ(fields.integer("b", 0, 1), 0);
    EXPECT_TRUE(fields.strings("a", 3).empty());
}

TEST(Fields, TakesWholeNumbersInAnySpellingWithinTheirRange) {
    const Json body =
        Json::parse(R"({"a": 5, "b": 5.0, "c": 5.5, "d": 18446744073709551615, "e": -1, "f": 1e300,
                                      "g": "5", "h": true})");
    const Fields fields(body);
    EXPECT_EQ(fields.integer("a", 0, 10), 5);
    EXPECT_EQ(fields.integer("b", 0, 10), 5);
    for (const char* name : {"c", "d", "e", "f", "g", "h"}) {
        EXPECT_EQ(refused([&] { fields.integer(name, 0, 10); }), name);
    }
}

TEST(Fields, NamesPlacesBelow) {
    const Json body = Json::parse(R"({"format": {"type": "xml"}, "stop": ["a", 1]})");
    const Fields fields(body);
    EXPECT_EQ(refused([&] { fields.object("format")->word("type", {"text"}); }), "format.type");
    EXPECT_EQ(refused([&] { fields.strings("stop", 5); }), "stop[1]");
    EXPECT_EQ(refused([&] { fields.strings("stop", 1); }), "stop");
    EXPECT_EQ(refused([&] { fields.object("stop"); }), "stop");
    EXPECT_EQ(refused([&] { fields.required("nothing"); }), "nothing");
    EXPECT_EQ(refused([&] { fields.required_string("nothing"); }), "nothing");
    EXPECT_EQ(refused([&] { fields.required_string("stop"); }), "stop");
    EXPECT_EQ(refused([&] { fields.object("format")->required_word("kind", {"xml"}); }), "format.kind");
}

TEST(ParseObject, RefusesWhatIsNoObject) {
    for (const char* body : {"", "[]", "1", "{", "{\"a\":}", "{\"a\": \"\xc3\x28\"}", "{\"a\": \"\\ud83d\"}",
                             "{\"a\": 1e999}"}) {
        EXPECT_THROW(parse_object(body), ApiError) << body;
    }
    EXPECT_EQ(parse_object("{\"b\": 1, \"a\": 2}").dump(), "{\"b\":1,\"a\":2}");
}

TEST(ParseObject, ChecksItsLimitsBeforeItBuildsAnything) {
    const JsonLimits limits{.depth = 3, .elements = 10, .keys = 4};
    EXPECT_NO_THROW(parse_object(R"({"a": {"b": [1, 2]}, "c": "[[[[[[{{{{"})", limits));
    EXPECT_THROW(parse_object(R"({"a": {"b": [[1]]}})", limits), ApiError);
    EXPECT_THROW(parse_object(R"({"a": [1,2,3,4,5,6,7,8,9,10,11]})", limits), ApiError);
    EXPECT_THROW(parse_object(R"({"a":1,"b":1,"c":1,"d":1,"e":1})", limits), ApiError);
    EXPECT_NO_THROW(parse_object(R"({"a": "\",,,,,,,,,,,,,,"})", limits));
}

TEST(Dump, ReplacesBytesThatAreNoText) { EXPECT_EQ(dump({{"a", "x\xff"}}), "{\"a\":\"x\xEF\xBF\xBD\"}"); }

}  // namespace
}  // namespace coterie::server
