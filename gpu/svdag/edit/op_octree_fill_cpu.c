// SPDX-License-Identifier: Apache-2.0
/* Shares operations out to bins, from the whole scene's down. */
#include "gpu/svdag/edit/op_octree_cpu.h"
#include "gpu/svdag/brush/brush_cpu.h"

enum {
    MIN_HEIGHT = VXD_SVDAG_LEAF_HEIGHT + 1, /* of bins */
    MEMBERS_PER_OP = 64,                    /* room for as many bins as it may be in */
    NODES_PER_OP = 8,          /* one with parts has more than 64 of those members */
    LIST_LEAVES_PER_OP = 1024, /* leaves of lists have as much room as an operation */
    LEAVES_PER_ENTRY = 32      /* of a table, at most */
};

static bool is_list(const struct vxd_svdag_op *op)
{
    return op->shape.kind == VXD_SVDAG_VOXELS;
}

static bool fits_run(const struct vxd_svdag_op_octree_node *node)
{
    return node->n <= VXD_SVDAG_SHAPES_OPS && node->n_lists <= VXD_SVDAG_SHAPES_LISTS;
}

/* A table for its lists, and a run for the others. Tables are not made where they would be mostly
 * empty. */
static bool fits_index(const struct vxd_svdag_op_octree_node *node)
{
    return node->n_lists > VXD_SVDAG_SHAPES_LISTS &&
           node->n - node->n_lists <= VXD_SVDAG_SHAPES_OPS &&
           node->cube.height <= VXD_SVDAG_VOXEL_LIST_INDEX_HEIGHT &&
           (node->cube.height == MIN_HEIGHT || node->n_list_leaves * LEAVES_PER_ENTRY >=
                                                   vxd_svdag_leaves_of_cube(&node->cube));
}

/* Parts ------------------------------------------------------------------------------------ */

/* How each operation lies to all parts of a bin. */
static void split(struct vxd_svdag_op_octree *octree,
                  const struct vxd_svdag_op_octree_node *node)
{
    for (uint32_t i = 0; i < node->n; i++) {
        const struct vxd_svdag_voxel_list_range *member =
            &octree->members[node->first + i];
        const struct vxd_svdag_op *op = &octree->ops[member->number];
        struct vxd_svdag_relations relations = {0, 0};

        if (!is_list(op)) {
            relations = vxd_svdag_shapes_children(op, &node->cube);
        }
        octree->splits[i] =
            (struct vxd_svdag_op_octree_split){.outside = (uint8_t)relations.outside,
                                               .inside = (uint8_t)relations.inside,
                                               .next = member->begin};
    }
}

/* What of an operation is in a part, after those before it; false where nothing is. */
static bool take_range(const struct vxd_svdag_op_octree *octree,
                       const struct vxd_svdag_voxel_list_range *member,
                       struct vxd_svdag_op_octree_split *of_member, uint64_t end_code,
                       int octant, struct vxd_svdag_voxel_list_range *out)
{
    const struct vxd_svdag_op *op = &octree->ops[member->number];

    *out = (struct vxd_svdag_voxel_list_range){.number = member->number};
    if (!is_list(op)) {
        return (of_member->outside >> octant & 1) == 0;
    }
    out->begin = of_member->next;
    out->end = (uint32_t)vxd_svdag_list_bound(op->shape.voxels.codes, out->begin,
                                              member->end, end_code);
    of_member->next = out->end;
    return out->begin < out->end;
}

/* Fills a part of a bin that was split; false where there is no room. */
static bool fill_child(struct vxd_svdag_op_octree *octree,
                       const struct vxd_svdag_op_octree_node *node, int octant,
                       struct vxd_svdag_op_octree_node *child)
{
    const uint64_t end_code =
        vxd_svdag_list_code(child->cube.x, child->cube.y, child->cube.z) +
        vxd_svdag_leaves_of_cube(&child->cube);

