#include <algorithm>
#include <limits>

#include "base/error.h"
#include "sampling/samplers/samplers.h"

namespace coterie {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool token_before(const TokenBias& a, const TokenBias& b) { return a.token < b.token; }

}  // namespace

LogitBias::LogitBias(std::vector<TokenBias> biases, std::int64_t vocabulary) {
    std::stable_sort(biases.begin(), biases.end(), token_before);
    for (const TokenBias& entry : biases) {
        if (entry.token < 0 || entry.token >= vocabulary) {
            fail(ErrorCode::InvalidArgument, "logit_bias: token {} is not in the vocabulary of {} tokens",
                 entry.token, vocabulary);
        }
        if (!(entry.bias < kInfinity)) {
            fail(ErrorCode::InvalidArgument, "logit_bias: {} for token {} is no finite number", entry.bias,
                 entry.token);
        }
        if (!biases_.empty() && biases_.back().token == entry.token) {
            biases_.back().bias += entry.bias;
        } else {
            biases_.push_back(entry);
        }
    }
}

void LogitBias::apply(Candidates& candidates, Random&) {
    candidates.change_logits([&](const Candidate& candidate) {
        const auto entry =
            std::lower_bound(biases_.begin(), biases_.end(), TokenBias{candidate.id, 0}, token_before);
        const bool found = entry != biases_.end() && entry->token == candidate.id;
        return found ? candidate.logit + entry->bias : candidate.logit;
    });
    if (candidates.max_logit() == -kInfinity)
        fail(ErrorCode::InvalidArgument, "logit_bias forbids every token");
}

}  // namespace coterie
