#include "expert_cache/planner/plan_window.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace coterie::expert_cache {
namespace {

/// Windows end on the grid of a sequence, whose full cells are computed as prompts.
constexpr std::int64_t kGridTokens = 64;

/// The share of a layer's experts that `tokens` tokens are expected to use, each choosing at random.
double used_share(const WindowLayer& layer, std::int64_t tokens) {
    const double left_out = 1.0 - static_cast<double>(layer.experts_used) / layer.experts;
    return 1.0 - std::pow(left_out, static_cast<double>(tokens));
}

double stream_seconds(const WindowProblem& problem, std::int64_t tokens) {
    double bytes = 0;
    for (const WindowLayer& layer : problem.layers) {
        if (layer.missing == 0) continue;
        bytes += used_share(layer, tokens) * layer.missing * static_cast<double>(layer.expert_bytes);
    }
    return bytes / problem.stream_bytes_per_second;
}

double compute_seconds(const WindowProblem& problem, std::int64_t tokens) {
    double seconds = 0;
    for (const WindowLayer& layer : problem.layers) seconds += layer.token_seconds;
    return seconds * static_cast<double>(tokens);
}

bool streaming_hides(const WindowProblem& problem, std::int64_t tokens) {
    return stream_seconds(problem, tokens) <= compute_seconds(problem, tokens);
}

std::int64_t memory_tokens(const WindowProblem& problem) {
    if (problem.bytes_per_token == 0) return problem.prompt_tokens;
    const std::uint64_t tokens = problem.workspace_bytes / problem.bytes_per_token;
    return static_cast<std::int64_t>(std::min(tokens, static_cast<std::uint64_t>(problem.prompt_tokens)));
}

/// The most tokens that a window may have.
std::int64_t largest(const WindowProblem& problem, std::int64_t in_memory) {
    const std::int64_t wanted = std::min(problem.prompt_tokens, problem.context_tokens);
    if (in_memory >= wanted) return wanted;
    if (in_memory < kGridTokens) {
        fail(
            ErrorCode::OutOfMemory,
            "a prompt's window of {} tokens needs {} bytes of workspace, there are {}; use a smaller context "
            "(-c), which leaves more slots to lend it",
            kGridTokens, kGridTokens * problem.bytes_per_token, problem.workspace_bytes);
    }
    return in_memory / kGridTokens * kGridTokens;
}

/// Smallest multiple of the grid below `limit` for which streaming hides, or `limit`. Streaming grows ever
/// slower with the tokens and computing does not, so that once it hides it stays hidden.
std::int64_t smallest_hiding(const WindowProblem& problem, std::int64_t limit) {
    std::int64_t low = 1;  // in cells of the grid
    std::int64_t high = (limit + kGridTokens - 1) / kGridTokens;
    while (low < high) {
        const std::int64_t middle = low + (high - low) / 2;
        if (streaming_hides(problem, middle * kGridTokens)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return std::min(low * kGridTokens, limit);
}

std::int64_t even_share(const WindowProblem& problem, std::int64_t windows) {
    const std::int64_t share = (problem.prompt_tokens + windows - 1) / windows;
    return (share + kGridTokens - 1) / kGridTokens * kGridTokens;
}

/// Windows of at least `tokens`, but even ones: a short last one would wait for its experts.
std::int64_t even(const WindowProblem& problem, std::int64_t tokens, std::int64_t limit) {
    const std::int64_t share = even_share(problem, std::max<std::int64_t>(problem.prompt_tokens / tokens, 1));
    if (share <= limit) return share;
    return std::min(even_share(problem, (problem.prompt_tokens + limit - 1) / limit), limit);
}

}  // namespace

WindowPlan plan_window(const WindowProblem& problem) {
    COTERIE_CHECK(problem.prompt_tokens > 0 && problem.context_tokens > 0);
    COTERIE_CHECK(problem.stream_bytes_per_second > 0);
    const std::int64_t in_memory = memory_tokens(problem);
    const std::int64_t limit = largest(problem, in_memory);
    const std::int64_t hiding = smallest_hiding(problem, limit);
    const std::int64_t tokens = even(problem, hiding, limit);
    WindowPlan plan{.tokens = tokens,
                    .limit = WindowLimit::Balance,
                    .stream_seconds = stream_seconds(problem, tokens),
                    .compute_seconds = compute_seconds(problem, tokens)};
    if (hiding == limit && !streaming_hides(problem, limit)) {
        plan.limit = in_memory < problem.prompt_tokens ? WindowLimit::Memory : WindowLimit::Prompt;
    }
    return plan;
}

}  // namespace coterie::expert_cache
