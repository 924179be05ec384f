#pragma once

#include <string>

#include "speculative/options.h"

namespace CLI {
class App;
}

namespace coterie::cli {

/// The flags of drafts, with llama.cpp's names.
struct SpeculativeFlags {
    std::string source = "none";
    speculative::SpeculativeOptions options;
};

void add_speculative_flags(CLI::App& command, SpeculativeFlags& flags);

/// Throws InvalidArgument that names the flag.
speculative::SpeculativeOptions speculative_options(const SpeculativeFlags& flags);

}  // namespace coterie::cli
