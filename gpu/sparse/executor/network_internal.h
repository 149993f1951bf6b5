// SPDX-License-Identifier: Apache-2.0
/* What the files of the executor share.
 *
 * network_builder.c  layers and outputs as they are added, each checked alone (network_check.c)
 * network_shape.c    the result of each layer: its rows, its channels, which coordinate set and
 *                    kernel map it needs; equal ones are shared (network_share.c)
 * network_plan.c     the order of work, and the steps for which each piece of memory is needed
 * network_weights.c  folds batch norms, copies weights to the device
 * network.c          create, destroy, info
 * network_run.c      a run and its steps, which network_coord_sets.c, network_memory.c,
 *                    network_maps.c and network_layers.c enqueue; network_items.c finds rows and
 *                    memory of a run
 * network_run_whole.c  a run that is enqueued whole on a GPU, with the sizes that
 *                    network_repeat.c keeps of earlier runs
 * network_result.c   the outputs and costs of a run
 *
 * Tensors are numbered from 0, the network's input; layer i makes tensor i + 1. Rows that a
 * feature decides about (PRUNE) split a run into phases: the phase of a set or of a layer is how
 * many times the host must have read counts after features were computed. */
#ifndef VXD_GPU_SPARSE_EXECUTOR_NETWORK_INTERNAL_H
#define VXD_GPU_SPARSE_EXECUTOR_NETWORK_INTERNAL_H

#include "gpu/sparse/layers/layers.h"
#include "gpu/sparse/executor/net.h"

/* Alignment of the rows of tensors: 16 bytes, so that matrix units read vectors. */
#define VXD_NET_ROW_ALIGN 16

enum vxd_net_coord_set_kind {
    VXD_NET_COORD_SET_INPUT = 0,
    VXD_NET_COORD_SET_DERIVED = 1,
    VXD_NET_COORD_SET_UNION = 2,
    VXD_NET_COORD_SET_SUBSET = 3 /* of parent a, by the prune layer `layer` */
};

struct vxd_net_coord_set {
    enum vxd_net_coord_set_kind kind;
    enum vxd_sparse_derive rule;
    struct vxd_sparse_geometry geometry; /* of the layer by which it was derived */
    int a;                               /* parents, -1 = none */
    int b;
    int32_t shape[3];
    int32_t times[3]; /* tensor stride for MINKOWSKI */
    int phase;
    int layer; /* the layer that needed it first, -1 the input */
    bool used;
    bool wants_starts;
    bool wants_coords;
};

struct vxd_net_map {
    int in; /* numbers of coordinate sets */
    int out;
    struct vxd_sparse_geometry geometry;
    int phase;
    bool used;
};

struct vxd_net_tensor {
    int coord_set; /* -1: the tensor has n_tokens rows a sample */
    int n_tokens;  /* 0 where it has a set */
    int slot;      /* index in the run's `tokens`, where extents of n_tokens rows are */
    int n_channels;
    int phase;
    bool used;
    /* Memory: the tensor is a part of the buffer of tensor `root` (its own where root
     * is itself), beginning with this channel, in rows of `stride` elements. */
    int root;
    int first_channel;
    size_t stride;
};

struct vxd_net_node {
    struct vxd_net_layer layer; /* its pointers are NULL */
    /* For layers that use taps; in and out are coordinate sets. map -1: one tap, row i
     * reads row i. */
    bool has_geometry;
    struct vxd_sparse_geometry geometry;
    int in;
    int out;
    int map;
    int subset;      /* PRUNE: the coordinate set of its result */
    bool is_swapped; /* ADD_UNION: input 1 has the rows of the union's first parent */
    struct vxd_conv_weights weights;
    const float *scale; /* device memory, in the net's constants */
    const float *bias;
    const float *table;
};

enum vxd_net_step_kind {
    VXD_NET_STEP_LOAD = 0,  /* the input */
    VXD_NET_STEP_LAYER = 1, /* index = layer */
    VXD_NET_STEP_KEEP = 2,  /* index = prune layer: which rows are kept */
    VXD_NET_STEP_OUTPUT = 3 /* index = output */
};

struct vxd_net_step {
    enum vxd_net_step_kind kind;
    int index;
    int phase;
};

