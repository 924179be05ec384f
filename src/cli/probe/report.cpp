#include "cli/probe/report.h"

#include <fmt/format.h>
#include <string_view>

#include "cli/byte_size.h"

namespace coterie::cli {
namespace {

using engine::ExpertTimes;
using engine::GpuTimes;
using engine::MachineProfile;

constexpr double kParameters = 3e9;  ///< that a token uses, in the example for prompts
constexpr const char* kCrowded =
    "Other threads wanted the cores meanwhile, so these numbers are too low and serve no plan; --refresh "
    "measures "
    "again.\n";
constexpr int kLayers = 48;  ///< in the example for hand-offs

std::string row(std::string_view name, std::string_view value) {
    return fmt::format("  {:<38} {:>9}\n", name, value);
}

std::string rate(double bytes_per_second) { return fmt::format("{:.1f} GB/s", 1e-9 * bytes_per_second); }
std::string microseconds(double seconds) {
    return fmt::format("{:.{}f} us", 1e6 * seconds, seconds < 100e-6 ? 1 : 0);
}

std::string heading(const MachineProfile& profile) {
    const engine::MachineIdentity& machine = profile.machine;
    return fmt::format("{}, {} thread{}, {}, {} of RAM; measured at {}\n{}", machine.processor,
                       machine.threads, machine.threads == 1 ? "" : "s", machine.instruction_set,
                       byte_size_text(machine.ram_bytes), profile.measured_at,
                       profile.crowded ? kCrowded : "");
}

std::string ram_part(const MachineProfile& profile) {
    std::string text = "\nRAM, read by the CPU\n";
    for (const engine::ReadRate& read : profile.ram_reads) {
        text += row(fmt::format("{} thread{}", read.threads, read.threads == 1 ? "" : "s"),
                    rate(read.bytes_per_second));
    }
    return text + fmt::format(
                      "Generating on the CPU cannot be faster: each GB of weights that a token uses takes "
                      "{:.1f} ms.\n",
                      1e12 / profile.ram_read_rate());
}

std::string arithmetic_part(const MachineProfile& profile) {
    return "\nArithmetic of the CPU\n" +
           row("8-bit products and sums", fmt::format("{:.2f} T/s", 1e-12 * profile.integer_peak)) +
           fmt::format(
               "Prompts on the CPU cannot be faster: with {:.0f} billion parameters used a token, {:.0f} "
               "tokens/s.\n",
               1e-9 * kParameters, profile.integer_peak / (2 * kParameters));
}

std::string expert_line(const ExpertTimes& times) {
    std::string text = fmt::format("  {:<38}", times.kind);
    for (const double seconds : times.seconds) text += fmt::format(" {:>9}", microseconds(seconds));
    return text + "\n";
}

std::string expert_part(const MachineProfile& profile) {
    if (profile.experts.empty()) return "";
    std::string text = fmt::format("\n{:<40}", "One expert on the CPU, for tokens");
    for (const std::int64_t tokens : engine::kProbedTokens) text += fmt::format(" {:>9}", tokens);
    text += "\n";
    for (const ExpertTimes& times : profile.experts) text += expert_line(times);
    return text +
           "A generated token takes the first of these for each expert that no GPU holds; users served "
           "together share it.\n";
}

std::string linked_lines(const GpuTimes& gpu, const MachineProfile& profile) {
    std::string text;
    for (std::size_t i = 0; i < profile.experts.size(); ++i) {
        const double seconds = gpu.linked_expert_seconds[i];
        text += row(profile.experts[i].kind, seconds > 0 ? microseconds(seconds) : "none");
    }
    if (text.empty()) return text;
    return "  One expert that the GPU reads over its link:\n" + text +
           "Missing experts are shared between the CPU and the link so that both end together.\n";
}

std::string gpu_part(const GpuTimes& gpu, const MachineProfile& profile) {
    return fmt::format("\nGPU {}, {}\n", gpu.index, gpu.name) + row("to the GPU", rate(gpu.to_device)) +
           row("from the GPU", rate(gpu.from_device)) + row("both together", rate(gpu.both_ways)) +
           row("to the GPU while the CPU reads RAM", rate(gpu.contended_to_device)) +
           row("the CPU meanwhile", rate(gpu.contended_ram_read)) +
           row("to the GPU, memory not pinned", rate(gpu.pageable_to_device)) +
           row("from the GPU, memory not pinned", rate(gpu.pageable_from_device)) +
           fmt::format("A prompt's missing experts cross the link once a window: each GB takes {:.0f} ms.\n",
                       1e12 / gpu.to_device) +
           row("its own memory, read and written", rate(gpu.own_memory)) +
           row("hand-off to the CPU and back", microseconds(gpu.hand_off_seconds)) +
           fmt::format(
               "Each layer with a missing expert waits at least so long: {:.2f} ms a token if all {} "
               "layers do.\n",
               1e3 * kLayers * gpu.hand_off_seconds, kLayers) +
           linked_lines(gpu, profile);
}

}  // namespace

std::string render_text(const MachineProfile& profile) {
    std::string text = heading(profile) + ram_part(profile) + arithmetic_part(profile) + expert_part(profile);
    for (const GpuTimes& gpu : profile.gpus) text += gpu_part(gpu, profile);
    return text;
}

}  // namespace coterie::cli
