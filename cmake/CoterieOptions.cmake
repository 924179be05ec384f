option(COTERIE_BUILD_TESTS "Build the tests" ON)
option(COTERIE_BUILD_BENCH "Build the micro-benchmarks and lab studies" OFF)
option(COTERIE_BUILD_FUZZERS "Build the libFuzzer targets (needs clang)" OFF)
option(COTERIE_BATCHES "Compile several files of a module as one, which takes far less time than each alone" ON)
set(COTERIE_CUDA "AUTO" CACHE STRING "AUTO: on where nvcc and a GPU are found; ON; OFF")
set_property(CACHE COTERIE_CUDA PROPERTY STRINGS AUTO ON OFF)
set(COTERIE_SANITIZE "" CACHE STRING "Sanitizers, comma separated: address, undefined, thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # Without this ccache does not look at what is compiled against precompiled headers (cmake/CoterieTest.cmake).
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
endif()

# The canonical arithmetic (docs/canonical-arithmetic.md) names every fused multiply-add; the compiler may add none.
add_compile_options(
  "$<$<COMPILE_LANGUAGE:C,CXX,ASM>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wnon-virtual-dtor;-Wimplicit-fallthrough;-Werror>"
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off> $<$<COMPILE_LANGUAGE:CXX>:-fno-math-errno>)
# GCC's warnings about bounds follow what was inlined, so even the length of the folder's name decides whether a correct
# line gets one. They are shown, and never stop a build.
foreach(warning array-bounds stringop-overflow stringop-overread restrict)
  add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-error=${warning}>")
endforeach()
# The baseline of the portable code. Wider instruction sets are switched on per function, never per file.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-mtune=generic>)

if(COTERIE_SANITIZE)
  add_compile_options(-fsanitize=${COTERIE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${COTERIE_SANITIZE})
  # GCC takes values that only instrumented code reads for ones that are not set.
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()

# The CUDA backend. Its kernels follow the same law as the CPU's: no contraction, IEEE division and square root.
set(COTERIE_WITH_CUDA OFF)
if(NOT COTERIE_CUDA STREQUAL "OFF")
  find_program(COTERIE_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
  find_program(COTERIE_NVIDIA_SMI nvidia-smi)
  if(COTERIE_CUDA STREQUAL "ON" AND NOT COTERIE_NVCC)
    message(FATAL_ERROR "COTERIE_CUDA=ON: nvcc is not found; install CUDA 12.1 or later, or set CUDACXX to its nvcc")
  endif()
  if(COTERIE_NVCC AND (COTERIE_CUDA STREQUAL "ON" OR COTERIE_NVIDIA_SMI))
    set(COTERIE_WITH_CUDA ON)
    set(CMAKE_CUDA_COMPILER ${COTERIE_NVCC})
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      if(COTERIE_NVIDIA_SMI)
        set(CMAKE_CUDA_ARCHITECTURES native)
      else()
        set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 86-real 89-real 90)
      endif()
    endif()
    enable_language(CUDA)
    find_package(CUDAToolkit 12.1 REQUIRED)
    # Debian 12's CMake does not know yet that nvcc speaks C++20.
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} -fmad=false -prec-div=true -prec-sqrt=true -ftz=false")
  endif()
endif()
