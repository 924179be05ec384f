#include "cli/gpu_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/core.h>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "cli/flag_values.h"

namespace coterie::cli {
namespace {

constexpr int kMostGpus = 64;

/// Prints the GPUs and ends the program.
void list_gpus() {
    const DeviceList list = list_devices();
    for (const DeviceInfo& device : list.devices)
        fmt::print("{}: {} ({} MiB)\n", device.index, device.name, device.memory_bytes >> 20);
    if (list.devices.empty()) fmt::print("no GPU: {}\n", list.note);
    throw CLI::Success();
}

std::vector<std::string_view> pieces_of(std::string_view list) {
    std::vector<std::string_view> pieces;
    for (std::size_t comma = 0; comma != std::string_view::npos;) {
        comma = list.find(',');
        pieces.push_back(list.substr(0, comma));
        if (comma != std::string_view::npos) list.remove_prefix(comma + 1);
    }
    return pieces;
}

template <typename T>
std::optional<T> number(std::string_view text) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

const DeviceInfo& find_gpu(std::string_view name, std::string_view flag, const DeviceList& list) {
    constexpr std::string_view kPrefix = "CUDA";
    const std::string_view digits = name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
    const auto found = std::find_if(list.devices.begin(), list.devices.end(), [&](const DeviceInfo& device) {
        return number<int>(digits) == device.index;
    });
    if (found != list.devices.end()) return *found;
    fail(ErrorCode::InvalidArgument, "{} {}: give numbers that --list-devices prints, or none{}{}", flag,
         name, list.note.empty() ? "" : "; ", list.note);
}

std::vector<double> read_shares(const std::string& text, std::size_t gpus) {
    std::vector<double> shares;
    for (const std::string_view piece : pieces_of(text)) {
        const std::optional<double> share = number<double>(piece);
        if (!share || !std::isfinite(*share) || *share < 0) {
            fail(ErrorCode::InvalidArgument,
                 "--tensor-split {}: \"{}\" is no share; give numbers such as 3,1", text, piece);
        }
        shares.push_back(*share);
    }
    if (shares.size() != gpus) {
        fail(ErrorCode::InvalidArgument, "--tensor-split {}: {} shares for {} GPUs; give one for each", text,
             shares.size(), gpus);
    }
    if (std::all_of(shares.begin(), shares.end(), [](double share) { return share == 0; })) {
        fail(ErrorCode::InvalidArgument,
             "--tensor-split {}: no GPU has a share; -ngl 0 leaves all of them out", text);
    }
    return shares;
}

/// All of them, with their shares; a GPU whose share is 0 is left out.
GpuChoice share_layers(const GpuFlags& flags, const std::vector<DeviceInfo>& gpus) {
    GpuChoice choice;
    const std::vector<double> shares =
        flags.shares.empty() ? std::vector<double>() : read_shares(flags.shares, gpus.size());
    for (std::size_t i = 0; i < gpus.size(); ++i) {
        if (!shares.empty() && shares[i] == 0) continue;
        choice.gpus.push_back(gpus[i].index);
        if (!shares.empty()) choice.shares.push_back(shares[i]);
    }
    return choice;
}

/// "auto", "all", or a number of layers, of which -1 is llama.cpp's "all" too.
std::string check_layers(const std::string& text) {
    const std::optional<int> layers = number<int>(text);
    if (text == "auto" || text == "all" || (layers && *layers >= -1)) return "";
    return fmt::format("{} is neither auto, all nor a number of layers", text);
}

}  // namespace

void add_gpu_flags(CLI::App& command, GpuFlags& flags) {
    const char* const group = "GPU";
    command
        .add_option(
            "--n-gpu-layers,--gpu-layers", flags.layers,
            "-ngl: 0 leaves the GPUs out, anything else runs all layers there; default: where one is found")
        ->check(check_layers)
        ->group(group);
    command
        .add_option("--device", flags.devices,
                    "-dev: GPUs to use, by number, in the order of the layers, or none; default: all")
        ->group(group);
    command
        .add_option("--split-mode", flags.split_mode,
                    "-sm: layer (each GPU runs some of the layers) or none (one GPU runs all)")
        ->check(CLI::IsMember({"layer", "none"}))
        ->capture_default_str()
        ->group(group);
    command
        .add_option("--tensor-split", flags.shares,
                    "-ts: the GPUs' shares of the layers, such as 3,1; default: by their memory")
        ->group(group);
    command.add_option("--main-gpu", flags.main, "-mg: the GPU of -sm none; default: the first")
        ->check(whole_number(0, kMostGpus))
        ->group(group);
    command
        .add_flag_function(
            "--list-devices", [](std::int64_t) { list_gpus(); }, "print the GPUs and end")
        ->group(group);
}

std::int64_t default_window(std::uint64_t model_bytes, std::span<const int> gpus,
                            std::span<const std::uint64_t> limits, const DeviceList& list) {
    constexpr std::int64_t kMany = 4096;
    constexpr std::int64_t kFew = 2048;
    constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
    constexpr std::uint64_t kRoomy = 10 * kGiB;  // of which a workspace for many takes 0.3 to 0.4 GiB more
    constexpr std::uint64_t kSpare = 4 * kGiB;
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
        const auto gpu = std::find_if(list.devices.begin(), list.devices.end(),
                                      [&](const DeviceInfo& info) { return info.index == gpus[i]; });
        std::uint64_t bytes = gpu != list.devices.end() ? gpu->memory_bytes : 0;
        if (i < limits.size() && limits[i] > 0) bytes = std::min(bytes, limits[i]);
        if (bytes < kRoomy) return kFew;
        all += bytes;
    }
    const bool fits_barely = model_bytes <= all && all - model_bytes < kSpare;
    return fits_barely ? kFew : kMany;
}

std::vector<DeviceInfo> named_gpus(std::string_view names, const DeviceList& list) {
    if (names == "none") return {};
    if (names.empty()) return list.devices;
    std::vector<DeviceInfo> gpus;
    for (const std::string_view name : pieces_of(names)) {
        const DeviceInfo& gpu = find_gpu(name, "--device", list);
        const auto same = [&](const DeviceInfo& other) { return other.index == gpu.index; };
        if (std::any_of(gpus.begin(), gpus.end(), same))
            fail(ErrorCode::InvalidArgument, "--device {}: GPU {} stands there twice", names, gpu.index);
        gpus.push_back(gpu);
    }
    return gpus;
}

GpuChoice choose_gpus(const GpuFlags& flags, const DeviceList& list) {
    if (flags.split_mode != "layer" && flags.split_mode != "none") {
        fail(ErrorCode::Unsupported, "--split-mode {}: supported are layer and none", flags.split_mode);
    }
    if (number<int>(flags.layers) == 0 || flags.devices == "none") return {};
    if (list.devices.empty() && !flags.devices.empty()) {
        fail(ErrorCode::Unsupported, "--device {}: no GPU can be used: {}", flags.devices, list.note);
    }
    if (list.devices.empty()) {
        if (flags.layers != "auto") log::warn("-ngl has no effect: {}", list.note);
        return {};
    }
    const std::vector<DeviceInfo> gpus = named_gpus(flags.devices, list);
    if (flags.split_mode == "layer") {
        if (flags.main >= 0) log::warn("--main-gpu has no effect without --split-mode none");
        return share_layers(flags, gpus);
    }
    if (!flags.shares.empty()) log::warn("--tensor-split has no effect with --split-mode none");
    if (flags.main < 0) return {{gpus.front().index}, {}};
    return {{find_gpu(std::to_string(flags.main), "--main-gpu", list).index}, {}};
}

}  // namespace coterie::cli
