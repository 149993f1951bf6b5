# SPDX-License-Identifier: Apache-2.0
if(TARGET voxeld_server)
  voxeld_add_fuzz(NAME fuzz_config SOURCES fuzz/fuzz_config.c
                  LIBRARIES voxeld_server CORPUS fuzz/corpus/config)
endif()
