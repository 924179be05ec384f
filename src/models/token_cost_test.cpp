#include "models/token_cost.h"

#include <gtest/gtest.h>
#include <numeric>

#include "gguf/archive.h"
#include "models/registry.h"

namespace coterie::models {
namespace {

/// The trunk layer that a tensor belongs to; -1 outside it.
std::int64_t layer_of(std::string_view name, std::int64_t layers) {
    if (!name.starts_with("blk.")) return -1;
    const std::int64_t layer = std::stoll(std::string(name.substr(4)));
    return layer < layers ? layer : -1;
}

/// The same sums from the file's directory: matrices of the trunk, and a share of each expert tensor.
TEST(TokenCostTest, AgreesWithTheFilesDirectory) {
    const auto archive = gguf::Archive::open(COTERIE_SOURCE_DIR "/models/demo-dictionary-29m-q5_k_s.gguf");
    const auto model = build_model(archive);
    const ModelConfig& config = model->config;
    TokenCost expected;
    for (const gguf::Tensor& tensor : archive.tensors()) {
        if (layer_of(tensor.name, config.layers) < 0 || tensor.rank < 2) continue;
        const auto bytes = static_cast<std::int64_t>(tensor.bytes.size());
        if (tensor.name.find("_exps.") == std::string_view::npos) {
            expected.dense_bytes += bytes;
            expected.layer_multiply_adds += tensor.values();
        } else {
            expected.expert_bytes += bytes / config.experts * config.experts_used;
            expected.layer_multiply_adds += tensor.values() / config.experts * config.experts_used;
        }
    }
    const TokenCost cost = token_cost(*model);
    EXPECT_EQ(cost.dense_bytes, expected.dense_bytes);
    EXPECT_EQ(cost.expert_bytes, expected.expert_bytes);
    EXPECT_EQ(cost.layer_multiply_adds, expected.layer_multiply_adds);
    EXPECT_GT(cost.expert_bytes, 0);
    ASSERT_EQ(cost.layer_dense_bytes.size(), static_cast<std::size_t>(config.layers));
    EXPECT_EQ(std::accumulate(cost.layer_dense_bytes.begin(), cost.layer_dense_bytes.end(), std::int64_t{0}),
              cost.dense_bytes);

    EXPECT_EQ(cost.embedding_bytes, model->token_embedding.row_bytes);
    EXPECT_EQ(cost.output_bytes, model->output.bytes());
    EXPECT_EQ(cost.output_multiply_adds, config.vocabulary * config.embedding);
    EXPECT_EQ(cost.decode_bytes(),
              cost.embedding_bytes + cost.dense_bytes + cost.expert_bytes + cost.output_bytes);
}

}  // namespace
}  // namespace coterie::models
