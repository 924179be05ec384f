#include "gguf/archive.h"
#include "gguf/describe.h"

/// Any bytes are either refused with an Error or read into a directory whose every part can be used.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) try {
    const auto archive = coterie::gguf::Archive::from_bytes(std::as_bytes(std::span(data, size)), "fuzz");
    const auto json = describe_json(archive, {.array_values = SIZE_MAX});
    const auto text = describe_text(archive, {.array_values = SIZE_MAX});
    unsigned sum = static_cast<unsigned>(json.size() + text.size());
    for (const auto& tensor : archive.tensors())
        sum += static_cast<unsigned>(tensor.bytes.front() ^ tensor.bytes.back());
    return sum == 0 ? -1 : 0;
} catch (const coterie::Error&) {
    return 0;
}
