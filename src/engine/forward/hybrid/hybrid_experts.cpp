#include "engine/forward/hybrid/hybrid_experts.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace coterie::engine {
namespace {

using expert_cache::Assignment;
using expert_cache::ExpertKey;
using expert_cache::kNoDevice;
using expert_cache::Work;

/// What fetching a wanted expert is worth, as a share of the time that RAM needs for it: its upload is saved.
/// From simulation (docs/expert_cache_simulated.md).
constexpr double kFetchGain = 0.3;

std::int64_t matrix_bytes(const ExpertJob& job) {
    const auto bytes = [](const ExpertTensor& matrix) { return matrix.row_bytes * matrix.rows; };
    return bytes(job.gate) + bytes(job.up) + bytes(job.down);
}

}  // namespace

HybridExperts::HybridExperts(Parts parts, const DeviceLimits& largest, std::int64_t output_width)
    : parts_(std::move(parts)),
      output_width_(output_width),
      guess_(parts_.catalog.shapes()),
      prefetcher_(parts_.catalog.shapes(), parts_.prefetch),
      workspace_(largest.assignments, static_cast<std::int64_t>(parts_.devices.size())),
      spare_slots_(parts_.devices.size()),
      cpu_outputs_(static_cast<std::size_t>(largest.assignments * output_width)),
      output_of_(static_cast<std::size_t>(largest.assignments)) {
    for (auto& experts : parts_.devices) {
        DeviceWork& work = devices_.emplace_back();
        work.experts = std::move(experts);
        work.drained = work.experts->device().create_event();
    }
    const auto jobs = static_cast<std::size_t>(largest.assignments);
    used_.reserve(jobs);
    routed_.reserve(jobs);
    residents_.resize(jobs);
    assignments_.resize(jobs);
    cpu_jobs_.reserve(jobs);
    failed_jobs_.reserve(jobs);
    for (DeviceWork& work : devices_) work.jobs.reserve(jobs);
}

void HybridExperts::begin_step(std::int64_t tokens, std::int64_t assignments,
                               expert_cache::Learning learning) {
    prompt_ = tokens > kDecodeTokens;
    learns_ = !prompt_ && learning == expert_cache::Learning::On;
    step_tokens_ = tokens;
    ++steps_;
    step_start_ = std::chrono::steady_clock::now();
    for (std::size_t d = 0; d < devices_.size(); ++d) {
        DeviceWork& work = devices_[d];
        work.serves = !work.gone && work.retry.may_try(steps_);
        if (work.serves && prompt_) lend_memory(work, static_cast<std::int32_t>(d), {tokens, assignments});
    }
    step_.emplace(
        parts_.cache.begin_step(learns_ ? expert_cache::Learning::On : expert_cache::Learning::Off));
    run_ahead(0);
}

void HybridExperts::end_step() {
    settle_rings();
    for (DeviceWork& work : devices_) {
        if (work.drains) drain(work);
        if (work.serves && work.served) work.retry.succeeded();
        work.served = false;
    }
    step_.reset();
    if (!prompt_ && step_tokens_ > 0 && parts_.prefetch != expert_cache::Prefetch::Off) {
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - step_start_;
        judge_.step_took(taken.count() / static_cast<double>(step_tokens_));
    }
    tokens_ += step_tokens_;
    observe_copies();
    for (DeviceWork& work : devices_) {
        work.ring.reset();
        work.loan.reset();
    }
}

void HybridExperts::run(int layer, const cpu::KernelTable& kernels, const ExpertPlan& plan,
                        std::span<const std::int32_t> chosen, std::int32_t per_token,
                        std::span<const ActivationRow> inputs, float* out, std::int64_t out_stride) {
    observe_routing(layer, chosen, per_token);
    plan_layer(layer, plan);
    dispatch(layer, plan, inputs);
    if (!cpu_jobs_.empty()) compute_on_cpu(layer, kernels, plan, inputs);
    failed_jobs_.clear();
    for (std::size_t d = 0; d < devices_.size(); ++d) {
        if (collect(devices_[d], failed_jobs_)) observe_device(layer, d);
    }
    if (!failed_jobs_.empty()) {
        statistics_.recomputed += failed_jobs_.size();
        parts_.pass.compute(kernels, plan, failed_jobs_, inputs, cpu_outputs_.data(), output_width_);
    }
    combine_outputs(parts_.pool, kernels, plan, output_of_, out, out_stride,
                    static_cast<std::int64_t>(inputs.size()), output_width_);
    if (!prompt_) return;
    forget_ahead();
    step_->refresh();
    run_ahead(layer + 1);
}

