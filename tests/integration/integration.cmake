# SPDX-License-Identifier: Apache-2.0
# The real daemon on ephemeral ports, driven by pytest, curl, stock protobuf and our own
# tools. The virtual environment is made by the first test (a fixture of all others), so
# that configuring needs no network.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
find_program(VOXELD_PROTOC protoc)
if(NOT VOXELD_PROTOC)
  message(FATAL_ERROR "The integration tests need protoc (package protobuf-compiler); "
                      "-DVOXELD_TESTS=OFF builds without tests")
endif()

set(VOXELD_TEST_VENV ${CMAKE_BINARY_DIR}/venv CACHE PATH
  "Virtual environment of the integration tests; build trees may share one")
set(integration_venv ${VOXELD_TEST_VENV})
set(integration_python ${CMAKE_CURRENT_BINARY_DIR}/integration/python)
file(MAKE_DIRECTORY ${integration_python})
file(GLOB integration_protos ${PROJECT_SOURCE_DIR}/proto/voxeld/v1/*.proto)
add_custom_command(
  OUTPUT ${integration_python}/voxeld/v1/rpc_pb2.py
  COMMAND ${VOXELD_PROTOC} -I ${PROJECT_SOURCE_DIR}/proto
          --python_out=${integration_python} ${integration_protos}
  DEPENDS ${integration_protos}
  COMMENT "Generating the schema's Python code"
  VERBATIM)
add_custom_target(integration_schema ALL
                  DEPENDS ${integration_python}/voxeld/v1/rpc_pb2.py)

add_executable(foreign_client ${CMAKE_CURRENT_LIST_DIR}/support/foreign_client.c)
target_link_libraries(foreign_client PRIVATE voxeld_build voxeld_client)

add_executable(upgrade_client ${CMAKE_CURRENT_LIST_DIR}/support/upgrade_client.c)
target_link_libraries(upgrade_client PRIVATE voxeld_build voxeld_client)

add_executable(stream_client ${CMAKE_CURRENT_LIST_DIR}/support/stream_client.c)
target_link_libraries(stream_client PRIVATE voxeld_build voxeld_client m)

add_executable(net_run ${CMAKE_CURRENT_LIST_DIR}/support/net_run.c)
target_link_libraries(net_run PRIVATE voxeld_build voxeld_server)

# The README's example in C; the default timeout of a call is for plain builds.
add_executable(example_voxelize ${PROJECT_SOURCE_DIR}/client/examples/voxelize.c)
target_link_libraries(example_voxelize PRIVATE voxeld_build voxeld_client)

add_test(NAME integration_venv
         COMMAND Python3::Interpreter ${CMAKE_CURRENT_LIST_DIR}/setup_venv.py
                 ${integration_venv} ${CMAKE_CURRENT_LIST_DIR}/requirements.txt)
set_tests_properties(integration_venv PROPERTIES FIXTURES_SETUP integration TIMEOUT 600
                     RESOURCE_LOCK integration_venv)

# How much longer things may take than in a plain build.
set(integration_slow 1)
if(VOXELD_SANITIZE STREQUAL "thread")
  set(integration_slow 10)
elseif(NOT VOXELD_SANITIZE STREQUAL "")
  set(integration_slow 4)
endif()

# A test that hangs says where, before its limit ends it.
set(integration_tests
  generated
  layers
  names
  client/bench
  client/ctl_json
  client/ctl_manners
  client/documents
  client/ctl_mistakes
  client/ctl_request
  client/examples
  client/manuals
  client/python
  client/python_errors
  client/python_manners
  client/python_maps
  client/python_pipeline
  client/python_scenes
  client/python_versions
  client/readme
  client/repeats
  client/tools
  client/worked_example
  daemon/archive
  daemon/audit
  daemon/auth
  daemon/backends
  daemon/backups
  daemon/bundle
  daemon/data_damage
  daemon/exactly_once
  daemon/life
  daemon/load
  daemon/long_start
  daemon/memory
  daemon/overload
  daemon/random_damage
  daemon/refusals
  daemon/soak
  daemon/why
  daemon/walls
  deploy/installed
  deploy/manifests
  deploy/upgrade
  field/fields
  grid/grids
  map/map_durable
  map/map_limits
  map/map_tools
  map/maps
  map/merge
  network/net_clients
  network/net_places
  network/net_reference
  network/net_surfaces
  network/networks
  scene/mesh
  odometry/odometry
  scene/pictures
  scene/scene_body
  scene/scene_cast
  scene/scene_durable
  scene/scene_fusion
  scene/scene_histories
  scene/scene_lanes
  scene/scene_limits
  scene/scene_stop
  scene/scene_tools
  scene/scene_upkeep
  scene/scene_version_tools
  scene/scene_versions
  scene/scene_votes
  scene/scenes
  scene/scenes_errors
  scene/scenes_integrate
  scene/scenes_query
  scene/semantic
  scene/semantic_clients
  scene/watch
  transport/connections
  transport/guard
  transport/hostile
  transport/http
  transport/openapi
  transport/rpc
  transport/shared
  transport/tls
  posegraph/posegraphs
  posegraph/rebuild
  posegraph/relocalize
  volume/volume_beside_scenes
  volume/volume_durable
  volume/volume_pictures
  volume/volume_refine
  volume/slac
  volume/volume_scans
  volume/volume_scenes
  volume/volume_tools
  volume/volume_track
  volume/volume_watch
  volume/volumes
  web/foxglove
  web/web)
# The dashboard in a browser; deploy/packages.sh installs Debian's. ThreadSanitizer takes seconds
# for each of its pictures; what it asks of the daemon, test_watch.py and test_web.py ask there.
find_program(VOXELD_CHROMIUM chromium)
if(VOXELD_CHROMIUM AND NOT "${VOXELD_SANITIZE}" STREQUAL "thread")
  list(APPEND integration_tests web/dashboard web/dashboard_tools)
elseif(NOT VOXELD_CHROMIUM)
  message(STATUS "No chromium: the dashboard is not looked at in a browser")
endif()
if(VOXELD_PACKAGE_TESTS)
  list(APPEND integration_tests deploy/first_hour deploy/haproxy deploy/packages)
endif()
foreach(test ${integration_tests}) # FOLDER/NAME is FOLDER/test_NAME.py
  get_filename_component(name ${test} NAME)
  get_filename_component(folder ${CMAKE_CURRENT_LIST_DIR}/${test} DIRECTORY)
  add_test(NAME integration_${name}
           COMMAND ${integration_venv}/bin/python -m pytest -q -p no:cacheprovider
                   -o faulthandler_timeout=300
                   ${folder}/test_${name}.py)
  set_tests_properties(integration_${name} PROPERTIES
    FIXTURES_REQUIRED integration
    TIMEOUT 900
    ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1;VOXELD_TEST_SLOW=${integration_slow};\
VOXELD_SANITIZE=${VOXELD_SANITIZE};VOXELD_PAPER=${VOXELD_PAPER};VOXELD_CHROMIUM=${VOXELD_CHROMIUM};VOXELD_BIN_DIR=${CMAKE_RUNTIME_OUTPUT_DIRECTORY};\
VOXELD_PYTHON_SCHEMA=${integration_python};VOXELD_SOURCE_DIR=${PROJECT_SOURCE_DIR}")
endforeach()

# In the long tier it builds a daemon.
set_property(TEST integration_worked_example PROPERTY TIMEOUT 3600)

if(VOXELD_PACKAGE_TESTS)
  set_property(TEST integration_first_hour PROPERTY TIMEOUT 3600)
  set_property(TEST integration_packages PROPERTY TIMEOUT 10800) # it compiles CUDA
endif()

# They compare times with each other, so they do not run beside each other; what else runs
# beside them they must stand.
set_tests_properties(integration_overload integration_load integration_bench integration_memory
                     integration_soak PROPERTIES RESOURCE_LOCK measures_time)

if(TEST integration_dashboard_tools)
  set_property(TEST integration_dashboard_tools APPEND PROPERTY ENVIRONMENT
               "PYTHONPATH=${PROJECT_SOURCE_DIR}/client/python")
endif()

# The module as it is in the tree: a package, so it goes before the bare schema's folder.
set_property(TEST integration_python integration_python_errors integration_python_maps
             integration_python_pipeline
             integration_python_scenes integration_semantic_clients
             integration_grids integration_scene_upkeep
             integration_python_versions integration_map_durable
             integration_net_clients integration_backends integration_volumes integration_volume_beside_scenes
             integration_volume_pictures
             integration_random_damage integration_volume_durable integration_volume_refine integration_volume_tools
             integration_volume_track integration_volume_watch integration_volume_scans integration_posegraphs
             integration_relocalize integration_rebuild integration_shared integration_fields
             integration_pictures integration_watch integration_mesh integration_foxglove
             integration_tls integration_why integration_backups integration_odometry
             integration_ctl_manners integration_ctl_mistakes integration_python_manners integration_refusals integration_repeats integration_memory integration_soak
             integration_net_surfaces
             integration_examples integration_scene_body integration_scene_votes integration_slac integration_volume_scenes
             integration_documents integration_readme integration_upgrade
             APPEND PROPERTY ENVIRONMENT
             "PYTHONPATH=${PROJECT_SOURCE_DIR}/client/python")
