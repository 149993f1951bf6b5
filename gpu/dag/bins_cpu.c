// SPDX-License-Identifier: Apache-2.0
/* More operations on shapes than one run takes (shapes_math.h), in one way over the tree.
 *
 * Few of many operations meet in one place. An octree of bins says which may change a cube: not
 * those whose shape it is outside of, nor those before one that overwrites all of it. A bin with as
 * many as a run takes has a run of them, in their order, for all below; others have eight
 * parts. So every node is made once, and not once for each 64 operations, and what a later
 * operation hides is not looked at. */
#include "gpu/dag/shapes.h"

enum {
    MIN_HEIGHT = VXD_DAG_LEAF_HEIGHT + 1, /* of bins */
    NUMBERS_AN_OP = 64,                   /* room for as many bins as it may be in */
    BINS_AN_OP = 8 /* one with parts has more than 64 of those numbers */
};

struct bin {
    struct vxd_dag_cube cube;
    uint32_t parts; /* the first of eight bins in a row; 0: none */
    uint32_t first; /* of its operations' numbers */
    uint32_t n;
    uint32_t n_lists;              /* of them, VOXELS */
    struct vxd_dag_shapes_run run; /* where it has operations and no parts */
};

struct vxd_dag_bins {
    struct vxd_context *context;
    struct vxd_buffer memory; /* of this, as the others host memory */
    struct vxd_buffer bins_memory;
    struct vxd_buffer numbers_memory;
    struct vxd_buffer runs_memory;
    const struct vxd_dag_op *ops; /* n_ops */
    size_t n_ops;
    struct bin *bins;
    size_t n_bins;
    uint32_t *numbers;
    size_t n_numbers;
};

/* Bins ------------------------------------------------------------------------------------ */

static bool takes_a_run(const struct bin *bin)
{
    return bin->n <= VXD_DAG_SHAPES_OPS && bin->n_lists <= VXD_DAG_SHAPES_LISTS;
}

static bool is_list(const struct vxd_dag_op *op)
{
    return op->shape.kind == VXD_DAG_VOXELS;
}

static enum vxd_dag_relation relate(const struct vxd_dag_op *op,
                                    const struct vxd_dag_cube *cube,
                                    const struct vxd_dag_extent *extent)
{
    struct vxd_dag_shape_op alone;
    struct vxd_dag_shapes_state state;

    alone.op = op;
    alone.list = 0;
    state.ranges[0][0] = 0;
    state.ranges[0][1] = is_list(op) ? op->shape.voxels.n : 0;
    return vxd_dag_shapes_relate(&alone, cube, extent, &state);
}

/* Fills a part of a bin; false where there is no room. */
static bool fill_part(struct vxd_dag_bins *bins, const struct bin *bin, struct bin *part)
{
    struct vxd_dag_extent extent =
        vxd_dag_extent_of(part->cube.x, part->cube.y, part->cube.z, part->cube.height);

    part->first = (uint32_t)bins->n_numbers;
    for (uint32_t i = 0; i < bin->n; i++) {
        uint32_t number = bins->numbers[bin->first + i];
        const struct vxd_dag_op *op = &bins->ops[number];
        enum vxd_dag_relation relation = relate(op, &part->cube, &extent);

        if (relation == VXD_DAG_OUTSIDE) {
            continue;
        }
        if (relation == VXD_DAG_INSIDE && vxd_dag_is_overwriting(op)) {
            part->n = 0;
            part->n_lists = 0;
        }
        if (part->first + part->n == NUMBERS_AN_OP * bins->n_ops) {
            return false;
        }
        bins->numbers[part->first + part->n++] = number;
        part->n_lists += is_list(op);
    }
    bins->n_numbers += part->n;
    return true;
}

