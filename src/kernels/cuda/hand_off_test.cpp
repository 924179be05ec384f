#include "kernels/cuda/hand_off.h"

#include <cstring>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "kernels/cuda/check.h"

namespace coterie::cuda {
namespace {

class HandOff : public ::testing::Test {
  protected:
    HandOff() {
        check(cudaHostAlloc(&memory_, HandOffWords::kBytes, cudaHostAllocMapped), "cudaHostAlloc");
        std::memset(memory_, 0, HandOffWords::kBytes);
        words_ = HandOffWords::in(memory_);
    }
    ~HandOff() override {
        *words_.reply = HandOffWords::kReleased;
        cudaDeviceSynchronize();
        cudaFreeHost(memory_);
    }
    void* memory_ = nullptr;
    HandOffWords words_;
};

TEST_F(HandOff, AsksAgainOnlyWhenItWasAnswered) {
    constexpr std::uint64_t kRounds = 100;
    hand_off(words_, kRounds, nullptr);
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
        while (*words_.request < round) ASSERT_EQ(*words_.failed, 0u);
        ASSERT_EQ(*words_.request, round);
        *words_.reply = round;
    }
    check(cudaDeviceSynchronize(), "hand_off");
    EXPECT_EQ(*words_.failed, 0u);
}

TEST_F(HandOff, EndsWithinASecondWhereNobodyAnswers) {
    hand_off(words_, 5, nullptr);
    check(cudaDeviceSynchronize(), "hand_off");
    EXPECT_EQ(*words_.request, 1u);
    EXPECT_EQ(*words_.failed, 1u);
}

TEST_F(HandOff, GoesThroughWhereItIsReleased) {
    *words_.reply = HandOffWords::kReleased;
    hand_off(words_, 1000, nullptr);
    check(cudaDeviceSynchronize(), "hand_off");
    EXPECT_EQ(*words_.request, 1000u);
    EXPECT_EQ(*words_.failed, 0u);
}

}  // namespace
}  // namespace coterie::cuda
