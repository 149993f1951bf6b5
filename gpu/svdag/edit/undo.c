// SPDX-License-Identifier: Apache-2.0
/* Undo is an edit of one pass, with the editor of undo_math.h. */
#include "gpu/svdag/edit/undo.h"

#include "gpu/svdag/store/store_math.h"
#include "gpu/svdag/store/store.h"
#include "gpu/svdag/brush/brush_math.h"
#include "gpu/svdag/edit/edit.h"

_Static_assert(sizeof(struct vxd_svdag_undo_state) <= VXD_SVDAG_STATE_BYTES,
               "an editor's state fits the memory kept for it");

/* What vxd_queue_push copies. */
struct undo_call {
    struct vxd_svdag *svdag;
    uint32_t head;
    struct vxd_svdag_undo_state roots;
    struct vxd_svdag_edit_result *out;
};

static struct vxd_svdag_undo_state *state_of(union vxd_svdag_edit_state *state)
{
    return (struct vxd_svdag_undo_state *)(void *)state->bytes;
}

static const struct vxd_svdag_undo_state *
const_state_of(const union vxd_svdag_edit_state *state)
{
    return (const struct vxd_svdag_undo_state *)(const void *)state->bytes;
}

static void begin(const void *args, union vxd_svdag_edit_state *state)
{
    const struct vxd_svdag_undo_state *roots = args;

    *state_of(state) = *roots;
}

static enum vxd_svdag_visit visit(const void *args, const struct vxd_svdag_view *view,
                                  const struct vxd_svdag_cube *cube, uint32_t old,
                                  union vxd_svdag_edit_state *state, uint32_t *ref)
{
    (void)args;
    (void)view;
    (void)cube;
    return vxd_svdag_undo_visit(state_of(state), old, ref);
}

static void make_child(const void *args, const struct vxd_svdag_view *view,
                       const struct vxd_svdag_cube *cube,
                       const union vxd_svdag_edit_state *state, int octant,
                       union vxd_svdag_edit_state *child)
{
    (void)args;
    (void)cube;
    *state_of(child) = vxd_svdag_undo_child(view, const_state_of(state), octant);
}

static void edit_leaf(const void *args, const struct vxd_svdag_view *view,
                      const struct vxd_svdag_cube *cube,
                      const union vxd_svdag_edit_state *state,
                      struct vxd_svdag_leaf *leaf)
{
    (void)args;
    (void)cube;
    vxd_svdag_undo_edit_leaf(view, const_state_of(state), leaf);
}

static int edit_key(const void *args, const struct vxd_svdag_cube *cube,
                    const union vxd_svdag_edit_state *state, uint64_t *words)
{
    (void)args;
    (void)cube;
    return vxd_svdag_undo_edit_key(const_state_of(state), words);
}

static enum vxd_status undo_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    const struct undo_call *call = args;
    const struct vxd_svdag_editor editor = {.begin = begin,
                                            .visit = visit,
                                            .child = make_child,
                                            .leaf = edit_leaf,
                                            .edit_key = edit_key,
                                            .args = &call->roots};
    struct vxd_svdag_edit_result result = {.root = call->head};
    enum vxd_status status =
        vxd_svdag_build(pool, call->svdag, call->head, &editor, &result, err);

    if (status == VXD_OK) {
        *call->out = result;
    }
    return status;
}

enum vxd_status vxd_svdag_undo(struct vxd_queue *queue, struct vxd_svdag *svdag,
                               uint32_t head, uint32_t before, uint32_t after,
                               struct vxd_svdag_edit_result *out, struct vxd_err *err)
{
    const struct undo_call call = {svdag, head, {before, after}, out};

    return VXD_ON_CUDA(queue->context)
               ? vxd_svdag_undo_cuda(queue, svdag, head, &call.roots, out, err)
               : vxd_queue_push(queue, undo_job, &call, sizeof call, err);
}

enum vxd_status vxd_svdag_undo_wait(struct vxd_queue *queue, struct vxd_svdag *svdag,
                                    uint32_t head, uint32_t before, uint32_t after,
                                    struct vxd_svdag_edit_result *out,
                                    struct vxd_err *err)
{
    enum vxd_status status;

    for (;;) {
        VXD_TRY(vxd_svdag_check_stop(svdag, err));
        VXD_TRY(vxd_svdag_undo(queue, svdag, head, before, after, out, err));
        VXD_TRY(vxd_queue_wait(queue, err));
        if (!out->needs_capacity) {
            break;
        }
        /* Each time some room grows, or the budget ends it. */
        VXD_TRY(vxd_svdag_reserve(queue, svdag, out, err));
    }
out:
    return status;
}
