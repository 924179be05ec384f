// What OpenAI clients send, shown to templates that read only one spelling of it (worker/spellings.py).
#include <gmock/gmock.h>

#include "chat/test_support.h"

namespace coterie {
namespace {

using chat_test::data_folder;
using chat_test::read_file;
using chat_test::render;
using chat_test::render_error;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kCallWithText = R"([
    {"role": "user", "content": "Go"},
    {"role": "assistant", "content": null, "tool_calls": [
        {"id": "call00001", "type": "function", "function": {"name": "go", "arguments": "{\"far\": true}"}}]},
    {"role": "tool", "tool_call_id": "call00001", "content": "gone"}])";

std::string render_file(const std::string& name, const std::string& messages) {
    return render(read_file(data_folder() / (name + ".jinja")), {.messages = messages});
}

TEST(TemplateSpellings, ArgumentsBecomeAnObjectWhereTheTemplateWalksThem) {
    EXPECT_THAT(render_file("observation_marks", kCallWithText),
                HasSubstr("<tool_call>go\n<arg_key>far</arg_key>\n<arg_value>true</arg_value>\n"));
    EXPECT_THAT(render_file("tools_and_thoughts", kCallWithText),
                HasSubstr(R"("arguments": {"far": true}})"));
    EXPECT_THAT(render_file("alternating_turns", kCallWithText),
                HasSubstr(R"([{"name": "go", "arguments": {"far": true}, "id": "call00001"}])"));
}

TEST(TemplateSpellings, ArgumentsBecomeTextWhereTheTemplateAddsThem) {
    const std::string with_object =
        R"([{"role": "user", "content": "Go"}, {"role": "assistant", "tool_calls": [
        {"type": "function", "function": {"name": "go", "arguments": {"far": "größer"}}}]}])";
    EXPECT_THAT(render_file("string_arguments", with_object),
                HasSubstr("go<|sep|>{\"far\": \"größer\"}<|end_call|>"));
    EXPECT_THAT(render_file("string_arguments", kCallWithText),
                HasSubstr("go<|sep|>{\"far\": true}<|end_call|>"));
}

TEST(TemplateSpellings, EmptyArgumentsAreAnEmptyObject) {
    const std::string messages =
        R"([{"role": "user", "content": "Go"}, {"role": "assistant", "content": "", "tool_calls": [
        {"type": "function", "function": {"name": "go", "arguments": ""}}]}])";
    EXPECT_THAT(render_file("tools_and_thoughts", messages), HasSubstr(R"("arguments": {}})"));
}

TEST(TemplateSpellings, ArgumentsThatAreNoJsonStayText) {
    const std::string messages =
        R"([{"role": "user", "content": "Go"}, {"role": "assistant", "content": "", "tool_calls": [
        {"type": "function", "function": {"name": "go", "arguments": "{\"cut"}}]}])";
    EXPECT_THAT(render_file("tools_and_thoughts", messages), HasSubstr(R"("arguments": {"cut})"));
}

TEST(TemplateSpellings, NullContentIsEmptyWhereTheTemplateWouldPrintIt) {
    constexpr const char* kPrints = "{% for m in messages %}[{{ m.content }}]{% endfor %}";
    EXPECT_EQ(render(kPrints, {.messages = R"([{"role": "assistant", "content": null}, {"role": "user"}])"}),
              "[][]");
    EXPECT_EQ(render(kPrints, {.messages = kCallWithText}), "[Go][][gone]");
    constexpr const char* kAsks =
        "{% for m in messages if m.tool_calls %}{{ m.content is none }}{{ m.tool_calls[0].function.name }}{% "
        "endfor %}";
    EXPECT_EQ(render(kAsks, {.messages = kCallWithText}), "Truego");
}

TEST(TemplateSpellings, TextPartsAreJoinedWhereTheTemplateTakesTextOnly) {
    const std::string parts = R"([{"role": "user", "content": [
        {"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}])";
    EXPECT_EQ(render_file("alternating_turns", parts), "<s>[INST] one\ntwo[/INST]");
    EXPECT_EQ(render("{{ messages[0].content }}", {.messages = parts}), "one\ntwo");
    EXPECT_EQ(render("{{ messages[0].content | tojson }}", {.messages = parts}), "\"one\\ntwo\"");
    EXPECT_EQ(
        render("{% for part in messages[0].content %}({{ part.text }}){% endfor %}", {.messages = parts}),
        "(one)(two)");
}

TEST(TemplateSpellings, ImagesForATextOnlyTemplateAreRefusedByName) {
    const std::string image =
        R"([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}])";
    EXPECT_EQ(render_error("{{ messages[0].content }}", {.messages = image}),
              "messages[0]: this chat template takes text only, not a part of type 'image_url'");
}

TEST(TemplateSpellings, DeveloperIsSystemUnlessTheTemplateKnowsIt) {
    const std::string messages = R"([{"role": "developer", "content": "rules"}])";
    EXPECT_EQ(render("{{ messages[0].role }}", {.messages = messages}), "system");
    EXPECT_EQ(render("{{ messages[0].role == 'developer' }}", {.messages = messages}), "True");
}

TEST(TemplateSpellings, HarmlessFieldsDoNoHarm) {
    const std::string messages = R"([
        {"role": "developer", "content": "Rules", "name": null, "strict": true},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}], "name": "ann", "metadata": {"a": 1}},
        {"role": "assistant", "content": null, "tool_calls": [], "refusal": null, "audio": null},
        {"role": "assistant", "content": "Hello", "tool_calls": null, "function_call": null},
        {"role": "user", "content": "Bye", "unknown": [1, 2, {"x": null}]}])";
    for (const char* name :
         {"tools_and_thoughts", "observation_marks", "typed_channels", "string_arguments"}) {
        SCOPED_TRACE(name);
        const std::string text = render_file(name, messages);
        EXPECT_THAT(text, HasSubstr("Rules"));
        EXPECT_THAT(text, HasSubstr("Bye"));
        EXPECT_THAT(text, Not(HasSubstr("None")));
    }
}

TEST(TemplateSpellings, ToolCallsOfAStrangeKindAreRefused) {
    const std::string messages = R"([{"role": "assistant", "content": "", "tool_calls": {"name": "x"}}])";
    EXPECT_EQ(render_error("{{ messages }}", {.messages = messages}), "tool_calls is not a list of objects");
}

}  // namespace
}  // namespace coterie
