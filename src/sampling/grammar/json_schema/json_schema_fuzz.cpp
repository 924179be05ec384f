#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/split_mix.h"
#include "sampling/grammar/grammar.h"
#include "sampling/grammar/parse_state.h"

namespace coterie {
namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

/// Whatever a schema's grammar writes is JSON.
void write_some(const Grammar& grammar, std::uint64_t seed) {
    SplitMix64 random(seed);
    grammar::ParseState state(grammar.automaton());
    std::string text;
    for (int step = 0; step < 100; ++step) {
        if (state.may_end() && (state.must_end() || random.next() % 4 == 0)) break;
        const auto first = static_cast<int>(random.next() % 256);
        for (int i = 0; i < 256; ++i) {
            const char byte = static_cast<char>((first + i) % 256);
            if (!state.read({&byte, 1})) continue;
            text += byte;
            break;
        }
    }
    if (state.may_end()) require(nlohmann::json::accept(text));
}

}  // namespace
}  // namespace coterie

/// The input is a JSON schema.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    if (size > 4096) return 0;
    try {
        const auto grammar = coterie::grammar_from_json_schema({reinterpret_cast<const char*>(data), size});
        coterie::write_some(*grammar, size);
    } catch (const coterie::Error& error) {
        coterie::require(error.code() == coterie::ErrorCode::InvalidArgument);
    }
    return 0;
}