void HybridExperts::compute_on_cpu(int layer, const cpu::KernelTable& kernels, const ExpertPlan& plan,
                                   std::span<const ActivationRow> inputs) {
    const expert_cache::CpuReading::Scope reading(parts_.cache.cpu_reading());
    const auto start = std::chrono::steady_clock::now();
    parts_.pass.compute(kernels, plan, cpu_jobs_, inputs, cpu_outputs_.data(), output_width_);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (parts_.measures_costs) observe_cpu(layer, taken.count());
}

/// Of a pass that computed a shared expert too, the routed ones get their part by bytes and rows.
void HybridExperts::observe_cpu(int layer, double seconds) {
    double all = 0;
    double routed = 0;
    std::int64_t experts = 0;
    std::int64_t rows = 0;
    for (const ExpertJob& job : cpu_jobs_) {
        const double work = static_cast<double>(job.count * matrix_bytes(job));
        all += work;
        if (job.expert == kNotRouted) continue;
        routed += work;
        ++experts;
        rows += job.count;
    }
    if (experts == 0) return;
    averages_.cpu_computed(kind_of(layer), experts, rows,
                           static_cast<std::uint64_t>(experts) * parts_.catalog.layout(layer).bytes,
                           seconds * routed / all);
}

void HybridExperts::observe_device(int layer, std::size_t device) {
    const DeviceWork& work = devices_[device];
    const LayerTimes times = work.experts->times();
    if (!parts_.measures_costs) return;
    if (times.handoff_seconds > 0) averages_.device_handed_off(device, times.handoff_seconds);
    if (times.compute_seconds <= 0) return;
    std::int64_t rows = 0;
    for (const ExpertJob& job : work.jobs) rows += job.count;
    const std::uint64_t bytes = work.jobs.size() * parts_.catalog.layout(layer).bytes;
    averages_.device_computed(device, kind_of(layer), static_cast<std::int64_t>(work.jobs.size()), rows,
                              bytes, times.compute_seconds);
}

/// The step's uploads, each of them taken as an average one.
void HybridExperts::observe_copies() {
    using expert_cache::RamUse;
    for (std::size_t d = 0; d < devices_.size(); ++d) {
        for (const RamUse ram : {RamUse::Alone, RamUse::Contended}) {
            const expert_cache::CopyTimes times =
                parts_.cache.take_copy_times(static_cast<std::int32_t>(d), ram);
            if (times.copies == 0 || !parts_.measures_costs) continue;
            averages_.copied(d, times.bytes / times.copies, times.seconds / static_cast<double>(times.copies),
                             ram);
        }
    }
}

std::size_t HybridExperts::kind_of(int layer) const {
    return static_cast<std::size_t>(parts_.catalog.kinds()[static_cast<std::size_t>(layer)]);
}

void HybridExperts::observe_routing(int layer, std::span<const std::int32_t> chosen, std::int32_t per_token) {
    step_->routed(layer, chosen, per_token);
    prefetcher_.score(layer, chosen, [&](std::int32_t expert) {
        return parts_.cache.find({layer, expert}).has_value();
    });
    if (prompt_) guess_.learn(layer, chosen);
    if (prompt_ || parts_.profile == nullptr) return;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        const auto token = static_cast<std::int64_t>(i) / per_token;
        parts_.profile->used({layer, chosen[i]}, tokens_ + token);
    }
}

bool HybridExperts::prefetches() const {
    if (parts_.prefetch == expert_cache::Prefetch::Off || prompt_) return false;
    return !parts_.measures_costs || judge_.on();
}

const models::MoeFfn* HybridExperts::router_to_guess(int layer) const {
    if (!prefetches() || !prefetcher_.uses_router() || layer + 1 >= parts_.catalog.layers()) return nullptr;
    return parts_.catalog.layer(layer + 1);
}