/* A piece of memory that is needed from step `first` to step `last`. */
enum vxd_net_item_kind {
    VXD_NET_ITEM_TENSOR = 0, /* index = tensor, a root */
    VXD_NET_ITEM_KEEP = 1,   /* index = prune layer */
    VXD_NET_ITEM_VALUES = 2, /* index = output */
    VXD_NET_ITEM_LABELS = 3,
    VXD_NET_ITEM_SCRATCH = 4 /* index = step */
};

struct vxd_net_item {
    enum vxd_net_item_kind kind;
    int index;
    int first;
    int last;
    int phase; /* of `first` */
};

struct vxd_net_builder {
    int n_channels;
    int32_t shape[3];
    struct vxd_net_layer *layers; /* with copies of the arrays that they point to */
    int n_layers;
    int layers_capacity;
    struct vxd_net_output outputs[VXD_NET_MAX_OUTPUTS];
    int n_outputs;
};

struct vxd_net_repeat;

struct vxd_net {
    struct vxd_context *context;
    struct vxd_net_options options;
    struct vxd_net_info info;
    struct vxd_net_tensor *tensors; /* n_layers + 1 */
    struct vxd_net_node *nodes;
    int n_layers;
    struct vxd_net_coord_set *coord_sets;
    int n_coord_sets;
    struct vxd_net_map *maps;
    int n_maps;
    struct vxd_net_output outputs[VXD_NET_MAX_OUTPUTS];
    int n_outputs;
    struct vxd_net_step *steps;
    int n_steps;
    struct vxd_net_item *items;
    int n_items;
    int *tensor_items;  /* n_layers + 1: item of each root, -1 */
    int *keep_items;    /* n_layers */
    int *scratch_items; /* n_steps */
    int value_items[VXD_NET_MAX_OUTPUTS];
    int label_items[VXD_NET_MAX_OUTPUTS];
    int n_phases;
    int n_slots;
    struct vxd_buffer constants;
    struct vxd_net_repeat *repeat;
};

/* --- checks and shapes
 * ------------------------------------------------------------------- */

/* Fails with "layers[NAME].field" (field NULL: "layers[NAME]") as the field. */
#if defined(__GNUC__)
__attribute__((format(printf, 5, 6)))
#endif
enum vxd_status
vxd_net_fail(struct vxd_err *err, enum vxd_status code, const char *name,
             const char *field, const char *format, ...);
/* Puts the layer's name before the field that a callee has set. */
void vxd_net_name_layer(struct vxd_err *err, const char *name);

enum vxd_status vxd_net_check_layer(const struct vxd_net_builder *builder,
                                    const struct vxd_net_layer *layer,
                                    struct vxd_err *err);
bool vxd_net_is_convolution(enum vxd_net_op op);
bool vxd_net_is_pool(enum vxd_net_op op);

/* Fills tensors, nodes, coordinate sets and maps (arrays that exist and are zeroed).
 * errors  INVALID_ARGUMENT, RESOURCE_EXHAUSTED */
enum vxd_status vxd_net_infer(struct vxd_net *net, const struct vxd_net_builder *builder,
                              struct vxd_err *err);

/* The number of a coordinate set or map: that of an equal one where there is one, else of a new
 * one. A map of one tap that reads the row itself is -1. errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_net_share_coord_set(struct vxd_net *net,
                                        const struct vxd_net_coord_set *coord_set,
                                        int *number, struct vxd_err *err);
enum vxd_status vxd_net_share_map(struct vxd_net *net, const struct vxd_net_map *map,
                                  int *number, struct vxd_err *err);

/* --- the plan ---------------------------------------------------------------------------- */

enum vxd_status vxd_net_plan(struct vxd_net *net, struct vxd_err *err);
void vxd_net_plan_free(struct vxd_net *net);

/* Copies weights and constants to device memory; counts parameters and bytes. */
enum vxd_status vxd_net_upload(struct vxd_queue *queue, struct vxd_net *net,
                               const struct vxd_net_builder *builder,
                               struct vxd_err *err);

/* --- a run ------------------------------------------------------------------------------- */

/* Which work vxd_net_run_enqueue enqueues as a whole. */
enum vxd_net_tag {
    VXD_NET_TAG_COORD_SETS = 0,
    VXD_NET_TAG_MAPS = 1,
    VXD_NET_TAG_LAYERS = 2,
    VXD_NET_TAG_MAPS_AND_LAYERS = 3,
    /* from this stage on faults are set in a word of the run */
    VXD_NET_TAG_COORD_SETS_AND_MAPS = 4,
    VXD_NET_TAG_WHOLE = 5
};

