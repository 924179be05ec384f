#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/message.h"
#include "chat/reasoning.h"
#include "chat/template.h"
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
/// new.
class ChatSession {
  public:
    ChatSession(engine::Engine& engine, const Tokenizer& tokenizer, ChatTemplate chat_template,
                const std::string& system_prompt);

    /// Asks and answers; the exchange joins the history, an interrupted answer as far as it came. With an
    /// error the history stays as it was.
    GenerationStats ask(const std::string& text, SamplerChain& sampler, std::int64_t limit,
                        const AnswerSink& sink);

    /// Forgets everything but the system prompt.
    void clear();

  private:
    engine::Engine& engine_;
    const Tokenizer& tokenizer_;
    ChatTemplate template_;
    ReasoningTags tags_;
    std::size_t kept_messages_;  ///< the system prompt
    std::vector<Message> messages_;
    engine::Sequence sequence_;
};

}  // namespace coterie::cli
