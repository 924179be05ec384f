#include "cli/offload.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "cli/byte_size.h"
#include "cli/model_options.h"
#include "cli/plan/planning.h"
#include "cli/profile_path.h"
#include "engine/engine.h"
#include "engine/forward/device_forward.h"
#include "engine/offload.h"
#include "expert_cache/policy/registry.h"
#include "gguf/content_hash.h"
#include "models/registry.h"

namespace coterie::cli {
namespace {

using expert_cache::Placement;
using expert_cache::Strategy;

/// What the machine and the flags allow; assumptions stand where nothing can be measured before a run.
plan::RunPlan plan_for(const gguf::Archive& archive, const ModelOptions& options) {
    const plan::CostSetting costs{
        .file = {}, .vram_bytes_per_second = 400e9, .handoff_seconds = 15e-6, .threads = options.threads};
    plan::RunPlan planned = plan::plan_run(archive, options, costs, expert_cache::DensePlace::Cpu);
    const auto& layers = planned.facts.model.layers;
    if (std::none_of(layers.begin(), layers.end(), [](const auto& layer) { return layer.experts > 0; })) {
        fail(ErrorCode::InvalidArgument,
             "{}: the model has no routed experts that a GPU could hold; run it without --fake-gpu",
             archive.name());
    }
    return planned;
}

expert_cache::ProfileShape shape_of(const gguf::Archive& archive, const models::ModelConfig& config) {
    return {.model_hash = gguf::content_hash(archive),
            .layers = static_cast<std::int32_t>(config.layers),
            .experts = static_cast<std::int32_t>(config.experts)};
}

/// What earlier runs counted, or an empty profile to begin with; nothing where none is wanted.
std::optional<expert_cache::RoutingProfile> open_profile(const gguf::Archive& archive,
                                                         const models::ModelConfig& config,
                                                         const OffloadFlags& flags) {
    const expert_cache::ProfileShape shape = shape_of(archive, config);
    const ProfilePath path = profile_path(flags.placement.profile, shape.model_hash);
    const bool needed = expert_cache::find_policy(flags.policy).needs == expert_cache::PolicyNeeds::Profile;
    if (path.file.empty() && needed) {
        fail(ErrorCode::InvalidArgument, "--cache-policy {}: it needs --cache-profile FILE", flags.policy);
    }
    if (path.file.empty()) return std::nullopt;
    expert_cache::ProfileLoad load = expert_cache::load_profile(path.file, shape);
    if (!load.ignored.empty()) log::warn("{}", load.ignored);
    if (load.profile) return std::move(load.profile);
    if (needed) {
        fail(ErrorCode::InvalidArgument,
             "--cache-policy {}: it needs what earlier runs counted, and {} has nothing of it; run with "
             "another "
             "policy first, or name a profile with --cache-profile FILE",
             flags.policy, path.file);
    }
    if (flags.profile == OffloadFlags::Profile::Reads) return std::nullopt;
    return expert_cache::RoutingProfile(shape);
}

/// The default's folder may not be there yet.
void write_profile(const expert_cache::RoutingProfile& profile, const ProfilePath& path) {
    if (!path.is_default) return profile.save(path.file);
    try {
        std::filesystem::create_directories(std::filesystem::path(path.file).parent_path());
        profile.save(path.file);
    } catch (const std::exception& error) {
        log::warn("the routing profile is not kept: {}; --cache-profile FILE says where else, off ends this",
                  error.what());
    }
}

std::string describe_prefetch(const expert_cache::PrefetchJudge& judge) {
    if (judge.seconds_with() <= 0 || judge.seconds_without() <= 0) {
        return "coterie: prefetch: too few tokens to say whether it pays\n";
    }
    return fmt::format(
        "coterie: prefetch: {}: a token takes {:.3g} ms with it and {:.3g} ms without; it was on for "
        "{:.0f} % of the steps\n",
        judge.pays() ? "pays" : "does not pay", 1e3 * judge.seconds_with(), 1e3 * judge.seconds_without(),
        100 * judge.share_on());
}

/// Throws for values that cannot be, also where no GPU would ask for them.
void check_placement_flags(const PlacementFlags& flags) {
    const std::vector<expert_cache::DeviceFacts> devices(flags.vram.size());
    static_cast<void>(placement_request(flags, devices, 0));
    static_cast<void>(plan::fixed_window(flags.window));
}

/// Runs the model on GPUs, if some are wanted and the model can.
void add_gpus(const gguf::Archive& archive, const ModelOptions& options, engine::EngineOptions& engine) {
    const DeviceList devices = list_devices();
    const GpuChoice choice = choose_gpus(options.gpu, devices);
    if (choice.gpus.empty()) return;
    const auto model = models::build_model(archive);
    if (const std::string part = engine::unsupported_on_device(*model); !part.empty()) {
        log::warn("{}: GPUs do not have {} so far, so the CPU runs the whole model",
                  model->config.architecture, part);
        return;
    }
    const PlacementFlags& placement = options.offload.placement;
    const expert_cache::PlacementRequest request = placement_request(
        placement, std::vector<expert_cache::DeviceFacts>(choice.gpus.size()), model->config.layers);
    engine.offload.gpus = choice.gpus;
    engine.offload.gpu_split = choice.shares;
    engine.offload.gpu_memory_limits = request.vram_bytes;
    engine.offload.slots_per_layer = request.slots_per_layer.value_or(0);
    if (request.cache == expert_cache::PlacementRequest::Cache::Off ||
        request.cpu_moe_layers >= model->config.layers) {
        engine.offload.cache.slots = {
            std::vector<std::int32_t>(static_cast<std::size_t>(model->config.layers), 0)};
    }
    engine.offload.cache.first_layer = request.cpu_moe_layers;
    engine.window =
        plan::fixed_window(placement.window)
            .value_or(default_window(archive.total_bytes(), choice.gpus, request.vram_bytes, devices));
    if (model->config.experts == 0) return;
    engine.offload.profile = open_profile(archive, model->config, options.offload);
    engine.offload.trains_profile = options.offload.profile == OffloadFlags::Profile::Learns;
}

double percent(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

/// What GPUs' steps did.
std::string describe_devices(engine::DeviceForward& forward) {
    std::string text;
    for (int i = 0; i < forward.devices(); ++i) {
        const engine::DeviceMemoryUse use = forward.memory_use(i);
        text += fmt::format(
            "coterie: {}: layers {} to {}, dense weights {}, context {}, workspace {}, experts {}\n",
            forward.device_name(i), use.layers.begin, use.layers.end - 1, byte_size_text(use.dense_bytes),
            byte_size_text(use.state_bytes), byte_size_text(use.workspace_bytes),
            byte_size_text(use.slot_bytes));
    }
    if (forward.cache() == nullptr) return text;
    const engine::DeviceForwardStatistics did = forward.statistics();
    const expert_cache::CacheStatistics cache = forward.cache()->statistics();
    expert_cache::DeviceStatistics counts;
    for (const expert_cache::DeviceStatistics& device : cache.devices) {
        counts.resident += device.resident;
        counts.uploaded_bytes += device.uploaded_bytes;
        counts.uploads += device.uploads;
        counts.evictions += device.evictions;
    }
    if (did.all.layers_with_misses > 0) {
        const auto each = [&](double seconds) {
            return 1e6 * seconds / static_cast<double>(did.all.layers_with_misses);
        };
        text += fmt::format(
            "coterie: {} layers were handed to the CPU, us each: {:.1f} to post, {:.1f} computed, {:.1f} "
            "waited for, {:.1f} to read; generating took {:.3f} s on GPUs and {:.3f} s beside it\n",
            did.all.layers_with_misses, each(did.all.posting_seconds), each(did.all.cpu_seconds),
            each(did.all.waiting_seconds), each(did.all.reading_seconds), did.step_seconds, did.host_seconds);
    }
    return text +
           fmt::format(
               "coterie: experts: {:.1f} % of {} uses hit; {} computed on the CPU, {} streamed; {} resident, "
               "{} moved in {} uploads, {} evictions\n",
               percent(cache.hits, cache.hits + cache.misses), cache.hits + cache.misses, did.all.missed,
               byte_size_text(did.all.streamed_bytes), counts.resident, byte_size_text(counts.uploaded_bytes),
               counts.uploads, counts.evictions);
}

}  // namespace

void add_offload_flags(CLI::App& command, OffloadFlags& flags) {
    add_placement_flags(command, flags.placement);
    const char* const group = "Expert cache";
    std::string names;
    for (const expert_cache::PolicyKind& kind : expert_cache::policy_kinds()) {
        if (kind.needs == expert_cache::PolicyNeeds::Future) continue;
        names += (names.empty() ? "" : ", ") + std::string(kind.name);
    }
    command.add_option("--cache-policy", flags.policy, "who stays in the cache: " + names)
        ->capture_default_str()
        ->group(group);
    command
        .add_option("--prefetch", flags.prefetch,
                    "guess the next layer's experts: off, router, temporal, both")
        ->capture_default_str()
        ->group(group);
}

void add_offload(const gguf::Archive& archive, const ModelOptions& options, engine::EngineOptions& engine) {
    const OffloadFlags& flags = options.offload;
    check_placement_flags(flags.placement);
    engine::OffloadOptions& offload = engine.offload;
    offload.prefetch = expert_cache::parse_prefetch(flags.prefetch);
    const expert_cache::PolicyKind& policy = expert_cache::find_policy(flags.policy);
    if (policy.needs == expert_cache::PolicyNeeds::Future) {
        fail(ErrorCode::InvalidArgument,
             "--cache-policy {}: it knows the future and serves coterie replay only", flags.policy);
    }
    offload.policy = policy.name;
    if (flags.placement.fake_gpu.empty()) return add_gpus(archive, options, engine);
    plan::RunPlan planned = plan_for(archive, options);
    const Placement& placement = planned.placement;
    if (placement.strategy == Strategy::CpuOnly) {
        log::warn("the GPUs hold no experts: {}", placement.reason);
        return;
    }
    offload.fake_devices = parse_fake_devices(flags.placement.fake_gpu);
    for (const expert_cache::DevicePlan& device : placement.devices)
        offload.cache.slots.push_back(device.slots);
    engine.window = planned.window.tokens;
    if (flags.placement.window != "auto") offload.windows = engine::OffloadOptions::Windows::Fixed;
    offload.costs = std::move(planned.costs);
    if (placement.exclusive) offload.exclusive_ram_bytes = placement.ram.expert_bytes;
    offload.fills_slots = placement.strategy != Strategy::Cache;
    if (placement.strategy == Strategy::Static) offload.learning = expert_cache::Learning::Off;
    offload.profile = open_profile(archive, planned.model->config, flags);
    offload.trains_profile = flags.profile == OffloadFlags::Profile::Learns;
}

void save_profile(engine::Engine& engine, const OffloadFlags& flags, SaveProfile when) {
    if (flags.profile == OffloadFlags::Profile::Reads) return;
    expert_cache::RoutingProfile* profile = engine.profile();
    if (profile == nullptr) return;
    const bool due = profile->should_save(expert_cache::RoutingProfile::Clock::now());
    if (!due && when == SaveProfile::IfDue) return;
    write_profile(*profile, profile_path(flags.placement.profile, profile->shape().model_hash));
}

std::string describe_offload(engine::Engine& engine) {
    if (engine.device() != nullptr) return describe_devices(*engine.device());
    if (engine.offload() == nullptr) return {};
    const engine::Offload& offload = *engine.offload();
    const expert_cache::CacheStatistics cache = offload.cache().statistics();
    const engine::HybridStatistics& did = offload.experts().statistics();
    std::string text = fmt::format(
        "coterie: experts: {:.1f} % of {} uses hit; {} computed in slots, {} fetched, {} "
        "streamed ({} of them begun before their layer), {} on the CPU\n",
        percent(cache.hits, cache.hits + cache.misses), cache.hits + cache.misses, did.in_place.experts,
        did.fetched.experts, did.streamed.experts, did.ran_ahead.experts, did.on_cpu.experts);
    for (std::size_t d = 0; d < cache.devices.size(); ++d) {
        const expert_cache::DeviceStatistics& device = cache.devices[d];
        text += fmt::format(
            "coterie: GPU {}: {} experts in {}, {} hits, {} moved in {} uploads and {} fetches, {} of "
            "them used later, {} evictions{}\n",
            d, device.resident, byte_size_text(device.mapped_bytes), device.hits,
            byte_size_text(device.uploaded_bytes), device.uploads, device.fetches, device.paid_back,
            device.evictions, device.lost ? "; lost" : "");
    }
    if (offload.options().exclusive_ram_bytes) {
        std::uint64_t returned = 0;
        std::uint64_t forgotten = 0;
        for (const auto& device : cache.devices) {
            returned += device.returned;
            forgotten += device.forgotten;
        }
        text += fmt::format(
            "coterie: RAM holds what no GPU does: {} experts came back to it, {} only to the file\n",
            returned, forgotten);
    }
    const expert_cache::PrefetchStatistics& guess = offload.experts().prefetch_statistics();
    if (guess.predicted > 0) {
        text += fmt::format(
            "coterie: prefetch: {:.1f} % of {} guesses right, {} uploads begun, {} of them in time, {} "
            "late\n",
            percent(guess.right, guess.predicted), guess.predicted, guess.started, guess.in_time, guess.late);
        text += describe_prefetch(offload.experts().prefetch_judge());
    }
    return text;
}

}  // namespace coterie::cli
