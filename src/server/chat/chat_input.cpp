#include "server/chat/chat_input.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <random>

#include "chat/reasoning.h"
#include "chat/tools/tool_grammar.h"
#include "chat/written_text.h"
#include "server/chat/answer_constraint.h"
#include "server/chat/written_messages.h"
#include "server/json/api_error.h"

namespace coterie::server {
namespace {

/// Whether the text would become a control token where it is not known to be written.
bool holds_control_tokens(const Tokenizer& tokenizer, const std::string& text) {
    return tokenizer.encode(text, {.special = SpecialTokens::Parse}) !=
           tokenizer.encode(text, {.special = SpecialTokens::Plain});
}

WrittenText render(const ChatInput& input, WrittenMessages& messages, const Service& service) {
    std::vector<bool> suspicious;
    for (const std::string& text : messages.texts()) {
        suspicious.push_back(holds_control_tokens(service.tokenizer(), text));
    }
    const bool tools = input.tool_wish.choice != ToolWish::Choice::None;
    const std::vector<std::string> texts = messages.texts();
    return render_written(texts, suspicious, [&](const std::vector<std::string>& contents) {
        return service.chat_template().render({.messages = messages.with(contents),
                                               .tools = tools ? input.tools : std::string(),
                                               .extra = input.variables});
    });
}

std::uint64_t random_seed() {
    std::random_device random;
    return std::uint64_t{random()} << 32 | random();
}

/// Whether thoughts may come: the template knows them, and the prompt has not closed them already, as
/// templates do where thinking is switched off.
bool may_think(const AnswerParserOptions& parser, std::string_view template_source, std::string_view prompt) {
    if (parser.start == AnswerStart::Reasoning) return true;
    const std::size_t last = prompt.find_last_not_of(" \t\r\n");
    prompt = prompt.substr(0, last == std::string_view::npos ? 0 : last + 1);
    return template_source.find(parser.tags.close) != std::string_view::npos &&
           !prompt.ends_with(parser.tags.close);
}

/// Where thoughts may come before what a grammar describes.
GrammarLeadIn lead_in(const AnswerParserOptions& parser, bool thinks) {
    if (parser.format == ToolFormat::Harmony) {
        return {GrammarLeadIn::Kind::Open, {}, "<|channel|>final<|message|>"};
    }
    const std::string open(parser.tags.open);
    const std::string close(parser.tags.close);
    if (parser.start == AnswerStart::Reasoning) return {GrammarLeadIn::Kind::Open, open, close};
    if (!thinks) return {};
    return {GrammarLeadIn::Kind::Optional, open, close};
}

std::vector<ToolDefinition> wanted_tools(const ChatInput& input) {
    if (input.tools.empty() || input.tool_wish.choice == ToolWish::Choice::None) return {};
    std::vector<ToolDefinition> tools = parse_tools(input.tools);
    if (input.tool_wish.choice != ToolWish::Choice::Named) return tools;
    std::erase_if(tools, [&](const ToolDefinition& tool) { return tool.name != input.tool_wish.name; });
    if (tools.empty()) {
        refuse_field("tool_choice", fmt::format("there is no tool named '{}'", input.tool_wish.name));
    }
    return tools;
}

std::function<std::unique_ptr<scheduler::TokenConstraint>()> constrain_tools(
    const ChatInput& input, const AnswerParserOptions& parser, bool thinks, Service& service) {
    const bool required = input.tool_wish.choice == ToolWish::Choice::Required ||
                          input.tool_wish.choice == ToolWish::Choice::Named;
    const ToolGrammarOptions options{.choice = required ? ToolChoice::Required : ToolChoice::Auto,
                                     .parallel = input.tool_wish.parallel,
                                     .tags = parser.tags,
                                     .start = parser.start,
                                     .thinks = thinks};
    const std::string key = fmt::format("tools\n{}\n{}\n{}\n{}\n{}\n{}\n{}", static_cast<int>(parser.format),
                                        required, options.parallel, static_cast<int>(parser.start), thinks,
                                        input.tool_wish.name, input.tools);
    const auto make = [&service, key, parser, options] {
        return service.constraint(key, [&] { return tool_grammar(parser.format, parser.tools, options); });
    };
    try {
        make();
    } catch (const Error& error) {
        if (error.code() != ErrorCode::InvalidArgument && error.code() != ErrorCode::Unsupported) throw;
        refuse_field("tools", error.what());
    }
    return make;
}

void refuse_contradictions(const ChatInput& input, const Service& service) {
    const bool must_call = input.tool_wish.choice == ToolWish::Choice::Required ||
                           input.tool_wish.choice == ToolWish::Choice::Named;
    if (must_call && input.tools.empty())
        refuse_field("tool_choice", "asks for a call, and there are no tools");
    if (input.tools.empty() || input.tool_wish.choice == ToolWish::Choice::None) return;
    if (service.tool_format() == ToolFormat::None) {
        refuse_field("tools", "this model's chat template takes no tools");
    }
    if (input.format.kind != FormatWish::Kind::Free) {
        refuse_field(input.format.path,
                     "cannot stand beside tools; give one of the two, or tool_choice none");
    }
}

}  // namespace

PreparedChat prepare_chat(const ChatInput& input, Service& service) {
    const ChatTemplate& chat_template = service.chat_template();
    refuse_contradictions(input, service);
    WrittenMessages messages(Json::parse(input.messages));
    PreparedChat chat;
    chat.begun = messages.take_begun_answer();
    const WrittenText prompt = render(input, messages, service);
    chat.text = prompt.rendered + chat.begun;
    chat.tokens = service.tokenizer().encode(
        chat.text, {.special = SpecialTokens::Parse, .ends = TextEnds::Mark, .plain_ranges = prompt.ranges});

    chat.parser.format = service.tool_format();
    chat.parser.tools = wanted_tools(input);
    chat.parser.tags = find_reasoning_tags(chat_template.source());
    chat.parser.start =
        chat.begun.empty() ? answer_start(prompt.rendered, chat.parser.tags) : AnswerStart::Content;
    const bool thinks = chat.begun.empty() && may_think(chat.parser, chat_template.source(), prompt.rendered);
    chat.constraint = chat.parser.tools.empty()
                          ? constrain(input.format, lead_in(chat.parser, thinks), service)
                          : constrain_tools(input, chat.parser, thinks, service);
    return chat;
}

scheduler::Answers submit_chat(const PreparedChat& chat, const Generation& generation,
                               const Service& service) {
    std::vector<scheduler::Request> requests;
    for (int i = 0; i < generation.answers; ++i) {
        requests.push_back(
            make_request(generation, service, chat.tokens, i, chat.constraint ? chat.constraint() : nullptr));
    }
    return submit(std::move(requests), service);
}

std::vector<std::unique_ptr<AnswerParser>> make_parsers(const PreparedChat& chat, int answers) {
    std::vector<std::unique_ptr<AnswerParser>> parsers;
    for (int i = 0; i < answers; ++i) {
        AnswerParserOptions options = chat.parser;
        options.id_seed = random_seed();
        parsers.push_back(make_answer_parser(std::move(options)));
    }
    return parsers;
}

}  // namespace coterie::server
