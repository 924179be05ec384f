#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "sampling/grammar/grammar_constraint.h"

namespace CLI {
class App;
}

namespace coterie::cli {

/// The flags that say what an answer may be, with llama.cpp's names. At most one of them may be given.
struct GrammarFlags {
    std::string grammar;           ///< --grammar
    std::string grammar_file;      ///< --grammar-file
    std::string json_schema;       ///< --json-schema
    std::string json_schema_file;  ///< --json-schema-file
};

void add_grammar_flags(CLI::App& command, GrammarFlags& flags);

/// The grammar of a run's answers. Thoughts of a reasoning model may come before what it describes.
class AnswerGrammar {
  public:
    /// Throws InvalidArgument for several sources and for a grammar or schema that cannot be used.
    AnswerGrammar(const GrammarFlags& flags, const Tokenizer& tokenizer);

    static bool is_wanted(const GrammarFlags& flags);

    /// The state before an answer. Requires: lead-ins of one kind are equal, as those of one template are.
    GrammarConstraint start(const GrammarLeadIn& lead_in);

  private:
    GrammarPointer compile(const GrammarLeadIn& lead_in) const;

    std::string text_;
    bool is_schema_;
    std::shared_ptr<const GrammarVocabulary> vocabulary_;
    std::array<std::optional<GrammarConstraint>, 4> starts_;  ///< by the kind of lead-in
};

}  // namespace coterie::cli
