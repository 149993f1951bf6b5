// SPDX-License-Identifier: Apache-2.0
/* From any reader into any writer: what was read is written, or refused with a reason, and
 * what was written is read back. The first byte chooses the two. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "client/files/files.h"

enum {
    READ_BUDGET = 1 << 20,
    BACK_BUDGET = 64 << 20,
    MAX_POINTS = 20000 /* text takes its time */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *choose_writer(size_t choice)
{
    size_t n = 0;

    while (vxd_cloud_file_write_format(n) != NULL) {
        n++;
    }
    return vxd_cloud_file_write_format(choice % n);
}

static void read_back(const char *format, const struct vxd_cloud_file *was,
                      const struct vxd_write_result *result, const uint8_t *bytes,
                      size_t n_bytes)
{
    char reader[4] = "";
    bool few = strcmp(format, "las") == 0 || strcmp(format, "kitti") == 0 ||
               strcmp(format, "nuscenes") == 0;
    struct vxd_cloud_file is;
    enum vxd_status status;

    memcpy(reader, format, sizeof reader - 1); /* "pcd-ascii" is read as "pcd" */
    status = vxd_cloud_file_parse(few ? format : reader, bytes, n_bytes, BACK_BUDGET, &is,
                                  NULL);
    assert(status == VXD_OK);
    assert(is.n_points == result->n_points);
    assert(few || (is.n_points == was->n_points && is.n_fields == was->n_fields));
    vxd_cloud_file_clear(&is);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *const *readers = vxd_cloud_file_formats();
    size_t n_readers = 0;
    const char *format;
    struct vxd_cloud_file file;
    struct vxd_write_result result;
    struct vxd_err err = {0};
    char *memory = NULL;
    size_t n_memory = 0;
    FILE *stream;
    enum vxd_status status;

    while (readers[n_readers] != NULL) {
        n_readers++;
    }
    if (size == 0) {
        return 0;
    }
    format = choose_writer(data[0] / n_readers);
    if (vxd_cloud_file_parse(readers[data[0] % n_readers], data + 1, size - 1,
                             READ_BUDGET, &file, NULL) != VXD_OK) {
        return 0;
    }
    stream = file.n_points <= MAX_POINTS ? open_memstream(&memory, &n_memory) : NULL;
    if (stream != NULL) {
        status = vxd_cloud_file_write(stream, format, &file, &result, &err);
        assert(status == VXD_OK || status == VXD_INVALID_ARGUMENT);
        assert(status == VXD_OK || (err.code == status && err.message[0] != '\0'));
        (void)fclose(stream);
        if (status == VXD_OK) {
            read_back(format, &file, &result, (const uint8_t *)memory, n_memory);
        }
        free(memory);
    }
    vxd_cloud_file_clear(&file);
    return 0;
}
