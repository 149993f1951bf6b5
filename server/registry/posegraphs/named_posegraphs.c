// SPDX-License-Identifier: Apache-2.0
#include "server/registry/posegraphs/posegraphs_internal.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "server/instance/instance.h"

/* What pose graphs keep beside their table. */
struct own {
    pthread_mutex_t mutex;                                     /* of all that runs */
    struct vxd_posegraph_run runs[VXD_POSEGRAPHS_MAX_RUNNING]; /* name "": free */
    struct vxd_posegraph_rebuild rebuilds[VXD_POSEGRAPHS_MAX_REBUILDS]; /* likewise */
};

static size_t count_bytes(const struct vxd_named *named)
{
    return ((const struct vxd_named_posegraph *)named)->content.n_bytes;
}

static void clear(struct vxd_named *named, struct vxd_queue *queue)
{
    (void)queue;
    vxd_posegraph_content_clear(&((struct vxd_named_posegraph *)named)->content);
}

static void free_own(void *user)
{
    struct own *own = user;

    (void)pthread_mutex_destroy(&own->mutex);
    free(own);
}

static const struct vxd_noun_calls calls = {.one = "pose graph",
                                            .many = "pose graphs",
                                            .max = VXD_POSEGRAPHS_MAX,
                                            .n_bytes = sizeof(struct vxd_named_posegraph),
                                            .has_quota = true,
                                            .quota = VXD_NOUN_POSEGRAPH,
                                            .bytes_key = "limits.posegraph_bytes",
                                            .log = vxd_posegraphs_log,
                                            .count_bytes = count_bytes,
                                            .clear = clear,
                                            .free_own = free_own,
                                            .durable = &vxd_posegraphs_durable};

enum vxd_status vxd_posegraphs_create(struct vxd_server *server, struct vxd_names **out,
                                      struct vxd_err *err)
{
    struct own *own = calloc(1, sizeof *own);
    struct vxd_names_options options = {.calls = &calls, .take_own = own};
    struct vxd_memory_usage memory;

    if (own == NULL || pthread_mutex_init(&own->mutex, NULL) != 0) {
        free(own);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "no memory for the pose graphs");
    }
    vxd_context_get_memory(server->context, &memory);
    options.limit_bytes = server->config.posegraph_bytes > 0
                              ? server->config.posegraph_bytes
                              : memory.host_budget_bytes / 2;
    return vxd_names_create(server, &options, out, err);
}

struct vxd_named_posegraph *vxd_posegraphs_find(struct vxd_names *posegraphs,
                                                const char *name)
{
    return (struct vxd_named_posegraph *)vxd_names_find(posegraphs, name);
}

enum vxd_status vxd_named_posegraph_new(struct vxd_names *posegraphs,
                                        const struct vxd_named_terms *terms,
                                        struct vxd_named_posegraph **out,
                                        struct vxd_err *err)
{
    struct vxd_named *named = NULL;
    enum vxd_status status = vxd_named_begin(posegraphs, terms, &named, err);

    if (status == VXD_OK) {
        vxd_named_enlist(named);
        *out = (struct vxd_named_posegraph *)named;
    }
    return status;
}

enum vxd_status vxd_posegraph_check_bytes(const struct vxd_named_posegraph *graph,
                                          size_t n_more, struct vxd_err *err)
{
    uint64_t max_bytes = graph->named.terms.max_bytes;
    struct vxd_names_usage usage;

    if (max_bytes > 0 && graph->content.n_bytes + n_more > max_bytes) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "max_bytes",
                        "of the pose graph is %" PRIu64 "; it has %zu bytes, and %zu are "
                        "to come",
                        max_bytes, graph->content.n_bytes, n_more);
    }
    vxd_names_get_usage(graph->named.names, &usage);
    if (usage.n_bytes + n_more > usage.limit_bytes) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "limits.posegraph_bytes is %" PRIu64 "; all pose graphs have "
                        "%" PRIu64 " bytes, and %zu are to come",
                        usage.limit_bytes, usage.n_bytes, n_more);
    }
    return vxd_named_check_bytes(&graph->named, n_more, "the pose graph", err);
}

/* --- optimizations that run -------------------------------------------------------------------- */

int vxd_posegraphs_begin_run(struct vxd_names *posegraphs,
                             const struct vxd_posegraph_run *run)
{
    struct own *own = vxd_names_own(posegraphs);
    int number = -1;

    (void)pthread_mutex_lock(&own->mutex);
    for (int i = 0; i < VXD_POSEGRAPHS_MAX_RUNNING && number < 0; i++) {
        number = own->runs[i].name[0] == '\0' ? i : -1;
    }
    if (number >= 0) {
        own->runs[number] = *run;
    }
    (void)pthread_mutex_unlock(&own->mutex);
    return number;
}

