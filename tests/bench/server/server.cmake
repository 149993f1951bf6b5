# SPDX-License-Identifier: Apache-2.0
# bench_daemon and bench_infer ask a running daemon; see ../results/.
if(TARGET voxeld_client)
  foreach(bench bench_daemon bench_infer)
    add_executable(${bench}
      ${CMAKE_CURRENT_LIST_DIR}/${bench}.c
      ${CMAKE_CURRENT_LIST_DIR}/bench_client.c
      ${CMAKE_CURRENT_LIST_DIR}/nng_floor.c)
    target_link_libraries(${bench} PRIVATE voxeld_build voxeld_client nng::nng)
  endforeach()
  # mkdtemp is POSIX 2008 with the XSI extensions; its macro adds nothing else here.
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/nng_floor.c PROPERTIES
    COMPILE_DEFINITIONS _XOPEN_SOURCE=700)
endif()

voxeld_add_test(NAME bench_load_histogram_test SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/../load/bench_load_histogram_test.c
  ${CMAKE_CURRENT_LIST_DIR}/../load/bench_load_histogram.c LIBRARIES m)

# bench_journal times commits against the fsync of the disk below it, and packs lidar scans.
add_executable(bench_journal ${CMAKE_CURRENT_LIST_DIR}/bench_journal.c
  ${CMAKE_CURRENT_LIST_DIR}/../support/bench_cloud.c
  ${CMAKE_CURRENT_LIST_DIR}/../support/bench_device.c)
target_link_libraries(bench_journal PRIVATE voxeld_build voxeld_durable)

# bench_recovery times starts from a snapshot file and from a journal.
if(TARGET voxeld_client)
  add_executable(bench_recovery ${CMAKE_CURRENT_LIST_DIR}/bench_recovery.c
    ${CMAKE_CURRENT_LIST_DIR}/bench_recovery_server.c
    ${CMAKE_CURRENT_LIST_DIR}/../support/bench_device.c)
  target_link_libraries(bench_recovery PRIVATE voxeld_build voxeld_server voxeld_client)
endif()
