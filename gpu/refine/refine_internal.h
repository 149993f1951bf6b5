// SPDX-License-Identifier: Apache-2.0
/* What the files of gpu/refine share: a refinement behind its opaque name, the list of operations
 * that is worked off in slices, and the backends. */
#ifndef VXD_GPU_REFINE_REFINE_INTERNAL_H
#define VXD_GPU_REFINE_REFINE_INTERNAL_H

#include "gpu/core/core_cpu.h"
#include "gpu/refine/refine.h"
#include "gpu/refine/refine_setup.h"
#include "gpu/refine/refine_solve.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All steps: name, and the expression for item i of `call`. Chunks of light, bins, poses and the sums of
 * terms are made by code of the backends besides, in the same order of additions. */
#define VXD_REFINE_STEPS(X)                                                              \
    X(COUNT, vxd_refine_count_item(&call->set, i))                                       \
    X(LIST, vxd_refine_list_item(&call->set, i))                                         \
    X(EXTENT, vxd_refine_extent_item(&call->view, call->set.extents, i))                 \
    X(RING, vxd_refine_ring_item(&call->view, call->bytes, i))                           \
    X(FLAG, vxd_refine_flag_item(&call->view, call->order, i))                           \
    X(RING_KEY, vxd_refine_ring_key_item(&call->view, call->order, call->light.keys, i)) \
    X(ASK, vxd_refine_ask_item(&call->view, call->light.keys, i))                        \
    X(LINK, vxd_refine_link_item(&call->view, call->links, call->bytes, i))              \
    X(START, vxd_refine_start_item(&call->view, &call->set, i))                          \
    X(READ_ALBEDO,                                                                       \
      vxd_refine_read_albedo_item(&call->view, &call->set, call->bins.unseen, i))        \
    X(IMAGE, vxd_refine_image_item(&call->image, i))                                     \
    X(NODE, vxd_refine_node_item(&call->view, i))                                        \
    X(SEE, vxd_refine_see_item(&call->view, &call->see, i))                              \
    X(MEAN, vxd_refine_mean_item(&call->view, i))                                        \
    X(CHROMA, vxd_refine_chroma_item(&call->view, i))                                    \
    X(BIN_SUM, vxd_refine_bin_sum_item(&call->view, &call->bins, i))                     \
    X(BIN, vxd_refine_bin_item(&call->bins, i))                                          \
    X(ALBEDO, vxd_refine_albedo_item(&call->view, &call->bins, i))                       \
    X(CUBE, vxd_refine_cube_item(&call->view, call->light.keys, i))                      \
    X(CORNER, vxd_refine_corner_item(&call->light, i))                                   \
    X(OWNER, vxd_refine_owner_item(&call->light, i))                                     \
    X(SORT_KEY, vxd_refine_sort_key_item(&call->view, &call->light, call->order, i))     \
    X(BEGIN_OF, vxd_refine_begin_of_item(&call->light, i))                               \
    X(LIGHT_CHUNK, vxd_refine_light_chunk_item(&call->view, &call->light, i))            \
    X(CUBE_SUM, vxd_refine_cube_sum_item(&call->light, i))                               \
    X(LIGHT_RIGHT, vxd_refine_light_right_item(&call->light, &call->solve, i))           \
    X(LIGHT_MATRIX,                                                                      \
      vxd_refine_light_matrix_item(&call->view, &call->light, call->solve.p, i))         \
    X(LIGHT_GATHER, vxd_refine_light_gather_item(&call->light, &call->solve, i))         \
    X(SIGHT,                                                                             \
      vxd_refine_sight_item(&call->view, call->pose.first, call->pose.n_slots, i))       \
    X(COUPLE,                                                                            \
      vxd_refine_couple_item(&call->view, call->pose.n_slots, call->pose.first == 0, i)) \
    X(PUSH, vxd_refine_push_item(&call->view, call->solve.p, i))                         \
    X(PULL, vxd_refine_pull_item(&call->view, call->is_gradient, i))                     \
    X(GATHER, vxd_refine_gather_item(&call->view, call->solve.p, call->solve.q,          \
                                     call->is_gradient, i))                              \
    X(DIAGONAL, vxd_refine_diagonal_item(&call->view, i))                                \
    X(BEGIN, vxd_refine_begin_item(&call->solve, i))                                     \
    X(ADVANCE, vxd_refine_advance_item(&call->solve, i))                                 \
    X(TURN, vxd_refine_turn_item(&call->solve, i))                                       \
    X(ACCEPT, vxd_refine_accept_item(&call->solve, i))                                   \
    X(REVERT, call->solve.state[i] = call->solve.before[i])                              \
    X(ADAM, vxd_refine_adam_item(&call->solve, i))                                       \
    X(SUM, (void)i) /* the terms alone */                                                \
    X(POSE, vxd_refine_pose_item(&call->view, &call->pose, i))                           \
    X(POSE_SUM, vxd_refine_pose_sum_item(&call->view, i))                                \
    X(CHILD, vxd_refine_child_item(&call->make, i))                                      \
    X(CODE, vxd_refine_code_item(&call->make, i))                                        \
    X(FILL, vxd_refine_fill_item(&call->make, i))                                        \
    X(APPLY, vxd_refine_apply_item(&call->view, &call->set, i))                          \
    X(STAMP, vxd_refine_stamp_item(&call->set, i))

