// SPDX-License-Identifier: Apache-2.0
/* Edits on a GPU: one block of scratch for all passes, operations and what they borrow sent
 * there, a kernel a pass, one that ends the edit, and a copy of the result. The root goes from
 * pass to pass in device memory; the host waits for nothing. */
#include <stdlib.h>
#include <string.h>

#include "gpu/svdag/store/store_math.h"
#include "gpu/svdag/store/store.h"
#include "gpu/svdag/edit/shapes_editor.h"

enum {
    MAX_ENTRIES = 1 << 29,    /* eight children of an entry need 32-bit numbers */
    N_DEDUP_RECORDS = 1 << 16 /* 6 MiB: of a wall, few are different */
};

/* Where the parts of the scratch are: offsets. */
struct layout {
    size_t progress;
    size_t state;
    size_t result;
    size_t ops;
    size_t shape_ops;
    size_t runs;
    size_t fields; /* heights and pyramids, one field after the other */
    size_t entries;
    size_t pairs;
    size_t weights[2]; /* of cubes, pairs */
    size_t records;
    size_t slots;
    size_t total;
};

struct edit {
    struct vxd_queue *queue;
    struct vxd_svdag *svdag;
    const struct vxd_svdag_op *ops; /* the caller's */
    size_t n_ops;
    const struct vxd_svdag_undo_state *undo; /* instead of operations; else NULL */
    struct layout layout;
    struct vxd_buffer scratch;
    char *d; /* its memory */
    /* What is sent, as it lies from layout.state on; malloc'ed. */
    char *sent;
    struct vxd_svdag_kernel_args args;
    size_t n_traversals;
    bool has_dedup; /* some shape cuts many cubes the same way */
};

/* The rows of an edit's passes. */
static bool lay_out_frontier(const struct vxd_svdag_frontier_capacity *frontier,
                             size_t entry_bytes, struct layout *layout)
{
    return vxd_layout_add(&layout->total, frontier->n_entries, entry_bytes,
                          &layout->entries) &&
           vxd_layout_add(&layout->total, frontier->n_pairs, sizeof(uint64_t),
                          &layout->pairs);
}

/* Rows that may stand for more than one, and signs. */
static bool lay_out_dedup(struct layout *layout,
                          const struct vxd_svdag_frontier_capacity *frontier)
{
    size_t *total = &layout->total;

    return vxd_layout_add(total, frontier->n_entries, sizeof(uint64_t),
                          &layout->weights[0]) &&
           vxd_layout_add(total, frontier->n_pairs, sizeof(uint64_t),
                          &layout->weights[1]) &&
           vxd_layout_add(total, N_DEDUP_RECORDS,
                          VXD_SVDAG_DEDUP_RECORD_WORDS * sizeof(uint64_t),
                          &layout->records) &&
           vxd_layout_add(total, (size_t)2 * N_DEDUP_RECORDS, sizeof(uint32_t),
                          &layout->slots);
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Bytes of an edit's scratch for a frontier of this capacity, without its operations. */
static size_t scratch_bytes(const struct vxd_svdag_frontier_capacity *frontier)
{
    struct layout layout = {0};
    size_t entry_bytes =
        most(vxd_svdag_shapes_entry_bytes(VXD_SVDAG_FORM_LISTS),
             most(vxd_svdag_copy_entry_bytes(), vxd_svdag_morph_entry_bytes()));

    return lay_out_frontier(frontier, entry_bytes, &layout) &&
                   lay_out_dedup(&layout, frontier)
               ? layout.total
               : SIZE_MAX;
}

/* Capacity of the frontier ---------------------------------------------------------------- */

static uint32_t grown_capacity(uint32_t capacity, uint64_t needed, uint32_t factor)
{
    uint64_t grown = (uint64_t)capacity * factor;

    if (needed == 0) {
        return capacity;
    }
    grown = grown > needed ? grown : needed;
    return (uint32_t)(grown < MAX_ENTRIES ? grown : MAX_ENTRIES);
}

enum vxd_status vxd_svdag_grow_frontier_cuda(struct vxd_queue *queue,
                                             struct vxd_svdag *svdag,
                                             const struct vxd_svdag_needs *needs,
                                             struct vxd_err *err)
{
    const struct vxd_svdag_frontier_capacity old = vxd_svdag_device_frontier(svdag);
    struct vxd_err own = {0};
    enum vxd_status status = VXD_OK;

    if (needs->n_entries > MAX_ENTRIES || needs->n_pairs > MAX_ENTRIES) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "the edit visits more than 2^29 cubes");
    }
    if (needs->n_entries + needs->n_pairs > svdag->max_visits) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "max_visits",
                        "the edit touches more than %llu regions of the scene; make its "
                        "shapes smaller, or split it",
                        (unsigned long long)svdag->max_visits);
    }
    for (uint32_t factor = 4; factor >= 1; factor /= 2) {
        struct vxd_svdag_frontier_capacity frontier = {
            grown_capacity(old.n_entries, needs->n_entries, factor),
            grown_capacity(old.n_pairs, needs->n_pairs, factor)};
        struct vxd_buffer scratch;

        status = vxd_device_alloc(queue, scratch_bytes(&frontier), &scratch, &own);
        if (status == VXD_OK) {
            vxd_device_free(queue, &scratch);
            vxd_svdag_device_set_frontier(svdag, &frontier);
            return vxd_queue_wait(queue, err);
        }
    }
    if (err != NULL) {
        *err = own;
    }
    return status;
}

