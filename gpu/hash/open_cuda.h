// SPDX-License-Identifier: Apache-2.0
/* The open-addressing index on a GPU, shared by its files: slots, and the probe sequence of a key.
 *
 *   open.cu         find, neighbours, probes, clear, rebuild; the table of functions
 *   open_insert.cu  insert
 *   open_erase.cu   erase
 *
 * A slot is 16 bytes: {tag, number, mark}; mark is NO_MARK between operations. Slots form lines
 * of 64 bytes, the amount that the memory fetches at once. A key's probe sequence begins in one
 * half of a line (a sector), continues with the other half, which is already fetched, and then
 * goes on line by line. It ends at the first EMPTY slot. An insert only takes free slots and an
 * erase only frees taken ones, so a stale read of the first-level cache does no harm: a thread
 * that finds a free slot claims it by compare-and-swap and, on failure, reads again past that
 * cache.
 *
 * At least a quarter of the slots is EMPTY (there are two for each number, and at most a quarter
 * are erased marks), and no probe sequence is longer than the table. */
#ifndef VXD_GPU_HASH_OPEN_CUDA_H
#define VXD_GPU_HASH_OPEN_CUDA_H

#include "gpu/core/core_cuda.h"
#include "gpu/hash/hash_cuda.h"

#define VXD_OPEN_THREADS 256

/* In the number of a slot: claimed by an insert that has not published its number yet
 * (PENDING; EMPTY and ERASED slots hold it too), or for which no number was left
 * (FAILED). */
#define VXD_OPEN_PENDING 0xffffffffu
#define VXD_OPEN_FAILED 0xfffffffeu
#define VXD_OPEN_NO_MARK 0xffffffffu
#define VXD_OPEN_NO_SLOT 0xffffffffu

/* Why the index is rebuilt on the device: an insert that claimed slots for which no
 * numbers were left sets counters.scratch[VXD_OPEN_NEEDS_REBUILD]. */
#define VXD_OPEN_NEEDS_REBUILD 0

struct vxd_open_slot {
    uint64_t tag;
    uint64_t word; /* number in the low half, mark in the high half */
};

struct vxd_open_sector {
    struct vxd_open_slot slot[2];
};

/* What kernels need of a map; passed by value. */
struct vxd_open_view {
    struct vxd_open_slot *slots;
    uint32_t n_lines;
    struct vxd_key_form form;
    const void *keys;
    uint32_t capacity;
    struct vxd_hash_counters *counters;
    uint32_t *error_word;
};

static inline uint32_t vxd_open_lines(size_t capacity)
{
    return (uint32_t)(capacity / 2) + 1;
}

static inline struct vxd_open_view vxd_open_view_of(const struct vxd_queue *queue,
                                                    const struct vxd_hashmap *map)
{
    struct vxd_open_view view = {(struct vxd_open_slot *)map->index.ptr,
                                 vxd_open_lines(map->capacity),
                                 map->form,
                                 map->keys.ptr,
                                 (uint32_t)map->capacity,
                                 (struct vxd_hash_counters *)map->counters.ptr,
                                 vxd_queue_error_word(queue)};

    return view;
}

/* Whether keys are three int32; kernels have a variant with these constants. */
static inline bool vxd_open_is_int3(const struct vxd_key_form *form)
{
    return form->n_components == 3 && form->component_bytes == 4;
}

/* A key and the start of its probe sequence. */
struct vxd_open_query {
    const void *row;
    int32_t key[3]; /* the key itself; INT3 only */
    uint64_t tag;
    uint32_t line;
    uint32_t half;
};

static __device__ __forceinline__ void vxd_open_set_tag(const struct vxd_open_view *view,
                                                        struct vxd_open_query *query,
                                                        uint64_t tag)
{
    uint64_t hash = vxd_mix64(tag);

    query->tag = tag;
    query->line = (uint32_t)__umul64hi(hash, view->n_lines);
    query->half = (uint32_t)hash & 1;
}

/* The tag of three int32, as vxd_key_tag makes it. */
static __device__ __forceinline__ uint64_t vxd_open_tag3(int32_t x, int32_t y, int32_t z)
{
    uint32_t biased_x = (uint32_t)x + (1u << 20);
    uint32_t biased_y = (uint32_t)y + (1u << 20);
    uint32_t biased_z = (uint32_t)z + (1u << 20);
    uint64_t fingerprint = VXD_FINGERPRINT;

    if ((biased_x | biased_y | biased_z) >> 21 == 0) {
        return (uint64_t)biased_x << 42 | (uint64_t)biased_y << 21 | biased_z;
    }
#pragma unroll 1
    for (int c = 0; c < 3; c++) {
        fingerprint = vxd_fingerprint_add(fingerprint, c == 0 ? x : c == 1 ? y : z);
    }
    return vxd_fingerprint_end(fingerprint);
}

