// SPDX-License-Identifier: Apache-2.0
#include "client/files/files.h"

#include <stdlib.h>
#include <string.h>

#include "client/files/writer.h"

enum {
    MAX_AXES = 8
};

/* The element types of a format besides 8- to 32-bit integers, float32 and float64. */
enum {
    HAS_INT64 = 1,
    HAS_FLOAT16 = 2,
    HAS_FEW = 4 /* the format holds some fields only, and its writer marks those */
};

struct writer {
    const char *format;
    unsigned has;
    enum vxd_status (*put)(struct vxd_sink *sink, struct vxd_table *table,
                           struct vxd_err *err);
};

static const struct writer writers[] = {
    {"pcd", HAS_INT64, vxd_pcd_put_binary},
    {"pcd-ascii", HAS_INT64, vxd_pcd_put_ascii},
    {"pcd-compressed", HAS_INT64, vxd_pcd_put_compressed},
    {"ply", 0, vxd_ply_put_little},
    {"ply-ascii", 0, vxd_ply_put_ascii},
    {"ply-big", 0, vxd_ply_put_big},
    {"npy", HAS_INT64 | HAS_FLOAT16, vxd_npy_put},
    {"npz", HAS_INT64 | HAS_FLOAT16, vxd_npz_put},
    {"las", HAS_INT64 | HAS_FEW, vxd_las_put},
    {"kitti", HAS_INT64 | HAS_FEW, vxd_kitti_put},
    {"nuscenes", HAS_INT64 | HAS_FEW, vxd_nuscenes_put},
};

enum {
    N_WRITERS = sizeof writers / sizeof writers[0]
};

const char *vxd_cloud_file_write_format(size_t i)
{
    return i < N_WRITERS ? writers[i].format : NULL;
}

static const struct writer *find(const char *format)
{
    for (size_t i = 0; i < N_WRITERS; i++) {
        if (strcmp(writers[i].format, format) == 0) {
            return &writers[i];
        }
    }
    return NULL;
}

static enum vxd_dtype stored_type(const struct vxd_file_field *field, unsigned has)
{
    bool scaled = field->scale != 1 || field->bias != 0;

    switch (field->dtype) {
    case VXD_INT64:
    case VXD_UINT64:
        return scaled || (has & HAS_INT64) == 0 ? VXD_FLOAT64 : field->dtype;
    case VXD_FLOAT16:
        return scaled                     ? VXD_FLOAT64
               : (has & HAS_FLOAT16) == 0 ? VXD_FLOAT32
                                          : VXD_FLOAT16;
    case VXD_BFLOAT16:
        return scaled ? VXD_FLOAT64 : VXD_FLOAT32;
    default:
        return scaled ? VXD_FLOAT64 : field->dtype;
    }
}

/* In a header, blanks would end a name, and quotes and backslashes would end a string. */
static void plain_name(const char *name, char *out)
{
    size_t i = 0;

    for (; name[i] != '\0' && i + 1 < VXD_FILE_NAME_BYTES; i++) {
        bool bad = name[i] <= ' ' || name[i] > '~' || strchr("'\"\\", name[i]) != NULL;

        out[i] = bad ? '_' : name[i];
    }
    out[i] = '\0';
}

static enum vxd_status fill(struct vxd_table *table, const struct vxd_cloud_file *file,
                            const struct writer *writer,
                            char names[VXD_FILE_MAX_FIELDS][VXD_FILE_NAME_BYTES],
                            struct vxd_err *err)
{
    for (size_t i = 0; i < file->n_fields; i++) {
        const struct vxd_file_field *field = &file->fields[i];

        plain_name(field->name, names[i]);
        for (size_t k = 0; k < i; k++) {
            if (strcmp(names[k], names[i]) == 0) {
                return vxd_fail(err, VXD_INVALID_ARGUMENT, "out",
                                "two fields would be called \"%s\"", names[i]);
            }
        }
        table->columns[i] = (struct vxd_column){
            .name = names[i],
            .from = field->dtype,
            .to = stored_type(field, writer->has),
            .scale = field->scale,
            .bias = field->bias,
            .data = file->data + field->offset,
            .stride_bytes = file->point_step,
            .used = (writer->has & HAS_FEW) == 0,
        };
    }
    table->n_columns = file->n_fields;
    table->n_rows = file->n_points;
    table->n_written = file->n_points;
    return VXD_OK;
}

