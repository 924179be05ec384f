#include "devices/fake/flows.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace coterie::fake {
namespace {

// Less than any copy has, more than rounding leaves of one.
constexpr double kNothing = 1e-3;

}  // namespace

FlowId Flows::add(double bytes, double rate) {
    const Flow flow{.id = ++last_id_, .bytes = bytes, .limit = rate};
    const auto place = std::upper_bound(flows_.begin(), flows_.end(), rate,
                                        [](double value, const Flow& other) { return value < other.limit; });
    flows_.insert(place, flow);
    share_out();
    return flow.id;
}

void Flows::remove(FlowId id) {
    std::erase_if(flows_, [id](const Flow& flow) { return flow.id == id; });
    share_out();
}

void Flows::share_out() {
    double left = shared_rate_;
    auto others = static_cast<double>(flows_.size());
    for (Flow& flow : flows_) {
        flow.rate = std::min(flow.limit, left / others);
        left -= flow.rate;
        others -= 1;
    }
}

void Flows::advance(Nanoseconds time) {
    const double seconds = 1e-9 * static_cast<double>(time.count());
    for (Flow& flow : flows_) flow.bytes -= flow.rate * seconds;
}

Nanoseconds Flows::until_next_done() const {
    double seconds = kEndless;
    for (const Flow& flow : flows_) seconds = std::min(seconds, std::max(flow.bytes, 0.0) / flow.rate);
    const double nanoseconds = std::ceil(seconds * 1e9);
    if (!(nanoseconds < 9e18)) return Nanoseconds::max();
    return Nanoseconds(static_cast<Nanoseconds::rep>(nanoseconds));
}

bool Flows::done(FlowId id) const {
    for (const Flow& flow : flows_) {
        if (flow.id == id) return flow.bytes <= kNothing;
    }
    COTERIE_CHECK(false);
    return false;
}

}  // namespace coterie::fake
