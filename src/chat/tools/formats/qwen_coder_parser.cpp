// <tool_call>
// <function=NAME>
// <parameter=KEY>
// VALUE
// </parameter>
// </function>
// </tool_call>

#include "chat/tools/formats/plain_parser.h"

namespace coterie {
namespace {

constexpr std::string_view kFunction = "<function=";
constexpr std::string_view kParameterEnd = "</parameter>";
constexpr std::string_view kFunctionEnd = "</function>";
// The outer mark may be missing.
constexpr std::string_view kOpen[] = {"<tool_call>", kFunction};
constexpr std::string_view kTail[] = {kFunctionEnd, "</tool_call>"};
// Models forget to close a parameter: then the next part ends it.
constexpr std::string_view kValueEnds[] = {kParameterEnd, "\n<parameter=", "\n</function>"};
constexpr PlainMarks kMarks = {.open = kOpen,
                               .function = kFunction,
                               .argument = "<parameter=",
                               .value_end = kParameterEnd,
                               .call_end = kFunctionEnd,
                               .tail = kTail};

class QwenCoderParser final : public PlainParser {
  public:
    explicit QwenCoderParser(EventWriter& writer) : PlainParser(writer, kMarks) {}

  private:
    Part read_name(std::string_view pending) const override {
        const std::size_t end = pending.find_first_of(">\n");
        if (end != std::string::npos && pending[end] == '\n') return {Match::No};
        return up_to(end, pending);
    }

    Part read_key(std::string_view pending) const override { return up_to(pending.find('>'), pending); }

    /// What stands before a mark of one byte.
    static Part up_to(std::size_t mark, std::string_view pending) {
        if (mark == std::string::npos) return {};
        return {Match::Whole, std::string(trimmed(pending.substr(0, mark))), mark + 1};
    }

    Part read_value(std::string_view pending) const override {
        const auto end = first_marker(pending, kValueEnds);
        if (!end || end->number == std::size(kValueEnds)) return {};
        std::string_view value = pending.substr(0, end->place);
        if (value.starts_with('\n')) value.remove_prefix(1);
        if (value.ends_with('\n')) value.remove_suffix(1);
        return {Match::Whole, std::string(value), end->place + (end->number == 0 ? kParameterEnd.size() : 0)};
    }
};

}  // namespace

std::unique_ptr<CallParser> make_qwen_coder_parser(EventWriter& writer) {
    return std::make_unique<QwenCoderParser>(writer);
}

}  // namespace coterie
