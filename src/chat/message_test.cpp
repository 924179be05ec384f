#include "chat/message.h"

#include <gmock/gmock.h>
#include <vector>

#include "chat/test_support.h"

namespace coterie {
namespace {

using chat_test::error_of;
using testing::HasSubstr;

TEST(Message, OfARoleAndAText) {
    EXPECT_EQ(Message(Role::User, "a \"b\"\n\xC3\xA9").json(),
              "{\"role\":\"user\",\"content\":\"a \\\"b\\\"\\n\xC3\xA9\"}");
    EXPECT_EQ(Message(Role::Developer, "").json(), R"({"role":"developer","content":""})");
}

TEST(Message, KeepsARequestsTextAsItIs) {
    const std::string json = R"( {"z": 1.50, "role": "assistant", "a": {"b": []}, "content": null} )";
    EXPECT_EQ(Message::from_json(json).json(), json);
}

TEST(Message, ManyBecomeAnArray) {
    EXPECT_EQ(to_json(std::vector<Message>{}), "[]");
    EXPECT_EQ(to_json(std::vector{Message(Role::System, "s"), Message(Role::Tool, "t")}),
              R"([{"role":"system","content":"s"},{"role":"tool","content":"t"}])");
}

TEST(Message, RefusesWhatIsNoMessage) {
    const auto error = [](const char* json) {
        return error_of(ErrorCode::InvalidArgument, [&] { Message::from_json(json); });
    };
    EXPECT_THAT(error("[]"), HasSubstr("message: not a JSON object"));
    EXPECT_THAT(error(R"({"content": "x"})"), HasSubstr("\"role\" is missing"));
    EXPECT_THAT(error(R"({"role": 1})"), HasSubstr("\"role\" is missing or not a string"));
    EXPECT_THAT(error(R"({"role": "user",})"), HasSubstr("message: not valid JSON at byte 17: "));
    EXPECT_THAT(error(R"({"role": "\udead"})"), HasSubstr("not valid JSON"));
    EXPECT_THAT(error_of(ErrorCode::InvalidArgument, [] { Message(Role::User, "\xC3\x28"); }),
                HasSubstr("message text: it is not valid UTF-8"));
}

}  // namespace
}  // namespace coterie
