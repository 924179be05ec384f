#pragma once

#include <span>
#include <string_view>

namespace coterie {

/// A file of this folder that the build puts into the program; `name` is the file's name without its ending.
struct EmbeddedText {
    std::string_view name;
    std::string_view text;
};

/// The parts of the worker's Python program (worker/*.py), in the order in which they are joined.
std::span<const EmbeddedText> embedded_worker_program();

/// The built-in chat templates (builtin/*.jinja), sorted by name.
std::span<const EmbeddedText> embedded_templates();

}  // namespace coterie
