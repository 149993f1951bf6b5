# SPDX-License-Identifier: Apache-2.0
# The engine's tests; each runs on every backend of the machine.
add_library(voxeld_gpu_test_support STATIC
  support/field/field_model.c
  support/gpu/gpu_helpers.c
  support/gpu/voxelize_cases.c
  support/gpu/voxelize_oracle.c
  support/hash/hash_check.c
  support/hash/hash_digest.c
  support/hash/hash_keys.c
  support/hash/hash_model.c
  support/hash/hash_run.c
  support/hash/hash_update.c
  support/refine/refine_scene.c
  support/posegraph/graphs.c
  support/odometry/street.c
  support/slac/slac_scene.c
  support/sparse/coord_set_model.c
  support/sparse/layer_rows.c
  support/sparse/net_helpers.c
  support/sparse/net_oracle.c
  support/sparse/net_oracle_taps.c
  support/sparse/sparse_helpers.c
  support/sparse/sparse_helpers_conv.c
  support/svdag/svdag_grid.c
  support/svdag/svdag_image.c
  support/svdag/svdag_ray_rule.c
  support/svdag/svdag_run.c
  support/svdag/svdag_scene.c
  support/svdag/svdag_versions.c
  support/track/track_scene.c
  support/volume/volume_helpers.c
  support/volume/volume_make.c)
target_link_libraries(voxeld_gpu_test_support PRIVATE voxeld_build PUBLIC voxeld_engine)
target_compile_definitions(voxeld_gpu_test_support PRIVATE
  VOXELD_SOURCE_DIR="${PROJECT_SOURCE_DIR}")

# voxeld_add_gpu_tests(FOLDER NAME FILE ...): test_gpu_NAME of unit/gpu/FOLDER/FILE_test.c.
function(voxeld_add_gpu_tests folder)
  set(pairs "")
  set(is_name ON)
  foreach(word ${ARGN})
    if(is_name)
      list(APPEND pairs gpu_${word})
      set(is_name OFF)
    else()
      list(APPEND pairs ${word})
      set(is_name ON)
    endif()
  endforeach()
  voxeld_add_tests(unit/gpu${folder} LIBRARIES voxeld_gpu_test_support TESTS ${pairs})
endfunction()

# Whose allocations fail in turn; realloc where one is named.
set(wrap_alloc LINKER:--wrap=malloc,--wrap=calloc,--wrap=posix_memalign)
set(wrap_realloc LINKER:--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=posix_memalign)

voxeld_add_gpu_tests(""
  alloc               gpu_alloc
  digests             digests
  paper               paper)
target_link_options(test_gpu_alloc PRIVATE ${wrap_alloc})

voxeld_add_gpu_tests(/core
  core                core
  machine             machine
  pool                pool
  sort                sort)

voxeld_add_gpu_tests(/voxel
  cloud               cloud
  voxelize_double     voxelize_double
  facts               voxelize_facts
  voxelize            voxelize)

voxeld_add_gpu_tests(/surface
  surface             surface)
target_link_options(test_gpu_surface PRIVATE ${wrap_realloc})
voxeld_add_gpu_tests(/volume
  volume              volume
  volume_cast         volume_cast
  volume_integrate    volume_integrate
    volume_keep         volume_keep
    volume_limits       volume_limits
    volume_scan         volume_scan)

voxeld_add_gpu_tests(/refine
  refine              refine
  refine_math         refine_math)
voxeld_add_gpu_tests(/posegraph
    posegraph           posegraph)

voxeld_add_gpu_tests(/relocalize
    relocalize          relocalize)

voxeld_add_gpu_tests(/track
    track               track)

voxeld_add_gpu_tests(/odometry
    odometry            odometry
    odometry_math       odometry_math)
voxeld_add_gpu_tests(/deform
    deform              deform)
voxeld_add_gpu_tests(/slac
    slac                slac)

voxeld_add_gpu_tests(/hash
  hash_basic          hash_basic
  hash_errors         hash_errors
  hash_image          hash_image
  hash_keys           hash_keys
  hash_model          hash_model)
if(VOXELD_PAPER)
  voxeld_add_gpu_tests(/hash
    hash_slab         slab_map)
endif()

voxeld_add_gpu_tests(/sparse
  gather              gather_rows
  sparse_chain        coord_set_chain
  sparse_map          kernel_map
  sparse_map_tiles    kernel_map_tiles
  sparse_set          coord_set)
