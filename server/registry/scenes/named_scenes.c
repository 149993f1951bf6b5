// SPDX-License-Identifier: Apache-2.0
/* Scenes are in one list in order of their names, under one mutex, which guards the
 * histories as well. Whatever takes long (stores, giving memory back) happens outside of
 * it. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "server/registry/scenes/scene_fusion.h"
#include "server/registry/scenes/scenes_internal.h"
#include "server/registry/scenes/scenes_recover.h"
#include "server/instance/instance.h"

enum {
    SLAB_MATERIAL_BITS = 4 /* the most that stores of slabs take */
};

void vxd_scenes_lock(const struct vxd_scenes *scenes)
{
    /* Functions that only read lock through a const pointer. */
    (void)pthread_mutex_lock((pthread_mutex_t *)(uintptr_t)&scenes->mutex);
}

void vxd_scenes_unlock(const struct vxd_scenes *scenes)
{
    (void)pthread_mutex_unlock((pthread_mutex_t *)(uintptr_t)&scenes->mutex);
}

static void choose_store(struct vxd_scenes *scenes, const struct vxd_server *server)
{
    for (int i = 0; i < VXD_SVDAG_N_STORES; i++) {
        const enum vxd_svdag_store store = (enum vxd_svdag_store)i;

        if (strcmp(vxd_svdag_store_name(store), server->config.scene_store) == 0) {
            scenes->store = store;
        }
    }
    scenes->store_name = vxd_svdag_store_name(scenes->store);
}

enum vxd_status vxd_scenes_create(struct vxd_server *server, struct vxd_scenes **out,
                                  struct vxd_err *err)
{
    struct vxd_scenes *scenes = calloc(1, sizeof *scenes);
    struct vxd_memory_usage memory;
    enum vxd_status status;

    if (scenes == NULL || pthread_mutex_init(&scenes->mutex, NULL) != 0) {
        free(scenes);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the scenes");
    }
    vxd_context_get_memory(server->context, &memory);
    scenes->context = server->context;
    scenes->registry = server->registry;
    scenes->auth = server->auth;
    scenes->limit_bytes = server->config.scene_bytes > 0 ? server->config.scene_bytes
                                                         : memory.device_budget_bytes / 2;
    scenes->token_limit_bytes = server->config.token_scene_bytes > 0
                                    ? server->config.token_scene_bytes
                                    : scenes->limit_bytes;
    scenes->limit_scenes = server->config.n_scenes;
    scenes->limit_edit_regions = server->config.scene_edit_regions;
    scenes->collect_growth = server->config.scene_collect_growth;
    choose_store(scenes, server);
    status = vxd_queue_create(server->context, &scenes->queue, err);
    if (status != VXD_OK) {
        vxd_scenes_destroy(scenes);
        return status;
    }
    vxd_registry_add(server->registry, &vxd_scenes_kind, scenes);
    *out = scenes;
    return VXD_OK;
}

void vxd_scenes_destroy(struct vxd_scenes *scenes)
{
    if (scenes == NULL) {
        return;
    }
    while (scenes->first != NULL) {
        struct vxd_scene *scene = scenes->first;

        scenes->first = scene->next;
        vxd_scene_drop(scene, scenes->queue);
    }
    vxd_queue_destroy(scenes->queue);
    (void)pthread_mutex_destroy(&scenes->mutex);
    free(scenes);
}

bool vxd_scene_spec_equal(const struct vxd_scene_spec *a, const struct vxd_scene_spec *b)
{
    bool equal = a->format.depth == b->format.depth &&
                 a->format.material_bits == b->format.material_bits &&
                 a->format.tracks_free == b->format.tracks_free &&
                 a->voxel_size_m == b->voxel_size_m && a->n_palette == b->n_palette &&
                 strcmp(a->frame_id, b->frame_id) == 0 && a->fusion == b->fusion &&
                 vxd_occupancy_odds_equal(&a->odds, &b->odds);

    for (int i = 0; i < 3 && equal; i++) {
        equal = a->origin_m[i] == b->origin_m[i];
    }
    for (size_t i = 0; i < a->n_palette && equal; i++) {
        equal = a->palette[i].rgb == b->palette[i].rgb &&
                strcmp(a->palette[i].name, b->palette[i].name) == 0;
    }
    return equal;
}

/* Copies a palette, its names behind the entries, into memory that the engine's host
 * budget counts. */
static enum vxd_status copy_palette(struct vxd_scene *scene,
                                    const struct vxd_scene_spec *spec,
                                    struct vxd_err *err)
{
    size_t n_bytes = spec->n_palette * sizeof *spec->palette;
    struct vxd_scene_material *entries;
    char *text;
    enum vxd_status status;

