#include <array>
#include <bit>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "server/api/endpoints.h"
#include "server/api/openai_json.h"
#include "server/json/api_error.h"
#include "server/json/parse.h"
#include "server/service/answer_reader.h"
#include "server/service/generation.h"
#include "server/service/prompts.h"

namespace coterie::server {
namespace {

static_assert(std::endian::native == std::endian::little);

/// The floats' bytes, little endian, in base64.
std::string base64(const std::vector<float>& vector) {
    constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const auto* bytes = reinterpret_cast<const unsigned char*>(vector.data());
    const std::size_t size = vector.size() * sizeof(float);
    std::string text;
    for (std::size_t i = 0; i < size; i += 3) {
        std::uint32_t group = 0;
        for (std::size_t j = 0; j < 3; ++j) group = group << 8 | (i + j < size ? bytes[i + j] : 0u);
        for (std::size_t j = 0; j < 4; ++j) {
            text += i + j > size ? '=' : kDigits[group >> (18 - 6 * j) & 63];
        }
    }
    return text;
}

struct Wish {
    scheduler::Pooling pooling;
    bool base64;
};

Wish read_wish(const Fields& fields, const Service& service) {
    const auto dimensions = fields.integer("dimensions", 1, 1 << 24);
    if (dimensions && *dimensions != service.facts().embedding) {
        refuse_field("dimensions",
                     fmt::format("this model's embeddings have {}; leave it out", service.facts().embedding));
    }
    const auto pooling = fields.word("pooling", {"mean", "last"});
    const auto format = fields.word("encoding_format", {"float", "base64"});
    return {pooling ? (*pooling == "last" ? scheduler::Pooling::Last : scheduler::Pooling::Mean)
                    : service.options().pooling,
            format == "base64"};
}

Json embed(const HttpRequest& http, Service& service) {
    const Json body = parse_object(http.body);
    const Fields fields(body);
    const Wish wish = read_wish(fields, service);
    std::vector<scheduler::Request> requests;
    for (std::vector<TokenId>& prompt : read_prompts(fields, "input", service)) {
        scheduler::Request& request = requests.emplace_back();
        request.prompt = std::move(prompt);
        request.embedding = wish.pooling;
        request.client = http.client();
    }
    std::vector<Json> data(requests.size());
    AnswerReader reader(submit(std::move(requests), service), {}, http.present);
    std::int64_t tokens = 0;
    while (const auto delta = reader.next()) {
        const auto* end = std::get_if<AnswerEnd>(&delta->what);
        if (!end) continue;
        const std::vector<float>& vector = end->finished.embedding;
        data[delta->answer] = {{"object", "embedding"},
                               {"index", delta->answer},
                               {"embedding", wish.base64 ? Json(base64(vector)) : Json(vector)}};
        tokens += end->finished.usage.prompt_tokens;
    }
    return {{"object", "list"},
            {"data", data},
            {"model", service.facts().id},
            {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}};
}

}  // namespace

void add_embeddings(Router& router, Service& service) {
    const auto handler = [&service](const HttpRequest& request, const std::string&) {
        return HttpResponse{.body = dump(embed(request, service))};
    };
    router.add("POST", "/v1/embeddings", handler);
    router.add("POST", "/embeddings", handler);
}

}  // namespace coterie::server
