# SPDX-License-Identifier: Apache-2.0
# bench_track tracks a camera through a file of frames and prints its errors.
add_executable(bench_track ${CMAKE_CURRENT_LIST_DIR}/volume/bench_track.c)
target_link_libraries(bench_track PRIVATE voxeld_build voxeld_engine)
# bench_refine refines a ball with a relief and compares it with what is known of it.
add_executable(bench_refine ${CMAKE_CURRENT_LIST_DIR}/volume/bench_refine.c
  ${PROJECT_SOURCE_DIR}/tests/support/refine/refine_scene.c)
target_link_libraries(bench_refine PRIVATE voxeld_build voxeld_engine)
# bench_posegraph times the optimization of generated pose graphs.
add_executable(bench_posegraph ${CMAKE_CURRENT_LIST_DIR}/poses/bench_posegraph.c
  ${PROJECT_SOURCE_DIR}/tests/support/posegraph/graphs.c)
target_link_libraries(bench_posegraph PRIVATE voxeld_build voxeld_engine)
# bench_odometry registers lidar scans and prints poses, errors and times.
add_executable(bench_odometry ${CMAKE_CURRENT_LIST_DIR}/poses/bench_odometry.c
  ${CMAKE_CURRENT_LIST_DIR}/../../support/odometry/street.c
  ${CMAKE_CURRENT_LIST_DIR}/../support/bench_device.c)
target_link_libraries(bench_odometry PRIVATE voxeld_build voxeld_engine)
add_test(NAME bench_odometry_smoke COMMAND bench_odometry --street 2)
# bench_slac aligns fragments that it renders, and prints how well.
add_executable(bench_slac ${CMAKE_CURRENT_LIST_DIR}/slac/bench_slac.c
  ${CMAKE_CURRENT_LIST_DIR}/slac/bench_slac_render.c)
target_link_libraries(bench_slac PRIVATE voxeld_build voxeld_gpu_test_support)
# bench_voxelize times voxelization on either backend; see ../results/. The ctest run only
# proves that it works: times are read by people, not asserted.
add_executable(bench_voxelize ${CMAKE_CURRENT_LIST_DIR}/bench_voxelize.c
  ${CMAKE_CURRENT_LIST_DIR}/../support/bench_cloud.c
  ${CMAKE_CURRENT_LIST_DIR}/../support/bench_device.c)
target_link_libraries(bench_voxelize PRIVATE voxeld_build voxeld_engine)
# bench_hashmap times hash maps likewise; plot_hashmap.py draws its sweeps.
add_executable(bench_hashmap ${CMAKE_CURRENT_LIST_DIR}/hash/bench_hashmap.c
  ${CMAKE_CURRENT_LIST_DIR}/hash/bench_hashmap_load.c
  ${CMAKE_CURRENT_LIST_DIR}/hash/bench_hashmap_sweep.c
  ${CMAKE_CURRENT_LIST_DIR}/hash/bench_hashmap_table.c
  ${CMAKE_CURRENT_LIST_DIR}/../support/bench_device.c)
target_link_libraries(bench_hashmap PRIVATE voxeld_build voxeld_engine)
# bench_sparse times sets, kernel maps and one layer.
add_executable(bench_sparse ${CMAKE_CURRENT_LIST_DIR}/sparse/bench_sparse.c)
target_link_libraries(bench_sparse PRIVATE voxeld_build voxeld_engine)
# bench_sparse_maps times all sets and kernel maps of a U-Net.
add_executable(bench_sparse_maps ${CMAKE_CURRENT_LIST_DIR}/sparse/bench_sparse_maps.c
  ${CMAKE_CURRENT_LIST_DIR}/../support/bench_cloud.c
  ${CMAKE_CURRENT_LIST_DIR}/../support/bench_device.c)
target_link_libraries(bench_sparse_maps PRIVATE voxeld_build voxeld_engine)
# bench_conv times a network's convolutions one by one, beside their floors.
add_executable(bench_conv ${CMAKE_CURRENT_LIST_DIR}/sparse/bench_conv.c
  ${CMAKE_CURRENT_LIST_DIR}/../support/bench_device.c)
