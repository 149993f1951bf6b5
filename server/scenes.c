// SPDX-License-Identifier: Apache-2.0
/* One list by name under one mutex, which guards the roots as well; what takes long (stores,
 * giving memory back) is done outside of it. */
#include "server/scenes.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/server.h"

enum {
    SLAB_MATERIAL_BITS = 4 /* most that stores of slabs take */
};

struct vxd_scenes {
    struct vxd_context *context;
    uint64_t limit_bytes;
    uint64_t token_limit_bytes;
    enum vxd_dag_store store; /* of new ones */
    const char *store_name;
    size_t limit_scenes;
    uint64_t n_made;          /* for generations; the write lane's */
    struct vxd_queue *queue;  /* for freeing what is left at the end */
    _Atomic uint64_t n_bytes; /* of all that exist, findable or not */
    _Atomic size_t n_scenes;  /* findable */
    pthread_mutex_t mutex;    /* guards the list, states and references */
    struct vxd_scene *first;
    struct vxd_scene *all; /* findable or not */
};

static void lock(const struct vxd_scenes *scenes)
{
    /* Readers change nothing but the lock. */
    (void)pthread_mutex_lock((pthread_mutex_t *)(uintptr_t)&scenes->mutex);
}

static void unlock(const struct vxd_scenes *scenes)
{
    (void)pthread_mutex_unlock((pthread_mutex_t *)(uintptr_t)&scenes->mutex);
}

static int64_t unix_ns(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* errors  UNIMPLEMENTED */
static enum vxd_status choose_store(struct vxd_scenes *scenes, struct vxd_server *server,
                                    struct vxd_err *err)
{
    static const char *const names[VXD_DAG_N_STORES] = {[VXD_DAG_ARENA] = "arena",
                                                        [VXD_DAG_ATOMIC64] = "atomic64",
                                                        [VXD_DAG_TICKET] = "ticket",
                                                        [VXD_DAG_ACCEL32] = "accel32",
                                                        [VXD_DAG_ACCEL8] = "accel8"};

    for (int i = 0; i < VXD_DAG_N_STORES; i++) {
        if (strcmp(names[i], server->config.scene_store) == 0) {
            scenes->store = (enum vxd_dag_store)i;
        }
    }
    scenes->store_name = names[scenes->store];
    if (scenes->store != VXD_DAG_ARENA &&
        vxd_context_backend(server->context) == VXD_BACKEND_CUDA) {
        return vxd_fail(
            err, VXD_UNIMPLEMENTED, "scenes.store",
            "\"%s\" is made of slabs, which hold scenes on the CPU only: on a "
            "GPU it must be \"arena\"",
            scenes->store_name);
    }
    return VXD_OK;
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
    scenes->limit_bytes = server->config.scene_bytes > 0 ? server->config.scene_bytes
                                                         : memory.device_budget_bytes / 2;
    scenes->token_limit_bytes = server->config.token_scene_bytes > 0
                                    ? server->config.token_scene_bytes
                                    : scenes->limit_bytes;
    scenes->limit_scenes = server->config.n_scenes;
    status = choose_store(scenes, server, err);
    if (status == VXD_OK) {
        status = vxd_queue_create(server->context, &scenes->queue, err);
    }
    if (status != VXD_OK) {
        vxd_scenes_destroy(scenes);
        return status;
    }
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
                 strcmp(a->frame_id, b->frame_id) == 0;

    for (int i = 0; i < 3 && equal; i++) {
        equal = a->origin_m[i] == b->origin_m[i];
    }
    for (size_t i = 0; i < a->n_palette && equal; i++) {
        equal = a->palette[i].rgb == b->palette[i].rgb &&
                strcmp(a->palette[i].name, b->palette[i].name) == 0;
    }
    return equal;
}

/* Entries, and their names behind them, in memory that the engine's host budget counts. */
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

/* Bytes that the limits leave for a scene, what it has already included. */
struct room {
    uint64_t of_all;
    uint64_t of_owner;
};

static struct room room_for(const struct vxd_scene *scene)
{
    const struct vxd_scenes *scenes = scene->scenes;
    uint64_t others = atomic_load(&scenes->n_bytes) - scene->n_bytes;
    uint64_t owners = 0;

    lock(scenes);
    for (const struct vxd_scene *s = scenes->all; s != NULL; s = s->older) {
        if (s != scene && strcmp(s->terms.owner, scene->terms.owner) == 0) {
            owners += s->n_bytes; /* only this lane changes it */
        }
    }
    unlock(scenes);
    return (struct room){
        .of_all = scenes->limit_bytes > others ? scenes->limit_bytes - others : 0,
        .of_owner =
            scenes->token_limit_bytes > owners ? scenes->token_limit_bytes - owners : 0};
}

static size_t allowance(const struct vxd_scene *scene)
{
    struct room room = room_for(scene);
    uint64_t allowed = room.of_owner < room.of_all ? room.of_owner : room.of_all;

    if (scene->terms.max_bytes > 0 && scene->terms.max_bytes < allowed) {
        allowed = scene->terms.max_bytes;
    }
    return (size_t)(allowed > 0 ? allowed : 1); /* 0 would mean no limit */
}

void vxd_scene_allow(struct vxd_scene *scene)
{
    vxd_dag_set_max_bytes(scene->dag, allowance(scene));
}

void vxd_scene_explain(const struct vxd_scene *scene, struct vxd_err *err)
{
    struct room room = room_for(scene);
    bool is_owners = room.of_owner < room.of_all;
    uint64_t left = is_owners ? room.of_owner : room.of_all;
    char what[160];

    if (err == NULL || err->code != VXD_RESOURCE_EXHAUSTED ||
        strcmp(err->field, "max_bytes") != 0) {
        return;
    }
    (void)snprintf(what, sizeof what, "%.159s", err->message);
    if (scene->terms.max_bytes > 0 && scene->terms.max_bytes <= left) {
        (void)vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "%s (its max_bytes)", what);
    } else {
        (void)vxd_fail(
            err, VXD_RESOURCE_EXHAUSTED, NULL, "%s: %s of %" PRIu64 " leaves it %" PRIu64,
            what, is_owners ? "limits.scene_bytes_per_token" : "limits.scene_bytes",
            is_owners ? scene->scenes->token_limit_bytes : scene->scenes->limit_bytes,
            left);
    }
}

