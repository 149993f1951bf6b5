# SPDX-License-Identifier: Apache-2.0
# The engine's tests; each runs on every backend of the machine.
add_library(voxeld_gpu_test_support STATIC
  unit/gpu_cases.c
  unit/gpu_dag_grid.c
  unit/gpu_dag_image.c
  unit/gpu_dag_ray_rule.c
  unit/gpu_dag_run.c
  unit/gpu_dag_scene.c
  unit/gpu_dag_versions.c
  unit/gpu_hash_check.c
  unit/gpu_hash_digest.c
  unit/gpu_hash_keys.c
  unit/gpu_hash_model.c
  unit/gpu_hash_run.c
  unit/gpu_hash_update.c
  unit/gpu_helpers.c
  unit/gpu_net.c
  unit/gpu_net_oracle.c
  unit/gpu_net_oracle_taps.c
  unit/gpu_oracle.c
  unit/gpu_rows.c
  unit/gpu_sparse.c
  unit/gpu_sparse_conv.c
  unit/gpu_sparse_model.c)
target_link_libraries(voxeld_gpu_test_support PRIVATE voxeld_build PUBLIC voxeld_engine)
target_compile_definitions(voxeld_gpu_test_support PRIVATE
  VOXELD_SOURCE_DIR="${PROJECT_SOURCE_DIR}")

set(plain_tests cloud core digests facts gather hash_basic hash_errors hash_image hash_keys
  hash_model machine paper pool sort sparse_chain sparse_map sparse_map_tiles sparse_set
  voxelize)
if(VOXELD_PAPER)
  list(APPEND plain_tests hash_slab)
endif()
if(NOT VOXELD_EMULATED) # which has no tensor cores
  list(APPEND plain_tests network network_errors network_ops network_runs network_samples
    network_taps sparse_conv sparse_conv_linear)
endif()
foreach(name ${plain_tests})
  voxeld_add_test(NAME test_gpu_${name} SOURCES unit/test_gpu_${name}.c
    LIBRARIES voxeld_gpu_test_support)
endforeach()

# Scenes.
foreach(name ball_parts carve copy edit_balls edit_errors edit_many export grid image_lies
    leaf_parts octants planes query rays room store store_items table transfer verify visits)
  voxeld_add_test(NAME test_gpu_dag_${name} SOURCES unit/test_gpu_dag_${name}.c
    LIBRARIES voxeld_gpu_test_support)
endforeach()

voxeld_add_test(NAME test_gpu_dag_drive
  SOURCES unit/test_gpu_dag_drive.c unit/gpu_dag_rays.c
  LIBRARIES voxeld_gpu_test_support)

voxeld_add_test(NAME test_gpu_dag_scan
  SOURCES unit/test_gpu_dag_scan.c unit/gpu_dag_rays.c
  LIBRARIES voxeld_gpu_test_support)
target_link_options(test_gpu_dag_scan PRIVATE
  LINKER:--wrap=malloc,--wrap=calloc,--wrap=posix_memalign)

voxeld_add_test(NAME test_gpu_dag_alloc SOURCES unit/test_gpu_dag_alloc.c
  LIBRARIES voxeld_gpu_test_support)
target_link_options(test_gpu_dag_alloc PRIVATE
  LINKER:--wrap=malloc,--wrap=calloc,--wrap=posix_memalign)

voxeld_add_test(NAME test_gpu_dag_image SOURCES unit/test_gpu_dag_image.c
  LIBRARIES voxeld_gpu_test_support)
target_link_options(test_gpu_dag_image PRIVATE
  LINKER:--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=posix_memalign)

# Under ThreadSanitizer, minutes. In an emulator of another processor traces of full scale would
# take a quarter of an hour: they are run small there.
set(long_tests diff edit undo)
if(NOT CMAKE_CROSSCOMPILING)
  list(APPEND long_tests traces)
endif()
foreach(name ${long_tests})
  voxeld_add_test(NAME test_gpu_dag_${name} SOURCES unit/test_gpu_dag_${name}.c
    LIBRARIES voxeld_gpu_test_support TIMEOUT 900)
endforeach()

# The same in each of the slab stores (enum vxd_dag_store); sanitizers see all of their code in
# the shorter ones.
set(store_tests copy image rays store store_items transfer undo)
if(VOXELD_SANITIZE STREQUAL "thread") # the others take minutes a store
  set(store_tests rays store store_items transfer)
endif()
if(CMAKE_CROSSCOMPILING)
  set(store_tests store store_items)
elseif(NOT VOXELD_SANITIZE)
  list(APPEND store_tests diff edit export grid planes query room)
