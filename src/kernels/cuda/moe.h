#pragma once

#include <cstdint>

#include "kernels/cpu/route.h"
#include "kernels/cuda/row_ops.h"

/// The routed part of a layer on the device: the router's choice, the hand-off of experts that this device
/// does not hold, and the sum of a token's experts.
namespace coterie::cuda {

/// What the device writes for the host and the host for the device, in mapped host memory; written afresh by
/// every layer that has misses, one layer at a time.
///
///     part       writer   when                                    reader
///     routing    device   a layer with misses, and the step's end host
///     inputs     device   a layer with misses, before `request`   host
///     request    device   then: the layer's epoch                 host, polling
///     rows       host     where each missed pair's output lies    device
///     outputs    host     then the rows themselves                device
///     reply      host     then: the same epoch                    device, polling, less than a second
///     failed     device   instead: the epoch that was not answered in time
///     done       device   after the last layer: the step's number host, polling
///
/// An epoch is step * kEpochsPerStep + layer + 1.
struct Mailbox {
    std::int32_t* experts = nullptr;   ///< [layers][tokens][used]: routing
    float* weights = nullptr;          ///< [layers][tokens][used]
    std::uint32_t* missing = nullptr;  ///< [layers]: pairs that this device cannot compute

    // Inputs, as ActivationRow wants them; rows `groups` groups apart.
    float* values = nullptr;            ///< [tokens][groups * 32], or null where no expert reads them
    std::int8_t* quants = nullptr;      ///< [tokens][groups * 32]
    float* scales = nullptr;            ///< [tokens][groups]
    float* scaled_sums = nullptr;       ///< [tokens][groups]
    std::int16_t* half_sums = nullptr;  ///< [tokens][groups][2]
    std::int64_t groups = 0;

    std::int32_t* rows = nullptr;  ///< [tokens * used]: row of `outputs`
    float* outputs = nullptr;      ///< [rows][width], in the order of (expert, pair)

    volatile std::uint64_t* request = nullptr;
    volatile std::uint64_t* reply = nullptr;
    volatile std::uint64_t* failed = nullptr;
    volatile std::uint64_t* done = nullptr;
};
inline constexpr std::uint64_t kEpochsPerStep = 4096;

/// Nanoseconds that layers with misses spent on the hand-off, summed up since the start by each token's first
/// block.
struct HandOffTimes {
    unsigned long long posting = 0;  ///< writing inputs and the request
    unsigned long long waiting = 0;  ///< from the experts' end here to the reply
    unsigned long long reading = 0;  ///< the host's rows, while adding up
};

/// What of a step lives in device memory. The routing is kept here until the step's end: a write to the host
/// would hold up the end of every layer's kernel.
struct StepCounters {
    const std::uint64_t* step = nullptr;  ///< number of the step
    std::uint32_t* missing = nullptr;     ///< [layers], zero when the step begins
    std::uint32_t* routed = nullptr;      ///< [layers]: tokens done, zero when the step begins
    std::int32_t* experts = nullptr;      ///< [layers][tokens of the mailbox][used]
    float* weights = nullptr;             ///< as experts
    HandOffTimes* times = nullptr;        ///< or null
    /// The last epoch whose reply a block has seen; for the other blocks of its kernel, which then need not
    /// ask the host. Zero at the start.
    std::uint64_t* answered = nullptr;
};

inline constexpr std::int32_t kMostExperts = 1024;
inline constexpr std::int32_t kMostUsed = 32;

/// How many of a token's missing experts the device reads over the link itself: those of the best ranks. The
/// host computes the others at the same time.
struct LinkShare {
    std::uint8_t of[kMostUsed + 1] = {};  ///< by the number of missing experts
};

struct RouteArgs {
    cpu::Routing routing;  ///< at most kMostExperts experts, of which at most kMostUsed are used
    std::int32_t layer = 0;
    std::int32_t tokens = 0;
    std::int32_t max_tokens = 0;    ///< of the mailbox's routing
    const float* logits = nullptr;  ///< [tokens][logits_stride]
    std::int64_t logits_stride = 0;
    const float* selection_bias = nullptr;     ///< [experts] or null
    const std::uint64_t* residents = nullptr;  ///< [experts]: address of the expert's slot, 0: none
    std::int32_t* experts = nullptr;           ///< [tokens][used]
    float* weights = nullptr;                  ///< [tokens][used]
    std::uint64_t* slots = nullptr;            ///< [tokens][used], for expert products (matmul.h)
    LinkShare link;
    Activations x;  ///< of the layer
    std::int32_t columns = 0;
    StepCounters counters;
    Mailbox mailbox;
};
void route(const RouteArgs& args, StreamHandle stream);

/// The router's product with rows that it normalises: out = (row . norm) * scale + bias, a warp a row.
struct RouterArgs {
    NormedInput input;
    const float* weights = nullptr;  ///< [experts][input.width]
    float scale = 1.0f;
    const float* bias = nullptr;        ///< [experts] or null
    float* logits = nullptr;            ///< [tokens][args.logits_stride]
    std::uint32_t* arrivals = nullptr;  ///< [tokens], zero before and after
};
/// Whether the current GPU has room for such a product in one kernel with its norm and routing.
bool routes_normed(std::int32_t experts, std::int32_t width);
/// Norm, product and `route` of its logits in one kernel. `args.x` is what the norm stores.
void route_normed(const RouterArgs& router, const RouteArgs& args, StreamHandle stream);

/// out[t] = the sum over ranks of fma(weight, expert's row, out), from +0, then the shared expert's row,
/// weighed by the sigmoid of its gate where there is one. Waits for the host's rows where pairs were missing.
struct CombineArgs {
    std::int32_t layer = 0;
    std::int32_t used = 0;
    Rows out;
    const float* rows = nullptr;  ///< [tokens * used][stride]: computed here
    std::int64_t stride = 0;
    const std::uint64_t* slots = nullptr;
    const float* weights = nullptr;
    const float* shared = nullptr;       ///< [tokens][out.stride] or null
    const float* shared_gate = nullptr;  ///< [tokens] logits or null
    StepCounters counters;
    Mailbox mailbox;
};
void combine(const CombineArgs& args, StreamHandle stream);

/// After everything queued before: the routing of the first `pairs` (token, rank) pairs of all layers goes to
/// the mailbox, whose layers are `layer_pairs` pairs apart; then mailbox.done = the step's number.
struct FinishArgs {
    std::int32_t layers = 0;
    std::int32_t pairs = 0;
    std::int64_t layer_pairs = 0;
    StepCounters counters;
    Mailbox mailbox;
};
void finish_step(const FinishArgs& args, StreamHandle stream);

}  // namespace coterie::cuda