if(NOT VOXELD_EMULATED) # which has no tensor cores
  voxeld_add_gpu_tests(/sparse
    network           network
    network_alloc     network_alloc
    network_errors    network_errors
    network_ops       network_ops
    network_runs      network_runs
    network_samples   network_samples
    network_taps      network_taps
    sparse_conv       conv
    sparse_conv_linear conv_linear)
  target_link_options(test_gpu_network_alloc PRIVATE ${wrap_realloc})
endif()
if(VOXELD_WITH_CUDA)
  voxeld_add_gpu_tests(/sparse
    network_graph     network_graph)
endif()

# gcc 12 for aarch64 dies of an internal error in its vectorizer on a sum there.
set_source_files_properties(
  unit/gpu/sparse/network_ops_test.c unit/gpu/sparse/network_taps_test.c
  PROPERTIES
  COMPILE_OPTIONS "$<$<C_COMPILER_ID:GNU>:-fno-tree-vectorize>")

# The executor as on a GPU, with the CPU's backends: replay.c says how.
if(NOT VOXELD_WITH_CUDA AND NOT VOXELD_EMULATED)
  file(GLOB network_sources CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/gpu/sparse/executor/network*.c)
  list(REMOVE_ITEM network_sources
    ${PROJECT_SOURCE_DIR}/gpu/sparse/executor/network_run_whole.c)
  foreach(name network network_errors network_runs)
    voxeld_add_test(NAME test_gpu_${name}_replayed
      SOURCES unit/gpu/sparse/${name}_test.c support/sparse/replay.c ${network_sources}
      LIBRARIES voxeld_gpu_test_support)
    target_compile_definitions(test_gpu_${name}_replayed PRIVATE VXD_WITH_CUDA)
    target_link_options(test_gpu_${name}_replayed PRIVATE
      LINKER:--wrap=vxd_context_create)
  endforeach()
endif()

# Scenes.
voxeld_add_gpu_tests(/svdag/store
  svdag_store_alloc     store_alloc
  svdag_store           store
  svdag_store_items     store_items
  svdag_table           table
  svdag_collect         collect
  svdag_store_verify    store_verify)
target_link_options(test_gpu_svdag_store_alloc PRIVATE ${wrap_alloc})

voxeld_add_gpu_tests(/svdag/image
  svdag_image           image
  svdag_image_damaged   image_damaged)
target_link_options(test_gpu_svdag_image PRIVATE ${wrap_realloc})

voxeld_add_gpu_tests(/svdag/brush
  svdag_ball_children   ball_children
  svdag_relations       relations
  svdag_leaf_values     leaf_values
  svdag_op_octree       op_octree)

voxeld_add_gpu_tests(/svdag/edit
  svdag_copy            copy
  svdag_edit            edit
  svdag_edit_alloc      edit_alloc
  svdag_edit_balls      edit_balls
  svdag_edit_errors     edit_errors
  svdag_edit_many       edit_many
  svdag_edit_grid       edit_grid
  svdag_octree_planes   octree_planes
  svdag_edit_capacity   edit_capacity
  svdag_undo            undo
  svdag_versions_alloc  versions_alloc
  svdag_copy_visits     copy_visits)
target_link_options(test_gpu_svdag_edit_alloc PRIVATE ${wrap_alloc})
target_link_options(test_gpu_svdag_versions_alloc PRIVATE ${wrap_alloc})

voxeld_add_gpu_tests(/occupancy
  occupancy           occupancy
  occupancy_alloc     occupancy_alloc
  occupancy_stop      occupancy_stop
  occupancy_votes     votes
  upkeep              upkeep)
target_link_options(test_gpu_occupancy_alloc PRIVATE ${wrap_alloc})
# Beside OctoMap's own library, where it is installed (Debian: liboctomap-dev).
find_package(octomap QUIET)
if(octomap_FOUND)
  enable_language(CXX)
  voxeld_add_gpu_tests(/occupancy
    octomap             octomap)
  target_sources(test_gpu_octomap PRIVATE support/occupancy/octomap_map.cpp)
  target_include_directories(test_gpu_octomap SYSTEM PRIVATE ${OCTOMAP_INCLUDE_DIRS})
  target_link_libraries(test_gpu_octomap PRIVATE ${OCTOMAP_LIBRARIES})
endif()

voxeld_add_gpu_tests(/svdag/diff
  svdag_diff            diff
  svdag_export          export_cells)

voxeld_add_gpu_tests(/render
  render              render
  render_beam         beam
  render_materials    materials)

voxeld_add_gpu_tests(/svdag/mesh
  svdag_mesh            mesh)

voxeld_add_gpu_tests(/svdag/query
  svdag_changed         changed
  svdag_query           query
  svdag_rays            rays)

voxeld_add_gpu_tests(/svdag/scan
  svdag_carve           carve
  svdag_drive           drive
  svdag_scan            scan)
