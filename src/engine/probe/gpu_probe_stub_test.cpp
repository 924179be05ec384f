#include <gtest/gtest.h>

#include "base/error.h"
#include "engine/probe/gpu_probe.h"

namespace coterie::engine {
namespace {

TEST(GpuProbe, WithoutCudaIsRefusedWithTheReason) {
    ThreadPool pool(1);
    try {
        measure_gpu({.name = "a card", .index = 2}, pool);
        FAIL() << "not refused";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::Unsupported);
        EXPECT_NE(std::string(error.what()).find("GPU 2: this program was built without CUDA"),
                  std::string::npos);
    }
}

}  // namespace
}  // namespace coterie::engine
