// SPDX-License-Identifier: Apache-2.0
/* Keys and values from files. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/voxelctl/map/map_commands.h"

enum {
    FIRST_BYTES = 65536
};

static int failed(const char *path, const char *what)
{
    (void)fprintf(stderr, "voxelctl: %s: %s\n", path, what);
    return CTL_FAILED;
}

static int read_stream(FILE *stream, const char *path, uint8_t **out, size_t *n_bytes)
{
    size_t capacity = FIRST_BYTES;
    uint8_t *bytes = malloc(capacity);
    size_t used = 0;

    while (bytes != NULL) {
        used += fread(bytes + used, 1, capacity - used, stream);
        if (used < capacity) {
            break;
        }
        uint8_t *grown = capacity < SIZE_MAX / 2 ? realloc(bytes, capacity * 2) : NULL;

        if (grown == NULL) {
            free(bytes);
        }
        bytes = grown;
        capacity *= 2;
    }
    if (bytes == NULL) {
        return failed(path, "no memory for what is in it");
    }
    if (ferror(stream) != 0) {
        free(bytes);
        return failed(path, "cannot read it");
    }
    *out = bytes;
    *n_bytes = used;
    return CTL_OK;
}

bool ctl_has_ending(const char *path, const char *ending)
{
    size_t n = strlen(path);

    return n > strlen(ending) && strcmp(path + n - strlen(ending), ending) == 0;
}

static const char *name_of(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

int ctl_read_file(const char *path, uint8_t **out, size_t *n_bytes)
{
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *stream = is_stdin ? stdin : fopen(path, "rbe");
    int result;

    *out = NULL;
    if (stream == NULL) {
        return failed(path, strerror(errno));
    }
    result = read_stream(stream, name_of(path), out, n_bytes);
    if (!is_stdin) {
        (void)fclose(stream);
    }
    return result;
}

int ctl_map_read(const char *path, enum voxeld_dtype text_dtype,
                 struct ctl_map_array *out)
{
    struct vxd_err err = {0};
    size_t n_bytes = 0;
    enum vxd_status status;
    int result;

    memset(out, 0, sizeof *out);
    result = ctl_read_file(path, &out->bytes, &n_bytes);
    if (result != CTL_OK) {
        return result;
    }
    status = ctl_has_ending(path, ".npy")
                 ? vxd_npy_parse_array(out->bytes, n_bytes, &out->array, &err)
                 : vxd_text_parse_array(out->bytes, n_bytes, (enum vxd_dtype)text_dtype,
                                        &out->array, &err);
    return status == VXD_OK ? CTL_OK : failed(name_of(path), err.message);
}

void ctl_map_array_clear(struct ctl_map_array *array)
{
    vxd_array_file_clear(&array->array);
    free(array->bytes);
    array->bytes = NULL;
}

struct voxeld_array ctl_map_view(const struct ctl_map_array *array, const char *name)
{
    return (struct voxeld_array){.name = name,
                                 .dtype = (enum voxeld_dtype)array->array.dtype,
                                 .data = array->array.data,
                                 .n = array->array.n,
                                 .n_elements = array->array.n_elements};
}
