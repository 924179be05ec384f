#include "chat/reasoning.h"

#include <gtest/gtest.h>
#include <string>

namespace coterie {
namespace {

struct Case {
    const char* name;
    AnswerStart start;
    std::string answer;
    std::string reasoning;
    std::string content;
};

const Case kCases[] = {
    {"plain", AnswerStart::Content, "Hello <b>!", "", "Hello <b>!"},
    {"thoughts", AnswerStart::Content, "<think>\nA thought.\n\nTwo.\n</think>\n\nHi", "A thought.\n\nTwo.",
     "Hi"},
    {"empty pair", AnswerStart::Content, "\n<think></think>\nHi", "", "Hi"},
    {"empty pair with lines", AnswerStart::Content, "<think>\n\n</think>\n\nHi\n", "", "Hi\n"},
    {"opened by the prompt", AnswerStart::Reasoning, "\nA thought.</think>Hi", "A thought.", "Hi"},
    {"opened again", AnswerStart::Reasoning, "\n<think>\nA thought.\n</think>\nHi", "A thought.", "Hi"},
    {"opened by the prompt, empty", AnswerStart::Reasoning, "</think>\n\nHi", "", "Hi"},
    {"opened again, empty", AnswerStart::Reasoning, "\n<think></think>\nHi", "", "Hi"},
    {"closed again", AnswerStart::Content, "</think>\nHi", "", "Hi"},
    {"cut in the thoughts", AnswerStart::Content, "<think>A thought that goes ", "A thought that goes", ""},
    {"cut in the closing tag", AnswerStart::Content, "<think>One</thi", "One</thi", ""},
    {"cut in the opening tag", AnswerStart::Content, " <thin", "", " <thin"},
    {"only the opening tag", AnswerStart::Content, "<think>", "", ""},
    {"cut after an opened prompt", AnswerStart::Reasoning, "<thi", "<thi", ""},
    {"tags in the content", AnswerStart::Content, "<think>a</think>Write <think>b</think>.", "a",
     "Write <think>b</think>."},
    {"a tag later", AnswerStart::Content, "Use <think> so.</think>", "", "Use <think> so.</think>"},
    {"nearly tags", AnswerStart::Content, "<think>a < b </thin> </ <</think>c", "a < b </thin> </ <", "c"},
    {"white space in the content", AnswerStart::Content, "  \n Hi  \n", "", "  \n Hi  \n"},
    {"white space only", AnswerStart::Content, " \n ", "", " \n "},
    {"nothing", AnswerStart::Reasoning, "", "", ""},
    {"umlauts", AnswerStart::Reasoning, "größer</think>漢字", "größer", "漢字"},
};

ReasoningDelta split(const Case& test, std::size_t chunk, const ReasoningTags& tags = {}) {
    ReasoningSplitter splitter(tags, test.start);
    ReasoningDelta sum;
    bool content_began = false;
    const auto add = [&](const ReasoningDelta& delta) {
        EXPECT_FALSE(content_began && !delta.reasoning.empty()) << "thoughts after content";
        content_began = content_began || !delta.content.empty();
        sum.reasoning += delta.reasoning;
        sum.content += delta.content;
    };
    for (std::size_t at = 0; at < test.answer.size(); at += chunk)
        add(splitter.feed(test.answer.substr(at, chunk)));
    add(splitter.finish());
    return sum;
}

TEST(ReasoningSplitter, DoesNotDependOnTheChunks) {
    for (const Case& test : kCases) {
        for (const std::size_t chunk : {1, 2, 3, 7, 1000}) {
            SCOPED_TRACE(std::string(test.name) + " in chunks of " + std::to_string(chunk));
            const ReasoningDelta sum = split(test, chunk);
            EXPECT_EQ(sum.reasoning, test.reasoning);
            EXPECT_EQ(sum.content, test.content);
        }
    }
}

TEST(ReasoningSplitter, GivesTextOutAsSoonAsItIsSure) {
    ReasoningSplitter splitter({}, AnswerStart::Content);
    EXPECT_EQ(splitter.feed("<think>").reasoning, "");
    EXPECT_EQ(splitter.feed("\nOne").reasoning, "One");
    EXPECT_EQ(splitter.feed(" two \n").reasoning, " two");
    EXPECT_EQ(splitter.feed("</thi").reasoning, "");
    EXPECT_EQ(splitter.feed("s three").reasoning, " \n</this three");
    EXPECT_EQ(splitter.feed("</think>\n").content, "");
    EXPECT_EQ(splitter.feed("Hi").content, "Hi");
    EXPECT_EQ(splitter.feed(" <").content, " <");
}

TEST(ReasoningSplitter, KnowsOtherFamilies) {
    const ReasoningTags tags = find_reasoning_tags("{{ '[THINK]' ~ m.reasoning ~ '[/THINK]' }}");
    const ReasoningDelta sum = split({"", AnswerStart::Content, "[THINK]a[/THINK]b", "", ""}, 1, tags);
    EXPECT_EQ(sum.reasoning, "a");
    EXPECT_EQ(sum.content, "b");
    EXPECT_EQ(find_reasoning_tags("{{ messages }}").close, "</think>");
    EXPECT_EQ(find_reasoning_tags("... split('</seed:think>')").open, "<seed:think>");
}

TEST(AnswerStart, FollowsTheEndOfThePrompt) {
    const ReasoningTags tags;
    EXPECT_EQ(answer_start("<|im_start|>assistant\n<think>\n", tags), AnswerStart::Reasoning);
    EXPECT_EQ(answer_start("<|assistant|><think>", tags), AnswerStart::Reasoning);
    EXPECT_EQ(answer_start("<|im_start|>assistant\n<think>\n\n</think>\n\n", tags), AnswerStart::Content);
    EXPECT_EQ(answer_start("<|im_start|>assistant\n", tags), AnswerStart::Content);
    EXPECT_EQ(answer_start(" \n", tags), AnswerStart::Content);
}

}  // namespace
}  // namespace coterie
