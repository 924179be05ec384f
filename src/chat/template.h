#pragma once

#include <map>
#include <memory>
#include <string>

#include "chat/template_worker.h"

namespace coterie {

/// What a template is rendered with besides its model's own texts. All members are JSON texts, as in a chat
/// request.
struct RenderRequest {
    std::string messages = "[]";  ///< array of messages; `to_json` makes one
    std::string tools = {};       ///< array of tools; empty: none
    std::string documents = {};   ///< array of documents; empty: none
    bool add_generation_prompt = true;
    std::string extra =
        {};  ///< object of further variables (enable_thinking, reasoning_effort ...); empty: none
};

/// A model's chat template: Jinja, compiled and rendered by the worker process. Gives, byte for byte, what
/// Hugging Face's apply_chat_template gives, for messages as its documentation spells them; spellings that
/// OpenAI clients use and the template does not read are translated first (worker/spellings.py).
class ChatTemplate {
  public:
    /// Texts that templates name: "bos_token" and "eos_token" of the model, where it has them.
    using SpecialTexts = std::map<std::string, std::string>;

    /// `name` says in errors where the source is from (a file, "tokenizer.chat_template").
    /// Throws InvalidFile with the template's line if the source does not compile.
    static ChatTemplate compile(std::shared_ptr<TemplateWorker> worker, std::string source, std::string name,
                                const SpecialTexts& special_texts = {});

    /// Throws InvalidArgument if the request is not valid JSON or the template refuses the chat (with the
    /// template's own sentence), fails, or goes over the worker's limits. Thread-safe.
    std::string render(const RenderRequest& request) const;

    const std::string& source() const { return template_.source; }
    const std::string& name() const { return template_.name; }

  private:
    ChatTemplate(std::shared_ptr<TemplateWorker> worker, TemplateText text)
        : worker_(std::move(worker)), template_(std::move(text)) {}

    std::shared_ptr<TemplateWorker> worker_;
    TemplateText template_;
};

}  // namespace coterie
