# coterie_test_program(NAME SOURCES file... LIBRARIES target...)
#
# Makes a GoogleTest program; whoever calls says how it is run. Half of a build's time went into tests, most of that into
# reading GoogleTest's headers: they are compiled once for all programs, and what stands in test files is optimised
# little. The code under test keeps its own options.
function(coterie_test_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  coterie_make_test_headers()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} GTest::gtest_main GTest::gmock)
  target_compile_definitions(${name} PRIVATE COTERIE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_compile_options(${name} PRIVATE ${COTERIE_TEST_OPTIONS})
  target_precompile_headers(${name} REUSE_FROM coterie_test_headers)
endfunction()

# Lets ccache see into precompiled headers.
set(COTERIE_PRECOMPILED_OPTIONS $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-fpch-preprocess>)
set(COTERIE_TEST_OPTIONS $<$<COMPILE_LANGUAGE:CXX>:-O1> ${COTERIE_PRECOMPILED_OPTIONS})

function(coterie_make_test_headers)
  if(TARGET coterie_test_headers)
    return()
  endif()
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/test_headers.cpp" CONTENT "// Carries the precompiled headers.\n")
  add_library(coterie_test_headers OBJECT "${CMAKE_BINARY_DIR}/test_headers.cpp")
  target_link_libraries(coterie_test_headers PRIVATE GTest::gtest_main GTest::gmock)
  target_compile_options(coterie_test_headers PRIVATE ${COTERIE_TEST_OPTIONS})
  target_precompile_headers(coterie_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
endfunction()
