#include "cli/model_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "base/progress_bar.h"
#include "base/standard_streams.h"
#include "cli/environment.h"
#include "cli/flag_values.h"
#include "cli/load_mode.h"
#include "devices/device.h"
#include "kernels/cpu/self_test.h"
#include "tokenizer/load_tokenizer.h"

extern "C" {
extern const std::byte coterie_default_model_begin[];
extern const std::byte coterie_default_model_end[];
}

namespace coterie::cli {
namespace {

constexpr std::int64_t kMostBatch = 1 << 16;
constexpr std::int64_t kDefaultBatch = 512;

cpu::CacheType cache_type(const std::string& name, const char* flag) {
    if (name == "f32") return cpu::CacheType::F32;
    if (name == "f16") return cpu::CacheType::F16;
    if (name == "q8_0") return cpu::CacheType::Q8_0;
    fail(ErrorCode::InvalidArgument, "{} {}: supported are f32, f16 and q8_0", flag, name);
}

void choose_instruction_set(const std::string& name) {
    if (name.empty()) return;
    for (const auto set :
         {cpu::InstructionSet::Scalar, cpu::InstructionSet::Avx2, cpu::InstructionSet::Avx512}) {
        const cpu::KernelTable* table = cpu::kernels_for(set);
        if (table && table->name == name) return cpu::force_instruction_set(set);
    }
    fail(ErrorCode::Unsupported,
         "--cpu-isa {}: this machine has no such instruction set (scalar, avx2, avx512)", name);
}

log::Level level_of(int verbosity) {
    if (verbosity < 2) return log::Level::Error;
    if (verbosity == 2) return log::Level::Warning;
    return verbosity == 3 ? log::Level::Info : log::Level::Debug;
}

/// Keys and values take memory as they come: what will not be there is better known now.
void check_context(const engine::Engine& engine) {
    if (engine.config().context > 0 && engine.context() > engine.config().context) {
        log::warn(
            "a context of {} tokens is more than the {} that the model was trained for; later answers may be "
            "poor",
            engine.context(), engine.config().context);
    }
    const std::uint64_t needed = static_cast<std::uint64_t>(engine.pages()) * engine.layout().page_bytes();
    const std::uint64_t available = available_ram();
    if (available == 0 || needed <= available) return;
    fail(ErrorCode::OutOfMemory,
         "a context of {} tokens takes {} MiB of keys and values, and {} MiB of memory are available; "
         "use a smaller -c, or -ctk q8_0 -ctv q8_0",
         engine.context(), needed >> 20, available >> 20);
}

std::vector<DataType> types_of(const gguf::Archive& archive) {
    std::set<DataType> types;
    for (const gguf::Tensor& tensor : archive.tensors()) types.insert(tensor.type);
    return {types.begin(), types.end()};
}

gguf::Archive built_in_model() {
    say("coterie: no -m given, using the built-in demo model (a dictionary of 29M parameters)\n");
    const auto bytes = static_cast<std::size_t>(coterie_default_model_end - coterie_default_model_begin);
    return gguf::Archive::from_bytes({coterie_default_model_begin, bytes}, "the built-in model");
}

/// Each is one override or several with commas between them; a text's comma is written "\\,".
std::vector<gguf::MetadataOverride> parse_overrides(const std::vector<std::string>& flags) {
    std::vector<gguf::MetadataOverride> overrides;
    for (const std::string& flag : flags) {
        std::string one;
        for (std::size_t i = 0; i <= flag.size(); ++i) {
            if (i + 1 < flag.size() && flag[i] == '\\' && flag[i + 1] == ',') {
                one += flag[++i];
            } else if (i == flag.size() || flag[i] == ',') {
                overrides.push_back(gguf::parse_metadata_override(one));
                one.clear();
            } else {
                one += flag[i];
            }
        }
    }
    return overrides;
}

/// llama.cpp's -fa and how much it says.
void add_accepted_flags(CLI::App& command, ModelOptions& options) {
    command.add_flag("--flash-attn{on}", options.flash_attention, "always on")
        ->delimiter(',')
        ->check(CLI::IsMember({"on", "off", "auto", "0", "1"}))
        ->each([](const std::string& value) {
            if (value == "off" || value == "0")
                log::warn("-fa {}: attention is always computed in this way", value);
        })
        ->group(kHiddenGroup);
    command
        .add_flag_callback(
            "-v,--verbose", [] { log::set_level(log::Level::Debug); }, "say more on standard error")
        ->group("Model");
    command
        .add_flag_callback(
            "--log-disable", [] { log::set_level(log::Level::Error); }, "say errors only")
        ->group("Model");
    command
        .add_option_function<int>(
            "--log-verbosity", [](const int& level) { log::set_level(level_of(level)); },
            "-lv: 1 errors, 2 warnings (default), 3 what happens, 4 everything")
        ->check(whole_number(0, 1000))
        ->group("Model");
    command
        .add_flag_callback(
            "--no-mmap", [&options] { options.load_mode = "pin"; }, "--load-mode pin")
        ->group(kHiddenGroup);
    command
        .add_flag_callback(
            "--mmap", [&options] { options.load_mode = "mmap"; }, "--load-mode mmap")
        ->group(kHiddenGroup);
    for (const char* accepted : {"--no-context-shift", "--no-perf"})
        command.add_flag(std::string(accepted), options.accepted, "as it is anyway")->group(kHiddenGroup);
}

}  // namespace

std::int64_t ModelOptions::step_tokens() const {
    if (batch > 0 && ubatch > 0) return std::min(batch, ubatch);
    const std::int64_t given = std::max(batch, ubatch);
    return given > 0 ? given : kDefaultBatch;
}

void add_model_flag(CLI::App& command, ModelOptions& options) {
    command
        .add_option("-m,--model", options.model,
                    "GGUF file, any one of a split model; default: the built-in model")
        ->envname(environment::kModel)
        ->group("Model");
    command
        .add_option(
            "--override-kv", options.overrides,
            "KEY=TYPE:VALUE: reads this value of metadata in place of the file's; TYPE is int, float, "
            "bool or str; several with commas")
        ->allow_extra_args(false)
        ->group("Model");
}

void add_tokenizer_flags(CLI::App& command, ModelOptions& options) {
    command.add_option("--pre-tokenizer", options.pre_tokenizer, "instead of the file's tokenizer.ggml.pre")
        ->group("Model");
}

void add_model_flags(CLI::App& command, ModelOptions& options) {
    add_model_flag(command, options);
    command.add_option("-t,--threads", options.threads, "threads; default: one per physical core")
        ->envname(environment::kThreads)
        ->check(whole_number(1, 1024))
        ->group("Model");
    command.add_option("--threads-batch", options.threads, "the same as --threads")->group(kHiddenGroup);
    command
        .add_option("-c,--ctx-size", options.context,
                    "tokens of context; default: 4096, or the model's if less")
        ->envname(environment::kContext)
        ->check(whole_number(0, 1 << 24))
        ->group("Model");
    command.add_option("-b,--batch-size,--batch", options.batch, "tokens computed in one step at most")
        ->check(whole_number(1, kMostBatch))
        ->default_str(std::to_string(kDefaultBatch))
        ->group("Model");
    command
        .add_option("--ubatch-size", options.ubatch,
                    "-ub: the same; where both are given, the lesser one counts")
        ->check(whole_number(1, kMostBatch))
        ->group("Model");
    command.add_option("--cache-type-k", options.cache_keys, "-ctk: type of cached keys: f32, f16, q8_0")
        ->check(CLI::IsMember({"f32", "f16", "q8_0"}))
        ->capture_default_str()
        ->group("Model");
    command.add_option("--cache-type-v", options.cache_values, "-ctv: type of cached values: f32, f16, q8_0")
        ->check(CLI::IsMember({"f32", "f16", "q8_0"}))
        ->capture_default_str()
        ->group("Model");
    command
        .add_option("--cpu-isa", options.instruction_set,
                    "scalar, avx2 or avx512; default: the best there is")
        ->check(CLI::IsMember({"scalar", "avx2", "avx512"}))
        ->envname(environment::kInstructionSet)
        ->group("Model");
    command
        .add_option("--load-mode", options.load_mode,
                    "mmap; pin: into memory of our own, which a GPU reads directly; dio: the same past "
                    "the page cache; or auto")
        ->check(CLI::IsMember(std::set<std::string>(std::begin(kLoadModes), std::end(kLoadModes))))
        ->capture_default_str()
        ->group("Model");
    add_tokenizer_flags(command, options);
    add_accepted_flags(command, options);
    add_gpu_flags(command, options.gpu);
}

std::shared_ptr<const gguf::Archive> open_archive(const ModelOptions& options) {
    const std::vector<gguf::MetadataOverride> overrides = parse_overrides(options.overrides);
    auto archive = std::make_shared<gguf::Archive>(
        options.model.empty() ? built_in_model() : gguf::Archive::open(options.model));
    if (!overrides.empty()) archive->override_metadata(overrides);
    return archive;
}

models::CacheFormat cache_format(const ModelOptions& options) {
    return {cache_type(options.cache_keys, "-ctk"), cache_type(options.cache_values, "-ctv")};
}

std::unique_ptr<engine::Engine> load_engine(std::shared_ptr<const gguf::Archive> archive,
                                            const ModelOptions& options, const std::function<void()>& go_on) {
    choose_instruction_set(options.instruction_set);
    engine::EngineOptions engine_options;
    engine_options.threads = options.threads;
    engine_options.context = options.context;
    engine_options.batch = options.step_tokens();
    engine_options.cache = cache_format(options);
    add_offload(*archive, options, engine_options);
    ProgressBar bar("loading", ProgressBar::Unit::Bytes);
    const std::uint64_t total = archive->total_bytes();
    if (take_into_memory(*archive, options.load_mode, engine_options.offload, bar))
        engine_options.offload.pins_host_memory = !engine_options.offload.gpus.empty();
    const std::size_t engine_gpus = engine_options.offload.gpus.size();
    auto engine = std::make_unique<engine::Engine>(std::move(archive), engine_options);
    if (engine_gpus == 0) check_context(*engine);
    const std::vector<DataType> types = types_of(engine->archive());
    cpu::self_test(cpu::kernels(), types);
    engine->load([&](std::uint64_t done, std::uint64_t) {
        bar.update(done, total);
        if (go_on) go_on();
    });
    return engine;
}

std::unique_ptr<Tokenizer> load_tokenizer(const gguf::Archive& archive, const ModelOptions& options) {
    return coterie::load_tokenizer(archive.metadata(), {.pre_tokenizer = options.pre_tokenizer});
}

}  // namespace coterie::cli
