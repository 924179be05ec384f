#include "server/service/late_end.h"

#include <gtest/gtest.h>
#include <vector>

namespace coterie::server {
namespace {

/// Allows one mask after the other.
class Listed final : public scheduler::TokenConstraint {
  public:
    explicit Listed(std::vector<std::vector<std::uint64_t>> masks) : masks_(std::move(masks)) {}
    std::span<const std::uint64_t> allowed() override { return masks_[accepted_.size()]; }
    void accept(TokenId token) override { accepted_.push_back(token); }

  private:
    std::vector<std::vector<std::uint64_t>> masks_;
    std::vector<TokenId> accepted_;
};

std::vector<std::uint64_t> mask_of(scheduler::TokenConstraint& constraint) {
    const auto mask = constraint.allowed();
    return {mask.begin(), mask.end()};
}

TEST(EndLate, AllowsAnEndOnlyWhereNothingElseMayFollow) {
    using Mask = std::vector<std::uint64_t>;
    const std::vector<TokenId> ends = {1, 64, 200};
    const auto constraint =
        end_late(std::make_unique<Listed>(std::vector<Mask>{
                     {0b101, 0b10}, {0b011, 0b1}, {0b010, 0b11}, {0b010, 0b1}, {0b000, 0b1}}),
                 ends);
    const Mask expected[] = {{0b101, 0b10}, {0b001, 0}, {0, 0b10}, {0b010, 0b1}, {0, 0b1}};
    for (const Mask& mask : expected) {
        EXPECT_EQ(mask_of(*constraint), mask);
        EXPECT_EQ(mask_of(*constraint), mask);  // asking changes nothing
        constraint->accept(0);
    }
}

}  // namespace
}  // namespace coterie::server
