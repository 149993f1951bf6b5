// SPDX-License-Identifier: Apache-2.0
/* Which fragments may overlap: edges as they are given, or all pairs of fragments whose boxes in the
 * map's frame do; and the tiles in which their points look for partners. */
#include <stdlib.h>

#include "gpu/slac/slac_internal.h"

#define MARGIN_M 0.25 /* boxes are so much larger: poses move */

struct box {
    double low[3];
    double high[3];
};

static void box_of(const struct vxd_slac *slac, const struct vxd_slac_args *args,
                   size_t fragment, const float *at, struct box *box)
{
    const struct vxd_volume_pose *pose = &args->fragments[fragment].T_map_fragment;

    for (int a = 0; a < 3; a++) {
        const double *r = &pose->rotation[3 * (size_t)a];

        box->low[a] = INFINITY;
        box->high[a] = -INFINITY;
        for (size_t i = slac->firsts[fragment]; i < slac->firsts[fragment + 1]; i++) {
            double p = r[0] * (double)at[3 * i] + r[1] * (double)at[3 * i + 1] +
                       r[2] * (double)at[3 * i + 2] + pose->translation[a];

            box->low[a] = p < box->low[a] ? p : box->low[a];
            box->high[a] = p > box->high[a] ? p : box->high[a];
        }
    }
}

static bool overlap(const struct box *a, const struct box *b, double margin)
{
    for (int k = 0; k < 3; k++) {
        if (a->low[k] > b->high[k] + margin || b->low[k] > a->high[k] + margin) {
            return false;
        }
    }
    return true;
}

static enum vxd_status edges_by_boxes(struct vxd_slac *slac,
                                      const struct vxd_slac_args *args, const float *at,
                                      struct vxd_err *err)
{
    size_t n = args->n_fragments;
    double margin = slac->options.distance_m + MARGIN_M;
    struct box *boxes = malloc(n * sizeof *boxes);
    size_t n_edges = 0;
    enum vxd_status status = VXD_OK;

    if (boxes == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory");
    }
    for (size_t i = 0; i < n; i++) {
        box_of(slac, args, i, at, &boxes[i]);
    }
    for (int pass = 0; pass < 2; pass++) { /* counts, then writes */
        n_edges = 0;
        for (size_t i = 0; i < n; i++) {
            for (size_t j = i + 1; j < n; j++) {
                if (overlap(&boxes[i], &boxes[j], margin)) {
                    if (pass == 1) {
                        slac->edges[n_edges] =
                            (struct vxd_slac_edge){(int32_t)i, (int32_t)j};
                    }
                    n_edges++;
                }
            }
        }
        if (n_edges == 0) {
            VXD_TRY(vxd_fail(err, VXD_FAILED_PRECONDITION, "fragments",
                             "do not overlap: no two boxes of their points do"));
        }
        if (n_edges > VXD_SLAC_MAX_EDGES) {
            VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "edges",
                             "%zu pairs of fragments may overlap, at most %zu are "
                             "possible: say which do",
                             n_edges, VXD_SLAC_MAX_EDGES));
        }
        if (pass == 0) {
            slac->edges = malloc(n_edges * sizeof *slac->edges);
            if (slac->edges == NULL) {
                VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory"));
            }
        }
    }
    slac->n_edges = n_edges;
out:
    free(boxes);
    return status;
}

static enum vxd_status make_tiles(struct vxd_queue *queue, struct vxd_slac *slac,
                                  struct vxd_err *err)
{
    struct vxd_slac_state *s = &slac->state;
    void *tiles = NULL;
    size_t n = 0;
    enum vxd_status status;

    for (size_t e = 0; e < slac->n_edges; e++) {
        const uint32_t *first = &slac->firsts[slac->edges[e].source];

        n += (first[1] - first[0] + VXD_SLAC_TILE - 1) / VXD_SLAC_TILE;
    }
    if (n > (size_t)INT32_MAX / 2 / VXD_SLAC_TILE) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "edges",
                        "%zu points would look for partners, at most %d can: a larger "
                        "voxel_m or fewer edges take less",
                        n * VXD_SLAC_TILE, INT32_MAX / 2);
    }
    slac->edge_pairs = calloc(slac->n_edges, sizeof *slac->edge_pairs);
    slac->tiles = calloc(n, sizeof *slac->tiles);
    slac->tile_counts = calloc(n, sizeof *slac->tile_counts);
    slac->tile_firsts = calloc(n, sizeof *slac->tile_firsts);
    if (slac->edge_pairs == NULL || slac->tiles == NULL || slac->tile_counts == NULL ||
        slac->tile_firsts == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory");
    }
    s->n_tiles = n;
    n = 0;
    for (size_t e = 0; e < slac->n_edges; e++) {
        uint32_t end = slac->firsts[slac->edges[e].source + 1];

        for (uint32_t at = slac->firsts[slac->edges[e].source]; at < end;
             at += VXD_SLAC_TILE) {
            slac->tiles[n++] = (struct vxd_slac_tile){
                at, end - at < VXD_SLAC_TILE ? end - at : VXD_SLAC_TILE, (uint32_t)e,
                slac->edges[e].target};
        }
    }
    VXD_TRY(vxd_slac_take(queue, &slac->memory, n, sizeof *s->tiles, &tiles, err));
    s->tiles = tiles;
    VXD_TRY(vxd_slac_take(queue, &slac->memory, n * VXD_SLAC_TILE, sizeof *s->partners,
                          &s->partners, err));
    VXD_TRY(vxd_slac_take(queue, &slac->memory, n, sizeof *s->tile_counts,
                          &s->tile_counts, err));
    VXD_TRY(vxd_slac_take(queue, &slac->memory, n, sizeof *s->tile_firsts,
                          &s->tile_firsts, err));
    VXD_TRY(vxd_queue_copy(queue, tiles, slac->tiles, n * sizeof *slac->tiles, err));
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    return status;
}

enum vxd_status vxd_slac_make_edges(struct vxd_queue *queue, struct vxd_slac *slac,
                                    const struct vxd_slac_args *args, const float *at,
                                    struct vxd_err *err)
{
    enum vxd_status status;

    if (args->edges == NULL) {
        VXD_TRY(edges_by_boxes(slac, args, at, err));
    } else {
        slac->edges = malloc(args->n_edges * sizeof *slac->edges);
        if (slac->edges == NULL) {
            VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory"));
        }
        memcpy(slac->edges, args->edges, args->n_edges * sizeof *slac->edges);
        slac->n_edges = args->n_edges;
    }
    VXD_TRY(make_tiles(queue, slac, err));
out:
    return status;
}
