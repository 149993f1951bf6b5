// SPDX-License-Identifier: Apache-2.0
#include "server/registry/posegraphs/posegraph_content.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

/* --- keyframes ------------------------------------------------------------------------------- */

struct vxd_keyframe *vxd_keyframe_hold(struct vxd_keyframe *keyframe)
{
    if (keyframe != NULL) {
        atomic_fetch_add(&keyframe->references, 1);
    }
    return keyframe;
}

void vxd_keyframe_drop(struct vxd_keyframe *keyframe)
{
    if (keyframe != NULL && atomic_fetch_sub(&keyframe->references, 1) == 1) {
        free(keyframe);
    }
}

static size_t keyframe_bytes(const struct vxd_posegraph_record_keyframe *from)
{
    return sizeof(struct vxd_keyframe) +
           ((size_t)from->n_points * 3 + from->n_descriptor) * sizeof(float);
}

static struct vxd_keyframe *new_keyframe(const struct vxd_posegraph_record_keyframe *from)
{
    struct vxd_keyframe *keyframe = malloc(keyframe_bytes(from));
    size_t n = (size_t)from->n_points * 3;

    if (keyframe == NULL) {
        return NULL;
    }
    atomic_init(&keyframe->references, 1);
    keyframe->n_points = from->n_points;
    keyframe->n_descriptor = from->n_descriptor;
    keyframe->descriptor = keyframe->points + n;
    if (n > 0) {
        memcpy(keyframe->points, from->points, n * sizeof(float));
    }
    if (from->n_descriptor > 0) {
        memcpy(keyframe->points + n, from->descriptor,
               from->n_descriptor * sizeof(float));
    }
    return keyframe;
}

/* --- nodes by id ------------------------------------------------------------------------------ */

static size_t place_of(uint64_t id, size_t n_table)
{
    uint64_t h = id * 0x9e3779b97f4a7c15ULL;

    return (size_t)(h ^ h >> 32) & (n_table - 1);
}

uint32_t vxd_posegraph_find(const struct vxd_posegraph_content *content, uint64_t id)
{
    size_t at;

    if (content->n_table == 0) {
        return NONE;
    }
    for (at = place_of(id, content->n_table); content->table[at] != 0;
         at = (at + 1) & (content->n_table - 1)) {
        if (content->nodes[content->table[at] - 1].id == id) {
            return content->table[at] - 1;
        }
    }
    return NONE;
}

static void enter(uint32_t *table, size_t n_table, uint64_t id, uint32_t index)
{
    size_t at = place_of(id, n_table);

    while (table[at] != 0) {
        at = (at + 1) & (n_table - 1);
    }
    table[at] = index + 1;
}

const struct vxd_posegraph_version *
vxd_posegraph_find_version(const struct vxd_posegraph_content *content, uint64_t version)
{
    for (int i = content->n_versions; i-- > 0;) {
        if (version == 0 || content->versions[i].version == version) {
            return &content->versions[i];
        }
    }
    return NULL;
}

/* --- memory ------------------------------------------------------------------------------------ */

/* Makes an array as long as n items need; what it had stays. */
static bool grow(void **items, size_t *capacity, size_t n, size_t item_bytes,
                 size_t *n_bytes)
{
    size_t wanted = *capacity * 3 / 2 > n ? *capacity * 3 / 2 : n;
    void *grown;

    if (n <= *capacity) {
        return true;
    }
    grown = realloc(*items, wanted * item_bytes);
    if (grown == NULL) {
        return false;
    }
    *items = grown;
    *n_bytes += (wanted - *capacity) * item_bytes;
    *capacity = wanted;
    return true;
}

static bool grow_table(struct vxd_posegraph_content *content, size_t n_nodes)
{
    size_t n_table = content->n_table > 0 ? content->n_table : 64;
    uint32_t *table;

    while (n_table < 2 * n_nodes) {
        n_table *= 2;
    }
    if (n_table == content->n_table) {
        return true;
    }
    table = calloc(n_table, sizeof *table);
    if (table == NULL) {
        return false;
    }
    for (size_t i = 0; i < content->n_nodes; i++) {
        enter(table, n_table, content->nodes[i].id, (uint32_t)i);
    }
    content->n_bytes += (n_table - content->n_table) * sizeof *table;
    free(content->table);
    content->table = table;
    content->n_table = n_table;
    return true;
}

size_t vxd_posegraph_record_needs(const struct vxd_posegraph_content *content,
                                  const struct vxd_posegraph_record *record)
{
    size_t n = record->n_nodes;
    size_t n_bytes = n * (sizeof(struct vxd_posegraph_node) + sizeof(struct vxd_rigid) +
                          4 * sizeof(uint32_t)) +
                     record->n_edges * sizeof *record->edges +
                     record->n_priors * sizeof *record->priors +
                     record->n_poses * sizeof *record->poses;

    (void)content;
    for (size_t i = 0; i < record->n_keyframes; i++) {
        n_bytes += keyframe_bytes(&record->keyframes[i]);
    }
    return n_bytes;
}

