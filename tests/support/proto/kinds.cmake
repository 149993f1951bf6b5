# SPDX-License-Identifier: Apache-2.0
# kinds.proto has every kind of field; the schema itself does not use them all.
if(TARGET voxeld_test_kinds)
  return()
endif()
set(kinds_dir ${CMAKE_CURRENT_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${kinds_dir})
add_custom_command(
  OUTPUT ${kinds_dir}/kinds.pb-c.c ${kinds_dir}/kinds.pb-c.h
  COMMAND ${VOXELD_PROTOC_C} -I ${CMAKE_CURRENT_LIST_DIR} --c_out=${kinds_dir}
          ${CMAKE_CURRENT_LIST_DIR}/kinds.proto
  DEPENDS ${CMAKE_CURRENT_LIST_DIR}/kinds.proto
  COMMENT "Generating the walker's test messages"
  VERBATIM)
add_library(voxeld_test_kinds STATIC ${kinds_dir}/kinds.pb-c.c)
target_link_libraries(voxeld_test_kinds PUBLIC PkgConfig::PROTOBUF_C)
target_include_directories(voxeld_test_kinds SYSTEM PUBLIC ${kinds_dir})
