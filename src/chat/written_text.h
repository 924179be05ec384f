#pragma once

#include <string>
#include <vector>

#include "base/function_ref.h"
#include "tokenizer/tokenizer.h"

namespace coterie {

/// Renders a chat of these contents, one per message.
using RenderContents = FunctionRef<std::string(const std::vector<std::string>&)>;

/// A rendered chat and where in it the text of some messages stands.
struct WrittenText {
    std::string rendered;
    std::vector<ByteRange> ranges;  ///< ascending
};

/// Renders `contents`. Where some of them are `suspicious` (they hold the text of control tokens), it renders
/// a second time with a random mark in the place of each: what stands between the marks is the template's,
/// the rest is theirs. Throws InvalidArgument where the two do not agree, as for a template whose markers
/// depend on what is written: then nobody can say whose a marker is.
WrittenText render_written(const std::vector<std::string>& contents, const std::vector<bool>& suspicious,
                           RenderContents render);

}  // namespace coterie
