// SPDX-License-Identifier: Apache-2.0
/* More operations on shapes than one run takes (shapes_math.h), in one way over the tree.
 *
 * Few of many operations meet in one place. An octree of bins says which may change a cube: not
 * those whose shape it is outside of, nor those before one that overwrites all of it. A bin with as
 * many as a run takes has a run of them, in their order, for all below; others have eight
 * parts. So every node is made once, and not once for each 64 operations, and what a later
 * operation hides is not looked at.
 *
 * Many scans have lists that meet nearly everywhere. Bins with more lists than a run takes are parted
 * until a table of their leaves is small, which says what each leaf has of all lists. */
#include "gpu/svdag/edit/op_octree_cpu.h"

/* The editor ------------------------------------------------------------------------------ */

static void begin(const void *args, union vxd_svdag_edit_state *state)
{
    (void)args;
    *vxd_svdag_shapes_own_of(state) =
        (struct vxd_svdag_shapes_own){.run = NULL, .bin = 0};
}

/* Whether lists of a table have leaves in a cube. */
static bool has_listed(const struct vxd_svdag_bins *bins,
                       const struct vxd_svdag_cube *cube,
                       const struct vxd_svdag_shapes_own *own)
{
    const struct vxd_svdag_bin *bin = &bins->bins[own->bin];
    const struct vxd_svdag_listed *end;

    return bin->has_table && vxd_svdag_listed_in(&bin->table, cube, &end) != end;
}

static enum vxd_svdag_visit visit(const void *args, const struct vxd_svdag_view *view,
                                  const struct vxd_svdag_cube *cube, uint32_t old,
                                  union vxd_svdag_edit_state *state, uint32_t *uniform)
{
    const struct vxd_svdag_bins *bins = args;
    struct vxd_svdag_shapes_own *own = vxd_svdag_shapes_own_of(state);
    enum vxd_svdag_visit told;

    if (own->run == NULL) {
        const struct vxd_svdag_bin *bin = &bins->bins[own->bin];

        if (bin->parts != 0) {
            return VXD_SVDAG_DESCEND;
        }
        if (bin->n == 0) {
            return VXD_SVDAG_KEEP;
        }
        own->run = &bin->run;
        own->has_lists = bin->n_lists > 0 && !bin->has_table;
        vxd_svdag_shapes_begin_state(own->run, &own->shapes);
    }
    /* What it says of shapes alone; it refines their state. */
    told = vxd_svdag_shapes_own_visit(view, cube, old, own, uniform);
    return has_listed(bins, cube, own) ? VXD_SVDAG_DESCEND : told;
}

static bool visit_parts(const void *args, const struct vxd_svdag_cube *cube,
                        const union vxd_svdag_edit_state *state, const uint32_t old[8],
                        struct vxd_svdag_told *told)
{
    const struct vxd_svdag_shapes_own *own = vxd_svdag_shapes_own_in(state);

    return own->run != NULL && !has_listed(args, cube, own) &&
           vxd_svdag_shapes_visit_parts(args, cube, state, old, told);
}

static void child(const void *args, const struct vxd_svdag_view *view,
                  const struct vxd_svdag_cube *cube,
                  const union vxd_svdag_edit_state *state, int octant,
                  union vxd_svdag_edit_state *out)
{
    const struct vxd_svdag_bins *bins = args;
    struct vxd_svdag_shapes_own *own = vxd_svdag_shapes_own_of(out);

    (void)view;
    (void)cube;
    *out = *state;
    if (own->run == NULL) {
        own->bin = bins->bins[own->bin].parts + (uint32_t)octant;
    }
}

static unsigned split(const void *args, const struct vxd_svdag_cube *cube,
                      const union vxd_svdag_edit_state *state,
                      union vxd_svdag_edit_state parts[8])
{
    const struct vxd_svdag_bins *bins = args;
    const struct vxd_svdag_shapes_own *own = vxd_svdag_shapes_own_in(state);
    unsigned some = 0;

    if (own->run != NULL) {
        some = vxd_svdag_shapes_split(args, cube, state, parts);
        for (int octant = 0; bins->bins[own->bin].has_table && octant < 8; octant++) {
            const struct vxd_svdag_cube part = vxd_svdag_cube_child(cube, octant);

            some |= (unsigned)has_listed(bins, &part, own) << octant;
        }
        return some;
    }
    for (int octant = 0; octant < 8; octant++) {
        child(args, NULL, cube, state, octant, &parts[octant]);
        some |= (unsigned)(bins->bins[vxd_svdag_shapes_own_in(&parts[octant])->bin].n > 0)
                << octant;
    }
    return some;
}

