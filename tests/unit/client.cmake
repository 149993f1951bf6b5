# SPDX-License-Identifier: Apache-2.0
foreach(pair files:cloud_file las:las write:cloud_write)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 name)
  list(GET pair 1 file)
  voxeld_add_test(NAME test_client_${name}
                  SOURCES unit/client/files/${file}_test.c support/client/cloud_files.c
                  LIBRARIES voxeld_files m)
endforeach()

add_library(voxeld_test_peer OBJECT
  support/client/peer.c
  support/client/peer_map.c
  support/client/peer_scene.c
  support/client/peer_version.c)
target_link_libraries(voxeld_test_peer PRIVATE voxeld_build voxeld_schema nng::nng)

# Against the shared library, as users have it: only its public symbols resolve.
voxeld_add_tests(unit/client/c
  LIBRARIES voxeld_client voxeld_test_peer voxeld_schema nng::nng Threads::Threads
  TESTS
  client_async     async
  client_calls     calls
  client_maps      maps
  client_scenes    scenes
  client_versions  versions)

voxeld_add_tests(unit/client/files LIBRARIES voxeld_files m TESTS
  client_arrays    array_file)
get_target_property(image_sources voxeld_image SOURCES)
if(image_sources MATCHES "image_png" AND image_sources MATCHES "image_jpeg")
  voxeld_add_tests(unit/client/files LIBRARIES voxeld_image TESTS
    client_images    image)
  target_link_options(test_client_images PRIVATE -Wl,--wrap=malloc,--wrap=realloc)
endif()

# Cross-compiled, a program that tests start needs the emulator too.
list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " client_emulator)
voxeld_add_tests(unit/client/voxelctl
  LIBRARIES voxeld_test_peer voxeld_files voxeld_schema nng::nng Threads::Threads
  TESTS
  client_voxelctl      voxelctl
  client_ctl_scenes    voxelctl_scenes
  client_ctl_versions  voxelctl_versions)
foreach(name voxelctl ctl_scenes ctl_versions)
  target_compile_definitions(test_client_${name} PRIVATE
    VOXELCTL="${client_emulator} $<TARGET_FILE:voxelctl>")
  add_dependencies(test_client_${name} voxelctl)
endforeach()

# The same calls over nng alone, which synchronous ones otherwise are not.
foreach(name calls maps)
  add_test(NAME test_client_${name}_nng COMMAND test_client_${name})
  set_tests_properties(test_client_${name}_nng PROPERTIES ENVIRONMENT VOXELD_TRANSPORT=nng
                       TIMEOUT 120)
endforeach()

# Against the archive: the linker's wrappers reach our own allocations only.
voxeld_add_tests(unit/client/c LIBRARIES voxeld_client_static voxeld_test_peer TESTS
  client_alloc     client_alloc
  client_direct    direct
  client_shared    shared)
foreach(name direct shared)
  target_include_directories(test_client_${name} SYSTEM PRIVATE
    $<TARGET_PROPERTY:voxeld_schema,INTERFACE_INCLUDE_DIRECTORIES>)
endforeach()
target_link_options(test_client_alloc PRIVATE
  -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup)
target_include_directories(test_client_alloc SYSTEM PRIVATE
  $<TARGET_PROPERTY:voxeld_schema,INTERFACE_INCLUDE_DIRECTORIES>)
add_dependencies(test_client_alloc voxeld_schema)
add_dependencies(test_client_shared voxeld_schema)

# What programs are linked with stays; recorded for x86-64.
find_program(VOXELD_ABIDIFF abidiff)
if(VOXELD_ABIDIFF AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND NOT CMAKE_CROSSCOMPILING
   AND VOXELD_SANITIZE STREQUAL "" AND NOT VOXELD_FUZZ)
  add_test(NAME test_client_abi
    COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/unit/client/abi_test.sh $<TARGET_FILE:voxeld_client>)
elseif(NOT VOXELD_ABIDIFF)
  message(STATUS "No abidiff (abigail-tools): libvoxeld's binary interface is not compared")
endif()

# Strangers' programs are built without our sanitizers.
if(CMAKE_CROSSCOMPILING)
  find_program(VOXELD_CXX NAMES ${CMAKE_CXX_COMPILER})
else()
  find_program(VOXELD_CXX NAMES c++ g++ clang++)
endif()
if(VOXELD_CXX AND VOXELD_SANITIZE STREQUAL "" AND NOT VOXELD_FUZZ)
  include(GNUInstallDirs)
  # As given, it may be relative to the project.
  set(client_toolchain ${CMAKE_TOOLCHAIN_FILE})
  if(client_toolchain)
    get_filename_component(client_toolchain ${client_toolchain} ABSOLUTE
      BASE_DIR ${CMAKE_SOURCE_DIR})
  endif()
  add_test(NAME test_client_install
    COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/unit/client/install_test.sh ${CMAKE_BINARY_DIR}
            ${CMAKE_INSTALL_LIBDIR} ${CMAKE_C_COMPILER} ${VOXELD_CXX})
  set_tests_properties(test_client_install PROPERTIES TIMEOUT 600 ENVIRONMENT
    "EMULATOR=${client_emulator};SYSROOT=${CMAKE_SYSROOT};TOOLCHAIN=${client_toolchain}")
endif()