/* Heights of a field and the squares of its pyramid, bytes. */
static size_t field_bytes(const struct vxd_svdag_heights *field)
{
    size_t n = 0;
    size_t at;
    int n_levels;

    /* At most 2^26 cells: it fits. */
    (void)vxd_layout_add(&n, (size_t)field->n_x * field->n_y, sizeof(int64_t), &at);
    (void)vxd_layout_add(&n, 2 * vxd_svdag_pyramid_words(field, &n_levels),
                         sizeof(int32_t), &at);
    return n;
}

static enum vxd_svdag_shapes_form form_of(const struct vxd_svdag_op *ops, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (ops[i].shape.kind == VXD_SVDAG_VOXELS) {
            return VXD_SVDAG_FORM_LISTS;
        }
    }
    return n == 1 && ops[0].shape.kind == VXD_SVDAG_BALL &&
                   vxd_svdag_is_overwriting(&ops[0])
               ? VXD_SVDAG_FORM_BALL
               : VXD_SVDAG_FORM_SHAPES;
}

/* Counts passes and the bytes that their editors' rows and fields take. */
static bool measure(struct edit *edit, size_t *entry_bytes, size_t *n_field_bytes)
{
    if (edit->undo != NULL) {
        edit->n_traversals = 1;
        edit->has_dedup = true;
        *entry_bytes = vxd_svdag_undo_entry_bytes();
        return true;
    }
    for (size_t i = 0; i < edit->n_ops; edit->n_traversals++) {
        const struct vxd_svdag_op *op = &edit->ops[i];
        size_t n = vxd_svdag_shapes_count(op, edit->n_ops - i);
        size_t bytes = n > 0 ? vxd_svdag_shapes_entry_bytes(form_of(op, n))
                       : op->action == VXD_SVDAG_COPY ? vxd_svdag_copy_entry_bytes()
                                                      : vxd_svdag_morph_entry_bytes();

        *entry_bytes = most(*entry_bytes, bytes);
        for (size_t k = i; k < i + n; k++) {
            enum vxd_svdag_shape_kind kind = edit->ops[k].shape.kind;

            edit->has_dedup =
                edit->has_dedup || kind == VXD_SVDAG_BOX || kind == VXD_SVDAG_HALF_SPACE;
        }
        i += n > 0 ? n : 1;
    }
    for (size_t i = 0; i < edit->n_ops; i++) {
        if (edit->ops[i].shape.kind == VXD_SVDAG_HEIGHTFIELD &&
            !vxd_size_add(*n_field_bytes, field_bytes(&edit->ops[i].shape.field),
                          n_field_bytes)) {
            return false;
        }
    }
    return true;
}