endif()
if(NOT VOXELD_PAPER)
  set(store_tests)
endif()
foreach(name ${store_tests})
  foreach(store 1 2 3 4)
    add_test(NAME test_gpu_dag_${name}_store${store} COMMAND test_gpu_dag_${name}
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(test_gpu_dag_${name}_store${store} PROPERTIES
      TIMEOUT 900 ENVIRONMENT "VOXELD_TEST_DAG_STORE=${store}")
  endforeach()
endforeach()

# Their full scale takes long in any store.
if(CMAKE_CROSSCOMPILING)
  add_executable(test_gpu_dag_traces ${CMAKE_CURRENT_LIST_DIR}/test_gpu_dag_traces.c)
  target_link_libraries(test_gpu_dag_traces PRIVATE voxeld_build voxeld_gpu_test_support)
  target_compile_definitions(test_gpu_dag_traces PRIVATE
    VOXELD_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
endif()
set(trace_stores 1 2 3 4)
if(CMAKE_CROSSCOMPILING OR VOXELD_SANITIZE STREQUAL "thread")
  set(trace_stores 1)
endif()
if(NOT VOXELD_PAPER)
  set(trace_stores)
endif()
foreach(store ${trace_stores})
  add_test(NAME test_gpu_dag_traces_store${store}
    COMMAND test_gpu_dag_traces test_traces_made_small_are_those_of_a_plain_grid
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(test_gpu_dag_traces_store${store} PROPERTIES
    TIMEOUT 900 ENVIRONMENT "VOXELD_TEST_DAG_STORE=${store}")
endforeach()

voxeld_add_test(NAME test_gpu_dag_edit_alloc SOURCES unit/test_gpu_dag_edit_alloc.c
  LIBRARIES voxeld_gpu_test_support)
target_link_options(test_gpu_dag_edit_alloc PRIVATE
  LINKER:--wrap=malloc,--wrap=calloc,--wrap=posix_memalign)

voxeld_add_test(NAME test_gpu_dag_versions_alloc
  SOURCES unit/test_gpu_dag_versions_alloc.c
  LIBRARIES voxeld_gpu_test_support)
target_link_options(test_gpu_dag_versions_alloc PRIVATE
  LINKER:--wrap=malloc,--wrap=calloc,--wrap=posix_memalign)

voxeld_add_test(NAME test_gpu_alloc SOURCES unit/test_gpu_alloc.c
  LIBRARIES voxeld_gpu_test_support)
target_link_options(test_gpu_alloc PRIVATE
  LINKER:--wrap=malloc,--wrap=calloc,--wrap=posix_memalign)

if(NOT VOXELD_EMULATED)
  voxeld_add_test(NAME test_gpu_network_alloc SOURCES unit/test_gpu_network_alloc.c
    LIBRARIES voxeld_gpu_test_support)
  target_link_options(test_gpu_network_alloc PRIVATE
    LINKER:--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=posix_memalign)
endif()

# The executor as on a GPU, with the CPU's twins: gpu_replay.c says how.
if(NOT VOXELD_WITH_CUDA AND NOT VOXELD_EMULATED)
  file(GLOB network_sources CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/gpu/sparse/network*.c)
  list(REMOVE_ITEM network_sources ${PROJECT_SOURCE_DIR}/gpu/sparse/network_whole.c)
  foreach(name network network_errors network_runs)
    voxeld_add_test(NAME test_gpu_${name}_replayed
      SOURCES unit/test_gpu_${name}.c unit/gpu_replay.c ${network_sources}
      LIBRARIES voxeld_gpu_test_support)
    target_compile_definitions(test_gpu_${name}_replayed PRIVATE VXD_WITH_CUDA)
    target_link_options(test_gpu_${name}_replayed PRIVATE
      LINKER:--wrap=vxd_context_create)
  endforeach()
endif()

if(VOXELD_WITH_CUDA)
  voxeld_add_test(NAME test_gpu_network_graph SOURCES unit/test_gpu_network_graph.c
    LIBRARIES voxeld_gpu_test_support)
endif()

# They call the engine's twins, of which there are CUDA ones only where it has them.
if(VOXELD_WITH_CUDA OR VOXELD_EMULATED)
  target_compile_definitions(voxeld_gpu_test_support PUBLIC VXD_WITH_CUDA)
endif()

# gcc 12 for aarch64 dies of an internal error in its vectorizer on a sum there.
set_source_files_properties(unit/test_gpu_network_ops.c unit/test_gpu_network_taps.c
  PROPERTIES
  COMPILE_OPTIONS "$<$<C_COMPILER_ID:GNU>:-fno-tree-vectorize>")
