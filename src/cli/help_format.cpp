#include "cli/help_format.h"

#include "cli/flag_values.h"

namespace coterie::cli {

/// Without what the parser writes around the group that is not listed.
std::string HelpFormat::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
    std::string text = CLI::Formatter::make_help(app, std::move(name), mode);
    for (std::size_t at = 0; (at = text.find("\n\n\n", at)) != std::string::npos;) text.erase(at, 1);
    return text;
}

std::string HelpFormat::make_option_opts(const CLI::Option* option) const {
    if (option->get_items_expected_max() == 0) return "";
    std::string text = option->get_type_name().starts_with("TEXT") ? " TEXT" : " N";
    std::string value = option->get_default_str();
    if (value.starts_with('[') && value.ends_with(']')) value = value.substr(1, value.size() - 2);  // a list
    if (!value.empty()) text += " (" + value + ")";
    return text;
}

/// Without the parser's marks of flags that switch something off.
std::string HelpFormat::make_option_name(const CLI::Option* option, bool is_positional) const {
    std::string name = CLI::Formatter::make_option_name(option, is_positional);
    for (const std::string mark : {"{false}", "{true}"}) {
        for (std::size_t at = 0; (at = name.find(mark)) != std::string::npos;) name.erase(at, mark.size());
    }
    return name;
}

std::string HelpFormat::make_usage(const CLI::App* app, std::string name) const {
    return CLI::Formatter::make_usage(app, name) + "\n";
}

/// Without the empty line that the parser's groups begin with: one is enough.
std::string HelpFormat::make_group(std::string group, bool is_positional,
                                   std::vector<const CLI::Option*> options) const {
    if (group == kHiddenGroup) return "";
    const std::string text = CLI::Formatter::make_group(group, is_positional, options);
    return text.starts_with('\n') ? text.substr(1) : text;
}

}  // namespace coterie::cli
