#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace coterie {

namespace grammar {
class Automaton;
}

/// Text that may stand before what a grammar describes: the thoughts of a reasoning model, which stay free.
struct GrammarLeadIn {
    enum class Kind {
        None,      ///< the answer begins with the grammar's root
        Optional,  ///< `open` thoughts `close` may come first
        Open,      ///< the prompt has opened the thoughts: any text up to `close` comes first
        Harmony,   ///< the analysis channel may come first; the answer is in the final channel
    };
    Kind kind = Kind::None;
    std::string open = {};
    std::string close = {};
};

/// A language of byte strings, compiled: what an answer may be. Immutable, shared by any number of requests
/// and vocabularies. Whatever has been compiled can be completed: no prefix that the grammar allows is a dead
/// end.
class Grammar {
  public:
    explicit Grammar(std::unique_ptr<const grammar::Automaton> automaton);
    ~Grammar();
    Grammar(const Grammar&) = delete;
    Grammar& operator=(const Grammar&) = delete;

    const grammar::Automaton& automaton() const { return *automaton_; }

    /// Whether the text is a whole sentence of the language; for tests and tools. Throws InvalidArgument
    /// where the limits of `GrammarConstraint` are passed.
    bool matches(std::string_view text) const;

  private:
    std::unique_ptr<const grammar::Automaton> automaton_;
};

using GrammarPointer = std::shared_ptr<const Grammar>;

/// Reads GBNF, llama.cpp's notation (docs/grammars.md). The start is the rule `root`. Throws InvalidArgument
/// that names line and column for wrong syntax, and the rule for left recursion, undefined names, a root that
/// can never end, and grammars over the limits.
GrammarPointer parse_gbnf(std::string_view text, const GrammarLeadIn& lead_in = {});

/// The JSON texts that fit a JSON schema (docs/grammars.md tells which keywords are honoured). The language
/// may be narrower than the schema (properties in the schema's order, little white space), never wider: a
/// schema that cannot be expressed is refused with InvalidArgument that names the JSON pointer and the
/// keyword.
GrammarPointer grammar_from_json_schema(std::string_view schema, const GrammarLeadIn& lead_in = {});

/// Any JSON object.
GrammarPointer grammar_of_json_objects(const GrammarLeadIn& lead_in = {});

}  // namespace coterie
