// SPDX-License-Identifier: Apache-2.0
/* Arrays in files, and the names of their types. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/voxelctl/cli/cli.h"

enum {
    FIRST_BYTES = 65536,
    MAX_PRINTED = 100 /* rows; a file takes more */
};

static const char *const dtype_names[] = {
    "?",       "int8",    "uint8", "int16",  "uint16",  "int32",   "uint32",
    "float32", "float64", "int64", "uint64", "float16", "bfloat16"};

enum {
    N_DTYPES = sizeof dtype_names / sizeof dtype_names[0]
};

const char *ctl_dtype_name(enum voxeld_dtype dtype)
{
    size_t i = (size_t)dtype;

    return dtype_names[i < N_DTYPES ? i : 0];
}

bool ctl_parse_dtype(const char *text, size_t n, enum voxeld_dtype *out)
{
    for (size_t i = 1; i < N_DTYPES; i++) {
        if (strlen(dtype_names[i]) == n && memcmp(dtype_names[i], text, n) == 0) {
            *out = (enum voxeld_dtype)i;
            return true;
        }
    }
    return false;
}

static int failed(const char *path, const char *what)
{
    (void)ctl_error("%s: %s", path, what);
    return CTL_FAILED;
}

static const char *name_of(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

static int read_stream(FILE *stream, const char *path, uint8_t **out, size_t *n_bytes)
{
    struct ctl_progress *progress = ctl_progress_begin_reading(path);
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
    ctl_progress_end(progress);
    if (bytes == NULL) {
        return failed(name_of(path), "no memory for what is in it");
    }
    if (ferror(stream) != 0) {
        free(bytes);
        return failed(name_of(path), "cannot read it");
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

bool ctl_is_array_file(const char *path)
{
    return ctl_has_ending(path, ".npy") || ctl_has_ending(path, ".npz");
}

int ctl_read_file(const char *path, uint8_t **out, size_t *n_bytes)
{
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *stream = is_stdin ? stdin : fopen(path, "rbe");
    int result;

    *out = NULL;
    if (stream == NULL) {
        return errno == ENOENT && path[strspn(path, "0123456789.,+-")] == '\0'
                   ? ctl_error("%s: neither as many numbers as are needed here (x,y,z, "
                               "say, without blanks) nor a local file",
                               path)
                   : ctl_cannot_read(path, strerror(errno));
    }
    result = read_stream(stream, path, out, n_bytes);
    if (!is_stdin) {
        (void)fclose(stream);
    }
    return result;
}

int ctl_array_read(const char *path, enum voxeld_dtype text_dtype, struct ctl_array *out)
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

void ctl_array_clear(struct ctl_array *array)
{
    vxd_array_file_clear(&array->array);
    free(array->bytes);
    array->bytes = NULL;
}

struct voxeld_array ctl_array_view(const struct ctl_array *array, const char *name)
{
    return (struct voxeld_array){.name = name,
                                 .dtype = (enum voxeld_dtype)array->array.dtype,
                                 .data = array->array.data,
                                 .n = array->array.n,
                                 .n_elements = array->array.n_elements};
}

int ctl_rows_read(const char *word, bool whole, struct ctl_rows *out)
{
    size_t n = ctl_parse_doubles(word, out->numbers, CTL_ROW_NUMBERS);

    memset(&out->file, 0, sizeof out->file);
    if (n < 3) {
        int result =
            ctl_array_read(word, whole ? VOXELD_INT64 : VOXELD_FLOAT64, &out->file);

        out->array = ctl_array_view(&out->file, NULL);
        return result;
    }
    out->array = (struct voxeld_array){
        .dtype = VOXELD_FLOAT64, .data = out->numbers, .n = 1, .n_elements = n};
    for (size_t i = 0; i < n && whole; i++) {
        if (!(out->numbers[i] >= -1e15 && out->numbers[i] <= 1e15) ||
            out->numbers[i] != (double)(int64_t)out->numbers[i]) {
            (void)ctl_error("%s: whole numbers of voxels", word);
            return CTL_FAILED;
        }
        out->integers[i] = (int64_t)out->numbers[i];
        out->array.dtype = VOXELD_INT64;
        out->array.data = out->integers;
    }
    return CTL_OK;
}

void ctl_rows_clear(struct ctl_rows *rows)
{
    ctl_array_clear(&rows->file);
}

size_t ctl_rows_printed(size_t n, bool to_file)
{
    return to_file ? 0 : n < MAX_PRINTED ? n : MAX_PRINTED;
}

struct output {
    const char *path;
    const struct voxeld_array *arrays;
    size_t n;
};

static enum vxd_status write_output(FILE *file, void *context, struct vxd_err *err)
{
    const struct output *output = context;
    struct vxd_write_array arrays[CTL_MAX_WRITTEN] = {0};
    size_t n = output->n < CTL_MAX_WRITTEN ? output->n : CTL_MAX_WRITTEN;

    for (size_t i = 0; i < n; i++) {
        const struct voxeld_array *in = &output->arrays[i];

        arrays[i] = (struct vxd_write_array){
            .name = in->name,
            .dtype = (enum vxd_dtype)in->dtype,
            .shape = {in->n, in->n_elements > 0 ? in->n_elements : 1},
            .n_axes = in->n_elements > 1 ? 2 : 1,
            .data = in->data,
        };
    }
    return ctl_has_ending(output->path, ".npz")
               ? vxd_npz_write(file, arrays, n, err)
               : vxd_npy_write(file, arrays[0].dtype, arrays[0].shape, arrays[0].n_axes,
                               arrays[0].data, err);
}

int ctl_write_arrays(const char *path, const struct voxeld_array *arrays, size_t n)
{
    struct output output = {path, arrays, n};

    return ctl_write_file(path, write_output, &output);
}