    for (size_t i = 0; i < spec->n_palette; i++) {
        n_bytes += strlen(spec->palette[i].name) + 1;
    }
    status = vxd_host_alloc(scene->scenes->context, n_bytes, &scene->palette_memory, err);
    if (status != VXD_OK || n_bytes == 0) {
        return status;
    }
    entries = scene->palette_memory.ptr;
    text = (char *)(entries + spec->n_palette);
    for (size_t i = 0; i < spec->n_palette; i++) {
        size_t n = strlen(spec->palette[i].name) + 1;

        memcpy(text, spec->palette[i].name, n);
        entries[i] = (struct vxd_scene_material){text, spec->palette[i].rgb};
        text += n;
    }
    scene->spec.palette = entries;
    return VXD_OK;
}

static void destroy(struct vxd_scene *scene, struct vxd_queue *queue)
{
    struct vxd_scenes *scenes = scene->scenes;

    vxd_scene_free_log_odds(scene, queue);
    vxd_scene_family_leave(scene, queue);
    vxd_scene_history_free(&scene->history);
    vxd_host_free(scenes->context, &scene->palette_memory);
    free(scene);
}

uint64_t vxd_scenes_new_generation(struct vxd_scenes *scenes)
{
    uint64_t now = (uint64_t)vxd_clock_unix_ns();

    /* Clocks may go back while the server runs. */
    scenes->last_generation =
        now > scenes->last_generation ? now : scenes->last_generation + 1;
    return scenes->last_generation;
}

/* Checks what the engine would refuse without naming the key. */
static enum vxd_status check_store(const struct vxd_scenes *scenes,
                                   const struct vxd_scene_spec *spec, struct vxd_err *err)
{
    if (scenes->store == VXD_SVDAG_ARENA ||
        spec->format.material_bits <= SLAB_MATERIAL_BITS) {
        return VXD_OK;
    }
    return vxd_fail(
        err, VXD_INVALID_ARGUMENT, "spec.material_bits",
        "is %d, but this server's scenes.store is \"%s\", which takes at most "
        "%d: it must be \"arena\" for more",
        spec->format.material_bits, scenes->store_name, SLAB_MATERIAL_BITS);
}

/* Counts scenes that have a name or wait for one, and how many of them the owner has made. */
static size_t count_scenes(const struct vxd_scenes *scenes, const char *owner,
                           size_t *n_of_owner)
{
    size_t n = atomic_load(&scenes->n_scenes);

    *n_of_owner = 0;
    vxd_scenes_lock(scenes);
    for (const struct vxd_scene *s = scenes->reserved; s != NULL; s = s->next) {
        n++;
        *n_of_owner += strcmp(s->terms.owner, owner) == 0 ? 1 : 0;
    }
    for (const struct vxd_scene *s = scenes->first; s != NULL; s = s->next) {
        *n_of_owner += strcmp(s->terms.owner, owner) == 0 ? 1 : 0;
    }
    vxd_scenes_unlock(scenes);
    return n;
}

/* Whether there may be one more, of all and of the owner's. */
static enum vxd_status check_count(const struct vxd_scenes *scenes, const char *owner,
                                   struct vxd_err *err)
{
    size_t n_of_owner;

    if (atomic_load(&scenes->is_recovering)) {
        return VXD_OK;
    }
    if (count_scenes(scenes, owner, &n_of_owner) >= scenes->limit_scenes) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "there are %zu scenes already, limits.scenes",
                        scenes->limit_scenes);
    }
    return vxd_auth_check_held(scenes->auth, owner, VXD_NOUN_SCENE, n_of_owner, err);
}

/* Makes a scene without its family and history. */
static enum vxd_status new_scene(struct vxd_scenes *scenes,
                                 const struct vxd_scene_terms *terms,
                                 const struct vxd_scene_spec *spec,
                                 struct vxd_scene **out, struct vxd_err *err)
{
    struct vxd_scene *scene;
    enum vxd_status status;

    status = check_count(scenes, terms->owner, err);
    if (status == VXD_OK) {
        status = check_store(scenes, spec, err);
    }
    if (status != VXD_OK) {
        return status;
    }
    scene = calloc(1, sizeof *scene);
    if (scene == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a scene");
    }
    scene->scenes = scenes;
    scene->terms = *terms;
    scene->spec = *spec;
    scene->spec.palette = NULL;
    scene->references = 1;
    scene->created_unix_ns = vxd_clock_unix_ns();
    scene->generation = vxd_scenes_new_generation(scenes);
    status = copy_palette(scene, spec, err);
    if (status != VXD_OK) {
        free(scene);
        return status;
    }
    *out = scene;
    return VXD_OK;
}

