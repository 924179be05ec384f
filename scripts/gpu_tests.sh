#!/usr/bin/env bash
# Everything that needs a GPU, in one call: builds, compares every kernel with the law and whole models with the CPU, and
# looks for memory errors and races. scripts/gpu_tests.sh [BUILD-FOLDER]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build="${1:-build/gpu}"
cmake -G Ninja -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DCOTERIE_CUDA=ON >/dev/null
cmake --build "$build" --target kernels_cuda_test engine_cuda_test cuda_determinism_test

"$build/kernels_cuda_test" --gtest_brief=1
"$build/engine_cuda_test" --gtest_brief=1
"$build/cuda_determinism_test" --gtest_brief=1
if command -v compute-sanitizer >/dev/null; then
  compute-sanitizer --tool memcheck --error-exitcode 1 "$build/kernels_cuda_test" --gtest_brief=1
  # Races within blocks: one type's products stand for all, whose kernels differ in how they decode.
  compute-sanitizer --tool racecheck --error-exitcode 1 "$build/kernels_cuda_test" --gtest_brief=1 \
    --gtest_filter='*/Q4_K:*/Q6_K:*Attention*:*Combine*:*Route*:*Norm*:*Sort*-*WithHost*'
fi