static void drop_version(struct vxd_posegraph_content *content, int i)
{
    content->n_bytes -= content->versions[i].capacity * sizeof(struct vxd_rigid);
    free(content->versions[i].poses);
    memmove(&content->versions[i], &content->versions[i + 1],
            (size_t)(content->n_versions - i - 1) * sizeof content->versions[0]);
    content->n_versions--;
}

void vxd_posegraph_forget_versions(struct vxd_posegraph_content *content)
{
    while (content->n_versions > 0) {
        drop_version(content, content->n_versions - 1);
    }
}

void vxd_posegraph_content_clear(struct vxd_posegraph_content *content)
{
    for (size_t i = 0; i < content->n_nodes; i++) {
        vxd_keyframe_drop(content->nodes[i].keyframe);
    }
    vxd_posegraph_forget_versions(content);
    free(content->table);
    free(content->priors);
    free(content->edges);
    free(content->nodes);
    *content = (struct vxd_posegraph_content){0};
}

/* --- checks -------------------------------------------------------------------------------------- */

static enum vxd_status check_pose(const struct vxd_rigid *pose, const char *what,
                                  size_t i, struct vxd_err *err)
{
    double square = 0;
    bool is_finite = true;
    char field[48];

    for (int k = 0; k < 3; k++) {
        is_finite = is_finite && fabs(pose->t_m[k]) <= 1e9;
    }
    for (int k = 0; k < 4; k++) {
        square += pose->q[k] * pose->q[k];
    }
    if (is_finite && fabs(square - 1) <= 1e-3) {
        return VXD_OK;
    }
    (void)snprintf(field, sizeof field, "%s[%zu]", what, i);
    return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                    "its pose must be finite, within 1e9 m, with a unit quaternion");
}

static enum vxd_status check_information(const double *information, bool definite,
                                         const char *what, size_t i, struct vxd_err *err)
{
    const char *wrong = vxd_posegraph_check_information(information, definite);
    char field[48];

    if (wrong == NULL) {
        return VXD_OK;
    }
    (void)snprintf(field, sizeof field, "%s[%zu].information", what, i);
    return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                    "%s; it must be symmetric and positive %s", wrong,
                    definite ? "definite" : "semidefinite");
}

static enum vxd_status check_robust(enum vxd_posegraph_robust robust, double width,
                                    const char *what, size_t i, struct vxd_err *err)
{
    char field[48];

    if (robust == VXD_POSEGRAPH_SQUARES || (width > 0 && width <= 1e9)) {
        return VXD_OK;
    }
    (void)snprintf(field, sizeof field, "%s[%zu].width", what, i);
    return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "is %g, it must be above 0 to 1e9",
                    width);
}

static enum vxd_status check_keyframes(const struct vxd_posegraph_content *content,
                                       const struct vxd_posegraph_record *record,
                                       struct vxd_err *err)
{
    size_t n = content->n_nodes + record->n_nodes;
    uint32_t n_descriptor = content->n_descriptor;

    for (size_t i = 0; i < record->n_keyframes; i++) {
        const struct vxd_posegraph_record_keyframe *k = &record->keyframes[i];

        if (k->node >= n) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "id", "is of no node");
        }
        if (k->node < content->n_nodes && content->nodes[k->node].keyframe != NULL) {
            return vxd_fail(err, VXD_ALREADY_EXISTS, "id",
                            "node %llu has a keyframe already",
                            (unsigned long long)content->nodes[k->node].id);
        }
        for (size_t j = 0; j < i; j++) {
            if (record->keyframes[j].node == k->node) {
                return vxd_fail(err, VXD_INVALID_ARGUMENT, "id",
                                "two keyframes of one node");
            }
        }
        if (k->n_descriptor > 0 && n_descriptor > 0 && k->n_descriptor != n_descriptor) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "descriptor",
                            "has %u values; those of the graph's other keyframes have %u",
                            k->n_descriptor, n_descriptor);
        }
        for (uint32_t v = 0; v < k->n_descriptor; v++) {
            if (!isfinite(k->descriptor[v])) {
                return vxd_fail(err, VXD_INVALID_ARGUMENT, "descriptor",
                                "value %u is not finite", v);
            }
        }
        n_descriptor = n_descriptor > 0 ? n_descriptor : k->n_descriptor;
    }
    return VXD_OK;
}

