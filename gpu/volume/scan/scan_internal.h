// SPDX-License-Identifier: Apache-2.0
/* What scan.c and the backends of a scan's stages share: the stages' functions, and the steps of
 * them, an item at a time, as both backends compile them. The backends differ in how they share
 * out the items, and in how an atomic operation is written. Every result is the same in whatever
 * order the items come: sums are whole numbers, and the least of several wins. */
#ifndef VXD_GPU_VOLUME_SCAN_SCAN_INTERNAL_H
#define VXD_GPU_VOLUME_SCAN_SCAN_INTERNAL_H

#include "gpu/core/core_cpu.h"
#include "gpu/volume/scan/scan_math.h"
#include "gpu/volume/scan/volume_scan.h"

#if defined(__CUDACC__)
#define VXD_LIDAR_STEP static __device__ __forceinline__
#else
#define VXD_LIDAR_STEP static inline
#endif

enum vxd_lidar_stage {
    VXD_LIDAR_AIM,    /* rays, and the range image; an item a point */
    VXD_LIDAR_TOUCH,  /* the blocks near hits; a point */
    VXD_LIDAR_PLACE,  /* where a block is in the list; a listed block */
    VXD_LIDAR_PASS,   /* which voxels rays pass; a point */
    VXD_LIDAR_SUM,    /* what rays observe; a point */
    VXD_LIDAR_FINISH, /* the averages of these; a voxel of places [begin, end) */
    VXD_LIDAR_CARVE, /* the averages of passed voxels; 32 voxels of a block of the volume */
    VXD_LIDAR_LOOK, /* what voxels observe in the image; a voxel of a listed block */
    VXD_LIDAR_REACH /* the same of blocks that are not listed; a voxel of one of the volume */
};

struct vxd_lidar_counts {
    uint32_t n_known; /* touched blocks that the volume has */
    uint32_t n_new;   /* and those that it has not */
    uint32_t n_taken; /* slots; the set is too small where above half of them */
    uint32_t n_beyond;
    uint32_t n_dropped;
    uint32_t n_carved;
};

/* Arrays are device memory. */
struct vxd_lidar_call {
    enum vxd_lidar_stage stage;
    size_t n_items;
    struct vxd_lidar_form form;
    struct vxd_volume_view view;
    uint64_t version;
    struct vxd_lidar_counts *counts;
    struct vxd_lidar_ray *rays;
    uint64_t *image; /* NULL: along rays */
    /* The set of touched blocks: tags of slot_mask + 1 slots; of half as many blocks the entries,
     * or the Morton codes of new ones. */
    uint64_t *tags;
    uint32_t slot_mask;
    int32_t *entries;
    uint64_t *codes;
    /* By entry: the number in the list of touched blocks, else -1, or -2 once it is carved. */
    int32_t *places;
    const int32_t *active; /* all entries of the volume */
    uint32_t
        *passed; /* a bit a voxel of each entry; NULL: nothing is carved along rays */
    /* Of places [begin, end): distance and weight of each voxel, in units, and its vote. */
    uint32_t begin;
    uint32_t end;
    int64_t *sums;
    uint32_t *votes; /* NULL: the volume has no labels, or the scan has none */
};

/* ---- Atomic operations ---- */

VXD_LIDAR_STEP void vxd_lidar_add64(int64_t *at, int64_t n)
{
#if defined(__CUDACC__)
    (void)atomicAdd((unsigned long long *)at, (unsigned long long)n);
#else
    (void)__atomic_fetch_add(at, n, __ATOMIC_RELAXED);
#endif
}

VXD_LIDAR_STEP uint32_t vxd_lidar_add32(uint32_t *at, uint32_t n)
{
#if defined(__CUDACC__)
    return atomicAdd(at, n);
#else
    return __atomic_fetch_add(at, n, __ATOMIC_RELAXED);
#endif
}

VXD_LIDAR_STEP void vxd_lidar_or32(uint32_t *at, uint32_t bits)
{
#if defined(__CUDACC__)
    (void)atomicOr(at, bits);
#else
    (void)__atomic_fetch_or(at, bits, __ATOMIC_RELAXED);
#endif
}

