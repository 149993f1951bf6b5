// SPDX-License-Identifier: Apache-2.0
#include "tests/support/svdag/svdag_run.h"
#include "gpu/svdag/edit/edit.h"

#include <stdlib.h>
#include <string.h>

struct vxd_svdag *gpu_svdag_create(struct gpu_env *env, const struct vxd_svdag_spec *spec)
{
    struct vxd_svdag *svdag = NULL;
    struct vxd_err err = {0};

    if (vxd_svdag_create(env->queue, spec, &svdag, &err) != VXD_OK) {
        (void)fprintf(stderr, "create: %s\n", err.message);
        exit(EXIT_FAILURE);
    }
    return svdag;
}

enum {
    MAX_SENT = 256 /* maximum number of arrays of an edit */
};

/* Device copies of lists. */
struct sent {
    struct vxd_buffer buffers[MAX_SENT];
    int n;
};

static const void *send_array(struct gpu_env *env, struct sent *sent, const void *array,
                              size_t n_bytes)
{
    if (array == NULL || n_bytes == 0) {
        return array;
    }
    if (sent->n == MAX_SENT) {
        (void)fprintf(stderr, "too many lists in one edit\n");
        exit(EXIT_FAILURE);
    }
    sent->buffers[sent->n] = gpu_to_device(env, array, n_bytes);
    return sent->buffers[sent->n++].ptr;
}

static void send_list(struct gpu_env *env, struct sent *sent,
                      struct vxd_svdag_voxels *list)
{
    size_t n_values = 0;

    for (size_t i = 0; i < list->n && list->values != NULL; i++) {
        n_values += (size_t)vxd_svdag_popc(list->masks[i]);
    }
    list->codes = send_array(env, sent, list->codes, list->n * sizeof *list->codes);
    list->masks = send_array(env, sent, list->masks, list->n * sizeof *list->masks);
    list->first_value =
        send_array(env, sent, list->first_value, list->n * sizeof *list->first_value);
    list->values = send_array(env, sent, list->values, n_values * sizeof *list->values);
}

/* Calls vxd_svdag_edit or vxd_svdag_edit_wait. */
typedef enum vxd_status edit_function(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                      uint32_t root, const struct vxd_svdag_op *ops,
                                      size_t n_ops, struct vxd_svdag_edit_result *out,
                                      struct vxd_err *err);

static enum vxd_status edit_by(edit_function *edit, struct gpu_env *env,
                               struct vxd_svdag *svdag, uint32_t root,
                               const struct vxd_svdag_op *ops, size_t n_ops,
                               struct vxd_svdag_edit_result *out, struct vxd_err *err)
{
    struct vxd_svdag_op *own = gpu_alloc((n_ops + 1) * sizeof *own);
    struct sent sent = {.n = 0};
    enum vxd_status status;

    for (size_t i = 0; i < n_ops; i++) {
        own[i] = ops[i];
        if (gpu_is_cuda(env) && own[i].shape.kind == VXD_SVDAG_VOXELS) {
            send_list(env, &sent, &own[i].shape.voxels);
        }
    }
    status = edit(env->queue, svdag, root, own, n_ops, out, err);
    status = status != VXD_OK ? status : vxd_queue_wait(env->queue, err);
    for (int i = 0; i < sent.n; i++) {
        vxd_device_free(env->queue, &sent.buffers[i]);
    }
    free(own);
    return status;
}

enum vxd_status gpu_svdag_edit(struct gpu_env *env, struct vxd_svdag *svdag,
                               uint32_t root, const struct vxd_svdag_op *ops,
                               size_t n_ops, struct vxd_svdag_edit_result *out,
                               struct vxd_err *err)
{
    return edit_by(vxd_svdag_edit_wait, env, svdag, root, ops, n_ops, out, err);
}

enum vxd_status gpu_svdag_try(struct gpu_env *env, struct vxd_svdag *svdag, uint32_t root,
                              const struct vxd_svdag_op *ops, size_t n_ops,
                              struct vxd_svdag_edit_result *out, struct vxd_err *err)
{
    return edit_by(vxd_svdag_edit, env, svdag, root, ops, n_ops, out, err);
}

/* Scans --------------------------------------------------------------------------------------- */

/* A malloc'ed copy of device memory. */
static void *fetch(struct gpu_env *env, const void *device, size_t n_bytes)
{
    void *host = gpu_alloc(n_bytes);
    struct vxd_err err = {0};

    if (vxd_queue_copy(env->queue, host, device, n_bytes, &err) != VXD_OK) {
        (void)fprintf(stderr, "fetch: %s\n", err.message);
        exit(EXIT_FAILURE);
    }
    gpu_wait(env);
    return host;
}

