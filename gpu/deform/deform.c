// SPDX-License-Identifier: Apache-2.0
/* Control grids as objects. A grid is small, so its table is made on the host. */
#include <stdlib.h>

#include "gpu/deform/deform_internal.h"

static enum vxd_status check_lattice(const struct vxd_deform_lattice *lattice,
                                     struct vxd_err *err)
{
    if (!(lattice->cell_m >= 1e-3 && lattice->cell_m <= 1000)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "cell_m",
                        "is %g metres, must be 0.001 to 1000", lattice->cell_m);
    }
    for (int i = 0; i < 3; i++) {
        if (!(fabs(lattice->origin_m[i]) <= 1e9)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "origin_m",
                            "component %d is %g metres, must be within +-1e9", i,
                            lattice->origin_m[i]);
        }
    }
    return VXD_OK;
}

static enum vxd_status check_map(const struct vxd_hashmap_spec *spec, int array,
                                 struct vxd_err *err)
{
    if (spec->n_components != 3 || spec->key_dtype != VXD_INT32) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "map",
                        "has keys of %d components, a control grid has 3 of int32",
                        spec->n_components);
    }
    if (array < 0 || array >= spec->n_values ||
        spec->values[array].dtype != VXD_FLOAT32 || spec->values[array].n_elements != 3) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "map",
                        "has no offsets: a value array of 3 float32 a control point");
    }
    return VXD_OK;
}

/* Checks a control point and puts it into the table. */
static enum vxd_status put_point(struct vxd_deform_slot *table, uint32_t mask,
                                 const int32_t *key, const float *offset, int32_t entry,
                                 struct vxd_err *err)
{
    uint64_t tag;
    uint32_t slot;

    for (int i = 0; i < 3; i++) {
        if (key[i] < -VXD_DEFORM_LIMIT || key[i] > VXD_DEFORM_LIMIT) {
            return vxd_fail(
                err, VXD_INVALID_ARGUMENT, "map",
                "has the control point (%d, %d, %d), keys must be within +-%d",
                (int)key[0], (int)key[1], (int)key[2], VXD_DEFORM_LIMIT);
        }
        if (!(fabsf(offset[i]) <= (float)VXD_DEFORM_MAX_OFFSET_M)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "map",
                            "has an offset of %g metres at (%d, %d, %d), must be finite "
                            "and within +-%g",
                            (double)offset[i], (int)key[0], (int)key[1], (int)key[2],
                            VXD_DEFORM_MAX_OFFSET_M);
        }
    }
    tag = vxd_deform_tag(key[0], key[1], key[2]);
    slot = vxd_deform_hash(tag) & mask;
    while (table[slot].tag != UINT64_MAX) {
        slot = (slot + 1) & mask;
    }
    table[slot] = (struct vxd_deform_slot){tag, entry, 0};
    return VXD_OK;
}

/* Fills in a grid from a map's image. Blocking. */
static enum vxd_status fill(struct vxd_queue *queue, struct vxd_deform *deform,
                            const struct vxd_hashmap_image *image, int array,
                            struct vxd_err *err)
{
    struct vxd_context *context = vxd_queue_context(queue);
    const int32_t *keys = image->keys.ptr;
    const float *offsets = image->values[array].ptr;
    struct vxd_buffer host = {NULL, 0, VXD_SPACE_HOST};
    struct vxd_deform_slot *table;
    enum vxd_status status;

