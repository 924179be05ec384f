#include "synth/quant_mix.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "synth/tensor_plan.h"

namespace coterie::synth {
namespace {

std::string type_names(std::string_view mix, std::string_view shape_name, const MatrixPlace& place) {
    const Shape& shape = find_shape(shape_name);
    return std::string(traits(QuantMix(mix).type_of(shape, shape.layers, place)).name);
}

TEST(QuantMix, FollowsTheNamedMixes) {
    const auto qwen = [](std::string_view mix, MatrixRole role, std::int64_t layer) {
        return type_names(mix, "qwen3-30b-a3b", {role, layer, 2048});
    };
    EXPECT_EQ(qwen("q4_k_m", MatrixRole::Output, 0), "Q6_K");
    EXPECT_EQ(qwen("q4_k_m", MatrixRole::ExpertGate, 0), "Q4_K");
    EXPECT_EQ(qwen("Q4_K_M", MatrixRole::ExpertDown, 0), "Q6_K");  // first eighth: layers 0 to 5
    EXPECT_EQ(qwen("q4_k_m", MatrixRole::ExpertDown, 6), "Q4_K");
    EXPECT_EQ(qwen("q4_k_m", MatrixRole::ExpertDown, 8), "Q6_K");  // every third
    EXPECT_EQ(qwen("q4_k_m", MatrixRole::ExpertDown, 42), "Q6_K");
    EXPECT_EQ(qwen("q4_k_s", MatrixRole::Value, 3), "Q5_K");
    EXPECT_EQ(qwen("q4_k_s", MatrixRole::Value, 4), "Q4_K");
    EXPECT_EQ(qwen("iq3_xxs", MatrixRole::Query, 0), "IQ2_S");
    EXPECT_EQ(qwen("iq2_xxs", MatrixRole::TokenEmbedding, 0), "Q2_K");
    EXPECT_EQ(qwen("mxfp4", MatrixRole::ExpertUp, 0), "MXFP4");
    EXPECT_EQ(qwen("mxfp4", MatrixRole::Query, 0), "Q8_0");
    EXPECT_EQ(type_names("q4_k_m", "mixtral-8x7b", {MatrixRole::Key, 10, 4096}), "Q8_0");
}

TEST(QuantMix, PureMeansEveryMatrix) {
    for (const MatrixRole role : {MatrixRole::TokenEmbedding, MatrixRole::Output, MatrixRole::ExpertDown}) {
        EXPECT_EQ(type_names("pure-iq2_xs", "qwen3-30b-a3b", {role, 0, 2048}), "IQ2_XS");
    }
}

TEST(QuantMix, RowsThatDoNotFitFallBack) {
    EXPECT_EQ(fitting_type(DataType::Q4_K, 1408), DataType::Q5_0);
    EXPECT_EQ(fitting_type(DataType::Q6_K, 1408), DataType::Q8_0);
    EXPECT_EQ(fitting_type(DataType::Q5_K, 2880), DataType::Q5_1);
    EXPECT_EQ(fitting_type(DataType::Q2_K, 2880), DataType::Q4_0);
    EXPECT_EQ(fitting_type(DataType::IQ2_XXS, 2880), DataType::IQ4_NL);
    EXPECT_EQ(fitting_type(DataType::Q6_K, 40), DataType::F16);
    EXPECT_EQ(fitting_type(DataType::Q4_K, 2048), DataType::Q4_K);
}

TEST(QuantMix, UnknownNamesAreRefusedWithTheKnownOnes) {
    for (const char* name : {"q4_k", "q9_9", "pure-", "pure-i32", "pure-q8_k", ""}) {
        try {
            const QuantMix mix(name);
            ADD_FAILURE() << name << " was taken as " << mix.name();
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
            EXPECT_NE(std::string(error.what()).find("q4_k_m"), std::string::npos);
        }
    }
}

TEST(TensorPlan, ExpertsHaveTheSizesOfTheRealModels) {
    const auto expert_bytes = [](std::string_view shape_name, std::string_view mix, std::int64_t layer) {
        const Shape& shape = find_shape(shape_name);
        std::int64_t bytes = 0;
        for (const PlannedTensor& tensor : plan_tensors(shape, shape.layers, QuantMix(mix))) {
            if (tensor.part != Part::Experts || tensor.name.ends_with(".bias")) continue;
            if (!tensor.name.starts_with("blk." + std::to_string(layer) + ".")) continue;
            bytes += *row_bytes(tensor.type, tensor.dims[0]) * tensor.dims[1];
        }
        return bytes;
    };
    EXPECT_EQ(expert_bytes("qwen3-30b-a3b", "q4_k_m", 6), 2654208);
    EXPECT_EQ(expert_bytes("qwen3-30b-a3b", "q4_k_m", 0), 3059712);
    EXPECT_EQ(expert_bytes("mixtral-8x7b", "q4_k_m", 0), 114229248);
    EXPECT_EQ(expert_bytes("olmoe-1b-7b", "iq3_xxs", 0), 2408448);
    EXPECT_EQ(expert_bytes("gpt-oss-20b", "mxfp4", 0), 13219200);
    EXPECT_EQ(expert_bytes("gpt-oss-120b", "q8_0", 35), 26438400);
}

TEST(FindShape, UnknownNamesAreRefusedWithTheKnownOnes) {
    EXPECT_EQ(find_shape("olmoe-1b-7b").experts, 64);
    try {
        find_shape("qwen4");
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("qwen3-30b-a3b"), std::string::npos);
    }
}

}  // namespace
}  // namespace coterie::synth
