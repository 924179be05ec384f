#include "cli/short_flags.h"

#include <algorithm>
#include <string_view>

namespace coterie::cli {
namespace {

struct ShortFlag {
    std::string_view one_dash;
    std::string_view two_dashes;
};

constexpr ShortFlag kShortFlags[] = {
    {"-cmoe", "--cpu-moe"},        {"-ncmoe", "--n-cpu-moe"},
    {"-cnv", "--conversation"},    {"-no-cnv", "--no-conversation"},
    {"-ctk", "--cache-type-k"},    {"-ctv", "--cache-type-v"},
    {"-dev", "--device"},          {"-fa", "--flash-attn"},
    {"-jf", "--json-schema-file"}, {"-mg", "--main-gpu"},
    {"-ngl", "--n-gpu-layers"},    {"-np", "--parallel"},
    {"-sm", "--split-mode"},       {"-sys", "--system-prompt"},
    {"-tb", "--threads-batch"},    {"-to", "--timeout"},
    {"-ts", "--tensor-split"},     {"-ub", "--ubatch-size"},
};

}  // namespace

std::vector<std::string> expand_short_flags(std::vector<std::string> arguments) {
    for (std::string& argument : arguments) {
        if (argument == "--") break;
        const std::string_view name = std::string_view(argument).substr(0, argument.find('='));
        const auto* found = std::find_if(std::begin(kShortFlags), std::end(kShortFlags),
                                         [&](const ShortFlag& flag) { return flag.one_dash == name; });
        if (found == std::end(kShortFlags)) continue;
        argument = std::string(found->two_dashes) + argument.substr(name.size());
    }
    return arguments;
}

}  // namespace coterie::cli
