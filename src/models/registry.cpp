#include "models/registry.h"

#include <string_view>

#include "base/error.h"
#include "models/architectures/architectures.h"

namespace coterie::models {
namespace {

struct Architecture {
    std::string_view name;  ///< general.architecture
    std::unique_ptr<Model> (*build)(DecoderBuilder&);
};

constexpr Architecture kArchitectures[] = {
    {"deepseek2", build_deepseek2}, {"glm4moe", build_glm4moe},   {"gpt-oss", build_gpt_oss},
    {"llama", build_llama},         {"olmoe", build_olmoe},       {"qwen2moe", build_qwen2moe},
    {"qwen3", build_qwen3},         {"qwen3moe", build_qwen3moe}, {"qwen3next", build_qwen3next},
};

}  // namespace

std::string supported_architectures() {
    std::string list;
    for (const Architecture& architecture : kArchitectures) {
        if (!list.empty()) list += ", ";
        list += architecture.name;
    }
    return list;
}

std::unique_ptr<Model> build_model(const gguf::Archive& archive) {
    const std::string_view name = archive.metadata().string("general.architecture");
    for (const Architecture& architecture : kArchitectures) {
        if (architecture.name != name) continue;
        DecoderBuilder builder(archive);
        return architecture.build(builder);
    }
    fail(ErrorCode::Unsupported, "{}: architecture '{}' is not supported; supported are {}", archive.name(),
         name, supported_architectures());
}

}  // namespace coterie::models
