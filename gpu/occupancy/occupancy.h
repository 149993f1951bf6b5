// SPDX-License-Identifier: Apache-2.0
/* Occupancy fused by log-odds: what a scene's scans have seen of each voxel, beside the
 * SVDAG that has the voxels' states.
 *
 * A layer has an int8 for each voxel of the 8^3 blocks that scans have touched, in a hash
 * map from blocks to rows. A value is a log-odds in steps (struct vxd_occupancy_rule), or
 * VXD_OCCUPANCY_UNKNOWN where the voxel was never observed. The state of a voxel in a
 * block and its value always agree: unknown, occupied where the value is at least the
 * rule's threshold, else free. Voxels outside of blocks have the clamp of their state.
 *
 * A scan is a plan (which reads the layer and gives the voxels that become free), an edit
 * of the scene, and then the plan's application, which cannot fail. So an edit that fails
 * leaves the layer as it was. One queue at a time uses a layer, as a hash map.
 *
 * source  OctoMap (Hornung et al. 2013), equations 2 to 4; a voxel gets at most one update
 *         a scan, and a hit in it beats every miss, as in OcTree::computeUpdate */
#ifndef VXD_GPU_OCCUPANCY_OCCUPANCY_H
#define VXD_GPU_OCCUPANCY_OCCUPANCY_H

#include "gpu/svdag/brush/brush.h"
#include "gpu/svdag/scan/scan.h"
#include "gpu/svdag/svdag.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VXD_OCCUPANCY_UNKNOWN (-128)

/* Probabilities; each 0 stands for OctoMap's default: 0.7, 0.4, 0.1192, 0.971, 0.5. */
struct vxd_occupancy_odds {
    double hit;        /* of a voxel that a point hits; 0.5 to 1 */
    double miss;       /* of one that a ray passes; 0 to 0.5 */
    double clamp_low;  /* the log-odds never go below; 0 to 0.5 */
    double clamp_high; /* nor above; 0.5 to 1 */
    double occupied;   /* occupied from here on; between the clamps */
    /* A hit's material is one vote of its voxel, whose material is that of most of its last so many
     * votes, of several the newest: 2 to VXD_OCCUPANCY_MAX_VOTES. 0: that of the last hit. */
    int32_t votes;
};

#define VXD_OCCUPANCY_MAX_VOTES 4

static inline bool vxd_occupancy_odds_equal(const struct vxd_occupancy_odds *a,
                                            const struct vxd_occupancy_odds *b)
{
    return a->hit == b->hit && a->miss == b->miss && a->clamp_low == b->clamp_low &&
           a->clamp_high == b->clamp_high && a->occupied == b->occupied &&
           a->votes == b->votes;
}

/* The same in steps of log-odds. */
struct vxd_occupancy_rule {
    int32_t hit;
    int32_t miss; /* negative */
    int32_t low;  /* the clamps; -127 to 127 */
    int32_t high;
    int32_t occupied; /* a value from here on is occupied; low < occupied <= high */
    int32_t votes;    /* as the odds */
    double step;      /* log-odds of a step */
    double error;     /* the largest relative error of the numbers above */
};

/* Finds the step with the least error; OctoMap's defaults have 0.0338: +25, -12, -59, 104.
 * *odds gets its defaults filled in.
 * errors  INVALID_ARGUMENT  a probability out of its range, err.field "hit", ...; or numbers
 *                           that no step brings within 1 % in 8 bits */
enum vxd_status vxd_occupancy_rule_of(struct vxd_occupancy_odds *odds,
                                      struct vxd_occupancy_rule *out,
                                      struct vxd_err *err);

struct vxd_occupancy;

/* Blocking: any queue may use the layer afterwards.
 * errors  RESOURCE_EXHAUSTED
 * owner   the caller; empty, for scenes of this depth */
enum vxd_status vxd_occupancy_create(struct vxd_queue *queue,
                                     const struct vxd_occupancy_rule *rule, int depth,
                                     struct vxd_occupancy **out, struct vxd_err *err);
/* In queue order; NULL is fine. */
void vxd_occupancy_destroy(struct vxd_queue *queue, struct vxd_occupancy *layer);

/* Makes an equal layer. Blocking.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_occupancy_copy(struct vxd_queue *queue,
                                   const struct vxd_occupancy *layer,
                                   struct vxd_occupancy **out, struct vxd_err *err);

/* Forgets all values: they become the clamps of the scene's states.
 * errors  RESOURCE_EXHAUSTED; the layer is unchanged */
enum vxd_status vxd_occupancy_clear(struct vxd_queue *queue, struct vxd_occupancy *layer,
                                    struct vxd_err *err);

