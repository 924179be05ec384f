#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/progress_bar.h"
#include "cli/command.h"
#include "cli/flag_values.h"
#include "cli/model_options.h"
#include "gguf/check.h"
#include "gguf/describe.h"

namespace coterie::cli {
namespace {

struct InspectOptions {
    ModelOptions model;
    gguf::DescribeOptions describe;
    bool json = false;
    bool check = false;
};

std::vector<gguf::BadData> find_bad_data(const gguf::Archive& archive) {
    ThreadPool threads(0);
    ProgressBar bar("checking", ProgressBar::Unit::Bytes);
    return gguf::check_data(archive, threads,
                            [&](std::uint64_t done) { bar.update(done, archive.total_bytes()); });
}

void print_json(const gguf::Archive& archive, const InspectOptions& options,
                const std::vector<gguf::BadData>& bad) {
    const std::string description = gguf::describe_json(archive, options.describe);
    if (!options.check) {
        fmt::print("{}\n", description);
        return;
    }
    auto json = nlohmann::ordered_json::parse(description);
    json["bad_data"] = nlohmann::json::array();
    for (const gguf::BadData& item : bad) {
        json["bad_data"].push_back(
            {{"tensor", item.tensor},
             {"expert", item.expert ? nlohmann::ordered_json(*item.expert) : nlohmann::ordered_json()},
             {"blocks", item.blocks},
             {"first_block", item.first_block}});
    }
    fmt::print("{}\n", json.dump(2));
}

void print_text(const gguf::Archive& archive, const InspectOptions& options,
                const std::vector<gguf::BadData>& bad) {
    fmt::print("{}", gguf::describe_text(archive, options.describe));
    if (!options.check) return;
    if (bad.empty()) fmt::print("\nchecked: all values are finite\n");
    for (const gguf::BadData& item : bad) fmt::print("\nbad data: {}", gguf::bad_data_text(item));
    if (!bad.empty()) fmt::print("\n");
}

void run(const InspectOptions& options) {
    const auto archive = open_archive(options.model);
    const std::vector<gguf::BadData> bad =
        options.check ? find_bad_data(*archive) : std::vector<gguf::BadData>{};
    options.json ? print_json(*archive, options, bad) : print_text(*archive, options, bad);
    if (bad.empty()) return;
    fail(ErrorCode::InvalidFile, "{}: {}{}; get the file again", archive->name(),
         gguf::bad_data_text(bad.front()),
         bad.size() > 1 ? fmt::format(", and {} more places do", bad.size() - 1) : "");
}

}  // namespace

void add_inspect(CLI::App& root, Action& action) {
    CLI::App* command = root.add_subcommand("inspect", "Show what a model file holds");
    const auto options = std::make_shared<InspectOptions>();
    const char* const group = "Inspect";
    command->add_option("file", options->model.model, "the same as -m")->group(group);
    command->add_flag("--json", options->json, "print JSON")->group(group);
    command->add_flag("--check", options->check, "look for NaN and infinity in the weights of all tensors")
        ->group(group);
    command->add_flag("!--no-tensors", options->describe.tensors, "do not list tensors")->group(group);
    command
        ->add_option("--array-values", options->describe.array_values,
                     "values shown of an array before it is cut")
        ->check(whole_number(0, 1 << 30))
        ->capture_default_str()
        ->group(group);
    add_model_flag(*command, options->model);
    command->footer(
        "Examples:\n"
        "  coterie inspect model.gguf\n"
        "  coterie inspect -m model.gguf --json --no-tensors\n"
        "  coterie inspect -m model.gguf --check");
    command->callback([options, &action] { action = [options] { run(*options); }; });
}

}  // namespace coterie::cli
