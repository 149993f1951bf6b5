# SPDX-License-Identifier: Apache-2.0
if(NOT TARGET voxeld_server)
  return()
endif()
voxeld_add_fuzz(NAME fuzz_config SOURCES fuzz/server/fuzz_config.c
                LIBRARIES voxeld_server CORPUS fuzz/corpus/config)
voxeld_add_fuzz(NAME fuzz_trace SOURCES fuzz/server/fuzz_trace.c
                LIBRARIES voxeld_server CORPUS fuzz/corpus/trace MAX_LEN 128)
voxeld_add_fuzz(NAME fuzz_tokens SOURCES fuzz/server/fuzz_tokens.c
                LIBRARIES voxeld_server CORPUS fuzz/corpus/tokens)
voxeld_add_fuzz(NAME fuzz_map_file SOURCES fuzz/server/fuzz_map_file.c
                LIBRARIES voxeld_server CORPUS fuzz/corpus/map_file)
voxeld_add_fuzz(NAME fuzz_multipart SOURCES fuzz/server/fuzz_multipart.c
                LIBRARIES voxeld_server CORPUS fuzz/corpus/multipart)
voxeld_add_fuzz(NAME fuzz_net_config SOURCES fuzz/server/fuzz_net_config.c
                LIBRARIES voxeld_server CORPUS fuzz/corpus/net_config MAX_LEN 16384)
voxeld_add_fuzz(NAME fuzz_safetensors SOURCES fuzz/server/fuzz_safetensors.c
                LIBRARIES voxeld_server CORPUS fuzz/corpus/safetensors)
voxeld_add_fuzz(NAME fuzz_websocket SOURCES fuzz/server/fuzz_websocket.c
                LIBRARIES voxeld_server CORPUS fuzz/corpus/websocket)
voxeld_add_fuzz(NAME fuzz_record SOURCES fuzz/server/fuzz_record.c
                LIBRARIES voxeld_durable CORPUS fuzz/corpus/record)
voxeld_add_fuzz(NAME fuzz_map_record SOURCES fuzz/server/fuzz_map_record.c
                LIBRARIES voxeld_durable CORPUS fuzz/corpus/map_record)
voxeld_add_fuzz(NAME fuzz_posegraph_record SOURCES fuzz/server/fuzz_posegraph_record.c
                LIBRARIES voxeld_durable CORPUS fuzz/corpus/posegraph_record)
voxeld_add_fuzz(NAME fuzz_volume_record SOURCES fuzz/server/fuzz_volume_record.c
                LIBRARIES voxeld_durable CORPUS fuzz/corpus/volume_record)

# What goes into a running server: messages of fuzz.proto, whose seeds are written as text.
find_program(VOXELD_PROTOC protoc REQUIRED)
set(fuzz_generated ${CMAKE_CURRENT_BINARY_DIR}/fuzz-generated)
set(fuzz_proto ${CMAKE_CURRENT_LIST_DIR}/fuzz.proto)
file(MAKE_DIRECTORY ${fuzz_generated})
add_custom_command(
  OUTPUT ${fuzz_generated}/fuzz.pb-c.c ${fuzz_generated}/fuzz.pb-c.h
  COMMAND ${VOXELD_PROTOC_C} -I ${CMAKE_CURRENT_LIST_DIR} -I ${PROJECT_SOURCE_DIR}/proto
          --c_out=${fuzz_generated} ${fuzz_proto}
  DEPENDS ${fuzz_proto}
  COMMENT "Generating the fuzz targets' messages"
  VERBATIM)
add_library(voxeld_fuzz_messages STATIC ${fuzz_generated}/fuzz.pb-c.c)
target_compile_options(voxeld_fuzz_messages PRIVATE -w)
target_link_libraries(voxeld_fuzz_messages PUBLIC voxeld_schema)
target_include_directories(voxeld_fuzz_messages SYSTEM PUBLIC ${fuzz_generated})

add_library(voxeld_fuzz_daemon STATIC
  fuzz/server/daemon.c
  fuzz/server/http_peer.c
  fuzz/server/mutate.c
  fuzz/server/mutate_value.c)
target_link_libraries(voxeld_fuzz_daemon PRIVATE voxeld_build
                      PUBLIC voxeld_fuzz_messages voxeld_server)

# voxeld_add_server_fuzz(NAME MESSAGE LIBRARIES...): tests/fuzz/server/fuzz_NAME.c, with seeds
# tests/fuzz/seeds/NAME/*.txtpb of vxdfuzz.MESSAGE.
function(voxeld_add_server_fuzz name message)
  set(seeds ${CMAKE_CURRENT_BINARY_DIR}/fuzz-seeds/${name})
  file(MAKE_DIRECTORY ${seeds})
  file(GLOB texts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/seeds/${name}/*.txtpb)
  set(encoded "")
  foreach(text ${texts})
    get_filename_component(stem ${text} NAME_WE)
    add_custom_command(
      OUTPUT ${seeds}/${stem}
      COMMAND ${VOXELD_PROTOC} -I ${PROJECT_SOURCE_DIR}/tests/fuzz/server
              -I ${PROJECT_SOURCE_DIR}/proto --encode=vxdfuzz.${message}
              ${PROJECT_SOURCE_DIR}/tests/fuzz/server/fuzz.proto < ${text} > ${seeds}/${stem}
      DEPENDS ${text} ${PROJECT_SOURCE_DIR}/tests/fuzz/server/fuzz.proto
      COMMENT "Encoding the seed ${name}/${stem}")
    list(APPEND encoded ${seeds}/${stem})
  endforeach()
  add_custom_target(fuzz_seeds_${name} ALL DEPENDS ${encoded})
  voxeld_add_fuzz(NAME fuzz_${name} SOURCES fuzz/server/fuzz_${name}.c
                  LIBRARIES voxeld_fuzz_daemon ${ARGN} CORPUS fuzz/corpus/${name}
                  SEEDS ${seeds} MAX_LEN 16384)
  add_dependencies(fuzz_${name} fuzz_seeds_${name})
  # The log's lines are looked at instead of printed.
  target_link_options(fuzz_${name} PRIVATE -Wl,--wrap=write)
endfunction()

voxeld_add_server_fuzz(requests Sequence nng::nng)
voxeld_add_server_fuzz(http HttpSequence)

# The bytes of a connection are no message: its inputs are what a peer sends.
voxeld_add_fuzz(NAME fuzz_connection SOURCES fuzz/server/fuzz_connection.c
                LIBRARIES voxeld_fuzz_daemon CORPUS fuzz/corpus/connection MAX_LEN 65536)
target_link_options(fuzz_connection PRIVATE -Wl,--wrap=write)