template <bool INT3>
static __device__ __forceinline__ struct vxd_open_query
vxd_open_query_of(const struct vxd_open_view *view, const void *row)
{
    struct vxd_open_query query;

    query.row = row;
    if (INT3) {
        for (int c = 0; c < 3; c++) {
            query.key[c] = ((const int32_t *)row)[c];
        }
        vxd_open_set_tag(view, &query,
                         vxd_open_tag3(query.key[0], query.key[1], query.key[2]));
    } else {
        vxd_open_set_tag(view, &query, vxd_key_tag(&view->form, row));
    }
    return query;
}

template <bool INT3>
static __device__ __forceinline__ bool vxd_open_is_key(const struct vxd_open_view *view,
                                                       const struct vxd_open_query *query,
                                                       const void *row)
{
    const int32_t *key = (const int32_t *)row;

    if (INT3) {
        return key[0] == query->key[0] && key[1] == query->key[1] &&
               key[2] == query->key[2];
    }
    return vxd_keys_equal(&view->form, query->row, row);
}

/* Slot number of step `step` of a probe sequence; steps 2k and 2k + 1 are in one
 * sector. */
static __device__ __forceinline__ uint32_t vxd_open_slot_at(
    const struct vxd_open_view *view, const struct vxd_open_query *query, uint32_t step)
{
    uint32_t line = query->line + step / 4;

    line = line >= view->n_lines ? line - view->n_lines : line;
    return line * 4 + ((query->half ^ (step / 2 & 1)) * 2) + (step & 1);
}

static __device__ __forceinline__ uint32_t
vxd_open_n_steps(const struct vxd_open_view *view)
{
    return view->n_lines * 4;
}

/* How a sector is read: READ_ONLY where no kernel writes, CACHED where others may
 * claim slots, FRESH past the first-level cache. The two loads of READ_ONLY and CACHED
 * become one request to the second-level cache. */
enum vxd_open_read {
    VXD_OPEN_READ_ONLY,
    VXD_OPEN_CACHED,
    VXD_OPEN_FRESH
};

static __device__ __forceinline__ struct vxd_open_slot
vxd_open_load(const struct vxd_open_slot *slot, enum vxd_open_read read)
{
    struct vxd_open_slot s;

    if (read == VXD_OPEN_READ_ONLY) {
        asm volatile("ld.global.nc.v2.b64 {%0, %1}, [%2];"
                     : "=l"(s.tag), "=l"(s.word)
                     : "l"(slot));
    } else if (read == VXD_OPEN_CACHED) {
        asm volatile("ld.global.ca.v2.b64 {%0, %1}, [%2];"
                     : "=l"(s.tag), "=l"(s.word)
                     : "l"(slot)
                     : "memory");
    } else {
        asm volatile("ld.relaxed.gpu.global.v2.b64 {%0, %1}, [%2];"
                     : "=l"(s.tag), "=l"(s.word)
                     : "l"(slot)
                     : "memory");
    }
    return s;
}

static __device__ __forceinline__ struct vxd_open_sector
vxd_open_load_sector(const struct vxd_open_view *view, uint32_t first_slot,
                     enum vxd_open_read read)
{
    struct vxd_open_sector sector;

    sector.slot[0] = vxd_open_load(view->slots + first_slot, read);
    sector.slot[1] = vxd_open_load(view->slots + first_slot + 1, read);
    return sector;
}

static __device__ __forceinline__ uint64_t
vxd_open_read_word(const struct vxd_open_slot *slot)
{
    uint64_t word;

    asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];"
                 : "=l"(word)
                 : "l"(&slot->word)
                 : "memory");
    return word;
}

static __device__ __forceinline__ void vxd_open_write_word(struct vxd_open_slot *slot,
                                                           uint64_t word)
{
    asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(&slot->word), "l"(word)
                 : "memory");
}

static __device__ __forceinline__ uint64_t vxd_open_cas_tag(struct vxd_open_slot *slot,
                                                            uint64_t from, uint64_t to)
{
    return atomicCAS((unsigned long long *)&slot->tag, (unsigned long long)from,
                     (unsigned long long)to);
}

/* Claims a slot that held `from`, a free mark, for a tag and marks it with `mark`: in
 * one operation where the GPU swaps 16 bytes, else in two. Returns false where another
 * thread was faster. */
static __device__ __forceinline__ bool vxd_open_claim_marked(struct vxd_open_slot *slot,
                                                             uint64_t from, uint64_t tag,
                                                             uint32_t mark)
{
#if __CUDA_ARCH__ >= 900
    uint64_t free_word = ~(uint64_t)0;
    uint64_t word = (uint64_t)mark << 32 | VXD_OPEN_PENDING;
    uint64_t seen_tag;
    uint64_t seen_word;

    asm volatile("{\n"
                 ".reg .b128 from, to, seen;\n"
                 "mov.b128 from, {%3, %4};\n"
                 "mov.b128 to, {%5, %6};\n"
                 "atom.relaxed.gpu.global.cas.b128 seen, [%2], from, to;\n"
                 "mov.b128 {%0, %1}, seen;\n"
                 "}"
                 : "=l"(seen_tag), "=l"(seen_word)
                 : "l"(slot), "l"(from), "l"(free_word), "l"(tag), "l"(word)
                 : "memory");
    return seen_tag == from && seen_word == free_word;
#else
    bool is_mine = atomicCAS((unsigned long long *)&slot->tag, (unsigned long long)from,
                             (unsigned long long)tag) == from;

    if (is_mine) {
        (void)atomicMin((uint32_t *)&slot->word + 1, mark);
    }
    return is_mine;
#endif
}