/* Brings a list's arrays to the host, and frees the device's. */
static void fetch_list(struct gpu_env *env, struct vxd_svdag_voxel_list *list)
{
    struct vxd_svdag_voxels *voxels = &list->voxels;
    size_t n_values = 0;

    if (voxels->n > 0) {
        voxels->codes = fetch(env, voxels->codes, voxels->n * sizeof *voxels->codes);
        voxels->masks = fetch(env, voxels->masks, voxels->n * sizeof *voxels->masks);
        for (size_t i = 0; i < voxels->n; i++) {
            n_values += (size_t)vxd_svdag_popc(voxels->masks[i]);
        }
    }
    if (voxels->n > 0 && voxels->values != NULL) {
        voxels->first_value =
            fetch(env, voxels->first_value, voxels->n * sizeof *voxels->first_value);
        voxels->values = fetch(env, voxels->values, n_values * sizeof *voxels->values);
    }
    vxd_device_free(env->queue, &list->memory);
}

/* The same for the ends of rays. */
static void fetch_ends(struct gpu_env *env, struct vxd_svdag_ray_ends *ends)
{
    const size_t n_bytes = ends->n * 3 * sizeof *ends->ends;

    if (ends->n > 0) {
        ends->ends = fetch(env, ends->ends, n_bytes);
        ends->origins = ends->origins != NULL ? fetch(env, ends->origins, n_bytes) : NULL;
    }
    vxd_device_free(env->queue, &ends->memory);
}

enum vxd_status gpu_svdag_scan(struct gpu_env *env, const struct vxd_svdag_format *format,
                               const struct vxd_svdag_scan *scan,
                               struct vxd_svdag_scan_result *out, struct vxd_err *err)
{
    /* No array is copied for a count of points that is above the limit of a scan. */
    bool is_sent = gpu_is_cuda(env) && scan->n <= (size_t)1 << 28;
    struct vxd_svdag_scan own = *scan;
    struct sent sent = {.n = 0};
    enum vxd_status status;

    if (is_sent) {
        own.points = send_array(env, &sent, scan->points, scan->n * 3 * sizeof(float));
        own.values = send_array(env, &sent, scan->values, scan->n * sizeof(uint16_t));
        own.origins = send_array(env, &sent, scan->origins, scan->n * 3 * sizeof(float));
    }
    status = vxd_svdag_scan_voxels(env->queue, format, &own, out, err);
    status = status != VXD_OK ? status : vxd_queue_wait(env->queue, err);
    for (int i = 0; i < sent.n; i++) {
        vxd_device_free(env->queue, &sent.buffers[i]);
    }
    if (gpu_is_cuda(env) && status == VXD_OK) {
        fetch_list(env, &out->hits);
        fetch_list(env, &out->passed);
        fetch_ends(env, &out->ends);
    }
    return status;
}

enum vxd_status gpu_svdag_list(struct gpu_env *env, const struct vxd_svdag_format *format,
                               const int32_t *voxels, const uint16_t *values, size_t n,
                               struct vxd_svdag_voxel_list *list, uint64_t *n_outside,
                               struct vxd_err *err)
{
    struct sent sent = {.n = 0};
    enum vxd_status status;

    if (gpu_is_cuda(env)) {
        voxels = send_array(env, &sent, voxels, n * 3 * sizeof *voxels);
        values = send_array(env, &sent, values, n * sizeof *values);
    }
    status = vxd_svdag_list_voxels(env->queue, format, voxels, values, n, list, n_outside,
                                   err);
    status = status != VXD_OK ? status : vxd_queue_wait(env->queue, err);
    for (int i = 0; i < sent.n; i++) {
        vxd_device_free(env->queue, &sent.buffers[i]);
    }
    if (gpu_is_cuda(env) && status == VXD_OK) {
        fetch_list(env, list);
    }
    return status;
}

void gpu_svdag_list_free(struct gpu_env *env, struct vxd_svdag_voxel_list *list)
{
    if (gpu_is_cuda(env) && list->voxels.n > 0) {
        free((void *)list->voxels.codes);
        free((void *)list->voxels.masks);
        free((void *)list->voxels.first_value);
        free((void *)list->voxels.values);
    }
    vxd_svdag_voxel_list_free(env->queue, list);
    gpu_wait(env);
}

void gpu_svdag_ends_free(struct gpu_env *env, struct vxd_svdag_ray_ends *ends)
{
    if (gpu_is_cuda(env)) {
        free((void *)ends->ends);
        free((void *)ends->origins);
    }
    vxd_svdag_ray_ends_free(env->queue, ends);
    gpu_wait(env);
}

void gpu_svdag_image_open(struct gpu_env *env, const struct vxd_svdag *svdag,
                          struct vxd_svdag_image *image)
{
    struct vxd_err err = {0};

    if (vxd_svdag_image_open(env->queue, svdag, image, &err) != VXD_OK) {
        (void)fprintf(stderr, "image: %s\n", err.message);
        exit(EXIT_FAILURE);
    }
}

void gpu_svdag_image_close(struct gpu_env *env, struct vxd_svdag_image *image)
{
    vxd_host_free(env->context, &image->memory);
}
