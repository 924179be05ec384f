#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/split_mix.h"
#include "sampling/grammar/compile.h"
#include "sampling/grammar/grammar.h"
#include "sampling/grammar/json_schema/schema_rules.h"
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

/// Refusals name what is wrong; nothing else is thrown.
template <typename Make>
void refuse_or(Make make) {
    try {
        make();
    } catch (const Error& error) {
        require(error.code() == ErrorCode::InvalidArgument);
    }
}

GrammarPointer loosened(std::string_view schema) {
    grammar::RuleSet rules;
    const grammar::RuleId root = grammar::add_schema_rules(rules, schema, grammar::Unsupported::Loosen);
    return grammar::compile(rules, root, {});
}

}  // namespace
}  // namespace coterie

/// The input is a JSON schema.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    if (size > 4096) return 0;
    const std::string_view schema(reinterpret_cast<const char*>(data), size);
    using namespace coterie;
    refuse_or([&] { write_some(*grammar_from_json_schema(schema), size); });
    refuse_or([&] { write_some(*loosened(schema), size); });
    return 0;
}
