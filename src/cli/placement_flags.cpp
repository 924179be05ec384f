#include "cli/placement_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/byte_size.h"
#include "cli/flag_values.h"
#include "expert_cache/cache_options.h"

namespace coterie::cli {
namespace {

using expert_cache::PlacementRequest;

constexpr std::int32_t kMostSlots = 1 << 20;
/// Other programs draw on a device too; of a small one a share is enough.
constexpr std::uint64_t kReserveBytes = std::uint64_t{400} << 20;
constexpr std::uint64_t kReserveShare = 20;

std::uint64_t machine_ram_bytes() {
    return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
           static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::uint64_t reserve_bytes(const std::vector<expert_cache::DeviceFacts>& devices) {
    std::uint64_t reserve = kReserveBytes;
    for (const auto& device : devices) reserve = std::min(reserve, device.free_bytes / kReserveShare);
    return reserve;
}

std::vector<std::uint64_t> vram_bytes(const PlacementFlags& flags, std::size_t devices) {
    std::vector<std::uint64_t> bytes;
    for (const std::string& size : flags.vram) bytes.push_back(parse_byte_size(size, "--vram"));
    if (bytes.size() == 1 && devices > 0) bytes.resize(devices, bytes.front());
    if (!bytes.empty() && bytes.size() != devices) {
        fail(ErrorCode::InvalidArgument,
             "--vram names {} sizes, there are {} devices; give one for all or one for each", bytes.size(),
             devices);
    }
    return bytes;
}

/// "auto", "off" or a number of slots.
void set_cache(const std::string& value, PlacementRequest& request) {
    if (value == "auto") return;
    if (value == "off") {
        request.cache = PlacementRequest::Cache::Off;
        return;
    }
    std::int32_t slots = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), slots);
    if (error != std::errc() || end != value.data() + value.size() || slots < 1 || slots > kMostSlots) {
        fail(ErrorCode::InvalidArgument, "--expert-cache {}: give auto, off or a number of slots per layer",
             value);
    }
    request.slots_per_layer = slots;
}

expert_cache::RamContent ram_content(const std::string& value) {
    if (value == "auto") return expert_cache::RamContent::Auto;
    if (value == "inclusive") return expert_cache::RamContent::Inclusive;
    if (value == "exclusive") return expert_cache::RamContent::Exclusive;
    fail(ErrorCode::InvalidArgument, "--residency {}: give auto, inclusive or exclusive", value);
}

std::string refuse_override_tensor(const std::string& patterns) {
    fail(ErrorCode::InvalidArgument,
         "--override-tensor {}: there are no places for single tensors; --cpu-moe keeps all experts on the "
         "CPU and --n-cpu-moe "
         "N "
         "those of the first N layers, and without them GPUs hold the experts that are used most",
         patterns);
}

}  // namespace

void add_placement_flags(CLI::App& command, PlacementFlags& flags) {
    const char* const group = "Expert cache";
    command
        .add_option("--vram", flags.vram,
                    "what may be used of each GPU: a size, or one per GPU; default: all")
        ->delimiter(',')
        ->group(group);
    command.add_option("--ram", flags.ram, "what may be used of RAM; default: all")->group(group);
    command
        .add_option("--expert-cache", flags.expert_cache, "auto, off, or experts per layer that GPUs hold")
        ->capture_default_str()
        ->group(group);
    command.add_flag("--cpu-moe", flags.cpu_moe, "-cmoe: all experts stay on the CPU")->group(group);
    command
        .add_option("--n-cpu-moe", flags.n_cpu_moe, "-ncmoe: experts of the first N layers stay on the CPU")
        ->check(whole_number(0, 1 << 20))
        ->capture_default_str()
        ->group(group);
    command.add_option("--override-tensor", flags.override_tensor, "-ot: see --cpu-moe")
        ->check(refuse_override_tensor)
        ->group(kHiddenGroup);
    command
        .add_option(
            "--cache-profile", flags.profile,
            "how often experts were used, kept from run to run: a file, or off; default: in the user's cache "
            "folder")
        ->group(group);
    command
        .add_option("--fake-gpu", flags.fake_gpu,
                    "simulated GPUs, such as 2x64M@1G/s: memory and the rate of the link to it")
        ->group(group);
    command
        .add_option("--residency", flags.residency,
                    "experts in RAM: inclusive (all), exclusive (those that no GPU holds) or auto")
        ->capture_default_str()
        ->group(group);
    command
        .add_option("--window", flags.window,
                    "tokens of a prompt that go through the layers together: auto, or a number")
        ->capture_default_str()
        ->group(group);
}

PlacementRequest placement_request(const PlacementFlags& flags,
                                   const std::vector<expert_cache::DeviceFacts>& devices,
                                   std::int64_t layers) {
    PlacementRequest request;
    request.vram_bytes = vram_bytes(flags, devices.size());
    request.machine_ram_bytes = machine_ram_bytes();
    request.ram_bytes = flags.ram.empty() ? machine_ram_bytes() : parse_byte_size(flags.ram, "--ram");
    request.reserve_bytes = reserve_bytes(devices);
    const expert_cache::UploadOptions uploads;
    request.staging_bytes = uploads.chunk_bytes * static_cast<std::uint64_t>(uploads.chunks_in_flight);
    set_cache(flags.expert_cache, request);
    request.ram_content = ram_content(flags.residency);
    request.cpu_moe_layers =
        static_cast<std::int32_t>(flags.cpu_moe ? layers : std::min(flags.n_cpu_moe, layers));
    return request;
}

}  // namespace coterie::cli
