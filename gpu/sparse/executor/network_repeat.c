// SPDX-License-Identifier: Apache-2.0
/* What runs of a network keep for later runs on a GPU. First, the capacities of their
 * coordinate sets, by the size of their input: similar scans get the same sizes, so
 * most often the same addresses, and need not wait for counts. Second, work that was
 * enqueued twice with the same addresses and sizes, recorded as a CUDA graph. */
#include <stdlib.h>
#include <string.h>

#include "gpu/sparse/executor/network_internal.h"

#define MAX_GRAPHS 16
#define MAX_PROFILES 8

struct entry {
    uint64_t *key; /* NULL: free */
    size_t n_key;
    struct vxd_net_graph *graph; /* NULL: the key occurred once */
    int n_users;                 /* runs that have launched it, or record it at present */
    uint64_t last_used;
};

/* For inputs of about one size. */
struct profile {
    /* for each set, 0 = not known yet; that of the input is first, 0 = free */
    size_t *capacities;
    uint64_t last_used;
};

struct vxd_net_repeat {
    pthread_mutex_t mutex;
    uint64_t n_uses;
    size_t *capacities; /* the capacities of all profiles */
    struct profile profiles[MAX_PROFILES];
    struct entry entries[MAX_GRAPHS];
};

enum vxd_status vxd_net_repeat_create(int n_coord_sets, struct vxd_net_repeat **out,
                                      struct vxd_err *err)
{
    struct vxd_net_repeat *repeat = calloc(1, sizeof *repeat);

    *out = NULL;
    if (repeat != NULL) {
        repeat->capacities =
            calloc((size_t)n_coord_sets * MAX_PROFILES, sizeof *repeat->capacities);
    }
    if (repeat == NULL || repeat->capacities == NULL ||
        pthread_mutex_init(&repeat->mutex, NULL) != 0) {
        if (repeat != NULL) {
            free(repeat->capacities);
        }
        free(repeat);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a network");
    }
    for (int i = 0; i < MAX_PROFILES; i++) {
        repeat->profiles[i].capacities =
            repeat->capacities + (size_t)i * (size_t)n_coord_sets;
    }
    *out = repeat;
    return VXD_OK;
}

static void clear_entry(struct vxd_context *context, struct entry *entry)
{
    (void)context; /* unused in builds without CUDA */
    if (VXD_ON_CUDA(context)) {
        vxd_net_graph_destroy_cuda(context, entry->graph);
    }
    free(entry->key);
    *entry = (struct entry){0};
}

void vxd_net_repeat_destroy(struct vxd_context *context, struct vxd_net_repeat *repeat)
{
    if (repeat == NULL) {
        return;
    }
    for (int i = 0; i < MAX_GRAPHS; i++) {
        clear_entry(context, &repeat->entries[i]);
    }
    (void)pthread_mutex_destroy(&repeat->mutex);
    free(repeat->capacities);
    free(repeat);
}

/* --- capacities --------------------------------------------------------------------------- */

static size_t step_of(size_t n)
{
    size_t step = VXD_SPARSE_ROW_PAD;

    while (step < n / 8) {
        step *= 2;
    }
    return step;
}

/* A capacity for n rows and some more. */
static size_t round_up(size_t n)
{
    size_t step = step_of(n);
    size_t capacity = (n + step / 2 + step - 1) / step * step;

    return capacity > 0 ? capacity : step;
}

/* The profile for an input of n rows: the smallest with enough capacity, but not too
 * much. Where there is none, NULL, or with make the least recently used profile,
 * emptied. The caller holds the mutex. */
static struct profile *find_profile(const struct vxd_net *net, size_t n, bool make)
{
    struct vxd_net_repeat *repeat = net->repeat;
    struct profile *oldest = &repeat->profiles[0];
    struct profile *best = NULL;

