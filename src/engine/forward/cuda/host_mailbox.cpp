#include "engine/forward/cuda/host_mailbox.h"

#include <algorithm>

namespace coterie::engine {

HostMailbox::HostMailbox(CudaDevice& device, const WeightList& list, std::int64_t tokens, std::int64_t width,
                         bool keep_values) {
    std::int64_t used = 0;
    for (const models::MoeFfn* ffn : list.experts)
        used = std::max(used, ffn != nullptr ? ffn->routing.used : 0);
    const auto layers = static_cast<std::int64_t>(list.experts.size());
    const std::int64_t groups = stored_groups(width);
    std::uint64_t end = 0;
    std::byte* base = nullptr;
    const auto place = [&]<typename T>(T*& at, std::int64_t count) {
        at = reinterpret_cast<T*>(base + end);
        end += (static_cast<std::uint64_t>(count) * sizeof(T) + 127) / 128 * 128;
    };
    const auto lay_out = [&] {
        end = 0;
        std::uint64_t* flags = nullptr;
        place(flags, 64);  // each on a line of its own
        view_.request = flags;
        view_.reply = flags + 16;
        view_.failed = flags + 32;
        view_.done = flags + 48;
        place(view_.missing, layers);
        place(view_.experts, layers * tokens * used);
        place(view_.weights, layers * tokens * used);
        if (keep_values) place(view_.values, tokens * groups * kGroupValues);
        place(view_.quants, tokens * groups * kGroupValues);
        place(view_.scales, tokens * groups);
        place(view_.scaled_sums, tokens * groups);
        place(view_.half_sums, tokens * groups * 2);
        place(view_.rows, tokens * used);
        place(view_.outputs, tokens * used * width);
    };
    view_.groups = groups;
    lay_out();
    memory_ = device.allocate_mapped(end);
    base = memory_->span().data();
    std::fill(memory_->span().begin(), memory_->span().end(), std::byte{0});
    lay_out();
}

ActivationRow HostMailbox::input(std::int64_t t, std::int64_t columns) const {
    const std::int64_t group = t * view_.groups;
    return {columns,
            view_.values == nullptr ? nullptr : view_.values + group * kGroupValues,
            view_.quants + group * kGroupValues,
            view_.scales + group,
            view_.scaled_sums + group,
            view_.half_sums + group * 2};
}

}  // namespace coterie::engine
