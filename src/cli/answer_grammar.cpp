#include "cli/answer_grammar.h"

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/text_input.h"

namespace coterie::cli {

void add_grammar_flags(CLI::App& command, GrammarFlags& flags) {
    const auto add = [&](const char* name, std::string& value, const char* help) {
        command.add_option(name, value, help)->group("Sampling");
    };
    add("--grammar", flags.grammar, "GBNF grammar that the answer must follow");
    add("--grammar-file", flags.grammar_file, "file with such a grammar");
    add("-j,--json-schema", flags.json_schema, "JSON schema that the answer must fit; {} is any JSON");
    add("--json-schema-file", flags.json_schema_file, "-jf: file with such a schema");
}

bool AnswerGrammar::is_wanted(const GrammarFlags& flags) {
    return !flags.grammar.empty() || !flags.grammar_file.empty() || !flags.json_schema.empty() ||
           !flags.json_schema_file.empty();
}

AnswerGrammar::AnswerGrammar(const GrammarFlags& flags, const Tokenizer& tokenizer)
    : is_schema_(!flags.json_schema.empty() || !flags.json_schema_file.empty()),
      vocabulary_(make_grammar_vocabulary(tokenizer)) {
    const int given = !flags.grammar.empty() + !flags.grammar_file.empty() + !flags.json_schema.empty() +
                      !flags.json_schema_file.empty();
    if (given > 1) {
        fail(ErrorCode::InvalidArgument,
             "--grammar, --grammar-file, --json-schema and --json-schema-file exclude each other; give one");
    }
    if (!flags.grammar.empty()) text_ = flags.grammar;
    if (!flags.grammar_file.empty()) text_ = read_text_file(flags.grammar_file);
    if (!flags.json_schema.empty()) text_ = flags.json_schema;
    if (!flags.json_schema_file.empty()) text_ = read_text_file(flags.json_schema_file);
    start({});  // what is wrong shows now and not behind the prompt
}

GrammarConstraint AnswerGrammar::start(const GrammarLeadIn& lead_in) {
    auto& known = starts_[static_cast<std::size_t>(lead_in.kind)];
    if (!known) known.emplace(compile(lead_in), vocabulary_);
    return known->fresh();
}

GrammarPointer AnswerGrammar::compile(const GrammarLeadIn& lead_in) const {
    return is_schema_ ? grammar_from_json_schema(text_, lead_in) : parse_gbnf(text_, lead_in);
}

}  // namespace coterie::cli
