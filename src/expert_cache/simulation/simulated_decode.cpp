#include "expert_cache/simulation/simulated_decode.h"

#include <algorithm>
#include <vector>

#include "expert_cache/planner/plan_step.h"
#include "expert_cache/policy/registry.h"
#include "expert_cache/simulation/simulated_layer.h"
#include "expert_cache/simulation/simulated_machine.h"

namespace coterie::expert_cache {
namespace {

class Decode {
  public:
    explicit Decode(const DecodeScenario& scenario)
        : scenario_(scenario),
          machine_(scenario_.costs, static_cast<double>(scenario.chunk_bytes)),
          spare_{scenario.spare_slots},
          workspace_(scenario.routing.used, 1),
          assignments_(static_cast<std::size_t>(scenario.routing.used)) {
        for (std::int32_t layer = 0; layer < scenario.layers; ++layer) {
            RoutingOptions routing = scenario.routing;
            routing.seed += static_cast<std::uint64_t>(layer) * 0x9e3779b9U;
            routers_.emplace_back(routing);
            const PolicySetting setting{.experts = routing.experts, .slots = scenario.slots};
            layers_.emplace_back(make_policy(scenario.policy, setting), routing.experts, scenario.slots);
        }
    }

    DecodeOutcome run() {
        for (token_ = 0; token_ < scenario_.warm_up_tokens; ++token_) decode_token();
        outcome_ = {};
        const double begin = machine_.now();
        for (; token_ < scenario_.warm_up_tokens + scenario_.tokens; ++token_) decode_token();
        outcome_.seconds = machine_.now() - begin;
        return outcome_;
    }

  private:
    void decode_token() {
        for (std::int32_t layer = 0; layer < scenario_.layers; ++layer) decode_layer(layer);
    }

    void decode_layer(std::int32_t layer) {
        const double dense = static_cast<double>(scenario_.dense_bytes) / device().memory_bytes_per_second;
        machine_.device_works(dense);
        outcome_.dense_seconds += dense;
        take_arrived();
        route(layer);
        const StepProblem problem{used_, spare_, scenario_.expert_bytes, 0, 0};
        plan_step(problem, scenario_.costs, workspace_, assignments_);
        const double begin = machine_.now();
        machine_.run(planned_work());
        outcome_.expert_seconds += machine_.now() - begin;
        count();
        learn(layer);
    }

    void take_arrived() {
        for (const SimulatedUpload& upload : machine_.take_arrived()) {
            layers_[static_cast<std::size_t>(upload.layer)].arrived(upload.expert, token_);
            ++outcome_.uploads;
        }
    }

    /// The worth of a fetch follows from what the policy says once it has seen the token.
    void route(std::int32_t index) {
        SimulatedLayer& layer = layers_[static_cast<std::size_t>(index)];
        used_.clear();
        for (const std::int32_t expert : routers_[static_cast<std::size_t>(index)].next()) {
            const bool hit = layer.resident(expert);
            layer.used(expert, token_);
            const bool wanted = !hit && layer.admits(expert, token_);
            const double gain = wanted ? scenario_.fetch_gain * ram_seconds(1) : 0;
            used_.push_back({expert, 1, hit ? 0 : kNoDevice, static_cast<float>(gain)});
        }
    }

    SimulatedStep planned_work() const {
        const double compute = device_expert_seconds(scenario_.costs, 0, 0, scenario_.expert_bytes, 1);
        SimulatedStep step{.device_seconds = 0,
                           .fetches = 0,
                           .fetched_seconds = compute,
                           .cpu_bytes = 0,
                           .expert_bytes = static_cast<double>(scenario_.expert_bytes)};
        for (const Assignment& work : assignments_) {
            if (work.work == Work::Resident) step.device_seconds += compute;
            if (work.work == Work::Fetch) ++step.fetches;
            if (work.work == Work::Cpu) step.cpu_bytes += static_cast<double>(scenario_.expert_bytes);
        }
        return step;
    }

    void count() {
        double hits = 0;
        for (const UsedExpert& used : used_) hits += used.device == kNoDevice ? 0 : 1;
        const double misses = static_cast<double>(used_.size()) - hits;
        outcome_.uses += static_cast<std::int64_t>(used_.size());
        outcome_.hits += static_cast<std::int64_t>(hits);
        const double expert = device_expert_seconds(scenario_.costs, 0, 0, scenario_.expert_bytes, 1);
        outcome_.ideal_expert_seconds += std::max(hits * expert, ram_seconds(misses));
    }

    /// What was fetched stays; what the CPU computed and the policy wants is uploaded.
    void learn(std::int32_t index) {
        SimulatedLayer& layer = layers_[static_cast<std::size_t>(index)];
        for (std::size_t i = 0; i < used_.size(); ++i) {
            const std::int32_t expert = used_[i].expert;
            if (used_[i].device != kNoDevice || layer.uploading(expert)) continue;
            if (assignments_[i].work == Work::Fetch) {
                layer.arrived(expert, token_);
                ++outcome_.fetches;
            } else if (layer.admits(expert, token_) && machine_.waiting_uploads() < scenario_.queue_length) {
                layer.begin_upload(expert);
                machine_.upload({index, expert, static_cast<double>(scenario_.expert_bytes)});
            }
        }
    }

    const DeviceCosts& device() const { return scenario_.costs.devices[0]; }
    double ram_seconds(double experts) const {
        return experts * static_cast<double>(scenario_.expert_bytes) / scenario_.costs.ram_bytes_per_second;
    }

    const DecodeScenario scenario_;
    SimulatedMachine machine_;
    std::vector<LocalRouting> routers_;   ///< [layers]
    std::vector<SimulatedLayer> layers_;  ///< [layers]
    std::vector<std::int32_t> spare_;
    StepWorkspace workspace_;
    std::vector<Assignment> assignments_;
    std::vector<UsedExpert> used_;
    std::int64_t token_ = 0;
    DecodeOutcome outcome_;
};

}  // namespace

DecodeOutcome simulate_decode(const DecodeScenario& scenario) { return Decode(scenario).run(); }

}  // namespace coterie::expert_cache
