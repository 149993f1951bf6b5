// SPDX-License-Identifier: Apache-2.0
/* The reader of LAS: whatever the bytes, an error with a code and a message, or points
 * that lie where they should. */
#include "tests/fuzz/client/fuzz_cloud.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_cloud("las", data, size);
    return 0;
}
