// SPDX-License-Identifier: Apache-2.0
/* The steps on the CPU: loops over pieces of their elements. */
#include "gpu/occupancy/occupancy_backends.h"

#define PIECE ((size_t)4096)

struct steps {
    struct vxd_occupancy_work work;
    enum vxd_occupancy_step step;
    uint64_t n;
};

/* A loop for each step, so that the compiler sees which one it is. */
#define PIECE_OF(name, body)                                                             \
    static void name(const struct vxd_occupancy_work *work, size_t begin, size_t end)    \
    {                                                                                    \
        for (size_t i = begin; i < end; i++) {                                           \
            body(work, i);                                                               \
        }                                                                                \
    }
PIECE_OF(number_piece, vxd_occupancy_number)
PIECE_OF(mark_piece, vxd_occupancy_mark)
PIECE_OF(join_piece, vxd_occupancy_join)
PIECE_OF(begin_piece, vxd_occupancy_begin)
PIECE_OF(judge_piece, vxd_occupancy_judge)
PIECE_OF(flag_piece, vxd_occupancy_flag)
PIECE_OF(list_piece, vxd_occupancy_list)
PIECE_OF(apply_piece, vxd_occupancy_apply_octet)
PIECE_OF(follow_piece, vxd_occupancy_follow_block)
PIECE_OF(count_piece, vxd_occupancy_count_block)
PIECE_OF(locate_piece, vxd_occupancy_locate)
PIECE_OF(read_piece, vxd_occupancy_read)
PIECE_OF(key_piece, vxd_occupancy_key)
PIECE_OF(fade_judge_piece, vxd_occupancy_fade_judge)
PIECE_OF(fade_list_piece, vxd_occupancy_fade_list)
PIECE_OF(fade_piece, vxd_occupancy_fade)
PIECE_OF(unpin_mark_piece, vxd_occupancy_unpin_mark)
PIECE_OF(unpin_list_piece, vxd_occupancy_unpin_list)
PIECE_OF(vote_key_piece, vxd_occupancy_vote_key)
PIECE_OF(vote_begin_piece, vxd_occupancy_vote_begin)
PIECE_OF(vote_piece, vxd_occupancy_vote_leaf)
PIECE_OF(vote_undo_piece, vxd_occupancy_vote_undo)

static void (*const pieces[VXD_OCCUPANCY_N_STEPS])(const struct vxd_occupancy_work *work,
                                                   size_t begin, size_t end) = {
    [VXD_OCCUPANCY_NUMBER] = number_piece,
    [VXD_OCCUPANCY_MARK] = mark_piece,
    [VXD_OCCUPANCY_JOIN] = join_piece,
    [VXD_OCCUPANCY_BEGIN] = begin_piece,
    [VXD_OCCUPANCY_JUDGE] = judge_piece,
    [VXD_OCCUPANCY_FLAG] = flag_piece,
    [VXD_OCCUPANCY_LIST] = list_piece,
    [VXD_OCCUPANCY_APPLY] = apply_piece,
    [VXD_OCCUPANCY_FOLLOW] = follow_piece,
    [VXD_OCCUPANCY_COUNT] = count_piece,
    [VXD_OCCUPANCY_LOCATE] = locate_piece,
    [VXD_OCCUPANCY_READ] = read_piece,
    [VXD_OCCUPANCY_KEY] = key_piece,
    [VXD_OCCUPANCY_FADE_JUDGE] = fade_judge_piece,
    [VXD_OCCUPANCY_FADE_LIST] = fade_list_piece,
    [VXD_OCCUPANCY_FADE] = fade_piece,
    [VXD_OCCUPANCY_UNPIN_MARK] = unpin_mark_piece,
    [VXD_OCCUPANCY_UNPIN_LIST] = unpin_list_piece,
    [VXD_OCCUPANCY_VOTE_KEY] = vote_key_piece,
    [VXD_OCCUPANCY_VOTE_BEGIN] = vote_begin_piece,
    [VXD_OCCUPANCY_VOTE] = vote_piece,
    [VXD_OCCUPANCY_VOTE_UNDO] = vote_undo_piece,
};

static void run_piece(void *args, size_t begin, size_t end)
{
    const struct steps *steps = args;

    const size_t first = (size_t)steps->work.first;

    pieces[steps->step](&steps->work, first + begin, first + end);
}

static enum vxd_status run_job(struct vxd_pool *pool, const void *args,
                               struct vxd_err *err)
{
    struct steps steps = *(const struct steps *)args;

    (void)err;
    vxd_parallel_for(pool, (size_t)steps.n, PIECE, run_piece, &steps);
    return VXD_OK;
}

enum vxd_status vxd_occupancy_run_cpu(struct vxd_queue *queue,
                                      enum vxd_occupancy_step step,
                                      const struct vxd_occupancy_work *work, uint64_t n,
                                      struct vxd_err *err)
{
    const struct steps steps = {*work, step, n};

    return vxd_queue_push(queue, run_job, &steps, sizeof steps, err);
}
