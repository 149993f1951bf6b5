// SPDX-License-Identifier: Apache-2.0
/* What the files of gpu/volume share: the volume behind the opaque name, frames and cameras in
 * the form that backends use, and the functions of the backends. The public entries check every
 * argument and size every buffer; the backends only compute. */
#ifndef VXD_GPU_VOLUME_VOLUME_INTERNAL_H
#define VXD_GPU_VOLUME_VOLUME_INTERNAL_H

#include "gpu/core/core_cpu.h"
#include "gpu/volume/volume_frame_math.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Value arrays of the map. Labels and albedo come behind the colours, or in
 * their place. */
enum vxd_volume_array {
    VXD_VOLUME_STAMPS = 0,
    VXD_VOLUME_DISTANCES = 1,
    VXD_VOLUME_WEIGHTS = 2,
    VXD_VOLUME_COLOURS = 3
};

/* Slots of the frame map: the first try, and the last, of which half may be taken. */
#define VXD_FRAME_FIRST_SLOTS ((size_t)1 << 16)
#define VXD_FRAME_MAX_SLOTS ((size_t)1 << 23)

/* What an activation counts, in device memory. */
struct vxd_frame_counts {
    uint32_t n_known;   /* touched blocks that the volume has */
    uint32_t n_new;     /* and those that it has not */
    uint32_t n_dropped; /* pixels */
    uint32_t n_taken;   /* slots; the frame map is too small where above half of them */
    uint32_t n_tiles;   /* CUDA: that are done */
};

struct vxd_volume {
    struct vxd_context *context;
    struct vxd_volume_spec spec;
    struct vxd_hashmap *map;
    size_t n_blocks;
    uint64_t version;
    uint64_t removed_version;
    bool table_is_stale; /* new blocks are in the map, but perhaps not in the table */
    /* struct vxd_block_slot, a power of two of at least 2 * capacity */
    struct vxd_buffer table;

    /* The 27 neighbours of each entry's block, int32, made for n_linked blocks since the removal
     * of linked_removed_version. Without memory for them nothing fails: the table finds them. */
    struct vxd_buffer neighbours;
    size_t n_linked;
    uint64_t linked_removed_version;

    /* The frame map of the last activation: tags of frame_slots, VXD_BLOCK_EMPTY where free;
     * for half as many blocks the entries (int32) and the Morton codes of new ones (uint64). */
    size_t frame_slots;
    struct vxd_buffer frame_tags;
    struct vxd_buffer frame_entries;
    struct vxd_buffer frame_new;
    struct vxd_buffer frame_counts; /* struct vxd_frame_counts */
    /* CUDA: there are two such arrays of tags and two such counts, one behind the other; a touch uses
     * those whose number is given, and empties the others for the next one. */
    int frame_half;
    bool frame_is_empty; /* the others are */
    /* float32, metres, 0 = no depth: an item that stands for no pixel, then the pixels */
    struct vxd_buffer frame_depth;
    size_t n_active;  /* blocks that the last activation's frame touches or carves */
    size_t n_touched; /* the first of them, which it touches */
    /* Of an activation that found no memory for its new blocks: how many it touched that are there,
     * the first of frame_entries, and how many are lacking; else 0. */
    size_t n_known;
    size_t n_lacking;
    int frame_width; /* of the last activation; 0: there was none */
    int frame_height;
};

/* errors  INVALID_ARGUMENT */
enum vxd_status vxd_volume_check_spec(const struct vxd_volume_spec *spec,
                                      struct vxd_err *err);

/* Slots of the block table for a capacity of blocks. */
size_t vxd_volume_table_slots(size_t capacity);

/* Makes the block table anew from the map's keys, of the size that its capacity asks for.
 * errors  RESOURCE_EXHAUSTED; the volume is unchanged */
enum vxd_status vxd_volume_rebuild_table(struct vxd_queue *queue,
                                         struct vxd_volume *volume, struct vxd_err *err);

/* Whether the neighbours are those of the blocks that there are. */
bool vxd_volume_is_linked(const struct vxd_volume *volume);