enum vxd_status vxd_cloud_file_write(FILE *stream, const char *format,
                                     const struct vxd_cloud_file *file,
                                     struct vxd_write_result *result, struct vxd_err *err)
{
    const struct writer *writer = find(format);
    char names[VXD_FILE_MAX_FIELDS][VXD_FILE_NAME_BYTES];
    struct vxd_column columns[VXD_FILE_MAX_FIELDS];
    struct vxd_table table = {.columns = columns};
    struct vxd_sink sink;
    enum vxd_status status;

    memset(result, 0, sizeof *result);
    if (writer == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "format",
                        "\"%.32s\" cannot be written; known: pcd, pcd-ascii, "
                        "pcd-compressed, ply, ply-ascii, ply-big, npy, npz, las, kitti, "
                        "nuscenes",
                        format);
    }
    VXD_TRY(fill(&table, file, writer, names, err));
    VXD_TRY(vxd_sink_open(&sink, stream, err));
    status = writer->put(&sink, &table, err);
    VXD_TRY(vxd_sink_close(&sink, status, err));
    result->n_points = table.n_written;
    for (size_t i = 0; i < table.n_columns; i++) {
        result->kept[i] = columns[i].used;
    }
out:
    return status;
}

enum vxd_status vxd_ply_write(FILE *stream, const struct vxd_write_column *columns,
                              size_t n_columns, size_t n_rows, struct vxd_err *err)
{
    struct vxd_table table = {.n_columns = n_columns, .n_rows = n_rows};
    struct vxd_sink sink;
    enum vxd_status status;

    table.columns = calloc(n_columns > 0 ? n_columns : 1, sizeof *table.columns);
    if (table.columns == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "out", "no memory for %zu columns",
                        n_columns);
    }
    for (size_t i = 0; i < n_columns; i++) {
        table.columns[i] = (struct vxd_column){.name = columns[i].name,
                                               .from = columns[i].dtype,
                                               .to = columns[i].dtype,
                                               .scale = 1,
                                               .data = columns[i].data,
                                               .stride_bytes = columns[i].stride_bytes};
    }
    VXD_TRY(vxd_sink_open(&sink, stream, err));
    status = vxd_ply_put_little(&sink, &table, err);
    status = vxd_sink_close(&sink, status, err);
out:
    free(table.columns);
    return status;
}

enum vxd_status vxd_npy_write(FILE *stream, enum vxd_dtype dtype, const size_t *shape,
                              size_t n_axes, const void *data, struct vxd_err *err)
{
    const char *type = vxd_npy_type(dtype);
    size_t n_bytes = vxd_dtype_bytes(dtype);
    char descr[16];
    struct vxd_sink sink;
    enum vxd_status status;

    if (type == NULL || n_axes > MAX_AXES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "out",
                        "a type that NumPy does not have, or more than %d axes",
                        MAX_AXES);
    }
    for (size_t i = 0; i < n_axes; i++) {
        if (!vxd_size_mul(n_bytes, shape[i], &n_bytes)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "out", "the array is too large");
        }
    }
    (void)snprintf(descr, sizeof descr, "'%s'", type);
    VXD_TRY(vxd_sink_open(&sink, stream, err));
    vxd_npy_put_header(&sink, descr, shape, n_axes);
    vxd_sink_put(&sink, data, n_bytes);
    status = vxd_sink_close(&sink, VXD_OK, err);
out:
    return status;
}
