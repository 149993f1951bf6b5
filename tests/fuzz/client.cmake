# SPDX-License-Identifier: Apache-2.0
foreach(reader bin npy npz pcd ply)
  voxeld_add_fuzz(NAME fuzz_${reader} SOURCES fuzz/fuzz_${reader}.c
                  LIBRARIES voxeld_files CORPUS fuzz/corpus/${reader})
endforeach()
