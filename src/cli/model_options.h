#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/gpu_flags.h"
#include "cli/offload.h"
#include "engine/engine.h"
#include "gguf/archive.h"
#include "tokenizer/tokenizer.h"

namespace CLI {
class App;
}

namespace coterie::cli {

/// The flags that say which model runs and how.
struct ModelOptions {
    std::string model;  ///< empty: the built-in one
    int threads = 0;
    std::int64_t context = 0;
    std::int64_t batch = 0;   ///< 0: not given
    std::int64_t ubatch = 0;  ///< 0: not given
    std::string cache_keys = "f16";
    std::string cache_values = "f16";
    std::string instruction_set;
    std::string load_mode = "auto";
    std::string pre_tokenizer;
    std::vector<std::string> overrides;  ///< --override-kv KEY=TYPE:VALUE
    std::string flash_attention;         ///< accepted, and always on
    bool accepted = false;               ///< target of llama.cpp's flags that say what holds anyway
    GpuFlags gpu;
    OffloadFlags offload;  ///< no devices unless a command takes their flags

    /// Tokens computed in one step at most: the lesser of -b and -ub where both are given, else 512.
    std::int64_t step_tokens() const;
};

/// Adds -m and what replaces metadata of its file: for commands that only look at the file.
void add_model_flag(CLI::App& command, ModelOptions& options);
/// Adds what changes how the file's tokenizer is read.
void add_tokenizer_flags(CLI::App& command, ModelOptions& options);
/// Adds all of the above and how and where the model is run.
void add_model_flags(CLI::App& command, ModelOptions& options);

/// Opens the file, or the built-in model, which it says in one line.
std::shared_ptr<const gguf::Archive> open_archive(const ModelOptions& options);

/// Element types of keys and values. Throws InvalidArgument naming the flag.
models::CacheFormat cache_format(const ModelOptions& options);

/// Builds the engine, checks the kernels that the model will use, and brings the weights into memory with a
/// progress bar. `go_on` is called meanwhile and may throw, which ends it.
std::unique_ptr<engine::Engine> load_engine(std::shared_ptr<const gguf::Archive> archive,
                                            const ModelOptions& options,
                                            const std::function<void()>& go_on = {});

std::unique_ptr<Tokenizer> load_tokenizer(const gguf::Archive& archive, const ModelOptions& options);

}  // namespace coterie::cli
