#include "cli/short_flags.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace coterie::cli {
namespace {

struct ShortFlag {
    std::string_view one_dash;
    std::string_view two_dashes;
};

constexpr ShortFlag kShortFlags[] = {
    {"-cb", "--cont-batching"},
    {"-lv", "--log-verbosity"},
    {"-cmoe", "--cpu-moe"},
    {"-ncmoe", "--n-cpu-moe"},
    {"-cnv", "--conversation"},
    {"-no-cnv", "--no-conversation"},
    {"-ctk", "--cache-type-k"},
    {"-ctv", "--cache-type-v"},
    {"-dev", "--device"},
    {"-fa", "--flash-attn"},
    {"-jf", "--json-schema-file"},
    {"-mg", "--main-gpu"},
    {"-ngl", "--n-gpu-layers"},
    {"-np", "--parallel"},
    {"-ot", "--override-tensor"},
    {"-pg", "--pg"},
    {"-sm", "--split-mode"},
    {"-sys", "--system-prompt"},
    {"-sysf", "--system-prompt-file"},
    {"-st", "--single-turn"},
    {"-co", "--color"},
    {"-tb", "--threads-batch"},
    {"-to", "--timeout"},
    {"-ts", "--tensor-split"},
    {"-ub", "--ubatch-size"},
};

/// A long flag's name with dashes where llama.cpp also takes underscores.
void replace_underscores(std::string& argument) {
    if (!argument.starts_with("--")) return;
    const std::size_t end = std::min(argument.find('='), argument.size());
    std::replace(argument.begin(), argument.begin() + static_cast<std::ptrdiff_t>(end), '_', '-');
}

/// "on", "off", "auto", "0", "1", or several with commas.
bool is_flash_attention(std::string_view text) {
    constexpr std::string_view kValues = ",on,off,auto,0,1,";
    while (true) {
        const std::size_t comma = std::min(text.find(','), text.size());
        const std::string value = "," + std::string(text.substr(0, comma)) + ",";
        if (value.size() == 2 || kValues.find(value) == std::string_view::npos) return false;
        if (comma == text.size()) return true;
        text.remove_prefix(comma + 1);
    }
}

/// "-fa on" says in two words what "-fa" says in one; the next word may be a prompt too.
void join_flash_attention(std::vector<std::string>& arguments) {
    for (std::size_t i = 0; i + 1 < arguments.size(); ++i) {
        if (arguments[i] != "--flash-attn") continue;
        const std::string& next = arguments[i + 1];
        if (!is_flash_attention(next)) continue;
        arguments[i] += "=" + next;
        arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
}

}  // namespace

std::vector<std::string> expand_short_flags(std::vector<std::string> arguments) {
    for (std::string& argument : arguments) {
        if (argument == "--") break;
        replace_underscores(argument);
        const std::string_view name = std::string_view(argument).substr(0, argument.find('='));
        const auto* found = std::find_if(std::begin(kShortFlags), std::end(kShortFlags),
                                         [&](const ShortFlag& flag) { return flag.one_dash == name; });
        if (found == std::end(kShortFlags)) continue;
        argument = std::string(found->two_dashes) + argument.substr(name.size());
    }
    join_flash_attention(arguments);
    return arguments;
}

std::optional<std::string> unknown_short_flag(const std::vector<std::string>& arguments) {
    const auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
    for (const std::string& argument : arguments) {
        if (argument == "--") break;
        const bool several = argument.size() > 2 && argument[0] == '-' && letter(argument[1]);
        if (several && (letter(argument[2]) || argument[2] == '-')) return argument;
    }
    return std::nullopt;
}

std::vector<std::string> short_flags() {
    std::vector<std::string> flags;
    for (const ShortFlag& flag : kShortFlags) flags.emplace_back(flag.one_dash);
    return flags;
}

}  // namespace coterie::cli
