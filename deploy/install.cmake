# SPDX-License-Identifier: Apache-2.0
# What is installed beside programs and libraries: licences and notices; with the daemon its configuration,
# networks, the importer of weights, systemd's units, the manual.
include(GNUInstallDirs)

install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT dev)
if(NOT VOXELD_ENGINE_ONLY)
  # Works of others: the scan, and what the daemon contains.
  install(FILES LICENSE deploy/NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tools)
  # What "voxelctl demo" looks at; a build folder has it where an installed tree does.
  configure_file(tests/data/spconv_benchmark_pc.npy
                 ${CMAKE_BINARY_DIR}/share/voxeld/demo/scan.npy COPYONLY)
  install(FILES tests/data/spconv_benchmark_pc.npy RENAME scan.npy COMPONENT tools
          DESTINATION ${CMAKE_INSTALL_DATADIR}/voxeld/demo)
endif()
if(VOXELD_CLIENT_ONLY OR VOXELD_ENGINE_ONLY)
  return()
endif()
set(voxeld_data_dir ${CMAKE_INSTALL_DATADIR}/voxeld)
install(FILES LICENSE deploy/NOTICE client/NETWORKS.md client/SCENES.md deploy/CHANGELOG.md
  deploy/COMPATIBILITY.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT daemon)
install(FILES configs/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME CONFIGURATION.md
        COMPONENT daemon)
install(FILES configs/voxeld.json DESTINATION ${voxeld_data_dir} COMPONENT daemon)
install(DIRECTORY configs/networks DESTINATION ${voxeld_data_dir} COMPONENT daemon)
install(DIRECTORY configs/import DESTINATION ${voxeld_data_dir} COMPONENT daemon
        FILES_MATCHING PATTERN "*.py" PATTERN "__pycache__" EXCLUDE)
install(FILES deploy/monitoring/voxeld_rules.yml DESTINATION ${voxeld_data_dir}/monitoring
        COMPONENT daemon)
# The units name the daemon by its path, which is known as the files are installed.
install(SCRIPT ${CMAKE_CURRENT_BINARY_DIR}/install_units.cmake COMPONENT daemon)
configure_file(deploy/install_units.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/install_units.cmake @ONLY)
