// SPDX-License-Identifier: Apache-2.0
/* The decoding arena. Small blocks are carved from chunks. Nothing is given back
 * before the decoder is destroyed, so protobuf-c's frees on a failed unpack cost
 * nothing, and a message that makes it replace or merge fields again and again runs
 * into the budget instead of into quadratic time. The first chunk lies in the decoder
 * itself: a small request costs one malloc. */
#include "proto/wire/decode.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/utf8.h"

enum {
    BLOCK_ALIGN = VXD_DATA_ALIGN,
    FIRST_CHUNK_BYTES = 4096,
    /* Chunks double up to this. */
    MAX_CHUNK_BYTES = 256 * 1024
};

struct chunk {
    struct chunk *next;
    size_t n_bytes; /* of the payload, which follows at once */
};

/* The record of a big block lies in the arena, not before the block: so the server's
 * pool hands out whole pages, and DMA starts on them. */
struct big_block {
    struct big_block *next;
    void *block;
};

struct vxd_decoder {
    ProtobufCAllocator allocator;
    struct vxd_big_alloc big;
    size_t budget_bytes;
    size_t used_bytes;
    /* Why the last allocation failed; protobuf-c says only that something did. */
    bool failed;
    bool over_budget;
    size_t failed_bytes;

    uint8_t *free_begin; /* the current chunk's rest */
    size_t free_bytes;
    size_t next_chunk_bytes;
    struct chunk *chunks;
    struct big_block *big_blocks;
};

_Static_assert(sizeof(struct chunk) % BLOCK_ALIGN == 0, "payloads stay aligned");

/* The first chunk begins after the struct. */
static size_t decoder_struct_bytes(void)
{
    return (sizeof(struct vxd_decoder) + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
}

static void *big_malloc(void *context, size_t n_bytes)
{
    (void)context;
    return malloc(n_bytes);
}

static void big_free(void *context, void *block)
{
    (void)context;
    free(block);
}

static struct chunk *chunk_create(struct vxd_decoder *d, size_t n_bytes)
{
    struct chunk *chunk = malloc(sizeof *chunk + n_bytes);

    if (chunk != NULL) {
        chunk->next = d->chunks;
        chunk->n_bytes = n_bytes;
        d->chunks = chunk;
    }
    return chunk;
}

/* n_bytes is a multiple of BLOCK_ALIGN, at most VXD_BIG_BLOCK_BYTES. */
static void *carve(struct vxd_decoder *d, size_t n_bytes)
{
    struct chunk *chunk;
    uint8_t *block;

    if (n_bytes > d->free_bytes) {
        /* A block that would fill much of a chunk gets one of its own, so that at most a
         * quarter of any chunk is left over. */
        if (n_bytes > d->next_chunk_bytes / 4) {
            chunk = chunk_create(d, n_bytes);
            return chunk != NULL ? chunk + 1 : NULL;
        }
        chunk = chunk_create(d, d->next_chunk_bytes);
        if (chunk == NULL) {
            return NULL;
        }
        d->free_begin = (uint8_t *)(chunk + 1);
        d->free_bytes = d->next_chunk_bytes;
        if (d->next_chunk_bytes < MAX_CHUNK_BYTES) {
            d->next_chunk_bytes *= 2;
        }
    }
    block = d->free_begin;
    d->free_begin += n_bytes;
    d->free_bytes -= n_bytes;
    return block;
}

static void *take_big(struct vxd_decoder *d, size_t n_bytes)
{
    struct big_block *record = carve(d, BLOCK_ALIGN);

    if (record == NULL) {
        return NULL;
    }
    record->block = d->big.alloc(d->big.context, n_bytes);
    if (record->block == NULL) {
        return NULL;
    }
    record->next = d->big_blocks;
    d->big_blocks = record;
    return record->block;
}

_Static_assert(sizeof(struct big_block) <= BLOCK_ALIGN, "one unit a record");

static void *decoder_alloc(void *decoder, size_t size)
{
    struct vxd_decoder *d = decoder;
    size_t n_bytes;
    void *block;

    d->failed = true;
    d->over_budget = true;
    d->failed_bytes = size;
    if (!vxd_size_add(size > 0 ? size : 1, BLOCK_ALIGN - 1, &n_bytes)) {
        return NULL;
    }
    n_bytes = n_bytes / BLOCK_ALIGN * BLOCK_ALIGN;
    if (n_bytes > d->budget_bytes - d->used_bytes) {
        return NULL;
    }
    d->over_budget = false;
    /* The big allocator gets exactly the size that protobuf-c asks for. */
    block = size >= VXD_BIG_BLOCK_BYTES ? take_big(d, size) : carve(d, n_bytes);
    if (block != NULL) {
        d->used_bytes += n_bytes;
        d->failed = false;
    }
    return block;
}

static void decoder_free(void *decoder, void *block)
{
    (void)decoder;
    (void)block;
}

enum vxd_status vxd_decoder_create(size_t budget_bytes, const struct vxd_big_alloc *big,
                                   struct vxd_decoder **out, struct vxd_err *err)
{
    struct vxd_decoder *d = malloc(decoder_struct_bytes() + FIRST_CHUNK_BYTES);

    if (d == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a decoder");
    }
    *d = (struct vxd_decoder){
        .allocator = {.alloc = decoder_alloc, .free = decoder_free, .allocator_data = d},
        .big = {.alloc = big_malloc, .free = big_free},
        .budget_bytes = budget_bytes,
        .free_begin = (uint8_t *)d + decoder_struct_bytes(),
        .free_bytes = FIRST_CHUNK_BYTES,
        .next_chunk_bytes = (size_t)2 * FIRST_CHUNK_BYTES,
    };
    if (big != NULL) {
        d->big = *big;
    }
    *out = d;
    return VXD_OK;
}

void vxd_decoder_destroy(struct vxd_decoder *decoder)
{
    struct chunk *next;

    if (decoder == NULL) {
        return;
    }
    /* The records lie in the chunks, so the blocks go first. */
    for (struct big_block *b = decoder->big_blocks; b != NULL; b = b->next) {
        decoder->big.free(decoder->big.context, b->block);
    }
    for (struct chunk *c = decoder->chunks; c != NULL; c = next) {
        next = c->next;
        free(c);
    }
    free(decoder);
}

ProtobufCAllocator *vxd_decoder_allocator(struct vxd_decoder *decoder)
{
    return &decoder->allocator;
}

size_t vxd_decoder_used_bytes(const struct vxd_decoder *decoder)
{
    return decoder->used_bytes;
}

static enum vxd_status fail_alloc(const struct vxd_decoder *d, struct vxd_err *err)
{
    if (d->over_budget) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "the message needs more than its budget of %zu bytes in memory",
                        d->budget_bytes);
    }
    return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                    "no memory for a block of %zu bytes", d->failed_bytes);
}

