#include "base/error.h"
#include "expert_cache/trace/trace_reader.h"

/// Any bytes are either refused with an Error or read as a trace whose every token can be used.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) try {
    using namespace coterie::expert_cache;
    const TraceReader trace(std::as_bytes(std::span(data, size)), "fuzz");
    const TraceHeader& header = trace.header();
    std::vector<std::int32_t> experts(header.layers.size() * static_cast<std::size_t>(header.used));
    for (std::int64_t token = 0; token < trace.tokens(); ++token) {
        trace.read(token, experts);
        for (const std::int32_t expert : experts) COTERIE_CHECK(expert >= -1 && expert < header.experts);
        COTERIE_CHECK(trace.step(token) <= token);
    }
    return 0;
} catch (const coterie::Error& error) {
    if (error.code() == coterie::ErrorCode::Internal) __builtin_trap();
    return 0;
}
