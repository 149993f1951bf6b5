# SPDX-License-Identifier: Apache-2.0
# The engine with CUDA kernels compiled for the host (emulator.h). Included by gpu/, whose
# cuda_sources these are. Code that multiplies matrices on tensor cores is left out.
if(NOT CMAKE_C_COMPILER_ID STREQUAL "GNU" OR NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  message(FATAL_ERROR "VOXELD_CUDA=EMULATED needs GCC on x86-64")
endif()
enable_language(CXX)
find_package(Python3 REQUIRED COMPONENTS Interpreter)

set(emulated_sources ${cuda_sources})
list(FILTER emulated_sources EXCLUDE REGEX
  "^sparse/(conv/|layers/|executor/network_graph)")
set(emulated_c ${emulated_sources})
list(FILTER emulated_c INCLUDE REGEX "\\.c$")
list(FILTER emulated_sources INCLUDE REGEX "\\.cu$")
file(GLOB_RECURSE emulated_headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
  ${PROJECT_SOURCE_DIR}/gpu/*.h)

set(emulated_dir ${CMAKE_CURRENT_BINARY_DIR}/emulated)
set(emulated_names ${emulated_headers})
set(emulated_cpp "")
foreach(name ${emulated_sources})
  list(APPEND emulated_names gpu/${name})
  list(APPEND emulated_cpp ${emulated_dir}/gpu/${name}.cpp)
endforeach()
set(emulated_test ${emulated_dir}/tests/emulator/test_emulator.cu.cpp)
list(APPEND emulated_names tests/emulator/test_emulator.cu)
list(TRANSFORM emulated_names PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE emulated_inputs)
list(TRANSFORM emulated_names PREPEND ${emulated_dir}/ OUTPUT_VARIABLE emulated_outputs)
list(JOIN emulated_names "\n" emulated_lines)
file(GENERATE OUTPUT ${emulated_dir}/names CONTENT "${emulated_lines}\n")
add_custom_command(OUTPUT ${emulated_dir}/stamp
  COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/emulator/translate.py
    ${PROJECT_SOURCE_DIR} ${emulated_dir} @${emulated_dir}/names
  COMMAND ${CMAKE_COMMAND} -E touch ${emulated_dir}/stamp
  BYPRODUCTS ${emulated_cpp} ${emulated_test} ${emulated_outputs}
  DEPENDS ${PROJECT_SOURCE_DIR}/tests/emulator/translate.py ${emulated_dir}/names
    ${emulated_inputs}
  COMMENT "Translating CUDA sources for the emulator")
add_custom_target(voxeld_emulated_sources DEPENDS ${emulated_dir}/stamp)

# The hooks of -fsanitize=thread are hooks.cpp's, so nothing is linked of the sanitizer.
function(voxeld_emulate target)
  set_source_files_properties(${ARGN} PROPERTIES GENERATED ON)
  add_dependencies(${target} voxeld_emulated_sources)
  target_include_directories(${target} BEFORE PRIVATE ${emulated_dir}
    ${PROJECT_SOURCE_DIR}/tests/emulator/include ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${target} PRIVATE VXD_WITH_CUDA _POSIX_C_SOURCE=200809L)
  target_compile_options(${target} PRIVATE -std=gnu++17 -ffp-contract=off -w -g1
    -include tests/emulator/emulator.h -fno-sanitize=all -fsanitize=thread
    --param=tsan-distinguish-volatile=1 --param=tsan-instrument-func-entry-exit=0)
endfunction()
add_library(voxeld_emulated OBJECT ${emulated_cpp})
voxeld_emulate(voxeld_emulated ${emulated_cpp})

add_library(voxeld_emulator OBJECT
  ${PROJECT_SOURCE_DIR}/tests/emulator/collectives.cpp
  ${PROJECT_SOURCE_DIR}/tests/emulator/faults.cpp
  ${PROJECT_SOURCE_DIR}/tests/emulator/fibers.cpp
  ${PROJECT_SOURCE_DIR}/tests/emulator/grids.cpp
  ${PROJECT_SOURCE_DIR}/tests/emulator/hooks.cpp
  ${PROJECT_SOURCE_DIR}/tests/emulator/races.cpp
  ${PROJECT_SOURCE_DIR}/tests/emulator/runtime.cpp)
target_include_directories(voxeld_emulator PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_options(voxeld_emulator PRIVATE -std=gnu++17 -O2 -Wall -Wextra -Wshadow
  -fno-sanitize=all)
if(VOXELD_SANITIZE STREQUAL "address")
  add_compile_definitions(EMU_WITH_ADDRESS_SANITIZER)
endif()

target_sources(voxeld_engine PRIVATE ${emulated_c} $<TARGET_OBJECTS:voxeld_emulated>
  $<TARGET_OBJECTS:voxeld_emulator>)
target_compile_definitions(voxeld_engine PRIVATE VXD_WITH_CUDA)
target_link_libraries(voxeld_engine PUBLIC stdc++)

if(VOXELD_TESTS)
  add_executable(test_emulator ${emulated_test})
  voxeld_emulate(test_emulator ${emulated_test})
  target_link_libraries(test_emulator PRIVATE voxeld_engine)
  add_test(NAME test_emulator COMMAND test_emulator)
  set_tests_properties(test_emulator PROPERTIES ENVIRONMENT "VOXELD_EMULATOR_RACES=")
  foreach(kernel block warp)
    add_test(NAME test_emulator_race_of_a_${kernel}
      COMMAND test_emulator test_missing_barrier_of_a_${kernel}_shows)
    set_tests_properties(test_emulator_race_of_a_${kernel} PROPERTIES
      ENVIRONMENT "VOXELD_EMULATOR_RACES=1"
      PASS_REGULAR_EXPRESSION "shared memory: thread [0-9]+ of block [0-9]+ reads at")
  endforeach()
  add_test(NAME test_emulator_without_races
    COMMAND test_emulator test_barrier_of_a_grid_holds_all_blocks)
  set_tests_properties(test_emulator_without_races PROPERTIES
    ENVIRONMENT "VOXELD_EMULATOR_RACES=1")
endif()
