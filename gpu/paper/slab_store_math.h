// SPDX-License-Identifier: Apache-2.0
/* Slab tables (SVDAG editing, sections 4.2 and 5.1): what gcc and nvcc must agree on.
 *
 * A table keeps items of one kind and length, n words, in lists of slabs by hash. A slab is 31
 * or 32 places for items and a few words of its own; new slabs go to the front of their list,
 * and only the first one has room, as nothing is taken out. All words begin as zeros.
 *
 *   ATOMIC64  words 0-61 the items' first two words, 62 the next slab, 63 ready; the rest of
 *             place i stands apart (vxd_svdag_split_distance). Two words of zeros are a free
 *             place: no item begins so
 *   TICKET    word 0 the mask of taken places, 1 the next slab, 2 ready, 3 a bit for each
 *             taken place by its item's first two words, so that half of the slabs without an
 *             item need not be read; items from word 4
 *   ACCEL32   word 0 the next slab, words 1-31 hashes of places 1-31, 0 where they are free;
 *             place i at 32 + i n, so that place 0's words, the first of which is ready, are
 *             no item's
 *   ACCEL8    words 0-7 hashes of 32 places, a byte each, 0 where they are free, 8 the next
 *             slab, 9 ready, items from word 16
 * Ready are a bit a place whose words are written: of scenes on a GPU, where items are looked
 * for while others are stored; zeros elsewhere. Where the paper packs its tickets and bytes
 * without gaps, we add 1 and 6 words a slab: items of an even length stand on even addresses,
 * and all hashes of bytes in one sector of 32 bytes.
 *
 * Slabs come from chunks of the store's address space, whose first words are a bit a slab,
 * taken or not (SlabAlloc). 32 words of those, 1,024 slabs, are a memory block; those of a
 * chunk are a super block. Concurrent takers spread over all of them. */
#ifndef VXD_GPU_PAPER_SLAB_STORE_MATH_H
#define VXD_GPU_PAPER_SLAB_STORE_MATH_H

#include "gpu/svdag/node/node_math.h"

enum {
    VXD_SVDAG_SLAB_MIN_WORDS = 2, /* of an item */
    VXD_SVDAG_SLAB_MAX_WORDS = 10,
    VXD_SVDAG_SLAB_SIZES = VXD_SVDAG_SLAB_MAX_WORDS + 1,
    /* A scene's, of leaves and of inner nodes; not all lengths occur. */
    VXD_SVDAG_SLAB_TABLES = VXD_SVDAG_BLOCK * VXD_SVDAG_SLAB_SIZES,
    VXD_SVDAG_SLAB_PLACES = 32,
    VXD_SVDAG_CHUNK_BITMAP_WORDS = VXD_SVDAG_SPLIT_FIRST,
    VXD_SVDAG_BLOCK_BITMAP_WORDS = 32
};

/* Which of a scene's tables has the items of a kind and length. */
VXD_HD uint32_t vxd_svdag_slab_table_of(enum vxd_svdag_kind kind, int n_words)
{
    return (uint32_t)kind * VXD_SVDAG_SLAB_SIZES + (uint32_t)n_words;
}

/* Whether such items occur. */
VXD_HD bool vxd_svdag_slab_occurs(int value_bits, enum vxd_svdag_kind kind, int n_words)
{
    if (kind == VXD_SVDAG_INNER) {
        return n_words >= 2 && n_words <= 9;
    }
    if (kind == VXD_SVDAG_BLOCK) {
        return false;
    }
    return value_bits == 4 ? n_words >= 3 && n_words <= VXD_SVDAG_SLAB_MAX_WORDS
                           : n_words == vxd_svdag_leaf_words(value_bits, 1);
}

/* A table's geometry. */
struct vxd_svdag_slab_form {
    enum vxd_svdag_store store;
    uint32_t n_words; /* an item */
    uint32_t stride;  /* words from a slab to the next; of ATOMIC64 with its rest */
    uint32_t n_slabs; /* a chunk */
    uint32_t items;   /* word of a slab where place 0's first word stands */
    uint32_t next;    /* word of the next slab's address, */
    uint32_t ready;   /* and of the bits of places whose words are written */
    uint32_t places;  /* mask of those that hold items */
};

