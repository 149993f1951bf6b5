// SPDX-License-Identifier: Apache-2.0
#include "server/registry/fields/registry_fields.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    MEMORY_SHARE = 4, /* of the device's memory: a quarter */
    MAX_FIELDS = 64,
    /* Voxels of a slice across x or y: what one part of an update has eight of at least, so that
     * a stage on a CPU stays short. */
    MAX_SLICE = 1 << 19
};

struct vxd_kept_field {
    struct vxd_kept_field *next;
    struct vxd_field *field;
    uint64_t generation;
    uint64_t version; /* what it is whole of, or is updated to */
    uint64_t used;    /* the number of the claim that used it last */
    size_t n_bytes;
    int n_readers;
    bool is_updating; /* by the one request that has claimed it */
    bool is_whole;    /* it was updated to its end */
    bool is_dropped;  /* its scene is; freed when it is given back */
};

struct vxd_fields {
    struct vxd_context *context;
    pthread_mutex_t mutex; /* guards all below */
    struct vxd_kept_field *first;
    size_t n_bytes;
    size_t n_fields;
    size_t limit_bytes;
    uint64_t n_claims;
    struct vxd_queue *queue; /* frees what is left at the end */
};

enum vxd_status vxd_fields_create(struct vxd_context *context, struct vxd_fields **out,
                                  struct vxd_err *err)
{
    struct vxd_fields *fields = calloc(1, sizeof *fields);
    struct vxd_memory_usage usage;
    enum vxd_status status;

    if (fields == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for fields");
    }
    status = vxd_queue_create(context, &fields->queue, err);
    if (status != VXD_OK) {
        free(fields);
        return status;
    }
    vxd_context_get_memory(context, &usage);
    fields->context = context;
    fields->limit_bytes = usage.device_budget_bytes / MEMORY_SHARE;
    (void)pthread_mutex_init(&fields->mutex, NULL);
    *out = fields;
    return VXD_OK;
}

static bool is_idle(const struct vxd_kept_field *kept)
{
    return kept->n_readers == 0 && !kept->is_updating;
}

/* Takes a field out of the list and frees it. */
static void free_kept(struct vxd_fields *fields, struct vxd_queue *queue,
                      struct vxd_kept_field *kept)
{
    struct vxd_kept_field **link = &fields->first;

    while (*link != kept) {
        link = &(*link)->next;
    }
    *link = kept->next;
    fields->n_bytes -= kept->n_bytes;
    fields->n_fields--;
    vxd_field_destroy(queue, kept->field);
    free(kept);
}

void vxd_fields_destroy(struct vxd_fields *fields)
{
    if (fields == NULL) {
        return;
    }
    while (fields->first != NULL) {
        free_kept(fields, fields->queue, fields->first);
    }
    vxd_queue_destroy(fields->queue);
    (void)pthread_mutex_destroy(&fields->mutex);
    free(fields);
}

struct vxd_field *vxd_fields_get(struct vxd_kept_field *kept)
{
    return kept->field;
}

/* --- boxes ----------------------------------------------------------------------------- */

/* Whether a field is of the scene and kind that are wanted, of any box. */
static bool has_same_source(const struct vxd_kept_field *kept,
                            const struct vxd_field_want *want)
{
    const struct vxd_field_spec *spec = vxd_field_get_spec(kept->field);

    return !kept->is_dropped && kept->generation == want->generation &&
           spec->max_distance == want->spec.max_distance &&
           spec->unknown == want->spec.unknown;
}

static bool covers(const struct vxd_field_spec *spec, const struct vxd_field_spec *box)
{
    bool covers = true;

    for (int axis = 0; axis < 3; axis++) {
        covers = covers && spec->low[axis] <= box->low[axis] &&
                 spec->high[axis] >= box->high[axis];
    }
    return covers;
}

static double volume_of(const struct vxd_field_spec *spec)
{
    double volume = 1;

    for (int axis = 0; axis < 3; axis++) {
        volume *= (double)spec->high[axis] - (double)spec->low[axis];
    }
    return volume;
}

/* The box of a new field: what is wanted, and an older field's where both together are at most
 * half as much again as each alone. */
static void join_box(struct vxd_field_spec *spec, const struct vxd_field_spec *older)
{
    struct vxd_field_spec both = *spec;

    for (int axis = 0; axis < 3; axis++) {
        both.low[axis] =
            older->low[axis] < spec->low[axis] ? older->low[axis] : spec->low[axis];
        both.high[axis] =
            older->high[axis] > spec->high[axis] ? older->high[axis] : spec->high[axis];
    }
    if (volume_of(&both) <= 1.5 * (volume_of(spec) + volume_of(older))) {
        *spec = both;
    }
}

/* --- claims ---------------------------------------------------------------------------- */

