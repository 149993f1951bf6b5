// SPDX-License-Identifier: Apache-2.0
/* The editor of copies: goes down the tree and, for each cube, down the eight cubes that its
 * source lies in. Ends where they are one even region, or hold nothing that is copied. */
#include "gpu/dag/copy_math.h"
#include "gpu/dag/internal.h"

_Static_assert(sizeof(struct vxd_dag_sources) <= VXD_DAG_STATE_BYTES,
               "a state has its room");

static struct vxd_dag_sources *sources_of(union vxd_dag_edit_state *state)
{
    return (struct vxd_dag_sources *)(void *)state->bytes;
}

static const struct vxd_dag_sources *
const_sources_of(const union vxd_dag_edit_state *state)
{
    return (const struct vxd_dag_sources *)(const void *)state->bytes;
}

static void begin(const void *args, union vxd_dag_edit_state *state)
{
    const struct vxd_dag_source *source = args;

    vxd_dag_sources_begin(source->op, source->view.depth, source->root,
                          sources_of(state));
}

static void make_child(const void *args, const struct vxd_dag_view *view,
                       const struct vxd_dag_cube *cube,
                       const union vxd_dag_edit_state *state, int octant,
                       union vxd_dag_edit_state *child)
{
    const struct vxd_dag_source *source = args;
    const int height = cube->height - 1;

    (void)view;
    vxd_dag_sources_child(source->op, &source->view, const_sources_of(state),
                          cube->x + ((uint32_t)(octant >> 2) << height),
                          cube->y + ((uint32_t)(octant >> 1 & 1) << height),
                          cube->z + ((uint32_t)(octant & 1) << height), height,
                          sources_of(child));
}

/* Some voxel of the source is occupied. May say so wrongly. */
static bool has_occupied(const struct vxd_dag_source *source,
                         const struct vxd_dag_sources *sources, int height)
{
    for (int d = 0; d < 8; d++) {
        const struct vxd_dag_spot spot = {.ref = sources->refs[d], .height = height};

        if ((vxd_dag_spot_states(&source->view, &spot) & VXD_DAG_OCCUPIED) != 0) {
            return true;
        }
    }
    return false;
}

static bool are_equal(const struct vxd_dag_sources *sources)
{
    for (int d = 1; d < 8; d++) {
        if (sources->refs[d] != sources->refs[0]) {
            return false;
        }
    }
    return true;
}

/* Copied straight, from a cube of the tree. */
static bool is_aligned(const struct vxd_dag_op *op, const struct vxd_dag_cube *cube)
{
    int64_t corner[3];

    vxd_dag_source_corner(op, cube->x, cube->y, cube->z, cube->height, corner);
    return op->matrix[0][0] == 1 && op->matrix[1][1] == 1 && op->matrix[2][2] == 1 &&
           vxd_dag_sources_needed(corner, cube->height) == 0;
}

static enum vxd_dag_visit visit(const void *args, const struct vxd_dag_view *view,
                                const struct vxd_dag_cube *cube, uint32_t old,
                                union vxd_dag_edit_state *state, uint32_t *uniform)
{
    const struct vxd_dag_source *source = args;
    const struct vxd_dag_sources *sources = sources_of(state);
    struct vxd_dag_extent extent =
        vxd_dag_extent_of(cube->x, cube->y, cube->z, cube->height);
    enum vxd_dag_relation relation = vxd_dag_box_relation(&source->op->shape, &extent);
    uint32_t ref = sources->refs[0];

    (void)view;
    if (relation == VXD_DAG_OUTSIDE ||
        (!source->op->copy_empty && !has_occupied(source, sources, cube->height))) {
        return VXD_DAG_KEEP;
    }
    if (!are_equal(sources)) {
        return VXD_DAG_DESCEND;
    }
    if (ref == old && (!vxd_dag_is_node(ref) || is_aligned(source->op, cube))) {
        return VXD_DAG_KEEP;
    }
    if (vxd_dag_is_node(ref) || relation != VXD_DAG_INSIDE) {
        return VXD_DAG_DESCEND;
    }
    *uniform = ref;
    return VXD_DAG_SET;
}

static void edit_leaf(const void *args, const struct vxd_dag_view *view,
                      const struct vxd_dag_cube *cube,
                      const union vxd_dag_edit_state *state, struct vxd_dag_leaf *leaf)
{
    const struct vxd_dag_source *source = args;
    const struct vxd_dag_sources *sources = const_sources_of(state);
    const bool has_materials = source->view.value_bits > 1;
    struct vxd_dag_extent extent =
        vxd_dag_extent_of(cube->x, cube->y, cube->z, cube->height);
    const uint64_t box = vxd_dag_box_mask(&source->op->shape, &extent);
    uint64_t occupied[8];
    uint64_t free[8];
    int terms[3][4];

    (void)view;
    for (int d = 0; d < 8; d++) {
        vxd_dag_spot_masks(&source->view, sources->refs[d], &occupied[d], &free[d]);
    }
    vxd_dag_source_terms(source->op, sources, cube->x, cube->y, cube->z, terms);
    for (int i = 0; i < 64; i++) {
        const int from = terms[0][i >> 4] | terms[1][i >> 2 & 3] | terms[2][i & 3];
        const int at = vxd_dag_leaf_index(i >> 4, i >> 2 & 3, i & 3);
        const uint64_t bit = (uint64_t)1 << at;

        if ((box & bit) == 0) {
            continue;
        }
        if ((occupied[from >> 6] >> (from & 63) & 1) != 0) {
            leaf->set |= bit;
            leaf->free &= ~bit;
            if (has_materials) {
                leaf->values[at] = (uint16_t)vxd_dag_spot_value(
                    &source->view, sources->refs[from >> 6], from & 63);
            }
        } else if (source->op->copy_empty) {
            bool is_free = (free[from >> 6] >> (from & 63) & 1) != 0;

            leaf->set = is_free ? leaf->set | bit : leaf->set & ~bit;
            leaf->free = is_free ? leaf->free | bit : leaf->free & ~bit;
        }
    }
}

void vxd_dag_copy_editor(const struct vxd_dag_source *source,
                         struct vxd_dag_editor *editor)
{
    *editor = (struct vxd_dag_editor){.begin = begin,
                                      .visit = visit,
                                      .child = make_child,
                                      .leaf = edit_leaf,
                                      .args = source};
}