static enum vxd_status check_added(const struct vxd_posegraph_content *content,
                                   const struct vxd_posegraph_record *record,
                                   struct vxd_err *err)
{
    size_t n = content->n_nodes + record->n_nodes;
    enum vxd_status status = VXD_OK;

    if (n > VXD_POSEGRAPH_MAX_NODES ||
        content->n_edges + record->n_edges > VXD_POSEGRAPH_MAX_EDGES ||
        content->n_priors + record->n_priors > VXD_POSEGRAPH_MAX_EDGES) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "nodes",
                         "a pose graph has at most %d nodes, and %d edges and priors",
                         VXD_POSEGRAPH_MAX_NODES, VXD_POSEGRAPH_MAX_EDGES));
    }
    for (size_t i = 0; i < record->n_nodes; i++) {
        VXD_TRY(check_pose(&record->nodes[i].T_map_node, "nodes", i, err));
    }
    for (size_t i = 0; i < record->n_edges; i++) {
        const struct vxd_posegraph_edge *edge = &record->edges[i];

        if (edge->from >= n || edge->to >= n || edge->from == edge->to) {
            char field[48];

            (void)snprintf(field, sizeof field, "edges[%zu]", i);
            VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                             "must lead from one node to another one"));
        }
        VXD_TRY(check_pose(&edge->T_from_to, "edges", i, err));
        VXD_TRY(check_information(edge->information, true, "edges", i, err));
        VXD_TRY(check_robust(edge->robust, edge->width, "edges", i, err));
    }
    for (size_t i = 0; i < record->n_priors; i++) {
        const struct vxd_posegraph_prior *prior = &record->priors[i];

        if (prior->node >= n) {
            VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "priors", "one is of no node"));
        }
        VXD_TRY(check_pose(&prior->T_map_node, "priors", i, err));
        VXD_TRY(check_information(prior->information, false, "priors", i, err));
        VXD_TRY(check_robust(prior->robust, prior->width, "priors", i, err));
    }
    status = check_keyframes(content, record, err);
out:
    return status;
}

/* --- changes -------------------------------------------------------------------------------------- */

/* Reserves memory for all of a record, and makes its keyframes; after a failure the content is what it was, but
 * for spare capacity.
 * out     keyframes  record->n_keyframes */
static bool prepare(struct vxd_posegraph_content *content,
                    const struct vxd_posegraph_record *record,
                    struct vxd_keyframe **keyframes)
{
    struct vxd_posegraph_version *newest;
    void *nodes = content->nodes;
    void *edges = content->edges;
    void *priors = content->priors;
    void *poses;
    size_t n = content->n_nodes + record->n_nodes;
    bool is_good =
        grow(&nodes, &content->nodes_capacity, n, sizeof *content->nodes,
             &content->n_bytes) &&
        grow(&edges, &content->edges_capacity, content->n_edges + record->n_edges,
             sizeof *content->edges, &content->n_bytes) &&
        grow(&priors, &content->priors_capacity, content->n_priors + record->n_priors,
             sizeof *content->priors, &content->n_bytes);

    content->nodes = nodes;
    content->edges = edges;
    content->priors = priors;
    if (!is_good || !grow_table(content, n)) {
        return false;
    }
    if (content->n_versions == 0) {
        content->versions[0] =
            (struct vxd_posegraph_version){.version = 1, .unix_ns = record->unix_ns};
        content->n_versions = 1;
    }
    newest = &content->versions[content->n_versions - 1];
    poses = newest->poses;
    is_good =
        grow(&poses, &newest->capacity, n, sizeof *newest->poses, &content->n_bytes);
    newest->poses = poses;
    for (size_t i = 0; i < record->n_keyframes && is_good; i++) {
        keyframes[i] = new_keyframe(&record->keyframes[i]);
        is_good = keyframes[i] != NULL;
    }
    return is_good;
}

/* Copies n items behind what an array has; of no items either may be NULL. */
static void append(void *items, size_t n_before, const void *from, size_t n,
                   size_t item_bytes)
{
    if (n > 0) {
        memcpy((char *)items + n_before * item_bytes, from, n * item_bytes);
    }
}

static void commit(struct vxd_posegraph_content *content,
                   const struct vxd_posegraph_record *record,
                   struct vxd_keyframe **keyframes)
{
    struct vxd_posegraph_version *newest = &content->versions[content->n_versions - 1];