enum vxd_status vxd_scene_restore(struct vxd_scenes *scenes,
                                  struct vxd_scene_family *family,
                                  const struct vxd_scene_terms *terms,
                                  const struct vxd_scene_spec *spec,
                                  struct vxd_scene **out, struct vxd_err *err)
{
    struct vxd_scene *scene;
    enum vxd_status status = new_scene(scenes, terms, spec, &scene, err);

    if (status != VXD_OK) {
        return status;
    }
    if (family != NULL) {
        vxd_scene_family_join(family, scene);
    } else {
        status = vxd_scene_family_new(scene, scenes->queue, err);
    }
    if (status == VXD_OK) {
        status = vxd_scene_new_log_odds(scene, NULL, scenes->queue, err);
    }
    if (status != VXD_OK) {
        destroy(scene, scenes->queue);
        return status;
    }
    *out = scene;
    return VXD_OK;
}

enum vxd_status vxd_scene_new(struct vxd_scenes *scenes, struct vxd_queue *queue,
                              const struct vxd_scene_terms *terms,
                              const struct vxd_scene_spec *spec, struct vxd_scene **out,
                              struct vxd_err *err)
{
    struct vxd_scene *scene;
    enum vxd_status status = new_scene(scenes, terms, spec, &scene, err);

    if (status != VXD_OK) {
        return status;
    }
    VXD_TRY(vxd_scene_family_new(scene, queue, err));
    VXD_TRY(vxd_scene_new_log_odds(scene, NULL, queue, err));
    if (terms->durable) {
        scene->family->journal_id =
            vxd_journal_new_family(vxd_registry_get_journal(scenes->registry));
    }
    VXD_TRY(vxd_scene_history_begin(scene, VXD_SVDAG_EMPTY, VXD_SVDAG_EMPTY, err));
    *out = scene;
    scene = NULL;
out:
    if (scene != NULL) {
        destroy(scene, queue);
    }
    return status;
}

enum vxd_status vxd_scene_branch(struct vxd_scene *parent,
                                 const struct vxd_scene_state *from,
                                 const struct vxd_scene_terms *terms,
                                 struct vxd_queue *queue, struct vxd_scene **out,
                                 struct vxd_err *err)
{
    struct vxd_scenes *scenes = parent->scenes;
    struct vxd_scene *scene;
    enum vxd_status status = new_scene(scenes, terms, &parent->spec, &scene, err);

    if (status != VXD_OK) {
        return status;
    }
    vxd_scene_family_join(parent->family, scene);
    status = vxd_scene_new_log_odds(
        scene, vxd_scene_is_last(parent, from->version) ? parent : NULL, queue, err);
    /* No collection ends meanwhile on the write lane, so the pinned root is in the
     * family's store. */
    if (status == VXD_OK) {
        status = vxd_scene_history_begin(scene, from->root, from->pins, err);
    }
    if (status != VXD_OK) {
        destroy(scene, queue);
        return status;
    }
    *out = scene;
    return VXD_OK;
}

/* Finds the place in the list where the scene of that name is, or would be. The mutex is
 * held. */
static struct vxd_scene **find_link(struct vxd_scenes *scenes, const char *name)
{
    struct vxd_scene **at = &scenes->first;

    while (*at != NULL && strcmp((*at)->terms.name, name) < 0) {
        at = &(*at)->next;
    }
    return at;
}

bool vxd_scenes_reserve_name(struct vxd_scenes *scenes, struct vxd_scene *scene)
{
    const struct vxd_scene *taken;

    vxd_scenes_lock(scenes);
    taken = *find_link(scenes, scene->terms.name);
    if (taken != NULL && strcmp(taken->terms.name, scene->terms.name) != 0) {
        taken = NULL;
    }
    for (const struct vxd_scene *s = scenes->reserved; s != NULL && taken == NULL;
         s = s->next) {
        taken = strcmp(s->terms.name, scene->terms.name) == 0 ? s : NULL;
    }
    if (taken == NULL) {
        scene->next = scenes->reserved;
        scenes->reserved = scene;
        scene->is_reserved = true;
    }
    vxd_scenes_unlock(scenes);
    return taken == NULL;
}

/* With the mutex held. */
static void end_reservation(struct vxd_scene *scene)
{
    struct vxd_scene **at = &scene->scenes->reserved;

    if (!scene->is_reserved) {
        return;
    }
    while (*at != scene) {
        at = &(*at)->next;
    }
    *at = scene->next;
    scene->is_reserved = false;
}

void vxd_scenes_publish(struct vxd_scenes *scenes, struct vxd_scene *scene)
{
    struct vxd_scene **at;

    vxd_scenes_lock(scenes);
    end_reservation(scene);
    at = find_link(scenes, scene->terms.name);
    scene->references++;
    scene->next = *at;
    *at = scene;
    scene->is_named = true;
    vxd_scene_number_change(scene, false);
    vxd_scenes_unlock(scenes);
    atomic_fetch_add(&scenes->n_scenes, 1);
    vxd_scene_notify(scene, true);
}

