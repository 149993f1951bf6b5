# SPDX-License-Identifier: Apache-2.0
include(unit/kinds.cmake)

voxeld_add_test(NAME test_proto_schema SOURCES unit/test_proto_schema.c
                LIBRARIES voxeld_proto)
voxeld_add_test(NAME test_proto_decode SOURCES unit/test_proto_decode.c
                LIBRARIES voxeld_proto voxeld_test_kinds)
voxeld_add_test(NAME test_proto_borrow SOURCES unit/test_proto_borrow.c
                LIBRARIES voxeld_schema voxeld_test_kinds)
voxeld_add_test(NAME test_proto_envelope SOURCES unit/test_proto_envelope.c
                LIBRARIES voxeld_schema)
voxeld_add_test(NAME test_proto_golden SOURCES unit/test_proto_golden.c
                LIBRARIES voxeld_proto voxeld_test_kinds)
voxeld_add_test(NAME test_proto_json SOURCES unit/test_proto_json.c
                LIBRARIES voxeld_proto voxeld_test_kinds m)
voxeld_add_test(NAME test_proto_files SOURCES unit/test_proto_files.c
                LIBRARIES voxeld_proto)
voxeld_add_test(NAME test_proto_alloc SOURCES unit/test_proto_alloc.c
                LIBRARIES voxeld_proto voxeld_test_kinds)
target_link_options(test_proto_alloc PRIVATE -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc)
