#include "chat/template_choice.h"

#include <gmock/gmock.h>
#include <map>

#include "chat/embedded.h"
#include "chat/test_support.h"

namespace coterie {
namespace {

using chat_test::error_of;
using testing::HasSubstr;

TEST(TemplateChoice, TheFileWinsThenTheFlagThenTheModel) {
    TemplateSources sources{
        .file_text = "file", .file_name = "x.jinja", .flag = "chatml", .model_template = "model"};
    EXPECT_EQ(choose_template(sources).source, "file");
    EXPECT_EQ(choose_template(sources).name, "x.jinja");
    sources.file_text.reset();
    EXPECT_EQ(choose_template(sources).name, "chatml");
    sources.flag = "{{ 'inline' }}";
    EXPECT_EQ(choose_template(sources).source, "{{ 'inline' }}");
    sources.flag.reset();
    EXPECT_EQ(choose_template(sources).source, "model");
    EXPECT_EQ(choose_template(sources).name, "tokenizer.chat_template");
}

TEST(TemplateChoice, ChatmlWithoutAskingOnlyWhereTheVocabularyHasIt) {
    EXPECT_EQ(choose_template({.vocabulary_has_im_start = true}).name, "chatml");
    EXPECT_EQ(error_of(ErrorCode::InvalidArgument, [] { choose_template({}); }),
              "this model has no chat template; name one with --chat-template (" + builtin_template_names() +
                  ") or --chat-template-file");
}

TEST(TemplateChoice, UnknownNamesListTheKnownOnes) {
    EXPECT_THAT(error_of(ErrorCode::InvalidArgument, [] { choose_template({.flag = "chatm"}); }),
                HasSubstr("--chat-template 'chatm': no such template; there are chatml, "));
    EXPECT_EQ(choose_template({.flag = "deepseek"}).name, "deepseek2");
}

// A broken template of the model is never replaced: the error is the template's, and a named one works.
TEST(TemplateChoice, ABrokenTemplateIsAnErrorUntilAnotherIsNamed) {
    TemplateSources sources{.model_template = "{% if messages %}", .vocabulary_has_im_start = true};
    const TemplateChoice broken = choose_template(sources);
    EXPECT_THAT(
        error_of(ErrorCode::InvalidFile,
                 [&] { ChatTemplate::compile(chat_test::shared_worker(), broken.source, broken.name); }),
        HasSubstr("tokenizer.chat_template, line 1"));
    sources.flag = "chatml";
    EXPECT_EQ(chat_test::render(choose_template(sources).source,
                                {.messages = R"([{"role":"user","content":"Hi"}])"}),
              "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
}

TEST(BuiltinTemplates, GiveTheFormsOfTheirFamilies) {
    const RenderRequest request{.messages = R"([
        {"role": "system", "content": "S"}, {"role": "user", "content": "U1"},
        {"role": "assistant", "content": "A1"}, {"role": "user", "content": "U2"}])"};
    const std::map<std::string_view, std::string> expected = {
        {"chatml",
         "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU1<|im_end|>\n<|im_start|>assistant\nA1<|im_end|"
         ">\n"
         "<|im_start|>user\nU2<|im_end|>\n<|im_start|>assistant\n"},
        {"deepseek2", "<s>S\n\nUser: U1\n\nAssistant: A1</s>User: U2\n\nAssistant:"},
        {"deepseek3", "<s>S<｜User｜>U1<｜Assistant｜>A1<｜end▁of▁sentence｜><｜User｜>U2<｜Assistant｜>"},
        {"glm4", "[gMASK]<sop><|system|>\nS<|user|>\nU1<|assistant|>\nA1<|user|>\nU2<|assistant|>\n"},
        {"gpt-oss", ""},  // has the date in it: below
        {"llama2", "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nU1 [/INST] A1 </s><s>[INST] U2 [/INST]"},
        {"llama3",
         "<s><|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|><|start_header_id|>user<|end_header_id|"
         ">\n\n"
         "U1<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nA1<|eot_id|>"
         "<|start_header_id|>user<|end_header_id|>\n\nU2<|eot_id|><|start_header_id|>assistant<|end_header_"
         "id|>\n\n"},
        {"mimo",
         "<|im_start|>system\nS<|im_end|><|im_start|>user\nU1<|im_end|><|im_start|>assistant\n<think></"
         "think>A1"
         "<|im_end|><|im_start|>user\nU2<|im_end|><|im_start|>assistant\n"},
        {"mistral", "<s> [INST] S\n\nU1 [/INST] A1</s>[INST] U2 [/INST]"},
        {"olmoe", "<s><|system|>\nS\n<|user|>\nU1\n<|assistant|>\nA1</s>\n<|user|>\nU2\n<|assistant|>\n"},
    };
    ASSERT_EQ(embedded_templates().size(), expected.size());
    for (const EmbeddedText& row : embedded_templates()) {
        SCOPED_TRACE(row.name);
        ASSERT_TRUE(expected.contains(row.name));
        const std::string text = chat_test::render(std::string(row.text), request);
        if (row.name != "gpt-oss") {
            EXPECT_EQ(text, expected.at(row.name));
        }
    }
}

TEST(BuiltinTemplates, GptOssHasItsChannels) {
    const RenderRequest request{
        .messages = R"([{"role": "developer", "content": "D"}, {"role": "user", "content": "U1"},
        {"role": "assistant", "content": "A1"}, {"role": "user", "content": "U2"}])",
        .extra = R"({"reasoning_effort": "high"})"};
    const std::string text = chat_test::render(choose_template({.flag = "gpt-oss"}).source, request);
    EXPECT_THAT(text, HasSubstr("\n\nReasoning: high\n\n"));
    EXPECT_THAT(text, testing::EndsWith("Channel must be included for every message.<|end|>"
                                        "<|start|>developer<|message|># Instructions\n\nD<|end|>"
                                        "<|start|>user<|message|>U1<|end|>"
                                        "<|start|>assistant<|channel|>final<|message|>A1<|end|>"
                                        "<|start|>user<|message|>U2<|end|><|start|>assistant"));
}

TEST(BuiltinTemplates, ThinkingCanBeSwitched) {
    const auto prompt_end = [](const char* name, const char* extra) {
        const std::string text =
            chat_test::render(choose_template({.flag = name}).source,
                              {.messages = R"([{"role":"user","content":"U"}])", .extra = extra});
        return text.substr(text.find("U") == std::string::npos ? 0 : text.rfind("U"));
    };
    EXPECT_EQ(prompt_end("chatml", R"({"enable_thinking": false})"),
              "U<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n");
    EXPECT_THAT(prompt_end("glm4", R"({"enable_thinking": false})"),
                HasSubstr("<|assistant|>\n<think></think>"));
    EXPECT_THAT(prompt_end("deepseek3", R"({"thinking": true})"),
                testing::EndsWith("<｜Assistant｜><think>"));
    EXPECT_THAT(prompt_end("deepseek3", R"({"thinking": false})"),
                testing::EndsWith("<｜Assistant｜></think>"));
}

}  // namespace
}  // namespace coterie
