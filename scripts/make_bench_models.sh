#!/usr/bin/env bash
# Writes the synthetic models that docs/benchmarks.md measures: Qwen3-30B-A3B's shapes with four layers, as the mix
# Q4_K_M and with one type in every matrix.
#
#   scripts/make_bench_models.sh [FOLDER] [TYPE...]
#
# FOLDER: where to (default: bench-models). TYPE: quantisations (default: all of the list below). Files that are there
# already are kept. COTERIE: the program (default: build/release/coterie).
set -euo pipefail
cd "$(dirname "$0")/.."

coterie=${COTERIE:-build/release/coterie}
folder=${1:-bench-models}
shift || true
types=("$@")
if [ ${#types[@]} -eq 0 ]; then
    types=(q4_k_m
        pure-f16 pure-bf16 pure-q8_0 pure-q6_k pure-q5_k pure-q5_1 pure-q5_0 pure-q4_k pure-q4_1 pure-q4_0
        pure-iq4_nl pure-iq4_xs pure-mxfp4 pure-nvfp4 pure-q3_k pure-iq3_s pure-iq3_xxs
        pure-q2_k pure-iq2_s pure-iq2_xs pure-iq2_xxs pure-tq2_0 pure-tq1_0 pure-iq1_m pure-iq1_s)
fi

mkdir -p "$folder"
for type in "${types[@]}"; do
    file="$folder/qwen3-30b-a3b-4l-$type.gguf"
    if [ -e "$file" ]; then
        echo "$file is there already"
        continue
    fi
    "$coterie" synth qwen3-30b-a3b --layers 4 --skew 1 --quant "$type" -o "$file"
done
