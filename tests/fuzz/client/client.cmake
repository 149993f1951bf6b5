# SPDX-License-Identifier: Apache-2.0
foreach(name bin convert las mesh npy npz pcd ply)
  voxeld_add_fuzz(NAME fuzz_${name} SOURCES fuzz/client/fuzz_${name}.c
                  LIBRARIES voxeld_files CORPUS fuzz/corpus/${name})
endforeach()
foreach(name png jpeg)
  voxeld_add_fuzz(NAME fuzz_${name} SOURCES fuzz/client/fuzz_${name}.c
                  LIBRARIES voxeld_image CORPUS fuzz/corpus/${name})
endforeach()
voxeld_add_fuzz(NAME fuzz_direct SOURCES fuzz/client/fuzz_direct.c
                LIBRARIES voxeld_client_static voxeld_schema CORPUS fuzz/corpus/direct)
