#include "server/service/generation.h"

#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>

#include "sampling/dry_breakers.h"
#include "scheduler/scheduler.h"
#include "server/json/api_error.h"
#include "server/service/late_end.h"

namespace coterie::server {
namespace {

constexpr std::int64_t kMostTokens = std::int64_t{1} << 31;
constexpr std::size_t kMostStops = 64;
constexpr std::size_t kMostBiases = 4096;
constexpr int kMostAnswers = 32;
constexpr double kMost = 1e30;  ///< ranges proper are checked by the sampling module

template <typename Value>
void take(std::optional<double> from, Value& to) {
    if (from) to = static_cast<Value>(*from);
}
void take(std::optional<std::int64_t> from, std::int64_t& to) {
    if (from) to = *from;
}

void read_numbers(const Fields& fields, SamplingOptions& o) {
    const auto number = [&](const char* name, float& value) {
        take(fields.number(name, -kMost, kMost), value);
    };
    const auto integer = [&](const char* name, std::int64_t& value) {
        take(fields.integer(name, -1, std::numeric_limits<std::uint32_t>::max()), value);
    };
    number("temperature", o.temperature);
    number("dynatemp_range", o.dynatemp_range);
    number("dynatemp_exponent", o.dynatemp_exponent);
    integer("top_k", o.top_k);
    number("top_p", o.top_p);
    number("min_p", o.min_p);
    number("typical_p", o.typical_p);
    number("top_n_sigma", o.top_n_sigma);
    number("xtc_probability", o.xtc_probability);
    number("xtc_threshold", o.xtc_threshold);
    integer("repeat_last_n", o.repeat_last_n);
    number("repeat_penalty", o.repeat_penalty);
    number("frequency_penalty", o.frequency_penalty);
    number("presence_penalty", o.presence_penalty);
    number("dry_multiplier", o.dry_multiplier);
    number("dry_base", o.dry_base);
    integer("dry_allowed_length", o.dry_allowed_length);
    integer("dry_penalty_last_n", o.dry_penalty_last_n);
    integer("mirostat", o.mirostat);
    number("mirostat_tau", o.mirostat_tau);
    number("mirostat_eta", o.mirostat_eta);
    integer("seed", o.seed);
}

/// false stands for "never".
float bias_of(const Json& value, const std::string& path) {
    if (value.is_boolean() && !value.get<bool>()) return -std::numeric_limits<float>::infinity();
    if (!value.is_number()) refuse_field(path, "must be a number, or false to forbid the token");
    const auto bias = value.get<float>();
    if (!std::isfinite(bias)) refuse_field(path, "must be finite");
    return bias;
}

void add_bias(const Json& token, float bias, const Service& service, const std::string& path,
              std::vector<TokenBias>& biases) {
    std::vector<TokenId> ids;
    if (token.is_number_integer()) {
        const auto id = token.get<std::int64_t>();
        if (id < 0 || id >= service.facts().vocabulary) {
            refuse_field(path, fmt::format("token {} is outside the vocabulary of {}", id,
                                           service.facts().vocabulary));
        }
        ids.push_back(static_cast<TokenId>(id));
    } else if (token.is_string()) {
        ids = service.tokenizer().encode(token.get<std::string>());
    } else {
        refuse_field(path, "must be a token's number or text");
    }
    for (const TokenId id : ids) biases.push_back({id, bias});
}

/// {"15043": 1.5} as OpenAI has it, or [[15043, 1.5], [" Hello", false]] as llama-server has it.
void read_biases(const Fields& fields, const Service& service, std::vector<TokenBias>& biases) {
    const Json* value = fields.find("logit_bias");
    if (!value) return;
    const std::string path = fields.path("logit_bias");
    if (!value->is_object() && !value->is_array()) refuse_field(path, "must be an object or an array");
    if (value->size() > kMostBiases) refuse_field(path, fmt::format("has more than {} entries", kMostBiases));
    std::size_t index = 0;
    for (const auto& item : value->items()) {
        const std::string place = value->is_object() ? path + "." + item.key() : Fields::at(path, index++);
        if (value->is_object()) {
            const Json token = Json::parse(item.key(), nullptr, false);
            add_bias(token.is_number_integer() ? token : Json(item.key()), bias_of(item.value(), place),
                     service, place, biases);
            continue;
        }
        if (!item.value().is_array() || item.value().size() != 2)
            refuse_field(place, "must be [token, bias]");
        add_bias(item.value()[0], bias_of(item.value()[1], place), service, place, biases);
    }
}

void read_samplers(const Fields& fields, SamplingOptions& options) {
    const Json* value = fields.find("samplers");
    if (!value) return;
    std::string order;
    for (const std::string& name : fields.strings("samplers", 32)) order += (order.empty() ? "" : ";") + name;
    options.samplers = parse_sampler_order(order);
}

std::int64_t read_max_tokens(const Fields& fields, std::int64_t otherwise) {
    for (const char* name : {"max_completion_tokens", "max_tokens", "n_predict", "max_output_tokens"}) {
        if (const auto tokens = fields.integer(name, -1, kMostTokens)) return *tokens;
    }
    return otherwise;
}

void read_telling(const Fields& fields, Generation& generation) {
    generation.stream = fields.boolean("stream").value_or(false);
    generation.return_progress = fields.boolean("return_progress").value_or(false);
    if (const auto options = fields.object("stream_options")) {
        generation.include_usage = options->boolean("include_usage").value_or(false);
    }
}

void read_scheduling(const Fields& fields, const Service& service, Generation& generation) {
    generation.cache_prompt = fields.boolean("cache_prompt").value_or(true);
    const int last_slot = service.scheduler().options().slots - 1;
    const auto slot = fields.integer("id_slot", -1, last_slot);
    if (slot && *slot >= 0) generation.slot = static_cast<int>(*slot);
    const auto limit = fields.integer("t_max_predict_ms", -1, kMostTokens);
    if (limit && *limit > 0) generation.generation_limit = std::chrono::milliseconds(*limit);
}

/// Their messages begin with the option's name.
void check_sampling(const Fields& fields, const SamplingOptions& options) {
    try {
        check_ranges(options);
    } catch (const Error& error) {
        const std::string message = error.what();
        const std::size_t name = message.find(' ');
        refuse_field(fields.path(message.substr(0, name)), message.substr(name + 1));
    }
}

void check_length(const scheduler::Request& request, std::int64_t context) {
    const auto tokens = static_cast<std::int64_t>(request.prompt.size());
    const std::int64_t most = request.embedding ? context : context - 1;  // an answer has a token at least
    if (tokens > most) throw ContextError(tokens, most, context);
}

std::unique_ptr<SamplerChain> make_sampler(const Generation& generation, const Service& service, int index,
                                           bool forbid_ends) {
    SamplingOptions options = generation.sampling;
    if (options.seed >= 0 && options.seed != std::numeric_limits<std::uint32_t>::max()) options.seed += index;
    const Tokenizer& tokenizer = service.tokenizer();
    constexpr float kNever = -std::numeric_limits<float>::infinity();
    if (forbid_ends) {
        for (const TokenId token : tokenizer.vocabulary().end_of_generation())
            options.logit_bias.push_back({token, kNever});
    }
    // Rows of the output matrix beyond the vocabulary have no text and are never drawn.
    const auto known = static_cast<std::int64_t>(tokenizer.vocabulary_size());
    for (std::int64_t id = known; id < service.facts().vocabulary; ++id) {
        options.logit_bias.push_back({static_cast<TokenId>(id), kNever});
    }
    std::vector<TokenId> breakers;
    if (options.dry_multiplier > 0.0f) {
        breakers = dry_breaker_tokens(options.dry_sequence_breakers, static_cast<TokenId>(known),
                                      [&](TokenId id) { return tokenizer.piece(id); });
    }
    return std::make_unique<SamplerChain>(options, service.facts().vocabulary, std::move(breakers));
}

}  // namespace

Generation read_generation(const Fields& fields, const Service& service, const std::string& client) {
    Generation generation;
    generation.client = client;
    generation.sampling = service.options().sampling;
    generation.ignore_end = fields.boolean("ignore_eos").value_or(service.options().ignore_end);
    read_numbers(fields, generation.sampling);
    read_biases(fields, service, generation.sampling.logit_bias);
    read_samplers(fields, generation.sampling);
    if (fields.has("dry_sequence_breakers")) {
        generation.sampling.dry_sequence_breakers = fields.strings("dry_sequence_breakers", 64);
    }
    check_sampling(fields, generation.sampling);
    generation.max_tokens = read_max_tokens(fields, service.options().max_tokens);
    generation.answers = static_cast<int>(fields.integer("n", 1, kMostAnswers).value_or(1));
    generation.stop = fields.strings("stop", kMostStops);
    read_telling(fields, generation);
    read_scheduling(fields, service, generation);
    return generation;
}

scheduler::Request make_request(const Generation& generation, const Service& service,
                                const std::vector<TokenId>& prompt, int index,
                                std::unique_ptr<scheduler::TokenConstraint> constraint) {
    scheduler::Request request;
    request.prompt = prompt;
    const bool forbid_ends = generation.ignore_end && !constraint;
    request.sampler = make_sampler(generation, service, index, forbid_ends);
    if (generation.ignore_end && constraint) {
        constraint = end_late(std::move(constraint), service.tokenizer().vocabulary().end_of_generation());
    }
    request.constraint = std::move(constraint);
    request.max_tokens = generation.max_tokens;
    request.stop = generation.stop;
    request.stop_at_end_tokens = !forbid_ends;
    request.top_log_probabilities = generation.top_log_probabilities;
    request.reuse_prefix = generation.cache_prompt;
    request.slot = generation.slot;
    request.client = generation.client;
    request.generation_limit = generation.generation_limit;
    return request;
}

scheduler::Answers submit(std::vector<scheduler::Request> parts, const Service& service) {
    for (const scheduler::Request& part : parts) check_length(part, service.facts().context);
    scheduler::Answers answers(std::make_shared<scheduler::Bell>());
    const auto refusal = service.scheduler().submit(std::move(parts), answers);
    if (refusal == scheduler::Refusal::QueueFull) {
        throw ApiError(429, "the server is busy and its queue full; try again later", {}, "queue_full");
    }
    if (refusal) throw ApiError(503, "the server is shutting down", {}, "shutting_down");
    return answers;
}

}  // namespace coterie::server
