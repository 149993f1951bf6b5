// SPDX-License-Identifier: Apache-2.0
/* voxelctl map merge: a running map of a drive. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/voxelctl/generated/map_args.h"

struct totals {
    size_t n_files;
    uint64_t n_points;
    uint64_t n_used;
    uint64_t n_new;
    uint64_t n_entries;
    double engine_ms;
};

static void add(struct totals *totals, const struct voxeld_voxels *v)
{
    totals->n_files++;
    for (size_t i = 0; i < v->n_items; i++) {
        totals->n_points += v->items[i].n_points;
        totals->n_used += v->items[i].n_used;
    }
    totals->n_new += v->n_merged;
    totals->n_entries = v->n_map_entries;
    totals->engine_ms += v->engine_ms;
}

struct merge {
    struct voxeld_client *client;
    struct voxeld_voxelize_request request;
    struct totals totals;
};

static enum voxeld_status merge_cloud(void *user, const struct voxeld_call *call,
                                      const struct voxeld_cloud *cloud,
                                      struct voxeld_error *error)
{
    struct merge *merge = user;
    struct voxeld_voxels *voxels = NULL;
    enum voxeld_status status;

    merge->request.call = *call;
    merge->request.clouds = cloud;
    merge->request.n_clouds = 1;
    status = voxeld_voxelize(merge->client, &merge->request, &voxels, error);
    if (status == VOXELD_OK) {
        add(&merge->totals, voxels);
        voxeld_voxels_free(voxels);
    }
    return status;
}

static void print_totals(const struct ctl_globals *globals, const char *map,
                         const struct totals *t)
{
    char text[4][32];

    if (globals->json) {
        (void)fputc('{', stdout);
        ctl_json_member_string(stdout, true, "map", map);
        ctl_json_member_count(stdout, false, "n_files", t->n_files);
        ctl_json_member_count(stdout, false, "n_points", t->n_points);
        ctl_json_member_count(stdout, false, "n_used", t->n_used);
        ctl_json_member_count(stdout, false, "n_new", t->n_new);
        ctl_json_member_count(stdout, false, "n_entries", t->n_entries);
        ctl_json_member_number(stdout, false, "engine_ms", t->engine_ms);
        (void)fputs("}\n", stdout);
    } else {
        (void)printf(
            "%s: %s of %s points of %zu files merged, %s voxels are new, it has %s; "
            "%.1f ms in the engine\n",
            map, ctl_thousands(t->n_used, text[0]), ctl_thousands(t->n_points, text[1]),
            t->n_files, ctl_thousands(t->n_new, text[2]),
            ctl_thousands(t->n_entries, text[3]), t->engine_ms);
    }
}

int ctl_map_merge(struct voxeld_client *client, const struct ctl_globals *globals,
                  const struct ctl_map_args *args)
{
    struct merge merge = {
        .client = client,
        .request = {.features = args->features.names,
                    .n_features = args->features.n,
                    .no_features = ctl_map_has(args, CTL_MAP_NO_FEATURES),
                    .rule = VOXELD_RULE_MINKOWSKI,
                    .outputs = VOXELD_OUTPUT_COUNTS, /* a small reply: the voxels are in
                                                      * the map */
                    .merge = {.map = args->map,
                              .create = !ctl_map_has(args, CTL_MAP_NO_CREATE),
                              .ttl_s = args->ttl,
                              .max_bytes = args->max_bytes}},
    };
    struct ctl_drive drive = {
        .paths = args->words,
        .n = args->n_words,
        .format = args->format,
        .retry_s = ctl_map_has(args, CTL_MAP_RETRY) ? args->retry : CTL_DRIVE_RETRY_S,
        .send = merge_cloud,
        .user = &merge,
    };
    struct voxeld_pose *poses = NULL;
    int result;

    memcpy(merge.request.size_m, args->size, sizeof merge.request.size_m);
    memcpy(merge.request.origin_m, args->origin, sizeof merge.request.origin_m);
    if (args->poses != NULL &&
        ctl_read_poses(args->poses, args->n_words, &poses) != CTL_OK) {
        return CTL_FAILED;
    }
    drive.poses = poses;
    result = ctl_drive_send(&drive);
    free(poses);
    if (merge.totals.n_files > 0) {
        int flushed;

        print_totals(globals, args->map, &merge.totals);
        flushed = ctl_flush();
        result = flushed != CTL_OK ? flushed : result;
    }
    return result;
}
