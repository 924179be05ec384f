#include "cli/chat_session.h"

#include "base/error.h"
#include "chat/grammar_lead_in.h"
#include "chat/template_choice.h"
#include "cli/text_input.h"

namespace coterie::cli {
namespace {

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
    try {
        return ChatTemplate::compile(std::move(worker), std::move(choice.source), std::move(choice.name),
                                     special_texts(tokenizer));
    } catch (const Error& error) {
        const bool in_flag = options.template_flag && options.template_file.empty();
        if (!in_flag || error.code() != ErrorCode::InvalidFile) throw;
        throw Error(ErrorCode::InvalidArgument, error.what());
    }
}

ChatSession::ChatSession(engine::Engine& engine, const Tokenizer& tokenizer, ChatTemplate chat_template,
                         const std::string& system_prompt, const speculative::SpeculativeOptions& drafts)
    : engine_(engine),
      tokenizer_(tokenizer),
      template_(std::move(chat_template)),
      tags_(find_reasoning_tags(template_.source())),
      drafts_(drafts),
      kept_turns_(system_prompt.empty() ? 0 : 1),
      sequence_(engine.make_sequence()) {
    if (!system_prompt.empty()) turns_.push_back({Role::System, system_prompt});
}

WrittenText ChatSession::render(const std::vector<Turn>& turns) const {
    std::vector<std::string> contents;
    std::vector<bool> suspicious;
    for (const Turn& turn : turns) {
        contents.push_back(turn.text);
        suspicious.push_back(holds_control_tokens(turn));
    }
    return render_written(contents, suspicious, [&](const std::vector<std::string>& texts) {
        std::vector<Message> messages;
        for (std::size_t i = 0; i < texts.size(); ++i) messages.emplace_back(turns[i].role, texts[i]);
        return template_.render({.messages = to_json(messages)});
    });
}

bool ChatSession::holds_control_tokens(const Turn& turn) const {
    if (turn.role == Role::Assistant) return false;
    return tokenizer_.encode(turn.text, {.special = SpecialTokens::Parse}) !=
           tokenizer_.encode(turn.text, {.special = SpecialTokens::Plain});
}

std::vector<TokenId> ChatSession::encode(const WrittenText& prompt) const {
    return tokenizer_.encode(
        prompt.rendered,
        {.special = SpecialTokens::Parse, .ends = TextEnds::Mark, .plain_ranges = prompt.ranges});
}

GenerationStats ChatSession::ask(const std::string& text, SamplerChain& sampler, std::int64_t limit,
                                 const AnswerSink& sink, engine::StepObserver* observer,
                                 AnswerGrammar* grammar) {
    std::vector<Turn> turns = turns_;
    turns.push_back({Role::User, text});
    const WrittenText prompt = render(turns);
    const std::vector<TokenId> tokens = encode(prompt);

    ReasoningSplitter splitter(tags_, answer_start(prompt.rendered, tags_));
    std::optional<GrammarConstraint> constraint;
    if (grammar) constraint.emplace(grammar->start(grammar_lead_in(template_.source(), prompt.rendered)));
    std::string answer;
    const auto deliver = [&](const ReasoningDelta& delta) {
        if (!delta.reasoning.empty()) sink.reasoning(delta.reasoning);
        if (!delta.content.empty()) sink.content(delta.content);
        answer += delta.content;
    };
    const GenerationStats stats = generate(engine_, sequence_, tokenizer_, sampler,
                                           {.prompt = tokens,
                                            .limit = limit,
                                            .constraint = constraint ? &*constraint : nullptr,
                                            .observer = observer,
                                            .drafts = drafts_},
                                           [&](std::string_view piece) { deliver(splitter.feed(piece)); });
    deliver(splitter.finish());
    turns.push_back({Role::Assistant, answer});
    turns_ = std::move(turns);
    return stats;
}

void ChatSession::clear() {
    turns_.resize(kept_turns_);
    sequence_ = engine_.make_sequence();
}

}  // namespace coterie::cli
