// SPDX-License-Identifier: Apache-2.0
/* What all stores share on the CPU: a writer's cache of recent items, and memory within
 * budgets. */
#include <assert.h>
#include <stdlib.h>

#include "gpu/core/core_cpu.h"
#include "gpu/svdag/store/store.h"

enum {
    RECENT_BITS = 13
};

static enum vxd_status check_budget(const struct vxd_svdag *svdag, size_t n_bytes,
                                    const size_t *n_taken, struct vxd_err *err)
{
    size_t max_bytes = svdag->spec.max_bytes;

    /* More may be taken than a budget that was reduced. */
    if (max_bytes != 0 && (*n_taken > max_bytes || n_bytes > max_bytes - *n_taken)) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "max_bytes",
                        "the scene's store is full: %zu of %zu bytes are taken, %zu more "
                        "are needed",
                        *n_taken, max_bytes, n_bytes);
    }
    return VXD_OK;
}

enum vxd_status vxd_svdag_take_bytes(const struct vxd_svdag *svdag, size_t n_bytes,
                                     size_t *n_taken, void **out, struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(check_budget(svdag, n_bytes, n_taken, err));
    VXD_TRY(vxd_block_take(svdag->context->device_cache, n_bytes, out, err));
    *n_taken += n_bytes;
out:
    return status;
}

enum vxd_status vxd_svdag_keep_buffer(const struct vxd_svdag *svdag, size_t n_bytes,
                                      size_t *n_taken, struct vxd_buffer *buffer,
                                      struct vxd_err *err)
{
    struct vxd_block *block = vxd_block_find(svdag->context->host_cache, buffer->ptr);
    enum vxd_status status;

    assert(block != NULL && n_bytes <= buffer->n_bytes);
    VXD_TRY(check_budget(svdag, n_bytes, n_taken, err));
    VXD_TRY(vxd_block_move(block, svdag->context->device_cache, n_bytes, err));
    *n_taken += n_bytes;
    *buffer = (struct vxd_buffer){.space = VXD_SPACE_HOST};
out:
    return status;
}

void vxd_svdag_release_bytes(const struct vxd_svdag *svdag, void *memory)
{
    struct vxd_block *block = vxd_block_find(svdag->context->device_cache, memory);

    assert(block != NULL);
    vxd_block_release(block);
}

/* Where the writer caches items of this hash; NULL without memory for the cache. */
static struct vxd_svdag_recent_item *recent_slot(struct vxd_svdag_writer *writer,
                                                 uint64_t hash)
{
    if (writer->recent == NULL) {
        writer->recent = calloc((size_t)1 << RECENT_BITS, sizeof *writer->recent);
    }
    return writer->recent == NULL
               ? NULL
               : &writer->recent[hash >> 8 & (((uint64_t)1 << RECENT_BITS) - 1)];
}

void vxd_svdag_prefetch(const struct vxd_svdag *svdag, uint64_t hash)
{
    if (svdag->ops->prefetch != NULL) {
        svdag->ops->prefetch(svdag, hash);
    }
}

static uint32_t recent_key(const struct vxd_svdag_lookup_key *key)
{
    return (uint32_t)(key->hash >> 32 & ~(uint64_t)3) | (uint32_t)key->kind;
}

bool vxd_svdag_find_recent(struct vxd_svdag_writer *writer,
                           const struct vxd_svdag_lookup_key *key, uint32_t *ref)
{
    const struct vxd_svdag_recent_item *recent = recent_slot(writer, key->hash);

    if (recent == NULL || recent->ref == VXD_SVDAG_EMPTY ||
        recent->key != recent_key(key) ||
        !vxd_svdag_is_equal(&writer->svdag->view, recent->ref, key)) {
        return false;
    }
    *ref = recent->ref;
    return true;
}

enum vxd_status vxd_svdag_put_hashed(struct vxd_svdag_writer *writer,
                                     const struct vxd_svdag_lookup_key *key, int height,
                                     uint32_t *ref, struct vxd_err *err)
{
    struct vxd_svdag_recent_item *recent;
    bool is_new = false;
    enum vxd_status status;

    assert(key->n_words >= 1 && key->n_words <= VXD_SVDAG_MAX_ITEM_WORDS);
    if (vxd_svdag_find_recent(writer, key, ref)) {
        return VXD_OK;
    }
    writer->n_lookups[height]++;
    status = writer->svdag->ops->put(writer, key, ref, &is_new, err);
    if (status != VXD_OK) {
        return status;
    }
    writer->n_new[height] += is_new ? 1 : 0;
    recent = recent_slot(writer, key->hash);
    if (recent != NULL) {
        *recent = (struct vxd_svdag_recent_item){recent_key(key), *ref};
    }
    return VXD_OK;
}

enum vxd_status vxd_svdag_put(struct vxd_svdag_writer *writer, enum vxd_svdag_kind kind,
                              int height, const uint32_t *words, int n_words,
                              uint32_t *ref, struct vxd_err *err)
{
    struct vxd_svdag_lookup_key key = {vxd_svdag_hash(kind, words, n_words), words, kind,
                                       n_words};

    return vxd_svdag_put_hashed(writer, &key, height, ref, err);
}

uint32_t vxd_svdag_find(const struct vxd_svdag *svdag, enum vxd_svdag_kind kind,
                        const uint32_t *words, int n_words)
{
    struct vxd_svdag_lookup_key key = {vxd_svdag_hash(kind, words, n_words), words, kind,
                                       n_words};

    return svdag->ops->find(svdag, &key);
}

void vxd_svdag_writer_close(struct vxd_svdag_writer *writer)
{
    writer->svdag->ops->close(writer);
    free(writer->recent);
    writer->recent = NULL;
}
