// SPDX-License-Identifier: Apache-2.0
/* The editor of copies (copy_math.h): goes down the tree and, for each cube, down the eight
 * cubes that its source lies in. Ends where they are one even region, or hold nothing that is
 * copied. */
#include "gpu/svdag/brush/brush_math.h"
#include "gpu/svdag/store/store.h"

_Static_assert(sizeof(struct vxd_svdag_sources) <= VXD_SVDAG_STATE_BYTES,
               "an editor's state fits the memory kept for it");

static struct vxd_svdag_sources *sources_of(union vxd_svdag_edit_state *state)
{
    return (struct vxd_svdag_sources *)(void *)state->bytes;
}

static const struct vxd_svdag_sources *
const_sources_of(const union vxd_svdag_edit_state *state)
{
    return (const struct vxd_svdag_sources *)(const void *)state->bytes;
}

static void begin(const void *args, union vxd_svdag_edit_state *state)
{
    const struct vxd_svdag_source *source = args;

    vxd_svdag_sources_begin(source->op, source->view.depth, source->root,
                            sources_of(state));
}

static void make_child(const void *args, const struct vxd_svdag_view *view,
                       const struct vxd_svdag_cube *cube,
                       const union vxd_svdag_edit_state *state, int octant,
                       union vxd_svdag_edit_state *child)
{
    (void)view;
    vxd_svdag_copy_child(args, cube, const_sources_of(state), octant, sources_of(child));
}

static enum vxd_svdag_visit visit(const void *args, const struct vxd_svdag_view *view,
                                  const struct vxd_svdag_cube *cube, uint32_t old,
                                  union vxd_svdag_edit_state *state, uint32_t *uniform)
{
    (void)view;
    return vxd_svdag_copy_visit(args, cube, old, sources_of(state), uniform);
}

static void edit_leaf(const void *args, const struct vxd_svdag_view *view,
                      const struct vxd_svdag_cube *cube,
                      const union vxd_svdag_edit_state *state,
                      struct vxd_svdag_leaf *leaf)
{
    (void)view;
    vxd_svdag_copy_edit_leaf(args, cube, const_sources_of(state), leaf);
}

void vxd_svdag_copy_editor(const struct vxd_svdag_source *source,
                           struct vxd_svdag_editor *editor)
{
    *editor = (struct vxd_svdag_editor){.begin = begin,
                                        .visit = visit,
                                        .child = make_child,
                                        .leaf = edit_leaf,
                                        .args = source};
}
