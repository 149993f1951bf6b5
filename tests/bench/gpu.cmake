# SPDX-License-Identifier: Apache-2.0
# bench_voxelize times voxelization on either backend; see RESULTS.md. The ctest run only
# proves that it works: times are read by people, not asserted.
add_executable(bench_voxelize ${CMAKE_CURRENT_LIST_DIR}/bench_voxelize.c
  ${CMAKE_CURRENT_LIST_DIR}/bench_cloud.c
  ${CMAKE_CURRENT_LIST_DIR}/bench_device.c)
target_link_libraries(bench_voxelize PRIVATE voxeld_build voxeld_engine)
if(VOXELD_WITH_CUDA)
  target_sources(bench_voxelize PRIVATE ${CMAKE_CURRENT_LIST_DIR}/floors.cu)
  target_compile_definitions(bench_voxelize PRIVATE VXD_WITH_CUDA)
endif()
add_test(NAME bench_voxelize_smoke COMMAND bench_voxelize --backend cpu --points 1,20000
  --sizes 0.1 --repeat 2)
