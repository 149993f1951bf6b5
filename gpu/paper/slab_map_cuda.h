// SPDX-License-Identifier: Apache-2.0
/* The slab index on a GPU, shared by its files: the walks of a warp. slab_map_math.h says the
 * layout and the rules that places follow.
 *
 *   slab_map.cu         find, neighbours, erase, probes, clear, rebuild; the table of functions
 *   slab_map_insert.cu  insert
 *
 * Every lane brings a key. The halves of a warp then read the first slabs of their 16 keys
 * one after another, 16 lanes a slab and 8 bytes a lane (one 128-byte line), and ballots say
 * which places match, are EMPTY, or free. Each lane keeps what was found for its key, so the
 * visits to key buffers and the claims, which follow, run for 32 keys at once. Only what the
 * first slab does not settle (in a full map 1 key in 100, unless keys are adversarial) is
 * walked slab by slab, the whole warp on one key. */
#ifndef VXD_GPU_PAPER_SLAB_MAP_CUDA_H
#define VXD_GPU_PAPER_SLAB_MAP_CUDA_H

#include "gpu/core/core_cuda.h"
#include "gpu/paper/slab_map_math.h"

#define VXD_SLAB_THREADS 256
#define VXD_SLAB_ALL 0xffffffffu
#define VXD_SLAB_PLACE_MASK 0x7fffu

/* A lane's key. Lanes without one take part in every walk, with `wanted` false. */
struct vxd_slab_query {
    const void *row;
    struct vxd_slab_home home;
    bool needed;
};

/* What a slab holds for a key; a bit a place. */
struct vxd_slab_scan {
    uint32_t matches;
    uint32_t empty;
    uint32_t vacant; /* EMPTY or ERASED */
    uint64_t word;   /* the first match, or without one the link */
};

/* As vxd_key_tag and vxd_keys_equal; PACKED says that keys are the usual ones, three int32,
 * whose loops over components are written out. */
template <bool PACKED>
static __device__ __forceinline__ uint64_t vxd_slab_tag(const struct vxd_key_form *form,
                                                        const void *row)
{
    if (PACKED) {
        uint64_t x = (uint64_t)(int64_t)((const int32_t *)row)[0] + (1u << 20);
        uint64_t y = (uint64_t)(int64_t)((const int32_t *)row)[1] + (1u << 20);
        uint64_t z = (uint64_t)(int64_t)((const int32_t *)row)[2] + (1u << 20);

        if ((x | y | z) >> 21 == 0) {
            return x << 42 | y << 21 | z;
        }
    }
    return vxd_key_tag(form, row);
}

template <bool PACKED>
static __device__ __forceinline__ bool vxd_slab_equal(const struct vxd_key_form *form,
                                                      const void *a, const void *b)
{
    if (PACKED) {
        const int32_t *u = (const int32_t *)a;
        const int32_t *v = (const int32_t *)b;

        return ((u[0] ^ v[0]) | (u[1] ^ v[1]) | (u[2] ^ v[2])) == 0;
    }
    return vxd_keys_equal(form, a, b);
}

static inline bool vxd_slab_is_packed(const struct vxd_key_form *form)
{
    return form->n_components == 3 && form->component_bytes == 4;
}

/* Reads past the first-level cache, which other multiprocessors' claims do not reach. */
static __device__ __forceinline__ uint64_t vxd_slab_read(const uint64_t *word)
{
    return *(const volatile uint64_t *)word;
}

static __device__ __forceinline__ uint64_t vxd_slab_cas(uint64_t *word, uint64_t from,
                                                        uint64_t to)
{
    return atomicCAS((unsigned long long *)word, (unsigned long long)from,
                     (unsigned long long)to);
}