struct vxd_scene *vxd_scenes_find(struct vxd_scenes *scenes, const char *name)
{
    struct vxd_scene *found;

    vxd_scenes_lock(scenes);
    found = *find_link(scenes, name);
    if (found != NULL && strcmp(found->terms.name, name) == 0) {
        found->references++;
    } else {
        found = NULL;
    }
    vxd_scenes_unlock(scenes);
    return found;
}

bool vxd_scenes_get_version(struct vxd_scenes *scenes, const char *name,
                            uint64_t *generation, uint64_t *version)
{
    const struct vxd_scene *found;
    bool is_there;

    vxd_scenes_lock(scenes);
    found = *find_link(scenes, name);
    is_there = found != NULL && strcmp(found->terms.name, name) == 0;
    if (is_there) {
        const struct vxd_scene_history *history = &found->history;

        *generation = found->generation;
        *version = history->versions[history->n - history->n_waiting - 1].number;
    }
    vxd_scenes_unlock(scenes);
    return is_there;
}

bool vxd_scenes_is_held(struct vxd_scenes *scenes, const char *name)
{
    const struct vxd_scene *found;
    bool is_held;

    vxd_scenes_lock(scenes);
    found = *find_link(scenes, name);
    is_held =
        found != NULL && strcmp(found->terms.name, name) == 0 && found->family->is_held;
    vxd_scenes_unlock(scenes);
    return is_held;
}

size_t vxd_scenes_list(struct vxd_scenes *scenes, struct vxd_scene **out, size_t n_most)
{
    size_t n = 0;

    vxd_scenes_lock(scenes);
    for (struct vxd_scene *s = scenes->first; s != NULL && n < n_most; s = s->next) {
        s->references++;
        out[n++] = s;
    }
    vxd_scenes_unlock(scenes);
    return n;
}

bool vxd_scenes_look(struct vxd_scenes *scenes, const char *name,
                     void (*look)(void *user, const struct vxd_scene_spec *spec),
                     void *user)
{
    const struct vxd_scene *scene;
    bool found;

    vxd_scenes_lock(scenes);
    scene = *find_link(scenes, name);
    found = scene != NULL && strcmp(scene->terms.name, name) == 0;
    if (found) {
        look(user, &scene->spec);
    }
    vxd_scenes_unlock(scenes);
    return found;
}

bool vxd_scenes_next_name(struct vxd_scenes *scenes, char name[VXD_NAME_BYTES])
{
    const struct vxd_scene *scene;

    vxd_scenes_lock(scenes);
    scene = scenes->first;
    while (scene != NULL && strcmp(scene->terms.name, name) <= 0) {
        scene = scene->next;
    }
    if (scene != NULL) {
        (void)snprintf(name, VXD_NAME_BYTES, "%s", scene->terms.name);
    }
    vxd_scenes_unlock(scenes);
    return scene != NULL;
}

void vxd_scenes_remove(struct vxd_scenes *scenes, struct vxd_queue *queue,
                       struct vxd_scene *scene)
{
    struct vxd_scene **at;
    struct vxd_scene *found;

    vxd_scenes_lock(scenes);
    at = find_link(scenes, scene->terms.name);
    found = *at;
    if (found != NULL && found == scene) {
        *at = found->next;
        found->is_named = false;
        vxd_scene_number_change(found, true);
    } else {
        found = NULL;
    }
    vxd_scenes_unlock(scenes);
    if (found != NULL) {
        atomic_fetch_sub(&scenes->n_scenes, 1);
        vxd_scene_notify(found, true);
        vxd_scene_drop(found, queue != NULL ? queue : scenes->queue);
    }
}

void vxd_scene_drop(struct vxd_scene *scene, struct vxd_queue *queue)
{
    bool is_last;

    if (scene == NULL) {
        return;
    }
    vxd_scenes_lock(scene->scenes);
    is_last = --scene->references == 0;
    if (is_last) {
        end_reservation(scene);
    }
    vxd_scenes_unlock(scene->scenes);
    if (is_last) {
        destroy(scene, queue);
    }
}

void vxd_scenes_get_usage(const struct vxd_scenes *scenes, struct vxd_scenes_usage *out)
{
    out->n_scenes = atomic_load(&scenes->n_scenes);
    out->n_bytes = atomic_load(&scenes->n_bytes);
    out->limit_bytes = scenes->limit_bytes;
    out->n_collections = atomic_load(&scenes->n_collections);
    out->collected_bytes = atomic_load(&scenes->collected_bytes);
}
