// SPDX-License-Identifier: Apache-2.0
/* What watchers see of the scenes: the newest version of each, names that are gone, and that
 * something has changed. Changes of all scenes are numbered, and each scene has the number of its
 * last one, so a watcher of all scenes needs one number to go on from. */
#include <stdlib.h>
#include <string.h>

#include "server/registry/scenes/scenes_internal.h"

void vxd_scenes_set_listener(struct vxd_scenes *scenes, vxd_scenes_changed_fn changed,
                             void *context)
{
    scenes->changed = changed;
    scenes->changed_context = context;
}

static struct vxd_scene_head head_of(const struct vxd_scene *scene)
{
    const struct vxd_scene_history *history = &scene->history;
    const struct vxd_scene_version *newest =
        &history->versions[history->n - history->n_waiting - 1];
    struct vxd_scene_head head = {.generation = scene->generation,
                                  .version = newest->number,
                                  .changed_unix_ns = newest->unix_ns,
                                  .changed = scene->changed};

    memcpy(head.name, scene->terms.name, sizeof head.name);
    return head;
}

/* A recovery publishes scenes before they have versions. */
static bool has_head(const struct vxd_scene *scene)
{
    return scene->history.n > scene->history.n_waiting;
}

void vxd_scene_number_change(struct vxd_scene *scene, bool was_named)
{
    struct vxd_scenes *scenes = scene->scenes;

    if (!scene->is_named && !was_named) {
        return;
    }
    scene->changed = ++scenes->last_change;
    if (was_named && has_head(scene)) {
        struct vxd_scene_head gone = head_of(scene);

        gone.version = 0;
        scenes->gone[scenes->n_gone++ % VXD_SCENE_GONE_NAMES] = gone;
    }
}

void vxd_scene_notify(const struct vxd_scene *scene, bool is_seen)
{
    const struct vxd_scenes *scenes = scene->scenes;

    if (is_seen && scenes->changed != NULL) {
        scenes->changed(scenes->changed_context, scene->terms.name);
    }
}

bool vxd_scenes_get_head(const struct vxd_scenes *scenes, const char *name,
                         struct vxd_scene_head *out)
{
    const struct vxd_scene *found;
    int order = -1;

    vxd_scenes_lock(scenes);
    for (found = scenes->first; found != NULL; found = found->next) {
        order = strcmp(found->terms.name, name);
        if (order >= 0) {
            break;
        }
    }
    found = found != NULL && order == 0 && has_head(found) ? found : NULL;
    if (found != NULL) {
        *out = head_of(found);
    }
    vxd_scenes_unlock(scenes);
    return found != NULL;
}

uint64_t vxd_scenes_last_change(const struct vxd_scenes *scenes)
{
    uint64_t last;

    vxd_scenes_lock(scenes);
    last = scenes->last_change;
    vxd_scenes_unlock(scenes);
    return last;
}

static int compare_changes(const void *a, const void *b)
{
    const struct vxd_scene_head *x = a;
    const struct vxd_scene_head *y = b;

    return (x->changed > y->changed) - (x->changed < y->changed);
}

/* Whether every name that is gone since is remembered. With the mutex held. */
static bool remembers(const struct vxd_scenes *scenes, uint64_t after)
{
    return scenes->n_gone <= VXD_SCENE_GONE_NAMES ||
           scenes->gone[scenes->n_gone % VXD_SCENE_GONE_NAMES].changed <= after;
}

/* With the mutex held; the array has capacity for all. */
static size_t copy_after(const struct vxd_scenes *scenes, uint64_t after,
                         bool is_complete, struct vxd_scene_head *out)
{
    size_t n_kept = scenes->n_gone < VXD_SCENE_GONE_NAMES ? (size_t)scenes->n_gone
                                                          : VXD_SCENE_GONE_NAMES;
    size_t n = 0;

    for (const struct vxd_scene *s = scenes->first; s != NULL; s = s->next) {
        if (has_head(s) && (is_complete || s->changed > after)) {
            out[n++] = head_of(s);
        }
    }
    for (size_t i = 0; i < n_kept && !is_complete; i++) {
        if (scenes->gone[i].changed > after) {
            out[n++] = scenes->gone[i];
        }
    }
    return n;
}

enum vxd_status vxd_scenes_copy_heads(const struct vxd_scenes *scenes, uint64_t after,
                                      struct vxd_scene_head **out, size_t *n,
                                      bool *is_complete, uint64_t *last,
                                      struct vxd_err *err)
{
    size_t capacity = VXD_SCENE_GONE_NAMES;

    vxd_scenes_lock(scenes);
    for (const struct vxd_scene *s = scenes->first; s != NULL; s = s->next) {
        capacity++;
    }
    *out = malloc(capacity * sizeof **out);
    if (*out != NULL) {
        *is_complete = after == 0 || !remembers(scenes, after);
        *n = copy_after(scenes, after, *is_complete, *out);
        *last = scenes->last_change;
    }
    vxd_scenes_unlock(scenes);
    if (*out == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "no memory for the heads of %zu scenes", capacity);
    }
    qsort(*out, *n, sizeof **out, compare_changes);
    return VXD_OK;
}
