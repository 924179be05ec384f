#include "server/service/service.h"

#include <algorithm>

#include "server/json/api_error.h"

namespace coterie::server {
namespace {

constexpr std::size_t kKeptGrammars = 16;
/// What a request with a new grammar may wait for, so that no token has to.
constexpr std::chrono::milliseconds kPreparation{100};

class HeldToGrammar final : public scheduler::TokenConstraint {
  public:
    explicit HeldToGrammar(GrammarConstraint constraint) : constraint_(std::move(constraint)) {}
    std::span<const std::uint64_t> allowed() override { return constraint_.mask(); }
    void accept(TokenId token) override { constraint_.accept(token); }

  private:
    GrammarConstraint constraint_;
};

}  // namespace

Service::Service(Parts parts)
    : parts_(std::move(parts)), vocabulary_(make_grammar_vocabulary(parts_.tokenizer)) {}

const ChatTemplate& Service::chat_template() const {
    if (!parts_.chat_template) throw ApiError(400, parts_.no_template_reason);
    return *parts_.chat_template;
}

ToolFormat Service::tool_format() const {
    if (parts_.options.tool_format) return *parts_.options.tool_format;
    return parts_.chat_template ? find_tool_format(parts_.chat_template->source()) : ToolFormat::None;
}

std::unique_ptr<scheduler::TokenConstraint> Service::constraint(
    const std::string& key, const std::function<GrammarPointer()>& compile) {
    return std::make_unique<HeldToGrammar>(fresh_constraint(key, compile));
}

GrammarConstraint Service::fresh_constraint(const std::string& key,
                                            const std::function<GrammarPointer()>& compile) {
    {
        const std::lock_guard lock(mutex_);
        const auto found = std::find_if(recent_.begin(), recent_.end(),
                                        [&](const auto& entry) { return entry.first == key; });
        if (found != recent_.end()) {
            recent_.splice(recent_.begin(), recent_, found);
            return found->second.fresh();
        }
    }
    GrammarConstraint compiled(compile(), vocabulary_);  // may take a while: others are not held up
    compiled.prepare(kPreparation);
    const std::lock_guard lock(mutex_);
    recent_.emplace_front(key, std::move(compiled));
    if (recent_.size() > kKeptGrammars) recent_.pop_back();
    return recent_.front().second.fresh();
}

}  // namespace coterie::server
