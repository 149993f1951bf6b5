# SPDX-License-Identifier: Apache-2.0
# bench_load loads a running daemon; bench_load --help, plot_load.py. An operator's tool, so
# it is built and installed with the client, tests or not.
# The archive: the request's builder, the number reader and voxelctl's JSON are not exported.
add_executable(bench_load
  ${CMAKE_CURRENT_LIST_DIR}/bench_load.c
  ${CMAKE_CURRENT_LIST_DIR}/bench_load_histogram.c
  ${CMAKE_CURRENT_LIST_DIR}/bench_load_http.c
  ${CMAKE_CURRENT_LIST_DIR}/bench_load_options.c
  ${CMAKE_CURRENT_LIST_DIR}/bench_load_report.c
  ${CMAKE_CURRENT_LIST_DIR}/bench_load_run.c
  ${CMAKE_CURRENT_LIST_DIR}/bench_load_target.c
  ${PROJECT_SOURCE_DIR}/client/voxelctl/cli/json.c
  ${PROJECT_SOURCE_DIR}/client/voxelctl/cli/report.c
  ${PROJECT_SOURCE_DIR}/client/voxelctl/cli/style.c)
target_link_libraries(bench_load PRIVATE voxeld_build voxeld_client_static voxeld_json m)