/* The blocks of a layer in host memory, for files. Zero-initialised it is none. */
struct vxd_occupancy_image {
    size_t n_blocks;
    struct vxd_buffer keys; /* int64, Morton codes of blocks, in any order */
    struct vxd_buffer rows; /* 512 int8 each, in Morton order */
    /* Blocks of which voxels have votes: 512 uint64 each, of four uint16: the newest lowest, a
     * material plus 1, 0 = none. */
    size_t n_vote_blocks;
    struct vxd_buffer vote_keys;
    struct vxd_buffer vote_rows;
};

#define VXD_OCCUPANCY_BLOCK_VOXELS 512

/* Blocking; reads the layer alone, on any queue, while no other one uses it.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_occupancy_export(struct vxd_queue *queue, struct vxd_occupancy *layer,
                                     struct vxd_occupancy_image *out,
                                     struct vxd_err *err);
/* Allocates an image for n blocks, and n_vote_blocks of votes, contents undefined.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_occupancy_image_alloc(struct vxd_context *context, size_t n_blocks,
                                          size_t n_vote_blocks,
                                          struct vxd_occupancy_image *out,
                                          struct vxd_err *err);
void vxd_occupancy_image_free(struct vxd_context *context,
                              struct vxd_occupancy_image *image);

/* Gives a layer without values those of an image, whose states must be the scene's.
 * Blocking.
 * errors  DATA_LOSS           a block twice or outside the scene, a value outside the
 *                             clamps; the layer is unchanged
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_occupancy_import(struct vxd_queue *queue, struct vxd_occupancy *layer,
                                     const struct vxd_occupancy_image *image,
                                     struct vxd_err *err);

const struct vxd_occupancy_rule *
vxd_occupancy_get_rule(const struct vxd_occupancy *layer);
/* Device memory that it takes, of that for votes, and the most that it may take (0 = the context's
 * budget). */
size_t vxd_occupancy_n_bytes(const struct vxd_occupancy *layer);
size_t vxd_occupancy_vote_bytes(const struct vxd_occupancy *layer);
void vxd_occupancy_set_max_bytes(struct vxd_occupancy *layer, size_t max_bytes);

/* Whether a plan or a clearing that failed has left a layer that forgets its values before
 * anything else is done with it. */
bool vxd_occupancy_is_damaged(const struct vxd_occupancy *layer);

/* What a scan does to a layer and to its scene. */
struct vxd_occupancy_plan;

/* Plans the update of one scan: each voxel of the hit lists gets a hit, each other voxel of
 * the passed lists a miss. Blocks that are new to the layer are added with the clamps of
 * their voxels' states.
 *
 * The scene becomes what the layer says by an edit that fills the hits, and then frees
 * *freed: the voxels that become free, and the hit ones that are still free.
 *
 * in      root    of svdag, the scene that the layer is of; it must not change until the
 *                 edit
 *         hits, passed  lists in device memory, n_hits and n_passed of them, in any order;
 *                 those of gpu/svdag/scan; borrowed until the call returns
 * out     *out    the caller's (vxd_occupancy_plan_free), also valid after the layer grew
 *         *freed  a list in the plan's memory, ascending
 * errors  INVALID_ARGUMENT    more than 2^30 leaves in all lists
 *         RESOURCE_EXHAUSTED  over max_bytes or the budget; the layer means what it meant.
 *                             Where the machine has no memory for a queue's entry either,
 *                             it forgets its values: all become clamps
 *                             (vxd_occupancy_is_damaged)
 * sync    blocking */
enum vxd_status vxd_occupancy_plan_scan(
    struct vxd_queue *queue, struct vxd_occupancy *layer, const struct vxd_svdag *svdag,
    uint32_t root, const struct vxd_svdag_voxels *hits, size_t n_hits,
    const struct vxd_svdag_voxels *passed, size_t n_passed,
    struct vxd_occupancy_plan **out, struct vxd_svdag_voxels *freed, struct vxd_err *err);

/* Counts the hits of a planned scan as votes, where the layer's rule has votes, and gives the
 * materials that win: the scene's edit fills the hits with those. Until the plan is applied freeing
 * it takes the votes back. A plan that this fails for may still be applied or freed.
 *
 * in      hits    as of the plan; values of voxels, or for lists without any values[i] of list i
 * out     voted   n_hits lists of the same voxels with values in the plan's memory; the lists
 *                 themselves, without votes
 * errors  RESOURCE_EXHAUSTED  no vote has counted, but as in vxd_occupancy_plan_scan
 * sync    blocking */
