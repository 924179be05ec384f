#include <algorithm>
#include <limits>

#include "base/error.h"
#include "sampling/samplers/samplers.h"

namespace coterie {
namespace {

constexpr float kUnlimited = std::numeric_limits<float>::infinity();

bool token_before(const TokenBias& a, const TokenBias& b) { return a.token < b.token; }

}  // namespace

LogitBias::LogitBias(std::vector<TokenBias> biases, std::int64_t vocabulary) {
    std::stable_sort(biases.begin(), biases.end(), token_before);
    for (const TokenBias& entry : biases) {
        if (entry.token < 0 || entry.token >= vocabulary) {
            fail(ErrorCode::InvalidArgument, "logit_bias: token {} is not in the vocabulary of {} tokens",
                 entry.token, vocabulary);
        }
        if (!(entry.bias < kUnlimited)) {
            fail(ErrorCode::InvalidArgument, "logit_bias: {} for token {} is no finite number", entry.bias,
                 entry.token);
        }
        if (!biases_.empty() && biases_.back().token == entry.token) {
            biases_.back().bias += entry.bias;
        } else {
            biases_.push_back(entry);
            tokens_.push_back(entry.token);
        }
    }
}

void LogitBias::apply(Candidates& candidates, Random&) {
    for (const TokenBias& entry : biases_) candidates.add_to_logit(entry.token, entry.bias);
    if (candidates.max_logit() == -kUnlimited)
        fail(ErrorCode::InvalidArgument, "logit_bias forbids every token");
}

}  // namespace coterie