/* Makes the neighbours of n new entries known, whose blocks are in the table, and theirs; those of
 * all blocks where they are not known yet. Asynchronous; where memory or the queue fails, the
 * neighbours stay unknown. */
void vxd_volume_link(struct vxd_queue *queue, struct vxd_volume *volume,
                     const int32_t *entries, size_t n);

/* Makes the table right after a failure between the map and the table. Blocking.
 * errors  RESOURCE_EXHAUSTED; the table stays stale */
enum vxd_status vxd_volume_mend(struct vxd_queue *queue, struct vxd_volume *volume,
                                struct vxd_err *err);

/* errors  INVALID_ARGUMENT with `field` */
enum vxd_status vxd_frame_form_init(const struct vxd_volume *volume,
                                    const struct vxd_volume_frame *frame,
                                    struct vxd_frame_form *out, struct vxd_err *err);

/* What touching a frame's blocks needs. It empties the frame map first. */
struct vxd_touch_call {
    struct vxd_frame_form frame;
    struct vxd_volume_view view;
    uint64_t *tags;
    uint32_t slot_mask;
    int32_t *entries; /* known blocks, as many as half of the slots */
    uint64_t *codes;  /* Morton codes of new blocks, likewise */
    float *depth;
    struct vxd_frame_counts *counts;
    /* CUDA: those of the next touch, which this one empties, and whether its own are empty already. */
    uint64_t *next_tags;
    struct vxd_frame_counts *next_counts;
    bool is_empty;
    /* Host memory that the device writes, where the counts are copied to at the end. */
    struct vxd_frame_counts *report;
};

enum vxd_status vxd_volume_touch_cpu(struct vxd_queue *queue,
                                     const struct vxd_touch_call *call,
                                     struct vxd_err *err);
enum vxd_status vxd_volume_touch_cuda(struct vxd_queue *queue,
                                      const struct vxd_touch_call *call,
                                      struct vxd_err *err);

/* Lists those of the volume's n active blocks that hold an observation, whose centre is within
 * reach of the camera and which the frame map has not. */
struct vxd_reach_call {
    struct vxd_volume_view view;
    const uint64_t *tags;
    uint32_t slot_mask;
    const int32_t *active;
    size_t n;
    int32_t *entries;    /* n fit */
    uint32_t *n_reached; /* 0 before */
    double camera_at[3]; /* metres from the origin */
    double block_size;
    double reach;
};

enum vxd_status vxd_volume_reach_cpu(struct vxd_queue *queue,
                                     const struct vxd_reach_call *call,
                                     struct vxd_err *err);
enum vxd_status vxd_volume_reach_cuda(struct vxd_queue *queue,
                                      const struct vxd_reach_call *call,
                                      struct vxd_err *err);

/* Whether one of them is. */
VXD_HD bool vxd_volume_reaches(const struct vxd_reach_call *call, int32_t entry)
{
    const int32_t *key = call->view.keys + 3 * (size_t)entry;
    uint64_t tag = vxd_block_tag(key[0], key[1], key[2]);
    uint32_t slot = vxd_block_hash(tag) & call->slot_mask;
    double squares = 0;

    for (int axis = 0; axis < 3; axis++) {
        double centre = vxd_muld((double)key[axis] + 0.5, call->block_size);
        double offset = vxd_addd(centre, -call->camera_at[axis]);

        squares = vxd_addd(squares, vxd_muld(offset, offset));
    }
    if (call->view.stamps[entry] == 0 ||
        !(squares <= vxd_muld(call->reach, call->reach))) {
        return false;
    }
    for (uint32_t n = 0; n <= call->slot_mask && call->tags[slot] != VXD_BLOCK_EMPTY;
         n++) {
        if (call->tags[slot] == tag) {
            return false;
        }
        slot = (slot + 1) & call->slot_mask;
    }
    return true;
}

/* Writes the keys (3 int32 each) of n sorted Morton codes; rank: of n codes in any order, each once,
 * in theirs, of which VXD_RANKED_CODES at most are faster ranked than sorted. */
