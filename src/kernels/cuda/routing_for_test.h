#pragma once

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/ops_testing.h"
#include "kernels/cuda/device_array_for_test.h"
#include "kernels/cuda/moe.h"

namespace coterie::cuda::testing {

/// The second of three layers: where a routing puts its results, a third of the experts missing, and what the
/// CPU makes of the same logits.
class RoutingForTest {
  public:
    /// `bias` of the selection: [experts] or empty.
    RoutingForTest(const cpu::Routing& routing, std::vector<float> bias, std::int32_t tokens,
                   std::int32_t columns)
        : routing_(routing),
          tokens_(tokens),
          columns_(columns),
          pairs_(static_cast<std::size_t>(tokens * routing.used)),
          stride_((columns + 127) / 128 * 128),
          bias_(std::move(bias)),
          residents_(residents_of(routing.experts)) {}

    /// All but the logits and x.
    RouteArgs args() const {
        RouteArgs args;
        args.routing = routing_;
        args.layer = 1;
        args.tokens = tokens_;
        args.max_tokens = tokens_;
        args.selection_bias = bias_.empty() ? nullptr : device_bias_.get();
        args.residents = device_residents_.get();
        args.experts = chosen_.get();
        args.weights = weights_.get();
        args.slots = slots_.get();
        args.columns = columns_;
        args.counters = {step_.get(), missing_.get(), routed_.get(), kept_.get(), kept_weights_.get()};
        args.mailbox.experts = posted_.get();
        args.mailbox.weights = posted_weights_.get();
        args.mailbox.missing = posted_missing_.get();
        args.mailbox.values = values_.get();
        args.mailbox.quants = quants_.get();
        args.mailbox.scales = scales_.get();
        args.mailbox.scaled_sums = scaled_sums_.get();
        args.mailbox.half_sums = half_sums_.get();
        args.mailbox.groups = stride_ / 32;
        args.mailbox.request = flags_.get();
        args.mailbox.done = flags_.get() + 1;
        return args;
    }

    /// Ends the step, then compares. Logits are [tokens][experts]; rows are the tokens'.
    void expect(const RouteArgs& args, const std::vector<float>& logits,
                const std::vector<ActivationForTest>& rows) const {
        const auto pairs = static_cast<std::int64_t>(pairs_);
        finish_step({kLayers, static_cast<std::int32_t>(pairs), pairs, args.counters, args.mailbox}, nullptr);
        std::uint32_t missing = 0;
        for (std::int32_t t = 0; t < tokens_; ++t) {
            SCOPED_TRACE("token " + std::to_string(t));
            const std::uint32_t of_token = expect_choice(t, logits);
            if (of_token > 0) expect_posted(t, rows[static_cast<std::size_t>(t)].row());
            missing += of_token;
        }
        EXPECT_EQ(posted_missing_[1], missing);
        EXPECT_EQ(flags_[1], kStep);
        EXPECT_EQ(flags_[0], missing == 0 ? 0 : kStep * kEpochsPerStep + 2);
    }

  private:
    static constexpr std::int32_t kLayers = 3;
    static constexpr std::uint64_t kStep = 9;

    static std::vector<std::uint64_t> residents_of(std::int64_t experts) {
        std::vector<std::uint64_t> residents(static_cast<std::size_t>(experts));
        for (std::size_t e = 0; e < residents.size(); ++e) residents[e] = e % 3 == 0 ? 0 : 4096 * (e + 1);
        return residents;
    }