/* Frees the field that was not used for longest, of those that nobody has; false: there is none. */
static bool free_oldest(struct vxd_fields *fields, struct vxd_queue *queue)
{
    struct vxd_kept_field *oldest = NULL;

    for (struct vxd_kept_field *k = fields->first; k != NULL; k = k->next) {
        if (is_idle(k) && (oldest == NULL || k->used < oldest->used)) {
            oldest = k;
        }
    }
    if (oldest != NULL) {
        free_kept(fields, queue, oldest);
    }
    return oldest != NULL;
}

/* Frees fields that nobody has until so many bytes fit. */
static bool evict(struct vxd_fields *fields, struct vxd_queue *queue, size_t n_bytes)
{
    while (fields->n_bytes + n_bytes > fields->limit_bytes ||
           fields->n_fields >= MAX_FIELDS) {
        if (!free_oldest(fields, queue)) {
            return false;
        }
    }
    return true;
}

/* Makes a field that takes so many bytes, which fit beside the others. */
static enum vxd_status make_field(struct vxd_fields *fields, struct vxd_queue *queue,
                                  const struct vxd_field_spec *spec, size_t n_bytes,
                                  struct vxd_kept_field **out, struct vxd_err *err)
{
    struct vxd_kept_field *kept = calloc(1, sizeof *kept);
    enum vxd_status status;

    if (kept == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a field");
    }
    status = vxd_field_create(queue, spec, &kept->field, err);
    if (status != VXD_OK) {
        free(kept);
        return status;
    }
    kept->n_bytes = n_bytes;
    kept->next = fields->first;
    fields->first = kept;
    fields->n_bytes += n_bytes;
    fields->n_fields++;
    *out = kept;
    return VXD_OK;
}

/* Whether a field of this box may be made. */
static bool is_possible(const struct vxd_fields *fields,
                        const struct vxd_field_spec *spec)
{
    size_t n_bytes = vxd_field_bytes(fields->context, spec);
    bool is_small = true;

    for (int axis = 0; axis < 2; axis++) {
        int64_t slice = ((int64_t)spec->high[1 - axis] - spec->low[1 - axis]) *
                        ((int64_t)spec->high[2] - spec->low[2]);

        is_small = is_small && slice <= MAX_SLICE;
    }
    return n_bytes > 0 && n_bytes <= fields->limit_bytes &&
           (is_small || vxd_context_backend(fields->context) == VXD_BACKEND_CUDA);
}

/* Makes the field that is wanted, in place of those that it makes superfluous. */
static enum vxd_status claim_new(struct vxd_fields *fields, struct vxd_queue *queue,
                                 const struct vxd_field_want *want, const char *field,
                                 struct vxd_kept_field **out, enum vxd_field_claim *claim,
                                 struct vxd_err *err)
{
    struct vxd_field_spec spec = want->spec;
    bool is_alone = fields->first == NULL;
    size_t n_bytes;
    enum vxd_status status;

    if (!is_possible(fields, &spec)) {
        return vxd_fail(
            err, VXD_RESOURCE_EXHAUSTED, field,
            "needs a field of %d x %d x %d voxels, more than the %zu bytes that "
            "fields may take, or than %d voxels of one x or y: ask about a smaller "
            "region, or a smaller distance",
            spec.high[0] - spec.low[0], spec.high[1] - spec.low[1],
            spec.high[2] - spec.low[2], fields->limit_bytes, MAX_SLICE);
    }
    for (struct vxd_kept_field *k = fields->first; k != NULL; k = k->next) {
        struct vxd_field_spec joined = spec;

        if (has_same_source(k, want) && is_idle(k)) {
            join_box(&joined, vxd_field_get_spec(k->field));
            spec = is_possible(fields, &joined) ? joined : spec;
        }
    }
    for (struct vxd_kept_field *k = fields->first, *next; k != NULL; k = next) {
        next = k->next;
        if (has_same_source(k, want) && is_idle(k) &&
            covers(&spec, vxd_field_get_spec(k->field))) {
            free_kept(fields, queue, k);
        }
    }
    n_bytes = vxd_field_bytes(fields->context, &spec);
    if (!evict(fields, queue, n_bytes)) {
        *claim = VXD_FIELD_BUSY;
        return VXD_OK;
    }
    status = make_field(fields, queue, &spec, n_bytes, out, err);
    if (status == VXD_RESOURCE_EXHAUSTED && !is_alone) {
        /* The budget is everybody's: what is kept only for speed goes first. The memory is there
         * when the queue has freed it, or others have given theirs back. */
        (void)evict(fields, queue, fields->limit_bytes);
        *claim = VXD_FIELD_BUSY;
        return VXD_OK;
    }
    if (status == VXD_OK) {
        (*out)->generation = want->generation;
        (*out)->version = want->version;
        (*out)->is_updating = true;
        *claim = VXD_FIELD_STALE;
    }
    return status;
}

/* The best of the fields that cover what is wanted: one of that version, or on its way to it,
 * then the one of those that nobody has which was not used for longest. */
