// SPDX-License-Identifier: Apache-2.0
/* SLAC's steps, and what a caller reads of it. */
#include <stdlib.h>

#include "gpu/slac/slac_internal.h"

#define N_SHOWN 3 /* fragments that an error names */

/* ---- Memory and steps ---- */

enum vxd_status vxd_slac_take(struct vxd_queue *queue, struct vxd_slac_memory *memory,
                              size_t n, size_t item_bytes, void *out, struct vxd_err *err)
{
    struct vxd_buffer *buffer = &memory->buffers[memory->n];
    enum vxd_status status;

    if (memory->n == VXD_SLAC_MAX_BUFFERS) {
        return vxd_fail(err, VXD_INTERNAL, NULL, "too many arrays");
    }
    if (n > SIZE_MAX / 2 / item_bytes) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "%zu items are too many", n);
    }
    status = vxd_device_alloc(queue, (n > 0 ? n : 1) * item_bytes, buffer, err);
    if (status == VXD_OK) {
        memcpy(out, &buffer->ptr, sizeof buffer->ptr);
        memory->n++;
    }
    return status;
}

void vxd_slac_give(struct vxd_queue *queue, struct vxd_slac_memory *memory)
{
    while (memory->n > 0) {
        vxd_device_free(queue, &memory->buffers[--memory->n]);
    }
}

enum vxd_status vxd_slac_run(struct vxd_queue *queue, const struct vxd_slac_state *state,
                             enum vxd_slac_step_kind step, size_t n, struct vxd_err *err)
{
    return n > 0 ? VXD_BACKEND_FN(queue, vxd_slac_run)(queue, state, step, n, err)
                 : VXD_OK;
}

