#!/usr/bin/env bash
# Measures a GPU in one call: products of every type, links and hand-offs, and a synthetic Qwen3-30B-A3B with all
# experts resident and with less memory allowed, on one GPU and, where there are more, on all with the same memory together.
# scripts/gpu_bench.sh [BUILD-FOLDER] [FOLDER-FOR-MODELS] [GIB...]
# COTERIE_SKEWS: exponents of the experts' popularity to generate with besides, each with a model of its own that goes again.
# With 12 GiB, 0.25, 1.3 and 2.1 give hit rates of about 75, 95 and 99 % beside the 90 % of the exponent 1 that is always measured.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build="${1:-build/gpu}"
models="${2:-bench-models}"
shift $(($# < 2 ? $# : 2))
budgets=("${@:-12}")
cmake -G Ninja -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DCOTERIE_CUDA=ON -DCOTERIE_BUILD_BENCH=ON >/dev/null
cmake --build "$build" --target coterie cuda_matmul_bench expert_bench

mkdir -p "$models"
file="$models/qwen3-30b-a3b-q4_k_m.gguf"
make_model() { [[ -e "$file" ]] || "$build/coterie" synth qwen3-30b-a3b --quant q4_k_m --skew "$1" -o "$file"; }
make_model 1

"$build/cuda_matmul_bench"
"$build/expert_bench" # what a missing expert costs the CPU
"$build/coterie" probe -m "$file" --refresh
gpus="$("$build/coterie" run --list-devices | grep -c MiB)"
measure() { "$build/coterie" bench -m "$file" "$@"; }
measure -sm none -p 512,2048,12288 -n 256 -r 3
[[ $gpus -lt 2 ]] || measure -p 2048,12288 -n 256 -r 3
for gib in "${budgets[@]}"; do
  echo "with $gib GiB:"
  measure -sm none -p 0 -n 256 -r 5 --vram "${gib}G" --load-mode pin # before prompts, whose ring the cache lends
  measure -sm none -p 2048,12288 -n 0 -r 3 --vram "${gib}G" --load-mode pin
  [[ $gpus -lt 2 ]] || measure -p 12288 -n 256 -r 3 --vram "$((gib * 1024 / gpus))M" --load-mode pin
done

for skew in ${COTERIE_SKEWS:-}; do
  file="$models/qwen3-30b-a3b-q4_k_m-skew-$skew.gguf"
  make_model "$skew"
  for gib in "${budgets[@]}"; do
    echo "exponent $skew, with $gib GiB:"
    measure -sm none -p 0 -n 256 -r 5 --vram "${gib}G" --load-mode pin
  done
  rm "$file"
done
