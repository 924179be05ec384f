#include "chat/tools/tool_grammar.h"

#include <fmt/format.h>
#include <utility>
#include <vector>

#include "base/error.h"
#include "chat/tools/plain_arguments.h"
#include "sampling/grammar/compile.h"
#include "sampling/grammar/json_schema/schema_rules.h"

namespace coterie {
namespace {

using grammar::ExpressionId;
using grammar::RuleSet;

constexpr std::string_view kDeepSeekCalls = "<\uFF5Ctool\u2581calls\u2581begin\uFF5C>";
constexpr std::string_view kDeepSeekCallsEnd = "<\uFF5Ctool\u2581calls\u2581end\uFF5C>";
constexpr std::string_view kDeepSeekCall = "<\uFF5Ctool\u2581call\u2581begin\uFF5C>";
constexpr std::string_view kDeepSeekCallEnd = "<\uFF5Ctool\u2581call\u2581end\uFF5C>";
constexpr std::string_view kDeepSeekSeparator = "<\uFF5Ctool\u2581sep\uFF5C>";

/// Writes the calls of one format.
class CallWriter {
  public:
    CallWriter(RuleSet& rules, ToolFormat format, std::span<const ToolDefinition> tools)
        : rules_(rules), format_(format), tools_(tools) {}

    /// The text that begins the first call and never stands in other text.
    std::string_view trigger() const {
        switch (format_) {
            case ToolFormat::MistralArgs:
            case ToolFormat::MistralList:
                return "[TOOL_CALLS]";
            case ToolFormat::DeepSeek:
            case ToolFormat::DeepSeek31:
                return kDeepSeekCalls;
            default:
                return "<tool_call>";
        }
    }

    ExpressionId calls(bool parallel) {
        const auto row = [&](std::string_view between) { return list(call_of_any(), between, parallel); };
        switch (format_) {
            case ToolFormat::MistralList:
                return sequence({mark("[TOOL_CALLS]"), text("["), row(", "), text("]")});
            case ToolFormat::MistralArgs:
            case ToolFormat::Harmony:
                return row("");
            case ToolFormat::DeepSeek:
                return sequence({mark(kDeepSeekCalls), row("\n"), mark(kDeepSeekCallsEnd)});
            case ToolFormat::DeepSeek31:
                return sequence({mark(kDeepSeekCalls), row(""), mark(kDeepSeekCallsEnd)});
            default:
                return row("\n");
        }
    }

  private:
    ExpressionId text(std::string_view bytes) { return rules_.bytes(bytes); }
    ExpressionId mark(std::string_view name) { return rules_.marker(name); }
    ExpressionId sequence(std::vector<ExpressionId> parts) { return rules_.sequence(std::move(parts)); }

    ExpressionId list(ExpressionId item, std::string_view between, bool parallel) {
        if (!parallel) return item;
        const ExpressionId more = sequence({text(between), item});
        return sequence({item, rules_.repeat(more, 0, grammar::kUnbounded)});
    }

    ExpressionId call_of_any() {
        std::vector<ExpressionId> ways;
        for (const ToolDefinition& tool : tools_) ways.push_back(call(tool));
        return rules_.choice(std::move(ways));
    }

    ExpressionId call(const ToolDefinition& tool) {
        const std::string head = fmt::format(R"({{"name": "{}", "arguments": )", tool.name);
        switch (format_) {
            case ToolFormat::Hermes:
                return sequence(
                    {mark("<tool_call>"), text("\n" + head), json(tool), text("}\n"), mark("</tool_call>")});
            case ToolFormat::QwenCoder:
                return sequence({mark("<tool_call>"), text("\n<function=" + tool.name + ">\n"),
                                 plain(tool, PlainForm::Parameter), text("</function>\n"),
                                 mark("</tool_call>")});
            case ToolFormat::Glm:
                return sequence({mark("<tool_call>"), text(tool.name + "\n"),
                                 plain(tool, PlainForm::KeyAndValue), mark("</tool_call>")});
            case ToolFormat::MistralList:
                return sequence({text(head), json(tool), text("}")});
            case ToolFormat::MistralArgs:
                return sequence({mark("[TOOL_CALLS]"), text(tool.name), mark("[ARGS]"), json(tool)});
            case ToolFormat::DeepSeek:
                return sequence({mark(kDeepSeekCall), text("function"), mark(kDeepSeekSeparator),
                                 text(tool.name + "\n```json\n"), json(tool), text("\n```"),
                                 mark(kDeepSeekCallEnd)});
            case ToolFormat::DeepSeek31:
                return sequence({mark(kDeepSeekCall), text(tool.name), mark(kDeepSeekSeparator), json(tool),
                                 mark(kDeepSeekCallEnd)});
            case ToolFormat::Harmony:
                return sequence({mark("<|channel|>"), text("commentary to=functions." + tool.name + " "),
                                 mark("<|constrain|>"), text("json"), mark("<|message|>"), json(tool)});
            case ToolFormat::None:
                break;
        }
        fail(ErrorCode::InvalidArgument, "the model's chat template does not say how tools are called");
    }