void HybridExperts::prefetch(int layer, std::span<const std::int32_t> guessed) {
    if (!prefetches()) return;
    const int next = layer + 1;
    if (next >= parts_.catalog.layers() || parts_.catalog.layer(next) == nullptr) return;
    for (const std::int32_t expert : prefetcher_.predict(next, guessed)) {
        if (parts_.cache.find({next, expert})) continue;
        if (step_->prefetch({next, expert})) prefetcher_.started(next, expert);
    }
}

void HybridExperts::plan_layer(int layer, const ExpertPlan& plan) {
    used_.clear();
    routed_.clear();
    for (const ExpertJob& job : plan.jobs) {
        if (job.expert != kNotRouted) routed_.push_back(job.expert);
    }
    parts_.cache.find(layer, routed_, residents_);
    const auto gain =
        static_cast<float>(kFetchGain * static_cast<double>(parts_.catalog.layout(layer).bytes) /
                           parts_.costs.ram_bytes_per_second);
    for (const ExpertJob& job : plan.jobs) {
        if (job.expert == kNotRouted) continue;
        const std::int32_t resident_on = residents_[used_.size()].device;
        const bool wanted = !prompt_ && resident_on < 0 && parts_.cache.wanted({layer, job.expert});
        used_.push_back({.expert = job.expert,
                         .tokens = static_cast<std::int32_t>(job.count),
                         .device = device_of({layer, job.expert}, resident_on),
                         .fetch_gain_seconds = wanted ? gain : 0});
    }
    for (std::size_t d = 0; d < devices_.size(); ++d) {
        const auto device = static_cast<std::int32_t>(d);
        const auto all = static_cast<std::int32_t>(used_.size());
        spare_slots_[d] = !devices_[d].serves ? 0 : prompt_ ? all : parts_.cache.free_slots(device, layer);
    }
    const expert_cache::StepProblem problem{
        .used = used_,
        .spare_slots = spare_slots_,
        .expert_bytes = parts_.catalog.layout(layer).bytes,
        .kind = static_cast<std::int32_t>(kind_of(layer)),
    };
    if (!used_.empty()) expert_cache::plan_step(problem, parts_.costs, workspace_, assignments_);
}

/// Where an expert need not be copied to: its slot's device, or one whose ring it is in already.
std::int32_t HybridExperts::device_of(ExpertKey key, std::int32_t resident_on) const {
    if (resident_on >= 0 && devices_[static_cast<std::size_t>(resident_on)].serves) return resident_on;
    if (!prompt_) return kNoDevice;
    for (std::size_t d = 0; d < devices_.size(); ++d) {
        const DeviceWork& work = devices_[d];
        if (work.serves && work.ring && work.ring->is_ahead(key)) return static_cast<std::int32_t>(d);
    }
    return kNoDevice;
}

void HybridExperts::dispatch(int layer, const ExpertPlan& plan, std::span<const ActivationRow> inputs) {
    cpu_jobs_.clear();
    for (DeviceWork& work : devices_) work.jobs.clear();
    std::size_t routed = 0;
    for (const ExpertJob& job : plan.jobs) {
        for (std::int64_t a = job.first; a < job.first + job.count; ++a) {
            output_of_[static_cast<std::size_t>(a)] = cpu_outputs_.data() + a * output_width_;
        }
        const Assignment assignment = job.expert == kNotRouted ? Assignment{} : assignments_[routed++];
        if (assignment.work != Work::Cpu && queue_job(layer, plan, job, assignment, inputs)) continue;
        if (job.expert != kNotRouted) statistics_.on_cpu.add(parts_.catalog.layout(layer).bytes);
        cpu_jobs_.push_back(from_ram(layer, job));
    }
    for (DeviceWork& work : devices_) {
        if (work.jobs.empty()) continue;
        try {
            work.experts->finish();
        } catch (const Error& error) {
            sit_out(work, error.what());
        }
    }
}

