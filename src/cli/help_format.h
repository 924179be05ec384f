#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace coterie::cli {

/// Help with what users need of a flag: its names, that it takes a value, and the value without it.
class HelpFormat final : public CLI::Formatter {
  public:
    std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
    std::string make_option_opts(const CLI::Option* option) const override;
    std::string make_option_name(const CLI::Option* option, bool is_positional) const override;
    std::string make_usage(const CLI::App* app, std::string name) const override;
    std::string make_group(std::string group, bool is_positional,
                           std::vector<const CLI::Option*> options) const override;
};

}  // namespace coterie::cli