    child->first = (uint32_t)octree->n_members;
    for (uint32_t i = 0; i < node->n; i++) {
        const struct vxd_svdag_voxel_list_range *member =
            &octree->members[node->first + i];
        const struct vxd_svdag_op *op = &octree->ops[member->number];
        struct vxd_svdag_voxel_list_range in_child;

        if (!take_range(octree, member, &octree->splits[i], end_code, octant,
                        &in_child)) {
            continue;
        }
        if ((octree->splits[i].inside >> octant & 1) != 0 &&
            vxd_svdag_is_overwriting(op)) {
            child->n = 0;
            child->n_lists = 0;
            child->n_list_leaves = 0;
        }
        if (child->first + child->n == octree->max_members) {
            return false;
        }
        octree->members[child->first + child->n++] = in_child;
        child->n_lists += is_list(op);
        child->n_list_leaves += in_child.end - in_child.begin;
    }
    octree->n_members += child->n;
    return true;
}

/* The whole scene's; false where a list is longer than a range can say. */
static bool fill_first(struct vxd_svdag_op_octree *octree)
{
    struct vxd_svdag_op_octree_node *node = &octree->nodes[0];

    *node = (struct vxd_svdag_op_octree_node){.cube = {.height = octree->view->depth},
                                              .n = (uint32_t)octree->n_ops};
    octree->n_nodes = 1;
    for (size_t i = 0; i < octree->n_ops; i++) {
        const struct vxd_svdag_op *op = &octree->ops[i];

        octree->members[i] = (struct vxd_svdag_voxel_list_range){.number = (uint32_t)i};
        if (is_list(op)) {
            if (op->shape.voxels.n > UINT32_MAX) {
                return false;
            }
            octree->members[i].end = (uint32_t)op->shape.voxels.n;
            node->n_list_leaves += op->shape.voxels.n;
            node->n_lists++;
        }
    }
    octree->n_members = octree->n_ops;
    return true;
}

/* False where too many operations meet. */
static bool fill_all(struct vxd_svdag_op_octree *octree)
{
    if (!fill_first(octree)) {
        return false;
    }
    for (size_t i = 0; i < octree->n_nodes; i++) {
        struct vxd_svdag_op_octree_node *node = &octree->nodes[i];

        if (fits_run(node)) {
            continue;
        }
        node->has_index = fits_index(node);
        if (node->has_index) {
            continue;
        }
        if (node->cube.height <= MIN_HEIGHT || octree->n_nodes + 8 > octree->max_nodes) {
            return false;
        }
        split(octree, node);
        node->first_child = (uint32_t)octree->n_nodes;
        for (int octant = 0; octant < 8; octant++) {
            struct vxd_svdag_op_octree_node *child = &octree->nodes[octree->n_nodes++];

            *child = (struct vxd_svdag_op_octree_node){
                .cube = vxd_svdag_cube_child(&node->cube, octant)};
            if (!fill_child(octree, node, octant, child)) {
                return false;
            }
        }
    }
    return true;
}

/* Runs ------------------------------------------------------------------------------------- */

/* Operations of its run; 0: it has none. */
static uint32_t n_run(const struct vxd_svdag_op_octree_node *node)
{
    return node->first_child != 0 ? 0
           : node->has_index      ? node->n - node->n_lists
                                  : node->n;
}

static void make_run(const struct vxd_svdag_op_octree *octree,
                     struct vxd_svdag_op_octree_node *node,
                     struct vxd_svdag_shape_op *ops)
{
    int n_lists = 0;
    int n = 0;

    node->run =
        (struct vxd_svdag_shapes_run){.ops = ops,
                                      .has_materials = octree->view->value_bits > 1,
                                      .free_value = octree->view->free_value};
    for (uint32_t i = 0; i < node->n; i++) {
        const struct vxd_svdag_op *op =
            &octree->ops[octree->members[node->first + i].number];

        if (is_list(op) && node->has_index) {
            continue;
        }
        ops[n].op = op;
        ops[n].list = is_list(op) ? n_lists++ : VXD_SVDAG_NO_LIST;
        node->run.overwriting |= (uint64_t)vxd_svdag_is_overwriting(op) << n;
        n++;
    }
    node->run.n = n;
}

static enum vxd_status make_runs(struct vxd_svdag_op_octree *octree, struct vxd_err *err)
{
    struct vxd_svdag_shape_op *ops;
    size_t n = 0;
    enum vxd_status status;