    deform->n_points = image->n_entries;
    deform->n_slots = 16;
    while (deform->n_slots < 2 * image->n_entries) {
        deform->n_slots *= 2;
    }
    VXD_TRY(vxd_host_alloc(context, deform->n_slots * sizeof *table, &host, err));
    table = host.ptr;
    memset(table, 0xff, host.n_bytes);
    for (size_t i = 0; i < image->n_entries; i++) {
        VXD_TRY(put_point(table, (uint32_t)deform->n_slots - 1, keys + 3 * i,
                          offsets + 3 * i, (int32_t)i, err));
    }
    VXD_TRY(vxd_device_alloc(queue, host.n_bytes, &deform->table, err));
    VXD_TRY(vxd_device_alloc(queue, image->n_entries * 3 * sizeof(float),
                             &deform->offsets, err));
    VXD_TRY(vxd_queue_copy(queue, deform->table.ptr, table, host.n_bytes, err));
    if (image->n_entries > 0) {
        VXD_TRY(vxd_queue_copy(queue, deform->offsets.ptr, offsets,
                               deform->offsets.n_bytes, err));
    }
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    if (status != VXD_OK) { /* a copy that was queued reads the host's arrays */
        (void)vxd_queue_wait(queue, NULL);
    }
    vxd_host_free(context, &host);
    return status;
}

enum vxd_status vxd_deform_create(struct vxd_queue *queue, const struct vxd_hashmap *map,
                                  int array, const struct vxd_deform_lattice *lattice,
                                  struct vxd_deform **out, struct vxd_err *err)
{
    struct vxd_hashmap_image image = {0};
    struct vxd_deform *deform = NULL;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(check_lattice(lattice, err));
    VXD_TRY(check_map(vxd_hashmap_get_spec(map), array, err));
    deform = calloc(1, sizeof *deform);
    if (deform == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory");
    }
    deform->lattice = *lattice;
    VXD_TRY(vxd_hashmap_export(queue, map, &image, err));
    if (image.n_entries > VXD_DEFORM_MAX_POINTS) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "map",
                         "has %zu control points, at most %zu are possible",
                         image.n_entries, VXD_DEFORM_MAX_POINTS));
    }
    VXD_TRY(fill(queue, deform, &image, array, err));
    *out = deform;
out:
    vxd_hashmap_image_free(&image);
    if (status != VXD_OK) {
        vxd_deform_destroy(queue, deform);
    }
    return status;
}

void vxd_deform_destroy(struct vxd_queue *queue, struct vxd_deform *deform)
{
    if (deform != NULL) {
        vxd_device_free(queue, &deform->offsets);
        vxd_device_free(queue, &deform->table);
        free(deform);
    }
}

void vxd_deform_get_view(const struct vxd_deform *deform, struct vxd_deform_view *out)
{
    *out = (struct vxd_deform_view){.table = deform->table.ptr,
                                    .table_mask = (uint32_t)deform->n_slots - 1,
                                    .offsets = deform->offsets.ptr,
                                    .cell = deform->lattice.cell_m};
    memcpy(out->origin, deform->lattice.origin_m, sizeof out->origin);
}

size_t vxd_deform_n_points(const struct vxd_deform *deform)
{
    return deform->n_points;
}

/* ---- Apply ---- */

static bool is_pose(const struct vxd_deform_pose *pose)
{
    bool is = true;

    for (int i = 0; i < 9; i++) {
        is = is && fabs(pose->rotation[i]) <= 1e3;
    }
    for (int i = 0; i < 3; i++) {
        is = is && fabs(pose->translation[i]) <= 1e9;
    }
    return is;
}

enum vxd_status vxd_deform_apply(struct vxd_queue *queue, const struct vxd_deform *deform,
                                 const struct vxd_deform_apply_args *args,
                                 struct vxd_err *err)
{
    struct vxd_deform_call call = {.args = *args};

    if (!is_pose(&args->T_grid_in) || !is_pose(&args->T_out_grid)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT,
                        is_pose(&args->T_grid_in) ? "T_out_grid" : "T_grid_in",
                        "is not finite");
    }
    if (args->n > INT32_MAX) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n",
                        "is %zu points, at most 2147483647 are possible", args->n);
    }
    if ((args->normals != NULL) != (args->out_normals != NULL)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "normals",
                        "go in and out together, or not at all");
    }
    if (args->n == 0) {
        return VXD_OK;
    }
    vxd_deform_get_view(deform, &call.view);
    return VXD_BACKEND_FN(queue, vxd_deform_apply)(queue, &call, err);
}