    for (int i = 0; i < MAX_PROFILES; i++) {
        struct profile *profile = &repeat->profiles[i];
        size_t capacity = profile->capacities[0];

        if (capacity >= n && capacity > 0 && capacity <= n + n / 2 + 4 * step_of(n) &&
            (best == NULL || capacity < best->capacities[0])) {
            best = profile;
        }
        oldest = profile->last_used < oldest->last_used ? profile : oldest;
    }
    if (best == NULL && make) {
        best = oldest;
        memset(best->capacities, 0, (size_t)net->n_coord_sets * sizeof *best->capacities);
        best->capacities[0] = round_up(n);
    }
    if (best != NULL) {
        best->last_used = ++repeat->n_uses;
    }
    return best;
}

size_t vxd_net_run_capacity(const struct vxd_net_run *run, int coord_set, size_t n)
{
    const struct vxd_net *net;
    size_t *known;
    size_t capacity;

    if (!VXD_ON_CUDA(run->net->context)) {
        return n;
    }
    net = run->net;
    (void)pthread_mutex_lock(&net->repeat->mutex);
    known = &find_profile(net, run->input.n_rows, true)->capacities[coord_set];
    /* Inputs of a profile differ by up to half, and so do their sets, so capacities
     * that follow each set exactly would fit no other. The input's own capacity
     * selects the profile. */
    if (*known < n || (coord_set > 0 && *known > 2 * n + 4 * step_of(n))) {
        *known = round_up(n);
    }
    capacity = *known;
    (void)pthread_mutex_unlock(&net->repeat->mutex);
    return capacity;
}

bool vxd_net_run_predict(const struct vxd_net_run *run, size_t *capacities)
{
    const struct vxd_net *net = run->net;
    const struct profile *profile;
    bool is_known;

    (void)pthread_mutex_lock(&net->repeat->mutex);
    profile = find_profile(net, run->input.n_rows, false);
    is_known = profile != NULL;
    for (int i = 0; i < net->n_coord_sets && is_known; i++) {
        capacities[i] = profile->capacities[i];
        is_known = !net->coord_sets[i].used || capacities[i] > 0;
    }
    (void)pthread_mutex_unlock(&net->repeat->mutex);
    return is_known;
}

/* --- keys -------------------------------------------------------------------------------- */

static size_t key_words(const struct vxd_net *net)
{
    return 9 + 4 * (size_t)net->n_coord_sets + 2 * (size_t)net->n_phases;
}

static uint64_t word_of(const void *ptr)
{
    return (uint64_t)(uintptr_t)ptr;
}

/* All values on which the calls depend and that another run may have differently:
 * addresses and sizes. The contents of a block follow from the sizes. */
static void fill_key(const struct vxd_net_run *run, enum vxd_net_tag tag, uint64_t *key)
{
    size_t n = 0;

    key[n++] = (uint64_t)tag;
    key[n++] = (uint64_t)run->phase;
    key[n++] = (uint64_t)run->input.n_samples;
    key[n++] = word_of(run->counts.ptr);
    key[n++] = word_of(run->h_counts.ptr);
    key[n++] = word_of(run->n_pairs.ptr);
    key[n++] = word_of(run->tokens.ptr);
    key[n++] = word_of(run->scratch.ptr);
    key[n++] = run->scratch.n_bytes;
    for (int i = 0; i < run->net->n_coord_sets; i++) {
        const struct vxd_net_run_coord_set *coord_set = &run->coord_sets[i];

        key[n++] = (coord_set->is_made ? 1U : 0U) + (coord_set->in_round ? 2U : 0U);
        key[n++] = coord_set->is_made ? coord_set->capacity : 0;
        key[n++] = coord_set->is_made ? word_of(coord_set->coord_set.keys) : 0;
        key[n++] = coord_set->is_made ? word_of(coord_set->coord_set.slots) : 0;
    }
    for (int i = 0; i < run->net->n_phases; i++) {
        key[n++] = word_of(run->phases[i].maps.ptr);
        key[n++] = word_of(run->phases[i].items.ptr);
    }
}

