#pragma once

#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "scheduler/run/runner.h"
#include "tokenizer/small_vocabularies.h"

namespace coterie::scheduler {

/// Attention alone, experts, and recurrent layers. All have 512 tokens.
inline const std::vector<std::string> kTestModels = {"qwen3moe-iq4_xs", "deepseek2-v3-f16", "qwen3next-bf16"};

inline std::vector<TokenId> random_tokens(std::int64_t count, int seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    std::vector<TokenId> tokens(static_cast<std::size_t>(count));
    for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 500);
    return tokens;
}

inline std::string read_bytes(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}
inline void write_bytes(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

/// A tokenizer of as many tokens as the test models have, each of them a word.
inline const Tokenizer& test_tokenizer() {
    static const Tokenizer tokenizer([] {
        VocabularyData data;
        data.model = "gpt2";
        data.pre = "qwen2";
        for (int id = 0; id < 512; ++id) {
            if (id == 256) {
                small_vocabularies::add_merge(data, "h", "e");
                continue;
            }
            const std::string text =
                id < 256 ? std::string(1, static_cast<char>(id)) : fmt::format("w{} ", id);
            small_vocabularies::add(data, bytes_to_alphabet(text), TokenType::Normal);
        }
        return data;
    }());
    return tokenizer;
}

struct TestAnswer {
    std::vector<TokenId> ids;
    std::string text;
    Finished finished;
    int slot = -1;
    std::string failure;
};

/// A runner over a small model, and the readers of its answers.
class RunnerFixture {
  public:
    struct EngineSetting {
        std::int64_t context;
        std::int64_t batch;
    };

    RunnerFixture(const std::string& model, SchedulerOptions options, const EngineSetting& setting)
        : engine_(open(model), engine_options(setting)),
          usage_(engine_),
          runner_(engine_, options, counters_, usage_) {}

    Runner& runner() { return runner_; }
    const Counters& counters() const { return counters_; }
    const std::vector<TestAnswer>& answers() const { return answers_; }

    static SamplingOptions greedy() {
        SamplingOptions options;
        options.temperature = 0;
        return options;
    }

    void admit(std::vector<TokenId> prompt, std::int64_t max_tokens, std::chrono::milliseconds limit = {},
               const SamplingOptions& sampling = greedy(),
               std::unique_ptr<TokenConstraint> constraint = nullptr) {
        Request request;
        request.prompt = std::move(prompt);
        request.max_tokens = max_tokens;
        request.wants_tokens = true;
        request.stop_at_end_tokens = false;
        request.limit = limit;
        request.constraint = std::move(constraint);
        request.sampler = std::make_unique<SamplerChain>(sampling, engine_.config().vocabulary);
        begin(std::move(request));
    }

    void embed(std::vector<TokenId> text, Pooling pooling) {
        Request request;
        request.prompt = std::move(text);
        request.embedding = pooling;
        begin(std::move(request));
    }

    /// Admits each as soon as there is room, and runs until all are done.
    void admit_all(const std::vector<std::vector<TokenId>>& prompts, std::int64_t max_tokens) {
        for (const auto& prompt : prompts) {
            while (runner_.running() == runner_slots()) advance();
            admit(prompt, max_tokens);
        }
        run();
    }

    /// Until nothing is left that could be done.
    void run() {
        while (advance()) {
        }
        check();
    }

    void leave(std::size_t reader) { queues_[reader]->close(), attentive_[reader] = false; }
    void ignore(std::size_t reader) { attentive_[reader] = false; }
    void attend(std::size_t reader) {
        attentive_[reader] = true;
        read();
    }

  private:
    static std::shared_ptr<const gguf::Archive> open(const std::string& model) {
        return std::make_shared<gguf::Archive>(
            gguf::Archive::open(COTERIE_SOURCE_DIR "/tests/golden/models/" + model + ".gguf"));
    }
    static engine::EngineOptions engine_options(const EngineSetting& setting) {
        engine::EngineOptions options;
        options.threads = 1;
        options.context = setting.context;
        options.batch = setting.batch;
        return options;
    }

    void begin(Request request) {
        request.bell = std::make_shared<Bell>();
        auto job = std::make_unique<Job>(std::move(request), ++number_, test_tokenizer(), engine_.context());
        queues_.push_back(job->events());
        attentive_.push_back(true);
        answers_.emplace_back();
        runner_.admit(std::move(job));
    }

    std::int64_t runner_slots() const { return static_cast<std::int64_t>(runner_.status().size()); }

    bool advance() {
        const bool worked = runner_.step();
        read();
        return worked;
    }

    void read() {
        for (std::size_t i = 0; i < queues_.size(); ++i) {
            while (attentive_[i]) {
                const auto event = queues_[i]->pop(std::chrono::milliseconds(0));
                if (!event) break;
                take(*event, answers_[i]);
            }
        }
    }

    static void take(const Event& event, TestAnswer& answer) {
        if (const auto* started = std::get_if<Started>(&event)) answer.slot = started->slot;
        if (const auto* finished = std::get_if<Finished>(&event)) answer.finished = *finished;
        if (const auto* failed = std::get_if<Failed>(&event)) answer.failure = failed->message;
        if (const auto* text = std::get_if<Text>(&event)) {
            answer.text += text->text;
            for (const GeneratedToken& token : text->tokens) answer.ids.push_back(token.id);
        }
    }

    void check() const {
        for (const TestAnswer& answer : answers_) COTERIE_CHECK(answer.failure.empty());
    }

    engine::Engine engine_;
    Counters counters_;
    ExpertUsage usage_;
    Runner runner_;
    std::uint64_t number_ = 0;
    std::vector<std::shared_ptr<EventQueue>> queues_;
    std::vector<bool> attentive_;
    std::vector<TestAnswer> answers_;
};

}  // namespace coterie::scheduler
