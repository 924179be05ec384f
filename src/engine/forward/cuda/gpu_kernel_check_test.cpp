#include "engine/forward/cuda/gpu_kernel_check.h"

#include <deque>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "engine/forward/cuda/gpu_check.h"
#include "kernels/cuda/matmul.h"

namespace coterie::engine {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class GpuSelfTest : public testing::Test {
  protected:
    GpuSelfTest() : device_(open_cuda_device(0)), stream_(device_->create_cuda_stream()) {
        device_->make_current();
    }
    std::unique_ptr<CudaDevice> device_;
    std::unique_ptr<CudaStream> stream_;
};

TEST_F(GpuSelfTest, EveryTypeAndRouterPasses) {
    std::deque<models::Matrix> matrices;
    std::deque<models::MoeFfn> experts;
    WeightList list;
    list.widest_value = 128;
    for (const DataTypeTraits& type : all_data_types()) {
        const cuda::MatmulKernels* kernels = cuda::matmul_kernels(type.type);
        if (kernels == nullptr) continue;
        if (kernels->prepare != nullptr) kernels->prepare();
        matrices.emplace_back().type = type.type;
        list.matrices.push_back(&matrices.back());
        models::MoeFfn& ffn = experts.emplace_back();
        ffn.gate.type = ffn.up.type = ffn.down.type = type.type;
        ffn.routing = {cpu::Gating::Softmax, 128, 8, 1, 1, true, 1.0f};
        list.experts.push_back(&ffn);
        list.experts.push_back(nullptr);  // a dense layer
    }
    ASSERT_GT(experts.size(), 20u);
    experts[0].routing = {cpu::Gating::Sigmoid, 64, 6, 8, 3, true, 2.5f};
    experts[1].routing = {cpu::Gating::SoftmaxOfSelected, 32, 4, 1, 1, false, 1.0f};
    EXPECT_NO_THROW(check_gpu_kernels(*device_, *stream_, list));
}

TEST_F(GpuSelfTest, OddHeadsAreTestedWithUsualOnes) {
    WeightList list;
    for (const std::int64_t width : {64, 80, 256, 0}) {
        list.widest_value = width;
        EXPECT_NO_THROW(check_gpu_kernels(*device_, *stream_, list)) << width;
    }
}

TEST_F(GpuSelfTest, ADifferenceIsRefusedWithItsKernelAndGpu) {
    GpuCheck check(*device_, *stream_);
    const std::vector<float> law{1.0f, -0.0f, 3.0f};
    const std::vector<float> other{1.0f, 0.0f, 3.0f};
    const float* on_device = check.put(other);
    EXPECT_NO_THROW(check.expect("sum", on_device, other));
    try {
        check.expect("sum", on_device, law);
        FAIL() << "minus nought passed for nought";
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), AllOf(HasSubstr("'sum'"), HasSubstr(device_->info().name)));
    }
    EXPECT_THROW(check.expect("nothing", check.take<float>(3), law), Error);
    const TestRows rows(check, 2, 96);
    const std::vector<float> second(rows.row(1).values, rows.row(1).values + 96);
    EXPECT_NO_THROW(check.expect_quantised("rows", rows.on_device().quantised, 1, second));
    EXPECT_THROW(check.expect_quantised("rows", rows.on_device().quantised, 0, second), Error);
}

}  // namespace
}  // namespace coterie::engine