target_link_libraries(bench_conv PRIVATE voxeld_build voxeld_engine)
target_compile_definitions(bench_conv PRIVATE VOXELD_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
# bench_network times whole networks with random weights.
add_executable(bench_network ${CMAKE_CURRENT_LIST_DIR}/sparse/bench_network.c
  ${CMAKE_CURRENT_LIST_DIR}/sparse/bench_nets.c
  ${CMAKE_CURRENT_LIST_DIR}/sparse/bench_soak.c
  ${CMAKE_CURRENT_LIST_DIR}/../support/bench_cloud.c
  ${CMAKE_CURRENT_LIST_DIR}/../support/bench_device.c)
target_link_libraries(bench_network PRIVATE voxeld_build voxeld_engine)
# bench_field times distance fields and what planners ask of them.
add_executable(bench_field ${CMAKE_CURRENT_LIST_DIR}/field/bench_field.c
  ${CMAKE_CURRENT_LIST_DIR}/../support/bench_cloud.c
  ${CMAKE_CURRENT_LIST_DIR}/../support/bench_device.c)
target_link_libraries(bench_field PRIVATE voxeld_build voxeld_engine)
# bench_gpu_svdag times edits of scenes.
add_executable(bench_gpu_svdag ${CMAKE_CURRENT_LIST_DIR}/svdag/bench_svdag.c
  ${CMAKE_CURRENT_LIST_DIR}/../support/bench_device.c)
target_link_libraries(bench_gpu_svdag PRIVATE voxeld_build voxeld_engine)
# bench_gpu_svdag_collect times transfers between stores and images.
add_executable(bench_gpu_svdag_collect ${CMAKE_CURRENT_LIST_DIR}/svdag/bench_svdag_collect.c
  ${CMAKE_CURRENT_LIST_DIR}/../support/bench_device.c)
target_link_libraries(bench_gpu_svdag_collect PRIVATE voxeld_build voxeld_engine)
# bench_gpu_svdag_tables compares the stores of scenes.
if(VOXELD_PAPER)
  add_executable(bench_gpu_svdag_tables ${CMAKE_CURRENT_LIST_DIR}/svdag/bench_svdag_tables.c
    ${CMAKE_CURRENT_LIST_DIR}/../support/bench_device.c)
  target_link_libraries(bench_gpu_svdag_tables PRIVATE voxeld_build voxeld_engine)
  set(bench_paper bench_gpu_svdag_tables)
  add_test(NAME bench_gpu_svdag_tables_smoke COMMAND bench_gpu_svdag_tables --backend cpu
    --items 20000 --repeat 1 --radius 40)
endif()
# bench_gpu_svdag_query times rays and other questions to a map of scans.
add_executable(bench_gpu_svdag_query ${CMAKE_CURRENT_LIST_DIR}/svdag/bench_svdag_query.c
  ${CMAKE_CURRENT_LIST_DIR}/../support/bench_cloud.c
  ${CMAKE_CURRENT_LIST_DIR}/../support/bench_device.c)
target_link_libraries(bench_gpu_svdag_query PRIVATE voxeld_build voxeld_engine)
# bench_grid times costmaps, heights and frontiers of a map of scans.
add_executable(bench_grid ${CMAKE_CURRENT_LIST_DIR}/field/bench_grid.c
  ${CMAKE_CURRENT_LIST_DIR}/../support/bench_cloud.c
  ${CMAKE_CURRENT_LIST_DIR}/../support/bench_device.c)
target_link_libraries(bench_grid PRIVATE voxeld_build voxeld_engine)
# bench_gpu_svdag_scan times scans integrated into a scene.
add_executable(bench_gpu_svdag_scan ${CMAKE_CURRENT_LIST_DIR}/svdag/bench_svdag_scan.c
  ${CMAKE_CURRENT_LIST_DIR}/../support/bench_cloud.c
  ${CMAKE_CURRENT_LIST_DIR}/../support/bench_device.c)
target_link_libraries(bench_gpu_svdag_scan PRIVATE voxeld_build voxeld_engine)
# bench_gpu_svdag_versions times undos and diffs.
add_executable(bench_gpu_svdag_versions ${CMAKE_CURRENT_LIST_DIR}/svdag/bench_svdag_versions.c
  ${CMAKE_CURRENT_LIST_DIR}/../support/bench_device.c)
target_link_libraries(bench_gpu_svdag_versions PRIVATE voxeld_build voxeld_engine)
# bench_surface times meshes and points of volumes.
add_executable(bench_surface ${CMAKE_CURRENT_LIST_DIR}/volume/bench_surface.c
  ${CMAKE_CURRENT_LIST_DIR}/../support/bench_device.c)
target_link_libraries(bench_surface PRIVATE voxeld_build voxeld_engine)
# bench_volume times integration of depth frames and ray casts.
add_executable(bench_volume ${CMAKE_CURRENT_LIST_DIR}/volume/bench_volume.c
  ${CMAKE_CURRENT_LIST_DIR}/../support/bench_device.c)
target_link_libraries(bench_volume PRIVATE voxeld_build voxeld_engine)
# bench_mesh makes scenes of meshes: their memory, and paths inside of them. It reads their files as
# the clients do; a tree of the engine alone compiles what it needs of them.
add_executable(bench_mesh ${CMAKE_CURRENT_LIST_DIR}/svdag/bench_mesh.c
  ${CMAKE_CURRENT_LIST_DIR}/../support/bench_device.c)
target_link_libraries(bench_mesh PRIVATE voxeld_build voxeld_engine)
if(TARGET voxeld_files)
  target_link_libraries(bench_mesh PRIVATE voxeld_files)
else()
  target_sources(bench_mesh PRIVATE
    ${PROJECT_SOURCE_DIR}/client/files/mesh/mesh_file.c
    ${PROJECT_SOURCE_DIR}/client/files/mesh/mesh_obj.c
    ${PROJECT_SOURCE_DIR}/client/files/mesh/mesh_ply.c
    ${PROJECT_SOURCE_DIR}/proto/base/number.c)
endif()
# bench_render times pictures of scenes.
add_executable(bench_render ${CMAKE_CURRENT_LIST_DIR}/bench_render.c
  ${CMAKE_CURRENT_LIST_DIR}/../support/bench_cloud.c
  ${CMAKE_CURRENT_LIST_DIR}/../support/bench_device.c)
target_link_libraries(bench_render PRIVATE voxeld_build voxeld_engine)
if(VOXELD_WITH_CUDA)
  foreach(bench bench_voxelize bench_hashmap bench_conv bench_network bench_sparse_maps bench_mesh bench_render
      bench_gpu_svdag bench_gpu_svdag_collect bench_gpu_svdag_query bench_gpu_svdag_scan
      bench_gpu_svdag_versions bench_surface bench_volume bench_field bench_grid
      ${bench_paper})
    target_sources(${bench} PRIVATE ${CMAKE_CURRENT_LIST_DIR}/../support/floors.cu)
    target_compile_definitions(${bench} PRIVATE VXD_WITH_CUDA)
  endforeach()
endif()
add_test(NAME bench_voxelize_smoke COMMAND bench_voxelize --backend cpu --points 1,20000
  --sizes 0.1 --repeat 2)
add_test(NAME bench_hashmap_smoke COMMAND bench_hashmap --backend cpu --keys 20000
  --capacities 1000 --part all --repeat 2)
add_test(NAME bench_conv_smoke COMMAND bench_conv --backend cpu --voxel-mm 2000 --repeat 1)
add_test(NAME bench_sparse_smoke COMMAND bench_sparse --backend cpu --repeat 1
  --channels 16,16)
add_test(NAME bench_network_smoke COMMAND bench_network --backend cpu --size 0.4
  --repeat 1 --bandwidth 10)
add_test(NAME bench_network_soak_smoke COMMAND bench_network --backend cpu --size 3
  --soak 1 --loads 1)
add_test(NAME bench_sparse_maps_smoke COMMAND bench_sparse_maps --backend cpu --size 0.2
  --repeat 1)
add_test(NAME bench_field_smoke COMMAND bench_field --backend cpu --size 0.2
  --queries 2000 --repeat 1)
add_test(NAME bench_gpu_svdag_smoke COMMAND bench_gpu_svdag --backend cpu --radius 100
  --repeat 2)
add_test(NAME bench_gpu_svdag_collect_smoke COMMAND bench_gpu_svdag_collect --backend cpu
  --nodes 100000 --repeat 1 --verify)
add_test(NAME bench_gpu_svdag_query_smoke COMMAND bench_gpu_svdag_query --backend cpu
  --scans 2 --queries 2000 --repeat 1)
add_test(NAME bench_grid_smoke COMMAND bench_grid --backend cpu --scans 1 --size 0.4
  --cells 100 --repeat 1)
add_test(NAME bench_gpu_svdag_scan_smoke COMMAND bench_gpu_svdag_scan --backend cpu --scans 2
  --size 0.5)
add_test(NAME bench_gpu_svdag_versions_smoke COMMAND bench_gpu_svdag_versions --backend cpu
  --leaves 20000 --repeat 2 --radius 50)
add_test(NAME bench_surface_smoke COMMAND bench_surface --backend cpu --images 2
  --size 50000 --repeat 1)
add_test(NAME bench_volume_smoke COMMAND bench_volume --backend cpu --n 1 --voxel-mm 30)
set(bench_mesh_parts memory pictures)
if(VOXELD_PAPER)
  list(APPEND bench_mesh_parts paths)
endif()
foreach(part ${bench_mesh_parts})
  add_test(NAME bench_mesh_${part}_smoke COMMAND bench_mesh --backend cpu --depth 6 --repeat 1
    --part ${part} --width 40 --height 24 --mesh ${CMAKE_CURRENT_LIST_DIR}/svdag/tetrahedron.obj)
endforeach()
add_test(NAME bench_render_smoke COMMAND bench_render --backend cpu --depth 8 --repeat 1
  --width 40 --height 24)
add_test(NAME bench_refine_smoke COMMAND bench_refine --backend cpu --radius-mm 20 --keyframes 3
  --height 36 --iterations 1)
