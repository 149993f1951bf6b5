// SPDX-License-Identifier: Apache-2.0
/* Pose graphs are in one list in order of their names: there are few of them, and a walk is short
 * beside a request. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/clock.h"
#include "server/instance/instance.h"
#include "server/registry/posegraphs/posegraphs_internal.h"

enum vxd_status vxd_posegraphs_create(struct vxd_server *server,
                                      struct vxd_posegraphs **out, struct vxd_err *err)
{
    struct vxd_posegraphs *posegraphs = calloc(1, sizeof *posegraphs);
    struct vxd_memory_usage memory;

    if (posegraphs == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "no memory for the pose graphs");
    }
    posegraphs->registry = server->registry;
    posegraphs->auth = server->auth;
    vxd_context_get_memory(server->context, &memory);
    posegraphs->limit_bytes = server->config.posegraph_bytes > 0
                                  ? server->config.posegraph_bytes
                                  : memory.host_budget_bytes / 2;
    (void)pthread_mutex_init(&posegraphs->mutex, NULL);
    vxd_registry_add(server->registry, &vxd_posegraphs_kind, posegraphs);
    *out = posegraphs;
    return VXD_OK;
}

struct vxd_named_posegraph *vxd_posegraphs_find(struct vxd_posegraphs *posegraphs,
                                                const char *name)
{
    struct vxd_named_posegraph *graph = posegraphs->first;

    while (graph != NULL && strcmp(graph->terms.name, name) != 0) {
        graph = graph->next;
    }
    return graph;
}

struct vxd_named_posegraph *vxd_posegraphs_next(struct vxd_posegraphs *posegraphs,
                                                const struct vxd_named_posegraph *graph)
{
    return graph != NULL ? graph->next : posegraphs->first;
}

void vxd_named_posegraph_hold(struct vxd_named_posegraph *graph)
{
    graph->references++;
}

static void unlink_from(struct vxd_named_posegraph **list,
                        const struct vxd_named_posegraph *graph)
{
    while (*list != graph) {
        list = &(*list)->next;
    }
    *list = graph->next;
}

/* Frees one of those without a name. */
static void destroy(struct vxd_posegraphs *posegraphs, struct vxd_named_posegraph *graph)
{
    unlink_from(&posegraphs->unnamed, graph);
    vxd_posegraph_content_clear(&graph->content);
    atomic_fetch_sub(&posegraphs->n_bytes, graph->n_bytes);
    vxd_auth_note_bytes(posegraphs->auth, graph->terms.owner, graph->n_bytes, 0);
    free(graph);
}

void vxd_named_posegraph_drop(struct vxd_posegraphs *posegraphs,
                              struct vxd_named_posegraph *graph)
{
    if (--graph->references == 0) {
        destroy(posegraphs, graph);
    }
}

void vxd_posegraphs_destroy(struct vxd_posegraphs *posegraphs)
{
    if (posegraphs == NULL) {
        return;
    }
    while (posegraphs->first != NULL) {
        vxd_posegraphs_remove(posegraphs, posegraphs->first);
    }
    while (posegraphs->unnamed != NULL) {
        destroy(posegraphs, posegraphs->unnamed);
    }
    (void)pthread_mutex_destroy(&posegraphs->mutex);
    free(posegraphs);
}

enum vxd_status vxd_posegraphs_check_bytes(const struct vxd_posegraphs *posegraphs,
                                           const struct vxd_named_posegraph *graph,
                                           size_t n_more, struct vxd_err *err)
{
    uint64_t all = atomic_load(&posegraphs->n_bytes);

    if (graph->terms.max_bytes > 0 &&
        graph->content.n_bytes + n_more > graph->terms.max_bytes) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "max_bytes",
                        "of the pose graph is %" PRIu64 "; it has %zu bytes, and %zu are "
                        "to come",
                        graph->terms.max_bytes, graph->content.n_bytes, n_more);
    }
    if (all + n_more > posegraphs->limit_bytes) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "limits.posegraph_bytes is %" PRIu64 "; all pose graphs have "
                        "%" PRIu64 " bytes, and %zu are to come",
                        posegraphs->limit_bytes, all, n_more);
    }
    return vxd_auth_check_bytes(posegraphs->auth, graph->terms.owner, graph->n_bytes,
                                graph->content.n_bytes + n_more, "the pose graph", err);
}

void vxd_posegraphs_account(struct vxd_posegraphs *posegraphs,
                            struct vxd_named_posegraph *graph)
{
    atomic_fetch_add(&posegraphs->n_bytes, graph->content.n_bytes);
    atomic_fetch_sub(&posegraphs->n_bytes, graph->n_bytes);
    vxd_auth_note_bytes(posegraphs->auth, graph->terms.owner, graph->n_bytes,
                        graph->content.n_bytes);
    graph->n_bytes = graph->content.n_bytes;
}

size_t vxd_posegraphs_solver_bytes(const struct vxd_posegraphs *posegraphs)
{
    return (size_t)posegraphs->limit_bytes;
}

static size_t count_of_owner(const struct vxd_named_posegraph *list, const char *owner)
{
    size_t n = 0;

    for (; list != NULL; list = list->next) {
        n += strcmp(list->terms.owner, owner) == 0 ? 1 : 0;
    }
    return n;
}

