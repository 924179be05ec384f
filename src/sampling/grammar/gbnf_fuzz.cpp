#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "sampling/grammar/grammar_constraint.h"
#include "sampling/grammar/grammar_for_test.h"

namespace coterie {
namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

/// Follows the grammar for some tokens: what the mask allows, and nothing else, is accepted.
void follow(const GrammarPointer& grammar) {
    static const auto vocabulary =
        grammar_test::vocabulary_of({"ab", "\": ", "{\"", "  ", "true", "}]", "\xc3\xa9"});
    GrammarConstraint constraint(grammar, vocabulary);
    for (std::int32_t step = 0; step < 12 && !constraint.finished(); ++step) {
        const auto mask = constraint.mask();
        std::int32_t chosen = -1;
        for (std::int32_t i = 0; i < vocabulary->size(); ++i) {
            const std::int32_t id = (i + step * 97) % static_cast<std::int32_t>(vocabulary->size());
            require(grammar_test::is_set(mask, id) == constraint.allows(id));
            if (chosen < 0 && grammar_test::is_set(mask, id)) chosen = id;
        }
        require(chosen >= 0);
        constraint.accept(chosen);
    }
}

}  // namespace
}  // namespace coterie

/// The input is a grammar. It is read or refused with an error of its own, and what is read can be followed.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
    if (size > 4096) return 0;
    try {
        coterie::follow(coterie::parse_gbnf({reinterpret_cast<const char*>(data), size}));
    } catch (const coterie::Error& error) {
        coterie::require(error.code() == coterie::ErrorCode::InvalidArgument);
    }
    return 0;
}
