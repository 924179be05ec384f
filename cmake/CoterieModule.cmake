# coterie_module(NAME [DEPENDS module...] [LIBRARIES target...] [LONE_FUZZERS fuzzer...] [BATCH number] [TEST_BATCH number])
#
# Makes the library coterie_NAME of all .cpp files below the calling folder, and the test program NAME_test of its
# *_test.cpp files. Tests stand beside what they test; *_fuzz.cpp files become one libFuzzer program each.
#
# What stands in a folder `cuda` (.cpp and .cu) is part of builds with CUDA only, *_stub.cpp and *_stub_test.cpp only of those without; tests
# in such a folder become NAME_cuda_test, which needs a GPU and so is no part of `ctest`'s default run.
#
# A fuzzer stands on its whole module, which takes long to build with sanitizers where the module is high up. One that is named in
# LONE_FUZZERS is made by the caller, of the few files that it needs (coterie_fuzzer).
#
# BATCH, TEST_BATCH: so many files of the library, of its tests, are compiled as one (COTERIE_BATCHES). The headers of other libraries, and
# what is made of them, take most of the time of most files; a batch pays them once. What anonymous namespaces name must differ.
function(coterie_module name)
  cmake_parse_arguments(ARG "" "BATCH;TEST_BATCH" "DEPENDS;LIBRARIES;LONE_FUZZERS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cpp)
  if(COTERIE_WITH_CUDA)
    file(GLOB_RECURSE kernels CONFIGURE_DEPENDS *.cu)
    list(APPEND sources ${kernels})
    list(FILTER sources EXCLUDE REGEX "_stub(_test)?\\.cpp$")
    set(cuda_tests ${sources})
    list(FILTER cuda_tests INCLUDE REGEX "/cuda/.*_test\\.cpp$")
  else()
    list(FILTER sources EXCLUDE REGEX "/cuda/")
  endif()
  set(tests ${sources})
  list(FILTER tests EXCLUDE REGEX "/cuda/")
  set(fuzzers ${sources})
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz|bench)\\.cpp$|/main\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cpp$")

  list(TRANSFORM ARG_DEPENDS PREPEND coterie_)
  add_library(coterie_${name} STATIC ${sources})
  target_include_directories(coterie_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(coterie_${name} PUBLIC ${ARG_DEPENDS} ${ARG_LIBRARIES})
  coterie_batches(coterie_${name} ${ARG_BATCH})
  if(kernels OR sources MATCHES "/cuda/")
    target_link_libraries(coterie_${name} PUBLIC CUDA::cudart_static)
  endif()

  if(COTERIE_BUILD_TESTS AND tests)
    coterie_test_program(${name}_test SOURCES ${tests} LIBRARIES coterie_${name})
    coterie_batches(${name}_test ${ARG_TEST_BATCH})
    gtest_discover_tests(${name}_test DISCOVERY_TIMEOUT 60 PROPERTIES LABELS ${name})
  endif()
  if(COTERIE_BUILD_TESTS AND cuda_tests)
    coterie_test_program(${name}_cuda_test SOURCES ${cuda_tests} LIBRARIES coterie_${name})
  endif()
  foreach(source ${fuzzers})
    get_filename_component(fuzzer ${source} NAME_WE)
    if(NOT fuzzer IN_LIST ARG_LONE_FUZZERS)
      coterie_fuzzer(${fuzzer} SOURCES ${source} LIBRARIES coterie_${name})
    endif()
  endforeach()
endfunction()

# Compiles so many files of a target as one, where a number is given. Optimisation stays what it is.
function(coterie_batches target)
  if(COTERIE_BATCHES AND ARGN)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${ARGN})
  endif()
endfunction()

# A libFuzzer program; nothing in builds without them.
function(coterie_fuzzer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT COTERIE_BUILD_FUZZERS)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES})
endfunction()
