// SPDX-License-Identifier: Apache-2.0
/* A family: scenes that branched from one another share a store, the memory it may take,
 * and its collection. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/svdag/collect/collect.h"
#include "proto/base/clock.h"
#include "server/observe/log/log.h"
#include "server/registry/scenes/scene_fusion.h"
#include "server/registry/scenes/scenes_internal.h"
#include "server/instance/instance.h"

enum {
    SLICE_US = 2000,          /* of a collection on a GPU; */
    SLICE_CPU_US = 10000,     /* requests wait for at most one slice */
    COLLECT_BYTES = 16 << 20, /* smaller stores are not worth collecting */
    MAX_DEBT_NS = 500000000
};

/* --- memory ----------------------------------------------------------------------------- */

/* Bytes of all layers of log-odds of a family. The mutex is held. */
static uint64_t count_layers(const struct vxd_scene_family *family)
{
    uint64_t n = 0;

    for (const struct vxd_scene *s = family->first; s != NULL; s = s->next_in_family) {
        n += s->log_odds.n_bytes;
    }
    return n;
}

/* The bytes that the limits allow a store or a layer, including those it has already. */
struct allowed_bytes {
    uint64_t of_all;
    struct vxd_owner_bytes of_owner;
};

static struct allowed_bytes find_allowed_bytes(const struct vxd_scene_family *family,
                                               uint64_t own)
{
    const struct vxd_scenes *scenes = family->scenes;
    uint64_t others = atomic_load(&scenes->n_bytes) - own;
    uint64_t owners = 0;

    vxd_scenes_lock(scenes);
    for (const struct vxd_scene_family *f = scenes->families; f != NULL; f = f->next) {
        if (strcmp(f->owner, family->owner) == 0) {
            owners += f->store->n_bytes; /* only this lane changes it */
            owners += count_layers(f);
        }
    }
    vxd_scenes_unlock(scenes);
    owners -= own < owners ? own : owners;
    return (struct allowed_bytes){
        .of_all = scenes->limit_bytes > others ? scenes->limit_bytes - others : 0,
        .of_owner = vxd_auth_allow_bytes(scenes->auth, family->owner, own, owners,
                                         scenes->token_limit_bytes,
                                         "limits.scene_bytes_per_token")};
}

/* `beside` are the bytes of the family that its max_bytes counts beside these. */
static uint64_t allowance(const struct vxd_scene_family *family, uint64_t own,
                          uint64_t beside)
{
    struct allowed_bytes allowed_bytes = find_allowed_bytes(family, own);
    uint64_t most = family->max_bytes > beside ? family->max_bytes - beside : 1;
    uint64_t allowed = allowed_bytes.of_owner.left < allowed_bytes.of_all
                           ? allowed_bytes.of_owner.left
                           : allowed_bytes.of_all;

    if (atomic_load(&family->scenes->is_recovering)) {
        /* A replay keeps more versions than there were at first, since nothing is
         * collected in between. */
        return 0;
    }
    if (family->max_bytes > 0 && most < allowed) {
        allowed = most;
    }
    return allowed > 0 ? allowed : 1; /* 0 would mean no limit */
}

void vxd_scene_allow(struct vxd_scene *scene)
{
    struct vxd_scene_family *family = scene->family;
    const struct vxd_scenes *scenes = family->scenes;

    vxd_svdag_set_max_bytes(family->store->svdag,
                            (size_t)allowance(family, family->store->n_bytes,
                                              vxd_scene_log_odds_bytes(scene)));
    /* What was allowed once comes back. */
    vxd_svdag_set_max_visits(family->store->svdag, atomic_load(&scenes->is_recovering)
                                                       ? UINT64_MAX
                                                       : scenes->limit_edit_regions);
}

uint64_t vxd_scene_layer_allowance(const struct vxd_scene *scene)
{
    const struct vxd_scene_family *family = scene->family;
    uint64_t own = scene->log_odds.n_bytes;

    return allowance(family, own,
                     family->store->n_bytes + vxd_scene_log_odds_bytes(scene) - own);
}