void vxd_posegraphs_note_run(struct vxd_names *posegraphs, int number, int n_iterations,
                             double cost)
{
    struct own *own = vxd_names_own(posegraphs);

    if (number >= 0) {
        (void)pthread_mutex_lock(&own->mutex);
        own->runs[number].n_iterations = n_iterations;
        own->runs[number].cost = cost;
        (void)pthread_mutex_unlock(&own->mutex);
    }
}

void vxd_posegraphs_end_run(struct vxd_names *posegraphs, int number)
{
    struct own *own = vxd_names_own(posegraphs);

    if (number >= 0) {
        (void)pthread_mutex_lock(&own->mutex);
        own->runs[number].name[0] = '\0';
        (void)pthread_mutex_unlock(&own->mutex);
    }
}

size_t vxd_posegraphs_list_runs(struct vxd_names *posegraphs,
                                const struct vxd_named_posegraph *graph,
                                struct vxd_posegraph_run out[VXD_POSEGRAPHS_MAX_RUNNING])
{
    struct own *own = vxd_names_own(posegraphs);
    size_t n = 0;

    (void)pthread_mutex_lock(&own->mutex);
    for (int i = 0; i < VXD_POSEGRAPHS_MAX_RUNNING; i++) {
        if (strcmp(own->runs[i].name, graph->named.terms.name) == 0 &&
            own->runs[i].generation == graph->named.generation) {
            out[n++] = own->runs[i];
        }
    }
    (void)pthread_mutex_unlock(&own->mutex);
    return n;
}

/* --- rebuilds that run ------------------------------------------------------------------------- */

/* The number of a graph's rebuild, -1: it has none. The mutex is held. */
static int find_rebuild(const struct own *own, const char *name, uint64_t generation)
{
    for (int i = 0; i < VXD_POSEGRAPHS_MAX_REBUILDS; i++) {
        if (strcmp(own->rebuilds[i].name, name) == 0 &&
            own->rebuilds[i].generation == generation) {
            return i;
        }
    }
    return -1;
}

enum vxd_status vxd_posegraphs_begin_rebuild(struct vxd_names *posegraphs,
                                             const struct vxd_posegraph_rebuild *rebuild,
                                             int *number, struct vxd_err *err)
{
    struct own *own = vxd_names_own(posegraphs);
    enum vxd_status status = VXD_OK;

    *number = -1;
    (void)pthread_mutex_lock(&own->mutex);
    if (find_rebuild(own, rebuild->name, rebuild->generation) >= 0) {
        VXD_TRY(vxd_fail(err, VXD_FAILED_PRECONDITION, "name",
                         "a rebuild from the pose graph \"%s\" runs already",
                         rebuild->name));
    }
    for (int i = 0; i < VXD_POSEGRAPHS_MAX_REBUILDS && *number < 0; i++) {
        *number = own->rebuilds[i].name[0] == '\0' ? i : -1;
    }
    if (*number < 0) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                         "%d rebuilds are running, which is as many as there can be",
                         VXD_POSEGRAPHS_MAX_REBUILDS));
    }
    own->rebuilds[*number] = *rebuild;
out:
    (void)pthread_mutex_unlock(&own->mutex);
    return status;
}

void vxd_posegraphs_note_rebuild(struct vxd_names *posegraphs, int number,
                                 uint64_t n_done)
{
    struct own *own = vxd_names_own(posegraphs);

    (void)pthread_mutex_lock(&own->mutex);
    own->rebuilds[number].n_done = n_done;
    (void)pthread_mutex_unlock(&own->mutex);
}

bool vxd_posegraphs_is_cancelled(struct vxd_names *posegraphs, int number)
{
    struct own *own = vxd_names_own(posegraphs);
    bool is_cancelled;

    (void)pthread_mutex_lock(&own->mutex);
    is_cancelled = own->rebuilds[number].is_cancelled;
    (void)pthread_mutex_unlock(&own->mutex);
    return is_cancelled;
}

void vxd_posegraphs_end_rebuild(struct vxd_names *posegraphs, int number)
{
    struct own *own = vxd_names_own(posegraphs);

    (void)pthread_mutex_lock(&own->mutex);
    own->rebuilds[number].name[0] = '\0';
    (void)pthread_mutex_unlock(&own->mutex);
}

bool vxd_posegraphs_find_rebuild(struct vxd_names *posegraphs,
                                 const struct vxd_named_posegraph *graph, bool cancels,
                                 struct vxd_posegraph_rebuild *out)
{
    struct own *own = vxd_names_own(posegraphs);
    int number;

    (void)pthread_mutex_lock(&own->mutex);
    number = find_rebuild(own, graph->named.terms.name, graph->named.generation);
    if (number >= 0) {
        own->rebuilds[number].is_cancelled |= cancels;
        *out = own->rebuilds[number];
    }
    (void)pthread_mutex_unlock(&own->mutex);
    return number >= 0;
}