#define VXD_REFINE_NAME_OF(name, expression) VXD_REFINE_STEP_##name,
enum vxd_refine_step_name {
    VXD_REFINE_STEPS(VXD_REFINE_NAME_OF) VXD_REFINE_N_STEPS
};
#undef VXD_REFINE_NAME_OF

/* Items [begin, end) of one step. */
struct vxd_refine_call {
    enum vxd_refine_step_name step;
    size_t begin;
    size_t end;
    size_t n_items; /* of the whole step, whose last range ends a sum */
    struct vxd_refine_view view;
    struct vxd_refine_set_call set;
    struct vxd_refine_image_call image;
    struct vxd_refine_see_call see;
    struct vxd_refine_light_call light;
    struct vxd_refine_solve_call solve;
    struct vxd_refine_pose_call pose;
    struct vxd_refine_make_call make;
    uint8_t *bytes;
    int32_t *links;
    uint32_t *order;
    struct vxd_refine_bin_call bins;
    int is_gradient;
};

enum vxd_status vxd_refine_run_cpu(struct vxd_queue *queue,
                                   const struct vxd_refine_call *call,
                                   struct vxd_err *err);
enum vxd_status vxd_refine_run_cuda(struct vxd_queue *queue,
                                    const struct vxd_refine_call *call,
                                    struct vxd_err *err);

/* An operation: a step over n items; several may use one pair of slots. */
struct vxd_refine_op {
    enum vxd_refine_step_name step;
    size_t n;
    size_t first; /* keyframe of slot 0 */
    size_t n_slots;
    enum vxd_refine_sum_kind kind; /* the sum that it ends with */
    int index;
    bool is_gradient;
    bool is_light; /* the vectors are those of the light's equations */
};

#define VXD_REFINE_MAX_OPS 128

/* Device memory by name. */
enum vxd_refine_buffer {
    VXD_REFINE_ENTRIES,
    VXD_REFINE_COUNTS,
    VXD_REFINE_KEYS,
    VXD_REFINE_ROWS,
    VXD_REFINE_NEAR,
    VXD_REFINE_LINKS,
    VXD_REFINE_RINGS,
    VXD_REFINE_EYES,
    VXD_REFINE_STATE,
    VXD_REFINE_START,
    VXD_REFINE_MEAN,
    VXD_REFINE_CHROMA,
    VXD_REFINE_VIEWS,
    VXD_REFINE_NODES,
    VXD_REFINE_CUBES,
    VXD_REFINE_CORNERS,
    VXD_REFINE_CUBE_KEYS,
    VXD_REFINE_CORNER_KEYS,
    VXD_REFINE_OWNERS,
    VXD_REFINE_AROUND,
    VXD_REFINE_ORDER,
    VXD_REFINE_CHUNKS,
    VXD_REFINE_FIRST_CHUNK,
    VXD_REFINE_CHUNK_SUMS,
    VXD_REFINE_CUBE_SUMS,
    VXD_REFINE_LIGHT_VECTORS,
    VXD_REFINE_LIGHT_PRODUCTS,
    VXD_REFINE_SIGHT,
    VXD_REFINE_SIGHT_WEIGHT,
    VXD_REFINE_COUPLINGS,
    VXD_REFINE_FORCE,
    VXD_REFINE_LOSSES,
    VXD_REFINE_POSE_PARTS,
    VXD_REFINE_POSE_TOTALS,
    VXD_REFINE_PRODUCTS,
    VXD_REFINE_DIAGONAL,
    VXD_REFINE_VECTORS,
    VXD_REFINE_BEFORE,
    VXD_REFINE_MOMENTS,
    VXD_REFINE_BIN_PARTS_BUFFER,
    VXD_REFINE_BIN_ALBEDO,
    VXD_REFINE_PARTIAL,
    VXD_REFINE_N_SUMMED,
    VXD_REFINE_SCALARS,
    VXD_REFINE_DEPTH,
    VXD_REFINE_SOURCE,
    VXD_REFINE_N_BUFFERS
};