static struct vxd_kept_field *find_covering(const struct vxd_fields *fields,
                                            const struct vxd_field_want *want)
{
    struct vxd_kept_field *coming = NULL;
    struct vxd_kept_field *idle = NULL;

    for (struct vxd_kept_field *k = fields->first; k != NULL; k = k->next) {
        if (!has_same_source(k, want) ||
            !covers(vxd_field_get_spec(k->field), &want->spec)) {
            continue;
        }
        if (k->is_whole && k->version == want->version) {
            return k;
        }
        if (k->is_updating && k->version == want->version) {
            coming = k;
        }
        if (is_idle(k) && (idle == NULL || k->used < idle->used)) {
            idle = k;
        }
    }
    return coming != NULL ? coming : idle;
}

/* Versions do not wait for each other: where others have all fields that would do, one more is
 * made, if there is memory. */
static enum vxd_status claim_locked(struct vxd_fields *fields, struct vxd_queue *queue,
                                    const struct vxd_field_want *want, const char *field,
                                    struct vxd_kept_field **out,
                                    enum vxd_field_claim *claim, struct vxd_err *err)
{
    struct vxd_kept_field *found = find_covering(fields, want);
    enum vxd_status status = VXD_OK;

    *claim = VXD_FIELD_BUSY;
    if (found == NULL) {
        status = claim_new(fields, queue, want, field, out, claim, err);
    } else if (found->is_updating) {
        return VXD_OK;
    } else if (found->is_whole && found->version == want->version) {
        found->n_readers++;
        *claim = VXD_FIELD_READY;
        *out = found;
    } else {
        found->version = want->version;
        found->is_updating = true;
        found->is_whole = false;
        *claim = VXD_FIELD_STALE;
        *out = found;
    }
    if (status == VXD_OK && *claim != VXD_FIELD_BUSY) {
        (*out)->used = ++fields->n_claims;
    }
    return status;
}

enum vxd_status vxd_fields_claim(struct vxd_fields *fields, struct vxd_queue *queue,
                                 const struct vxd_field_want *want, const char *field,
                                 struct vxd_kept_field **out, enum vxd_field_claim *claim,
                                 struct vxd_err *err)
{
    enum vxd_status status;

    (void)pthread_mutex_lock(&fields->mutex);
    status = claim_locked(fields, queue, want, field, out, claim, err);
    (void)pthread_mutex_unlock(&fields->mutex);
    return status;
}

void vxd_fields_set_ready(struct vxd_fields *fields, struct vxd_kept_field *kept,
                          uint64_t version)
{
    (void)pthread_mutex_lock(&fields->mutex);
    kept->version = version;
    kept->is_updating = false;
    kept->is_whole = true;
    kept->n_readers++;
    (void)pthread_mutex_unlock(&fields->mutex);
}

void vxd_fields_release(struct vxd_fields *fields, struct vxd_queue *queue,
                        struct vxd_kept_field *kept)
{
    if (kept == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&fields->mutex);
    if (kept->is_updating) {
        /* The next update makes it anew. */
        vxd_field_forget(kept->field);
        kept->is_updating = false;
    } else {
        kept->n_readers--;
    }
    if (is_idle(kept) && kept->is_dropped) {
        free_kept(fields, queue, kept);
    }
    (void)pthread_mutex_unlock(&fields->mutex);
}

void vxd_fields_get_usage(struct vxd_fields *fields, struct vxd_fields_usage *out)
{
    (void)pthread_mutex_lock(&fields->mutex);
    out->n_fields = fields->n_fields;
    out->n_bytes = fields->n_bytes;
    (void)pthread_mutex_unlock(&fields->mutex);
}

uint64_t vxd_fields_trim(struct vxd_fields *fields, struct vxd_queue *queue,
                         uint64_t n_bytes)
{
    size_t before;
    uint64_t freed;

    (void)pthread_mutex_lock(&fields->mutex);
    before = fields->n_bytes;
    while (before - fields->n_bytes < n_bytes && free_oldest(fields, queue)) {
    }
    freed = before - fields->n_bytes;
    (void)pthread_mutex_unlock(&fields->mutex);
    return freed;
}

void vxd_fields_drop_scene(struct vxd_fields *fields, struct vxd_queue *queue,
                           uint64_t generation)
{
    (void)pthread_mutex_lock(&fields->mutex);
    for (struct vxd_kept_field *k = fields->first, *next; k != NULL; k = next) {
        next = k->next;
        if (k->generation == generation) {
            k->is_dropped = true;
            if (is_idle(k)) {
                free_kept(fields, queue != NULL ? queue : fields->queue, k);
            }
        }
    }
    if (queue == NULL) {
        /* Nobody else waits for it; a lost device is reported by the lanes. */
        (void)vxd_queue_wait(fields->queue, NULL);
    }
    (void)pthread_mutex_unlock(&fields->mutex);
}