static void explain(const struct vxd_scene_family *family, uint64_t own,
                    struct vxd_err *err)
{
    struct allowed_bytes allowed_bytes = find_allowed_bytes(family, own);
    bool is_owners = allowed_bytes.of_owner.left < allowed_bytes.of_all;
    uint64_t left = is_owners ? allowed_bytes.of_owner.left : allowed_bytes.of_all;
    char what[160];

    if (err == NULL || err->code != VXD_RESOURCE_EXHAUSTED) {
        return;
    }
    (void)snprintf(what, sizeof what, "%.159s", err->message);
    if (strcmp(err->field, "max_visits") == 0) {
        (void)vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                       "%s (limits.scene_edit_regions)", what);
        return;
    }
    if (strcmp(err->field, "max_bytes") != 0) {
        return;
    }
    if (family->max_bytes > 0 && family->max_bytes <= left) {
        (void)vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "%s (its max_bytes)", what);
    } else {
        (void)vxd_fail(
            err, VXD_RESOURCE_EXHAUSTED, NULL, "%s: %s of %" PRIu64 " leaves it %" PRIu64,
            what, is_owners ? allowed_bytes.of_owner.key : "limits.scene_bytes",
            is_owners ? allowed_bytes.of_owner.limit : family->scenes->limit_bytes, left);
    }
}

void vxd_scene_explain(const struct vxd_scene *scene, struct vxd_err *err)
{
    explain(scene->family, scene->family->store->n_bytes, err);
}

static void account(struct vxd_scenes *scenes, struct vxd_scene_store *store)
{
    struct vxd_svdag_usage usage;

    vxd_svdag_get_usage(store->svdag, &usage);
    atomic_fetch_add(&scenes->n_bytes, usage.n_bytes);
    atomic_fetch_sub(&scenes->n_bytes, store->n_bytes);
    vxd_auth_note_bytes(scenes->auth, store->owner, store->n_bytes, usage.n_bytes);
    store->n_bytes = usage.n_bytes;
}

static void set_due(struct vxd_scene_family *family, bool is_due)
{
    if (family->is_due != is_due) {
        family->is_due = is_due;
        atomic_fetch_add(&family->scenes->n_due, is_due ? (size_t)1 : (size_t)-1);
    }
}

void vxd_scene_account(struct vxd_scene *scene)
{
    struct vxd_scene_family *family = scene->family;

    account(family->scenes, family->store);
    if (family->scenes->collect_growth > 0 &&
        family->store->n_bytes >= family->collect_bytes) {
        set_due(family, true);
    }
}

void vxd_scene_get_usage(struct vxd_scene *scene, struct vxd_svdag_usage *out)
{
    struct vxd_scenes *scenes = scene->scenes;
    struct vxd_scene_store *store;

    vxd_scenes_lock(scenes);
    store = scene->family->store;
    /* This is short, and no store is freed while the mutex is held. */
    vxd_svdag_get_usage(store->svdag, out);
    vxd_scenes_unlock(scenes);
}

bool vxd_scene_shares(const struct vxd_scene *a, const struct vxd_scene *b)
{
    return a->family == b->family;
}

/* --- stores and families ---------------------------------------------------------------- */

static enum vxd_status new_store(struct vxd_scene_family *family, struct vxd_queue *queue,
                                 const struct vxd_svdag_spec *like, uint64_t own,
                                 struct vxd_scene_store **out, struct vxd_err *err)
{
    struct vxd_svdag_spec spec = *like;
    struct vxd_scene_store *store = calloc(1, sizeof *store);
    enum vxd_status status;

    if (store == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a scene");
    }
    spec.max_bytes = (size_t)allowance(
        family, own, family->first != NULL ? vxd_scene_log_odds_bytes(family->first) : 0);
    status = vxd_svdag_create(queue, &spec, &store->svdag, err);
    if (status != VXD_OK) {
        explain(family, own, err);
        free(store);
        return status;
    }
    store->references = 1;
    (void)snprintf(store->owner, sizeof store->owner, "%s", family->owner);
    account(family->scenes, store);
    *out = store;
    return VXD_OK;
}