void *vxd_decoder_alloc(struct vxd_decoder *decoder, size_t n_bytes, struct vxd_err *err)
{
    void *block = decoder_alloc(decoder, n_bytes);

    if (block == NULL) {
        (void)fail_alloc(decoder, err);
    }
    return block;
}

/* Returns the name of a string field that is not UTF-8, NULL when there is none.
 * protobuf-c does not check it; the official parsers refuse it. The function calls
 * itself for submessages: as deep as the schema, which a test bounds, whatever the
 * input. */
static const char *find_bad_string(const ProtobufCMessage *message)
{
    const uint8_t *base = (const uint8_t *)message;
    const ProtobufCMessageDescriptor *descriptor = message->descriptor;

    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        const void *member = base + field->offset;
        size_t n = 1;
        void *const *values = member;

        if (field->type != PROTOBUF_C_TYPE_STRING &&
            field->type != PROTOBUF_C_TYPE_MESSAGE) {
            continue;
        }
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            memcpy(&n, base + field->quantifier_offset, sizeof n);
            memcpy(&values, member, sizeof values);
        } else if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
            uint32_t set;

            memcpy(&set, base + field->quantifier_offset, sizeof set);
            n = set == field->id ? 1 : 0;
        }
        for (size_t k = 0; k < n; k++) {
            const char *bad = NULL;

            if (values[k] == NULL) {
                continue;
            }
            if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
                bad = find_bad_string(values[k]);
            } else if (!vxd_utf8_is_valid(values[k], strlen(values[k]))) {
                bad = field->name;
            }
            if (bad != NULL) {
                return bad;
            }
        }
    }
    return NULL;
}

enum vxd_status vxd_decode(struct vxd_decoder *decoder,
                           const ProtobufCMessageDescriptor *descriptor,
                           const uint8_t *bytes, size_t n_bytes, ProtobufCMessage **out,
                           struct vxd_err *err)
{
    ProtobufCMessage *message;
    const char *bad;

    decoder->failed = false;
    message = protobuf_c_message_unpack(descriptor, &decoder->allocator, n_bytes, bytes);
    if (message == NULL) {
        if (decoder->failed) {
            return fail_alloc(decoder, err);
        }
        return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL, "the bytes are no serialized %s",
                        descriptor->name);
    }
    bad = find_bad_string(message);
    if (bad != NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, bad, "the string is not valid UTF-8");
    }
    *out = message;
    return VXD_OK;
}