/* The entry with this key; where there is none, an unused entry (*is_new), or NULL. */
static struct entry *find_entry(struct vxd_net_repeat *repeat, const uint64_t *key,
                                size_t n_key, bool *is_new)
{
    struct entry *oldest = NULL;

    for (int i = 0; i < MAX_GRAPHS; i++) {
        struct entry *entry = &repeat->entries[i];

        if (entry->key != NULL && entry->n_key == n_key &&
            memcmp(entry->key, key, n_key * sizeof *key) == 0) {
            *is_new = false;
            return entry;
        }
        if (entry->n_users == 0 &&
            (oldest == NULL || entry->last_used < oldest->last_used)) {
            oldest = entry;
        }
    }
    *is_new = true;
    return oldest;
}

/* Takes over `take_key`. Returns the entry to launch or to record, which this run uses
 * from here on; NULL: enqueue without a graph. */
static struct entry *use_entry(struct vxd_context *context, struct vxd_net_run *run,
                               uint64_t *take_key, size_t n_key)
{
    struct vxd_net_repeat *repeat = run->net->repeat;
    struct entry *entry;
    bool is_new;

    (void)pthread_mutex_lock(&repeat->mutex);
    entry = find_entry(repeat, take_key, n_key, &is_new);
    if (entry == NULL) {
        free(take_key);
    } else if (is_new) {
        clear_entry(context, entry);
        entry->key = take_key;
        entry->n_key = n_key;
        entry->last_used = ++repeat->n_uses;
        entry = NULL;
    } else {
        uint32_t bit = (uint32_t)1 << (entry - repeat->entries);

        free(take_key);
        entry->last_used = ++repeat->n_uses;
        entry->n_users += (run->graphs_used & bit) == 0 ? 1 : 0;
        run->graphs_used |= bit;
    }
    (void)pthread_mutex_unlock(&repeat->mutex);
    return entry;
}

void vxd_net_run_release_graphs(struct vxd_net_run *run)
{
    struct vxd_net_repeat *repeat = run->net->repeat;

    (void)pthread_mutex_lock(&repeat->mutex);
    for (int i = 0; i < MAX_GRAPHS; i++) {
        if ((run->graphs_used >> i & 1U) != 0) {
            repeat->entries[i].n_users--;
        }
    }
    (void)pthread_mutex_unlock(&repeat->mutex);
    run->graphs_used = 0;
}

/* No other run can have the key of an entry in use while this one has the memory that
 * the key names, so no other run touches the entry. */
static enum vxd_status launch(struct vxd_queue *queue, struct vxd_net_run *run,
                              struct entry *entry, enum vxd_net_tag tag,
                              vxd_net_enqueue_fn enqueue, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (VXD_ON_CUDA(queue->context)) {
        if (entry->graph == NULL) {
            VXD_TRY(vxd_net_graph_record_cuda(queue, enqueue, run,
                                              tag == VXD_NET_TAG_COORD_SETS_AND_MAPS ||
                                                  tag == VXD_NET_TAG_WHOLE,
                                              &entry->graph, err));
        }
        VXD_TRY(vxd_net_graph_launch_cuda(queue, entry->graph, err));
    }
out:
    return status;
}

enum vxd_status vxd_net_run_enqueue(struct vxd_queue *queue, struct vxd_net_run *run,
                                    enum vxd_net_tag tag, vxd_net_enqueue_fn enqueue,
                                    struct vxd_err *err)
{
    struct entry *entry;
    uint64_t *key;
    size_t n_key;

    if (!VXD_ON_CUDA(queue->context) || run->input.counts_overflow) {
        return enqueue(queue, run, err);
    }
    n_key = key_words(run->net);
    key = malloc(n_key * sizeof *key);
    if (key == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a run");
    }
    fill_key(run, tag, key);
    entry = use_entry(queue->context, run, key, n_key);
    return entry == NULL ? enqueue(queue, run, err)
                         : launch(queue, run, entry, tag, enqueue, err);
}
