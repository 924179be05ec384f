#include "kv_cache/state_layout.h"

#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "base/error.h"

namespace coterie {
namespace {

using cpu::CacheType;
using testing::HasSubstr;

constexpr std::int64_t kHuge = INT64_MAX / 32 * 32;

std::string refusal(std::vector<LayerState> layers) {
    try {
        StateLayout layout(std::move(layers));
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::InvalidArgument);
        EXPECT_THAT(error.what(), testing::Not(HasSubstr("\n")));
        return error.what();
    }
    return "accepted";
}

TEST(StateLayout, PlacesKeysAndValuesOfEachLayerInTurn) {
    const StateLayout layout({KeyValueLayer{4, 96, 64, CacheType::F16, CacheType::F32},
                              KeyValueLayer{2, 64, 32, CacheType::Q8_0, CacheType::Q8_0}});
    EXPECT_EQ(layout.keys(0).offset, 0u);
    EXPECT_EQ(layout.keys(0).head_bytes, 96u * 2);
    EXPECT_EQ(layout.keys(0).row_bytes, 4u * 96 * 2);
    EXPECT_EQ(layout.values(0).offset, 64u * 4 * 96 * 2);
    EXPECT_EQ(layout.values(0).head_bytes, 64u * 4);
    EXPECT_EQ(layout.keys(1).head_bytes, 2u * 34);
    EXPECT_EQ(layout.values(1).head_bytes, 34u);
    EXPECT_EQ(layout.values(1).row_bytes, 2u * 34);
    EXPECT_EQ(layout.token_bytes(), 768u + 1024 + 136 + 68);
    EXPECT_EQ(layout.page_bytes(), 64 * layout.token_bytes());
    EXPECT_EQ(layout.fixed_bytes(), 0u);
    EXPECT_EQ(layout.heads(), 12);
    EXPECT_EQ(layout.keys(1).first_head, 8);
}

TEST(StateLayout, PartsStartOnCacheLines) {
    const StateLayout layout({KeyValueLayer{1, 1, 3, CacheType::F16, CacheType::F16},
                              LatentLayer{5, 2, CacheType::F16}, RecurrentLayer{7}, RecurrentLayer{1}});
    for (const PagePart& part : layout.parts()) EXPECT_EQ(part.offset % 64, 0u);
    EXPECT_EQ(layout.page_bytes() % 64, 0u);
    EXPECT_EQ(layout.recurrent_offset(3) % 16, 0u);
}

TEST(StateLayout, ALatentRowIsKeyAndValue) {
    const StateLayout layout({LatentLayer{576, 512, CacheType::Q8_0}});
    EXPECT_EQ(layout.token_bytes(), 18u * 34);
    EXPECT_EQ(&layout.keys(0), &layout.values(0));
    EXPECT_EQ(layout.parts().size(), 1u);
    EXPECT_EQ(layout.heads(), 1);
}

TEST(StateLayout, RecurrentLayersNeedNoPages) {
    const StateLayout layout({RecurrentLayer{20}, RecurrentLayer{16}});
    EXPECT_EQ(layout.page_bytes(), 0u);
    EXPECT_EQ(layout.token_bytes(), 0u);
    EXPECT_EQ(layout.recurrent_offset(1), 32u);
    EXPECT_EQ(layout.recurrent_size(0), 20u);
    EXPECT_EQ(layout.fixed_bytes(), 48u * 4);
    EXPECT_FALSE(layout.attends(0));
}

TEST(StateLayout, RefusesWidthsThatCutACacheBlock) {
    EXPECT_EQ(refusal({RecurrentLayer{1}, KeyValueLayer{8, 80, 64, CacheType::Q8_0, CacheType::F16}}),
              "layer 1: key width 80 is not a multiple of 32, which cache type q8_0 needs; use -ctk f16");
    EXPECT_THAT(refusal({KeyValueLayer{8, 64, 80, CacheType::Q8_0, CacheType::Q8_0}}),
                HasSubstr("use -ctv f16"));
    EXPECT_THAT(refusal({LatentLayer{560, 512, CacheType::Q8_0}}), HasSubstr("latent width 560"));
    EXPECT_THAT(refusal({LatentLayer{576, 500, CacheType::Q8_0}}), HasSubstr("latent value width 500"));
    EXPECT_EQ(refusal({KeyValueLayer{8, 80, 80, CacheType::F16, CacheType::F32}}), "accepted");
}

TEST(StateLayout, RefusesSizesThatAreNotPositiveOrOverflow) {
    EXPECT_THAT(refusal({KeyValueLayer{0, 64, 64, CacheType::F16, CacheType::F16}}),
                HasSubstr("kv heads is 0"));
    EXPECT_THAT(refusal({KeyValueLayer{1, -64, 64, CacheType::F16, CacheType::F16}}),
                HasSubstr("key width is -64"));
    EXPECT_THAT(refusal({LatentLayer{64, 0, CacheType::F16}}), HasSubstr("value width is 0"));
    EXPECT_THAT(refusal({LatentLayer{64, 65, CacheType::F16}}), HasSubstr("exceeds the latent width 64"));
    EXPECT_THAT(refusal({RecurrentLayer{0}}), HasSubstr("recurrent state size is 0"));
    EXPECT_THAT(refusal({KeyValueLayer{1, kHuge, 32, CacheType::F32, CacheType::F32}}),
                HasSubstr("overflows"));
    EXPECT_THAT(refusal({KeyValueLayer{kHuge, 32, 32, CacheType::Q8_0, CacheType::F32}}),
                HasSubstr("overflows"));
    EXPECT_THAT(refusal({RecurrentLayer{kHuge}, RecurrentLayer{kHuge}}), HasSubstr("overflows"));
}

TEST(StateLayout, FingerprintTellsLayoutsApart) {
    const auto fingerprint = [](LayerState layer) { return StateLayout({layer}).fingerprint(); };
    const LayerState f16 = KeyValueLayer{2, 64, 64, CacheType::F16, CacheType::F16};
    EXPECT_EQ(fingerprint(f16), fingerprint(f16));
    EXPECT_NE(fingerprint(f16), fingerprint(KeyValueLayer{2, 64, 64, CacheType::F16, CacheType::Q8_0}));
    EXPECT_NE(fingerprint(f16), fingerprint(KeyValueLayer{4, 32, 64, CacheType::F16, CacheType::F16}));
    EXPECT_NE(fingerprint(f16), fingerprint(LatentLayer{64, 64, CacheType::F16}));
    EXPECT_NE(fingerprint(RecurrentLayer{64}), fingerprint(RecurrentLayer{65}));
}

}  // namespace
}  // namespace coterie
