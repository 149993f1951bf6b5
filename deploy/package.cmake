# SPDX-License-Identifier: Apache-2.0
# Debian packages by CPack, one a component; deploy/package.sh builds them.
if(VOXELD_CLIENT_ONLY OR VOXELD_ENGINE_ONLY)
  return()
endif()
set(debian ${CMAKE_CURRENT_SOURCE_DIR}/deploy/debian)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL daemon tools lib dev)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_PACKAGE_VENDOR voxeld)
set(CPACK_PACKAGE_CONTACT "voxeld contributors <maintainers@voxeld.invalid>")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Licences, changelog and the configuration, as Debian has them.
set(CPACK_PRE_BUILD_SCRIPTS ${debian}/complete.cmake)

set(CPACK_DEBIAN_DAEMON_PACKAGE_NAME voxeld)
set(CPACK_DEBIAN_DAEMON_PACKAGE_SECTION net)
set(CPACK_DEBIAN_DAEMON_PACKAGE_DEPENDS "adduser, init-system-helpers (>= 1.52)")
set(CPACK_DEBIAN_DAEMON_PACKAGE_RECOMMENDS voxelctl)
set(CPACK_DEBIAN_DAEMON_PACKAGE_SUGGESTS "python3, python3-numpy")
set(CPACK_DEBIAN_DAEMON_PACKAGE_CONTROL_EXTRA
  ${debian}/conffiles ${debian}/postinst ${debian}/prerm ${debian}/postrm)
set(CPACK_DEBIAN_DAEMON_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_COMPONENT_DAEMON_DESCRIPTION "networked voxel service for robots and vehicles
 One daemon owns the GPU, or the CPU where there is none, and everything else
 talks to it, by protobuf over nng or by HTTP: voxelization of point clouds,
 hash maps of voxels, sparse convolution networks, signed distance volumes,
 and scenes that robots feed with scans and anybody queries and edits.")

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME voxelctl)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS "python3, python3-matplotlib")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "command line of the voxeld voxel service
 Voxelizes point cloud files, keeps maps and scenes, runs networks, and asks a
 daemon for its state. It also converts files between formats without one, and
 measures a daemon under load.")

set(CPACK_DEBIAN_LIB_PACKAGE_NAME libvoxeld${voxeld_soversion})
set(CPACK_DEBIAN_LIB_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIB_PACKAGE_CONTROL_EXTRA ${debian}/shlibs ${debian}/triggers)
set(CPACK_DEBIAN_LIB_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_COMPONENT_LIB_DESCRIPTION "client library of the voxeld voxel service
 Sends point clouds to a voxeld daemon, and gets voxels, maps, scenes and the
 outputs of networks, synchronously or not. Programs in C and C++ link it.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libvoxeld-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libvoxeld${voxeld_soversion} (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS "libnng-dev, libprotobuf-c-dev, zlib1g-dev")
set(CPACK_COMPONENT_DEV_DESCRIPTION "headers of the voxeld client library, and the engine
 Headers, archives, and packages for pkg-config and CMake of libvoxeld, the
 client, and of libvoxeld-engine: the engine of the daemon as a static library
 for programs that want it without one. Its API may change with every release.")
include(CPack)