/* The first slab of every lane's key. */
static __device__ __forceinline__ struct vxd_slab_scan
vxd_slab_look(const struct vxd_slab_view *view, const struct vxd_slab_query *query)
{
    uint32_t lane = threadIdx.x % 32;
    uint32_t mine = lane % 16;
    uint32_t half = lane & 16;
    struct vxd_slab_scan scan = {0, 0, 0, 0};

#pragma unroll 8
    for (int r = 0; r < 16; r++) {
        uint32_t bucket = __shfl_sync(VXD_SLAB_ALL, query->home.bucket, r, 16);
        uint32_t fragment = __shfl_sync(VXD_SLAB_ALL, query->home.fragment, r, 16);
        uint64_t word =
            vxd_slab_read(view->words + (size_t)bucket * VXD_SLAB_WORDS + mine);
        uint32_t matches =
            __ballot_sync(VXD_SLAB_ALL, vxd_slab_matches(word, fragment)) >> half &
            VXD_SLAB_PLACE_MASK;
        uint32_t empty = __ballot_sync(VXD_SLAB_ALL, word == VXD_SLAB_EMPTY) >> half &
                         VXD_SLAB_PLACE_MASK;
        uint32_t vacant = __ballot_sync(VXD_SLAB_ALL, vxd_slab_is_free(word)) >> half &
                          VXD_SLAB_PLACE_MASK;

        word = __shfl_sync(VXD_SLAB_ALL, word,
                           matches != 0 ? __ffs((int)matches) - 1 : VXD_SLAB_LINK, 16);
        if ((int)mine == r) {
            scan.matches = matches;
            scan.empty = empty;
            scan.vacant = vacant;
            scan.word = word;
        }
    }
    return scan;
}

/* One slab for the key of lane `owner`, read by the lower half; the same for all lanes.
 * *found is the place of the key in it, or NO_PLACE; sight.word then is what stands there,
 * else the link. */
template <bool PACKED>
static __device__ __forceinline__ struct vxd_slab_scan
vxd_slab_read_one(const struct vxd_slab_view *view, const void *batch,
                  const struct vxd_slab_query *query, int owner, uint32_t slab,
                  uint32_t *found)
{
    uint32_t lane = threadIdx.x % 32;
    uint32_t fragment = __shfl_sync(VXD_SLAB_ALL, query->home.fragment, owner);
    uint64_t word =
        lane < VXD_SLAB_WORDS
            ? vxd_slab_read(view->words + (size_t)slab * VXD_SLAB_WORDS + lane)
            : 0;
    struct vxd_slab_scan scan;

    scan.matches = __ballot_sync(VXD_SLAB_ALL, vxd_slab_matches(word, fragment)) &
                   VXD_SLAB_PLACE_MASK;
    scan.empty =
        __ballot_sync(VXD_SLAB_ALL, word == VXD_SLAB_EMPTY) & VXD_SLAB_PLACE_MASK;
    scan.vacant =
        __ballot_sync(VXD_SLAB_ALL, vxd_slab_is_free(word)) & VXD_SLAB_PLACE_MASK;
    *found = VXD_SLAB_NO_PLACE;
    for (uint32_t left = scan.matches; left != 0; left &= left - 1) {
        int p = __ffs((int)left) - 1;
        uint64_t place = __shfl_sync(VXD_SLAB_ALL, word, p);
        bool equal = (int)lane == owner &&
                     vxd_slab_equal<PACKED>(&view->form, query->row,
                                            vxd_slab_key(view, batch, place));

        if (__any_sync(VXD_SLAB_ALL, equal)) {
            *found = slab * VXD_SLAB_WORDS + (uint32_t)p;
            scan.word = place;
            return scan;
        }
    }
    scan.word = __shfl_sync(VXD_SLAB_ALL, word, VXD_SLAB_LINK);
    return scan;
}

/* Place of the key of lane `owner`, searched from its first slab on, or NO_PLACE. */
template <bool PACKED>
static __device__ __forceinline__ uint32_t
vxd_slab_walk(const struct vxd_slab_view *view, const struct vxd_slab_query *query,
              int owner, uint64_t *word)
{
    size_t n_slabs = vxd_slab_count(&view->shape);
    uint64_t slab = __shfl_sync(VXD_SLAB_ALL, query->home.bucket, owner);

    for (size_t n_read = 0; n_read < n_slabs && slab < n_slabs; n_read++) {
        uint32_t found;
        struct vxd_slab_scan scan =
            vxd_slab_read_one<PACKED>(view, NULL, query, owner, (uint32_t)slab, &found);

        *word = scan.word;
        if (found != VXD_SLAB_NO_PLACE) {
            return found;
        }
        if (scan.empty != 0) {
            break;
        }
        slab = scan.word;
    }
    return VXD_SLAB_NO_PLACE;
}

/* Place of every lane's key, NO_PLACE where it is not there; *word is what stands there.
 * While nobody but erasing changes places. */