void vxd_scene_account(struct vxd_scene *scene)
{
    struct vxd_dag_usage usage;

    vxd_dag_get_usage(scene->dag, &usage);
    atomic_fetch_add(&scene->scenes->n_bytes, usage.n_bytes);
    atomic_fetch_sub(&scene->scenes->n_bytes, scene->n_bytes);
    scene->n_bytes = (size_t)usage.n_bytes;
}

static void destroy(struct vxd_scene *scene, struct vxd_queue *queue)
{
    struct vxd_scenes *scenes = scene->scenes;
    struct vxd_scene **at = &scenes->all;

    lock(scenes);
    while (*at != scene) {
        at = &(*at)->older;
    }
    *at = scene->older;
    unlock(scenes);
    vxd_dag_destroy(queue, scene->dag);
    vxd_host_free(scenes->context, &scene->palette_memory);
    atomic_fetch_sub(&scenes->n_bytes, scene->n_bytes);
    free(scene);
}

/* What the engine would say of a number. */
static enum vxd_status check_store(const struct vxd_scenes *scenes,
                                   const struct vxd_scene_spec *spec, struct vxd_err *err)
{
    if (scenes->store == VXD_DAG_ARENA ||
        spec->format.material_bits <= SLAB_MATERIAL_BITS) {
        return VXD_OK;
    }
    return vxd_fail(
        err, VXD_INVALID_ARGUMENT, "spec.material_bits",
        "is %d, but this server's scenes.store is \"%s\", which takes at most "
        "%d: it must be \"arena\" for more",
        spec->format.material_bits, scenes->store_name, SLAB_MATERIAL_BITS);
}

enum vxd_status vxd_scene_new(struct vxd_scenes *scenes, struct vxd_queue *queue,
                              const struct vxd_scene_terms *terms,
                              const struct vxd_scene_spec *spec, struct vxd_scene **out,
                              struct vxd_err *err)
{
    struct vxd_dag_spec dag_spec = {.format = spec->format, .store = scenes->store};
    struct vxd_scene *scene;
    enum vxd_status status;

