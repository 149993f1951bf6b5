// SPDX-License-Identifier: Apache-2.0
#include "client/c/direct/direct.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Smaller replies get memory of their own: the allocator has some that was used before. */
    LEAST_KEPT_BYTES = 65536,
    BLOCK_HEAD_BYTES = 64 /* keeps bodies apart from the head, and aligned */
};

/* A larger one is given back to the system: few replies are that large. */
#define MOST_KEPT_BYTES ((size_t)64 << 20)

struct vxd_block {
    struct vxd_reply_memory *memory; /* NULL: it goes nowhere but to free */
    size_t n_bytes;
};

_Static_assert(sizeof(struct vxd_block) <= BLOCK_HEAD_BYTES, "bodies lie behind it");

struct vxd_reply_memory {
    pthread_mutex_t mutex;
    size_t n_users; /* the client, and blocks that are out */
    struct vxd_block *spare;
};

/* Notes where big data lie instead of copying them. */
static void note_part(void *context, void *to, const void *from, size_t n_bytes)
{
    struct vxd_packed *packed = context;

    if (packed->n_parts == VXD_MAX_PARTS) {
        memcpy(to, from, n_bytes);
        return;
    }
    packed->parts[packed->n_parts++] = (struct vxd_packed_part){
        .at = (size_t)((uint8_t *)to - packed->bytes), .data = from, .n_bytes = n_bytes};
}

enum vxd_status vxd_packed_create(const ProtobufCMessage *message, size_t n_bytes,
                                  struct vxd_packed *out, struct vxd_err *err)
{
    struct vxd_encoder written = {.least_bytes = VXD_BIG_BLOCK_BYTES,
                                  .origin = VXD_RPC_ORIGIN,
                                  .copy = note_part,
                                  .copy_context = out};

    *out = (struct vxd_packed){.n_bytes = n_bytes};
    out->bytes = malloc(n_bytes > 0 ? n_bytes : 1);
    if (out->bytes == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "no memory for a request of %zu bytes", n_bytes);
    }
    written.out = out->bytes;
    vxd_encode(&written, message);
    return VXD_OK;
}

void vxd_packed_gather(const struct vxd_packed *packed, uint8_t *out)
{
    size_t at = 0;

    for (size_t i = 0; i < packed->n_parts; i++) {
        const struct vxd_packed_part *part = &packed->parts[i];

        memcpy(out + at, packed->bytes + at, part->at - at);
        memcpy(out + part->at, part->data, part->n_bytes);
        at = part->at + part->n_bytes;
    }
    memcpy(out + at, packed->bytes + at, packed->n_bytes - at);
}

void vxd_packed_free(struct vxd_packed *packed)
{
    free(packed->bytes);
    *packed = (struct vxd_packed){0};
}

struct vxd_reply_memory *vxd_reply_memory_create(void)
{
    struct vxd_reply_memory *memory = calloc(1, sizeof *memory);

    if (memory != NULL && pthread_mutex_init(&memory->mutex, NULL) != 0) {
        free(memory);
        return NULL;
    }
    if (memory != NULL) {
        memory->n_users = 1;
    }
    return memory;
}

/* Ends one use. The mutex is held, and is not afterwards. */
static void unlock_and_drop(struct vxd_reply_memory *memory)
{
    bool is_last = --memory->n_users == 0;

    (void)pthread_mutex_unlock(&memory->mutex);
    if (is_last) {
        free(memory->spare);
        (void)pthread_mutex_destroy(&memory->mutex);
        free(memory);
    }
}

void vxd_reply_memory_drop(struct vxd_reply_memory *memory)
{
    if (memory != NULL) {
        (void)pthread_mutex_lock(&memory->mutex);
        unlock_and_drop(memory);
    }
}

/* The spare block, where it is large enough and no more than four times too large. */
static struct vxd_block *take_spare(struct vxd_reply_memory *memory, size_t n_bytes)
{
    struct vxd_block *block = NULL;

    (void)pthread_mutex_lock(&memory->mutex);
    if (memory->spare != NULL && memory->spare->n_bytes >= n_bytes &&
        memory->spare->n_bytes / 4 <= n_bytes) {
        block = memory->spare;
        memory->spare = NULL;
    }
    memory->n_users++;
    (void)pthread_mutex_unlock(&memory->mutex);
    return block;
}

bool vxd_message_create(struct vxd_reply_memory *memory, size_t n_bytes,
                        struct vxd_message *out)
{
    bool is_kept = n_bytes >= LEAST_KEPT_BYTES && n_bytes <= MOST_KEPT_BYTES;
    struct vxd_block *block = is_kept ? take_spare(memory, n_bytes) : NULL;

    *out = (struct vxd_message){0};
    if (block == NULL && n_bytes < SIZE_MAX / 2) {
        /* Somewhat more than asked for: the next reply is often a little larger. */
        size_t n_all = is_kept ? n_bytes + n_bytes / 8 : n_bytes;
        size_t n_block = BLOCK_HEAD_BYTES + VXD_RPC_ORIGIN + n_all;
        size_t n_round = (n_block + BLOCK_HEAD_BYTES - 1) / BLOCK_HEAD_BYTES;

        block = aligned_alloc(BLOCK_HEAD_BYTES, n_round * BLOCK_HEAD_BYTES);
        if (block != NULL) {
            *block = (struct vxd_block){.n_bytes = n_all};
        }
    }
    if (block == NULL) {
        if (is_kept) {
            vxd_reply_memory_drop(memory);
        }
        return false;
    }
    block->memory = is_kept ? memory : NULL;
    out->block = block;
    out->body = (uint8_t *)block + BLOCK_HEAD_BYTES + VXD_RPC_ORIGIN;
    out->n_bytes = n_bytes;
    return true;
}

struct vxd_message vxd_message_of_nng(nng_msg *take_message)
{
    return (struct vxd_message){.body = nng_msg_body(take_message),
                                .n_bytes = nng_msg_len(take_message),
                                .nng = take_message};
}

/* Keeps the block for the next reply, which is likely to be as large. */
static void give_back(struct vxd_block *block)
{
    struct vxd_reply_memory *memory = block->memory;
    struct vxd_block *unused = block;

    if (memory != NULL) {
        (void)pthread_mutex_lock(&memory->mutex);
        unused = memory->spare;
        memory->spare = block;
        unlock_and_drop(memory);
    }
    free(unused);
}

void vxd_message_free(struct vxd_message *message)
{
    if (message->nng != NULL) {
        nng_msg_free(message->nng);
    }
    if (message->block != NULL) {
        give_back(message->block);
    }
    *message = (struct vxd_message){0};
}
