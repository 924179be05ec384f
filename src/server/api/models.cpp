#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "server/api/endpoints.h"
#include "server/json/api_error.h"
#include "server/json/parse.h"

namespace coterie::server {
namespace {

Json model_json(const ModelFacts& facts) {
    return {{"id", facts.id},
            {"object", "model"},
            {"created", facts.created},
            {"owned_by", "coterie"},
            {"meta",
             {{"architecture", facts.architecture},
              {"n_vocab", facts.vocabulary},
              {"n_ctx", facts.context},
              {"n_ctx_train", facts.trained_context},
              {"n_embd", facts.embedding},
              {"n_expert", facts.experts},
              {"n_expert_used", facts.experts_used},
              {"size", facts.bytes}}}};
}

}  // namespace

void add_models(Router& router, Service& service) {
    const auto list = [&service](const HttpRequest&, const std::string&) {
        return HttpResponse{
            .body = dump({{"object", "list"}, {"data", Json::array({model_json(service.facts())})}})};
    };
    router.add("GET", "/v1/models", list);
    router.add("GET", "/models", list);
    router.add("GET", "/v1/models/{id}", [&service](const HttpRequest&, const std::string& id) {
        if (id != service.facts().id) {
            throw ApiError(
                404, fmt::format("there is no model '{}'; this server runs '{}'", id, service.facts().id),
                "model", "model_not_found");
        }
        return HttpResponse{.body = dump(model_json(service.facts()))};
    });
}

}  // namespace coterie::server
