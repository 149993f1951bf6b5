# SPDX-License-Identifier: Apache-2.0
add_library(voxeld_test_server STATIC unit/server_helpers.c unit/server_sleep.c)
target_link_libraries(voxeld_test_server PRIVATE voxeld_build PUBLIC voxeld_server)

voxeld_add_test(NAME test_server_scheduler SOURCES unit/test_server_scheduler.c
                LIBRARIES voxeld_test_server)
voxeld_add_test(NAME test_server_batch SOURCES unit/test_server_batch.c
                LIBRARIES voxeld_test_server)
voxeld_add_test(NAME test_server_config SOURCES unit/test_server_config.c
                LIBRARIES voxeld_server)
voxeld_add_test(NAME test_server_auth SOURCES unit/test_server_auth.c
                LIBRARIES voxeld_server)
voxeld_add_test(NAME test_server_request SOURCES unit/test_server_request.c
                LIBRARIES voxeld_test_server)
voxeld_add_test(NAME test_server_once SOURCES unit/test_server_once.c
                LIBRARIES voxeld_test_server)
voxeld_add_test(NAME test_server_map_file SOURCES unit/test_server_map_file.c
                LIBRARIES voxeld_server)
voxeld_add_test(NAME test_server_model
                SOURCES unit/test_server_model.c unit/server_model.c
                LIBRARIES voxeld_server PkgConfig::JANSSON)
target_link_options(test_server_model PRIVATE
  -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc)
voxeld_add_test(NAME test_server_weights
                SOURCES unit/test_server_weights.c unit/server_model.c
                LIBRARIES voxeld_server)
voxeld_add_test(NAME test_server_voxelize SOURCES unit/test_server_voxelize.c
                LIBRARIES voxeld_test_server)
voxeld_add_test(NAME test_server_alloc SOURCES unit/test_server_alloc.c
                LIBRARIES voxeld_test_server)
target_link_options(test_server_alloc PRIVATE
  -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=posix_memalign)

# What is on disk: a disk in memory that fails and loses power, and what runs on it.
add_library(voxeld_test_durable STATIC unit/durable_fault_disk.c
            unit/durable_fault_loss.c unit/durable_fault_vfs.c unit/durable_workload.c)
target_link_libraries(voxeld_test_durable PRIVATE voxeld_build
                      PUBLIC voxeld_durable)
voxeld_add_test(NAME test_server_scene_faults
                SOURCES unit/test_server_scene_faults.c unit/server_scenes_disk.c
                LIBRARIES voxeld_test_server voxeld_test_durable TIMEOUT 900)
voxeld_add_test(NAME test_server_scene_replay
                SOURCES unit/test_server_scene_replay.c unit/server_scenes_disk.c
                LIBRARIES voxeld_test_server voxeld_test_durable)
target_link_options(test_server_scene_replay PRIVATE -Wl,--wrap=vxd_dag_edit_wait)
voxeld_add_test(NAME test_server_map_faults
                SOURCES unit/test_server_map_faults.c unit/server_maps_disk.c
                unit/server_scenes_disk.c
                LIBRARIES voxeld_test_server voxeld_test_durable TIMEOUT 900)
voxeld_add_test(NAME test_server_map_alloc
                SOURCES unit/test_server_map_alloc.c unit/server_alloc_disk.c
                unit/server_maps_disk.c unit/server_scenes_disk.c
                LIBRARIES voxeld_test_server voxeld_test_durable TIMEOUT 900)
target_link_options(test_server_map_alloc PRIVATE
  -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=posix_memalign)
voxeld_add_test(NAME test_server_map_record SOURCES unit/test_server_map_record.c
                LIBRARIES voxeld_test_server voxeld_test_durable)
voxeld_add_test(NAME test_server_once_disk
                SOURCES unit/test_server_once_disk.c unit/server_scenes_disk.c
                LIBRARIES voxeld_test_server voxeld_test_durable)
voxeld_add_test(NAME test_server_durable_alloc
                SOURCES unit/test_server_durable_alloc.c unit/server_alloc_disk.c
                unit/server_scenes_disk.c
                LIBRARIES voxeld_test_server voxeld_test_durable TIMEOUT 900)
target_link_options(test_server_durable_alloc PRIVATE
  -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=posix_memalign)
# mkdtemp is of the XSI extensions.
set_source_files_properties(unit/server_alloc_disk.c PROPERTIES
  COMPILE_DEFINITIONS _XOPEN_SOURCE=700)
voxeld_add_test(NAME test_server_durable_repair
                SOURCES unit/test_server_durable_repair.c unit/server_repair_disk.c
                unit/server_maps_disk.c unit/server_scenes_disk.c
                LIBRARIES voxeld_test_server voxeld_test_durable)
voxeld_add_test(NAME test_server_durable_repair_cut
                SOURCES unit/test_server_durable_repair_cut.c unit/server_repair_disk.c
                unit/server_scenes_disk.c
                LIBRARIES voxeld_test_server voxeld_test_durable TIMEOUT 900)
voxeld_add_test(NAME test_server_durable_backup SOURCES unit/test_server_durable_backup.c
                LIBRARIES voxeld_test_durable)
voxeld_add_test(NAME test_server_durable_power SOURCES unit/test_server_durable_power.c
                LIBRARIES voxeld_test_durable TIMEOUT 900)
voxeld_add_test(NAME test_server_durable_faults SOURCES unit/test_server_durable_faults.c
                LIBRARIES voxeld_test_durable TIMEOUT 900)
voxeld_add_test(NAME test_server_durable_files SOURCES unit/test_server_durable_files.c
                LIBRARIES voxeld_test_durable TIMEOUT 900)
voxeld_add_test(NAME test_server_durable_planes SOURCES unit/test_server_durable_planes.c
                LIBRARIES voxeld_durable)
voxeld_add_test(NAME test_server_durable_ahead SOURCES unit/test_server_durable_ahead.c
                LIBRARIES voxeld_test_durable)
target_link_options(test_server_durable_ahead PRIVATE -Wl,--wrap=vxd_machine_cpus)
