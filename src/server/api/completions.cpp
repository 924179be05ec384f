#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "server/api/endpoints.h"
#include "server/api/openai_json.h"
#include "server/chat/answer_constraint.h"
#include "server/chat/format_wish.h"
#include "server/json/api_error.h"
#include "server/json/parse.h"
#include "server/service/answer_reader.h"
#include "server/service/generation.h"
#include "server/service/prompts.h"

namespace coterie::server {
namespace {

constexpr std::int64_t kMostLogProbabilities = 100;

/// Answers to raw prompts on their way out. Answer i belongs to prompt i / n.
struct Completion {
    Service& service;
    Generation generation;
    std::vector<std::string> echoes;  ///< per prompt: its text, where it is wanted before the answer
    AnswerReader reader;
    std::string id = random_id("cmpl-");
    std::int64_t created = unix_time();

    Json head() const {
        return {
            {"id", id}, {"object", "text_completion"}, {"created", created}, {"model", service.facts().id}};
    }
    const std::string& echo(std::size_t answer) const {
        return echoes[answer / static_cast<std::size_t>(generation.answers)];
    }
    std::size_t answers() const { return echoes.size() * static_cast<std::size_t>(generation.answers); }
};

/// The shape of the old API: four lists. `offset` counts the bytes of the answer before.
Json log_probabilities(const std::vector<scheduler::GeneratedToken>& tokens, const Tokenizer& tokenizer,
                       std::size_t& offset) {
    Json lists = {{"tokens", Json::array()},
                  {"token_logprobs", Json::array()},
                  {"top_logprobs", Json::array()},
                  {"text_offset", Json::array()}};
    for (const scheduler::GeneratedToken& token : tokens) {
        lists["tokens"].push_back(tokenizer.piece(token.id));
        lists["token_logprobs"].push_back(token.log_probability);
        Json top = Json::object();
        for (const TokenLogProbability& other : token.top) {
            top[std::string(tokenizer.piece(other.id))] = other.log_probability;
        }
        lists["top_logprobs"].push_back(std::move(top));
        lists["text_offset"].push_back(offset);
        offset = token.text_end;
    }
    return lists;
}

std::string text_of(const std::vector<AnswerEvent>& events) {
    std::string text;
    for (const AnswerEvent& event : events) text += event.text;
    return text;
}

struct CollectedText {
    std::string text;
    std::vector<scheduler::GeneratedToken> tokens;
    std::string finish;
};

Json choice_json(const Completion& completion, std::size_t index, const CollectedText& answer) {
    std::size_t offset = 0;
    return {{"index", index},
            {"text", completion.echo(index) + answer.text},
            {"logprobs", completion.generation.top_log_probabilities < 0
                             ? Json()
                             : log_probabilities(answer.tokens, completion.service.tokenizer(), offset)},
            {"finish_reason", answer.finish}};
}

/// Sums over prompts; answers to one prompt share it.
class UsageSum {
  public:
    explicit UsageSum(std::size_t prompts) : prompts_(prompts) {}
    void add(std::size_t prompt, const scheduler::Usage& usage) { add_usage(prompts_[prompt], usage); }
    scheduler::Usage total() const {
        scheduler::Usage sum;
        for (const scheduler::Usage& one : prompts_) add_prompt_usage(sum, one);
        return sum;
    }

  private:
    std::vector<scheduler::Usage> prompts_;
};

HttpResponse answer_whole(Completion completion) {
    std::vector<CollectedText> answers(completion.answers());
    UsageSum usage(completion.echoes.size());
    while (auto delta = completion.reader.next()) {
        CollectedText& answer = answers[delta->answer];
        if (auto* piece = std::get_if<AnswerPiece>(&delta->what)) {
            answer.text += text_of(piece->events);
            for (auto& token : piece->tokens) answer.tokens.push_back(std::move(token));
        } else if (auto* end = std::get_if<AnswerEnd>(&delta->what)) {
            answer.finish = finish_word(end->finished.reason, 0);
            usage.add(delta->answer / static_cast<std::size_t>(completion.generation.answers),
                      end->finished.usage);
        }
    }
    Json body = completion.head();
    body["choices"] = Json::array();
    for (std::size_t i = 0; i < answers.size(); ++i)
        body["choices"].push_back(choice_json(completion, i, answers[i]));
    body["usage"] = usage_json(usage.total());
    body["timings"] = timings_json(usage.total());
    return {.body = dump(body)};
}

class CompletionStream {
  public:
    CompletionStream(Completion completion, StreamWriter& writer)
        : completion_(std::move(completion)),
          writer_(writer),
          offsets_(completion_.answers()),
          usage_(completion_.echoes.size()) {}