#define VXD_RANKED_CODES ((size_t)4096)
enum vxd_status vxd_volume_code_keys_cpu(struct vxd_queue *queue, const uint64_t *codes,
                                         size_t n, int32_t *keys, struct vxd_err *err);
enum vxd_status vxd_volume_code_keys_cuda(struct vxd_queue *queue, const uint64_t *codes,
                                          size_t n, int32_t *keys, struct vxd_err *err);
enum vxd_status vxd_volume_rank_keys_cuda(struct vxd_queue *queue, const uint64_t *codes,
                                          size_t n, int32_t *keys, struct vxd_err *err);

struct vxd_fuse_call {
    struct vxd_frame_form frame;
    struct vxd_volume_view view;
    const int32_t *entries; /* n of them */
    size_t n;
    const float *depth;
    uint64_t version;
    /* CUDA: what an activation counts that the host does not know yet: its known blocks are fused if
     * vxd_volume_fuses_ahead says so, else none. NULL: the n blocks are. */
    const struct vxd_frame_counts *counts;
    uint32_t most_taken; /* half of the frame map's slots */
};

/* Whether an activation that counted so needs nothing more before its blocks are fused: n of them at
 * most, and none is new. */
VXD_HD bool vxd_volume_fuses_ahead(const struct vxd_frame_counts *counts,
                                   uint32_t most_taken, size_t n)
{
    return counts->n_new == 0 && counts->n_taken <= most_taken && counts->n_known <= n;
}

enum vxd_status vxd_volume_fuse_cpu(struct vxd_queue *queue,
                                    const struct vxd_fuse_call *call,
                                    struct vxd_err *err);
enum vxd_status vxd_volume_fuse_cuda(struct vxd_queue *queue,
                                     const struct vxd_fuse_call *call,
                                     struct vxd_err *err);

/* Whether a frame is plain, and the fusion of one, both of CUDA. */
bool vxd_volume_is_plain(const struct vxd_fuse_call *call);
enum vxd_status vxd_volume_fuse_plain_cuda(struct vxd_queue *queue,
                                           const struct vxd_fuse_call *call,
                                           struct vxd_err *err);

/* What a removal looks for, in voxels from the volume's origin. */
struct vxd_clear_call {
    struct vxd_volume_view view;
    int is_ball;
    int64_t low[3]; /* half-open box of voxels */
    int64_t high[3];
    double centre[3]; /* metres from the origin */
    double radius;
    double block_size; /* metres */
    uint64_t version;  /* the stamp of blocks of which a part is cleared */
    /* What list fills, in no particular order. */
    int32_t *keys; /* of the blocks to remove */
    int32_t *kept; /* the entries of the others */
    uint32_t *n;   /* how many there are of each; 0 before */
};

/* Lists which of the n entries' blocks are removed, and changes nothing. */
enum vxd_status vxd_volume_clear_list_cpu(struct vxd_queue *queue,
                                          const struct vxd_clear_call *call,
                                          const int32_t *entries, size_t n,
                                          struct vxd_err *err);
enum vxd_status vxd_volume_clear_list_cuda(struct vxd_queue *queue,
                                           const struct vxd_clear_call *call,
                                           const int32_t *entries, size_t n,
                                           struct vxd_err *err);

/* Clears the voxels of the box in the blocks of which it covers a part. */
enum vxd_status vxd_volume_clear_cpu(struct vxd_queue *queue,
                                     const struct vxd_clear_call *call,
                                     const int32_t *entries, size_t n,
                                     struct vxd_err *err);
enum vxd_status vxd_volume_clear_cuda(struct vxd_queue *queue,
                                      const struct vxd_clear_call *call,
                                      const int32_t *entries, size_t n,
                                      struct vxd_err *err);

/* A decay, in the blocks and voxels of a removal's region. */
struct vxd_decay_call {
    struct vxd_clear_call clear; /* its list gets the blocks whose weight is too little */
    float factor;
    bool keeps_votes;
    float min_weight;
};

/* Lists as a removal does, and changes nothing. */
enum vxd_status vxd_volume_decay_list_cpu(struct vxd_queue *queue,
                                          const struct vxd_decay_call *call,
                                          const int32_t *entries, size_t n,
                                          struct vxd_err *err);