/* From the whole scene's bin down; false where too many operations meet. */
static bool fill_bins(struct vxd_dag_bins *bins, int depth)
{
    bins->bins[0] = (struct bin){.cube = {.height = depth}};
    bins->n_bins = 1;
    for (size_t i = 0; i < bins->n_ops; i++) {
        bins->numbers[i] = (uint32_t)i;
        bins->bins[0].n_lists += is_list(&bins->ops[i]);
    }
    bins->bins[0].n = (uint32_t)bins->n_ops;
    bins->n_numbers = bins->n_ops;
    for (size_t i = 0; i < bins->n_bins; i++) {
        struct bin *bin = &bins->bins[i];

        if (takes_a_run(bin)) {
            continue;
        }
        if (bin->cube.height <= MIN_HEIGHT ||
            bins->n_bins + 8 > BINS_AN_OP * bins->n_ops) {
            return false;
        }
        bin->parts = (uint32_t)bins->n_bins;
        for (int octant = 0; octant < 8; octant++) {
            struct bin *part = &bins->bins[bins->n_bins++];

            *part = (struct bin){.cube = vxd_dag_cube_child(&bin->cube, octant)};
            if (!fill_part(bins, bin, part)) {
                return false;
            }
        }
    }
    return true;
}

static bool has_run(const struct bin *bin)
{
    return bin->parts == 0 && bin->n > 0;
}

static void make_run(const struct vxd_dag_bins *bins, const struct vxd_dag_view *view,
                     struct bin *bin, struct vxd_dag_shape_op *ops)
{
    int n_lists = 0;

    bin->run = (struct vxd_dag_shapes_run){.ops = ops,
                                           .n = (int)bin->n,
                                           .has_materials = view->value_bits > 1,
                                           .free_value = view->free_value};
    for (uint32_t i = 0; i < bin->n; i++) {
        const struct vxd_dag_op *op = &bins->ops[bins->numbers[bin->first + i]];

        ops[i].op = op;
        ops[i].list = is_list(op) ? n_lists++ : VXD_DAG_NO_LIST;
        bin->run.overwriting |= (uint64_t)vxd_dag_is_overwriting(op) << i;
    }
}

static enum vxd_status make_runs(struct vxd_dag_bins *bins,
                                 const struct vxd_dag_view *view, struct vxd_err *err)
{
    struct vxd_dag_shape_op *ops;
    size_t n = 0;
    enum vxd_status status;

    for (size_t i = 0; i < bins->n_bins; i++) {
        n += has_run(&bins->bins[i]) ? bins->bins[i].n : 0;
    }
    VXD_TRY(vxd_host_alloc(bins->context, n * sizeof *ops, &bins->runs_memory, err));
    ops = bins->runs_memory.ptr;
    for (size_t i = 0; i < bins->n_bins; i++) {
        if (has_run(&bins->bins[i])) {
            make_run(bins, view, &bins->bins[i], ops);
            ops += bins->bins[i].n;
        }
    }
out:
    return status;
}

/* The editor ------------------------------------------------------------------------------ */

static void begin(const void *args, union vxd_dag_edit_state *state)
{
    (void)args;
    *vxd_dag_shapes_own_of(state) = (struct vxd_dag_shapes_own){.run = NULL, .bin = 0};
}

static enum vxd_dag_visit visit(const void *args, const struct vxd_dag_view *view,
                                const struct vxd_dag_cube *cube, uint32_t old,
                                union vxd_dag_edit_state *state, uint32_t *uniform)
{
    const struct vxd_dag_bins *bins = args;
    struct vxd_dag_shapes_own *own = vxd_dag_shapes_own_of(state);

    if (own->run == NULL) {
        const struct bin *bin = &bins->bins[own->bin];

        if (bin->parts != 0) {
            return VXD_DAG_DESCEND;
        }
        if (bin->n == 0) {
            return VXD_DAG_KEEP;
        }
        own->run = &bin->run;
        vxd_dag_shapes_begin_state(own->run, &own->shapes);
    }
    return vxd_dag_shapes_own_visit(view, cube, old, own, uniform);
}

static bool visit_parts(const void *args, const struct vxd_dag_cube *cube,
                        const union vxd_dag_edit_state *state, const uint32_t old[8],
                        struct vxd_dag_told *told)
{
    return vxd_dag_shapes_own_in(state)->run != NULL &&
           vxd_dag_shapes_visit_parts(args, cube, state, old, told);
}

