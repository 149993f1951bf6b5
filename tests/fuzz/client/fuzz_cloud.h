// SPDX-License-Identifier: Apache-2.0
/* What the fuzz targets of all readers check. */
#ifndef VXD_TESTS_FUZZ_CLIENT_FUZZ_CLOUD_H
#define VXD_TESTS_FUZZ_CLIENT_FUZZ_CLOUD_H

#include <assert.h>
#include <string.h>

#include "client/files/files.h"

enum {
    FUZZ_BUDGET = 8 * 1024 * 1024
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_cloud(const char *format, const uint8_t *data, size_t size)
{
    struct vxd_cloud_file file;
    struct vxd_err err = {0};
    enum vxd_status status =
        vxd_cloud_file_parse(format, data, size, FUZZ_BUDGET, &file, &err);
    unsigned sum = 0;

    if (status != VXD_OK) {
        assert(status == VXD_INVALID_ARGUMENT || status == VXD_RESOURCE_EXHAUSTED);
        assert(err.code == status && err.message[0] != '\0');
        assert(file.owned == NULL && file.n_points == 0);
        return;
    }
    assert(file.n_fields >= 3 && file.n_fields <= VXD_FILE_MAX_FIELDS);
    assert(file.point_step >= 3 && file.point_step <= 65535);
    for (size_t i = 0; i < file.n_fields; i++) {
        size_t n_bytes = vxd_dtype_bytes(file.fields[i].dtype);

        assert(n_bytes > 0 && file.fields[i].offset + n_bytes <= file.point_step);
        assert(file.fields[i].name[0] != '\0');
    }
    if (file.owned == NULL && file.n_points > 0) {
        assert(file.data >= data && file.data <= data + size);
        assert(file.n_points <= (size_t)(data + size - file.data) / file.point_step);
    } else if (file.owned != NULL) {
        assert(file.n_points <= FUZZ_BUDGET / file.point_step);
    }
    /* The sanitizers watch. */
    for (size_t i = 0; i < file.n_points * file.point_step; i++) {
        sum += file.data[i];
    }
    assert(sum != UINT32_MAX);
    vxd_cloud_file_clear(&file);
}

#endif