enum vxd_status vxd_slac_read(struct vxd_queue *queue, const void *device, size_t n_bytes,
                              void *host, struct vxd_err *err)
{
    struct vxd_buffer buffer = {NULL, 0, VXD_SPACE_HOST};
    const void *bytes = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_download(queue, device, n_bytes, &buffer, &bytes, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    if (n_bytes > 0) {
        memcpy(host, bytes, n_bytes);
    }
out:
    vxd_host_free(vxd_queue_context(queue), &buffer);
    return status;
}

void vxd_slac_destroy(struct vxd_queue *queue, struct vxd_slac *slac)
{
    if (slac == NULL) {
        return;
    }
    vxd_slac_give(queue, &slac->pair_memory);
    vxd_slac_give(queue, &slac->memory);
    vxd_hashmap_destroy(queue, slac->cells);
    vxd_hashmap_destroy(queue, slac->grid);
    free(slac->names);
    free(slac->firsts);
    free(slac->edges);
    free(slac->edge_pairs);
    free(slac->tiles);
    free(slac->tile_counts);
    free(slac->tile_firsts);
    free(slac);
}

/* ---- Which edges count ---- */

static uint32_t n_points_of(const struct vxd_slac *slac, int32_t fragment)
{
    return slac->firsts[fragment + 1] - slac->firsts[fragment];
}

static double fitness_of(const struct vxd_slac *slac, size_t edge)
{
    uint32_t source = n_points_of(slac, slac->edges[edge].source);
    uint32_t target = n_points_of(slac, slac->edges[edge].target);

    return (double)slac->edge_pairs[edge] / (double)(source < target ? source : target);
}

/* Root of a fragment's tree, whose paths it halves. */
static int32_t root_of(int32_t *parents, int32_t fragment)
{
    while (parents[fragment] != fragment) {
        parents[fragment] = parents[parents[fragment]];
        fragment = parents[fragment];
    }
    return fragment;
}

/* Names the fragments that are not connected with the first. */
static enum vxd_status fail_apart(const struct vxd_slac *slac, int32_t *parents,
                                  struct vxd_err *err)
{
    char text[N_SHOWN * 70];
    size_t used = 0;
    size_t n = 0;
    double best = 0;

    text[0] = '\0';
    for (int32_t i = 0; i < (int32_t)slac->state.n_fragments; i++) {
        if (root_of(parents, i) != root_of(parents, 0)) {
            if (n < N_SHOWN) {
                int more = snprintf(text + used, sizeof text - used, "%s\"%.40s\"",
                                    n > 0 ? ", " : "", slac->names[i]);

                used += more > 0 ? (size_t)more : 0;
            }
            n++;
        }
    }
    for (size_t e = 0; e < slac->n_edges; e++) {
        if (root_of(parents, slac->edges[e].source) !=
            root_of(parents, slac->edges[e].target)) {
            best = fitness_of(slac, e) > best ? fitness_of(slac, e) : best;
        }
    }
    return vxd_fail(err, VXD_FAILED_PRECONDITION, "fragments",
                    "%s%s do%s not overlap with \"%.40s\": fitness %.2f, %.2f is needed",
                    text, n > N_SHOWN ? ", ..." : "", n == 1 ? "es" : "", slac->names[0],
                    best, slac->options.fitness);
}

static enum vxd_status check_connected(const struct vxd_slac *slac, struct vxd_err *err)
{
    size_t n = slac->state.n_fragments;
    int32_t *parents = malloc(n * sizeof *parents);
    enum vxd_status status = VXD_OK;

    if (parents == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory");
    }
    for (size_t i = 0; i < n; i++) {
        parents[i] = (int32_t)i;
    }
    for (size_t e = 0; e < slac->n_edges; e++) {
        if (fitness_of(slac, e) >= slac->options.fitness) {
            parents[root_of(parents, slac->edges[e].source)] =
                root_of(parents, slac->edges[e].target);
        }
    }
    for (size_t i = 1; i < n && status == VXD_OK; i++) {
        if (root_of(parents, (int32_t)i) != root_of(parents, 0)) {
            status = fail_apart(slac, parents, err);
        }
    }
    free(parents);
    return status;
}

/* Where the pairs of each tile go. */
static void lay_out_pairs(struct vxd_slac *slac, struct vxd_slac_loss *loss)
{
    size_t n_pairs = 0;

    loss->n_edges = 0;
    for (size_t e = 0; e < slac->n_edges; e++) {
        slac->edge_pairs[e] = 0;
    }
    for (size_t i = 0; i < slac->state.n_tiles; i++) {
        slac->edge_pairs[slac->tiles[i].edge] += slac->tile_counts[i];
    }
    for (size_t i = 0; i < slac->state.n_tiles; i++) {
        bool counts = fitness_of(slac, slac->tiles[i].edge) >= slac->options.fitness;

        slac->tile_firsts[i] = counts ? (uint32_t)n_pairs : UINT32_MAX;
        n_pairs += counts ? slac->tile_counts[i] : 0;
    }
    for (size_t e = 0; e < slac->n_edges; e++) {
        loss->n_edges += fitness_of(slac, e) >= slac->options.fitness ? 1 : 0;
    }
    slac->state.n_pairs = n_pairs;
    loss->n_pairs = n_pairs;
}

/* ---- Pairs ---- */

/* Sorts by keys of n_bits; the scratch is given back at once. */
static enum vxd_status sort(struct vxd_queue *queue, uint64_t *keys, uint32_t *values,
                            size_t n, int n_bits, struct vxd_err *err)
{
    size_t n_bytes = vxd_sort_pairs_scratch_bytes(queue, n);
    struct vxd_slac_memory scratch = {.n = 0};
    uint64_t *other_keys = NULL;
    uint32_t *other_values = NULL;
    void *rest = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_slac_take(queue, &scratch, n, sizeof *keys, &other_keys, err));
    VXD_TRY(vxd_slac_take(queue, &scratch, n, sizeof *values, &other_values, err));
    VXD_TRY(vxd_slac_take(queue, &scratch, n_bytes, 1, &rest, err));
    VXD_TRY(vxd_sort_pairs(queue, keys, values, other_keys, other_values, n, 0, n_bits,
                           rest, n_bytes, err));
out:
    vxd_slac_give(queue, &scratch);
    return status;
}

/* Places the points and finds each tile's partners. */
static enum vxd_status match(struct vxd_queue *queue, struct vxd_slac *slac,
                             struct vxd_err *err)
{
    const struct vxd_slac_state *s = &slac->state;
    enum vxd_status status;

    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_place, s->n_points, err));
    VXD_TRY(sort(queue, s->search_keys, s->search_points, s->n_points, 64, err));
    VXD_TRY(vxd_queue_fill(queue, s->slots, 0xff,
                           ((size_t)s->slot_mask + 1) * sizeof *s->slots, err));
    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_index, s->n_points, err));
    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_match, s->n_tiles * VXD_SLAC_TILE, err));
    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_count, s->n_tiles, err));
    VXD_TRY(vxd_slac_read(queue, s->tile_counts, s->n_tiles * sizeof(uint32_t),
                          slac->tile_counts, err));
out:
    return status;
}

/* Makes room for the pairs, by a quarter more than there are. */
static enum vxd_status reserve_pairs(struct vxd_queue *queue, struct vxd_slac *slac,
                                     struct vxd_err *err)
{
    struct vxd_slac_state *s = &slac->state;
    size_t n = s->n_pairs + s->n_pairs / 4 + 1;
    enum vxd_status status = VXD_OK;

