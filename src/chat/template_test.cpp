#include "chat/template.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <vector>

#include "chat/message.h"
#include "chat/test_support.h"

namespace coterie {
namespace {

using chat_test::data_folder;
using chat_test::error_of;
using chat_test::read_file;
using chat_test::render;
using chat_test::render_error;
using chat_test::shared_worker;
using testing::HasSubstr;

/// A chat of chats.json as a request: known members to their fields, the rest as further variables.
RenderRequest request_from(nlohmann::ordered_json chat) {
    RenderRequest request;
    request.messages = chat.at("messages").dump();
    if (chat.contains("tools")) request.tools = chat.at("tools").dump();
    request.add_generation_prompt = chat.at("add_generation_prompt");
    for (const char* key : {"messages", "tools", "add_generation_prompt"}) chat.erase(key);
    request.extra = chat.empty() ? "" : chat.dump();
    return request;
}

TEST(ChatTemplate, GivesWhatTheReferenceLibraryGives) {
    const auto chats = nlohmann::ordered_json::parse(read_file(data_folder() / "chats.json"));
    const auto expected = nlohmann::ordered_json::parse(read_file(data_folder() / "expected.json"));
    ASSERT_GE(expected.size(), 6U);
    for (const auto& [name, renderings] : expected.items()) {
        const auto source = read_file(data_folder() / (name + ".jinja"));
        const auto compiled = ChatTemplate::compile(shared_worker(), source, name,
                                                    {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
        ASSERT_GE(renderings.size(), 9U);
        for (const auto& [chat, rendering] : renderings.items()) {
            SCOPED_TRACE(name + " with " + chat);
            const RenderRequest request = request_from(chats.at(chat));
            if (rendering.contains("text")) {
                EXPECT_EQ(compiled.render(request), rendering.at("text").get<std::string>());
            } else {
                EXPECT_THAT(error_of(ErrorCode::InvalidArgument, [&] { compiled.render(request); }),
                            HasSubstr(rendering.at("error").get<std::string>()));
            }
        }
    }
}

TEST(ChatTemplate, PassesTheRefusalOnAsItIs) {
    const std::string source = "{{ raise_exception('System message must be at the beginning.') }}";
    EXPECT_EQ(render_error(source),
              "the chat template refuses this chat: System message must be at the beginning.");
    EXPECT_EQ(render("{{ 'alive' }}"), "alive");
}

TEST(ChatTemplate, NamesTheLineOfASyntaxError) {
    const auto compile = [](const std::string& source) {
        return error_of(ErrorCode::InvalidFile,
                        [&] { ChatTemplate::compile(shared_worker(), source, "tokenizer.chat_template"); });
    };
    EXPECT_THAT(compile("one\ntwo\n{% if messages %}\nfour"),
                HasSubstr("chat template tokenizer.chat_template, line 4: Unexpected end of template"));
    EXPECT_THAT(compile("one\n{{ 'a' , }} {% endfor %}"), HasSubstr("line 2: "));
    EXPECT_THAT(compile("{{ 1 | no_such_filter }}"), HasSubstr("line 1: No filter named 'no_such_filter'"));
}

TEST(ChatTemplate, NamesTheLineOfAFailure) {
    EXPECT_EQ(render_error("one\n\n{{ nothing.there }}"),
              "chat template test, line 3: 'nothing' is undefined");
    EXPECT_THAT(render_error("one\n{{ 'text' + 1 }}"), HasSubstr("chat template test, line 2: TypeError: "));
}

TEST(ChatTemplate, GivesTheDate) {
    const std::time_t now = std::time(nullptr);
    char year[8];
    std::strftime(year, sizeof year, "%Y", std::localtime(&now));
    EXPECT_EQ(render("{{ strftime_now('%Y') }}"), year);
}

TEST(ChatTemplate, HasTheFilterFromJson) {
    EXPECT_EQ(render("{% for k, v in ('{\"a\": 1}' | fromjson).items() %}{{ k }}={{ v }}{% endfor %}"),
              "a=1");
}

TEST(ChatTemplate, TheRequestsOwnFieldsWinOverExtraOnes) {
    const RenderRequest request{
        .messages = R"([{"role":"user","content":"right"}])",
        .add_generation_prompt = false,
        .extra = R"( {"messages": [], "add_generation_prompt": true, "own": "kept"} )"};
    EXPECT_EQ(render("{{ messages[0].content }} {{ add_generation_prompt }} {{ own }}", request),
              "right False kept");
}

TEST(ChatTemplate, RefusesWhatIsNotJson) {
    const auto with_messages = [](std::string messages) {
        return render_error("{{ messages }}", {.messages = std::move(messages)});
    };
    EXPECT_THAT(with_messages(R"([{"role":"user","content":"\ud83d"}])"),
                HasSubstr("messages: not valid JSON"));
    EXPECT_THAT(with_messages(R"([{"role":"user","content":"\udc00x"}])"), HasSubstr("not valid JSON"));
    EXPECT_THAT(with_messages("[{\"role\":\"user\",\"content\":\"\xC3\x28\"}]"), HasSubstr("not valid JSON"));
    EXPECT_THAT(with_messages("[],\"tools\":[]"), HasSubstr("not valid JSON"));
    EXPECT_THAT(with_messages("\xEF\xBB\xBF[]"), HasSubstr("not a JSON array"));
    EXPECT_THAT(with_messages("{}"), HasSubstr("not a JSON array"));
    EXPECT_THAT(with_messages(""), HasSubstr("not valid JSON"));
    EXPECT_THAT(render_error("", {.tools = "{}"}), HasSubstr("tools: not a JSON array"));
    EXPECT_THAT(render_error("", {.extra = "[1]"}), HasSubstr("template arguments: not a JSON object"));
    EXPECT_THAT(render_error("", {.messages = "[1]"}), HasSubstr("messages[0] is not an object"));
}

TEST(ChatTemplate, ErrorTextsAreOneLineOfValidText) {
    EXPECT_THAT(render_error("{{ raise_exception('a\\n  b\\ud83d') }}"),
                HasSubstr("refuses this chat: a b?"));
    EXPECT_THAT(render_error("{{ '\\ud83d' }}"), HasSubstr("not valid Unicode"));
    const std::string not_text = "\xFF\xFE";
    EXPECT_THAT(error_of(ErrorCode::InvalidArgument,
                         [&] { ChatTemplate::compile(shared_worker(), not_text, "file"); }),
                HasSubstr("chat template file: it is not valid UTF-8"));
}

TEST(ChatTemplate, RefusesMessagesNestedTooDeeply) {
    const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
    const std::string messages = R"([{"role":"user","content":)" + deep + "}]";
    EXPECT_THAT(render_error("{{ messages }}", {.messages = messages}), HasSubstr("nested too deeply"));
}

/// Processor time that this process and the worker have used: the clock would also count what others run
/// here.
std::chrono::nanoseconds processor_time() {
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    const std::string worker =
        read_file("/proc/" + std::to_string(shared_worker()->process_id()) + "/schedstat");
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec + std::stoll(worker));
}

// Sanitizers and missing optimisation slow our own half (the checks of the JSON text) several times.
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr double kAllowedMilliseconds = 20;
#else
constexpr double kAllowedMilliseconds = 100;
#endif

TEST(ChatTemplate, RendersALongChatInTwentyMilliseconds) {
    std::vector<Message> chat;
    for (int i = 0; i < 200; ++i) {
        chat.emplace_back(i % 2 ? Role::Assistant : Role::User,
                          std::string(1000, static_cast<char>('a' + i % 26)));
    }
    const auto source = read_file(data_folder() / "tools_and_thoughts.jinja");
    const auto compiled = ChatTemplate::compile(shared_worker(), source, "tools_and_thoughts");
    const RenderRequest request{.messages = to_json(chat)};
    compiled.render(request);
    // The fastest of several runs: the others also pay for caches that a busy machine has emptied.
    std::chrono::duration<double, std::milli> fastest = std::chrono::hours(1);
    for (int run = 0; run < 20; ++run) {
        const auto before = processor_time();
        EXPECT_GT(compiled.render(request).size(), 200'000U);
        fastest = std::min<decltype(fastest)>(fastest, processor_time() - before);
    }
    RecordProperty("milliseconds", std::to_string(fastest.count()));
    EXPECT_LE(fastest.count(), kAllowedMilliseconds);
}

}  // namespace
}  // namespace coterie
