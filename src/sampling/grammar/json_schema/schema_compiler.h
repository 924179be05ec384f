#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sampling/grammar/json_schema/json_texts.h"
#include "sampling/grammar/json_schema/schema_document.h"
#include "sampling/grammar/json_schema/schema_rules.h"

namespace coterie::grammar {

/// Turns a schema into rules. What a schema does not say strictly (the order of properties, white space,
/// extra properties that are merely not forbidden) is chosen here once; what it does say holds for every text
/// of the grammar, or is refused, or left out where that is asked for.
class SchemaCompiler {
  public:
    SchemaCompiler(Json document, RuleSet& rules, Unsupported unsupported)
        : document_(std::move(document)), json_(rules), rules_(rules), unsupported_(unsupported) {}

    /// The rule of the whole document; all rules that it needs are defined.
    RuleId compile();

  private:
    struct Reference {
        const Json* schema;
        RuleId rule;
        Place place;
    };

    ExpressionId schema(const Json& schema, const Place& place);
    ExpressionId exact_schema(const Json& schema, const Place& place);
    ExpressionId looser_schema(const Json& schema, const Place& place);
    /// Joins two schemas, which copies both: counts their parts as steps.
    Json merged(const Json& a, const Json& b, const Place& place);
    void count_steps(std::size_t steps, const Place& place);
    void check_depth(const Place& place);
    ExpressionId object_schema(const Json& schema, const Place& place);
    ExpressionId nullable(const Json& schema, const Place& place);
    ExpressionId reference(const std::string& text, const Place& place);
    ExpressionId joined(const Json& schema, const Place& place);
    ExpressionId alternatives(const Json& schema, std::string_view keyword, const Place& place);
    void check_one_of(const Json& branches, const Place& place);
    ExpressionId values(const Json& schema, const Place& place);
    ExpressionId typed(const Json& schema, const Place& place);
    std::vector<std::string> types_of(const Json& schema, const Place& place);
    ExpressionId of_type(const std::string& type, const Json& schema, const Place& place);

    ExpressionId object(const Json& schema, const Place& place);
    ExpressionId members(const Json& properties, const std::vector<std::string>& required,
                         std::optional<ExpressionId> others, const Place& place);
    ExpressionId array(const Json& schema, const Place& place);
    ExpressionId elements(const std::vector<ExpressionId>& first, std::optional<ExpressionId> others,
                          std::uint32_t least, std::uint32_t most);
    ExpressionId string(const Json& schema, const Place& place);
    ExpressionId integer(const Json& schema, const Place& place);
    ExpressionId number(const Json& schema, const Place& place);

    Json document_;
    JsonTexts json_;
    RuleSet& rules_;
    Unsupported unsupported_;
    std::map<const Json*, RuleId> rules_by_schema_;
    std::vector<Reference> waiting_;
    std::size_t steps_ = 0;
    bool is_absurd_ = false;  ///< too big or too deep: looser parts would not help
};

}  // namespace coterie::grammar