void vxd_scene_store_drop(struct vxd_scenes *scenes, struct vxd_scene_store *store,
                          struct vxd_queue *queue)
{
    bool is_last;

    if (store == NULL) {
        return;
    }
    vxd_scenes_lock(scenes);
    is_last = --store->references == 0;
    vxd_scenes_unlock(scenes);
    if (is_last) {
        vxd_svdag_destroy(queue, store->svdag);
        atomic_fetch_sub(&scenes->n_bytes, store->n_bytes);
        vxd_auth_note_bytes(scenes->auth, store->owner, store->n_bytes, 0);
        free(store);
    }
}

/* Sets the size at which the present store is collected by itself. */
static void set_collect_bytes(struct vxd_scene_family *family)
{
    uint64_t now = family->store->n_bytes;
    uint64_t growth = family->scenes->collect_growth;

    family->collect_bytes = now / 100 * growth + now;
    if (family->collect_bytes < COLLECT_BYTES) {
        family->collect_bytes = COLLECT_BYTES;
    }
}

enum vxd_status vxd_scene_family_new(struct vxd_scene *scene, struct vxd_queue *queue,
                                     struct vxd_err *err)
{
    const struct vxd_svdag_spec spec = {.format = scene->spec.format,
                                        .store = scene->scenes->store};
    struct vxd_scenes *scenes = scene->scenes;
    struct vxd_scene_family *family = calloc(1, sizeof *family);
    enum vxd_status status;

    if (family == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a scene");
    }
    family->scenes = scenes;
    family->max_bytes = scene->terms.max_bytes;
    (void)snprintf(family->owner, sizeof family->owner, "%s", scene->terms.owner);
    status = new_store(family, queue, &spec, 0, &family->store, err);
    if (status != VXD_OK) {
        free(family);
        return status;
    }
    set_collect_bytes(family);
    vxd_scene_family_join(family, scene);
    vxd_scenes_lock(scenes);
    family->next = scenes->families;
    scenes->families = family;
    vxd_scenes_unlock(scenes);
    return VXD_OK;
}

void vxd_scene_family_join(struct vxd_scene_family *family, struct vxd_scene *scene)
{
    vxd_scenes_lock(family->scenes);
    family->references++;
    scene->family = family;
    scene->next_in_family = family->first;
    family->first = scene;
    vxd_scenes_unlock(family->scenes);
}

static void end_collection(struct vxd_scene_family *family, struct vxd_queue *queue)
{
    vxd_svdag_collect_end(queue, family->collection);
    family->collection = NULL;
    vxd_scene_store_drop(family->scenes, family->fresh, queue);
    family->fresh = NULL;
    set_due(family, false);
}

/* Drops a reference to the family; the last one frees it with its collection and its
 * store. */
static void drop_family(struct vxd_scene_family *family, struct vxd_queue *queue)
{
    struct vxd_scenes *scenes = family->scenes;
    struct vxd_scene_family **at;
    bool is_last;

    vxd_scenes_lock(scenes);
    is_last = --family->references == 0;
    for (at = &scenes->families; is_last && *at != family; at = &(*at)->next) {
    }
    if (is_last) {
        *at = family->next;
    }
    vxd_scenes_unlock(scenes);
    if (is_last) {
        end_collection(family, queue);
        vxd_scene_store_drop(scenes, family->store, queue);
        free(family);
    }
}

void vxd_scene_family_leave(struct vxd_scene *scene, struct vxd_queue *queue)
{
    struct vxd_scene_family *family = scene->family;
    struct vxd_scene **at;

    if (family == NULL) {
        return;
    }
    vxd_scenes_lock(family->scenes);
    for (at = &family->first; *at != scene; at = &(*at)->next_in_family) {
    }
    *at = scene->next_in_family;
    vxd_scenes_unlock(family->scenes);
    drop_family(family, queue);
}

/* --- changes that have a family for themselves -------------------------------------------- */

void vxd_scene_hold_family(struct vxd_scene *scene)
{
    vxd_scenes_lock(scene->scenes);
    scene->family->is_held = true;
    vxd_scenes_unlock(scene->scenes);
    atomic_fetch_add(&scene->scenes->n_held, 1);
}

