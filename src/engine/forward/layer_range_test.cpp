#include "engine/forward/layer_range.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "engine/forward/weight_collector.h"
#include "gguf/archive.h"
#include "models/registry.h"

namespace coterie::engine {
namespace {

using models::Matrix;
using models::Value;
using models::Vector;

/// Writes the operations of a pass down.
class Recorder final : public models::LayerOps {
  public:
    std::vector<std::string> seen;

    void embed(const Matrix&, Value out) override { note("embed", out.index); }
    void rms_norm(Value x, const Vector&, float, Value out) override { note("norm", x.index, out.index); }
    void project(Value x, std::span<const models::Projection> to) override {
        note("project", x.index, static_cast<int>(to.size()));
    }
    void project_heads(const models::ExpertMatrix&, Value x, std::int64_t, std::int64_t, Value out,
                       std::int64_t) override {
        note("heads", x.index, out.index);
    }
    void add(Value x, Value y) override { note("add", x.index, y.index); }
    void rope(Value x, std::int64_t, std::int64_t offset, const models::Rope&) override {
        note("rope", x.index, static_cast<int>(offset));
    }
    void copy_heads(Value x, std::int64_t, std::int64_t, Value out, std::int64_t, std::int64_t, std::int64_t,
                    std::int64_t) override {
        note("copy", x.index, out.index);
    }
    void attention(int layer, const models::Attention&, Value, Value, Value, Value) override {
        note("attention", layer);
    }
    void sigmoid_gate(Value x, Value gate) override { note("gate", x.index, gate.index); }
    void delta_net(int layer, const models::DeltaNet&, Value, Value, Value, Value, Value) override {
        note("delta", layer);
    }
    void dense_ffn(const models::DenseFfn&, Value x, Value out) override { note("ffn", x.index, out.index); }
    void moe_ffn(int layer, const models::MoeFfn&, Value, Value) override { note("moe", layer); }
    void layer_done(int layer, Value) override { note("done", layer); }
    void logits(Value x, const Vector&, float, const Matrix&) override { note("logits", x.index); }

  private:
    void note(const std::string& name, int a, int b = -1) {
        seen.push_back(name + " " + std::to_string(a) + " " + std::to_string(b));
    }
};

class Ranges : public testing::TestWithParam<const char*> {
  protected:
    gguf::Archive archive_ = gguf::Archive::open(std::filesystem::path(COTERIE_SOURCE_DIR) / GetParam());
    std::unique_ptr<models::Model> model_ = models::build_model(archive_);
    int layers_ = static_cast<int>(model_->layers.size());
};

TEST_P(Ranges, TogetherAreTheWholePass) {
    Recorder whole;
    model_->forward(whole);
    for (int cut = 0; cut <= layers_; ++cut) {
        Recorder parts;
        for (const LayerRange range : {LayerRange{0, cut}, LayerRange{cut, layers_}}) {
            if (range.size() == 0) continue;
            RangeOps ops(parts, range, layers_);
            model_->forward(ops);
        }
        EXPECT_EQ(parts.seen, whole.seen) << "cut before layer " << cut;
    }
}

TEST_P(Ranges, HaveAllWeightsBetweenThemOnce) {
    const WeightList whole = collect_weights(*model_);
    std::uint64_t bytes = 0;
    std::vector<const models::MoeFfn*> experts(static_cast<std::size_t>(layers_));
    for (int layer = 0; layer < layers_; ++layer) {
        const WeightList one = collect_weights(*model_, {layer, layer + 1});
        bytes += total_bytes(one);
        ASSERT_EQ(one.experts.size(), experts.size());
        for (int other = 0; other < layers_; ++other) {
            const auto i = static_cast<std::size_t>(other);
            if (other == layer) {
                experts[i] = one.experts[i];
                continue;
            }
            EXPECT_EQ(one.experts[i], nullptr) << "layer " << layer << " has " << other << "'s";
        }
    }
    EXPECT_EQ(bytes, total_bytes(whole));
    EXPECT_EQ(experts, whole.experts);
}

INSTANTIATE_TEST_SUITE_P(Models, Ranges,
                         testing::Values("models/demo-dictionary-29m-q5_k_s.gguf",
                                         "tests/golden/models/gpt-oss-mxfp4.gguf",
                                         "tests/golden/models/qwen3next-bf16.gguf",
                                         "tests/golden/models/deepseek2-v3-f16.gguf"));

}  // namespace
}  // namespace coterie::engine
