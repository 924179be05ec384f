#pragma once

#include <string_view>

#include "sampling/grammar/grammar.h"

namespace coterie {

/// What may come before the part of an answer that a request constrains: the thoughts that the template and
/// the rendered prompt, generation prompt included, leave to the model; with the harmony format its channels.
GrammarLeadIn grammar_lead_in(std::string_view template_source, std::string_view prompt);

}  // namespace coterie