enum vxd_status vxd_volume_decay_list_cuda(struct vxd_queue *queue,
                                           const struct vxd_decay_call *call,
                                           const int32_t *entries, size_t n,
                                           struct vxd_err *err);

/* Lowers the weights of the region in these blocks. */
enum vxd_status vxd_volume_decay_cpu(struct vxd_queue *queue,
                                     const struct vxd_decay_call *call,
                                     const int32_t *entries, size_t n,
                                     struct vxd_err *err);
enum vxd_status vxd_volume_decay_cuda(struct vxd_queue *queue,
                                      const struct vxd_decay_call *call,
                                      const int32_t *entries, size_t n,
                                      struct vxd_err *err);

/* Ranks blocks by their distance from a point. */
struct vxd_rank_call {
    struct vxd_volume_view view;
    double point[3]; /* metres from the origin */
    double block_size;
    const int32_t *entries; /* n of them */
    size_t n;
    const int32_t *touched; /* n_touched entries, which rank as nearest of all */
    size_t n_touched;
    uint8_t *is_touched; /* of each entry; 0 before */
    uint64_t *ranks;     /* rises with the distance; 0 of touched ones */
    uint32_t *values;    /* the entries */
};

enum vxd_status vxd_volume_rank_cpu(struct vxd_queue *queue,
                                    const struct vxd_rank_call *call,
                                    struct vxd_err *err);
enum vxd_status vxd_volume_rank_cuda(struct vxd_queue *queue,
                                     const struct vxd_rank_call *call,
                                     struct vxd_err *err);

/* The backends of the block table. The caller has filled new tables with VXD_BLOCK_EMPTY.
 * add: puts n entries, whose keys are in the map, into the table; none is in it.
 * changed: as vxd_volume_changed_since; counts is scratch of capacity + 1 uint32 with the number
 * of blocks in the last one, scratch that of a prefix sum over capacity. */
enum vxd_status vxd_volume_table_add_cpu(struct vxd_queue *queue,
                                         const struct vxd_volume *volume,
                                         const int32_t *entries, size_t n,
                                         struct vxd_err *err);
enum vxd_status vxd_volume_table_add_cuda(struct vxd_queue *queue,
                                          const struct vxd_volume *volume,
                                          const int32_t *entries, size_t n,
                                          struct vxd_err *err);
/* Writes the 27 neighbours of n entries; also their own numbers in the rows of their neighbours
 * where the call is not for all blocks. */
struct vxd_link_call {
    struct vxd_volume_view view; /* without neighbours */
    int32_t *neighbours;
    const int32_t *entries;
    size_t n;
    bool is_for_all;
};

enum vxd_status vxd_volume_link_cpu(struct vxd_queue *queue,
                                    const struct vxd_link_call *call,
                                    struct vxd_err *err);
enum vxd_status vxd_volume_link_cuda(struct vxd_queue *queue,
                                     const struct vxd_link_call *call,
                                     struct vxd_err *err);
enum vxd_status vxd_volume_changed_cpu(struct vxd_queue *queue,
                                       const struct vxd_volume *volume, uint64_t since,
                                       int32_t *entries, uint32_t *counts, void *scratch,
                                       size_t scratch_bytes, struct vxd_err *err);
enum vxd_status vxd_volume_changed_cuda(struct vxd_queue *queue,
                                        const struct vxd_volume *volume, uint64_t since,
                                        int32_t *entries, uint32_t *counts, void *scratch,
                                        size_t scratch_bytes, struct vxd_err *err);
enum vxd_status vxd_volume_neighbours_cpu(struct vxd_queue *queue,
                                          const struct vxd_volume_view *view,
                                          const int32_t *entries, size_t n,
                                          int32_t *indices, struct vxd_err *err);
enum vxd_status vxd_volume_neighbours_cuda(struct vxd_queue *queue,
                                           const struct vxd_volume_view *view,
                                           const int32_t *entries, size_t n,
                                           int32_t *indices, struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