void vxd_scene_let_family_go(struct vxd_scene *scene)
{
    vxd_scenes_lock(scene->scenes);
    scene->family->is_held = false;
    vxd_scenes_unlock(scene->scenes);
    atomic_fetch_sub(&scene->scenes->n_held, 1);
}

bool vxd_scenes_hold_any(const struct vxd_scenes *scenes)
{
    return atomic_load(&scenes->n_held) > 0;
}

/* --- collection ------------------------------------------------------------------------- */

struct adding {
    struct vxd_svdag_collection *collection;
    struct vxd_err *err;
    enum vxd_status status;
};

static uint32_t add_root(void *argument, uint32_t root)
{
    struct adding *adding = argument;

    if (adding->status == VXD_OK) {
        adding->status = vxd_svdag_collect_add(adding->collection, root, adding->err);
    }
    return root;
}

/* Goes over the roots of all scenes of the family, including scenes without a name, since
 * whoever holds one may still pin a version. The mutex is held. */
static void map_roots(struct vxd_scene_family *family,
                      uint32_t (*map)(void *argument, uint32_t root), void *argument)
{
    for (struct vxd_scene *scene = family->first; scene != NULL;
         scene = scene->next_in_family) {
        vxd_scene_history_map(&scene->history, map, argument);
    }
}

static enum vxd_status begin(struct vxd_scene_family *family, struct vxd_queue *queue,
                             struct vxd_err *err)
{
    const struct vxd_svdag_spec *spec = vxd_svdag_get_spec(family->store->svdag);
    struct adding adding = {.err = err};
    enum vxd_status status;

    set_due(family, true);
    family->n_collections++;
    memset(&family->collected, 0, sizeof family->collected);
    vxd_svdag_get_usage(family->store->svdag, &family->collected.before);
    /* The new store may be as large as the old one, which is freed afterwards. */
    VXD_TRY(new_store(family, queue, spec, family->store->n_bytes, &family->fresh, err));
    VXD_TRY(vxd_svdag_collect_begin(queue, family->store->svdag, family->fresh->svdag,
                                    &family->collection, err));
    adding.collection = family->collection;
    vxd_scenes_lock(family->scenes);
    map_roots(family, add_root, &adding);
    vxd_scenes_unlock(family->scenes);
    status = adding.status;
out:
    return status;
}

void vxd_scene_family_keep(struct vxd_scene_family *family, uint32_t root)
{
    struct vxd_err err = {0};

    if (family->collection != NULL &&
        vxd_svdag_collect_add(family->collection, root, &err) != VXD_OK) {
        /* Without this root the new store would be incomplete, so the collection is given
         * up; another one comes later. */
        vxd_log(VXD_LOG_WARNING, "collection given up", "error", err.message);
        end_collection(family, family->scenes->queue);
    }
}

static uint32_t new_root(void *argument, uint32_t root)
{
    uint32_t moved = root;

    (void)vxd_svdag_collect_root(argument, root, &moved);
    return moved;
}

/* Puts the new store, which has all roots now, in the old one's place. */
static void swap_stores(struct vxd_scene_family *family, struct vxd_queue *queue)
{
    struct vxd_scenes *scenes = family->scenes;
    struct vxd_scene_store *old = family->store;

    account(scenes, family->fresh);
    vxd_scenes_lock(scenes);
    map_roots(family, new_root, family->collection);
    family->store = family->fresh;
    family->fresh = NULL;
    vxd_scenes_unlock(scenes);
    vxd_svdag_get_usage(family->store->svdag, &family->collected.after);
    vxd_scene_store_drop(scenes, old, queue);
    set_collect_bytes(family);
    atomic_fetch_add(&scenes->n_collections, 1);
    if (family->collected.before.n_bytes > family->collected.after.n_bytes) {
        atomic_fetch_add(&scenes->collected_bytes, family->collected.before.n_bytes -
                                                       family->collected.after.n_bytes);
    }
}

