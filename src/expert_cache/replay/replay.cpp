#include "expert_cache/replay/replay.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "base/error.h"
#include "expert_cache/expert_key.h"
#include "expert_cache/policy/registry.h"
#include "expert_cache/replay/replayed_layer.h"
#include "expert_cache/replay/time_model.h"

namespace coterie::expert_cache {
namespace {

enum class Uploads { Timed, Free };

/// One policy's way through the tokens.
class Run {
  public:
    Run(const ReplayTokens& tokens, std::vector<ReplayedLayer> layers, const ReplayCosts& costs,
        Uploads uploads)
        : tokens_(tokens),
          layers_(std::move(layers)),
          time_(costs),
          upload_kind_(uploads),
          experts_(tokens.buffer()) {}

    void decode(std::int64_t token) {
        land_uploads(token);
        tokens_.read(token, experts_);
        missed_.clear();
        for (std::size_t layer = 0; layer < layers_.size(); ++layer) run_layer(layer, token);
        time_.end_token();
        offer_missed(token);
        ++result_.tokens;
    }
    ReplayResult result() const {
        ReplayResult result = result_;
        result.seconds = time_.now();
        return result;
    }

  private:
    struct Upload {
        ExpertKey key;
        double landed;  ///< when
    };

    ReplayedLayer& layer(ExpertKey key) { return layers_[static_cast<std::size_t>(key.layer)]; }
    double expert_bytes(std::size_t layer) const {
        return static_cast<double>(tokens_.header().layers[layer].expert_bytes);
    }
    void run_layer(std::size_t layer, std::int64_t token) {
        const auto used = static_cast<std::size_t>(tokens_.header().used);
        std::int64_t hits = 0;
        std::int64_t misses = 0;
        for (const std::int32_t expert : std::span(experts_).subspan(layer * used, used)) {
            if (expert < 0) break;
            if (layers_[layer].use(expert, token)) {
                ++hits;
            } else {
                ++misses;
                missed_.push_back({static_cast<std::int32_t>(layer), expert});
            }
        }
        result_.hits += hits;
        result_.uses += hits + misses;
        time_.run_layer(static_cast<double>(hits) * expert_bytes(layer),
                        static_cast<double>(misses) * expert_bytes(layer));
    }
    void offer_missed(std::int64_t token) {
        const auto first_layer = static_cast<std::int32_t>(static_cast<std::size_t>(token) % layers_.size());
        const auto first = std::partition_point(missed_.begin(), missed_.end(),
                                                [&](ExpertKey key) { return key.layer < first_layer; });
        std::rotate(missed_.begin(), first, missed_.end());
        for (const ExpertKey key : missed_) {
            const double bytes = expert_bytes(static_cast<std::size_t>(key.layer));
            const bool within_budget = upload_kind_ == Uploads::Free || time_.may_upload(bytes);
            if (within_budget && layer(key).start_upload(key.expert, token)) upload(key, token, bytes);
        }
    }
    void upload(ExpertKey key, std::int64_t token, double bytes) {
        ++result_.uploads;
        result_.upload_bytes += bytes;
        if (upload_kind_ == Uploads::Free) return layer(key).upload_landed(key.expert, token);
        uploads_.push_back({key, time_.start_upload(bytes)});
    }
    void land_uploads(std::int64_t token) {
        while (!uploads_.empty() && uploads_.front().landed <= time_.now()) {
            const ExpertKey key = uploads_.front().key;
            uploads_.pop_front();
            // The policy has seen no use of this token yet.
            layer(key).upload_landed(key.expert, token - 1);
        }
    }

    const ReplayTokens& tokens_;
    std::vector<ReplayedLayer> layers_;
    TimeModel time_;
    Uploads upload_kind_;
    std::vector<std::int32_t> experts_;  ///< [layers][used] of the current token
    std::vector<ExpertKey> missed_;      ///< by the current token; layers by their place in the trace
    std::deque<Upload> uploads_;         ///< on their way, in the order of landing
    ReplayResult result_;
};

}  // namespace

Replay::Replay(const ReplayTokens& tokens) : tokens_(tokens) { COTERIE_CHECK(tokens.size() > 0); }

ReplayResult Replay::run(std::string_view policy, std::int32_t slots, const ReplayCosts& costs) {
    const PolicyKind& kind = find_policy(policy);
    const TraceHeader& header = tokens_.header();
    if (kind.needs == PolicyNeeds::Future && future_.empty()) future_ = tokens_.future();
    std::vector<ReplayedLayer> layers;
    for (std::size_t layer = 0; layer < header.layers.size(); ++layer) {
        PolicySetting setting{.experts = header.experts, .slots = slots, .profile = tokens_.uses(layer)};
        if (kind.needs == PolicyNeeds::Future) setting.future = future_[layer];
        layers.emplace_back(kind.make(setting), header.experts, slots);
        if (kind.needs != PolicyNeeds::Nothing) layers.back().fill();
    }
    Run run(tokens_, std::move(layers), costs,
            kind.needs == PolicyNeeds::Future ? Uploads::Free : Uploads::Timed);
    for (std::int64_t token = 0; token < tokens_.size(); ++token) run.decode(token);
    ReplayResult result = run.result();
    result.policy = kind.name;
    result.slots = slots;
    return result;
}

std::int32_t slots_of(double percent, std::int32_t experts) {
    return std::max(1, static_cast<std::int32_t>(std::lround(percent / 100.0 * experts)));
}

}  // namespace coterie::expert_cache