    void run() {
        for (std::size_t i = 0; i < offsets_.size(); ++i) {
            if (!completion_.echo(i).empty()) writer_.write(sse(chunk(i, completion_.echo(i))));
        }
        while (auto delta = completion_.reader.next([this] { writer_.write(": waiting\n\n"); })) {
            if (auto* progress = std::get_if<scheduler::PromptProgress>(&delta->what)) tell(*progress);
            if (auto* piece = std::get_if<AnswerPiece>(&delta->what)) tell(delta->answer, *piece);
            if (auto* end = std::get_if<AnswerEnd>(&delta->what)) tell(delta->answer, *end);
        }
        if (completion_.reader.left()) return;
        if (completion_.generation.include_usage) {
            Json last = completion_.head();
            last["choices"] = Json::array();
            last["usage"] = usage_json(usage_.total());
            writer_.write(sse(last));
        }
        writer_.write(kSseDone);
    }

  private:
    void tell(const scheduler::PromptProgress& progress) {
        if (!completion_.generation.return_progress) return;
        Json data = completion_.head();
        data["choices"] = Json::array();
        data["prompt_progress"] = progress_json(progress);
        writer_.write(sse(data));
    }
    void tell(std::size_t answer, const AnswerPiece& piece) {
        Json data = chunk(answer, text_of(piece.events));
        if (completion_.generation.top_log_probabilities >= 0) {
            data["choices"][0]["logprobs"] =
                log_probabilities(piece.tokens, completion_.service.tokenizer(), offsets_[answer]);
        }
        writer_.write(sse(data));
    }
    void tell(std::size_t answer, const AnswerEnd& end) {
        usage_.add(answer / static_cast<std::size_t>(completion_.generation.answers), end.finished.usage);
        Json data = chunk(answer, "");
        data["choices"][0]["finish_reason"] = finish_word(end.finished.reason, 0);
        data["timings"] = timings_json(end.finished.usage);
        writer_.write(sse(data));
    }
    Json chunk(std::size_t answer, const std::string& text) const {
        Json data = completion_.head();
        data["choices"] = Json::array(
            {{{"index", answer}, {"text", text}, {"logprobs", nullptr}, {"finish_reason", nullptr}}});
        return data;
    }

    Completion completion_;
    StreamWriter& writer_;
    std::vector<std::size_t> offsets_;  ///< [answers] bytes of text told so far
    UsageSum usage_;
};

HttpResponse answer_stream(Completion completion) {
    const auto shared = std::make_shared<std::optional<Completion>>(std::move(completion));
    return {.content_type = kEventStream,
            .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}},
            .stream = [shared](StreamWriter& writer) {
                try {
                    Completion taken = std::move(**shared);
                    shared->reset();
                    CompletionStream(std::move(taken), writer).run();
                } catch (const std::exception& error) {
                    writer.write(sse(stream_error(error)));
                }
            }};
}

void refuse_unsupported(const Fields& fields, const Generation& generation, bool echo) {
    if (const auto suffix = fields.string("suffix"); suffix && !suffix->empty()) {
        refuse_field("suffix", "filling in the middle is not supported; leave it out");
    }
    if (echo && generation.top_log_probabilities >= 0) {
        refuse_field("logprobs", "of an echoed prompt are not supported; leave out echo or logprobs");
    }
}

HttpResponse complete(const HttpRequest& request, Service& service) {
    const Json body = parse_object(request.body);
    const Fields fields(body);
    Generation generation = read_generation(fields, service, request.client());
    if (const auto top = fields.integer("logprobs", 0, kMostLogProbabilities))
        generation.top_log_probabilities = *top;
    const bool echo = fields.boolean("echo").value_or(false);
    refuse_unsupported(fields, generation, echo);
    const auto constraint = constrain(read_format(fields), {}, service);

    const std::vector<std::vector<TokenId>> prompts = read_prompts(fields, "prompt", service);
    if (prompts.size() * static_cast<std::size_t>(generation.answers) > kMostPrompts) {
        refuse_field("n", fmt::format("asks for {} answers to each of {} prompts, and at most {} are written",
                                      generation.answers, prompts.size(), kMostPrompts));
    }
    std::vector<scheduler::Request> requests;
    std::vector<std::string> echoes;
    for (const std::vector<TokenId>& prompt : prompts) {
        echoes.push_back(echo ? service.tokenizer().decode(prompt) : std::string());
        for (int i = 0; i < generation.answers; ++i) {
            requests.push_back(
                make_request(generation, service, prompt, i, constraint ? constraint() : nullptr));
        }
    }
    AnswerReader reader(submit(std::move(requests), service), {}, request.present);
    Completion completion{service, std::move(generation), std::move(echoes), std::move(reader)};
    return completion.generation.stream ? answer_stream(std::move(completion))
                                        : answer_whole(std::move(completion));
}

}  // namespace

void add_completions(Router& router, Service& service) {
    const auto handler = [&service](const HttpRequest& request, const std::string&) {
        return complete(request, service);
    };
    router.add("POST", "/v1/completions", handler);
    router.add("POST", "/completions", handler);
}

}  // namespace coterie::server