VXD_LIDAR_STEP void vxd_lidar_and32(uint32_t *at, uint32_t bits)
{
#if defined(__CUDACC__)
    (void)atomicAnd(at, bits);
#else
    (void)__atomic_fetch_and(at, bits, __ATOMIC_RELAXED);
#endif
}

VXD_LIDAR_STEP uint32_t vxd_lidar_load32(uint32_t *at)
{
#if defined(__CUDACC__)
    return *(volatile uint32_t *)at;
#else
    return __atomic_load_n(at, __ATOMIC_RELAXED);
#endif
}

VXD_LIDAR_STEP uint64_t vxd_lidar_load64(uint64_t *at)
{
#if defined(__CUDACC__)
    return *(volatile uint64_t *)at;
#else
    return __atomic_load_n(at, __ATOMIC_RELAXED);
#endif
}

/* Returns what was there. */
VXD_LIDAR_STEP uint64_t vxd_lidar_cas64(uint64_t *at, uint64_t from, uint64_t to)
{
#if defined(__CUDACC__)
    return atomicCAS((unsigned long long *)at, (unsigned long long)from,
                     (unsigned long long)to);
#else
    (void)__atomic_compare_exchange_n(at, &from, to, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED);
    return from;
#endif
}

VXD_LIDAR_STEP int32_t vxd_lidar_cas32(int32_t *at, int32_t from, int32_t to)
{
#if defined(__CUDACC__)
    return atomicCAS(at, from, to);
#else
    (void)__atomic_compare_exchange_n(at, &from, to, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED);
    return from;
#endif
}

