// SPDX-License-Identifier: Apache-2.0
/* The reader of zip archives of NumPy arrays: whatever the bytes, an error with a code and a message, or points
 * that lie where they should. */
#include "tests/fuzz/client/fuzz_cloud.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_cloud("npz", data, size);
    return 0;
}