enum vxd_net_stage {
    VXD_NET_STAGE_COORD_SETS = 0,
    VXD_NET_STAGE_MAPS = 1,
    VXD_NET_STAGE_LAYERS = 2,
    /* everything is enqueued, but counts must still be checked */
    VXD_NET_STAGE_WHOLE = 3,
    VXD_NET_STAGE_OVER = 4
};

/* A coordinate set of the run. */
struct vxd_net_run_coord_set {
    struct vxd_coord_set coord_set;
    struct vxd_buffer block;
    size_t capacity; /* upper bound of its rows, smaller once they are counted */
    size_t n_rows;   /* as counted */
    bool is_made;
    bool is_counted;
    bool in_round;    /* made by the current step */
    int32_t *rows[2]; /* UNION: rows of a and b; SUBSET: of a */
    uint32_t *starts;
    int32_t *coords;
};

struct vxd_net_run_phase {
    /* kernel maps, starts and coordinates of the phase's coordinate sets */
    struct vxd_buffer maps;
    struct vxd_buffer items;
};

struct vxd_net_run {
    const struct vxd_net *net;
    struct vxd_net_input input;
    enum vxd_net_stage stage;
    int phase;
    int next_map;
    int next_step;
    uint32_t graphs_used; /* one bit for each entry of the net's `repeat` */
    /* of step next_step: the row at which a convolution continues (CPU) */
    size_t next_row;
    bool is_pending;    /* queued work reads or writes host memory of the run */
    bool has_predicted; /* sizes were predicted for this run, or that was tried */
    /* the enqueued work uses predicted sizes that no count has confirmed */
    bool is_predicted;
    struct vxd_net_run_coord_set *coord_sets;
    struct vxd_kernel_map *maps;
    struct vxd_net_run_phase *phases;
    size_t *item_bytes;
    size_t *item_offsets;
    struct vxd_buffer rows; /* of the input's coordinates, from vxd_coord_set_make */
    /* For each coordinate set 0 and its rows, which are the starts of one sample. Then
     * two words: on the CPU the rows of a part of a convolution, on a GPU the error
     * word of predicted work. */
    struct vxd_buffer counts;
    struct vxd_buffer n_pairs;  /* one uint64 a map */
    struct vxd_buffer n_bad;    /* with counts_overflow: one uint32 a layer */
    struct vxd_buffer h_counts; /* host: copy of counts */
    struct vxd_buffer scratch;  /* of the coordinate sets or maps that a step enqueues */
    struct vxd_buffer tokens;   /* for each slot: 0, rows, then the samples' starts */
    uint32_t *h_tokens;         /* host: the values of tokens */
    size_t n_bytes;             /* device memory at present, and its peak */
    size_t peak_bytes;
};

/* Allocates device memory of a run, within the network's budget. */
enum vxd_status vxd_net_run_alloc(struct vxd_queue *queue, struct vxd_net_run *run,
                                  size_t n_bytes, struct vxd_buffer *out,
                                  struct vxd_err *err);
void vxd_net_run_free(struct vxd_queue *queue, struct vxd_net_run *run,
                      struct vxd_buffer *buffer);

/* --- what runs keep for later ones (GPU) */

enum vxd_status vxd_net_repeat_create(int n_coord_sets, struct vxd_net_repeat **out,
                                      struct vxd_err *err);
void vxd_net_repeat_destroy(struct vxd_context *context, struct vxd_net_repeat *repeat);

/* Rows for which memory and launches of a set of n rows are sized: n on the CPU; on a
 * GPU the value of earlier runs with similar inputs, if that is enough and not much
 * more. Records it for later runs. */
size_t vxd_net_run_capacity(const struct vxd_net_run *run, int coord_set, size_t n);
/* The capacities that runs with similar inputs used, for each coordinate set; false
 * where that of some used set is not known. */
bool vxd_net_run_predict(const struct vxd_net_run *run, size_t *capacities);

/* Puts the work of enqueue(queue, run) on the queue; on a GPU as a graph where the
 * same work was enqueued before. enqueue must not change anything of the run that
 * later steps read. `tag` distinguishes such functions. */