static enum vxd_status lay_out(struct edit *edit, size_t entry_bytes,
                               size_t n_field_bytes, struct vxd_err *err)
{
    struct layout *layout = &edit->layout;
    struct vxd_svdag_frontier_capacity frontier = vxd_svdag_device_frontier(edit->svdag);
    size_t *total = &layout->total;

    *layout = (struct layout){0};
    if (!vxd_layout_add(total, 1, sizeof(struct vxd_svdag_kernel_state),
                        &layout->state) ||
        !vxd_layout_add(total, 1, sizeof(struct vxd_svdag_edit_result),
                        &layout->result) ||
        !vxd_layout_add(total, 1, sizeof(struct vxd_svdag_progress), &layout->progress) ||
        !vxd_layout_add(total, edit->n_ops, sizeof *edit->ops, &layout->ops) ||
        !vxd_layout_add(total, edit->n_ops, sizeof(struct vxd_svdag_shape_op),
                        &layout->shape_ops) ||
        !vxd_layout_add(total, edit->n_traversals, sizeof(struct vxd_svdag_shapes_run),
                        &layout->runs) ||
        !vxd_layout_add(total, n_field_bytes, 1, &layout->fields) ||
        !lay_out_frontier(&frontier, entry_bytes, layout) ||
        (edit->has_dedup && !lay_out_dedup(layout, &frontier))) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu operations",
                        edit->n_ops);
    }
    edit->args.entries_capacity = frontier.n_entries;
    edit->args.pairs_capacity = frontier.n_pairs;
    return VXD_OK;
}

/* Memory for the edit: with less room where there is none for what earlier ones needed. */
static enum vxd_status take_scratch(struct edit *edit, struct vxd_err *err)
{
    size_t entry_bytes = 0;
    size_t n_field_bytes = 0;
    struct vxd_err own = {0};
    enum vxd_status status;

    if (!measure(edit, &entry_bytes, &n_field_bytes)) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the heights");
    }
    do {
        status = lay_out(edit, entry_bytes, n_field_bytes, &own);
        if (status == VXD_OK) {
            status =
                vxd_device_alloc(edit->queue, edit->layout.total, &edit->scratch, &own);
        }
    } while (status == VXD_RESOURCE_EXHAUSTED &&
             vxd_svdag_device_shrink_frontier(edit->svdag));
    if (status != VXD_OK && err != NULL) {
        *err = own;
    }
    edit->d = edit->scratch.ptr;
    return status;
}

/* A part of the scratch. */
static void *there(const struct edit *edit, size_t at)
{
    return edit->d + at;
}

static void set_args(struct edit *edit)
{
    struct vxd_svdag_kernel_args *args = &edit->args;

    vxd_svdag_device_set_args(edit->svdag, args);
    args->progress = (void *)(edit->d + edit->layout.progress);
    args->state = (void *)(edit->d + edit->layout.state);
    args->entries = there(edit, edit->layout.entries);
    args->max_visits = edit->svdag->max_visits;
    args->pairs = (void *)(edit->d + edit->layout.pairs);
    args->counts_changes = edit->n_traversals == 1;
    if (edit->has_dedup) {
        args->entry_weights = there(edit, edit->layout.weights[0]);
        args->pair_weights = there(edit, edit->layout.weights[1]);
        args->dedup = (struct vxd_svdag_dedup_table){there(edit, edit->layout.records),
                                                     there(edit, edit->layout.slots),
                                                     N_DEDUP_RECORDS};
    }
}

/* Sending ------------------------------------------------------------------------------- */

/* Where what is sent lies here. */
static void *here(const struct edit *edit, size_t at)
{
    return edit->sent + (at - edit->layout.state);
}

/* Sends the heights of an operation, checks them and makes their pyramid; *at is where. */
static enum vxd_status send_field(struct edit *edit, struct vxd_svdag_op *op,
                                  struct vxd_svdag_pyramid *pyramid, size_t *at,
                                  struct vxd_err *err)
{
    struct vxd_svdag_heights *field = &op->shape.field;
    size_t n = (size_t)field->n_x * field->n_y;
    int64_t *heights = there(edit, *at);
    int32_t *squares;
    enum vxd_status status;
    int n_levels;

    VXD_TRY(
        vxd_queue_copy(edit->queue, heights, field->heights, n * sizeof *heights, err));
    field->heights = heights;
    VXD_TRY(vxd_svdag_launch_check_heights(edit->queue, heights, n,
                                           &edit->args.progress->fault, err));
    squares = (void *)((char *)heights + ((n * sizeof *heights + 255) & ~(size_t)255));
    *at += field_bytes(field);
    pyramid->n_levels = 0;
    if (n <= VXD_SVDAG_PYRAMID_FEW) {
        return VXD_OK;
    }
    (void)vxd_svdag_pyramid_words(field, &n_levels);
    for (int number = 0; number < n_levels; number++) {
        int level = VXD_SVDAG_PYRAMID_BASE + number;
        size_t n_squares = (size_t)vxd_svdag_pyramid_side(field->n_x, level) *
                           vxd_svdag_pyramid_side(field->n_y, level);

        pyramid->least[number] = squares;
        pyramid->most[number] = squares + n_squares;
        VXD_TRY(vxd_svdag_launch_pyramid(edit->queue, field, pyramid, number, squares,
                                         squares + n_squares, err));
        squares += 2 * n_squares;
    }
    pyramid->n_levels = n_levels;
    return VXD_OK;
out:
    return status;
}

