// SPDX-License-Identifier: Apache-2.0
/* A record of a pose graph (numbers are base 128, the low seven bits first; s = signed, zigzag; doubles
 * are their 8 bytes and floats their 4, little end first):
 *
 *      1  kind: 16 add, 17 poses
 *      1  bytes of the author's name, 0 to 63, and the name
 *      1  bytes of the client's name, 0 to 63, and the name
 *         unix_ns (s)
 *    add
 *         nodes (number), and of each: id (number), stamp_ns (s), 1 whether it is fixed, pose
 *         edges (number), and of each: from, to (numbers), pose, information, robust
 *         priors (number), and of each: node (number), pose, information, robust
 *         keyframes (number), and of each: node, points (numbers), 3 floats a point, values of the
 *         descriptor (number), and a float each
 *    poses
 *         version (number), cost (double), poses (number), and each
 *
 *    pose: x y z, and the quaternion x y z w, 7 doubles. information: 36 doubles, rows first.
 *    robust: 1 kind (0 squares, 1 Huber, 2 Cauchy, 3 dynamic covariance scaling), width (double)
 *
 * and nothing behind. */
#include "server/durable/record/posegraph_record.h"

#include "server/durable/journal/journal.h"
#include "server/durable/record/record_internal.h"

/* --- writing ------------------------------------------------------------------------------------ */

static void put_doubles(struct vxd_bytes_out *out, const double *values, size_t n)
{
    vxd_bytes_put(out, values, n * sizeof *values);
}

static void put_pose(struct vxd_bytes_out *out, const struct vxd_rigid *pose)
{
    put_doubles(out, pose->t_m, 3);
    put_doubles(out, pose->q, 4);
}

static void put_robust(struct vxd_bytes_out *out, enum vxd_posegraph_robust robust,
                       double width)
{
    vxd_bytes_put8(out, (unsigned)robust);
    put_doubles(out, &width, 1);
}

static void put_added(struct vxd_bytes_out *out, const struct vxd_posegraph_record *r)
{
    vxd_bytes_put_number(out, r->n_nodes);
    for (size_t i = 0; i < r->n_nodes; i++) {
        vxd_bytes_put_number(out, r->nodes[i].id);
        vxd_bytes_put_signed(out, r->nodes[i].stamp_ns);
        vxd_bytes_put8(out, r->nodes[i].fixed ? 1 : 0);
        put_pose(out, &r->nodes[i].T_map_node);
    }
    vxd_bytes_put_number(out, r->n_edges);
    for (size_t i = 0; i < r->n_edges; i++) {
        vxd_bytes_put_number(out, r->edges[i].from);
        vxd_bytes_put_number(out, r->edges[i].to);
        put_pose(out, &r->edges[i].T_from_to);
        put_doubles(out, r->edges[i].information, 36);
        put_robust(out, r->edges[i].robust, r->edges[i].width);
    }
    vxd_bytes_put_number(out, r->n_priors);
    for (size_t i = 0; i < r->n_priors; i++) {
        vxd_bytes_put_number(out, r->priors[i].node);
        put_pose(out, &r->priors[i].T_map_node);
        put_doubles(out, r->priors[i].information, 36);
        put_robust(out, r->priors[i].robust, r->priors[i].width);
    }
    vxd_bytes_put_number(out, r->n_keyframes);
    for (size_t i = 0; i < r->n_keyframes; i++) {
        const struct vxd_posegraph_record_keyframe *k = &r->keyframes[i];

        vxd_bytes_put_number(out, k->node);
        vxd_bytes_put_number(out, k->n_points);
        vxd_bytes_put(out, k->points, (size_t)k->n_points * 3 * sizeof(float));
        vxd_bytes_put_number(out, k->n_descriptor);
        vxd_bytes_put(out, k->descriptor, (size_t)k->n_descriptor * sizeof(float));
    }
}

enum vxd_status vxd_posegraph_record_encode(const struct vxd_posegraph_record *record,
                                            struct vxd_record_bytes *out,
                                            struct vxd_err *err)
{
    struct vxd_bytes_out bytes = {0};

    *out = (struct vxd_record_bytes){0};
    vxd_bytes_put8(&bytes, (unsigned)record->kind);
    vxd_record_put_name(&bytes, record->author);
    vxd_record_put_name(&bytes, record->client);
    vxd_bytes_put_signed(&bytes, record->unix_ns);
    if (record->kind == VXD_POSEGRAPH_RECORD_ADD) {
        put_added(&bytes, record);
    } else {
        vxd_bytes_put_number(&bytes, record->version);
        put_doubles(&bytes, &record->cost, 1);
        vxd_bytes_put_number(&bytes, record->n_poses);
        for (size_t i = 0; i < record->n_poses; i++) {
            put_pose(&bytes, &record->poses[i]);
        }
    }
    if (bytes.is_out_of_memory) {
        free(bytes.bytes);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "no memory for a pose graph's record");
    }
    *out = (struct vxd_record_bytes){.bytes = bytes.bytes, .n_bytes = bytes.n};
    return VXD_OK;
}

