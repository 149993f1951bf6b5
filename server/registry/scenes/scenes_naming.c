// SPDX-License-Identifier: Apache-2.0
/* Names of scenes at a start. Families come back one after the other, and two of them may have had
 * a name in turn. So the scenes of a family are found among themselves while its records are
 * applied, and get their names when it is back. Where two families end with the same name, the
 * record that took it from one of them is lost: the scene that was made last has it, since it could
 * not have been made otherwise. */
#include <string.h>

#include "server/observe/log/log.h"
#include "server/registry/scenes/scenes_journal.h"
#include "server/registry/scenes/scenes_recover.h"

struct vxd_scene *vxd_scenes_find_in_family(struct vxd_scenes *scenes,
                                            uint32_t journal_id, const char *name)
{
    struct vxd_scene_family *family = vxd_scenes_find_family(scenes, journal_id);
    struct vxd_scene *scene = family != NULL ? family->first : NULL;

    while (scene != NULL && strcmp(scene->terms.name, name) != 0) {
        scene = scene->next_in_family;
    }
    return scene;
}

/* A scene of this family, or of any where it is 0, that has no name yet. */
static struct vxd_scene *find_unnamed(struct vxd_scenes *scenes, uint32_t journal_id)
{
    for (struct vxd_scene_family *family = scenes->families; family != NULL;
         family = family->next) {
        struct vxd_scene *scene = family->first;

        while (scene != NULL && scene->is_named) {
            scene = scene->next_in_family;
        }
        if (scene != NULL && (journal_id == 0 || family->journal_id == journal_id)) {
            return scene;
        }
    }
    return NULL;
}

void vxd_scenes_drop_unnamed(struct vxd_scenes *scenes, uint32_t journal_id)
{
    struct vxd_scene *scene;

    while ((scene = find_unnamed(scenes, journal_id)) != NULL) {
        vxd_scene_drop(scene, scenes->queue);
    }
}

/* The list of names holds the scene from now on, in place of the recovery. */
static void give_name(struct vxd_scene *scene)
{
    vxd_scenes_publish(scene->scenes, scene);
    vxd_scene_drop(scene, scene->scenes->queue);
}

void vxd_scenes_name_family(struct vxd_scene_family *family)
{
    struct vxd_scenes *scenes = family->scenes;

    for (struct vxd_scene *scene = family->first; scene != NULL;
         scene = scene->next_in_family) {
        struct vxd_scene *other = vxd_scenes_find(scenes, scene->terms.name);

        if (other == NULL) {
            give_name(scene);
        }
        vxd_scene_drop(other, scenes->queue);
    }
}

static bool was_made_later(const struct vxd_scene *scene, const struct vxd_scene *other)
{
    return scene->created_unix_ns != other->created_unix_ns
               ? scene->created_unix_ns > other->created_unix_ns
               : scene->family->journal_id > other->family->journal_id;
}

enum vxd_status vxd_scenes_settle_names(struct vxd_scenes *scenes, struct vxd_err *err)
{
    struct vxd_scene *scene;
    enum vxd_status status = VXD_OK;

    while ((scene = find_unnamed(scenes, 0)) != NULL) {
        struct vxd_scene *other = vxd_scenes_find(scenes, scene->terms.name);

        vxd_log(VXD_LOG_ERROR,
                "two scenes have the same name; the one that was made last keeps it",
                "scene", scene->terms.name);
        if (was_made_later(scene, other)) {
            vxd_scenes_remove(scenes, scenes->queue, other);
            give_name(scene);
        } else { /* the other one has the name */
            struct vxd_scene *earlier = scene;

            vxd_scene_drop(other, scenes->queue);
            other = earlier;
        }
        status = vxd_scene_commit_drop(other, err);
        vxd_scene_drop(other, scenes->queue);
        VXD_TRY(status);
    }
out:
    return status;
}