static enum vxd_status check_list(struct edit *edit, const struct vxd_svdag_op *op,
                                  struct vxd_err *err)
{
    const struct vxd_svdag_format *format = &edit->svdag->spec.format;
    bool uses_values = op->shape.voxels.values != NULL &&
                       (op->action == VXD_SVDAG_FILL || op->action == VXD_SVDAG_PAINT);

    return vxd_svdag_launch_check_list(
        edit->queue, &op->shape.voxels,
        (uint64_t)1 << 3 * (format->depth - VXD_SVDAG_LEAF_HEIGHT),
        vxd_svdag_n_materials(format), uses_values, &edit->args.progress->fault, err);
}

/* Plans the runs of shapes, with addresses of the device. */
static void plan_runs(struct edit *edit, struct vxd_svdag_op *ops,
                      struct vxd_svdag_shape_op *shape_ops,
                      struct vxd_svdag_shapes_run *runs)
{
    const struct vxd_svdag_op *d_ops = there(edit, edit->layout.ops);
    const struct vxd_svdag_shape_op *d_shape_ops = there(edit, edit->layout.shape_ops);
    size_t run = 0;

    for (size_t i = 0; i < edit->n_ops; run++) {
        size_t n = vxd_svdag_shapes_count(ops + i, edit->n_ops - i);

        if (n > 0) {
            vxd_svdag_shapes_plan(&edit->svdag->view, ops + i, n, shape_ops + i,
                                  &runs[run]);
            runs[run].ops = d_shape_ops + i;
        }
        for (size_t k = i; k < i + n; k++) {
            shape_ops[k].op = d_ops + k;
        }
        i += n > 0 ? n : 1;
    }
}

/* Whether something is looked at on the device before the first pass, which may raise a fault. */
static bool checks_something(const struct edit *edit)
{
    for (size_t i = 0; i < edit->n_ops; i++) {
        enum vxd_svdag_shape_kind kind = edit->ops[i].shape.kind;

        if (kind == VXD_SVDAG_HEIGHTFIELD || kind == VXD_SVDAG_VOXELS) {
            return true;
        }
    }
    return false;
}

/* Sends what lies from one place of the layout up to another. */
static enum vxd_status send_part(struct edit *edit, size_t begin, size_t end,
                                 struct vxd_err *err)
{
    return vxd_queue_copy(edit->queue, there(edit, begin), here(edit, begin), end - begin,
                          err);
}

/* Sends everything, in one piece where nothing is checked on the way: the first pass's state
 * and the result are zeros. What the caller's operations point to on the host goes with them. */
static enum vxd_status send(struct edit *edit, uint32_t root, struct vxd_err *err)
{
    const struct layout *layout = &edit->layout;
    size_t n_sent = layout->fields - layout->state;
    size_t begin = layout->state;
    struct vxd_svdag_progress *progress;
    struct vxd_svdag_op *ops;
    struct vxd_svdag_shape_op *shape_ops;
    size_t field = layout->fields;
    enum vxd_status status;

    edit->sent = calloc(1, n_sent);
    if (edit->sent == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu operations",
                        edit->n_ops);
    }
    progress = here(edit, layout->progress);
    ops = here(edit, layout->ops);
    shape_ops = here(edit, layout->shape_ops);
    progress->first_root = root;
    progress->root = root;
    if (checks_something(edit)) {
        VXD_TRY(send_part(edit, begin, layout->ops, err));
        begin = layout->ops;
    }
    if (edit->n_ops > 0) {
        memcpy(ops, edit->ops, edit->n_ops * sizeof *ops);
    }
    for (size_t i = 0; i < edit->n_ops; i++) {
        if (ops[i].shape.kind == VXD_SVDAG_HEIGHTFIELD) {
            VXD_TRY(send_field(edit, &ops[i], &shape_ops[i].pyramid, &field, err));
        } else if (ops[i].shape.kind == VXD_SVDAG_VOXELS) {
            VXD_TRY(check_list(edit, &ops[i], err));
        }
    }
    plan_runs(edit, ops, shape_ops, here(edit, layout->runs));
    VXD_TRY(send_part(edit, begin, layout->fields, err));
