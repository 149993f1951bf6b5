// SPDX-License-Identifier: Apache-2.0
/* A scan's points on the CPU: those within the ranges, the first one of each voxel, and of these the
 * first one of each larger voxel. Threads claim slots of one table without locks; the least index
 * wins, whatever the order. */
#include "gpu/odometry/odometry_internal.h"

#define CLEAR_PIECE ((size_t)1 << 16)

static void clear_piece(void *args, size_t begin, size_t end)
{
    const struct vxd_odometry_scan_call *call = args;

    for (int k = 0; k < 2; k++) {
        memset(call->tables[k].tags + begin, 0xff, (end - begin) * sizeof(uint64_t));
        memset(call->tables[k].first + begin, 0xff, (end - begin) * sizeof(uint32_t));
    }
}

/* Enters a point; returns its slot. There are more slots than points. */
static uint32_t claim(const struct vxd_odometry_table *table, uint64_t tag,
                      uint32_t index)
{
    size_t mask = table->n_slots - 1;
    size_t slot = (size_t)vxd_mix64(tag) & mask;
    uint32_t first;

    for (;;) {
        uint64_t seen = __atomic_load_n(&table->tags[slot], __ATOMIC_RELAXED);

        if (seen == VXD_ODOMETRY_NO_TAG &&
            __atomic_compare_exchange_n(&table->tags[slot], &seen, tag, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            break;
        }
        if (seen == tag) {
            break;
        }
        slot = (slot + 1) & mask;
    }
    first = __atomic_load_n(&table->first[slot], __ATOMIC_RELAXED);
    while (index < first &&
           !__atomic_compare_exchange_n(&table->first[slot], &first, index, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return (uint32_t)slot;
}

static void fine_piece(void *args, size_t begin, size_t end)
{
    const struct vxd_odometry_scan_call *call = args;
    uint64_t before = VXD_ODOMETRY_NO_TAG;
    uint32_t n_used = 0;

    for (size_t i = begin; i < end; i++) {
        const float *p = call->points + 3 * i;
        uint64_t tag;

        call->slots[i] = VXD_ODOMETRY_END;
        if (!vxd_odometry_is_used(p, call->min2, call->max2)) {
            continue;
        }
        n_used++;
        tag = vxd_odometry_tag(p, call->inverse_fine);
        if (tag != before) { /* else the point before is the first one */
            call->slots[i] = claim(&call->tables[0], tag, (uint32_t)i);
            before = tag;
        }
    }
    (void)__atomic_fetch_add(&call->work->n_used, n_used, __ATOMIC_RELAXED);
}

static void coarse_piece(void *args, size_t begin, size_t end)
{
    const struct vxd_odometry_scan_call *call = args;
    uint32_t *slots = call->slots + call->n;
    uint32_t n_fine = 0;

    for (size_t i = begin; i < end; i++) {
        uint32_t slot = call->slots[i];

        slots[i] = VXD_ODOMETRY_END;
        if (slot == VXD_ODOMETRY_END || call->tables[0].first[slot] != (uint32_t)i) {
            call->slots[i] = VXD_ODOMETRY_END;
            continue;
        }
        n_fine++;
        slots[i] = claim(&call->tables[1],
                         vxd_odometry_tag(call->points + 3 * i, call->inverse_coarse),
                         (uint32_t)i);
    }
    call->pieces[2 * (begin / VXD_ODOMETRY_PIECE)] = n_fine;
}

static void count_piece(void *args, size_t begin, size_t end)
{
    const struct vxd_odometry_scan_call *call = args;
    uint32_t *slots = call->slots + call->n;
    uint32_t n_coarse = 0;

    for (size_t i = begin; i < end; i++) {
        if (slots[i] != VXD_ODOMETRY_END) {
            if (call->tables[1].first[slots[i]] == (uint32_t)i) {
                n_coarse++;
            } else {
                slots[i] = VXD_ODOMETRY_END;
            }
        }
    }
    call->pieces[2 * (begin / VXD_ODOMETRY_PIECE) + 1] = n_coarse;
}

static void write_piece(void *args, size_t begin, size_t end)
{
    const struct vxd_odometry_scan_call *call = args;
    const uint32_t *place = call->pieces + 2 * (begin / VXD_ODOMETRY_PIECE);
    float *fine = call->map_points + 3 * (size_t)place[0];
    float *coarse = call->registered_points + 3 * (size_t)place[1];

    for (size_t i = begin; i < end; i++) {
        if (call->slots[i] != VXD_ODOMETRY_END) {
            memcpy(fine, call->points + 3 * i, 3 * sizeof(float));
            fine += 3;
        }
        if (call->slots[call->n + i] != VXD_ODOMETRY_END) {
            memcpy(coarse, call->points + 3 * i, 3 * sizeof(float));
            coarse += 3;
        }
    }
}

static enum vxd_status scan_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    struct vxd_odometry_scan_call call = *(const struct vxd_odometry_scan_call *)args;
    size_t n_pieces = (call.n + VXD_ODOMETRY_PIECE - 1) / VXD_ODOMETRY_PIECE;
    uint32_t n_fine = 0;
    uint32_t n_coarse = 0;

    (void)err;
    vxd_parallel_for(pool, call.tables[0].n_slots, CLEAR_PIECE, clear_piece, &call);
    vxd_parallel_for(pool, call.n, VXD_ODOMETRY_PIECE, fine_piece, &call);
    vxd_parallel_for(pool, call.n, VXD_ODOMETRY_PIECE, coarse_piece, &call);
    vxd_parallel_for(pool, call.n, VXD_ODOMETRY_PIECE, count_piece, &call);
    for (size_t i = 0; i < n_pieces; i++) {
        uint32_t fine = call.pieces[2 * i];
        uint32_t coarse = call.pieces[2 * i + 1];

        call.pieces[2 * i] = n_fine;
        call.pieces[2 * i + 1] = n_coarse;
        n_fine += fine;
        n_coarse += coarse;
    }
    vxd_parallel_for(pool, call.n, VXD_ODOMETRY_PIECE, write_piece, &call);
    call.work->n_map = n_fine;
    call.work->n_registered = n_coarse;
    return VXD_OK;
}

enum vxd_status vxd_odometry_scan_cpu(struct vxd_queue *queue,
                                      const struct vxd_odometry_scan_call *call,
                                      struct vxd_err *err)
{
    return vxd_queue_push(queue, scan_job, call, sizeof *call, err);
}