/* A keyframe in memory. */
struct vxd_refine_frame {
    struct vxd_refine_keyframe given;
    struct vxd_volume_camera camera; /* as refined */
    struct vxd_volume_pose pose;
    int factor; /* of the image, by which it is smaller */
    int width;
    int height;
    struct vxd_buffer grey;
    struct vxd_buffer rgb8;
    double n_views;  /* sum of weights */
    double moved[6]; /* from the given pose, voxels */
    double moved_before[6];
    struct vxd_volume_pose pose_before; /* the step that may be taken back */
    struct vxd_volume_camera camera_before;
};

/* What is done next, in this order; a level begins at MAKE or at LIST, a round at NODES. */
enum vxd_refine_phase {
    VXD_REFINE_MAKE,
    VXD_REFINE_LIST_VOXELS,
    VXD_REFINE_IMAGES,
    VXD_REFINE_SEE_FRAMES,
    VXD_REFINE_MEANS,
    VXD_REFINE_FIND_CUBES,
    VXD_REFINE_SOLVE_LIGHT,
    VXD_REFINE_LINEARISE,
    VXD_REFINE_JUDGE,
    VXD_REFINE_SOLVE,
    VXD_REFINE_STEP_TAKEN,
    VXD_REFINE_POSES_SUMMED,
    VXD_REFINE_END_LEVEL,
    VXD_REFINE_DONE
};

struct vxd_refine {
    struct vxd_context *context;
    struct vxd_refine_options options;
    struct vxd_refine_frame *frames;
    size_t n_frames;
    struct vxd_volume *made; /* the new volume; NULL: none yet, or none is asked for */
    struct vxd_hashmap *set;
    struct vxd_hashmap *cubes;
    struct vxd_hashmap *corners;
    struct vxd_buffer buffers[VXD_REFINE_N_BUFFERS];

    enum vxd_refine_phase phase;
    int level;
    int round;
    int iteration;
    int cg;
    int part;       /* of a phase that has several */
    size_t frame;   /* of IMAGES, SEE */
    int cast_row;   /* of SEE */
    int light_pass; /* of the first round: albedo and light in turn */

    bool has_overlap; /* every keyframe sees something */

    size_t n_blocks;
    size_t n; /* voxels of the level */
    size_t n_cubes;
    size_t n_corners;
    size_t n_chunks;
    double voxel_size_m;
    double origin_m[3];
    double unit;          /* voxels of a distance of 1 */
    double set_centre[3]; /* voxels from the base */
    double reach;
    double brightness;
    double light_loss;
    double damping;
    double last_energy; /* of the state before the last step; < 0: none */
    bool was_rejected;

    struct vxd_refine_call call; /* the view and arrays of the level */
    struct vxd_refine_op ops[VXD_REFINE_MAX_OPS];
    size_t n_ops;
    size_t op_at;
    size_t item_at;

    struct vxd_refine_loss *losses;
    size_t n_losses;
    size_t losses_capacity;
};

/* --- refine.c -------------------------------------------------------------------------------- */

/* (Re)allocates one of the buffers, in queue order; its contents are undefined. */
enum vxd_status vxd_refine_alloc(struct vxd_queue *queue, struct vxd_refine *refine,
                                 enum vxd_refine_buffer which, size_t n_items,
                                 size_t item_bytes, struct vxd_err *err);
void vxd_refine_free(struct vxd_queue *queue, struct vxd_refine *refine,
                     enum vxd_refine_buffer which);
