// SPDX-License-Identifier: Apache-2.0
/* Tables on the CPU: the store of a scene, in which only items of one kind and length are
 * used, in parallel. */
#include "gpu/svdag/store/store.h"
#include "gpu/svdag/table/table_backends.h"

enum {
    GRAIN = 8192 /* items a piece */
};

static enum vxd_status table_open(struct vxd_queue *queue, struct vxd_svdag_table *table,
                                  struct vxd_err *err)
{
    struct vxd_svdag_spec spec = {.format = {VXD_SVDAG_MAX_DEPTH, 4, false},
                                  .store = table->spec.store,
                                  .load = table->spec.load,
                                  .table_items = table->spec.n_items};

    return vxd_svdag_create(queue, &spec, &table->svdag, err);
}

static void table_close(struct vxd_queue *queue, struct vxd_svdag_table *table)
{
    vxd_svdag_destroy(queue, table->svdag);
}

static struct vxd_svdag_lookup_key key_of(const struct vxd_svdag_table_call *call,
                                          size_t i)
{
    int n_words = call->table->spec.n_words;
    struct vxd_svdag_lookup_key key = {
        .kind = (enum vxd_svdag_kind)call->table->view.kind,
        .words = call->items + i * (size_t)n_words,
        .n_words = n_words,
    };

    key.hash = vxd_svdag_hash(key.kind, key.words, n_words);
    return key;
}

struct insertion {
    struct vxd_svdag_table_call call;
    atomic_bool has_failed;
    enum vxd_status status; /* of the first that failed */
    struct vxd_err err;
};

static void insert_piece(void *args, size_t begin, size_t end)
{
    struct insertion *insertion = args;
    const struct vxd_svdag_table_call *call = &insertion->call;
    struct vxd_svdag_writer writer = {.svdag = call->table->svdag};
    struct vxd_err err = {0};

    for (size_t i = begin; i < end; i++) {
        struct vxd_svdag_lookup_key key = key_of(call, i);
        uint32_t ref = VXD_SVDAG_EMPTY;
        bool is_new;
        enum vxd_status status =
            writer.svdag->ops->put(&writer, &key, &ref, &is_new, &err);

        if (status != VXD_OK) {
            ref = VXD_SVDAG_EMPTY;
            if (!atomic_exchange(&insertion->has_failed, true)) {
                insertion->status = status;
                insertion->err = err;
            }
        }
        if (call->refs != NULL) {
            call->refs[i] = ref;
        }
    }
    vxd_svdag_writer_close(&writer);
}

static enum vxd_status insert_job(struct vxd_pool *pool, const void *args,
                                  struct vxd_err *err)
{
    struct insertion insertion = {.call = *(const struct vxd_svdag_table_call *)args};

    atomic_init(&insertion.has_failed, false);
    vxd_parallel_for(pool, insertion.call.n, GRAIN, insert_piece, &insertion);
    if (!atomic_load(&insertion.has_failed)) {
        return VXD_OK;
    }
    if (err != NULL) {
        *err = insertion.err;
    }
    return insertion.status;
}

static void find_piece(void *args, size_t begin, size_t end)
{
    const struct vxd_svdag_table_call *call = args;
    const struct vxd_svdag *svdag = call->table->svdag;

    for (size_t i = begin; i < end; i++) {
        struct vxd_svdag_lookup_key key = key_of(call, i);

        call->refs[i] = svdag->ops->find(svdag, &key);
    }
}

static enum vxd_status find_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    struct vxd_svdag_table_call call = *(const struct vxd_svdag_table_call *)args;

    (void)err;
    vxd_parallel_for(pool, call.n, GRAIN, find_piece, &call);
    return VXD_OK;
}

static enum vxd_status table_insert(struct vxd_queue *queue,
                                    const struct vxd_svdag_table_call *call,
                                    struct vxd_err *err)
{
    return vxd_queue_push(queue, insert_job, call, sizeof *call, err);
}

static enum vxd_status table_find(struct vxd_queue *queue,
                                  const struct vxd_svdag_table_call *call,
                                  struct vxd_err *err)
{
    return vxd_queue_push(queue, find_job, call, sizeof *call, err);
}

static enum vxd_status table_get_usage(struct vxd_queue *queue,
                                       const struct vxd_svdag_table *table,
                                       struct vxd_svdag_table_usage *out,
                                       struct vxd_err *err)
{
    struct vxd_svdag_usage usage;
    enum vxd_status status = vxd_queue_wait(queue, err);

    vxd_svdag_get_usage(table->svdag, &usage);
    out->n_items = usage.n_leaves + usage.n_inner;
    out->node_bytes = usage.node_bytes;
    out->used_bytes = usage.used_bytes;
    out->n_bytes = usage.n_bytes;
    return status;
}

const struct vxd_svdag_table_ops vxd_svdag_table_cpu = {
    table_open, table_close, table_insert, table_find, table_get_usage,
};
