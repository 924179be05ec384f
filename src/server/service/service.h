#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "chat/template.h"
#include "chat/tools/tool_format.h"
#include "sampling/grammar/grammar_constraint.h"
#include "sampling/grammar/grammar_vocabulary.h"
#include "sampling/sampling_options.h"
#include "scheduler/request.h"
#include "tokenizer/tokenizer.h"

namespace coterie::scheduler {
class Scheduler;
}

namespace coterie::server {

/// What there is to say about the model that a server runs.
struct ModelFacts {
    std::string id;    ///< what clients call it: --alias, or its name
    std::string name;  ///< of the file
    std::string architecture;
    std::int64_t created = 0;  ///< seconds since 1970
    std::int64_t context = 0;  ///< tokens of one request and its answer
    std::int64_t trained_context = 0;
    std::int64_t vocabulary = 0;
    std::int64_t embedding = 0;
    std::int64_t layers = 0;
    std::int64_t experts = 0;
    std::int64_t experts_used = 0;
    std::uint64_t bytes = 0;  ///< of the file
};

/// How a server was started.
struct ServiceOptions {
    SamplingOptions sampling;               ///< where a request says nothing
    std::int64_t max_tokens = -1;           ///< of an answer, where a request says nothing; -1: no limit
    bool ignore_end = false;                ///< answers go on behind end tokens
    std::string slot_folder;                ///< where slots are saved; empty: nowhere
    bool metrics = false;                   ///< GET /metrics
    std::optional<ToolFormat> tool_format;  ///< in place of what the template says
    scheduler::Pooling pooling = scheduler::Pooling::Mean;  ///< of embeddings, where a request says nothing
};

/// What every endpoint needs: the model's tokenizer and template, the scheduler, and how the server was
/// started. Shared by all threads.
class Service {
  public:
    struct Parts {
        const Tokenizer& tokenizer;
        std::optional<ChatTemplate> chat_template;
        std::string no_template_reason;  ///< where there is none
        scheduler::Scheduler& scheduler;
        ModelFacts facts;
        ServiceOptions options;
    };
    explicit Service(Parts parts);

    const Tokenizer& tokenizer() const { return parts_.tokenizer; }
    scheduler::Scheduler& scheduler() const { return parts_.scheduler; }
    const ModelFacts& facts() const { return parts_.facts; }
    const ServiceOptions& options() const { return parts_.options; }

    /// Throws ApiError where the model has none.
    const ChatTemplate& chat_template() const;
    bool has_chat_template() const { return parts_.chat_template.has_value(); }
    ToolFormat tool_format() const;

    /// Holds an answer to a grammar. Constraints of one grammar share what they work out; `key` stands for
    /// the grammar, `compile` is called where it is new.
    std::unique_ptr<scheduler::TokenConstraint> constraint(const std::string& key,
                                                           const std::function<GrammarPointer()>& compile);

  private:
    GrammarConstraint fresh_constraint(const std::string& key,
                                       const std::function<GrammarPointer()>& compile);

    Parts parts_;
    std::shared_ptr<const GrammarVocabulary> vocabulary_;
    std::mutex mutex_;                                             ///< guards recent_
    std::list<std::pair<std::string, GrammarConstraint>> recent_;  ///< latest first
};

}  // namespace coterie::server
