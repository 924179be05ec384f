#define PCRE2_CODE_UNIT_WIDTH 8
#include "tokenizer/pre_tokenizer/pattern.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <pcre2.h>
#include <string>

#include "base/error.h"

namespace coterie {
namespace {

struct FreeMatchData {
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeMatchContext {
    void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

const pcre2_code* as_code(const void* code) { return static_cast<const pcre2_code*>(code); }

std::string with_unicode_white_space(std::string_view expression) {
    std::string result;
    for (std::size_t i = 0; i < expression.size(); ++i) {
        result += expression[i];
        if (expression[i] != '\\' || i + 1 == expression.size()) continue;
        const char escaped = expression[++i];
        if (escaped == 's') {
            result += "p{White_Space}";
        } else if (escaped == 'S') {
            result += "P{White_Space}";
        } else {
            result += escaped;
        }
    }
    return result;
}

std::string error_text(int code) {
    PCRE2_UCHAR buffer[256] = {};
    pcre2_get_error_message(code, buffer, sizeof buffer);
    return reinterpret_cast<const char*>(buffer);
}

/// No pattern steps back more than a few times over its longest run, so this limit is never met by honest
/// text of any length; it bounds the time of one match should a pattern be worse than thought.
std::uint32_t match_limit(std::size_t text_bytes) {
    constexpr std::uint64_t kStepsPerByte = 32;
    constexpr std::uint64_t kLeast = 10'000'000;
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(text_bytes * kStepsPerByte, kLeast,
                                                                std::numeric_limits<std::uint32_t>::max()));
}

}  // namespace

void Pattern::Free::operator()(void* code) const { pcre2_code_free(static_cast<pcre2_code*>(code)); }

Pattern::Pattern(std::string_view expression) {
    const std::string translated = with_unicode_white_space(expression);
    int error = 0;
    PCRE2_SIZE offset = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                              PCRE2_UTF | PCRE2_DOLLAR_ENDONLY, &error, &offset, nullptr));
    if (!code_) {
        fail(ErrorCode::Internal, "pre-tokenizer pattern, offset {}: {}: {}", offset, error_text(error),
             translated);
    }
    // Refused where memory may not be made executable; the interpreter then gives the same matches, slower.
    pcre2_jit_compile(static_cast<pcre2_code*>(code_.get()), PCRE2_JIT_COMPLETE);
}

void Pattern::split(std::string_view text, FunctionRef<void(std::string_view)> fragment) const {
    const std::unique_ptr<pcre2_match_data, FreeMatchData> match(pcre2_match_data_create(1, nullptr));
    const std::unique_ptr<pcre2_match_context, FreeMatchContext> context(pcre2_match_context_create(nullptr));
    if (!match || !context) throw std::bad_alloc();
    pcre2_set_match_limit(context.get(), match_limit(text.size()));

    std::size_t position = 0;
    while (position < text.size()) {
        const int result = pcre2_match(as_code(code_.get()), reinterpret_cast<PCRE2_SPTR>(text.data()),
                                       text.size(), position, PCRE2_NO_UTF_CHECK, match.get(), context.get());
        if (result == PCRE2_ERROR_NOMATCH) break;
        if (result < 0) fail(ErrorCode::Internal, "pre-tokenizer: matching stopped: {}", error_text(result));
        const PCRE2_SIZE* span = pcre2_get_ovector_pointer(match.get());
        COTERIE_CHECK(span[1] > span[0]);  // a pattern that matches nothing would never come to an end
        if (span[0] > position) fragment(text.substr(position, span[0] - position));
        fragment(text.substr(span[0], span[1] - span[0]));
        position = span[1];
    }
    if (position < text.size()) fragment(text.substr(position));
}

}  // namespace coterie
