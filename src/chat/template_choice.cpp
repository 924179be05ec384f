#include "chat/template_choice.h"

#include <string_view>

#include "base/error.h"
#include "chat/embedded.h"

namespace coterie {
namespace {

/// llama.cpp's names where they differ from ours.
constexpr struct {
    std::string_view alias;
    std::string_view name;
} kAliases[] = {{"chatglm4", "glm4"},
                {"deepseek", "deepseek2"},
                {"mistral-v1", "mistral"},
                {"qwen", "chatml"},
                {"tulu", "olmoe"}};

bool is_jinja(std::string_view text) {
    return text.find("{{") != std::string_view::npos || text.find("{%") != std::string_view::npos;
}

TemplateChoice builtin_template(std::string_view name) {
    for (const auto& row : kAliases) {
        if (row.alias == name) name = row.name;
    }
    for (const EmbeddedText& row : embedded_templates()) {
        if (row.name == name) return {std::string(row.text), std::string(name)};
    }
    fail(ErrorCode::InvalidArgument, "--chat-template '{}': no such template; there are {}", name,
         builtin_template_names());
}

}  // namespace

std::string builtin_template_names() {
    std::string names;
    for (const EmbeddedText& row : embedded_templates()) {
        if (!names.empty()) names += ", ";
        names += row.name;
    }
    return names;
}

TemplateChoice choose_template(const TemplateSources& sources) {
    if (sources.file_text) return {*sources.file_text, sources.file_name};
    if (sources.flag && is_jinja(*sources.flag)) return {*sources.flag, "of --chat-template"};
    if (sources.flag) return builtin_template(*sources.flag);
    if (sources.model_template) return {*sources.model_template, "tokenizer.chat_template"};
    if (sources.vocabulary_has_im_start) return builtin_template("chatml");
    fail(ErrorCode::InvalidArgument,
         "this model has no chat template; name one with --chat-template ({}) or --chat-template-file",
         builtin_template_names());
}

}  // namespace coterie