VXD_HD struct vxd_svdag_slab_form vxd_svdag_slab_form_of(enum vxd_svdag_store store,
                                                         int n_words)
{
    struct vxd_svdag_slab_form form;

    form.store = store;
    form.n_words = (uint32_t)n_words;
    form.items = store == VXD_SVDAG_ATOMIC64  ? 0
                 : store == VXD_SVDAG_TICKET  ? 4
                 : store == VXD_SVDAG_ACCEL32 ? 32
                                              : 16;
    form.next = store == VXD_SVDAG_ATOMIC64  ? 62
                : store == VXD_SVDAG_TICKET  ? 1
                : store == VXD_SVDAG_ACCEL32 ? 0
                                             : 8;
    form.ready = store == VXD_SVDAG_ATOMIC64  ? 63
                 : store == VXD_SVDAG_TICKET  ? 2
                 : store == VXD_SVDAG_ACCEL32 ? 32
                                              : 9;
    form.places = store == VXD_SVDAG_ATOMIC64  ? 0x7fffffffu
                  : store == VXD_SVDAG_ACCEL32 ? 0xfffffffeu
                                               : 0xffffffffu;
    form.stride = form.items + VXD_SVDAG_SLAB_PLACES * form.n_words;
    form.n_slabs = (VXD_SVDAG_CHUNK_WORDS - VXD_SVDAG_CHUNK_BITMAP_WORDS) / form.stride;
    if (store == VXD_SVDAG_ATOMIC64) {
        form.n_slabs &= ~1u; /* in pairs */
    }
    return form;
}

/* A chunk's number as a table keeps it, and back. */
VXD_HD uint32_t vxd_svdag_slab_chunk_word(uint32_t chunk)
{
    return (chunk + 1) << 1;
}

VXD_HD uint32_t vxd_svdag_slab_chunk_of_word(uint32_t source)
{
    return (source >> 1) - 1;
}

/* Items a slab holds. */
VXD_HD uint32_t vxd_svdag_slab_places(const struct vxd_svdag_slab_form *form)
{
    return (uint32_t)vxd_svdag_popc(form->places);
}

/* Address of slab i of a chunk. */
VXD_HD uint32_t vxd_svdag_slab_address(const struct vxd_svdag_slab_form *form,
                                       uint32_t chunk, uint32_t i)
{
    uint32_t first = (chunk << VXD_SVDAG_CHUNK_BITS) + VXD_SVDAG_CHUNK_BITMAP_WORDS;

    return form->store != VXD_SVDAG_ATOMIC64
               ? first + i * form->stride
               : first + i / 2 * 2 * form->stride + i % 2 * VXD_SVDAG_SPLIT_ROW;
}

/* Which slab of its chunk stands at an address. */
VXD_HD uint32_t vxd_svdag_slab_number(const struct vxd_svdag_slab_form *form,
                                      uint32_t slab)
{
    uint32_t at = (slab & (VXD_SVDAG_CHUNK_WORDS - 1)) - VXD_SVDAG_CHUNK_BITMAP_WORDS;

    return form->store != VXD_SVDAG_ATOMIC64
               ? at / form->stride
               : at / (2 * form->stride) * 2 +
                     at % (2 * form->stride) / VXD_SVDAG_SPLIT_ROW;
}

/* Word of a slab where a place's item begins. */
VXD_HD uint32_t vxd_svdag_slab_item(const struct vxd_svdag_slab_form *form,
                                    uint32_t place)
{
    return form->store == VXD_SVDAG_ATOMIC64 ? 2 * place
                                             : form->items + place * form->n_words;
}

/* The slabs of word w of a chunk's bits that there are. */
VXD_HD uint32_t vxd_svdag_slab_bits(const struct vxd_svdag_slab_form *form, uint32_t w)
{
    return form->n_slabs >= 32 * w + 32 ? 0xffffffffu
           : form->n_slabs <= 32 * w    ? 0
                                        : (1u << (form->n_slabs - 32 * w)) - 1;
}

/* Lists of a table that is made for n_items. */
VXD_HD uint32_t vxd_svdag_slab_lists(uint64_t n_items, uint32_t load)
{
    uint64_t n = (n_items + load - 1) / load;

    return n == 0 ? 1 : (uint32_t)n;
}

/* Lists of a table of a new scene. */
VXD_HD uint32_t vxd_svdag_slab_spec_lists(const struct vxd_svdag_spec *spec)
{
    return vxd_svdag_slab_lists(spec->table_items != 0 ? spec->table_items
                                                       : VXD_SVDAG_TABLE_ITEMS,
                                spec->load != 0 ? spec->load : VXD_SVDAG_LOAD);
}

VXD_HD uint32_t vxd_svdag_slab_list(uint64_t hash, uint32_t n_lists)
{
    return (uint32_t)((hash >> 32) * n_lists >> 32);
}

/* What ACCEL32 and ACCEL8 keep of a hash: bits that do not choose the list, never 0. */
VXD_HD uint32_t vxd_svdag_slab_hash32(uint64_t hash)
{
    return (uint32_t)hash == 0 ? 1 : (uint32_t)hash;
}

VXD_HD uint32_t vxd_svdag_slab_hash8(uint64_t hash)
{
    return 1 + ((uint32_t)hash & 0xffffu) * 255 / 65536;
}

/* An item's bit of what TICKET keeps of a slab's. */
VXD_HD uint32_t vxd_svdag_slab_filter(uint32_t word0, uint32_t word1)
{
    return 1u << ((word0 * 0x9e3779b1u ^ word1) * 0x85ebca6bu >> 27);
}

#endif
