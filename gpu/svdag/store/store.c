// SPDX-License-Identifier: Apache-2.0
/* Stores as objects: specs, memory, size. */
#include "gpu/svdag/svdag.h"

#include <stdlib.h>

#include "gpu/svdag/store/store.h"
#include "gpu/svdag/store/store_table.h"

const char *vxd_svdag_store_name(enum vxd_svdag_store store)
{
    static const char *const names[VXD_SVDAG_N_STORES] = {[VXD_SVDAG_ARENA] = "arena",
                                                          [VXD_SVDAG_ATOMIC64] =
                                                              "atomic64",
                                                          [VXD_SVDAG_TICKET] = "ticket",
                                                          [VXD_SVDAG_ACCEL32] = "accel32",
                                                          [VXD_SVDAG_ACCEL8] = "accel8"};

    return names[store];
}

enum vxd_status vxd_svdag_find_store(const struct vxd_context *context,
                                     enum vxd_svdag_store store,
                                     const struct vxd_svdag_store_table **out,
                                     struct vxd_err *err)
{
    const struct vxd_svdag_stores *stores = context->extras.stores;

    if (stores == NULL || stores->of[store].cpu == NULL ||
        (VXD_ON_CUDA(context) && stores->of[store].cuda == NULL)) {
        return vxd_fail(
            err, VXD_UNIMPLEMENTED, "store",
            "\"%s\" is one of the papers' stores, which this context was not "
            "given (builds with VOXELD_PAPER=OFF leave them out); known here: "
            "arena",
            vxd_svdag_store_name(store));
    }
    *out = &stores->of[store];
    return VXD_OK;
}

static enum vxd_status check_spec(const struct vxd_svdag_spec *spec, struct vxd_err *err)
{
    const struct vxd_svdag_format *format = &spec->format;

    if (format->depth < VXD_SVDAG_MIN_DEPTH || format->depth > VXD_SVDAG_MAX_DEPTH) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "depth", "%d, must be %d to %d",
                        format->depth, VXD_SVDAG_MIN_DEPTH, VXD_SVDAG_MAX_DEPTH);
    }
    if (format->material_bits != 0 && format->material_bits != 4 &&
        format->material_bits != 8 && format->material_bits != 16) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "material_bits",
                        "%d, must be 0, 4, 8 or 16", format->material_bits);
    }
    if ((int)spec->store < 0 || (int)spec->store >= VXD_SVDAG_N_STORES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "store",
                        "%d is not a store: 0 is ARENA, %d is the last", (int)spec->store,
                        VXD_SVDAG_N_STORES - 1);
    }
    if (spec->store != VXD_SVDAG_ARENA && format->material_bits > 4) {
        return vxd_fail(
            err, VXD_INVALID_ARGUMENT, "store",
            "%d is a slab store, which supports materials of at most 4 bits, not %d",
            (int)spec->store, format->material_bits);
    }
    if (spec->load > VXD_SVDAG_MAX_LOAD) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "load", "%u, must be at most %u",
                        spec->load, VXD_SVDAG_MAX_LOAD);
    }
    if (spec->table_items > VXD_SVDAG_MAX_TABLE_ITEMS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "table_items",
                        "%llu, must be at most %llu",
                        (unsigned long long)spec->table_items,
                        (unsigned long long)VXD_SVDAG_MAX_TABLE_ITEMS);
    }
    return VXD_OK;
}

enum vxd_status vxd_svdag_create(struct vxd_queue *queue,
                                 const struct vxd_svdag_spec *spec,
                                 struct vxd_svdag **out, struct vxd_err *err)
{
    const struct vxd_svdag_store_table *store = NULL;
    struct vxd_svdag *svdag;
    enum vxd_status status = check_spec(spec, err);

    *out = NULL;
    if (status == VXD_OK && spec->store != VXD_SVDAG_ARENA) {
        status = vxd_svdag_find_store(queue->context, spec->store, &store, err);
    }
    if (status != VXD_OK) {
        return status;
    }
    svdag = calloc(1, sizeof *svdag);
    if (svdag == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a scene");
    }
    svdag->context = queue->context;
    svdag->spec = *spec;
    svdag->max_visits = VXD_SVDAG_MAX_VISITS;
    svdag->view.depth = spec->format.depth;
    svdag->view.value_bits = vxd_svdag_value_bits(&spec->format);
    svdag->view.free_value = vxd_svdag_free_value(&spec->format);
    svdag->ops = VXD_ON_CUDA(queue->context) ? &vxd_svdag_store_cuda
                 : store == NULL             ? &vxd_svdag_arena_cpu
                                             : store->cpu;
    svdag->device_ops = VXD_ON_CUDA(queue->context) && store != NULL ? store->cuda : NULL;
    status = svdag->ops->create(queue, svdag, err);
    if (status != VXD_OK) {
        free(svdag);
        return status;
    }
    *out = svdag;
    return VXD_OK;
}

void vxd_svdag_destroy(struct vxd_queue *queue, struct vxd_svdag *svdag)
{
    if (svdag == NULL) {
        return;
    }
    svdag->ops->destroy(queue, svdag);
    free(svdag);
}

const struct vxd_svdag_spec *vxd_svdag_get_spec(const struct vxd_svdag *svdag)
{
    return &svdag->spec;
}

void vxd_svdag_set_max_bytes(struct vxd_svdag *svdag, size_t max_bytes)
{
    svdag->spec.max_bytes = max_bytes;
}

void vxd_svdag_set_max_visits(struct vxd_svdag *svdag, uint64_t max_visits)
{
    svdag->max_visits = max_visits;
}

void vxd_svdag_set_stop(struct vxd_svdag *svdag, bool (*is_stopped)(void *user),
                        void *user)
{
    svdag->is_stopped = is_stopped;
    svdag->stop_user = user;
}

enum vxd_status vxd_svdag_check_stop(const struct vxd_svdag *svdag, struct vxd_err *err)
{
    return svdag->is_stopped == NULL || !svdag->is_stopped(svdag->stop_user)
               ? VXD_OK
               : vxd_fail(err, VXD_CANCELLED, NULL,
                          "the edit was stopped: nobody waits for it any more");
}

int vxd_svdag_free_value(const struct vxd_svdag_format *format)
{
    return format->tracks_free ? (1 << vxd_svdag_value_bits(format)) - 1 : -1;
}

uint32_t vxd_svdag_n_materials(const struct vxd_svdag_format *format)
{
    return format->material_bits == 0
               ? 1
               : (1u << format->material_bits) - (format->tracks_free ? 1 : 0);
}

void vxd_svdag_get_usage(const struct vxd_svdag *svdag, struct vxd_svdag_usage *out)
{
    svdag->ops->get_usage(svdag, out);
}
