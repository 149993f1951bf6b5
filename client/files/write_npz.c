// SPDX-License-Identifier: Apache-2.0
/* Writes NumPy's .npz with stored members; npz.c describes it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/files/files.h"
#include "client/files/writer.h"

enum {
    DOS_DATE = 33, /* 1 January 1980: equal input gives equal bytes */
    ZIP_VERSION = 20,
    ENTRY_BYTES = 46,
    MAX_NAME_BYTES = 200,
    MAX_AXES = 2
};

static const char suffix[] = ".npy";

struct member {
    const char *name; /* without the suffix */
    uint32_t crc;
    uint32_t n_bytes;
    uint32_t begin; /* of its local header */
};

static uint16_t name_bytes(const struct member *member)
{
    return (uint16_t)(strlen(member->name) + sizeof suffix - 1);
}

static void put_name(struct vxd_sink *sink, const struct member *member)
{
    vxd_sink_put(sink, member->name, strlen(member->name));
    vxd_sink_put(sink, suffix, sizeof suffix - 1);
}

/* Writes what the local header and the directory entry have in common, from "version
 * needed" on. */
static void put_common(struct vxd_sink *sink, const struct member *member)
{
    vxd_sink_put_u16(sink, ZIP_VERSION);
    vxd_sink_put_u16(sink, 0); /* flags */
    vxd_sink_put_u16(sink, 0); /* stored */
    vxd_sink_put_u16(sink, 0); /* time */
    vxd_sink_put_u16(sink, DOS_DATE);
    vxd_sink_put_u32(sink, member->crc);
    vxd_sink_put_u32(sink, member->n_bytes);
    vxd_sink_put_u32(sink, member->n_bytes);
    vxd_sink_put_u16(sink, name_bytes(member));
    vxd_sink_put_u16(sink, 0); /* extra */
}

static void put_local(struct vxd_sink *sink, const struct member *member)
{
    vxd_sink_put(sink, "PK\x03\x04", 4);
    put_common(sink, member);
    put_name(sink, member);
}

static void put_directory(struct vxd_sink *sink, const struct member *members, size_t n)
{
    uint32_t begin = (uint32_t)sink->n_bytes;
    uint32_t n_bytes = 0;

    for (size_t i = 0; i < n; i++) {
        vxd_sink_put(sink, "PK\x01\x02", 4);
        vxd_sink_put_u16(sink, ZIP_VERSION); /* made by */
        put_common(sink, &members[i]);
        vxd_sink_put_u16(sink, 0); /* comment */
        vxd_sink_put_u16(sink, 0); /* disk */
        vxd_sink_put_u16(sink, 0); /* attributes */
        vxd_sink_put_u32(sink, 0);
        vxd_sink_put_u32(sink, members[i].begin);
        put_name(sink, &members[i]);
        n_bytes += ENTRY_BYTES + name_bytes(&members[i]);
    }
    vxd_sink_put(sink, "PK\x05\x06", 4);
    vxd_sink_put_u32(sink, 0); /* disks */
    vxd_sink_put_u16(sink, (uint16_t)n);
    vxd_sink_put_u16(sink, (uint16_t)n);
    vxd_sink_put_u32(sink, n_bytes);
    vxd_sink_put_u32(sink, begin);
    vxd_sink_put_u16(sink, 0); /* comment */
}

/* A member's length and sum come before it, and a stream may be a pipe. So the member
 * is made twice, the first time only for these. */
static enum vxd_status
measure(enum vxd_status (*put)(struct vxd_sink *sink, const void *context,
                               struct vxd_err *err),
        const void *context, uint64_t begin, struct member *member, struct vxd_err *err)
{
    struct vxd_sink dry;
    enum vxd_status status = vxd_sink_open(&dry, NULL, err);

    if (status != VXD_OK) {
        return status;
    }
    status = put(&dry, context, err);
    member->crc = vxd_sink_take_crc(&dry);
    VXD_TRY(vxd_sink_close(&dry, status, err));
    /* Headers and directory fit in what is left. */
    if (dry.n_bytes > UINT32_MAX - (UINT32_MAX >> 8) ||
        begin > UINT32_MAX - (UINT32_MAX >> 8) - dry.n_bytes) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "out",
                        "%" PRIu64 " bytes; .npz files hold less than 4 GiB here",
                        begin + dry.n_bytes);
    }
    member->n_bytes = (uint32_t)dry.n_bytes;
    member->begin = (uint32_t)begin;
out:
    return status;
}

static enum vxd_status put_table(struct vxd_sink *sink, const void *context,
                                 struct vxd_err *err)
{
    struct vxd_table table = *(const struct vxd_table *)context;

    return vxd_npy_put(sink, &table, err);
}

enum vxd_status vxd_npz_put(struct vxd_sink *sink, struct vxd_table *table,
                            struct vxd_err *err)
{
    struct member member = {.name = "points"};
    enum vxd_status status;

    VXD_TRY(measure(put_table, table, sink->n_bytes, &member, err));
    put_local(sink, &member);
    VXD_TRY(vxd_npy_put(sink, table, err));
    put_directory(sink, &member, 1);
out:
    return status;
}

static enum vxd_status put_array(struct vxd_sink *sink, const void *context,
                                 struct vxd_err *err)
{
    const struct vxd_write_array *array = context;
    const char *type = vxd_npy_type(array->dtype);
    char descr[16];
    size_t n_bytes = vxd_dtype_bytes(array->dtype);

    if (type == NULL || array->n_axes > MAX_AXES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, array->name,
                        "NumPy has no such type, or more than %d axes", MAX_AXES);
    }
    for (size_t i = 0; i < array->n_axes; i++) {
        n_bytes *= array->shape[i]; /* what is in memory */
    }
    (void)snprintf(descr, sizeof descr, "'%s'", type);
    vxd_npy_put_header(sink, descr, array->shape, array->n_axes);
    vxd_sink_put(sink, array->data, n_bytes);
    return VXD_OK;
}

enum vxd_status vxd_npz_write(FILE *stream, const struct vxd_write_array *arrays,
                              size_t n_arrays, struct vxd_err *err)
{
    struct vxd_sink sink = {0};
    struct member *members = calloc(n_arrays > 0 ? n_arrays : 1, sizeof *members);
    enum vxd_status status;

    if (members == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "out", "no memory for %zu arrays",
                        n_arrays);
    }
    VXD_TRY(vxd_sink_open(&sink, stream, err));
    for (size_t i = 0; i < n_arrays && status == VXD_OK; i++) {
        members[i].name = arrays[i].name;
        if (strlen(arrays[i].name) >= MAX_NAME_BYTES || n_arrays > UINT16_MAX) {
            status = vxd_fail(err, VXD_INVALID_ARGUMENT, "out",
                              "%zu arrays, or a name of %d bytes or more", n_arrays,
                              MAX_NAME_BYTES);
        } else {
            status = measure(put_array, &arrays[i], sink.n_bytes, &members[i], err);
        }
        if (status == VXD_OK) {
            put_local(&sink, &members[i]);
            status = put_array(&sink, &arrays[i], err);
        }
    }
    if (status == VXD_OK) {
        put_directory(&sink, members, n_arrays);
    }
    status = vxd_sink_close(&sink, status, err);
out:
    free(members);
    return status;
}
