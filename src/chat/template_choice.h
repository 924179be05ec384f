#pragma once

#include <optional>
#include <string>

namespace coterie {

/// Where a chat template may come from, in the order in which the first that is given wins.
struct TemplateSources {
    std::optional<std::string> file_text = {};  ///< content of the file of --chat-template-file
    std::string file_name = {};                 ///< its path, for errors
    std::optional<std::string> flag = {};  ///< --chat-template: a built-in template's name, or Jinja text
    std::optional<std::string> model_template = {};  ///< the model's tokenizer.chat_template
    bool vocabulary_has_im_start = false;            ///< the model has the token <|im_start|>
};

struct TemplateChoice {
    std::string source;
    std::string name;
};

/// The template to use. A model without one gets ChatML only if its vocabulary has ChatML's token. Nothing
/// here looks at whether the template works: one that does not compile is an error and never replaced by
/// another. Throws InvalidArgument for an unknown name, or where nothing is left to choose; the text lists
/// the names.
TemplateChoice choose_template(const TemplateSources& sources);

/// Names for --chat-template, with commas between them.
std::string builtin_template_names();

}  // namespace coterie