template <bool PACKED>
static __device__ __forceinline__ uint32_t vxd_slab_find(
    const struct vxd_slab_view *view, const struct vxd_slab_query *query, uint64_t *word)
{
    struct vxd_slab_scan scan = vxd_slab_look(view, query);
    uint32_t found = VXD_SLAB_NO_PLACE;
    bool settled = !query->needed ||
                   (scan.matches == 0 && (scan.empty != 0 || scan.word == VXD_SLAB_NONE));

    *word = scan.word;
    if (!settled && scan.matches != 0 &&
        vxd_slab_equal<PACKED>(&view->form, query->row,
                               vxd_slab_key(view, NULL, scan.word))) {
        found =
            query->home.bucket * VXD_SLAB_WORDS + (uint32_t)__ffs((int)scan.matches) - 1;
        settled = true;
    }
    for (uint32_t left = __ballot_sync(VXD_SLAB_ALL, !settled); left != 0;
         left &= left - 1) {
        int owner = __ffs((int)left) - 1;
        uint64_t seen;
        uint32_t place = vxd_slab_walk<PACKED>(view, query, owner, &seen);

        if ((int)(threadIdx.x % 32) == owner) {
            found = place;
            *word = seen;
        }
    }
    return found;
}

/* The slab after the one whose link this is, a new one if it was the last; TAKEN while another
 * warp fetches one, NONE when all are in use. One lane. */
static __device__ __forceinline__ uint64_t
vxd_slab_lengthen(const struct vxd_slab_view *view, uint64_t *link)
{
    uint64_t seen = vxd_slab_cas(link, VXD_SLAB_NONE, VXD_SLAB_TAKEN);
    uint32_t n;

    if (seen != VXD_SLAB_NONE) {
        return seen;
    }
    n = atomicAdd(&view->counters->n_slabs, 1u);
    if (n < view->shape.n_spare) {
        seen = (uint64_t)view->shape.n_buckets + n;
    } else {
        atomicSub(&view->counters->n_slabs, 1u);
    }
    *(volatile uint64_t *)link = seen;
    return seen;
}

/* Place of the key of lane `owner`, or of the claim `mine` that stands for it from now on;
 * NO_PLACE when all slabs are in use. Same for all lanes; *word is what stands there, *reused
 * says that the place was ERASED. Every turn goes one slab on, or another warp has taken a
 * place or a slab. */
template <bool PACKED>
static __device__ __forceinline__ uint32_t
vxd_slab_claim_one(const struct vxd_slab_view *view, const void *batch,
                   const struct vxd_slab_query *query, int owner, uint64_t mine,
                   uint64_t *word, bool *reused)
{
    bool is_owner = (int)(threadIdx.x % 32) == owner;
    uint32_t slab = __shfl_sync(VXD_SLAB_ALL, query->home.bucket, owner);
    uint32_t vacant = VXD_SLAB_NO_PLACE;
    uint64_t mark = VXD_SLAB_EMPTY;

    for (;;) {
        uint32_t found;
        struct vxd_slab_scan scan =
            vxd_slab_read_one<PACKED>(view, batch, query, owner, slab, &found);
        uint64_t next = scan.word;

        if (found != VXD_SLAB_NO_PLACE) {
            *word = scan.word;
            return found;
        }
        if (vacant == VXD_SLAB_NO_PLACE && scan.vacant != 0) {
            int p = __ffs((int)scan.vacant) - 1;

            vacant = slab * VXD_SLAB_WORDS + (uint32_t)p;
            mark = (scan.empty >> p & 1) != 0 ? VXD_SLAB_EMPTY : VXD_SLAB_ERASED;
        }
        if (vacant != VXD_SLAB_NO_PLACE && (scan.empty != 0 || next >= VXD_SLAB_TAKEN)) {
            uint64_t seen = is_owner ? vxd_slab_cas(view->words + vacant, mark, mine) : 0;

            if (__shfl_sync(VXD_SLAB_ALL, seen, owner) == mark) {
                *word = __shfl_sync(VXD_SLAB_ALL, mine, owner);
                *reused = mark == VXD_SLAB_ERASED;
                return vacant;
            }
            slab = vacant / VXD_SLAB_WORDS;
            vacant = VXD_SLAB_NO_PLACE;
            continue;
        }
        if (next >= VXD_SLAB_TAKEN) {
            uint64_t *link = view->words + (size_t)slab * VXD_SLAB_WORDS + VXD_SLAB_LINK;

            next = __shfl_sync(VXD_SLAB_ALL, is_owner ? vxd_slab_lengthen(view, link) : 0,
                               owner);
            if (next == VXD_SLAB_NONE) {
                return VXD_SLAB_NO_PLACE;
            }
            if (next == VXD_SLAB_TAKEN) {
                __nanosleep(50);
                continue;
            }
        }
        slab = (uint32_t)next;
    }
}

