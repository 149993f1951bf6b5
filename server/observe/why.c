// SPDX-License-Identifier: Apache-2.0
#include "server/observe/why.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PARTS 16
#define ENTRIES 48 /* of a part */

struct part {
    uint64_t n_added;
    struct vxd_why_entry entries[ENTRIES];
};

struct vxd_whys {
    pthread_mutex_t mutex;
    struct part parts[PARTS];
};

enum vxd_status vxd_whys_create(struct vxd_whys **out, struct vxd_err *err)
{
    struct vxd_whys *whys = calloc(1, sizeof *whys);

    if (whys == NULL || pthread_mutex_init(&whys->mutex, NULL) != 0) {
        free(whys);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "no memory for explanations of requests");
    }
    *out = whys;
    return VXD_OK;
}

void vxd_whys_destroy(struct vxd_whys *whys)
{
    if (whys != NULL) {
        (void)pthread_mutex_destroy(&whys->mutex);
        free(whys);
    }
}

static struct part *part_of(struct vxd_whys *whys, const char *token)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (const char *s = token; *s != '\0'; s++) {
        hash = (hash ^ (unsigned char)*s) * 16777619u;
    }
    return &whys->parts[(hash ^ (hash >> 16)) % PARTS];
}

void vxd_whys_add(struct vxd_whys *whys, const struct vxd_why_entry *entry)
{
    struct part *part = part_of(whys, entry->token);

    (void)pthread_mutex_lock(&whys->mutex);
    part->entries[part->n_added++ % ENTRIES] = *entry;
    (void)pthread_mutex_unlock(&whys->mutex);
}

static const struct vxd_why_entry *find_in(const struct part *part,
                                           const char *request_id, const char *token)
{
    uint64_t n = part->n_added < ENTRIES ? part->n_added : ENTRIES;

    for (uint64_t i = 1; i <= n; i++) {
        const struct vxd_why_entry *entry = &part->entries[(part->n_added - i) % ENTRIES];

        if (strcmp(entry->request_id, request_id) == 0 &&
            (token == NULL || strcmp(entry->token, token) == 0)) {
            return entry;
        }
    }
    return NULL;
}

bool vxd_whys_find(struct vxd_whys *whys, const char *request_id, const char *token,
                   struct vxd_why_entry *out)
{
    const struct vxd_why_entry *found = NULL;

    (void)pthread_mutex_lock(&whys->mutex);
    if (token != NULL) {
        found = find_in(part_of(whys, token), request_id, token);
    }
    for (size_t i = 0; token == NULL && i < PARTS; i++) {
        const struct vxd_why_entry *entry = find_in(&whys->parts[i], request_id, NULL);

        if (entry != NULL &&
            (found == NULL || entry->finished_unix_ns > found->finished_unix_ns)) {
            found = entry;
        }
    }
    if (found != NULL) {
        *out = *found;
    }
    (void)pthread_mutex_unlock(&whys->mutex);
    return found != NULL;
}

void vxd_why_count(struct vxd_why_queue *queue, const char *method, const char *token,
                   bool is_running)
{
    struct vxd_why_ahead *group;

    for (uint32_t i = 0; i < queue->n_groups; i++) {
        group = &queue->groups[i];
        if (group->method == method && group->is_running == is_running &&
            strcmp(group->token, token) == 0) {
            group->n++;
            return;
        }
    }
    if (queue->n_groups == VXD_WHY_GROUPS) {
        queue->n_others++;
        return;
    }
    group = &queue->groups[queue->n_groups++];
    group->method = method;
    group->n = 1;
    group->is_running = is_running;
    (void)snprintf(group->token, sizeof group->token, "%s", token);
}
