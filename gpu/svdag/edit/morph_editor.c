// SPDX-License-Identifier: Apache-2.0
/* The editor of erosion and dilation (morph_math.h): goes down the tree with a cube's six
 * neighbours. */
#include "gpu/svdag/store/store.h"
#include "gpu/svdag/brush/brush_math.h"

_Static_assert(sizeof(struct vxd_svdag_morph_state) <= VXD_SVDAG_STATE_BYTES,
               "an editor's state fits the memory kept for it");

static struct vxd_svdag_morph_state *state_of(union vxd_svdag_edit_state *state)
{
    return (struct vxd_svdag_morph_state *)(void *)state->bytes;
}

static const struct vxd_svdag_morph_state *
const_state_of(const union vxd_svdag_edit_state *state)
{
    return (const struct vxd_svdag_morph_state *)(const void *)state->bytes;
}

static void begin(const void *args, union vxd_svdag_edit_state *state)
{
    vxd_svdag_morph_begin(args, state_of(state));
}

static void make_child(const void *args, const struct vxd_svdag_view *view,
                       const struct vxd_svdag_cube *cube,
                       const union vxd_svdag_edit_state *state, int octant,
                       union vxd_svdag_edit_state *child)
{
    (void)view;
    (void)cube;
    vxd_svdag_morph_child(args, const_state_of(state), octant, state_of(child));
}

static enum vxd_svdag_visit visit(const void *args, const struct vxd_svdag_view *view,
                                  const struct vxd_svdag_cube *cube, uint32_t old,
                                  union vxd_svdag_edit_state *state, uint32_t *uniform)
{
    (void)view;
    (void)old;
    (void)uniform;
    return vxd_svdag_morph_visit(args, cube, state_of(state));
}

static void edit_leaf(const void *args, const struct vxd_svdag_view *view,
                      const struct vxd_svdag_cube *cube,
                      const union vxd_svdag_edit_state *state,
                      struct vxd_svdag_leaf *leaf)
{
    (void)view;
    vxd_svdag_morph_edit_leaf(args, cube, const_state_of(state), leaf);
}

void vxd_svdag_morph_editor(const struct vxd_svdag_source *source,
                            struct vxd_svdag_editor *editor)
{
    *editor = (struct vxd_svdag_editor){.begin = begin,
                                        .visit = visit,
                                        .child = make_child,
                                        .leaf = edit_leaf,
                                        .args = source};
}
