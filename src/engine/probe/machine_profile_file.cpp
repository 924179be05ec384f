#include "engine/probe/machine_profile_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <xxhash.h>

#include "base/atomic_file.h"
#include "base/error.h"

namespace coterie::engine {

// One list of fields per struct serves both directions; the library finds it by its name.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MachineIdentity, program, processor, instruction_set, threads, ram_bytes,
                                   gpus)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReadRate, threads, bytes_per_second)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ExpertTimes, kind, bytes, multiply_adds, seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GpuTimes, index, name, to_device, from_device, both_ways,
                                   contended_to_device, contended_ram_read, pageable_to_device,
                                   pageable_from_device, own_memory, hand_off_seconds, linked_expert_seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(MachineProfile, machine, measured_at, crowded, ram_reads, integer_peak,
                                   experts, gpus)

namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;  ///< a profile has a few kilobytes

bool positive(double value) { return std::isfinite(value) && value > 0; }

bool plausible(const ReadRate& rate) { return rate.threads > 0 && positive(rate.bytes_per_second); }

bool plausible(const ExpertTimes& times) {
    return times.bytes > 0 && times.multiply_adds > 0 &&
           std::all_of(times.seconds.begin(), times.seconds.end(), positive);
}

bool plausible(const GpuTimes& gpu, std::size_t experts) {
    const std::array<double, 9> values{gpu.to_device,
                                       gpu.from_device,
                                       gpu.both_ways,
                                       gpu.contended_to_device,
                                       gpu.contended_ram_read,
                                       gpu.pageable_to_device,
                                       gpu.pageable_from_device,
                                       gpu.own_memory,
                                       gpu.hand_off_seconds};
    const auto& linked = gpu.linked_expert_seconds;
    return std::all_of(values.begin(), values.end(), positive) && linked.size() == experts &&
           std::all_of(linked.begin(), linked.end(), [](double s) { return std::isfinite(s) && s >= 0; });
}

bool plausible(const MachineProfile& profile) {
    const auto all = [](const auto& list, auto good) { return std::all_of(list.begin(), list.end(), good); };
    return !profile.ram_reads.empty() && positive(profile.integer_peak) &&
           profile.gpus.size() <= profile.machine.gpus.size() &&
           all(profile.ram_reads, [](const ReadRate& rate) { return plausible(rate); }) &&
           all(profile.experts, [](const ExpertTimes& times) { return plausible(times); }) &&
           all(profile.gpus, [&](const GpuTimes& gpu) { return plausible(gpu, profile.experts.size()); });
}

MachineProfileLoad ignored(const std::string& name, const std::string& why) {
    return {.profile = std::nullopt,
            .ignored = fmt::format("the machine's profile {} {}; it is ignored", name, why)};
}

}  // namespace

std::string profile_to_json(const MachineProfile& profile) { return nlohmann::json(profile).dump(2); }

std::string machine_profile_name(const MachineIdentity& machine) {
    const std::string text = nlohmann::json(machine).dump();
    return fmt::format("machine-{:016x}.json", XXH64(text.data(), text.size(), 0));
}

MachineProfileLoad load_machine_profile(const std::string& path, const MachineIdentity& machine) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) return {};
    if (!std::filesystem::is_regular_file(path, error)) return ignored(path, "is not a regular file");
    std::ifstream file(path, std::ios::binary);
    std::string text(kMostBytes + 1, '\0');  // one more shows that there is more
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (!file.is_open() || file.bad()) return ignored(path, "cannot be read");
    text.resize(static_cast<std::size_t>(file.gcount()));
    if (text.size() > kMostBytes) return ignored(path, "is longer than a profile can be");
    return parse_machine_profile(text, path, machine);
}

MachineProfileLoad parse_machine_profile(std::string_view text, const std::string& name,
                                         const MachineIdentity& machine) {
    MachineProfile profile;
    try {
        nlohmann::json::parse(text).get_to(profile);
    } catch (const nlohmann::json::exception&) {
        return ignored(name, "is damaged");
    }
    if (profile.machine != machine) return ignored(name, "is of another machine, program or setting");
    if (!plausible(profile)) return ignored(name, "has numbers that no machine has");
    return {.profile = std::move(profile), .ignored = ""};
}

void save_machine_profile(const MachineProfile& profile, const std::string& path) {
    const std::string text = profile_to_json(profile) + "\n";
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
    AtomicFile file(path);  // says what is wrong where the folder could not be made
    file.write(std::as_bytes(std::span(text)));
    file.commit();
}

}  // namespace coterie::engine