VXD_LIDAR_STEP void vxd_lidar_min64(uint64_t *at, uint64_t value)
{
#if defined(__CUDACC__)
    (void)atomicMin((unsigned long long *)at, (unsigned long long)value);
#else
    uint64_t here = __atomic_load_n(at, __ATOMIC_RELAXED);

    while (value < here &&
           !__atomic_compare_exchange_n(at, &here, value, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
#endif
}

VXD_LIDAR_STEP void vxd_lidar_min32(uint32_t *at, uint32_t value)
{
#if defined(__CUDACC__)
    (void)atomicMin(at, value);
#else
    uint32_t here = __atomic_load_n(at, __ATOMIC_RELAXED);

    while (value < here &&
           !__atomic_compare_exchange_n(at, &here, value, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
#endif
}

VXD_LIDAR_STEP void vxd_lidar_stamp(const struct vxd_lidar_call *call, int32_t entry)
{
#if defined(__CUDACC__)
    (void)atomicMax((unsigned long long *)&call->view.stamps[entry],
                    (unsigned long long)call->version);
#else
    __atomic_store_n(&call->view.stamps[entry], call->version, __ATOMIC_RELAXED);
#endif
}

/* ---- Points ---- */

VXD_LIDAR_STEP void vxd_lidar_aim_item(const struct vxd_lidar_call *call, size_t i)
{
    struct vxd_lidar_ray ray;
    int32_t pixel;
    enum vxd_lidar_kind kind = vxd_lidar_aim(&call->form, (uint32_t)i, &ray, &pixel);

    if (kind == VXD_LIDAR_DROPPED) {
        ray.weight = 0;
        ray.label = 0;
        (void)vxd_lidar_add32(&call->counts->n_dropped, 1);
    } else if (kind == VXD_LIDAR_BEYOND) {
        (void)vxd_lidar_add32(&call->counts->n_beyond, 1);
    }
    if (call->image != NULL && kind != VXD_LIDAR_DROPPED && pixel >= 0 &&
        (kind == VXD_LIDAR_USED || call->form.carve > 0)) {
        vxd_lidar_min64(&call->image[pixel], vxd_lidar_code(&ray, (uint32_t)i));
    }
    call->rays[i] = ray;
}

/* Puts a block that was not in the set into the list of known or of new ones. */
VXD_LIDAR_STEP void vxd_lidar_list(const struct vxd_lidar_call *call, uint64_t tag)
{
    int32_t entry = vxd_volume_find_block(&call->view, tag);
    uint32_t most = (call->slot_mask + 1) / 2;
    uint32_t at = vxd_lidar_add32(
        entry != VXD_NO_ENTRY ? &call->counts->n_known : &call->counts->n_new, 1);

    if (at < most && entry != VXD_NO_ENTRY) {
        call->entries[at] = entry;
    } else if (at < most) {
        call->codes[at] = vxd_block_morton(tag);
    }
}

/* Past half of the slots nothing is claimed, so probe sequences end. */
VXD_LIDAR_STEP void vxd_lidar_put(const struct vxd_lidar_call *call, uint64_t tag)
{
    uint32_t slot = vxd_block_hash(tag) & call->slot_mask;

    for (uint32_t step = 0; step <= call->slot_mask; step++) {
        uint64_t here = vxd_lidar_load64(&call->tags[slot]);

        if (here == VXD_BLOCK_EMPTY) {
            if (vxd_lidar_load32(&call->counts->n_taken) > (call->slot_mask + 1) / 2) {
                return;
            }
            here = vxd_lidar_cas64(&call->tags[slot], VXD_BLOCK_EMPTY, tag);
            if (here == VXD_BLOCK_EMPTY) {
                (void)vxd_lidar_add32(&call->counts->n_taken, 1);
                vxd_lidar_list(call, tag);
                return;
            }
        }
        if (here == tag) {
            return;
        }
        slot = (slot + 1) & call->slot_mask;
    }
}

VXD_LIDAR_STEP void vxd_lidar_touch_item(const struct vxd_lidar_call *call, size_t i)
{
    struct vxd_lidar_ray ray = call->rays[i];
    struct vxd_cell_walk walk;
    uint64_t last = VXD_BLOCK_EMPTY;
    int n_left;

    if (!(ray.weight > 0)) {
        return;
    }
    n_left = vxd_lidar_near_walk(&call->form, &ray, &walk);
    for (;;) {
        int32_t voxel[3] = {ray.voxel[0] + walk.cell[0], ray.voxel[1] + walk.cell[1],
                            ray.voxel[2] + walk.cell[2]};
        int32_t key[3];

        if (vxd_lidar_key(&call->form, voxel, key)) {
            uint64_t tag = vxd_block_tag(key[0], key[1], key[2]);

            if (tag != last) {
                last = tag;
                vxd_lidar_put(call, tag);
            }
        }
        if (n_left-- == 0) {
            return;
        }
        vxd_cell_walk_next(&walk);
    }
}

VXD_LIDAR_STEP void vxd_lidar_sum_voxel(const struct vxd_lidar_call *call,
                                        const struct vxd_lidar_ray *ray,
                                        const int32_t cell[3], size_t at)
{
    float d = vxd_lidar_distance(&call->form, ray, cell);
    double scale = call->form.scale;

    if (d >= -1.0f) {
        double weighted = vxd_muld((double)ray->weight, (double)d);

        vxd_lidar_add64(&call->sums[2 * at], vxd_lidar_units(weighted, scale));
        vxd_lidar_add64(&call->sums[2 * at + 1],
                        vxd_lidar_units((double)ray->weight, scale));
        if (call->votes != NULL && ray->label != 0 && d < 1.0f) {
            vxd_lidar_min32(&call->votes[at], vxd_lidar_vote(d, ray->label));
        }
    }
}

VXD_LIDAR_STEP void vxd_lidar_sum_item(const struct vxd_lidar_call *call, size_t i)
{
    struct vxd_lidar_ray ray = call->rays[i];
    struct vxd_cell_walk walk;
    uint64_t last = VXD_BLOCK_EMPTY;
    int32_t place = -1;
    int n_left;

    if (!(ray.weight > 0)) {
        return;
    }
    n_left = vxd_lidar_near_walk(&call->form, &ray, &walk);
    for (;;) {
        int32_t voxel[3] = {ray.voxel[0] + walk.cell[0], ray.voxel[1] + walk.cell[1],
                            ray.voxel[2] + walk.cell[2]};
        int32_t key[3];

        if (vxd_lidar_key(&call->form, voxel, key)) {
            uint64_t tag = vxd_block_tag(key[0], key[1], key[2]);

            if (tag != last) {
                int32_t entry = vxd_volume_find_block(&call->view, tag);

                last = tag;
                place = entry != VXD_NO_ENTRY ? call->places[entry] : -1;
            }
            if (place >= (int32_t)call->begin && place < (int32_t)call->end) {
                vxd_lidar_sum_voxel(call, &ray, walk.cell,
                                    vxd_voxel_row(&call->view,
                                                  place - (int32_t)call->begin,
                                                  vxd_voxel_index(&call->view, voxel[0],
                                                                  voxel[1], voxel[2])));
            }
        }
        if (n_left-- == 0) {
            return;
        }
        vxd_cell_walk_next(&walk);
    }
}

/* Marks the voxels of a block that a ray passes between two shares of its free part. */
VXD_LIDAR_STEP void vxd_lidar_mark(const struct vxd_lidar_call *call,
                                   const struct vxd_lidar_free *part, float enter,
                                   float leave, int32_t entry)
{
    struct vxd_cell_walk walk;
    int n_left = vxd_lidar_free_voxels(&call->form, part, enter, leave, &walk);

    for (;;) {
        size_t row = vxd_voxel_row(
            &call->view, entry,
            vxd_voxel_index(&call->view, walk.cell[0], walk.cell[1], walk.cell[2]));
        uint32_t bit = (uint32_t)1 << (row & 31);

        if ((vxd_lidar_load32(&call->passed[row >> 5]) & bit) == 0) {
            vxd_lidar_or32(&call->passed[row >> 5], bit);
        }
        if (n_left-- == 0) {
            return;
        }
        vxd_cell_walk_next(&walk);
    }
}

VXD_LIDAR_STEP void vxd_lidar_pass_item(const struct vxd_lidar_call *call, size_t i)
{
    struct vxd_lidar_ray ray = call->rays[i];
    struct vxd_lidar_free part;
    float enter = 0;

    if (!vxd_lidar_free_start(&call->form, &ray, &part)) {
        return;
    }
    for (;;) {
        float leave = vxd_lidar_free_exit(&part);
        int32_t entry = vxd_volume_find_block(
            &call->view, vxd_block_tag(part.base[0] + part.walk.cell[0],
                                       part.base[1] + part.walk.cell[1],
                                       part.base[2] + part.walk.cell[2]));

        if (entry != VXD_NO_ENTRY) {
            vxd_lidar_mark(call, &part, enter, leave, entry);
        }
        if (part.n_left-- == 0) {
            return;
        }
        enter = leave;
        vxd_cell_walk_next(&part.walk);
    }
}

/* ---- Voxels ---- */

VXD_LIDAR_STEP void vxd_lidar_place_item(const struct vxd_lidar_call *call, size_t i)
{
    call->places[call->entries[i]] = (int32_t)i;
}

VXD_LIDAR_STEP void vxd_lidar_finish_item(const struct vxd_lidar_call *call, size_t item)
{
    int32_t entry =
        call->entries[call->begin + (uint32_t)(item >> (3 * call->view.shift))];
    uint32_t index =
        (uint32_t)item & (uint32_t)(vxd_volume_block_voxels(&call->view) - 1);
    size_t row = vxd_voxel_row(&call->view, entry, index);
    float distance;
    float weight;

    if (call->sums[2 * item + 1] <= 0) {
        return;
    }
    vxd_lidar_mean(&call->form, call->sums[2 * item], call->sums[2 * item + 1], &distance,
                   &weight);
    vxd_lidar_average(&call->view, row, distance, weight);
    if (call->votes != NULL && call->votes[item] != UINT32_MAX) {
        vxd_volume_vote(&call->view, row, call->votes[item] & 255u);
    }
    if (call->passed != NULL) {
        vxd_lidar_and32(&call->passed[row >> 5], ~((uint32_t)1 << (row & 31)));
    }
    vxd_lidar_stamp(call, entry);
}

/* Notes that a block which the scan does not touch has changed. */
VXD_LIDAR_STEP void vxd_lidar_note_carved(const struct vxd_lidar_call *call,
                                          int32_t entry)
{
    if (vxd_lidar_cas32(&call->places[entry], -1, -2) == -1) {
        (void)vxd_lidar_add32(&call->counts->n_carved, 1);
    }
    vxd_lidar_stamp(call, entry);
}

VXD_LIDAR_STEP void vxd_lidar_carve_item(const struct vxd_lidar_call *call, size_t item)
{
    int word_shift = 3 * call->view.shift - 5;
    int32_t entry = call->active[item >> word_shift];
    size_t word =
        ((size_t)entry << word_shift) + (item & (((size_t)1 << word_shift) - 1));
    uint32_t bits = call->passed[word];
    float weight = vxd_lidar_free_weight(&call->form);

    for (size_t k = 0; k < 32 && bits != 0; k++) {
        if ((bits >> k & 1u) != 0) {
            vxd_lidar_average(&call->view, 32 * word + k, 1.0f, weight);
        }
    }
    if (bits != 0) {
        vxd_lidar_note_carved(call, entry);
    }
}

/* A voxel observes the image; returns whether there is anything. */
VXD_LIDAR_STEP bool vxd_lidar_look_voxel(const struct vxd_lidar_call *call, int32_t entry,
                                         uint32_t index)
{
    size_t row = vxd_voxel_row(&call->view, entry, index);
    struct vxd_lidar_observation seen = vxd_lidar_observe(
        &call->form, call->rays, call->image, call->view.keys + 3 * (size_t)entry, index);

    if (!(seen.weight > 0)) {
        return false;
    }
    vxd_lidar_average(&call->view, row, seen.distance, seen.weight);
    if (call->view.labels != NULL && seen.label != 0) {
        vxd_volume_vote(&call->view, row, seen.label);
    }
    return true;
}

VXD_LIDAR_STEP void vxd_lidar_look_item(const struct vxd_lidar_call *call, size_t item)
{
    int32_t entry = call->entries[item >> (3 * call->view.shift)];
    uint32_t index =
        (uint32_t)item & (uint32_t)(vxd_volume_block_voxels(&call->view) - 1);

    if (vxd_lidar_look_voxel(call, entry, index)) {
        vxd_lidar_stamp(call, entry);
    }
}

VXD_LIDAR_STEP void vxd_lidar_reach_item(const struct vxd_lidar_call *call, size_t item)
{
    int32_t entry = call->active[item >> (3 * call->view.shift)];
    uint32_t index =
        (uint32_t)item & (uint32_t)(vxd_volume_block_voxels(&call->view) - 1);

    if (vxd_lidar_cas32(&call->places[entry], -3, -3) < 0 &&
        vxd_lidar_reaches(&call->form, call->view.keys + 3 * (size_t)entry) &&
        vxd_lidar_look_voxel(call, entry, index)) {
        vxd_lidar_note_carved(call, entry);
    }
}

VXD_LIDAR_STEP void vxd_lidar_item(const struct vxd_lidar_call *call, size_t i)
{
    switch (call->stage) {
    case VXD_LIDAR_AIM:
        vxd_lidar_aim_item(call, i);
        break;
    case VXD_LIDAR_TOUCH:
        vxd_lidar_touch_item(call, i);
        break;
    case VXD_LIDAR_PLACE:
        vxd_lidar_place_item(call, i);
        break;
    case VXD_LIDAR_PASS:
        vxd_lidar_pass_item(call, i);
        break;
    case VXD_LIDAR_SUM:
        vxd_lidar_sum_item(call, i);
        break;
    case VXD_LIDAR_FINISH:
        vxd_lidar_finish_item(call, i);
        break;
    case VXD_LIDAR_CARVE:
        vxd_lidar_carve_item(call, i);
        break;
    case VXD_LIDAR_LOOK:
        vxd_lidar_look_item(call, i);
        break;
    case VXD_LIDAR_REACH:
        vxd_lidar_reach_item(call, i);
        break;
    }
}

#ifdef __cplusplus
extern "C" {
#endif

/* The rows + 1 tangents of the borders between rows of a lidar that was checked. */
void vxd_lidar_borders(const struct vxd_volume_lidar *lidar, float *borders);

/* All of the form but the borders.
 * errors  INVALID_ARGUMENT */
enum vxd_status vxd_lidar_form_init(const struct vxd_volume *volume,
                                    const struct vxd_volume_scan *scan,
                                    struct vxd_lidar_form *out, struct vxd_err *err);

/* Runs the call's stage over its items. Asynchronous. */
enum vxd_status vxd_lidar_run_cpu(struct vxd_queue *queue,
                                  const struct vxd_lidar_call *call, struct vxd_err *err);
enum vxd_status vxd_lidar_run_cuda(struct vxd_queue *queue,
                                   const struct vxd_lidar_call *call,
                                   struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