    if (s->n_pairs <= slac->pair_capacity) {
        return VXD_OK;
    }
    slac->pair_capacity = 0;
    vxd_slac_give(queue, &slac->pair_memory);
    VXD_TRY(vxd_slac_take(queue, &slac->pair_memory, 2 * n, sizeof *s->pairs, &s->pairs,
                          err));
    VXD_TRY(vxd_slac_take(queue, &slac->pair_memory, 2 * n, sizeof *s->link_keys,
                          &s->link_keys, err));
    VXD_TRY(vxd_slac_take(queue, &slac->pair_memory, 2 * n, sizeof *s->link_values,
                          &s->link_values, err));
    VXD_TRY(vxd_slac_take(queue, &slac->pair_memory, 2 * n, sizeof *s->links, &s->links,
                          err));
    slac->pair_capacity = n;
out:
    return status;
}

/* Lists the pairs of edges that count, by point. */
static enum vxd_status list_pairs(struct vxd_queue *queue, struct vxd_slac *slac,
                                  struct vxd_err *err)
{
    struct vxd_slac_state *s = &slac->state;
    int n_bits = 1;
    enum vxd_status status;

    while ((s->n_points >> n_bits) > 0) {
        n_bits++;
    }
    VXD_TRY(reserve_pairs(queue, slac, err));
    VXD_TRY(vxd_queue_copy(queue, s->tile_firsts, slac->tile_firsts,
                           s->n_tiles * sizeof(uint32_t), err));
    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_pair, s->n_tiles * VXD_SLAC_TILE, err));
    VXD_TRY(sort(queue, s->link_keys, s->link_values, 2 * s->n_pairs, n_bits, err));
    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_link, 2 * s->n_pairs, err));
out:
    return status;
}

static enum vxd_status sum(struct vxd_queue *queue, const double *device, size_t n,
                           double *out, struct vxd_err *err)
{
    double *host = malloc((n > 0 ? n : 1) * sizeof *host);
    enum vxd_status status;

    *out = 0;
    if (host == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory");
    }
    VXD_TRY(vxd_slac_read(queue, device, n * sizeof *host, host, err));
    for (size_t i = 0; i < n; i++) {
        *out += host[i];
    }
out:
    free(host);
    return status;
}

enum vxd_status vxd_slac_find_pairs(struct vxd_queue *queue, struct vxd_slac *slac,
                                    struct vxd_slac_loss *out, struct vxd_err *err)
{
    struct vxd_slac_state *s = &slac->state;
    enum vxd_status status;

    *out = (struct vxd_slac_loss){0};
    s->n_pairs = 0;
    VXD_TRY(match(queue, slac, err));
    lay_out_pairs(slac, out);
    status = check_connected(slac, err);
    if (status != VXD_OK) {
        s->n_pairs = 0;
        goto out;
    }
    VXD_TRY(list_pairs(queue, slac, err));
    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_strip_loss, s->n_strips, err));
    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_turn, s->n_nodes, err));
    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_node_loss, s->n_nodes, err));
    VXD_TRY(sum(queue, s->strip_losses, s->n_strips, &out->data, err));
    VXD_TRY(sum(queue, s->node_losses, s->n_nodes, &out->regularizer, err));
    if (!isfinite(out->data) || !isfinite(out->regularizer)) {
        VXD_TRY(vxd_fail(err, VXD_INTERNAL, NULL,
                         "the loss is no finite number: the fragments moved apart; a "
                         "larger lambda or better poses hold them"));
    }
out:
    return status;
}

/* ---- A Gauss-Newton step ---- */

/* Sums of the points' forces over cells and fragments. */
static enum vxd_status reduce(struct vxd_queue *queue, const struct vxd_slac_state *s,
                              struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_chunk, 24 * s->n_chunks, err));
    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_strip, 6 * s->n_strips, err));
out:
    return status;
}

/* Blocks and right-hand side. */
static enum vxd_status linearize(struct vxd_queue *queue, const struct vxd_slac_state *s,
                                 struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_queue_fill(queue, s->work, 0, sizeof *s->work, err));
    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_block, s->n_points, err));
    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_chunk_block, 48 * s->n_chunks, err));
    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_strip_block, s->n_strips, err));
    VXD_TRY(
        vxd_slac_run(queue, s, VXD_SLAC_STEP_inverse, s->n_nodes + s->n_fragments, err));
    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_pull, s->n_points, err));
    VXD_TRY(reduce(queue, s, err));
    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_descent, s->n_unknowns, err));
out:
    return status;
}

/* Takes out of the scene what all edges of the grid have become longer or shorter by: pairs do not
 * show the scale, and less noise is left of a smaller scene. Blocking. */
