// SPDX-License-Identifier: Apache-2.0
/* The readers of headerless records, KITTI's and nuScenes'. */
#include "tests/fuzz/client/fuzz_cloud.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_cloud("kitti", data, size);
    fuzz_cloud("nuscenes", data, size);
    return 0;
}
