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
        (struct vxd_svdag_shapes_own){.run = NULL, .node = 0};
}

/* Whether lists of a table have leaves in a cube. */
static bool has_indexed_leaves(const struct vxd_svdag_op_octree *octree,
                               const struct vxd_svdag_cube *cube,
                               const struct vxd_svdag_shapes_own *own)
{
    const struct vxd_svdag_op_octree_node *node = &octree->nodes[own->node];
    const struct vxd_svdag_indexed_leaf *end;

    return node->has_index &&
           vxd_svdag_voxel_list_index_find(&node->index, cube, &end) != end;
}

static enum vxd_svdag_visit visit(const void *args, const struct vxd_svdag_view *view,
                                  const struct vxd_svdag_cube *cube, uint32_t old,
                                  union vxd_svdag_edit_state *state, uint32_t *uniform)
{
    const struct vxd_svdag_op_octree *octree = args;
    struct vxd_svdag_shapes_own *own = vxd_svdag_shapes_own_of(state);
    enum vxd_svdag_visit classes;

    if (own->run == NULL) {
        const struct vxd_svdag_op_octree_node *node = &octree->nodes[own->node];

        if (node->first_child != 0) {
            return VXD_SVDAG_DESCEND;
        }
        if (node->n == 0) {
            return VXD_SVDAG_KEEP;
        }
        own->run = &node->run;
        own->has_lists = node->n_lists > 0 && !node->has_index;
        vxd_svdag_shapes_begin_state(own->run, &own->shapes);
    }
    /* What it says of shapes alone; it refines their state. */
    classes = vxd_svdag_shapes_own_visit(view, cube, old, own, uniform);
    return has_indexed_leaves(octree, cube, own) ? VXD_SVDAG_DESCEND : classes;
}

static bool classify(const void *args, const struct vxd_svdag_cube *cube,
                     const union vxd_svdag_edit_state *state, const uint32_t old[8],
                     struct vxd_svdag_classes *classes)
{
    const struct vxd_svdag_shapes_own *own = vxd_svdag_shapes_own_in(state);

    return own->run != NULL && !has_indexed_leaves(args, cube, own) &&
           vxd_svdag_shapes_own_classify(args, cube, state, old, classes);
}

static void child(const void *args, const struct vxd_svdag_view *view,
                  const struct vxd_svdag_cube *cube,
                  const union vxd_svdag_edit_state *state, int octant,
                  union vxd_svdag_edit_state *out)
{
    const struct vxd_svdag_op_octree *octree = args;
    struct vxd_svdag_shapes_own *own = vxd_svdag_shapes_own_of(out);

    (void)view;
    (void)cube;
    *out = *state;
    if (own->run == NULL) {
        own->node = octree->nodes[own->node].first_child + (uint32_t)octant;
    }
}

static unsigned split(const void *args, const struct vxd_svdag_cube *cube,
                      const union vxd_svdag_edit_state *state,
                      union vxd_svdag_edit_state child_states[8])
{
    const struct vxd_svdag_op_octree *octree = args;
    const struct vxd_svdag_shapes_own *own = vxd_svdag_shapes_own_in(state);
    unsigned some = 0;

    if (own->run != NULL) {
        some = vxd_svdag_shapes_split(args, cube, state, child_states);
        for (int octant = 0; octree->nodes[own->node].has_index && octant < 8; octant++) {
            const struct vxd_svdag_cube child_cube = vxd_svdag_cube_child(cube, octant);

            some |= (unsigned)has_indexed_leaves(octree, &child_cube, own) << octant;
        }
        return some;
    }
    for (int octant = 0; octant < 8; octant++) {
        child(args, NULL, cube, state, octant, &child_states[octant]);
        some |=
            (unsigned)(octree->nodes[vxd_svdag_shapes_own_in(&child_states[octant])->node]
                           .n > 0)
            << octant;
    }
    return some;
}

/* With the bin: another bin numbers other operations from 0, too. */
static int edit_key(const void *args, const struct vxd_svdag_cube *cube,
                    const union vxd_svdag_edit_state *state, uint64_t *words)
{
    const struct vxd_svdag_shapes_own *own = vxd_svdag_shapes_own_in(state);
    int n = own->run == NULL || has_indexed_leaves(args, cube, own)
                ? 0
                : vxd_svdag_shapes_edit_key(own->run, cube, &own->shapes, words);

    if (n == 0 || n == VXD_SVDAG_EDIT_KEY_WORDS) {
        return 0;
    }
    words[n] = own->node;
    return n + 1;
}

