#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "chat/tools/answer_parser.h"

namespace coterie {
namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

ParsedAnswer parse(ToolFormat format, std::string_view answer, std::size_t chunk) {
    const auto parser = make_answer_parser(
        {.format = format,
         .tools = {{"f", R"({"type":"object","properties":{"a":{"type":"string"}}})", false},
                   {"g", "{}", false}}});
    std::vector<AnswerEvent> events;
    for (std::size_t at = 0; at < answer.size(); at += chunk) parser->feed(answer.substr(at, chunk), events);
    parser->finish(events);
    return collect(events);
}

bool equal(const ParsedAnswer& a, const ParsedAnswer& b) {
    if (a.reasoning != b.reasoning || a.content != b.content || a.calls.size() != b.calls.size())
        return false;
    for (std::size_t i = 0; i < a.calls.size(); ++i) {
        const ParsedCall& x = a.calls[i];
        const ParsedCall& y = b.calls[i];
        if (x.name != y.name || x.arguments != y.arguments || x.complete != y.complete) return false;
    }
    return true;
}

}  // namespace
}  // namespace coterie

/// The first byte chooses the format, the rest is an answer: it is taken apart the same however it is cut.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    using namespace coterie;
    if (size == 0 || size > 4096) return 0;
    const auto format = static_cast<ToolFormat>(data[0] % 9);
    const std::string_view answer(reinterpret_cast<const char*>(data) + 1, size - 1);
    const ParsedAnswer whole = parse(format, answer, size);
    require(equal(whole, parse(format, answer, 1)));
    require(equal(whole, parse(format, answer, 5)));
    return 0;
}
