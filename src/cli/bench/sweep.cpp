#include "cli/bench/sweep.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>

namespace coterie::cli::bench {
namespace {

/// What a flag is, apart from where its value goes.
struct Description {
    explicit Description(const CLI::Option& option)
        : names(option.get_name(false, true)),
          help(option.get_description()),
          group(option.get_group()),
          environment(option.get_envname()),
          value(option.get_default_str()) {}

    void give(CLI::Option& option) const {
        option.group(group)->default_str(value);
        if (!environment.empty()) option.envname(environment);
    }

    std::string names;
    std::string help;
    std::string group;
    std::string environment;
    std::string value;
};

template <typename T>
std::shared_ptr<std::vector<T>> replace(CLI::App& command, const std::string& flag, const std::string& how,
                                        CLI::Option*& option) {
    const auto values = std::make_shared<std::vector<T>>();
    CLI::Option* one = command.get_option(flag);
    const Description description(*one);
    command.remove_option(one);
    option = command.add_option(description.names, *values, description.help + how);
    description.give(*option);
    return values;
}

}  // namespace

template <typename T>
void Sweep::widen(CLI::App& command, const std::string& flag, const std::string& field, T& target) {
    const CLI::Validator check = *command.get_option(flag)->get_validator();
    CLI::Option* option = nullptr;
    const auto values = replace<T>(command, flag, "; several with commas", option);
    option->delimiter(',')->check(check);
    axes_.push_back({field, [values] { return values->size(); },
                     [values, &target](std::size_t i) { target = (*values)[i]; }});
}

template void Sweep::widen(CLI::App&, const std::string&, const std::string&, int&);
template void Sweep::widen(CLI::App&, const std::string&, const std::string&, std::int64_t&);
template void Sweep::widen(CLI::App&, const std::string&, const std::string&, std::string&);

void Sweep::widen_repeated(CLI::App& command, const std::string& flag, std::string& target) {
    CLI::Option* option = nullptr;
    const auto values = replace<std::string>(command, flag, "; may be repeated", option);
    option->allow_extra_args(false);
    axes_.push_back({"", [values] { return values->size(); },
                     [values, &target](std::size_t i) { target = (*values)[i]; }});
}

std::vector<std::string> Sweep::given() const {
    std::vector<std::string> fields;
    for (const Axis& axis : axes_) {
        if (!axis.field.empty() && axis.values() > 0) fields.push_back(axis.field);
    }
    return fields;
}

void Sweep::choose(std::size_t axis, FunctionRef<void()> measure) const {
    if (axis == axes_.size()) return measure();
    if (axes_[axis].values() == 0) return choose(axis + 1, measure);
    for (std::size_t i = 0; i < axes_[axis].values(); ++i) {
        axes_[axis].set(i);
        choose(axis + 1, measure);
    }
}

}  // namespace coterie::cli::bench
