# SPDX-License-Identifier: Apache-2.0
# bench_daemon asks a running daemon; see RESULTS.md.
if(TARGET voxeld_client)
  add_executable(bench_daemon ${CMAKE_CURRENT_LIST_DIR}/bench_daemon.c)
  target_link_libraries(bench_daemon PRIVATE voxeld_build voxeld_client)
endif()
