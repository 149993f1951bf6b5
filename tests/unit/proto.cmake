# SPDX-License-Identifier: Apache-2.0
include(support/proto/kinds.cmake)

voxeld_add_tests(unit/proto LIBRARIES voxeld_base TESTS
  proto_closest closest)
voxeld_add_tests(unit/proto LIBRARIES voxeld_proto TESTS
  proto_files   file_formats
  proto_schema  schema
  proto_shapes  shapes)
voxeld_add_tests(unit/proto LIBRARIES voxeld_proto voxeld_test_kinds TESTS
  proto_alloc   proto_alloc
  proto_decode  decode
  proto_golden  golden)
voxeld_add_tests(unit/proto LIBRARIES voxeld_proto voxeld_test_kinds m TESTS
  proto_json    json_mapping)
voxeld_add_tests(unit/proto LIBRARIES voxeld_schema TESTS
  proto_envelope envelope)
voxeld_add_tests(unit/proto LIBRARIES voxeld_schema voxeld_test_kinds TESTS
  proto_borrow  borrow)
target_link_options(test_proto_alloc PRIVATE -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc)