target_sources(test_gpu_svdag_carve PRIVATE support/svdag/svdag_rays.c)
target_sources(test_gpu_svdag_drive PRIVATE support/svdag/svdag_rays.c)
target_sources(test_gpu_svdag_scan PRIVATE support/svdag/svdag_rays.c)
target_link_options(test_gpu_svdag_scan PRIVATE ${wrap_alloc})

# Distance fields.
voxeld_add_gpu_tests(/field
  field               field
  field_collide       field_collide
  field_query         field_query
  field_volume        field_volume)
# Contacts of 10^5 random pairs beside FCL, where it is installed (Debian: libfcl-dev).
find_path(FCL_INCLUDE_DIR fcl/fcl.h)
find_library(FCL_LIBRARY fcl)
find_library(CCD_LIBRARY ccd)
find_path(EIGEN3_INCLUDE_DIR Eigen/Dense PATH_SUFFIXES eigen3)
if(FCL_INCLUDE_DIR AND FCL_LIBRARY AND CCD_LIBRARY AND EIGEN3_INCLUDE_DIR)
  enable_language(CXX)
  add_executable(test_gpu_field_fcl bench/gpu/field/compare_fcl.cpp)
  target_compile_features(test_gpu_field_fcl PRIVATE cxx_std_17)
  target_compile_options(test_gpu_field_fcl PRIVATE -O2 -ffp-contract=off)
  target_include_directories(test_gpu_field_fcl PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(test_gpu_field_fcl SYSTEM PRIVATE ${FCL_INCLUDE_DIR}
                             ${EIGEN3_INCLUDE_DIR})
  target_link_libraries(test_gpu_field_fcl PRIVATE ${FCL_LIBRARY} ${CCD_LIBRARY} m)
  add_test(NAME test_gpu_field_fcl COMMAND test_gpu_field_fcl 100000)
endif()
voxeld_add_gpu_tests(/grid
  grid                grid)
target_link_options(test_gpu_grid PRIVATE ${wrap_alloc})

# In an emulator of another processor traces of full scale would take a quarter of an hour: they
# are run small there (below).
if(CMAKE_CROSSCOMPILING)
  add_executable(test_gpu_svdag_traces unit/gpu/svdag/edit/edit_traces_test.c)
  target_link_libraries(test_gpu_svdag_traces PRIVATE voxeld_build voxeld_gpu_test_support)
  target_compile_definitions(test_gpu_svdag_traces PRIVATE
    VOXELD_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
else()
  voxeld_add_gpu_tests(/svdag/edit
    svdag_traces        edit_traces)
endif()

# The same in each of the slab stores (enum vxd_svdag_store); sanitizers see all of their code in
# the shorter ones.
set(store_tests copy image rays store store_items collect undo)
if(VOXELD_SANITIZE STREQUAL "thread") # the others take minutes a store
  set(store_tests rays store store_items collect)
endif()
if(CMAKE_CROSSCOMPILING)
  set(store_tests store store_items)
elseif(NOT VOXELD_SANITIZE)
  list(APPEND store_tests diff edit export edit_grid octree_planes query edit_capacity)
endif()
if(NOT VOXELD_PAPER)
  set(store_tests)
endif()
foreach(name ${store_tests})
  foreach(store 1 2 3 4)
    add_test(NAME test_gpu_svdag_${name}_store${store} COMMAND test_gpu_svdag_${name}
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(test_gpu_svdag_${name}_store${store} PROPERTIES
      TIMEOUT 900 ENVIRONMENT "VOXELD_TEST_SVDAG_STORE=${store}")
  endforeach()
endforeach()

# Their full scale takes long in any store.
set(trace_stores 1 2 3 4)
if(CMAKE_CROSSCOMPILING OR VOXELD_SANITIZE STREQUAL "thread")
  set(trace_stores 1)
endif()
if(NOT VOXELD_PAPER)
  set(trace_stores)
endif()
foreach(store ${trace_stores})
  add_test(NAME test_gpu_svdag_traces_store${store}
    COMMAND test_gpu_svdag_traces test_traces_made_small_are_those_of_a_plain_grid
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(test_gpu_svdag_traces_store${store} PROPERTIES
    TIMEOUT 900 ENVIRONMENT "VOXELD_TEST_SVDAG_STORE=${store}")
endforeach()

# They call the engine's backends, of which there are CUDA ones only where it has them.
if(VOXELD_WITH_CUDA OR VOXELD_EMULATED)
  target_compile_definitions(voxeld_gpu_test_support PUBLIC VXD_WITH_CUDA)
endif()
