// SPDX-License-Identifier: Apache-2.0
/* What the fuzz targets of both picture codecs check. */
#ifndef VXD_TESTS_FUZZ_CLIENT_FUZZ_IMAGE_H
#define VXD_TESTS_FUZZ_CLIENT_FUZZ_IMAGE_H

#include <assert.h>

#include "client/files/image/files_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef enum vxd_status fuzz_decode(const uint8_t *bytes, size_t n_bytes,
                                    const struct vxd_image_limits *limits,
                                    struct vxd_image *image, struct vxd_err *err);

static void fuzz_image(fuzz_decode *decode, const uint8_t *data, size_t size)
{
    /* Small, so that the time goes into the bytes and not into large pictures. */
    const struct vxd_image_limits limits = {512, 512, 512 * 1024};
    struct vxd_image image;
    struct vxd_err err = {0};
    enum vxd_status status = decode(data, size, &limits, &image, &err);
    unsigned sum = 0;

    if (status != VXD_OK) {
        assert(status == VXD_INVALID_ARGUMENT || status == VXD_RESOURCE_EXHAUSTED);
        assert(err.code == status && err.message[0] != '\0');
        assert(image.data == NULL && image.n_bytes == 0);
        return;
    }
    assert(image.width >= 1 && image.width <= limits.max_width);
    assert(image.height >= 1 && image.height <= limits.max_height);
    assert(image.n_bytes ==
           (size_t)image.width * image.height * image.n_channels * image.sample_bytes);
    assert(image.n_bytes <= limits.max_bytes);
    /* The sanitizers watch. */
    for (size_t i = 0; i < image.n_bytes; i++) {
        sum += ((const uint8_t *)image.data)[i];
    }
    assert(sum != UINT32_MAX);
    vxd_image_clear(&image);
}

#endif