/* Appends an operation. */
void vxd_refine_push_op(struct vxd_refine *refine, struct vxd_refine_op op);
/* Appends a sum of n terms. */
void vxd_refine_push_sum(struct vxd_refine *refine, enum vxd_refine_sum_kind kind,
                         size_t n, int index);
/* Runs a whole step at once; `call` is the refinement's, or another one. */
enum vxd_status vxd_refine_run(struct vxd_queue *queue, struct vxd_refine_call *call,
                               enum vxd_refine_step_name step, size_t n,
                               struct vxd_err *err);
/* Blocking: reads device memory. */
enum vxd_status vxd_refine_read(struct vxd_queue *queue, const void *device,
                                size_t n_bytes, void *out, struct vxd_err *err);
/* Blocking: writes it. */
enum vxd_status vxd_refine_write(struct vxd_queue *queue, void *device, const void *from,
                                 size_t n_bytes, struct vxd_err *err);

/* --- refine_voxels.c: the voxel set of a level, and results in volumes ----------------------- */

enum vxd_status vxd_refine_list_voxels(struct vxd_queue *queue, struct vxd_refine *refine,
                                       struct vxd_volume *volume, struct vxd_err *err);

/* Makes a volume of the same voxels (doubling 0) or of halves, with an albedo layer.
 * errors  OUT_OF_RANGE, RESOURCE_EXHAUSTED */
enum vxd_status vxd_refine_make_volume(struct vxd_queue *queue, struct vxd_volume *from,
                                       int doubling, size_t max_bytes,
                                       struct vxd_volume **out, struct vxd_err *err);
enum vxd_status vxd_refine_write_back(struct vxd_queue *queue, struct vxd_refine *refine,
                                      struct vxd_volume *volume, struct vxd_err *err);

/* --- refine_frames.c: images, casts, poses ---------------------------------------------------- */

enum vxd_status vxd_refine_load_image(struct vxd_queue *queue, struct vxd_refine *refine,
                                      struct vxd_volume *volume, size_t frame,
                                      struct vxd_err *err);
/* Writes the keyframes' cameras and poses for the level. */
enum vxd_status vxd_refine_set_eyes(struct vxd_queue *queue, struct vxd_refine *refine,
                                    struct vxd_err *err);
/* Casts some rows of a keyframe; *is_whole when the picture is complete and SEE can run. */
enum vxd_status vxd_refine_cast(struct vxd_queue *queue, struct vxd_refine *refine,
                                struct vxd_volume *volume, double work_ns, bool *is_whole,
                                struct vxd_err *err);
/* Moves the keyframes by their summed equations. Blocking. */
enum vxd_status vxd_refine_move_frames(struct vxd_queue *queue, struct vxd_refine *refine,
                                       struct vxd_err *err);
void vxd_refine_keep_frames(struct vxd_refine *refine);
void vxd_refine_revert_frames(struct vxd_refine *refine);

/* --- refine_light.c ---------------------------------------------------------------------------- */

/* Finds the cubes of light that the level's voxels are in. Blocking. */
enum vxd_status vxd_refine_find_cubes(struct vxd_queue *queue, struct vxd_refine *refine,
                                      struct vxd_err *err);
/* Operations that sum the light's equations and begin their solution. */
void vxd_refine_push_light_sums(struct vxd_refine *refine);

/* --- refine_joint.c ---------------------------------------------------------------------------- */

/* Memory of sums of the level's terms, or of n where those are more. */
enum vxd_status vxd_refine_reserve_sums(struct vxd_queue *queue,
                                        struct vxd_refine *refine, size_t n,
                                        struct vxd_err *err);
/* Memory of the joint steps of a level. */
enum vxd_status vxd_refine_reserve_joint(struct vxd_queue *queue,
                                         struct vxd_refine *refine, struct vxd_err *err);
/* Goes to the next phase once the operations before it are done. */
enum vxd_status vxd_refine_next_joint(struct vxd_queue *queue, struct vxd_refine *refine,
                                      struct vxd_err *err);
/* Operations of one iteration of conjugate gradients. */
void vxd_refine_push_cg(struct vxd_refine *refine, bool is_light);

#ifdef __cplusplus
}
#endif
#endif
