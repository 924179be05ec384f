#!/usr/bin/env bash
# Measures a GPU in one call: products of every type, links and hand-offs, and a synthetic Qwen3-30B-A3B with all
# experts resident and with less memory allowed. scripts/gpu_bench.sh [BUILD-FOLDER] [FOLDER-FOR-MODELS] [VRAM...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build="${1:-build/gpu}"
models="${2:-bench-models}"
shift $(($# < 2 ? $# : 2))
budgets=("${@:-12G}")
cmake -G Ninja -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DCOTERIE_CUDA=ON -DCOTERIE_BUILD_BENCH=ON >/dev/null
cmake --build "$build" --target coterie cuda_matmul_bench expert_bench

mkdir -p "$models"
file="$models/qwen3-30b-a3b-q4_k_m.gguf"
[[ -e "$file" ]] || "$build/coterie" synth qwen3-30b-a3b --quant q4_k_m --skew 1 -o "$file"

"$build/cuda_matmul_bench"
"$build/expert_bench" # what a missing expert costs the CPU
"$build/coterie" probe -m "$file" --refresh
"$build/coterie" bench -m "$file" -p 512,2048,12288 -n 256 -r 3 --window 4096
for vram in "${budgets[@]}"; do
  echo "with --vram $vram:"
  "$build/coterie" bench -m "$file" -p 2048 -n 256 -r 5 --window 2048 --vram "$vram"
done
