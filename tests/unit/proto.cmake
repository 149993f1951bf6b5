# SPDX-License-Identifier: Apache-2.0
# kinds.proto has every kind of field; the schema itself does not use them all.
set(kinds_dir ${CMAKE_CURRENT_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${kinds_dir})
add_custom_command(
  OUTPUT ${kinds_dir}/kinds.pb-c.c ${kinds_dir}/kinds.pb-c.h
  COMMAND ${VOXELD_PROTOC_C} -I ${CMAKE_CURRENT_SOURCE_DIR}/unit --c_out=${kinds_dir}
          ${CMAKE_CURRENT_SOURCE_DIR}/unit/kinds.proto
  DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/unit/kinds.proto
  COMMENT "Generating the walker's test messages"
  VERBATIM)
add_library(voxeld_test_kinds STATIC ${kinds_dir}/kinds.pb-c.c)
target_link_libraries(voxeld_test_kinds PUBLIC PkgConfig::PROTOBUF_C)
target_include_directories(voxeld_test_kinds SYSTEM PUBLIC ${kinds_dir})

voxeld_add_test(NAME test_proto_schema SOURCES unit/test_proto_schema.c
                LIBRARIES voxeld_proto)
voxeld_add_test(NAME test_proto_decode SOURCES unit/test_proto_decode.c
                LIBRARIES voxeld_proto voxeld_test_kinds)
voxeld_add_test(NAME test_proto_envelope SOURCES unit/test_proto_envelope.c
                LIBRARIES voxeld_schema)
voxeld_add_test(NAME test_proto_golden SOURCES unit/test_proto_golden.c
                LIBRARIES voxeld_proto voxeld_test_kinds)
voxeld_add_test(NAME test_proto_json SOURCES unit/test_proto_json.c
                LIBRARIES voxeld_proto voxeld_test_kinds m)
voxeld_add_test(NAME test_proto_files SOURCES unit/test_proto_files.c
                LIBRARIES voxeld_proto)