    /// How many of the token's experts are missing.
    std::uint32_t expect_choice(std::int32_t t, const std::vector<float>& logits) const {
        const std::vector<std::int32_t> ids = chosen_.read();
        const std::vector<float> shares = weights_.read();
        const std::vector<std::uint64_t> found = slots_.read();
        const auto used = static_cast<std::size_t>(routing_.used);
        std::vector<std::int32_t> expected(used);
        std::vector<float> expected_weights(used);
        std::vector<float> scratch(static_cast<std::size_t>(3 * routing_.experts));
        cpu::route(*cpu::kernels_for(cpu::InstructionSet::Scalar), routing_,
                   logits.data() + t * routing_.experts, bias_.empty() ? nullptr : bias_.data(),
                   scratch.data(), expected.data(), expected_weights.data());
        std::uint32_t missing = 0;
        for (std::size_t rank = 0; rank < used; ++rank) {
            const std::size_t pair = static_cast<std::size_t>(t) * used + rank;
            EXPECT_EQ(ids[pair], expected[rank]) << "rank " << rank;
            EXPECT_TRUE(same(shares[pair], expected_weights[rank]))
                << shares[pair] << " instead of " << expected_weights[rank] << ", rank " << rank;
            EXPECT_EQ(posted_[pairs_ + pair], expected[rank]);
            EXPECT_TRUE(same(posted_weights_[pairs_ + pair], expected_weights[rank]));
            EXPECT_EQ(found[pair], residents_[static_cast<std::size_t>(expected[rank])]);
            missing += found[pair] == 0;
        }
        return missing;
    }

    void expect_posted(std::int32_t t, const ActivationRow& row) const {
        const auto groups = static_cast<std::size_t>(activation_groups(columns_));
        const std::int64_t group = t * stride_ / 32;
        EXPECT_EQ(std::memcmp(quants_.get() + group * 32, row.quants, groups * 32), 0);
        for (std::int32_t i = 0; i < columns_; ++i)
            EXPECT_TRUE(same(values_.get()[group * 32 + i], row.values[i])) << i;
        for (std::size_t g = 0; g < groups; ++g) {
            EXPECT_TRUE(same(scales_.get()[group + static_cast<std::int64_t>(g)], row.scales[g])) << g;
            EXPECT_TRUE(same(scaled_sums_.get()[group + static_cast<std::int64_t>(g)], row.scaled_sums[g]))
                << g;
        }
        EXPECT_EQ(std::memcmp(half_sums_.get() + group * 2, row.half_sums, groups * 4), 0);
    }

    std::size_t of_inputs() const { return static_cast<std::size_t>(tokens_ * stride_); }

    cpu::Routing routing_;
    std::int32_t tokens_;
    std::int32_t columns_;
    std::size_t pairs_;
    std::int64_t stride_;
    std::vector<float> bias_;
    std::vector<std::uint64_t> residents_;
    DeviceArray<float> device_bias_{bias_};
    DeviceArray<std::uint64_t> device_residents_{residents_};
    DeviceArray<std::int32_t> chosen_{pairs_};
    DeviceArray<float> weights_{pairs_};
    DeviceArray<std::uint64_t> slots_{pairs_};
    DeviceArray<std::uint64_t> step_{std::vector<std::uint64_t>{kStep}};
    DeviceArray<std::uint32_t> missing_{std::vector<std::uint32_t>(kLayers, 0u)};
    DeviceArray<std::uint32_t> routed_{std::vector<std::uint32_t>(kLayers, 0u)};
    DeviceArray<std::int32_t> kept_{kLayers * pairs_};
    DeviceArray<float> kept_weights_{kLayers * pairs_};
    MappedArray<std::int32_t> posted_{kLayers * pairs_};
    MappedArray<float> posted_weights_{kLayers * pairs_};
    MappedArray<std::uint32_t> posted_missing_{kLayers};
    MappedArray<std::int8_t> quants_{of_inputs()};
    MappedArray<float> scales_{of_inputs() / 32};
    MappedArray<float> scaled_sums_{of_inputs() / 32};
    MappedArray<std::int16_t> half_sums_{of_inputs() / 16};
    MappedArray<float> values_{of_inputs()};
    MappedArray<std::uint64_t> flags_{2};
};

}  // namespace coterie::cuda::testing