/* With the bin: another's run numbers other operations alike. */
static int sign(const void *args, const struct vxd_svdag_cube *cube,
                const union vxd_svdag_edit_state *state, uint64_t *words)
{
    const struct vxd_svdag_shapes_own *own = vxd_svdag_shapes_own_in(state);
    int n = own->run == NULL || has_listed(args, cube, own)
                ? 0
                : vxd_svdag_shapes_sign(own->run, cube, &own->shapes, words);

    if (n == 0 || n == VXD_SVDAG_SIGNATURE_WORDS) {
        return 0;
    }
    words[n] = own->bin;
    return n + 1;
}

static void apply_listed(const struct vxd_svdag_bins *bins,
                         const struct vxd_svdag_shapes_run *run,
                         const struct vxd_svdag_listed *listed,
                         struct vxd_svdag_leaf *leaf)
{
    const uint64_t entry = listed->entry;

    vxd_svdag_shapes_apply(run, &bins->ops[listed->number], &entry, listed->mask, leaf);
}

/* Lists and shapes in the order of their operations. */
static void edit_leaf(const void *args, const struct vxd_svdag_view *view,
                      const struct vxd_svdag_cube *cube,
                      const union vxd_svdag_edit_state *state,
                      struct vxd_svdag_leaf *leaf)
{
    const struct vxd_svdag_bins *bins = args;
    const struct vxd_svdag_shapes_own *own = vxd_svdag_shapes_own_in(state);
    struct vxd_svdag_shapes_state one = own->shapes;
    const struct vxd_svdag_listed *listed;
    const struct vxd_svdag_listed *end;

    if (!has_listed(bins, cube, own)) {
        vxd_svdag_shapes_leaf(args, view, cube, state, leaf);
        return;
    }
    listed = vxd_svdag_listed_in(&bins->bins[own->bin].table, cube, &end);
    for (uint64_t rest = own->shapes.partial | own->shapes.inside; rest != 0;
         rest &= rest - 1) {
        const uint64_t bit = rest & -rest;
        const struct vxd_svdag_op *op = own->run->ops[vxd_svdag_low_bit(rest)].op;

        for (; listed < end && &bins->ops[listed->number] < op; listed++) {
            apply_listed(bins, own->run, listed, leaf);
        }
        one.partial = own->shapes.partial & bit;
        one.inside = own->shapes.inside & bit;
        vxd_svdag_shapes_edit_leaf(own->run, cube, &one, leaf);
    }
    for (; listed < end; listed++) {
        apply_listed(bins, own->run, listed, leaf);
    }
}

/* ------------------------------------------------------------------------------------------ */

size_t vxd_svdag_bins_count(const struct vxd_svdag_op *ops, size_t n)
{
    size_t i = 0;

    while (i < n && ops[i].action < VXD_SVDAG_ERODE &&
           ops[i].shape.kind != VXD_SVDAG_HEIGHTFIELD) {
        i++;
    }
    return i;
}

enum vxd_status vxd_svdag_bins_begin(struct vxd_svdag *svdag,
                                     const struct vxd_svdag_op *ops, size_t n,
                                     struct vxd_svdag_bins **out,
                                     struct vxd_svdag_editor *editor, struct vxd_err *err)
{
    struct vxd_svdag_bins *bins;
    struct vxd_buffer memory;
    bool fits = false;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(vxd_host_alloc(svdag->context, sizeof *bins, &memory, err));
    bins = memory.ptr;
    *bins = (struct vxd_svdag_bins){.context = svdag->context,
                                    .view = &svdag->view,
                                    .memory = memory,
                                    .ops = ops,
                                    .n_ops = n};
    *out = bins;
    VXD_TRY(vxd_svdag_bins_fill(bins, &fits, err));
    *editor = (struct vxd_svdag_editor){.begin = begin,
                                        .visit = visit,
                                        .visit_parts = visit_parts,
                                        .child = child,
                                        .split = split,
                                        .leaf = edit_leaf,
                                        .signature = sign,
                                        .args = bins};
out:
    if (!fits || status != VXD_OK) {
        vxd_svdag_bins_end(*out);
        *out = NULL;
    }
    return status;
}

void vxd_svdag_bins_end(struct vxd_svdag_bins *bins)
{
    struct vxd_buffer memory;

    if (bins == NULL) {
        return;
    }
    vxd_host_free(bins->context, &bins->tables_memory);
    vxd_host_free(bins->context, &bins->runs_memory);
    vxd_host_free(bins->context, &bins->splits_memory);
    vxd_host_free(bins->context, &bins->members_memory);
    vxd_host_free(bins->context, &bins->bins_memory);
    memory = bins->memory;
    vxd_host_free(bins->context, &memory);
}