static __device__ __forceinline__ uint32_t vxd_open_number(uint64_t word)
{
    return (uint32_t)word;
}

static __device__ __forceinline__ uint32_t vxd_open_mark(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

static __device__ __forceinline__ uint32_t *vxd_open_mark_of(struct vxd_open_slot *slot)
{
    return (uint32_t *)&slot->word + 1;
}

static __device__ __forceinline__ uint64_t vxd_open_word(uint32_t number)
{
    return (uint64_t)VXD_OPEN_NO_MARK << 32 | number;
}

static __device__ __forceinline__ const char *
vxd_open_key_row(const struct vxd_open_view *view, uint32_t number)
{
    return (const char *)view->keys + (size_t)number * (size_t)view->form.row_bytes;
}

static __device__ __forceinline__ void vxd_open_report(const struct vxd_open_view *view,
                                                       enum vxd_status status)
{
    (void)atomicCAS(view->error_word, (uint32_t)VXD_OK, (uint32_t)status);
}

/* Slots of a sector that hold a tag, a bit each; slots behind an EMPTY slot do not
 * count. */
static __device__ __forceinline__ uint32_t
vxd_open_tags_in(const struct vxd_open_sector *sector, uint64_t tag)
{
    return (sector->slot[0].tag == tag ? 1u : 0) |
           (sector->slot[1].tag == tag && sector->slot[0].tag != VXD_TAG_EMPTY ? 2u : 0);
}

static __device__ __forceinline__ bool
vxd_open_has_empty(const struct vxd_open_sector *sector)
{
    return sector->slot[0].tag == VXD_TAG_EMPTY || sector->slot[1].tag == VXD_TAG_EMPTY;
}

/* The slot that holds a key, searched from step `from` of its probe sequence on while
 * no kernel inserts; *number is its entry, *at_step its step. NO_SLOT where the key is
 * not in the map. */
template <bool INT3, enum vxd_open_read READ>
static __device__ __forceinline__ uint32_t
vxd_open_seek(const struct vxd_open_view *view, const struct vxd_open_query *query,
              uint32_t from, uint32_t *number, uint32_t *at_step)
{
#pragma unroll 1
    for (uint32_t step = from & ~1u; step < vxd_open_n_steps(view); step += 2) {
        uint32_t first = vxd_open_slot_at(view, query, step);
        struct vxd_open_sector sector = vxd_open_load_sector(view, first, READ);
        uint32_t matches =
            vxd_open_tags_in(&sector, query->tag) & (from > step ? 2u : 3u);

        if (matches != 0 && vxd_tag_is_wide(query->tag)) {
#pragma unroll 1
            for (uint32_t k = 0; k < 2; k++) {
                uint32_t here =
                    vxd_open_number(k == 0 ? sector.slot[0].word : sector.slot[1].word);

                if (here >= view->capacity ||
                    !vxd_open_is_key<INT3>(view, query, vxd_open_key_row(view, here))) {
                    matches &= ~(1u << k);
                }
            }
        }
        if (matches != 0) {
            uint32_t k = (matches & 1) != 0 ? 0 : 1;

            *number = vxd_open_number(k == 0 ? sector.slot[0].word : sector.slot[1].word);
            *at_step = step + k;
            return first + k;
        }
        if (vxd_open_has_empty(&sector)) {
            break;
        }
    }
    return VXD_OPEN_NO_SLOT;
}

/* open_insert.cu and open_erase.cu: as in struct vxd_hash_ops. */
size_t vxd_open_insert_scratch_bytes_cuda(const struct vxd_hashmap *map,
                                          enum vxd_hash_order order, size_t n);
enum vxd_status vxd_open_insert_cuda(struct vxd_queue *queue, struct vxd_hashmap *map,
                                     const struct vxd_hashmap_insert_args *args,
                                     void *scratch, size_t scratch_bytes,
                                     struct vxd_err *err);
size_t vxd_open_erase_scratch_bytes_cuda(const struct vxd_queue *queue,
                                         const struct vxd_hashmap *map,
                                         enum vxd_hash_order order, size_t n);
enum vxd_status vxd_open_erase_cuda(struct vxd_queue *queue, struct vxd_hashmap *map,
                                    const void *keys, size_t n, enum vxd_hash_order order,
                                    uint8_t *erased, void *scratch, size_t scratch_bytes,
                                    struct vxd_err *err);

/* open.cu: rebuilds the index from the living entries, always, or only where it has
 * too many erased marks or an insert asked for it (kernels that find nothing to do end
 * at once). */
enum vxd_status vxd_open_refill_cuda(struct vxd_queue *queue, struct vxd_hashmap *map,
                                     bool always, struct vxd_err *err);

#endif