enum vxd_status vxd_occupancy_vote(struct vxd_queue *queue,
                                   struct vxd_occupancy_plan *plan,
                                   const struct vxd_svdag_voxels *hits,
                                   const uint32_t *values, size_t n_hits,
                                   struct vxd_svdag_voxels *voted, struct vxd_err *err);

/* How evidence fades: the distance of each log-odds from 0 is multiplied by factor / 65536,
 * rounded down, and reduced by `step` steps, to 0 at least. A voxel becomes unknown where
 * nothing is left, and where its state would become the opposite one. All of it and no step
 * less is no decay. */
struct vxd_occupancy_decay {
    uint32_t factor; /* 0 to VXD_OCCUPANCY_DECAY_ONE */
    int32_t step;    /* 0 to 255 */
    /* Voxels of this box alone, low <= voxel < high; and of these, with `keeps`, those whose
     * centres are outside a ball: units, magnitudes below 2^30, the radius 0 to 2^31. */
    int64_t low[3], high[3];
    bool keeps;
    int64_t centre[3];
    int64_t radius;
};

#define VXD_OCCUPANCY_DECAY_ONE UINT32_C(65536)

/* What a decay makes of a value. */
int32_t vxd_occupancy_decayed(const struct vxd_occupancy_rule *rule,
                              const struct vxd_occupancy_decay *decay, int32_t value);

/* Plans a decay of the voxels in blocks, which scans have touched; voxels outside of them,
 * and pinned ones, keep their states. The scene becomes what the layer says by an edit that
 * erases *forgotten; then vxd_occupancy_apply follows.
 *
 * in      root, pins  of svdag: the scene, and what of it is pinned (its occupied voxels)
 * out     as vxd_occupancy_plan_scan
 * errors  RESOURCE_EXHAUSTED  the layer is unchanged
 * sync    blocking */
enum vxd_status
vxd_occupancy_plan_decay(struct vxd_queue *queue, struct vxd_occupancy *layer,
                         const struct vxd_svdag *svdag, uint32_t root, uint32_t pins,
                         const struct vxd_occupancy_decay *decay,
                         struct vxd_occupancy_plan **out,
                         struct vxd_svdag_voxels *forgotten, struct vxd_err *err);

/* Makes a list without the voxels that are pinned, with the values of the others.
 *
 * in      list  in device memory
 * out     out   the caller's (vxd_svdag_voxel_list_free), also after a failure
 * errors  RESOURCE_EXHAUSTED
 * sync    blocking */
enum vxd_status vxd_occupancy_unpinned(struct vxd_queue *queue,
                                       const struct vxd_svdag *svdag, uint32_t pins,
                                       const struct vxd_svdag_voxels *list,
                                       struct vxd_svdag_voxel_list *out,
                                       struct vxd_err *err);

/* Updates the layer as planned; nothing else may have changed it since.
 * errors  UNAVAILABLE, INTERNAL  of the device alone
 * sync    blocking */
enum vxd_status vxd_occupancy_apply(struct vxd_queue *queue, struct vxd_occupancy *layer,
                                    const struct vxd_occupancy_plan *plan,
                                    struct vxd_err *err);

/* In queue order; NULL is fine. */
void vxd_occupancy_plan_free(struct vxd_queue *queue, struct vxd_occupancy_plan *plan);

/* Follows a change of the scene that was no scan: voxels whose state in `after` is another
 * than in `before` get the clamp of their state; the others keep their values.
 *
 * cost    a descent of both trees a block, to where they are equal
 * errors  RESOURCE_EXHAUSTED (no memory for the list of blocks; nothing has changed)
 * sync    blocking */
enum vxd_status vxd_occupancy_follow(struct vxd_queue *queue, struct vxd_occupancy *layer,
                                     const struct vxd_svdag *svdag, uint32_t before,
                                     uint32_t after, struct vxd_err *err);

/* Values of voxels.
 *
 * in      voxels  n x 3 int32, device memory; outside the scene is UNKNOWN
 * out     values  n int8, device memory
 * errors  RESOURCE_EXHAUSTED
 * sync    asynchronous */
enum vxd_status vxd_occupancy_values(struct vxd_queue *queue, struct vxd_occupancy *layer,
                                     const struct vxd_svdag *svdag, uint32_t root,
                                     const int32_t *voxels, size_t n, int8_t *values,
                                     struct vxd_err *err);

struct vxd_occupancy_stats {
    size_t n_blocks;
    uint64_t n_observed; /* voxels of blocks that are not UNKNOWN; modulo 2^32 */
    size_t n_bytes;
};

/* Blocking. errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_occupancy_get_stats(struct vxd_queue *queue,
                                        struct vxd_occupancy *layer,
                                        struct vxd_occupancy_stats *out,
                                        struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
