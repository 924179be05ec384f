#include "cli/chat_session.h"

#include "base/error.h"
#include "chat/template_choice.h"
#include "cli/text_input.h"

namespace coterie::cli {
namespace {

/// What was already rendered is text that the template wrote around what people wrote: its markers count.
std::vector<TokenId> encode_prompt(const Tokenizer& tokenizer, const std::string& prompt) {
    return tokenizer.encode(prompt,
                            {.special = SpecialTokens::Parse, .ends = TextEnds::Mark, .plain_ranges = {}});
}

ChatTemplate::SpecialTexts special_texts(const Tokenizer& tokenizer) {
    ChatTemplate::SpecialTexts texts;
    if (const auto bos = tokenizer.bos()) texts["bos_token"] = tokenizer.vocabulary().text(*bos);
    if (const auto eos = tokenizer.eos()) texts["eos_token"] = tokenizer.vocabulary().text(*eos);
    return texts;
}

}  // namespace

ChatTemplate load_chat_template(std::shared_ptr<TemplateWorker> worker, const gguf::Archive& archive,
                                const Tokenizer& tokenizer, const ChatOptions& options) {
    TemplateSources sources;
    if (!options.template_file.empty()) {
        sources.file_text = read_text_file(options.template_file);
        sources.file_name = options.template_file;
    }
    sources.flag = options.template_flag;
    const gguf::Metadata& metadata = archive.metadata();
    if (metadata.has("tokenizer.chat_template")) {
        sources.model_template = std::string(metadata.string("tokenizer.chat_template"));
    }
    sources.vocabulary_has_im_start = tokenizer.vocabulary().find("<|im_start|>").has_value();
    TemplateChoice choice = choose_template(sources);
    return ChatTemplate::compile(std::move(worker), std::move(choice.source), std::move(choice.name),
                                 special_texts(tokenizer));
}

ChatSession::ChatSession(engine::Engine& engine, const Tokenizer& tokenizer, ChatTemplate chat_template,
                         const std::string& system_prompt)
    : engine_(engine),
      tokenizer_(tokenizer),
      template_(std::move(chat_template)),
      tags_(find_reasoning_tags(template_.source())),
      kept_messages_(system_prompt.empty() ? 0 : 1),
      sequence_(engine.make_sequence()) {
    if (!system_prompt.empty()) messages_.emplace_back(Role::System, system_prompt);
}

GenerationStats ChatSession::ask(const std::string& text, SamplerChain& sampler, std::int64_t limit,
                                 const AnswerSink& sink) {
    std::vector<Message> messages = messages_;
    messages.emplace_back(Role::User, text);
    const std::string prompt = template_.render({.messages = to_json(messages)});
    const std::vector<TokenId> tokens = encode_prompt(tokenizer_, prompt);

    ReasoningSplitter splitter(tags_, answer_start(prompt, tags_));
    std::string answer;
    const auto deliver = [&](const ReasoningDelta& delta) {
        if (!delta.reasoning.empty()) sink.reasoning(delta.reasoning);
        if (!delta.content.empty()) sink.content(delta.content);
        answer += delta.content;
    };
    std::vector<TokenId> generated;
    const GenerationStats stats = generate(
        engine_, sequence_, tokenizer_, sampler, {.prompt = tokens, .limit = limit},
        [&](std::string_view piece) { deliver(splitter.feed(piece)); }, generated);
    deliver(splitter.finish());
    messages.emplace_back(Role::Assistant, answer);
    messages_ = std::move(messages);
    return stats;
}

void ChatSession::clear() {
    messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(kept_messages_), messages_.end());
    sequence_ = engine_.make_sequence();
}

}  // namespace coterie::cli
