// SPDX-License-Identifier: Apache-2.0
/* Stores as objects: specs, memory, size. */
#include "gpu/svdag/svdag.h"

#include <stdlib.h>

#include "gpu/svdag/store/store.h"
#include "gpu/svdag/store/store_table.h"

const char *vxd_dag_store_name(enum vxd_dag_store store)
{
    static const char *const names[VXD_DAG_N_STORES] = {[VXD_DAG_ARENA] = "arena",
                                                        [VXD_DAG_ATOMIC64] = "atomic64",
                                                        [VXD_DAG_TICKET] = "ticket",
                                                        [VXD_DAG_ACCEL32] = "accel32",
                                                        [VXD_DAG_ACCEL8] = "accel8"};

    return names[store];
}

enum vxd_status vxd_dag_find_store(const struct vxd_context *context,
                                   enum vxd_dag_store store,
                                   const struct vxd_dag_store_table **out,
                                   struct vxd_err *err)
{
    const struct vxd_dag_stores *stores = context->extras.stores;

    if (stores == NULL || stores->of[store].cpu == NULL ||
        (VXD_ON_CUDA(context) && stores->of[store].cuda == NULL)) {
        return vxd_fail(
            err, VXD_UNIMPLEMENTED, "store",
            "\"%s\" is one of the papers' stores, which this context was not "
            "given (builds with VOXELD_PAPER=OFF leave them out); known here: "
            "arena",
            vxd_dag_store_name(store));
    }
    *out = &stores->of[store];
    return VXD_OK;
}

static enum vxd_status check_spec(const struct vxd_dag_spec *spec, struct vxd_err *err)
{
    const struct vxd_dag_format *format = &spec->format;

    if (format->depth < VXD_DAG_MIN_DEPTH || format->depth > VXD_DAG_MAX_DEPTH) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "depth", "%d, must be %d to %d",
                        format->depth, VXD_DAG_MIN_DEPTH, VXD_DAG_MAX_DEPTH);
    }
    if (format->material_bits != 0 && format->material_bits != 4 &&
        format->material_bits != 8 && format->material_bits != 16) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "material_bits",
                        "%d, must be 0, 4, 8 or 16", format->material_bits);
    }
    if ((int)spec->store < 0 || (int)spec->store >= VXD_DAG_N_STORES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "store",
                        "%d is no store; 0 is ARENA, %d the last", (int)spec->store,
                        VXD_DAG_N_STORES - 1);
    }
    if (spec->store != VXD_DAG_ARENA && format->material_bits > 4) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "store",
                        "%d is of slabs, which have materials of at most 4 bits, not %d",
                        (int)spec->store, format->material_bits);
    }
    if (spec->load > VXD_DAG_MAX_LOAD) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "load", "%u, must be at most %u",
                        spec->load, VXD_DAG_MAX_LOAD);
    }
    if (spec->table_items > VXD_DAG_MAX_TABLE_ITEMS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "table_items",
                        "%llu, must be at most %llu",
                        (unsigned long long)spec->table_items,
                        (unsigned long long)VXD_DAG_MAX_TABLE_ITEMS);
    }
    return VXD_OK;
}

enum vxd_status vxd_dag_create(struct vxd_queue *queue, const struct vxd_dag_spec *spec,
                               struct vxd_dag **out, struct vxd_err *err)
{
    const struct vxd_dag_store_table *store = NULL;
    struct vxd_dag *dag;
    enum vxd_status status = check_spec(spec, err);

    *out = NULL;
    if (status == VXD_OK && spec->store != VXD_DAG_ARENA) {
        status = vxd_dag_find_store(queue->context, spec->store, &store, err);
    }
    if (status != VXD_OK) {
        return status;
    }
    dag = calloc(1, sizeof *dag);
    if (dag == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a scene");
    }
    dag->context = queue->context;
    dag->spec = *spec;
    dag->max_visits = VXD_DAG_MAX_VISITS;
    dag->view.depth = spec->format.depth;
    dag->view.value_bits = vxd_dag_value_bits(&spec->format);
    dag->view.free_value = vxd_dag_free_value(&spec->format);
    dag->ops = VXD_ON_CUDA(queue->context) ? &vxd_dag_store_cuda
               : store == NULL             ? &vxd_dag_arena_cpu
                                           : store->cpu;
    dag->device_ops = VXD_ON_CUDA(queue->context) && store != NULL ? store->cuda : NULL;
    status = dag->ops->create(queue, dag, err);
    if (status != VXD_OK) {
        free(dag);
        return status;
    }
    *out = dag;
    return VXD_OK;
}

void vxd_dag_destroy(struct vxd_queue *queue, struct vxd_dag *dag)
{
    if (dag == NULL) {
        return;
    }
    dag->ops->destroy(queue, dag);
    free(dag);
}

const struct vxd_dag_spec *vxd_dag_get_spec(const struct vxd_dag *dag)
{
    return &dag->spec;
}

void vxd_dag_set_max_bytes(struct vxd_dag *dag, size_t max_bytes)
{
    dag->spec.max_bytes = max_bytes;
}

void vxd_dag_set_max_visits(struct vxd_dag *dag, uint64_t max_visits)
{
    dag->max_visits = max_visits;
}

int vxd_dag_free_value(const struct vxd_dag_format *format)
{
    return format->tracks_free ? (1 << vxd_dag_value_bits(format)) - 1 : -1;
}

uint32_t vxd_dag_n_materials(const struct vxd_dag_format *format)
{
    return format->material_bits == 0
               ? 1
               : (1u << format->material_bits) - (format->tracks_free ? 1 : 0);
}

void vxd_dag_get_usage(const struct vxd_dag *dag, struct vxd_dag_usage *out)
{
    dag->ops->get_usage(dag, out);
}
