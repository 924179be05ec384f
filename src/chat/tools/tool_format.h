#pragma once

#include <string>
#include <string_view>

namespace coterie {

/// How a family of models writes a call of a tool. One file per format: NAME_parser.cpp.
enum class ToolFormat {
    None,         ///< the template does not take tools
    Hermes,       ///< <tool_call>{"name": ..., "arguments": {...}}</tool_call>: Qwen, Hermes and others
    QwenCoder,    ///< <tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>
    Glm,          ///< <tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>
    Harmony,      ///< channels: commentary to=functions.NAME (gpt-oss)
    DeepSeek,     ///< function, separator, NAME, fenced JSON (V3, R1)
    DeepSeek31,   ///< NAME, separator, JSON (V3.1 and later)
    MistralList,  ///< [TOOL_CALLS][{"name": ..., "arguments": {...}}, ...]
    MistralArgs,  ///< [TOOL_CALLS]NAME[ARGS]{...}
};

/// The format that the template teaches the model, by the texts that it contains; the table is in the source.
ToolFormat find_tool_format(std::string_view template_source);

/// hermes, qwen-coder, glm, harmony, deepseek, deepseek-v3.1, mistral, mistral-args or none.
std::string_view tool_format_name(ToolFormat format);
/// Throws InvalidArgument that lists the names.
ToolFormat parse_tool_format(std::string_view name);

}  // namespace coterie