/* The first slab's part of a claim, of every lane by itself: true when it is settled. */
template <bool PACKED>
static __device__ __forceinline__ bool
vxd_slab_claim_first(const struct vxd_slab_view *view, const void *batch,
                     const struct vxd_slab_query *query, const struct vxd_slab_scan *scan,
                     uint64_t mine, uint32_t *place, uint64_t *word, bool *reused)
{
    uint32_t first = query->home.bucket * VXD_SLAB_WORDS;
    uint64_t seen = scan->word;
    uint64_t mark;
    int p;

    if (scan->matches != 0) {
        p = __ffs((int)scan->matches) - 1;
    } else if (scan->vacant != 0 && (scan->empty != 0 || seen == VXD_SLAB_NONE)) {
        p = __ffs((int)scan->vacant) - 1;
        mark = (scan->empty >> p & 1) != 0 ? VXD_SLAB_EMPTY : VXD_SLAB_ERASED;
        seen = vxd_slab_cas(view->words + first + p, mark, mine);
        if (seen == mark) {
            *place = first + (uint32_t)p;
            *word = mine;
            *reused = mark == VXD_SLAB_ERASED;
            return true;
        }
        if (!vxd_slab_matches(seen, query->home.fragment)) {
            return false;
        }
    } else {
        return false;
    }
    *place = first + (uint32_t)p;
    *word = seen;
    return vxd_slab_equal<PACKED>(&view->form, query->row,
                                  vxd_slab_key(view, batch, seen));
}

/* Place of every lane's key, or of the claim `mine` that stands for it from now on; NO_PLACE
 * when all slabs are in use, and for lanes without a key. *word is what stands there, *reused
 * says that the place was ERASED. */
template <bool PACKED>
static __device__ __forceinline__ uint32_t vxd_slab_claim(
    const struct vxd_slab_view *view, const void *batch,
    const struct vxd_slab_query *query, uint64_t mine, uint64_t *word, bool *reused)
{
    struct vxd_slab_scan scan = vxd_slab_look(view, query);
    uint32_t place = VXD_SLAB_NO_PLACE;
    bool settled = true;

    *reused = false;
    if (query->needed) {
        settled = vxd_slab_claim_first<PACKED>(view, batch, query, &scan, mine, &place,
                                               word, reused);
    }
    for (uint32_t left = __ballot_sync(VXD_SLAB_ALL, !settled); left != 0;
         left &= left - 1) {
        int owner = __ffs((int)left) - 1;
        uint64_t seen = 0;
        bool was_erased = false;
        uint32_t at = vxd_slab_claim_one<PACKED>(view, batch, query, owner, mine, &seen,
                                                 &was_erased);

        if ((int)(threadIdx.x % 32) == owner) {
            place = at;
            *word = seen;
            *reused = was_erased;
        }
    }
    return place;
}

/* The query of a lane; row may be NULL where it has no key. */
template <bool PACKED>
static __device__ __forceinline__ struct vxd_slab_query
vxd_slab_query_of(const struct vxd_slab_view *view, const void *row)
{
    struct vxd_slab_query query = {row, {0, 0}, row != NULL};

    if (row != NULL) {
        query.home =
            vxd_slab_home_of(&view->shape, vxd_slab_tag<PACKED>(&view->form, row));
    }
    return query;
}

static inline unsigned vxd_slab_blocks(size_t n)
{
    return (unsigned)((n + VXD_SLAB_THREADS - 1) / VXD_SLAB_THREADS);
}

/* Queues what rebuilds the index where it is worn or an insertion failed, and zeroes
 * counters.scratch. */
enum vxd_status vxd_slab_renew(struct vxd_queue *queue, const struct vxd_slab_view *view,
                               struct vxd_err *err);

/* Of struct vxd_hash_ops; scratch of vxd_slab_insert_bytes_cuda (SIZE_MAX on overflow). */
size_t vxd_slab_insert_bytes_cuda(size_t n);
enum vxd_status vxd_slab_insert_cuda(struct vxd_queue *queue, struct vxd_hashmap *map,
                                     const struct vxd_hashmap_insert_args *args,
                                     void *scratch, size_t scratch_bytes,
                                     struct vxd_err *err);

#endif
