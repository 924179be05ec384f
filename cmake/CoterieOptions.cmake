option(COTERIE_BUILD_TESTS "Build the tests" ON)
option(COTERIE_BUILD_BENCH "Build the micro-benchmarks and lab studies" OFF)
option(COTERIE_BUILD_FUZZERS "Build the libFuzzer targets (needs clang)" OFF)
set(COTERIE_CUDA "AUTO" CACHE STRING "AUTO: on where nvcc is found; ON; OFF")
set_property(CACHE COTERIE_CUDA PROPERTY STRINGS AUTO ON OFF)
set(COTERIE_SANITIZE "" CACHE STRING "Sanitizers, comma separated: address, undefined, thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# The canonical arithmetic (docs/canonical-arithmetic.md) names every fused multiply-add; the compiler may add none.
add_compile_options(
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wimplicit-fallthrough -Werror
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off> $<$<COMPILE_LANGUAGE:CXX>:-fno-math-errno>)
# The baseline of the portable code. Wider instruction sets are switched on per function, never per file.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-mtune=generic>)

if(COTERIE_SANITIZE)
  add_compile_options(-fsanitize=${COTERIE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${COTERIE_SANITIZE})
endif()
