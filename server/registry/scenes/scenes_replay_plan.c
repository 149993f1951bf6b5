// SPDX-License-Identifier: Apache-2.0
/* A scene lives from the record that makes it to the one that drops it; a later scene of
 * the same name is another life. The plan knows where each life ends and which versions
 * are asked for before that: one that is branched from, and one that is undone or has a
 * name together with the one before it, which shows what it changed. The terms keep the
 * last versions of a life. */
#include "server/registry/scenes/scene_fusion.h"
#include "server/registry/scenes/scenes_replay.h"
#include "gpu/svdag/edit/edit.h"

#include <stdlib.h>
#include <string.h>

struct vxd_scene_planned {
    char name[VXD_RECORD_NAME_BYTES];
    uint64_t first; /* sequences of its records */
    uint64_t end;
    uint64_t last_version;
    uint64_t *
        asked; /* versions, in the order in which they came or sorted; some more than once */
    size_t n_asked;
    size_t capacity;
    bool is_sorted;
};

struct vxd_scene_planned_name {
    char scene[VXD_RECORD_NAME_BYTES];
    uint64_t version;
};

void vxd_scene_plan_free(struct vxd_scene_plan *plan)
{
    for (size_t i = 0; i < plan->n; i++) {
        free(plan->lives[i].asked);
    }
    free(plan->lives);
    free(plan->named);
    *plan = (struct vxd_scene_plan){0};
}

/* Reserves capacity for one more item and doubles it where it grows. NULL: there is no
 * memory, and the plan is useless. */
static void *grow(struct vxd_scene_plan *plan, void *items, size_t n, size_t *capacity,
                  size_t item_bytes)
{
    size_t larger = 2 * n + 8;
    void *grown;

    if (n < *capacity) {
        return items;
    }
    grown = realloc(items, larger * item_bytes);
    if (grown == NULL) {
        plan->is_useless = true;
        return NULL;
    }
    *capacity = larger;
    return grown;
}

void vxd_scene_plan_name(struct vxd_scene_plan *plan, const char *scene, uint64_t version)
{
    struct vxd_scene_planned_name *grown =
        grow(plan, plan->named, plan->n_named, &plan->named_capacity, sizeof *grown);

    if (grown != NULL) {
        plan->named = grown;
        grown += plan->n_named++;
        (void)snprintf(grown->scene, sizeof grown->scene, "%s", scene);
        grown->version = version;
    }
}

/* --- lives ------------------------------------------------------------------------------- */

static bool is_of(const struct vxd_scene_planned *life, const char *name,
                  uint64_t sequence)
{
    return life->first <= sequence && strcmp(life->name, name) == 0;
}

/* Finds the last life of this name that had begun by then; NULL where there is none. Many
 * records in a row are of one scene, so the one found last is tried first. */
static struct vxd_scene_planned *find_life(struct vxd_scene_plan *plan, const char *name,
                                           uint64_t sequence)
{
    if (plan->found < plan->n && is_of(&plan->lives[plan->found], name, sequence) &&
        sequence <= plan->lives[plan->found].end) {
        return &plan->lives[plan->found];
    }
    for (size_t i = plan->n; i > 0; i--) {
        if (is_of(&plan->lives[i - 1], name, sequence)) {
            plan->found = i - 1;
            return &plan->lives[i - 1];
        }
    }
    return NULL;
}

static void ask(struct vxd_scene_plan *plan, struct vxd_scene_planned *life,
                uint64_t version)
{
    uint64_t *grown =
        grow(plan, life->asked, life->n_asked, &life->capacity, sizeof *grown);

    if (grown != NULL) {
        life->asked = grown;
        life->asked[life->n_asked++] = version;
        life->is_sorted = false;
    }
}

/* Adds a version together with the one it was made from. */
static void ask_change(struct vxd_scene_plan *plan, struct vxd_scene_planned *life,
                       uint64_t version)
{
    ask(plan, life, version);
    ask(plan, life, version - 1);
}

/* NULL: there is no memory for it. */
static struct vxd_scene_planned *begin_life(struct vxd_scene_plan *plan, const char *name,
                                            uint64_t sequence)
{
    struct vxd_scene_planned *life =
        grow(plan, plan->lives, plan->n, &plan->capacity, sizeof *life);

    if (life == NULL) {
        return NULL;
    }
    plan->lives = life;
    plan->found = plan->n;
    life += plan->n++;
    *life = (struct vxd_scene_planned){.first = sequence, .end = sequence};
    (void)snprintf(life->name, sizeof life->name, "%s", name);
    /* Only at the end is it known which life of the name a named version belongs to. */
    for (size_t i = 0; i < plan->n_named; i++) {
        if (strcmp(plan->named[i].scene, name) == 0) {
            ask_change(plan, life, plan->named[i].version);
        }
    }
    return life;
}

void vxd_scene_plan_record(struct vxd_scene_plan *plan, uint64_t sequence,
                           const struct vxd_record *head)
{
    bool begins = head->kind == VXD_RECORD_CREATE || head->kind == VXD_RECORD_BRANCH;
    struct vxd_scene_planned *life;

    if (plan->is_useless) {
        return;
    }
    if (head->kind == VXD_RECORD_BRANCH) {
        life = find_life(plan, head->from, sequence);
        if (life != NULL) {
            ask(plan, life, head->of_version.n);
        }
    }
    life = begins ? NULL : find_life(plan, head->head, sequence);
    if (life == NULL) {
        life = begin_life(plan, head->head, sequence);
    }
    if (life == NULL) {
        return;
    }
    life->end = sequence;
    if (head->kind != VXD_RECORD_DROP) {
        life->last_version = head->version.n;
    }
    if (head->kind == VXD_RECORD_UNDO || head->kind == VXD_RECORD_REDO) {
        ask_change(plan, life, head->of_version.n);
    }
}

/* --- what may be passed over ---------------------------------------------------------------- */

static int compare_versions(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Whether somebody may ask for the version, or for what the next one changed. */
static bool is_asked(struct vxd_scene_planned *life, const struct vxd_scene *scene,
                     uint64_t version)
{
    if (version >= life->last_version ||
        life->last_version - version <= scene->terms.keep_versions) {
        return true;
    }
    if (!life->is_sorted && life->n_asked > 0) {
        qsort(life->asked, life->n_asked, sizeof *life->asked, compare_versions);
    }
    life->is_sorted = true;
    return life->n_asked > 0 && bsearch(&version, life->asked, life->n_asked,
                                        sizeof version, compare_versions) != NULL;
}

size_t vxd_scene_plan_count(struct vxd_scene_plan *plan, const struct vxd_scene *scene,
                            uint64_t sequence, const struct vxd_record_decoded *records,
                            size_t n)
{
    struct vxd_scene_planned *life = find_life(plan, records[0].record.head, sequence);
    struct vxd_svdag_edit_batch batch = {.backend = plan->backend};
    size_t n_together = 0;

    if (vxd_scene_fuses(scene)) {
        return 1; /* log-odds depend on every version */
    }
    while (life != NULL && !plan->is_useless && n_together < n) {
        const struct vxd_record *next = &records[n_together].record;

        if ((next->kind != VXD_RECORD_EDIT && next->kind != VXD_RECORD_INTEGRATE &&
             next->kind != VXD_RECORD_CAST) ||
            strcmp(next->head, life->name) != 0 ||
            !vxd_svdag_edit_batch_add(&batch, next->ops, next->n_ops)) {
            break;
        }
        n_together++;
        if (is_asked(life, scene, next->version.n)) {
            break;
        }
    }
    return n_together > 0 ? n_together : 1;
}