static void apply_indexed(const struct vxd_svdag_op_octree *octree,
                          const struct vxd_svdag_shapes_run *run,
                          const struct vxd_svdag_indexed_leaf *indexed,
                          struct vxd_svdag_leaf *leaf)
{
    const uint64_t entry = indexed->entry;

    vxd_svdag_shapes_apply(run, &octree->ops[indexed->number], &entry, indexed->mask,
                           leaf);
}

/* Lists and shapes in the order of their operations. */
static void edit_leaf(const void *args, const struct vxd_svdag_view *view,
                      const struct vxd_svdag_cube *cube,
                      const union vxd_svdag_edit_state *state,
                      struct vxd_svdag_leaf *leaf)
{
    const struct vxd_svdag_op_octree *octree = args;
    const struct vxd_svdag_shapes_own *own = vxd_svdag_shapes_own_in(state);
    struct vxd_svdag_shapes_state one = own->shapes;
    const struct vxd_svdag_indexed_leaf *indexed;
    const struct vxd_svdag_indexed_leaf *end;

    if (!has_indexed_leaves(octree, cube, own)) {
        vxd_svdag_shapes_leaf(args, view, cube, state, leaf);
        return;
    }
    indexed =
        vxd_svdag_voxel_list_index_find(&octree->nodes[own->node].index, cube, &end);
    for (uint64_t rest = own->shapes.partial | own->shapes.inside; rest != 0;
         rest &= rest - 1) {
        const uint64_t bit = rest & -rest;
        const struct vxd_svdag_op *op = own->run->ops[vxd_svdag_low_bit(rest)].op;

        for (; indexed < end && &octree->ops[indexed->number] < op; indexed++) {
            apply_indexed(octree, own->run, indexed, leaf);
        }
        one.partial = own->shapes.partial & bit;
        one.inside = own->shapes.inside & bit;
        vxd_svdag_shapes_edit_leaf(own->run, cube, &one, leaf);
    }
    for (; indexed < end; indexed++) {
        apply_indexed(octree, own->run, indexed, leaf);
    }
}

/* ------------------------------------------------------------------------------------------ */

size_t vxd_svdag_op_octree_count(const struct vxd_svdag_op *ops, size_t n)
{
    size_t i = 0;

    while (i < n && ops[i].action < VXD_SVDAG_ERODE &&
           ops[i].shape.kind != VXD_SVDAG_HEIGHTFIELD) {
        i++;
    }
    return i;
}

enum vxd_status vxd_svdag_op_octree_begin(struct vxd_svdag *svdag,
                                          const struct vxd_svdag_op *ops, size_t n,
                                          struct vxd_svdag_op_octree **out,
                                          struct vxd_svdag_editor *editor,
                                          struct vxd_err *err)
{
    struct vxd_svdag_op_octree *octree;
    struct vxd_buffer memory;
    bool fits = false;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(vxd_host_alloc(svdag->context, sizeof *octree, &memory, err));
    octree = memory.ptr;
    *octree = (struct vxd_svdag_op_octree){.context = svdag->context,
                                           .view = &svdag->view,
                                           .memory = memory,
                                           .ops = ops,
                                           .n_ops = n};
    *out = octree;
    VXD_TRY(vxd_svdag_op_octree_fill(octree, &fits, err));
    *editor = (struct vxd_svdag_editor){.begin = begin,
                                        .visit = visit,
                                        .classify = classify,
                                        .child = child,
                                        .split = split,
                                        .leaf = edit_leaf,
                                        .edit_key = edit_key,
                                        .args = octree};
out:
    if (!fits || status != VXD_OK) {
        vxd_svdag_op_octree_end(*out);
        *out = NULL;
    }
    return status;
}

void vxd_svdag_op_octree_end(struct vxd_svdag_op_octree *octree)
{
    struct vxd_buffer memory;

    if (octree == NULL) {
        return;
    }
    vxd_host_free(octree->context, &octree->indices_memory);
    vxd_host_free(octree->context, &octree->runs_memory);
    vxd_host_free(octree->context, &octree->splits_memory);
    vxd_host_free(octree->context, &octree->members_memory);
    vxd_host_free(octree->context, &octree->nodes_memory);
    memory = octree->memory;
    vxd_host_free(octree->context, &memory);
}