/* --- reading -------------------------------------------------------------------------------------- */

static bool get_doubles(struct vxd_record_reader *reader, double *out, size_t n)
{
    const uint8_t *from = vxd_bytes_get(&reader->in, n * sizeof *out);

    if (from == NULL) {
        return false;
    }
    memcpy(out, from, n * sizeof *out);
    return true;
}

static bool get_pose(struct vxd_record_reader *reader, struct vxd_rigid *pose)
{
    return get_doubles(reader, pose->t_m, 3) && get_doubles(reader, pose->q, 4);
}

static bool get_robust(struct vxd_record_reader *reader,
                       enum vxd_posegraph_robust *robust, double *width)
{
    unsigned kind = vxd_bytes_get8(&reader->in);

    if (kind > VXD_POSEGRAPH_DCS) {
        return vxd_record_bad(reader, "no kind of robust cost");
    }
    *robust = (enum vxd_posegraph_robust)kind;
    return get_doubles(reader, width, 1);
}

static bool get_index(struct vxd_record_reader *reader, uint32_t *out)
{
    uint64_t value = vxd_bytes_get_number(&reader->in);

    if (value >= UINT32_MAX) {
        return vxd_record_bad(reader, "a number is too large");
    }
    *out = (uint32_t)value;
    return !reader->in.is_bad;
}

/* Reads how many items follow, of at least so many bytes each, and allocates them. */
static bool get_list(struct vxd_record_reader *reader, size_t least_bytes,
                     size_t item_bytes, void **items, size_t *n)
{
    uint64_t count = vxd_bytes_get_number(&reader->in);

    *n = 0;
    if (reader->in.is_bad || count > (reader->in.n - reader->in.at) / least_bytes) {
        return vxd_record_bad(reader, "more items than bytes");
    }
    *items = vxd_record_alloc(reader, count, item_bytes);
    *n = *items != NULL ? (size_t)count : 0;
    return *items != NULL;
}

static bool get_floats(struct vxd_record_reader *reader, uint64_t n, const float **out)
{
    const uint8_t *from;
    float *to;

    if (n > (reader->in.n - reader->in.at) / sizeof(float)) {
        return vxd_record_bad(reader, "more numbers than bytes");
    }
    from = vxd_bytes_get(&reader->in, (size_t)n * sizeof(float));
    to = vxd_record_alloc(reader, n, sizeof(float));
    if (from == NULL || to == NULL) {
        return false;
    }
    memcpy(to, from, (size_t)n * sizeof(float));
    *out = to;
    return true;
}

static bool get_nodes(struct vxd_record_reader *reader, struct vxd_posegraph_record *r)
{
    struct vxd_posegraph_record_node *nodes;
    void *items;

    if (!get_list(reader, 59, sizeof *nodes, &items, &r->n_nodes)) {
        return false;
    }
    nodes = items;
    r->nodes = nodes;
    for (size_t i = 0; i < r->n_nodes; i++) {
        unsigned fixed;

        nodes[i].id = vxd_bytes_get_number(&reader->in);
        nodes[i].stamp_ns = vxd_bytes_get_signed(&reader->in);
        fixed = vxd_bytes_get8(&reader->in);
        nodes[i].fixed = fixed == 1;
        if (fixed > 1 || !get_pose(reader, &nodes[i].T_map_node)) {
            return vxd_record_bad(reader, "no node");
        }
    }
    return true;
}

static bool get_edges(struct vxd_record_reader *reader, struct vxd_posegraph_record *r)
{
    struct vxd_posegraph_edge *edges;
    void *items;

    if (!get_list(reader, 355, sizeof *edges, &items, &r->n_edges)) {
        return false;
    }
    edges = items;
    r->edges = edges;
    for (size_t i = 0; i < r->n_edges; i++) {
        if (!get_index(reader, &edges[i].from) || !get_index(reader, &edges[i].to) ||
            !get_pose(reader, &edges[i].T_from_to) ||
            !get_doubles(reader, edges[i].information, 36) ||
            !get_robust(reader, &edges[i].robust, &edges[i].width)) {
            return vxd_record_bad(reader, "no edge");
        }
    }
    return true;
}

static bool get_priors(struct vxd_record_reader *reader, struct vxd_posegraph_record *r)
{
    struct vxd_posegraph_prior *priors;
    void *items;

    if (!get_list(reader, 354, sizeof *priors, &items, &r->n_priors)) {
        return false;
    }
    priors = items;
    r->priors = priors;
    for (size_t i = 0; i < r->n_priors; i++) {
        if (!get_index(reader, &priors[i].node) ||
            !get_pose(reader, &priors[i].T_map_node) ||
            !get_doubles(reader, priors[i].information, 36) ||
            !get_robust(reader, &priors[i].robust, &priors[i].width)) {
            return vxd_record_bad(reader, "no prior");
        }
    }
    return true;
}

