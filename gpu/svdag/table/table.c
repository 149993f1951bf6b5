// SPDX-License-Identifier: Apache-2.0
/* Tables of items of one length: the public entries, which check and dispatch. */
#include "gpu/svdag/table/table.h"

#include <stdlib.h>

#include "gpu/svdag/store/store.h"
#include "gpu/svdag/store/store_math.h"
#include "gpu/svdag/table/table_backends.h"

/* errors  UNIMPLEMENTED  the context was not given the store */
static enum vxd_status choose_ops(const struct vxd_context *context,
                                  enum vxd_svdag_store store,
                                  const struct vxd_svdag_table_ops **out,
                                  struct vxd_err *err)
{
    const struct vxd_svdag_store_table *table = NULL;
    enum vxd_status status = VXD_OK;

    if (store != VXD_SVDAG_ARENA) {
        VXD_TRY(vxd_svdag_find_store(context, store, &table, err));
    }
    *out = !VXD_ON_CUDA(context) ? &vxd_svdag_table_cpu
           : table == NULL       ? &vxd_svdag_table_cuda
                                 : table->cuda->tables;
out:
    return status;
}

static enum vxd_status check_spec(const struct vxd_svdag_table_spec *spec,
                                  struct vxd_err *err)
{
    if ((int)spec->store < 0 || (int)spec->store >= VXD_SVDAG_N_STORES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "store", "%d is not a store",
                        (int)spec->store);
    }
    if (spec->n_words < VXD_SVDAG_TABLE_MIN_WORDS ||
        spec->n_words > VXD_SVDAG_TABLE_MAX_WORDS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n_words", "%d, must be %d to %d",
                        spec->n_words, VXD_SVDAG_TABLE_MIN_WORDS,
                        VXD_SVDAG_TABLE_MAX_WORDS);
    }
    if (spec->n_items < 1 || spec->n_items > VXD_SVDAG_MAX_TABLE_ITEMS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n_items", "%llu, must be 1 to %llu",
                        (unsigned long long)spec->n_items,
                        (unsigned long long)VXD_SVDAG_MAX_TABLE_ITEMS);
    }
    if (spec->load > VXD_SVDAG_MAX_LOAD) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "load", "%u, must be at most %u",
                        spec->load, VXD_SVDAG_MAX_LOAD);
    }
    return VXD_OK;
}

enum vxd_status vxd_svdag_table_create(struct vxd_queue *queue,
                                       const struct vxd_svdag_table_spec *spec,
                                       struct vxd_svdag_table **out, struct vxd_err *err)
{
    const struct vxd_svdag_table_ops *ops = NULL;
    struct vxd_svdag_table *table;
    enum vxd_status status = check_spec(spec, err);

    *out = NULL;
    if (status == VXD_OK) {
        status = choose_ops(queue->context, spec->store, &ops, err);
    }
    if (status != VXD_OK) {
        return status;
    }
    table = calloc(1, sizeof *table);
    if (table == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a table");
    }
    table->context = queue->context;
    table->ops = ops;
    table->spec = *spec;
    table->spec.load = spec->load != 0 ? spec->load : VXD_SVDAG_LOAD;
    table->view.n_words = spec->n_words;
    table->view.kind =
        spec->n_words < VXD_SVDAG_TABLE_MAX_WORDS ? VXD_SVDAG_INNER : VXD_SVDAG_LEAF;
    status = table->ops->open(queue, table, err);
    if (status != VXD_OK) {
        free(table);
        return status;
    }
    *out = table;
    return VXD_OK;
}

void vxd_svdag_table_destroy(struct vxd_queue *queue, struct vxd_svdag_table *table)
{
    if (table != NULL) {
        table->ops->close(queue, table);
        free(table);
    }
}

static enum vxd_status check_array(const void *array, const char *name,
                                   struct vxd_err *err)
{
    return array != NULL ? VXD_OK : vxd_fail(err, VXD_INVALID_ARGUMENT, name, "missing");
}

enum vxd_status vxd_svdag_table_insert(struct vxd_queue *queue,
                                       struct vxd_svdag_table *table,
                                       const uint32_t *items, size_t n, uint32_t *refs,
                                       struct vxd_err *err)
{
    struct vxd_svdag_table_call call = {table, items, n, refs, table->n_items};
    enum vxd_status status;

    if (n == 0) {
        return VXD_OK;
    }
    status = check_array(items, "items", err);
    if (status != VXD_OK) {
        return status;
    }
    if (n > table->spec.n_items - table->n_items) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "n",
                        "the table has %llu of %llu items, %zu more do not fit",
                        (unsigned long long)table->n_items,
                        (unsigned long long)table->spec.n_items, n);
    }
    status = table->ops->insert(queue, &call, err);
    if (status == VXD_OK) {
        table->n_items += n;
    }
    return status;
}

enum vxd_status vxd_svdag_table_find(struct vxd_queue *queue,
                                     const struct vxd_svdag_table *table,
                                     const uint32_t *items, size_t n, uint32_t *refs,
                                     struct vxd_err *err)
{
    struct vxd_svdag_table_call call = {table, items, n, refs, table->n_items};
    enum vxd_status status = n == 0 ? VXD_OK : check_array(items, "items", err);

    if (n != 0 && status == VXD_OK) {
        status = check_array(refs, "refs", err);
    }
    return n == 0 || status != VXD_OK ? status : table->ops->find(queue, &call, err);
}

enum vxd_status vxd_svdag_table_get_usage(struct vxd_queue *queue,
                                          const struct vxd_svdag_table *table,
                                          struct vxd_svdag_table_usage *out,
                                          struct vxd_err *err)
{
    *out = (struct vxd_svdag_table_usage){0};
    return table->ops->get_usage(queue, table, out, err);
}
