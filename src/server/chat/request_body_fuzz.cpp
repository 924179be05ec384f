// Any bytes as a request's body, on every route: whatever they are, the outcome is a response or an error in
// its own words.

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "server/chat/anthropic_request.h"
#include "server/chat/chat_request.h"
#include "server/chat/responses_request.h"
#include "server/chat/written_messages.h"
#include "server/json/api_error.h"
#include "server/json/fields.h"
#include "server/json/parse.h"

namespace {

using namespace coterie;
using namespace coterie::server;

template <typename Read>
void attempt(Read read) {
    try {
        const ChatInput input = read();
        WrittenMessages messages(Json::parse(input.messages));
        messages.take_begun_answer();
        messages.with(messages.texts());
    } catch (const ApiError&) {
    } catch (const Error&) {
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        const Json body = parse_object({reinterpret_cast<const char*>(data), size});
        const Fields fields(body);
        attempt([&] { return read_chat(fields); });
        attempt([&] { return read_anthropic_chat(fields); });
        attempt([&] { return read_responses_chat(fields); });
    } catch (const ApiError&) {
    }
    return 0;
}
