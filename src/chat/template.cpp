#include "chat/template.h"

#include <atomic>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "chat/json_text.h"

namespace coterie {
namespace {

std::string special_texts_json(const ChatTemplate::SpecialTexts& texts) {
    std::string object = "{";
    for (const auto& [key, text] : texts) {
        if (object.size() > 1) object += ',';
        object += json_string(key, "name of a special token") + ":" + json_string(text, key);
    }
    return object + "}";
}

std::string optional_array(const std::string& json, std::string_view what) {
    if (json.empty()) return "null";
    require_json(json, JsonKind::Array, what);
    return json;
}

/// The members of a JSON object, to be pasted before others: "" or "a":1,"b":2 and a comma.
std::string members_of(const std::string& object, std::string_view what) {
    if (object.empty()) return "";
    require_json(object, JsonKind::Object, what);
    if (nlohmann::json::parse(object).empty()) return "";
    const std::size_t open = object.find('{');
    return object.substr(open + 1, object.rfind('}') - open - 1) + ",";
}

/// The request's own members come last: where a key is given twice the last one counts.
std::string variables_json(const RenderRequest& request) {
    require_json(request.messages, JsonKind::Array, "messages");
    return fmt::format(R"({{{}"tools":{},"documents":{},"add_generation_prompt":{},"messages":{}}})",
                       members_of(request.extra, "template arguments"),
                       optional_array(request.tools, "tools"), optional_array(request.documents, "documents"),
                       request.add_generation_prompt, request.messages);
}

}  // namespace

ChatTemplate ChatTemplate::compile(std::shared_ptr<TemplateWorker> worker, std::string source,
                                   std::string name, const SpecialTexts& special_texts) {
    static std::atomic<std::uint64_t> next_id{1};
    TemplateText text{.id = next_id++,
                      .name = std::move(name),
                      .source = std::move(source),
                      .variables_json = special_texts_json(special_texts)};
    worker->compile(text);
    return ChatTemplate(std::move(worker), std::move(text));
}

std::string ChatTemplate::render(const RenderRequest& request) const {
    return worker_->render(template_, variables_json(request));
}

}  // namespace coterie
