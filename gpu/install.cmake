# SPDX-License-Identifier: Apache-2.0
# The engine for other programs: the archive, the modules' headers with what they include, and
# packages for CMake and pkg-config. Nothing is promised of its ABI.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(engine_headers
  gpu/core/context.h
  gpu/core/core.h
  gpu/core/machine_limits.h
  gpu/core/memory.h
  gpu/core/parallel.h
  gpu/core/prefix_sum.h
  gpu/core/queue.h
  gpu/core/radix_sort.h
  gpu/deform/deform.h
  gpu/field/field.h
  gpu/grid/grid.h
  gpu/hash/hash.h
  gpu/occupancy/occupancy.h
  gpu/paper/paper.h
  gpu/render/render.h
  gpu/slac/slac.h
  gpu/sparse/conv/conv.h
  gpu/sparse/coords/coords.h
  gpu/sparse/executor/executor.h
  gpu/sparse/executor/gather_rows.h
  gpu/sparse/executor/net.h
  gpu/sparse/kernel_map/kernel_map.h
  gpu/surface/surface.h
  gpu/svdag/brush/brush.h
  gpu/svdag/mesh/mesh.h
  gpu/svdag/scan/scan.h
  gpu/svdag/svdag.h
  gpu/track/track.h
  gpu/volume/scan/volume_scan.h
  gpu/volume/volume.h
  gpu/voxel/cloud.h
  gpu/voxel/voxel.h
  gpu/voxel/voxelize.h
  proto/base/base.h
  proto/base/shapes.h)
set(engine_include ${CMAKE_INSTALL_INCLUDEDIR}/voxeld-engine)
foreach(header ${engine_headers})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${PROJECT_SOURCE_DIR}/${header} DESTINATION ${engine_include}/${folder}
          COMPONENT dev)
endforeach()

set_target_properties(voxeld_engine PROPERTIES OUTPUT_NAME voxeld-engine EXPORT_NAME engine)
target_include_directories(voxeld_engine INTERFACE $<INSTALL_INTERFACE:${engine_include}>)
set(engine_package ${CMAKE_INSTALL_LIBDIR}/cmake/voxeld-engine)
install(TARGETS voxeld_engine EXPORT voxeld-engine-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
install(EXPORT voxeld-engine-targets NAMESPACE voxeld:: DESTINATION ${engine_package}
        COMPONENT dev)
configure_package_config_file(voxeld-engine-config.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/voxeld-engine-config.cmake INSTALL_DESTINATION ${engine_package})
write_basic_package_version_file(
  ${CMAKE_CURRENT_BINARY_DIR}/voxeld-engine-config-version.cmake COMPATIBILITY ExactVersion)
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/voxeld-engine-config.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/voxeld-engine-config-version.cmake
  DESTINATION ${engine_package} COMPONENT dev)

# Relative to where the file lies, so that an installed tree can be moved.
file(RELATIVE_PATH voxeld_engine_pc_prefix /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
set(voxeld_engine_libs "-lpthread -lm")
if(VOXELD_WITH_CUDA)
  list(GET CUDAToolkit_LIBRARY_DIR 0 cuda_libraries)
  set(voxeld_engine_libs "-L${cuda_libraries} -lcudart_static -lstdc++ -ldl -lrt ${voxeld_engine_libs}")
endif()
configure_file(voxeld-engine.pc.in ${CMAKE_CURRENT_BINARY_DIR}/voxeld-engine.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/voxeld-engine.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
