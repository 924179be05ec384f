#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "base/function_ref.h"

namespace coterie {

/// One compiled regular expression that cuts text into its matches and the gaps between them. Shareable by
/// threads.
///
/// Syntax and character properties are PCRE2's with UTF, except for `\s` and `\S`: they are Unicode's
/// White_Space, as in the libraries that vocabularies are trained with (PCRE2's own `\s` also holds U+180E,
/// or only ASCII).
class Pattern {
  public:
    /// Throws Internal for an expression that does not compile: expressions are ours, not the user's.
    explicit Pattern(std::string_view expression);

    /// Calls `fragment` with every match and every gap, in order; together they are the text.
    /// Requires: text is well-formed UTF-8.
    void split(std::string_view text, FunctionRef<void(std::string_view)> fragment) const;

  private:
    struct Free {
        void operator()(void* code) const;
    };
    std::unique_ptr<void, Free> code_;  ///< a pcre2_code, compiled to machine code where the system allows it
};

}  // namespace coterie