/// The job with the expert's bytes from where RAM holds them, else from the model's file.
ExpertJob HybridExperts::from_ram(int layer, const ExpertJob& job) const {
    const std::byte* place = job.expert == kNotRouted ? nullptr : parts_.cache.in_ram({layer, job.expert});
    return place == nullptr ? job : parts_.catalog.layout(layer).in_slot(job, place);
}

/// False where the device cannot take the job: then the CPU does.
bool HybridExperts::queue_job(int layer, const ExpertPlan& plan, const ExpertJob& job, Assignment assignment,
                              std::span<const ActivationRow> inputs) {
    DeviceWork& work = devices_[static_cast<std::size_t>(assignment.device)];
    if (!work.serves) return false;
    try {
        if (work.jobs.empty()) {
            work.experts->begin(inputs, output_width_, work.loan ? work.loan->address() : DeviceAddress{});
        }
        const auto slot = locate(work, {layer, job.expert}, assignment);
        if (!slot) return false;
        work.experts->compute(job, parts_.catalog.layout(layer), *slot, plan.tokens);
        if (work.from_ring) work.ring->consumed(work.experts->stream());
    } catch (const Error& error) {
        sit_out(work, error.what());
        return false;
    }
    work.jobs.push_back(job);
    return true;
}

std::optional<DeviceAddress> HybridExperts::locate(DeviceWork& work, ExpertKey key, Assignment assignment) {
    work.from_ring = false;
    if (prompt_ && (assignment.work == Work::Fetch || work.ring->is_ahead(key))) return bring(work, key);
    const std::uint64_t bytes = parts_.catalog.layout(key.layer).bytes;
    if (assignment.work == Work::Resident) {
        const auto where = parts_.cache.find(key);
        if (!where || where->device != assignment.device) return std::nullopt;
        statistics_.in_place.add(bytes);
        return where->address;
    }
    const auto slot = step_->fetch(key, assignment.device, work.experts->stream());
    if (slot) statistics_.fetched.add(bytes);
    return slot;
}

/// Whether the device has delivered.
bool HybridExperts::collect(DeviceWork& work, std::vector<ExpertJob>& failed) {
    if (work.jobs.empty()) return false;
    const EventState state = work.serves ? work.experts->wait(kDeviceWatchdog) : EventState::Failed;
    if (state != EventState::Reached) {
        if (work.experts->device().lost()) give_up(work, "it is lost");
        if (state == EventState::Pending) give_up(work, "it does not answer");
        failed.insert(failed.end(), work.jobs.begin(), work.jobs.end());
        return false;
    }
    std::int64_t row = 0;
    for (const ExpertJob& job : work.jobs) {
        for (std::int64_t a = job.first; a < job.first + job.count; ++a) {
            output_of_[static_cast<std::size_t>(a)] = work.experts->output(row++);
        }
    }
    work.served = true;
    return true;
}

/// A call was refused: the CPU does the rest of the step, and the device is tried again some steps later.
void HybridExperts::sit_out(DeviceWork& work, std::string_view why) {
    if (work.experts->device().lost()) return give_up(work, why);
    if (!work.retry.failing()) {
        log::warn("{}: {}; its experts run on the CPU until it works again",
                  work.experts->device().info().name, why);
    }
    work.retry.failed(steps_);
    work.serves = false;
    work.drains = true;
}

void HybridExperts::give_up(DeviceWork& work, std::string_view why) {
    if (!work.gone) {
        log::warn("{}: {}; its experts run on the CPU from now on", work.experts->device().info().name, why);
    }
    work.gone = true;
    work.serves = false;
    work.drains = false;
}

/// Before what a device was given changes, what it has begun must be over.
void HybridExperts::drain(DeviceWork& work) {
    work.drains = false;
    Stream& stream = work.experts->stream();
    try {
        stream.record(*work.drained);
        const EventState state = work.drained->wait(kDeviceWatchdog);
        if (state == EventState::Pending) return give_up(work, "it does not answer");
        if (state == EventState::Failed) stream.synchronise();
    } catch (const Error&) {  // its failure has been told; a lost device has nothing under way
        if (work.experts->device().lost()) return give_up(work, "it is lost");
        work.drains = true;  // until its stream takes the call
    }
}

}  // namespace coterie::engine
