# SPDX-License-Identifier: Apache-2.0
add_library(voxeld_test_server STATIC
  support/server/server_helpers.c
  support/server/sleep_methods.c)
target_link_libraries(voxeld_test_server PRIVATE voxeld_build PUBLIC voxeld_server)

voxeld_add_tests(unit/server LIBRARIES voxeld_server TESTS
  server_config         config
  server_observe        observe)
voxeld_add_tests(unit/server LIBRARIES voxeld_test_server TESTS
  server_alloc          server_alloc
  server_idle           idle)
target_link_options(test_server_alloc PRIVATE
  -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=posix_memalign)

voxeld_add_tests(unit/server/access LIBRARIES voxeld_server TESTS
  server_auth           auth
  server_rules          rules)
voxeld_add_tests(unit/server/request LIBRARIES voxeld_test_server TESTS
  server_multipart      multipart
  server_once           exactly_once
  server_ranges         ranges
  server_request        request)

voxeld_add_tests(unit/server/schedule LIBRARIES voxeld_test_server TESTS
  server_batch          batch
  server_fair           fair
  server_scheduler      scheduler)

voxeld_add_tests(unit/server/transport LIBRARIES voxeld_server TESTS
  server_parsers        parsers)

voxeld_add_tests(unit/server/service LIBRARIES voxeld_test_server TESTS
  server_voxelize       voxelize)

voxeld_add_tests(unit/server/registry LIBRARIES voxeld_server TESTS
  server_fields         fields
  server_map_file       map_file
  server_named          named)

voxeld_add_test(NAME test_server_model
                SOURCES unit/server/model/model_test.c support/server/model_files.c
                LIBRARIES voxeld_server PkgConfig::JANSSON)
target_link_options(test_server_model PRIVATE
  -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc)
voxeld_add_test(NAME test_server_weights
                SOURCES unit/server/model/weights_test.c support/server/model_files.c
                LIBRARIES voxeld_server)

# What is on disk: a disk in memory that fails and loses power, and what runs on it.
add_library(voxeld_test_durable STATIC
  support/durable/durable_workload.c
  support/durable/fault_disk.c
  support/durable/fault_loss.c
  support/durable/fault_vfs.c)
target_link_libraries(voxeld_test_durable PRIVATE voxeld_build
                      PUBLIC voxeld_durable)

voxeld_add_tests(unit/server/durable LIBRARIES voxeld_durable TESTS
  server_durable_planes      byte_planes)
voxeld_add_tests(unit/server/durable LIBRARIES voxeld_test_durable TESTS
  server_durable_ahead       recovery_prefetch
  server_durable_archive     archive
  server_durable_backup      backup
  server_durable_faults      disk_faults
  server_durable_files       data_files
  server_upkeep_record       upkeep_record
  server_cast_record         cast_record
  server_durable_mark        mark
  server_durable_power       power_loss
  server_volume_record       volume_record)
target_link_options(test_server_durable_ahead PRIVATE -Wl,--wrap=vxd_machine_cpus)
voxeld_add_tests(unit/server/durable LIBRARIES voxeld_test_server voxeld_test_durable TESTS
  server_map_record          map_record
  server_posegraph_record    posegraph_record)

# A whole server on such a disk: voxeld_add_disk_test(NAME SOURCE HELPER...).
function(voxeld_add_disk_test name source)
  list(TRANSFORM ARGN PREPEND support/server/ OUTPUT_VARIABLE helpers)
  list(TRANSFORM helpers APPEND .c)
  voxeld_add_test(NAME test_server_${name} SOURCES unit/server/${source}_test.c ${helpers}
                  LIBRARIES voxeld_test_server voxeld_test_durable)
endfunction()
voxeld_add_disk_test(scene_faults registry/scene_faults scenes_disk)
voxeld_add_disk_test(registry registry/registry scenes_disk)
voxeld_add_disk_test(scene_replay registry/scene_replay scenes_disk)
target_link_options(test_server_scene_replay PRIVATE -Wl,--wrap=vxd_svdag_edit_wait)
voxeld_add_disk_test(scene_ages registry/scene_ages scenes_disk)
target_link_options(test_server_scene_ages PRIVATE
  -Wl,--wrap=vxd_clock_unix_ns,--wrap=vxd_journal_get_run_ns)
voxeld_add_disk_test(scene_start registry/scene_start repair_disk scenes_disk)
target_link_options(test_server_scene_start PRIVATE
  -Wl,--wrap=vxd_clock_ns,--wrap=vxd_scenes_load)
voxeld_add_disk_test(map_faults registry/map_faults maps_disk scenes_disk)
voxeld_add_disk_test(map_alloc registry/map_alloc alloc_disk maps_disk scenes_disk)
target_link_options(test_server_map_alloc PRIVATE
  -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=posix_memalign)
voxeld_add_disk_test(volume_faults registry/volume_faults volumes_disk scenes_disk)
voxeld_add_disk_test(volume_alloc registry/volume_alloc alloc_disk volumes_disk scenes_disk)
target_link_options(test_server_volume_alloc PRIVATE
  -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=posix_memalign)
voxeld_add_disk_test(once_disk request/exactly_once_disk scenes_disk)
voxeld_add_disk_test(durable_alloc durable/durable_alloc alloc_disk scenes_disk)
target_link_options(test_server_durable_alloc PRIVATE
  -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=posix_memalign)
# mkdtemp is of the XSI extensions.
set_source_files_properties(support/server/alloc_disk.c PROPERTIES
  COMPILE_DEFINITIONS _XOPEN_SOURCE=700)
voxeld_add_disk_test(durable_repair durable/repair repair_disk maps_disk scenes_disk)
voxeld_add_disk_test(durable_repair_cut durable/repair_cut repair_disk scenes_disk)
