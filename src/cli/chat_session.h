#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/message.h"
#include "chat/reasoning.h"
#include "chat/template.h"
#include "chat/written_text.h"
#include "cli/answer_grammar.h"
#include "cli/generation.h"
#include "engine/engine.h"
#include "tokenizer/tokenizer.h"

namespace coterie::cli {

struct ChatOptions {
    std::string system_prompt;
    std::optional<std::string> template_flag;  ///< --chat-template: a name or Jinja text
    std::string template_file;                 ///< --chat-template-file
    std::string python;                        ///< empty: the default interpreter of templates
};

/// The model's template, compiled; `worker` should already be starting.
ChatTemplate load_chat_template(std::shared_ptr<TemplateWorker> worker, const gguf::Archive& archive,
                                const Tokenizer& tokenizer, const ChatOptions& options);

/// Where an answer's parts go as they come.
struct AnswerSink {
    FunctionRef<void(std::string_view)> content;
    FunctionRef<void(std::string_view)> reasoning;
};

/// A conversation with history. The whole history is rendered for each turn; the engine computes only what is
/// new. The text of control tokens within what people wrote is plain text.
class ChatSession {
  public:
    ChatSession(engine::Engine& engine, const Tokenizer& tokenizer, ChatTemplate chat_template,
                const std::string& system_prompt, const speculative::SpeculativeOptions& drafts = {});

    /// Asks and answers; the exchange joins the history, an interrupted answer as far as it came. With an
    /// error the history stays as it was. `observer` and `grammar` may be null.
    GenerationStats ask(const std::string& text, SamplerChain& sampler, std::int64_t limit,
                        const AnswerSink& sink, engine::StepObserver* observer,
                        AnswerGrammar* grammar = nullptr);

    /// Forgets everything but the system prompt.
    void clear();

  private:
    struct Turn {
        Role role;
        std::string text;
    };
    WrittenText render(const std::vector<Turn>& turns) const;
    std::vector<TokenId> encode(const WrittenText& prompt) const;
    bool holds_control_tokens(const Turn& turn) const;

    engine::Engine& engine_;
    const Tokenizer& tokenizer_;
    ChatTemplate template_;
    ReasoningTags tags_;
    speculative::SpeculativeOptions drafts_;
    std::size_t kept_turns_;  ///< the system prompt
    std::vector<Turn> turns_;
    engine::Sequence sequence_;
};

}  // namespace coterie::cli
