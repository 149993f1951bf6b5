# SPDX-License-Identifier: Apache-2.0
# Fuzz targets. Each is a test too: it runs over its corpus, then on for a while.
set(VOXELD_FUZZ_SECONDS 12 CACHE STRING "Seconds that each fuzz test runs")
# One seed for all, so that a machine's finding is found again elsewhere; 0 draws another
# each time, which is for long runs.
set(VOXELD_FUZZ_SEED 1 CACHE STRING "Where each fuzz test begins its random numbers")

# voxeld_add_fuzz(NAME fuzz_x SOURCES ... LIBRARIES ... CORPUS DIR [SEEDS DIR] [MAX_LEN N]):
# CORPUS holds the inputs to begin with, below tests/, SEEDS more of them, made by the build;
# what is found is kept in the build tree (corpus/fuzz_x), inputs that fail beside it
# (crash-*, timeout-*, ...).
function(voxeld_add_fuzz)
  cmake_parse_arguments(ARG "" "NAME;CORPUS;SEEDS;MAX_LEN" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PRIVATE voxeld_build ${ARG_LIBRARIES})
  target_link_options(${ARG_NAME} PRIVATE -fsanitize=fuzzer)
  set(found ${CMAKE_BINARY_DIR}/corpus/${ARG_NAME})
  file(MAKE_DIRECTORY ${found})
  add_test(NAME ${ARG_NAME}
    COMMAND ${ARG_NAME} -max_total_time=${VOXELD_FUZZ_SECONDS}
            -seed=${VOXELD_FUZZ_SEED} -timeout=10
            -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix=${found}-
            $<$<BOOL:${ARG_MAX_LEN}>:-max_len=${ARG_MAX_LEN}>
            ${found} ${PROJECT_SOURCE_DIR}/tests/${ARG_CORPUS} ${ARG_SEEDS}
    COMMAND_EXPAND_LISTS)
  math(EXPR limit "${VOXELD_FUZZ_SECONDS} + 120")
  set_tests_properties(${ARG_NAME} PROPERTIES TIMEOUT ${limit} LABELS fuzz)
endfunction()

if(TARGET voxeld_proto)
  include(support/proto/kinds.cmake)
  voxeld_add_fuzz(NAME fuzz_envelope SOURCES fuzz/fuzz_envelope.c
                  LIBRARIES voxeld_proto CORPUS fuzz/corpus/envelope)
  voxeld_add_fuzz(NAME fuzz_json SOURCES fuzz/fuzz_json.c
                  LIBRARIES voxeld_proto voxeld_test_kinds CORPUS fuzz/corpus/json)
endif()
include(fuzz/server/server.cmake OPTIONAL)
include(fuzz/client/client.cmake OPTIONAL)