out:
    return status;
}

/* Passes -------------------------------------------------------------------------------- */

/* Clears the state before a pass; before the first one it was sent so. */
static enum vxd_status clear_state(struct edit *edit, bool is_first, struct vxd_err *err)
{
    enum vxd_status status =
        is_first ? VXD_OK
                 : vxd_queue_fill(edit->queue, edit->args.state, 0,
                                  edit->layout.progress - edit->layout.state, err);

    return status != VXD_OK || !edit->has_dedup
               ? status
               : vxd_queue_fill(edit->queue, edit->args.dedup.slots, 0,
                                (size_t)2 * N_DEDUP_RECORDS * sizeof(uint32_t), err);
}

static enum vxd_status run_traversals(struct edit *edit, struct vxd_err *err)
{
    static const struct vxd_svdag_edit_kernels of_arena = {
        vxd_svdag_launch_shapes, vxd_svdag_launch_copy, vxd_svdag_launch_morph,
        vxd_svdag_launch_undo, vxd_svdag_launch_change};
    const struct vxd_svdag_device_ops *ops = edit->svdag->device_ops;
    const struct vxd_svdag_edit_kernels *kernels =
        ops == NULL ? &of_arena : ops->edit_kernels;
    const struct vxd_svdag_op *d_ops = there(edit, edit->layout.ops);
    const struct vxd_svdag_shapes_run *d_runs = there(edit, edit->layout.runs);
    enum vxd_status status = VXD_OK;
    size_t run = 0;

    if (edit->undo != NULL) {
        VXD_TRY(clear_state(edit, true, err));
        VXD_TRY(kernels->undo(edit->queue, &edit->args, edit->undo, err));
    }
    for (size_t i = 0; i < edit->n_ops; run++) {
        const struct vxd_svdag_op *op = &edit->ops[i];
        size_t n = vxd_svdag_shapes_count(op, edit->n_ops - i);

        VXD_TRY(clear_state(edit, run == 0, err));
        if (n > 0) {
            VXD_TRY(kernels->shapes(edit->queue, &edit->args, d_runs + run,
                                    form_of(op, n), op, err));
        } else if (op->action == VXD_SVDAG_COPY) {
            VXD_TRY(kernels->copy(edit->queue, &edit->args, op, err));
        } else {
            VXD_TRY(kernels->morph(edit->queue, &edit->args, d_ops + i, err));
        }
        i += n > 0 ? n : 1;
    }
    if (edit->n_traversals > 1) {
        VXD_TRY(clear_state(edit, false, err));
        VXD_TRY(kernels->change(edit->queue, &edit->args, err));
    }
out:
    return status;
}

/* All of an edit; it is not needed any more. */
static enum vxd_status run_edit(struct edit *edit, uint32_t root,
                                struct vxd_svdag_edit_result *out, struct vxd_err *err)
{
    struct vxd_svdag_edit_result *d_result;
    enum vxd_status status;

    VXD_TRY(take_scratch(edit, err));
    d_result = there(edit, edit->layout.result);
    set_args(edit);
    VXD_TRY(send(edit, root, err));
    VXD_TRY(run_traversals(edit, err));
    VXD_TRY(vxd_svdag_launch_finish(edit->queue, &edit->args, d_result, err));
    VXD_TRY(vxd_queue_copy(edit->queue, out, d_result, sizeof *out, err));
out:
    vxd_device_free(edit->queue, &edit->scratch);
    free(edit->sent);
    return status;
}

enum vxd_status vxd_svdag_edit_cuda(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                    uint32_t root, const struct vxd_svdag_op *ops,
                                    size_t n_ops, struct vxd_svdag_edit_result *out,
                                    struct vxd_err *err)
{
    struct edit edit = {.queue = queue, .svdag = svdag, .ops = ops, .n_ops = n_ops};

    if (n_ops == 0) {
        *out = (struct vxd_svdag_edit_result){.root = root};
        return VXD_OK;
    }
    return run_edit(&edit, root, out, err);
}

enum vxd_status vxd_svdag_undo_cuda(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                    uint32_t head,
                                    const struct vxd_svdag_undo_state *roots,
                                    struct vxd_svdag_edit_result *out,
                                    struct vxd_err *err)
{
    struct edit edit = {.queue = queue, .svdag = svdag, .undo = roots};

    return run_edit(&edit, head, out, err);
}