static void child(const void *args, const struct vxd_dag_view *view,
                  const struct vxd_dag_cube *cube, const union vxd_dag_edit_state *state,
                  int octant, union vxd_dag_edit_state *out)
{
    const struct vxd_dag_bins *bins = args;
    struct vxd_dag_shapes_own *own = vxd_dag_shapes_own_of(out);

    (void)view;
    (void)cube;
    *out = *state;
    if (own->run == NULL) {
        own->bin = bins->bins[own->bin].parts + (uint32_t)octant;
    }
}

static void split(const void *args, const struct vxd_dag_cube *cube,
                  const union vxd_dag_edit_state *state,
                  union vxd_dag_edit_state parts[8])
{
    if (vxd_dag_shapes_own_in(state)->run != NULL) {
        vxd_dag_shapes_split(args, cube, state, parts);
        return;
    }
    for (int octant = 0; octant < 8; octant++) {
        child(args, NULL, cube, state, octant, &parts[octant]);
    }
}

/* With the bin: another's run numbers other operations alike. */
static int sign(const void *args, const struct vxd_dag_cube *cube,
                const union vxd_dag_edit_state *state, uint64_t *words)
{
    const struct vxd_dag_shapes_own *own = vxd_dag_shapes_own_in(state);
    int n =
        own->run == NULL ? 0 : vxd_dag_shapes_sign(own->run, cube, &own->shapes, words);

    (void)args;
    if (n == 0 || n == VXD_DAG_SIGNATURE_WORDS) {
        return 0;
    }
    words[n] = own->bin;
    return n + 1;
}

/* ------------------------------------------------------------------------------------------ */

static enum vxd_status bins_alloc(struct vxd_dag_bins *bins, struct vxd_err *err)
{
    size_t n = bins->n_ops;
    enum vxd_status status;

    VXD_TRY(vxd_host_alloc(bins->context, BINS_AN_OP * n * sizeof *bins->bins,
                           &bins->bins_memory, err));
    bins->bins = bins->bins_memory.ptr;
    VXD_TRY(vxd_host_alloc(bins->context, NUMBERS_AN_OP * n * sizeof *bins->numbers,
                           &bins->numbers_memory, err));
    bins->numbers = bins->numbers_memory.ptr;
out:
    return status;
}

size_t vxd_dag_bins_count(const struct vxd_dag_op *ops, size_t n)
{
    size_t i = 0;

    while (i < n && ops[i].action < VXD_DAG_ERODE &&
           ops[i].shape.kind != VXD_DAG_HEIGHTFIELD) {
        i++;
    }
    return i;
}

enum vxd_status vxd_dag_bins_begin(struct vxd_dag *dag, const struct vxd_dag_op *ops,
                                   size_t n, struct vxd_dag_bins **out,
                                   struct vxd_dag_editor *editor, struct vxd_err *err)
{
    struct vxd_dag_bins *bins;
    struct vxd_buffer memory;
    bool fits = false;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(vxd_host_alloc(dag->context, sizeof *bins, &memory, err));
    bins = memory.ptr;
    *bins = (struct vxd_dag_bins){
        .context = dag->context, .memory = memory, .ops = ops, .n_ops = n};
    *out = bins;
    VXD_TRY(bins_alloc(bins, err));
    fits = fill_bins(bins, dag->view.depth);
    if (fits) {
        VXD_TRY(make_runs(bins, &dag->view, err));
        *editor = (struct vxd_dag_editor){.begin = begin,
                                          .visit = visit,
                                          .visit_parts = visit_parts,
                                          .child = child,
                                          .split = split,
                                          .leaf = vxd_dag_shapes_leaf,
                                          .signature = sign,
                                          .args = bins};
    }
out:
    if (!fits || status != VXD_OK) {
        vxd_dag_bins_end(*out);
        *out = NULL;
    }
    return status;
}

void vxd_dag_bins_end(struct vxd_dag_bins *bins)
{
    struct vxd_buffer memory;

    if (bins == NULL) {
        return;
    }
    vxd_host_free(bins->context, &bins->runs_memory);
    vxd_host_free(bins->context, &bins->numbers_memory);
    vxd_host_free(bins->context, &bins->bins_memory);
    memory = bins->memory;
    vxd_host_free(bins->context, &memory);
}