    for (size_t i = 0; i < record->n_nodes; i++) {
        const struct vxd_posegraph_record_node *from = &record->nodes[i];

        content->nodes[content->n_nodes] = (struct vxd_posegraph_node){
            .id = from->id, .stamp_ns = from->stamp_ns, .fixed = from->fixed};
        newest->poses[content->n_nodes] = from->T_map_node;
        enter(content->table, content->n_table, from->id, (uint32_t)content->n_nodes);
        content->n_nodes++;
    }
    newest->n = content->n_nodes;
    append(content->edges, content->n_edges, record->edges, record->n_edges,
           sizeof *content->edges);
    content->n_edges += record->n_edges;
    append(content->priors, content->n_priors, record->priors, record->n_priors,
           sizeof *content->priors);
    content->n_priors += record->n_priors;
    for (size_t i = 0; i < record->n_keyframes; i++) {
        struct vxd_posegraph_node *node = &content->nodes[record->keyframes[i].node];

        node->keyframe = keyframes[i];
        node->keyframe_order = (uint32_t)content->n_keyframes++;
        content->n_bytes += keyframe_bytes(&record->keyframes[i]);
        if (keyframes[i]->n_descriptor > 0) {
            content->n_descriptor = keyframes[i]->n_descriptor;
        }
    }
}

/* Whether an id is the graph's, or comes twice. */
static enum vxd_status check_ids(struct vxd_posegraph_content *content,
                                 const struct vxd_posegraph_record *record,
                                 struct vxd_err *err)
{
    struct vxd_posegraph_content own = {.n_table = 0};
    enum vxd_status status = VXD_OK;

    own.nodes = malloc((record->n_nodes + 1) * sizeof *own.nodes);
    if (own.nodes == NULL || !grow_table(&own, record->n_nodes)) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for nodes"));
    }
    for (size_t i = 0; i < record->n_nodes; i++) {
        uint64_t id = record->nodes[i].id;

        if (vxd_posegraph_find(content, id) != NONE ||
            vxd_posegraph_find(&own, id) != NONE) {
            char field[48];

            (void)snprintf(field, sizeof field, "nodes[%zu].id", i);
            VXD_TRY(vxd_fail(err, VXD_ALREADY_EXISTS, field, "%llu is a node already",
                             (unsigned long long)id));
        }
        own.nodes[i].id = id;
        enter(own.table, own.n_table, id, (uint32_t)i);
    }
out:
    free(own.table);
    free(own.nodes);
    return status;
}

static enum vxd_status apply_added(struct vxd_posegraph_content *content,
                                   const struct vxd_posegraph_record *record,
                                   struct vxd_err *err)
{
    struct vxd_keyframe **keyframes = NULL;
    enum vxd_status status;

    VXD_TRY(check_added(content, record, err));
    VXD_TRY(check_ids(content, record, err));
    keyframes = calloc(record->n_keyframes + 1, sizeof(void *));
    if (keyframes == NULL || !prepare(content, record, keyframes)) {
        for (size_t i = 0; keyframes != NULL && i < record->n_keyframes; i++) {
            vxd_keyframe_drop(keyframes[i]);
        }
        VXD_TRY(
            vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a pose graph"));
    }
    commit(content, record, keyframes);
out:
    free(keyframes);
    return status;
}

static enum vxd_status apply_poses(struct vxd_posegraph_content *content,
                                   const struct vxd_posegraph_record *record,
                                   struct vxd_err *err)
{
    const struct vxd_posegraph_version *newest = vxd_posegraph_find_version(content, 0);
    struct vxd_posegraph_version made = {.version = record->version,
                                         .unix_ns = record->unix_ns,
                                         .cost = record->cost,
                                         .n = record->n_poses};
    enum vxd_status status = VXD_OK;

    if (record->n_poses > content->n_nodes ||
        (newest != NULL && record->version <= newest->version)) {
        VXD_TRY(vxd_fail(err, VXD_FAILED_PRECONDITION, NULL,
                         "poses of %zu nodes as version %llu do not follow",
                         record->n_poses, (unsigned long long)record->version));
    }
    for (size_t i = 0; i < record->n_poses; i++) {
        VXD_TRY(check_pose(&record->poses[i], "poses", i, err));
    }
    made.capacity = record->n_poses + 1;
    made.poses = malloc(made.capacity * sizeof *made.poses);
    if (made.poses == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for poses"));
    }
    append(made.poses, 0, record->poses, record->n_poses, sizeof *made.poses);
    if (content->n_versions == VXD_POSEGRAPH_VERSIONS) {
        drop_version(content, 0);
    }
    content->versions[content->n_versions++] = made;
    content->n_bytes += made.capacity * sizeof *made.poses;
out:
    return status;
}

enum vxd_status vxd_posegraph_apply(struct vxd_posegraph_content *content,
                                    const struct vxd_posegraph_record *record,
                                    struct vxd_err *err)
{
    return record->kind == VXD_POSEGRAPH_RECORD_ADD ? apply_added(content, record, err)
                                                    : apply_poses(content, record, err);
}
