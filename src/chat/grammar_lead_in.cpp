#include "chat/grammar_lead_in.h"

#include "chat/reasoning.h"

namespace coterie {

GrammarLeadIn grammar_lead_in(std::string_view template_source, std::string_view prompt) {
    using Kind = GrammarLeadIn::Kind;
    if (template_source.find("<|channel|>") != std::string_view::npos) return {Kind::Harmony};
    const ReasoningTags tags = find_reasoning_tags(template_source);
    if (template_source.find(tags.close) == std::string_view::npos) return {};
    GrammarLeadIn lead_in = {Kind::Optional, std::string(tags.open), std::string(tags.close)};
    if (answer_start(prompt, tags) == AnswerStart::Reasoning) lead_in.kind = Kind::Open;
    const std::size_t end = prompt.find_last_not_of(" \t\r\n") + 1;  // npos + 1 is 0
    if (prompt.substr(0, end).ends_with(tags.close)) return {};      // the prompt has closed them
    return lead_in;
}

}  // namespace coterie