    static grammar::Unsupported unsupported(const ToolDefinition& tool) {
        return tool.strict ? grammar::Unsupported::Refuse : grammar::Unsupported::Loosen;
    }

    /// Where even a looser schema cannot be had, any arguments will do, unless the tool is strict.
    template <typename Make>
    ExpressionId arguments(const ToolDefinition& tool, Make make) {
        try {
            return make();
        } catch (const Error& error) {
            if (tool.strict) fail(error.code(), "tool '{}': {}", tool.name, error.what());
            return any_arguments(tool);
        }
    }

    ExpressionId json(const ToolDefinition& tool) {
        return arguments(tool, [&] {
            return rules_.call(grammar::add_schema_rules(rules_, tool.parameters, unsupported(tool)));
        });
    }

    ExpressionId plain(const ToolDefinition& tool, PlainForm form) {
        return arguments(tool, [&] { return plain_arguments(rules_, tool, form, unsupported(tool)); });
    }

    ExpressionId any_arguments(const ToolDefinition& tool) {
        if (format_ == ToolFormat::QwenCoder) return any_plain_arguments(rules_, tool, PlainForm::Parameter);
        if (format_ == ToolFormat::Glm) return any_plain_arguments(rules_, tool, PlainForm::KeyAndValue);
        return grammar::add_any_object(rules_);
    }

    RuleSet& rules_;
    ToolFormat format_;
    std::span<const ToolDefinition> tools_;
};

/// Messages on other channels, then calls or, where free, a final answer.
ExpressionId harmony_answer(RuleSet& rules, ExpressionId calls, ToolChoice choice) {
    const auto message = [&](std::string_view channel, ExpressionId body) {
        return rules.sequence(
            {rules.marker("<|channel|>"), rules.bytes(channel), rules.marker("<|message|>"), body});
    };
    const auto ended = [&](std::string_view channel) {
        return rules.optional(
            rules.sequence({message(channel, rules.free_text("<|end|>")), rules.marker("<|end|>"),
                            rules.marker("<|start|>"), rules.bytes("assistant")}));
    };
    std::vector<ExpressionId> ends = {rules.sequence({ended("commentary"), calls})};
    if (choice == ToolChoice::Auto) ends.push_back(message("final", rules.free_text("")));
    return rules.sequence({ended("analysis"), rules.choice(std::move(ends))});
}

/// Thoughts in tags, then calls or, where free, text that calls may follow.
ExpressionId tagged_answer(RuleSet& rules, CallWriter& writer, const ToolGrammarOptions& options) {
    ExpressionId calls = writer.calls(options.parallel);
    if (options.choice == ToolChoice::Auto)
        calls = rules.sequence({rules.free_text(writer.trigger()), rules.optional(calls)});
    const ExpressionId space = rules.repeat(rules.characters({{' ', ' '}, {'\n', '\n'}}), 0, 4);
    const ExpressionId rest =
        rules.sequence({rules.free_text(options.tags.close), rules.marker(options.tags.close), space});
    if (options.start == AnswerStart::Reasoning) return rules.sequence({rest, calls});
    if (!options.thinks) return calls;
    const ExpressionId thoughts = rules.sequence({rules.marker(options.tags.open), rest});
    return rules.sequence({space, rules.optional(thoughts), calls});
}

}  // namespace

GrammarPointer tool_grammar(ToolFormat format, std::span<const ToolDefinition> tools,
                            const ToolGrammarOptions& options) {
    if (tools.empty())
        fail(ErrorCode::InvalidArgument, "a call of a tool is asked for, and no tool is given");
    RuleSet rules;
    CallWriter writer(rules, format, tools);
    const ExpressionId answer = format == ToolFormat::Harmony
                                    ? harmony_answer(rules, writer.calls(false), options.choice)
                                    : tagged_answer(rules, writer, options);
    const grammar::RuleId root = rules.new_rule("answer with tools");
    rules.define(root, answer);
    return grammar::compile(rules, root, GrammarLeadIn{});
}

}  // namespace coterie
