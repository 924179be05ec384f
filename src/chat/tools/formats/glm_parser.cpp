// <tool_call>NAME
// <arg_key>KEY</arg_key>
// <arg_value>VALUE</arg_value>
// </tool_call>

#include <algorithm>

#include "chat/tools/formats/plain_parser.h"

namespace coterie {
namespace {

constexpr std::string_view kSpace = " \t\r\n";
constexpr std::string_view kKey = "<arg_key>";
constexpr std::string_view kKeyEnd = "</arg_key>";
constexpr std::string_view kValue = "<arg_value>";
constexpr std::string_view kValueEnd = "</arg_value>";
constexpr std::string_view kClose = "</tool_call>";
constexpr std::string_view kOpen[] = {"<tool_call>"};
constexpr std::string_view kTail[] = {kClose};
constexpr std::string_view kNameEnds[] = {"\n", kKey, kClose};
constexpr PlainMarks kMarks = {.open = kOpen,
                               .function = "",
                               .argument = kKey,
                               .value_end = kValueEnd,
                               .call_end = kClose,
                               .tail = kTail};

class GlmParser final : public PlainParser {
  public:
    explicit GlmParser(EventWriter& writer) : PlainParser(writer, kMarks) {}

  private:
    Part read_name(std::string_view pending) const override {
        // A line's end may come before the name.
        const std::size_t start = std::min(pending.find_first_not_of(kSpace), pending.size());
        const auto end = first_marker(pending.substr(start), kNameEnds);
        if (!end || end->number == std::size(kNameEnds)) return {};
        return {Match::Whole, std::string(trimmed(pending.substr(start, end->place))), start + end->place};
    }

    Part read_key(std::string_view pending) const override {
        const std::size_t end = pending.find(kKeyEnd);
        if (end == std::string::npos) return {};
        const std::string_view rest = pending.substr(end + kKeyEnd.size());
        const std::size_t value = std::min(rest.find_first_not_of(kSpace), rest.size());
        if (!rest.substr(value).starts_with(kValue))
            return {kValue.starts_with(rest.substr(value)) ? Match::Partly : Match::No};
        return {Match::Whole, std::string(trimmed(pending.substr(0, end))),
                end + kKeyEnd.size() + value + kValue.size()};
    }

    Part read_value(std::string_view pending) const override {
        const std::size_t end = pending.find(kValueEnd);
        if (end == std::string::npos) return {};
        return {Match::Whole, std::string(pending.substr(0, end)), end + kValueEnd.size()};
    }
};

}  // namespace

std::unique_ptr<CallParser> make_glm_parser(EventWriter& writer) {
    return std::make_unique<GlmParser>(writer);
}

}  // namespace coterie
