#include "chat/tools/tool_format.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace coterie {
namespace {

struct Row {
    ToolFormat format;
    std::string_view name;
    /// A template that holds both texts teaches this format.
    std::string_view first;
    std::string_view second;
};

/// The most special rows come first: the first that fits counts.
constexpr std::array kFormats = {
    Row{ToolFormat::Harmony, "harmony", "<|channel|>", "commentary"},
    Row{ToolFormat::Glm, "glm", "<arg_key>", "<arg_value>"},
    Row{ToolFormat::QwenCoder, "qwen-coder", "<function=", "<parameter="},
    Row{ToolFormat::MistralArgs, "mistral-args", "[TOOL_CALLS]", "[ARGS]"},
    Row{ToolFormat::MistralList, "mistral", "[TOOL_CALLS]", ""},
    Row{ToolFormat::DeepSeek, "deepseek", "<\uFF5Ctool\u2581calls\u2581begin\uFF5C>", "```json"},
    Row{ToolFormat::DeepSeek31, "deepseek-v3.1", "<\uFF5Ctool\u2581calls\u2581begin\uFF5C>", ""},
    Row{ToolFormat::Hermes, "hermes", "<tool_call>", ""},
};

constexpr std::string_view kNone = "none";

}  // namespace

ToolFormat find_tool_format(std::string_view source) {
    const auto holds = [&](std::string_view text) { return source.find(text) != std::string_view::npos; };
    const auto row = std::find_if(kFormats.begin(), kFormats.end(),
                                  [&](const Row& r) { return holds(r.first) && holds(r.second); });
    return row == kFormats.end() ? ToolFormat::None : row->format;
}

std::string_view tool_format_name(ToolFormat format) {
    for (const Row& row : kFormats) {
        if (row.format == format) return row.name;
    }
    return kNone;
}

ToolFormat parse_tool_format(std::string_view name) {
    std::string names(kNone);
    for (const Row& row : kFormats) {
        if (row.name == name) return row.format;
        names.append(", ").append(row.name);
    }
    if (name == kNone) return ToolFormat::None;
    fail(ErrorCode::InvalidArgument, "unknown format of tool calls '{}'; known are {}", name, names);
}

}  // namespace coterie