static enum vxd_status slice(struct vxd_scene_family *family, struct vxd_queue *queue,
                             bool *is_done, struct vxd_err *err)
{
    struct vxd_context *context = family->scenes->context;
    bool is_cpu = vxd_context_backend(context) == VXD_BACKEND_CPU;
    int64_t since_ns = vxd_clock_ns();
    int64_t lasted_ns;
    enum vxd_status status;

    *is_done = false;
    if (family->collection == NULL) {
        VXD_TRY(begin(family, queue, err));
    }
    VXD_TRY(vxd_svdag_collect_step(queue, family->collection,
                                   (is_cpu ? SLICE_CPU_US : SLICE_US) * UINT64_C(1000),
                                   is_done, err));
    account(family->scenes, family->fresh);
    if (*is_done) {
        swap_stores(family, queue);
    }
out:
    lasted_ns = vxd_clock_ns() - since_ns;
    family->collected.n_slices++;
    if (lasted_ns > family->collected.longest_slice_ns) {
        family->collected.longest_slice_ns = lasted_ns;
    }
    if (status != VXD_OK || *is_done) {
        end_collection(family, queue);
    }
    if (status != VXD_OK) {
        /* No collection is tried again before the store is larger still. */
        set_collect_bytes(family);
        explain(family, family->store->n_bytes, err);
    }
    return status;
}

enum vxd_status vxd_scene_collect(struct vxd_scene *scene, struct vxd_queue *queue,
                                  uint64_t *which, bool *is_done,
                                  struct vxd_scene_collected *out, struct vxd_err *err)
{
    struct vxd_scene_family *family = scene->family;
    enum vxd_status status = VXD_OK;

    /* A collection that had begun may have ended between requests
     * (vxd_scenes_collect_due). */
    *is_done = *which > 0 && family->collection == NULL &&
               family->n_collections == *which && family->collected.after.n_bytes > 0;
    if (!*is_done) {
        status = slice(family, queue, is_done, err);
        *which = family->n_collections;
    }
    *out = family->collected;
    return status;
}

/* Finds a family that is to be collected and that no change has for itself. The mutex is held. */
static struct vxd_scene_family *find_due(const struct vxd_scenes *scenes)
{
    struct vxd_scene_family *family = scenes->families;

    while (family != NULL && (family->is_held || !family->is_due)) {
        family = family->next;
    }
    return family;
}

bool vxd_scenes_are_due(struct vxd_scenes *scenes)
{
    bool are_due = false;

    if (atomic_load(&scenes->n_due) > 0 && !atomic_load(&scenes->is_recovering)) {
        vxd_scenes_lock(scenes);
        are_due = find_due(scenes) != NULL;
        vxd_scenes_unlock(scenes);
    }
    return are_due;
}

/* The same, and holds it; NULL where there is none. */
static struct vxd_scene_family *hold_due(struct vxd_scenes *scenes)
{
    struct vxd_scene_family *family;

    vxd_scenes_lock(scenes);
    family = find_due(scenes);
    if (family != NULL) {
        family->references++;
    }
    vxd_scenes_unlock(scenes);
    return family;
}

bool vxd_scenes_collect_due(struct vxd_scenes *scenes, struct vxd_queue *queue,
                            int64_t requests_ns)
{
    struct vxd_scene_family *family = NULL;
    struct vxd_err err = {0};
    int64_t since_ns = vxd_clock_ns();
    bool is_done = false;

    if (vxd_scenes_are_due(scenes)) {
        family = hold_due(scenes);
    }
    if (family == NULL) {
        scenes->debt_ns = 0;
        return false;
    }
    scenes->debt_ns += requests_ns;
    if (scenes->debt_ns > MAX_DEBT_NS) {
        scenes->debt_ns = MAX_DEBT_NS;
    }
    do {
        if (slice(family, queue, &is_done, &err) != VXD_OK) {
            vxd_log(VXD_LOG_WARNING, "collection failed", "error", err.message);
            is_done = true;
        }
    } while (!is_done && vxd_clock_ns() - since_ns < scenes->debt_ns);
    scenes->debt_ns -= vxd_clock_ns() - since_ns;
    if (scenes->debt_ns < 0) {
        scenes->debt_ns = 0;
    }
    drop_family(family, queue);
    return true;
}