    if (atomic_load(&scenes->n_scenes) >= scenes->limit_scenes) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "there are %zu scenes already, limits.scenes",
                        scenes->limit_scenes);
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
    lock(scenes);
    scene->older = scenes->all;
    scenes->all = scene;
    unlock(scenes);
    VXD_TRY(check_store(scenes, spec, err));
    VXD_TRY(copy_palette(scene, spec, err));
    dag_spec.max_bytes = allowance(scene);
    status = vxd_dag_create(queue, &dag_spec, &scene->dag, err);
    if (status != VXD_OK) {
        vxd_scene_explain(scene, err);
        goto out;
    }
    vxd_scene_account(scene);
    scene->created_unix_ns = unix_ns();
    /* Another start of the server makes others, too. */
    scene->generation = (uint64_t)scene->created_unix_ns + scenes->n_made++;
    scene->state = (struct vxd_scene_state){
        .root = VXD_DAG_EMPTY, .version = 1, .changed_unix_ns = scene->created_unix_ns};
    *out = scene;
    scene = NULL;
out:
    if (scene != NULL) {
        destroy(scene, queue);
    }
    return status;
}

/* Where the scene of that name is linked, or would be. The mutex is held. */
static struct vxd_scene **find_link(struct vxd_scenes *scenes, const char *name)
{
    struct vxd_scene **at = &scenes->first;

    while (*at != NULL && strcmp((*at)->terms.name, name) < 0) {
        at = &(*at)->next;
    }
    return at;
}

void vxd_scenes_publish(struct vxd_scenes *scenes, struct vxd_scene *scene)
{
    struct vxd_scene **at;

    lock(scenes);
    at = find_link(scenes, scene->terms.name);
    scene->references++;
    scene->next = *at;
    *at = scene;
    unlock(scenes);
    atomic_fetch_add(&scenes->n_scenes, 1);
}

struct vxd_scene *vxd_scenes_find(struct vxd_scenes *scenes, const char *name)
{
    struct vxd_scene *found;

    lock(scenes);
    found = *find_link(scenes, name);
    if (found != NULL && strcmp(found->terms.name, name) == 0) {
        found->references++;
    } else {
        found = NULL;
    }
    unlock(scenes);
    return found;
}

size_t vxd_scenes_list(struct vxd_scenes *scenes, struct vxd_scene **out, size_t n_most)
{
    size_t n = 0;

    lock(scenes);
    for (struct vxd_scene *s = scenes->first; s != NULL && n < n_most; s = s->next) {
        s->references++;
        out[n++] = s;
    }
    unlock(scenes);
    return n;
}

void vxd_scenes_remove(struct vxd_scenes *scenes, struct vxd_queue *queue,
                       struct vxd_scene *scene)
{
    struct vxd_scene **at;
    struct vxd_scene *found;

    lock(scenes);
    at = find_link(scenes, scene->terms.name);
    found = *at;
    if (found != NULL && found == scene) {
        *at = found->next;
    } else {
        found = NULL;
    }
    unlock(scenes);
    if (found != NULL) {
        atomic_fetch_sub(&scenes->n_scenes, 1);
        vxd_scene_drop(found, queue);
    }
}

void vxd_scene_drop(struct vxd_scene *scene, struct vxd_queue *queue)
{
    bool is_last;

    if (scene == NULL) {
        return;
    }
    lock(scene->scenes);
    is_last = --scene->references == 0;
    unlock(scene->scenes);
    if (is_last) {
        destroy(scene, queue);
    }
}

void vxd_scene_get_state(const struct vxd_scene *scene, struct vxd_scene_state *out)
{
    lock(scene->scenes);
    *out = scene->state;
    unlock(scene->scenes);
}

uint64_t vxd_scene_set_root(struct vxd_scene *scene, uint32_t root)
{
    int64_t now = unix_ns();
    uint64_t version;

    lock(scene->scenes);
    version = ++scene->state.version;
    scene->state.root = root;
    scene->state.changed_unix_ns = now;
    unlock(scene->scenes);
    return version;
}

void vxd_scenes_get_usage(const struct vxd_scenes *scenes, struct vxd_scenes_usage *out)
{
    out->n_scenes = atomic_load(&scenes->n_scenes);
    out->n_bytes = atomic_load(&scenes->n_bytes);
    out->limit_bytes = scenes->limit_bytes;
}
