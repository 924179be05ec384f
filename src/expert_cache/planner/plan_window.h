#pragma once

#include <cstdint>
#include <span>

namespace coterie::expert_cache {

/// What a prompt meets in one layer of experts.
struct WindowLayer {
    std::int32_t experts;
    std::int32_t experts_used;  ///< per token
    std::int32_t missing;       ///< experts that no device holds
    std::uint64_t expert_bytes;
    double token_seconds;  ///< computing one token of the layer, all its parts, where prompts run
};

struct WindowProblem {
    std::span<const WindowLayer> layers;
    double stream_bytes_per_second;  ///< all links together, as far as RAM serves them
    std::int64_t prompt_tokens;      ///< still to be read
    std::int64_t context_tokens;     ///< that a window may hold at most
    std::uint64_t bytes_per_token;   ///< of workspace that each token of a window takes
    std::uint64_t workspace_bytes;   ///< that can be lent
};

/// What set a window's size.
enum class WindowLimit {
    Balance,  ///< a larger one would not be faster: streaming hides behind computing
    Prompt,   ///< the whole prompt: the links are slower than the computing
    Memory,   ///< the workspace holds no more
};

struct WindowPlan {
    std::int64_t tokens;  ///< of a window; the last one may be shorter
    WindowLimit limit;
    double stream_seconds;   ///< of a window, all layers
    double compute_seconds;  ///< of a window, all layers
};

/// About the smallest window, a multiple of 64 tokens or the whole prompt, for which streaming the missing
/// experts takes no longer than computing: a prompt is then soon cancelled or overtaken, and each byte still
/// crosses a link as rarely as pays. Windows are made even, so that no short last one waits for its experts.
/// Of W tokens with k of E experts each, E (1 - (1 - k / E)^W) experts are expected to be used.
/// Throws OutOfMemory, with the bytes, where the workspace does not hold 64 tokens.
WindowPlan plan_window(const WindowProblem& problem);

}  // namespace coterie::expert_cache
