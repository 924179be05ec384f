#!/bin/sh
# Builds and runs the studies of the reduction order and writes results/reduction_order_<machine>.csv (and .gpu.csv).
# Needs g++ with C++20; the GPU study is left out where there is no nvcc. Usage: run_reduction_order.sh MACHINE [OUTPUT_DIR]
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
machine=$1
output=${2:-$folder/results}
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
mkdir -p "$output"

flags="-std=c++20 -O3 -ffp-contract=off -fno-math-errno -mtune=generic"
for part in cpu avx2 avx512; do
    g++ $flags -c "$folder/reduction_order_$part.cpp" -o "$build/$part.o" &
done
if command -v nvcc >/dev/null; then
    nvcc -std=c++20 -O3 -arch="${CUDA_ARCH:-native}" --expt-relaxed-constexpr -fmad=false \
        "$folder/reduction_order_gpu.cu" -o "$build/gpu" &
fi
wait
g++ "$build/cpu.o" "$build/avx2.o" "$build/avx512.o" -o "$build/study" -pthread
g++ $flags -DCOTERIE_LAB_NO_PREFETCH "$folder"/reduction_order_cpu.cpp "$folder"/reduction_order_avx*.cpp \
    -o "$build/no_prefetch" -pthread

# A study that finds a kernel off its law says so on standard error and still gives its figures; the others run on.
status=0
"$build/study" >"$output/reduction_order_$machine.cpu.csv" || status=1
"$build/no_prefetch" "$(nproc)" 2048 >"$output/reduction_order_$machine.no_prefetch.csv" || status=1
if [ -x "$build/gpu" ]; then
    "$build/gpu" >"$output/reduction_order_$machine.gpu.csv" || status=1
fi
exit $status