enum vxd_status vxd_net_run_enqueue(struct vxd_queue *queue, struct vxd_net_run *run,
                                    enum vxd_net_tag tag, vxd_net_enqueue_fn enqueue,
                                    struct vxd_err *err);
/* No launch of them is in flight. */
void vxd_net_run_release_graphs(struct vxd_net_run *run);

/* Makes the coordinate sets of the run's phase as far as their bounds are moderate,
 * and copies counts to the host; *done when none is left. */
enum vxd_status vxd_net_run_make_coord_sets(struct vxd_queue *queue,
                                            struct vxd_net_run *run, bool *done,
                                            struct vxd_err *err);
/* Allocates memory for all coordinate sets, for as many rows as earlier runs had;
 * false where that is not known. *scratch_bytes is the scratch for making them. */
enum vxd_status vxd_net_run_predict_coord_sets(struct vxd_queue *queue,
                                               struct vxd_net_run *run, bool *is_known,
                                               size_t *scratch_bytes,
                                               struct vxd_err *err);
/* Makes the set of the caller's coordinates, and those that depend on it alone. */
enum vxd_status vxd_net_run_make_input(struct vxd_queue *queue,
                                       const struct vxd_net_run *run,
                                       struct vxd_err *err);
enum vxd_status vxd_net_run_derive_coord_sets(struct vxd_queue *queue,
                                              const struct vxd_net_run *run,
                                              struct vxd_err *err);
/* Takes over the counts that the host has read. */
enum vxd_status vxd_net_run_count_coord_sets(struct vxd_net_run *run,
                                             struct vxd_err *err);

/* For a run of one phase on a GPU whose sizes can be predicted: enqueues all of it, or
 * coordinate sets and maps where the caller measures these separately. Otherwise, and
 * where memory is not enough, *is_enqueued is false and nothing has changed. */
enum vxd_status vxd_net_run_whole(struct vxd_queue *queue, struct vxd_net_run *run,
                                  bool *is_enqueued, struct vxd_err *err);
/* Checks after the wait whether the prediction was right; if false, the run is as it
 * was before. */
enum vxd_status vxd_net_run_check_prediction(struct vxd_queue *queue,
                                             struct vxd_net_run *run, bool *is_right,
                                             struct vxd_err *err);

/* uint32 values of one slot of run->tokens: 0, the number of rows, the first row of each
 * sample, and the end. */
static inline size_t vxd_net_slot_items(const struct vxd_net_run *run)
{
    return (size_t)run->input.n_samples + 3;
}

/* Allocates memory of the phase's maps and items and places them, by the capacities of
 * the sets; scratch of at least scratch_bytes. */
enum vxd_status vxd_net_run_place(struct vxd_queue *queue, struct vxd_net_run *run,
                                  size_t scratch_bytes, struct vxd_err *err);
void *vxd_net_run_item(const struct vxd_net_run *run, int item);
struct vxd_rows vxd_net_run_rows(const struct vxd_net_run *run, int tensor);
struct vxd_net_extent vxd_net_run_extent(const struct vxd_net_run *run, int tensor);
size_t vxd_net_run_n_rows(const struct vxd_net_run *run, int tensor);
size_t vxd_net_run_max_rows(const struct vxd_net_run *run, int tensor);

/* Scratch of a layer's step, and of the phase's maps, in device bytes. */
size_t vxd_net_run_scratch_bytes(const struct vxd_net_run *run, int step);
size_t vxd_net_run_map_scratch_bytes(const struct vxd_queue *queue,
                                     const struct vxd_net_run *run);

/* Enqueue work of about budget_ns on the CPU. The first: the phase's maps from number
 * *next on (with the first also the sets' starts and coordinates), *next = n_maps
 * after the last. The second: the phase's steps from *next on, *next = the next
 * phase's first after the last. A convolution may stop at row *row. */
enum vxd_status vxd_net_run_maps(struct vxd_queue *queue, const struct vxd_net_run *run,
                                 double budget_ns, int *next, struct vxd_err *err);
enum vxd_status vxd_net_run_layers(struct vxd_queue *queue, const struct vxd_net_run *run,
                                   double budget_ns, int *next, size_t *row,
                                   struct vxd_err *err);
/* The first step of a run; its features are the caller's. */
enum vxd_status vxd_net_run_load(struct vxd_queue *queue, const struct vxd_net_run *run,
                                 struct vxd_err *err);

#endif
