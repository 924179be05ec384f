#include <cstdlib>
#include <memory>
#include <string>

#include "base/error.h"
#include "chat/template.h"

/// The input is a chat template. It is rendered by the confined worker or refused with a plain line, and the
/// worker answers a good chat afterwards. The renderer itself is the reference library in another process, so
/// no coverage leads this search: what is tried are our frames, limits and restarts.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    using namespace coterie;
    if (size > 4096) return 0;
    static const auto worker = std::make_shared<TemplateWorker>();
    static const ChatTemplate good = ChatTemplate::compile(worker, "{{ messages[0].content }}", "good");
    const std::string messages = R"([{"role": "user", "content": "Hello"}])";
    try {
        const std::string source(reinterpret_cast<const char*>(data), size);
        ChatTemplate::compile(worker, source, "fuzz").render({.messages = messages});
    } catch (const Error& error) {
        const bool is_expected =
            error.code() == ErrorCode::InvalidFile || error.code() == ErrorCode::InvalidArgument;
        if (!is_expected || std::string(error.what()).find('\n') != std::string::npos) std::abort();
    }
    if (good.render({.messages = messages}) != "Hello") std::abort();
    return 0;
}