    for (size_t i = 0; i < octree->n_nodes; i++) {
        n += n_run(&octree->nodes[i]);
    }
    VXD_TRY(vxd_host_alloc(octree->context, (n + 1) * sizeof *ops, &octree->runs_memory,
                           err));
    ops = octree->runs_memory.ptr;
    for (size_t i = 0; i < octree->n_nodes; i++) {
        if (octree->nodes[i].first_child == 0 && octree->nodes[i].n > 0) {
            make_run(octree, &octree->nodes[i], ops);
            ops += octree->nodes[i].run.n;
        }
    }
out:
    return status;
}

/* Tables ----------------------------------------------------------------------------------- */

/* Bytes of a table, its entries first. */
static size_t index_bytes(const struct vxd_svdag_op_octree_node *node)
{
    return (size_t)node->n_list_leaves * sizeof(struct vxd_svdag_indexed_leaf) +
           (vxd_svdag_leaves_of_cube(&node->cube) / 2 + 1) * sizeof(uint64_t);
}

/* What bins need no more of their members is overwritten. */
static void make_indices(void *args, size_t begin, size_t end)
{
    struct vxd_svdag_op_octree *octree = args;

    for (size_t i = begin; i < end; i++) {
        struct vxd_svdag_op_octree_node *node = &octree->nodes[i];
        struct vxd_svdag_voxel_list_range *members = &octree->members[node->first];
        struct vxd_svdag_indexed_leaf *entries = node->index_memory;
        uint32_t n = 0;

        if (!node->has_index) {
            continue;
        }
        for (uint32_t k = 0; k < node->n; k++) {
            if (is_list(&octree->ops[members[k].number])) {
                members[n++] = members[k];
            }
        }
        vxd_svdag_voxel_list_index_make(
            &node->cube, octree->ops, members, n,
            (uint32_t *)(void *)(entries + node->n_list_leaves), entries, &node->index);
    }
}

static enum vxd_status alloc_indices(struct vxd_svdag_op_octree *octree,
                                     struct vxd_err *err)
{
    size_t n_bytes = 0;
    unsigned char *next;
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < octree->n_nodes; i++) {
        n_bytes += octree->nodes[i].has_index ? index_bytes(&octree->nodes[i]) : 0;
    }
    if (n_bytes == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_host_alloc(octree->context, n_bytes, &octree->indices_memory, err));
    next = octree->indices_memory.ptr;
    for (size_t i = 0; i < octree->n_nodes; i++) {
        if (octree->nodes[i].has_index) {
            octree->nodes[i].index_memory = (struct vxd_svdag_indexed_leaf *)(void *)next;
            next += index_bytes(&octree->nodes[i]);
        }
    }
    vxd_parallel_for(octree->context->pool, octree->n_nodes, 1, make_indices, octree);
out:
    return status;
}

/* ------------------------------------------------------------------------------------------ */

static enum vxd_status octree_alloc(struct vxd_svdag_op_octree *octree,
                                    struct vxd_err *err)
{
    size_t n = octree->n_ops;
    enum vxd_status status;

    for (size_t i = 0; i < octree->n_ops; i++) {
        n += is_list(&octree->ops[i]) ? octree->ops[i].shape.voxels.n / LIST_LEAVES_PER_OP
                                      : 0;
    }
    octree->max_nodes = NODES_PER_OP * n;
    octree->max_members = MEMBERS_PER_OP * n;
    VXD_TRY(vxd_host_alloc(octree->context, octree->max_nodes * sizeof *octree->nodes,
                           &octree->nodes_memory, err));
    octree->nodes = octree->nodes_memory.ptr;
    VXD_TRY(vxd_host_alloc(octree->context, octree->max_members * sizeof *octree->members,
                           &octree->members_memory, err));
    octree->members = octree->members_memory.ptr;
    VXD_TRY(vxd_host_alloc(octree->context, octree->n_ops * sizeof *octree->splits,
                           &octree->splits_memory, err));
    octree->splits = octree->splits_memory.ptr;
out:
    return status;
}

enum vxd_status vxd_svdag_op_octree_fill(struct vxd_svdag_op_octree *octree, bool *fits,
                                         struct vxd_err *err)
{
    enum vxd_status status;

    *fits = false;
    VXD_TRY(octree_alloc(octree, err));
    *fits = fill_all(octree);
    if (*fits) {
        VXD_TRY(make_runs(octree, err));
        VXD_TRY(alloc_indices(octree, err));
    }
out:
    return status;
}
