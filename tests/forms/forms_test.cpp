#include <cmath>
#include <fmt/core.h>
#include <functional>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "editable_model.h"
#include "engine/engine.h"
#include "models/registry.h"

namespace coterie {
namespace {

using testing::EditableModel;
using testing::join_rows;

std::string golden(const std::string& id) {
    return COTERIE_SOURCE_DIR "/tests/golden/models/" + id + ".gguf";
}

std::vector<float> logits(std::shared_ptr<const gguf::Archive> archive) {
    engine::EngineOptions options;
    options.threads = 2;
    engine::Engine engine(std::move(archive), options);
    engine::Sequence sequence = engine.make_sequence();
    std::vector<engine::TokenId> tokens;
    for (int i = 0; i < 20; ++i) tokens.push_back(i * 23 % 512);
    std::vector<float> all;
    const engine::Slice slice{&sequence, tokens, engine::Slice::Logits::All};
    engine.step({&slice, 1}, [&](std::int64_t, std::span<const float> row) {
        all.insert(all.end(), row.begin(), row.end());
    });
    return all;
}

/// What `edit` makes of a model computes the same bits as the model.
void expect_same_bits(const std::string& id, const std::function<void(EditableModel&)>& edit) {
    EditableModel plain(golden(id));
    EditableModel edited(golden(id));
    edit(edited);
    EXPECT_EQ(logits(edited.build()), logits(plain.build()));
}

std::string blk(std::int64_t i, const std::string& name) { return "blk." + std::to_string(i) + "." + name; }

TEST(FormsTest, FusedQueryKeyValue) {
    expect_same_bits("glm4moe-bf16", [](EditableModel& model) {
        for (int i = 0; i < 4; ++i) {
            for (const char* part : {".weight", ".bias"}) {
                const std::string suffix = part;
                if (suffix == ".weight") {
                    model.put(join_rows(blk(i, "attn_qkv.weight"), {model.take(blk(i, "attn_q.weight")),
                                                                    model.take(blk(i, "attn_k.weight")),
                                                                    model.take(blk(i, "attn_v.weight"))}));
                    continue;
                }
                EditableModel::TensorData bias = model.take(blk(i, "attn_q.bias"));
                for (const char* other : {"attn_k.bias", "attn_v.bias"}) {
                    const EditableModel::TensorData more = model.take(blk(i, other));
                    bias.bytes.insert(bias.bytes.end(), more.bytes.begin(), more.bytes.end());
                    bias.spec.dims[0] += more.spec.dims[0];
                }
                bias.spec.name = blk(i, "attn_qkv.bias");
                model.put(std::move(bias));
            }
        }
    });
}

TEST(FormsTest, FusedGateAndUp) {
    expect_same_bits("qwen3moe-iq4_xs", [](EditableModel& model) {
        for (int i = 0; model.has(blk(i, "ffn_gate_exps.weight")); ++i) {
            auto gate = model.take(blk(i, "ffn_gate_exps.weight"));
            auto up = model.take(blk(i, "ffn_up_exps.weight"));
            ASSERT_EQ(gate.spec.type, up.spec.type);
            model.put(join_rows(blk(i, "ffn_gate_up_exps.weight"), {gate, up}));
        }
    });
}

TEST(FormsTest, ExpertsInTensorsOfTheirOwn) {
    expect_same_bits("olmoe-q4_0", [](EditableModel& model) {
        for (int i = 0; model.has(blk(i, "ffn_gate_exps.weight")); ++i) {
            for (const char* part : {"gate", "up", "down"}) {
                const auto all = model.take(blk(i, std::string("ffn_") + part + "_exps.weight"));
                const std::int64_t experts = all.spec.dims[2];
                const auto bytes = static_cast<std::ptrdiff_t>(all.bytes.size()) / experts;
                for (std::int64_t e = 0; e < experts; ++e) {
                    model.put({{blk(i, std::string("ffn_") + part + "." + std::to_string(e) + ".weight"),
                                all.spec.type,
                                {all.spec.dims[0], all.spec.dims[1]}},
                               {all.bytes.begin() + e * bytes, all.bytes.begin() + (e + 1) * bytes}});
                }
            }
        }
    });
}

/// Older files hold the delta net's projections in one matrix, per key head [q | k | v | gate].
TEST(FormsTest, DeltaNetInOneMatrix) {
    constexpr std::int64_t kKeyHeads = 2;
    constexpr std::int64_t kWidth = 32;
    constexpr std::int64_t kValues = 2 * kWidth;  // two value heads a key head
    expect_same_bits("qwen3next-bf16", [](EditableModel& model) {
        for (int i = 0; model.has(blk(i, "attn_qkv.weight")); ++i) {
            const auto qkv = model.take(blk(i, "attn_qkv.weight"));
            const auto gate = model.take(blk(i, "attn_gate.weight"));
            const std::int64_t row = qkv.spec.dims[0] * 2;
            EditableModel::TensorData fused = qkv;
            fused.spec.name = blk(i, "ssm_in.weight");
            fused.spec.dims[1] += gate.spec.dims[1];
            fused.bytes.clear();
            const auto append = [&](const std::vector<std::byte>& from, std::int64_t first,
                                    std::int64_t rows) {
                fused.bytes.insert(fused.bytes.end(), from.begin() + first * row,
                                   from.begin() + (first + rows) * row);
            };
            for (std::int64_t h = 0; h < kKeyHeads; ++h) {
                append(qkv.bytes, h * kWidth, kWidth);
                append(qkv.bytes, (kKeyHeads + h) * kWidth, kWidth);
                append(qkv.bytes, 2 * kKeyHeads * kWidth + h * kValues, kValues);
                append(gate.bytes, h * kValues, kValues);
            }
            model.put(std::move(fused));
        }
    });
}

TEST(FormsTest, SelectionBiasUnderOlderNames) {
    for (const char* name : {"exp_probs_b.weight", "exp_probs_b"}) {
        expect_same_bits("glm4moe-bf16", [name](EditableModel& model) {
            for (int i = 1; i < 4; ++i) model.rename(blk(i, "exp_probs_b.bias"), blk(i, name));
        });
    }
}

TEST(FormsTest, UnknownTensorsAreIgnored) {
    expect_same_bits("llama-q4_k_m", [](EditableModel& model) {
        model.put({{"blk.0.foo.weight", DataType::F32, {1}}, std::vector<std::byte>(4)});
    });
}

/// The line with which building the edited model ends; empty where it does not.
std::string refusal(EditableModel& model) {
    try {
        const auto archive = model.build();
        static_cast<void>(models::build_model(*archive));
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

TEST(FormsTest, EveryMissingTensorIsNamed) {
    const auto may_be_missing = [](const std::string& name) {
        return name == "output.weight" || name.find("exp_probs_b") != std::string::npos ||
               name.ends_with(".bias") || name.find("inp_shexp") != std::string::npos;
    };
    const std::pair<const char*, const char*> cases[] = {{"qwen3moe-iq4_xs", "none"},
                                                         {"deepseek2-v3-f16", "blk.3."},
                                                         {"qwen3next-bf16", "blk.4."},
                                                         {"gpt-oss-mxfp4", "none"}};
    for (const auto& [id, prediction_block] : cases) {
        for (const std::string& name : EditableModel(golden(id)).names()) {
            if (may_be_missing(name) || name.starts_with(prediction_block)) continue;
            EditableModel model(golden(id));
            model.take(name);
            // Without the newer form of the latent up-projection, the older one is asked for.
            std::string wanted = name;
            if (const auto at = wanted.find("attn_k_b"); at != std::string::npos)
                wanted.replace(at, 8, "attn_kv_b");
            const std::string message = refusal(model);
            EXPECT_TRUE(message.starts_with("edited.gguf: tensor '" + wanted + "' is missing"))
                << name << ": " << message;
            EXPECT_EQ(message.find('\n'), std::string::npos) << message;
        }
    }
}

TEST(FormsTest, EveryMissingKeyIsNamed) {
    for (const std::string key :
         {"block_count", "embedding_length", "context_length", "attention.layer_norm_rms_epsilon",
          "attention.head_count", "expert_used_count", "expert_feed_forward_length"}) {
        EditableModel model(golden("qwen3moe-iq4_xs"));
        model.removed_keys.insert("qwen3moe." + key);
        const std::string message = refusal(model);
        EXPECT_NE(message.find("qwen3moe." + key), std::string::npos) << key << ": " << message;
    }
}

struct NumberKey {
    std::string name;  ///< behind the architecture
    bool zero_is_none = false;
};

/// The numbers that a model of this architecture reads, once its rope is scaled.
std::vector<NumberKey> numbers_read_by(const std::string& architecture, bool has_experts) {
    std::vector<NumberKey> keys{{"attention.layer_norm_rms_epsilon"},
                                {"rope.freq_base"},
                                {"rope.scaling.factor"},
                                {"rope.scaling.yarn_ext_factor", true},
                                {"rope.scaling.yarn_attn_factor"},
                                {"rope.scaling.yarn_beta_fast"},
                                {"rope.scaling.yarn_beta_slow"}};
    if (architecture == "deepseek2") {
        keys.push_back({"rope.scaling.yarn_log_multiplier", true});
    } else {
        keys.push_back({"attention.scale", true});
    }
    if (has_experts) keys.push_back({"expert_weights_scale", true});
    return keys;
}

TEST(FormsTest, NumbersThatNoModelCanHaveAreRefusedInEveryArchitecture) {
    std::set<std::string> covered;
    for (const char* id :
         {"deepseek2-v3-f16", "glm4moe-bf16", "gpt-oss-mxfp4", "llama-legacy-mix", "olmoe-q4_0",
          "qwen2moe-q5_k_m", "qwen3-q6_k", "qwen3moe-iq4_xs", "qwen3next-bf16"}) {
        EditableModel model(golden(id));
        const auto archive = model.build();
        const std::string architecture(archive->metadata().string("general.architecture"));
        const bool has_experts = archive->metadata().integer(architecture + ".expert_count", 0) > 0;
        covered.insert(architecture);
        model.strings[architecture + ".rope.scaling.type"] = "yarn";
        model.numbers[architecture + ".rope.scaling.factor"] = 2.0;
        ASSERT_EQ(refusal(model), "") << id;
        for (const NumberKey& key : numbers_read_by(architecture, has_experts)) {
            const std::string full = architecture + "." + key.name;
            const auto before = model.numbers;
            for (const double value : {-1.0, 0.0, double{NAN}, double{INFINITY}, 1e-60, 1e60}) {
                model.numbers[full] = value;
                const std::string message = refusal(model);
                if (value == 0.0 && key.zero_is_none) {
                    EXPECT_EQ(message, "") << full;
                    continue;
                }
                EXPECT_TRUE(message.starts_with("edited.gguf: ")) << full << " = " << value << message;
                EXPECT_NE(message.find(full), std::string::npos) << message;
                EXPECT_NE(message.find(fmt::format("is {}", value)), std::string::npos) << message;
            }
            model.numbers = before;
        }
    }
    std::string list;
    for (const std::string& architecture : covered) list += (list.empty() ? "" : ", ") + architecture;
    EXPECT_EQ(list, models::supported_architectures()) << "a new architecture belongs into this test";
}

TEST(FormsTest, RopeFactorsThatAreNoDivisorsAreRefused) {
    for (const float bad : {0.0f, -1.0f, NAN, INFINITY}) {
        EditableModel model(golden("llama-q4_k_m"));
        const auto archive = model.build();
        const std::int64_t pairs = archive->metadata().integer("llama.rope.dimension_count") / 2;
        std::vector<float> factors(static_cast<std::size_t>(pairs), 1.0f);
        factors.back() = bad;
        const auto bytes = std::as_bytes(std::span(factors));
        model.put({{"rope_freqs.weight", DataType::F32, {pairs}}, {bytes.begin(), bytes.end()}});
        EXPECT_NE(refusal(model).find("rope_freqs.weight"), std::string::npos) << bad;
    }
}

TEST(FormsTest, ExpertTensorsWithoutACountAreRefused) {
    EditableModel model(golden("olmoe-q4_0"));
    model.removed_keys.insert("olmoe.expert_count");
    EXPECT_NE(refusal(model).find("olmoe.expert_count"), std::string::npos);
}

TEST(FormsTest, AbsurdSizesAreRefusedBeforeAnythingIsAllocated) {
    for (const std::string key :
         {"block_count", "embedding_length", "attention.head_count", "attention.head_count_kv",
          "expert_count", "expert_used_count", "attention.key_length", "rope.dimension_count"}) {
        for (const std::uint32_t value : {0u, 7u, 0x7fffffffu, 0xffffffffu}) {
            EditableModel model(golden("qwen3moe-iq4_xs"));
            model.integers["qwen3moe." + key] = value;
            if (key == "rope.dimension_count" && value == 0) continue;
            EXPECT_FALSE(refusal(model).empty()) << key << " = " << value;
        }
    }
}

TEST(FormsTest, UnknownArchitectureListsWhatIsSupported) {
    EditableModel model(golden("llama-q4_k_m"));
    model.strings["general.architecture"] = "mamba9";
    EXPECT_EQ(refusal(model), "edited.gguf: architecture 'mamba9' is not supported; supported are " +
                                  models::supported_architectures());
}

}  // namespace
}  // namespace coterie