static enum vxd_status keep_scale(struct vxd_queue *queue, struct vxd_slac *slac,
                                  struct vxd_err *err)
{
    struct vxd_slac_state *s = &slac->state;
    double stretch = 0;
    enum vxd_status status;

    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_turn, s->n_nodes, err));
    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_stretch, s->n_nodes, err));
    VXD_TRY(sum(queue, s->node_losses, s->n_nodes, &stretch, err));
    s->scale = stretch / (double)slac->n_ring;
    if (!(s->scale > 0.1 && s->scale < 10)) {
        VXD_TRY(
            vxd_fail(err, VXD_INTERNAL, NULL,
                     "the control grid has collapsed: a larger lambda or better poses "
                     "hold it"));
    }
    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_scale_node, 3 * s->n_nodes, err));
    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_scale_pose, s->n_fragments, err));
out:
    return status;
}

enum vxd_status vxd_slac_solve(struct vxd_queue *queue, struct vxd_slac *slac,
                               struct vxd_err *err)
{
    struct vxd_slac_state *s = &slac->state;
    enum vxd_status status;

    if (s->n_pairs == 0) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, NULL,
                        "no pairs were found that could be solved for");
    }
    VXD_TRY(linearize(queue, s, err));
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_slac_conjugate)(queue, s, 1, err));
    for (int i = 0; i < slac->options.solver_steps; i++) {
        VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_displace, s->n_points, err));
        VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_force, s->n_points, err));
        VXD_TRY(reduce(queue, s, err));
        VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_product, s->n_unknowns, err));
        VXD_TRY(VXD_BACKEND_FN(queue, vxd_slac_conjugate)(queue, s, 0, err));
    }
    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_move_node, 3 * s->n_nodes, err));
    VXD_TRY(vxd_slac_run(queue, s, VXD_SLAC_STEP_move_pose, s->n_fragments, err));
    s->n_pairs = 0; /* they were of where the points were */
    s->robust2 /= 4;
    if (s->robust2 < slac->options.distance_m * slac->options.distance_m / 100) {
        s->robust2 = slac->options.distance_m * slac->options.distance_m / 100;
    }
    if (s->n_nodes > 0) {
        VXD_TRY(keep_scale(queue, slac, err));
    }
out:
    return status;
}

enum vxd_status vxd_slac_step(struct vxd_queue *queue, struct vxd_slac *slac,
                              struct vxd_slac_loss *loss, struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_slac_find_pairs(queue, slac, loss, err));
    VXD_TRY(vxd_slac_solve(queue, slac, err));
out:
    return status;
}

/* ---- Results ---- */

static size_t bytes_of(const struct vxd_slac_memory *memory)
{
    size_t n = 0;

    for (size_t i = 0; i < memory->n; i++) {
        n += memory->buffers[i].n_bytes;
    }
    return n;
}

void vxd_slac_get_info(const struct vxd_slac *slac, struct vxd_slac_info *out)
{
    *out = (struct vxd_slac_info){.n_fragments = slac->state.n_fragments,
                                  .n_points = slac->state.n_points,
                                  .n_control_points = slac->state.n_nodes,
                                  .n_unknowns = slac->state.n_unknowns - 6,
                                  .n_edges = slac->n_edges,
                                  .n_bytes = bytes_of(&slac->memory) +
                                             bytes_of(&slac->pair_memory)};
    if (slac->grid != NULL) {
        out->n_bytes += vxd_hashmap_n_bytes(slac->grid);
    }
    if (slac->cells != NULL) {
        out->n_bytes += vxd_hashmap_n_bytes(slac->cells);
    }
}

void vxd_slac_get_edge(const struct vxd_slac *slac, size_t edge,
                       struct vxd_slac_edge *out, double *fitness)
{
    *out = slac->edges[edge];
    *fitness = fitness_of(slac, edge);
}

enum vxd_status vxd_slac_read_poses(struct vxd_queue *queue, const struct vxd_slac *slac,
                                    struct vxd_volume_pose *out, struct vxd_err *err)
{
    size_t n = slac->state.n_fragments;
    double *host = malloc(12 * n * sizeof *host);
    enum vxd_status status;

    if (host == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory");
    }
    VXD_TRY(vxd_slac_read(queue, slac->state.poses, 12 * n * sizeof *host, host, err));
    for (size_t i = 0; i < n; i++) {
        memcpy(out[i].rotation, host + 12 * i, sizeof out[i].rotation);
        for (int a = 0; a < 3; a++) {
            out[i].translation[a] = host[12 * i + 9 + (size_t)a] + slac->middle[a];
        }
    }
out:
    free(host);
    return status;
}

const struct vxd_hashmap *vxd_slac_grid(const struct vxd_slac *slac)
{
    return slac->grid;
}

struct vxd_hashmap *vxd_slac_take_grid(struct vxd_slac *slac)
{
    struct vxd_hashmap *grid = slac->grid;

    slac->grid = NULL;
    return grid;
}