enum vxd_status vxd_named_posegraph_new(struct vxd_posegraphs *posegraphs,
                                        const struct vxd_posegraph_terms *terms,
                                        struct vxd_named_posegraph **out,
                                        struct vxd_err *err)
{
    struct vxd_named_posegraph *graph;

    if (atomic_load(&posegraphs->n_posegraphs) >= VXD_POSEGRAPHS_MAX &&
        !posegraphs->is_recovering) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "there are %d pose graphs already", VXD_POSEGRAPHS_MAX);
    }
    if (!posegraphs->is_recovering) {
        enum vxd_status status =
            vxd_auth_check_held(posegraphs->auth, terms->owner, VXD_NOUN_POSEGRAPH,
                                count_of_owner(posegraphs->first, terms->owner), err);

        if (status != VXD_OK) {
            return status;
        }
    }
    graph = calloc(1, sizeof *graph);
    if (graph == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a pose graph");
    }
    graph->terms = *terms;
    graph->created_unix_ns = vxd_clock_unix_ns();
    /* Generations come from the clock, so that other starts of the server make different
     * ones. */
    graph->generation = (uint64_t)graph->created_unix_ns + posegraphs->n_made++;
    graph->references = 1;
    graph->next = posegraphs->unnamed;
    posegraphs->unnamed = graph;
    *out = graph;
    return VXD_OK;
}

void vxd_posegraphs_publish(struct vxd_posegraphs *posegraphs,
                            struct vxd_named_posegraph *graph)
{
    struct vxd_named_posegraph **at = &posegraphs->first;

    unlink_from(&posegraphs->unnamed, graph);
    graph->references++;
    while (*at != NULL && strcmp((*at)->terms.name, graph->terms.name) < 0) {
        at = &(*at)->next;
    }
    graph->next = *at;
    *at = graph;
    atomic_fetch_add(&posegraphs->n_posegraphs, 1);
    atomic_fetch_add(&posegraphs->n_durable, graph->terms.durable ? 1 : 0);
}

void vxd_posegraphs_remove(struct vxd_posegraphs *posegraphs,
                           struct vxd_named_posegraph *graph)
{
    unlink_from(&posegraphs->first, graph);
    graph->next = posegraphs->unnamed;
    posegraphs->unnamed = graph;
    atomic_fetch_sub(&posegraphs->n_posegraphs, 1);
    atomic_fetch_sub(&posegraphs->n_durable, graph->terms.durable ? 1 : 0);
    vxd_named_posegraph_drop(posegraphs, graph);
}

/* --- optimizations that run -------------------------------------------------------------------- */

int vxd_posegraphs_begin_run(struct vxd_posegraphs *posegraphs,
                             const struct vxd_posegraph_run *run)
{
    int number = -1;

    (void)pthread_mutex_lock(&posegraphs->mutex);
    for (int i = 0; i < VXD_POSEGRAPHS_MAX_RUNNING && number < 0; i++) {
        number = posegraphs->runs[i].name[0] == '\0' ? i : -1;
    }
    if (number >= 0) {
        posegraphs->runs[number] = *run;
    }
    (void)pthread_mutex_unlock(&posegraphs->mutex);
    return number;
}

void vxd_posegraphs_note_run(struct vxd_posegraphs *posegraphs, int number,
                             int n_iterations, double cost)
{
    if (number >= 0) {
        (void)pthread_mutex_lock(&posegraphs->mutex);
        posegraphs->runs[number].n_iterations = n_iterations;
        posegraphs->runs[number].cost = cost;
        (void)pthread_mutex_unlock(&posegraphs->mutex);
    }
}

void vxd_posegraphs_end_run(struct vxd_posegraphs *posegraphs, int number)
{
    if (number >= 0) {
        (void)pthread_mutex_lock(&posegraphs->mutex);
        posegraphs->runs[number].name[0] = '\0';
        (void)pthread_mutex_unlock(&posegraphs->mutex);
    }
}

size_t vxd_posegraphs_list_runs(struct vxd_posegraphs *posegraphs,
                                const struct vxd_named_posegraph *graph,
                                struct vxd_posegraph_run out[VXD_POSEGRAPHS_MAX_RUNNING])
{
    size_t n = 0;

    (void)pthread_mutex_lock(&posegraphs->mutex);
    for (int i = 0; i < VXD_POSEGRAPHS_MAX_RUNNING; i++) {
        if (strcmp(posegraphs->runs[i].name, graph->terms.name) == 0 &&
            posegraphs->runs[i].generation == graph->generation) {
            out[n++] = posegraphs->runs[i];
        }
    }
    (void)pthread_mutex_unlock(&posegraphs->mutex);
    return n;
}

void vxd_posegraphs_get_usage(const struct vxd_posegraphs *posegraphs,
                              struct vxd_posegraphs_usage *out)
{
    out->n_posegraphs = atomic_load(&posegraphs->n_posegraphs);
    out->n_bytes = atomic_load(&posegraphs->n_bytes);
    out->limit_bytes = posegraphs->limit_bytes;
    out->n_durable = atomic_load(&posegraphs->n_durable);
    vxd_registry_count_snapshots(posegraphs->registry, &vxd_posegraphs_kind,
                                 &out->n_snapshots, &out->n_failed_snapshots);
}