static bool get_keyframes(struct vxd_record_reader *reader,
                          struct vxd_posegraph_record *r)
{
    struct vxd_posegraph_record_keyframe *keyframes;
    void *items;

    if (!get_list(reader, 3, sizeof *keyframes, &items, &r->n_keyframes)) {
        return false;
    }
    keyframes = items;
    r->keyframes = keyframes;
    for (size_t i = 0; i < r->n_keyframes; i++) {
        struct vxd_posegraph_record_keyframe *k = &keyframes[i];

        if (!get_index(reader, &k->node) || !get_index(reader, &k->n_points) ||
            !get_floats(reader, 3 * (uint64_t)k->n_points, &k->points) ||
            !get_index(reader, &k->n_descriptor) ||
            !get_floats(reader, k->n_descriptor, &k->descriptor)) {
            return vxd_record_bad(reader, "no keyframe");
        }
    }
    return true;
}

static bool get_poses(struct vxd_record_reader *reader, struct vxd_posegraph_record *r)
{
    struct vxd_rigid *poses;
    void *items;

    r->version = vxd_bytes_get_number(&reader->in);
    if (!get_doubles(reader, &r->cost, 1) ||
        !get_list(reader, 56, sizeof *poses, &items, &r->n_poses)) {
        return false;
    }
    poses = items;
    r->poses = poses;
    for (size_t i = 0; i < r->n_poses; i++) {
        if (!get_pose(reader, &poses[i])) {
            return false;
        }
    }
    return true;
}

static bool get_record(struct vxd_record_reader *reader, struct vxd_posegraph_record *r)
{
    unsigned kind = vxd_bytes_get8(&reader->in);
    bool is_good;

    if (kind != VXD_POSEGRAPH_RECORD_ADD && kind != VXD_POSEGRAPH_RECORD_POSES) {
        return vxd_record_bad(reader, "no kind of record");
    }
    r->kind = (enum vxd_posegraph_record_kind)kind;
    if (!vxd_record_get_name(reader, r->author) ||
        !vxd_record_get_name(reader, r->client)) {
        return false;
    }
    r->unix_ns = vxd_bytes_get_signed(&reader->in);
    is_good = r->kind == VXD_POSEGRAPH_RECORD_ADD
                  ? get_nodes(reader, r) && get_edges(reader, r) &&
                        get_priors(reader, r) && get_keyframes(reader, r)
                  : get_poses(reader, r);
    if (!is_good || reader->in.is_bad) {
        return vxd_record_bad(reader, "the record ends too soon");
    }
    return reader->in.at == reader->in.n || vxd_record_bad(reader, "more bytes follow");
}

enum vxd_status vxd_posegraph_record_decode(const void *bytes, size_t n_bytes,
                                            uint32_t rules_version, size_t max_bytes,
                                            struct vxd_posegraph_record_decoded *out,
                                            struct vxd_err *err)
{
    struct vxd_record_reader reader = {
        .in = {.bytes = n_bytes > 0 ? bytes : (const void *)"", .n = n_bytes},
        .n_bytes_left = max_bytes != 0 ? max_bytes : VXD_RECORD_MAX_BYTES};

    *out = (struct vxd_posegraph_record_decoded){0};
    if (rules_version <= VXD_POSEGRAPH_RULES_BASE ||
        rules_version > VXD_POSEGRAPH_RULES_VERSION) {
        return vxd_fail(
            err, VXD_FAILED_PRECONDITION, NULL,
            "a pose graph's record of rules %u; this program knows those up to "
            "%d: a newer server wrote it",
            rules_version, VXD_POSEGRAPH_RULES_VERSION);
    }
    if (get_record(&reader, &out->record)) {
        out->memory = reader.blocks;
        return VXD_OK;
    }
    out->memory = reader.blocks;
    vxd_posegraph_record_decoded_free(out);
    if (reader.is_out_of_memory && !reader.in.is_bad) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "a record that takes more than %zu bytes of memory",
                        max_bytes != 0 ? max_bytes : VXD_RECORD_MAX_BYTES);
    }
    return vxd_fail(err, VXD_DATA_LOSS, NULL,
                    "a pose graph's record is damaged at byte %zu: %s", reader.in.at,
                    reader.what != NULL ? reader.what : "the record ends too soon");
}

void vxd_posegraph_record_decoded_free(struct vxd_posegraph_record_decoded *decoded)
{
    struct vxd_record_decoded blocks = {.memory = decoded->memory};

    vxd_record_decoded_free(&blocks);
    *decoded = (struct vxd_posegraph_record_decoded){0};
}
