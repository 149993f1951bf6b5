// SPDX-License-Identifier: Apache-2.0
/* The reader of PNG pictures: whatever the bytes, an error with a code and a message, or a picture
 * within the limits. */
#include "tests/fuzz/client/fuzz_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_image(vxd_png_decode, data, size);
    return 0;
}
