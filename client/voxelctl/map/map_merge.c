// SPDX-License-Identifier: Apache-2.0
/* voxelctl map merge: a running map of a drive. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/voxelctl/map/map_commands.h"

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

static int check(const struct ctl_map_args *args)
{
    if (args->map == NULL || !ctl_map_has(args, CTL_MAP_SIZE)) {
        return ctl_usage("map merge", "no --%s", args->map == NULL ? "map" : "size");
    }
    return CTL_OK;
}

static int merge_all(struct voxeld_client *client, const struct ctl_globals *globals,
                     const struct ctl_map_args *args)
{
    struct merge merge = {
        .client = client,
        .request = {.features = args->names.names,
                    .n_features = args->names.n,
                    .no_features = ctl_map_has(args, CTL_MAP_NO_FEATURES),
                    .rule = VOXELD_RULE_MINKOWSKI,
                    .outputs = VOXELD_OUTPUT_COUNTS, /* a small reply: the voxels are in
                                                      * the map */
                    .merge = {.map = args->map,
                              .create = !ctl_map_has(args, CTL_MAP_NO_CREATE),
                              .ttl_s = args->ttl_s,
                              .max_bytes = args->max_bytes}},
    };
    struct ctl_drive drive = {
        .paths = args->words,
        .n = args->n_words,
        .format = args->format,
        .retry_s = ctl_map_has(args, CTL_MAP_RETRY) ? args->retry_s : CTL_DRIVE_RETRY_S,
        .send = merge_cloud,
        .user = &merge,
    };
    struct voxeld_pose *poses = NULL;
    int result;

    memcpy(merge.request.size_m, args->size_m, sizeof merge.request.size_m);
    memcpy(merge.request.origin_m, args->origin_m, sizeof merge.request.origin_m);
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

const struct ctl_map_sub ctl_map_merge = {
    .command =
        {.name = "map merge",
         .help =
             "voxelctl map merge - adds point clouds to a map, as voxels\n"
             "\n"
             "usage: voxelctl map merge FILE ... --map NAME --size METRES [OPTIONS]\n"
             "\n"
             "A running map of a drive: an entry a voxel, with the number of points that "
             "ever\n"
             "fell into it (count) and the sum of each of their features (sum). Each "
             "file\n"
             "counts exactly once, also where its request had to be repeated.\n"
             "\n"
             "  --map NAME         the map; made where it is missing\n"
             "  --no-create        no: then it is an error\n"
             "  --size S | X,Y,Z   edge of a voxel, metres\n"
             "  --origin X,Y,Z     map position of the lattice's zero; default 0,0,0\n"
             "  --poses FILE       a line a file with 12 numbers, the upper rows of the "
             "4 x "
             "4\n"
             "                     matrix from sensor to map (KITTI's odometry format);\n"
             "                     default: the files are in the map's frame\n"
             "  --features A,B,..  names of the features; default x, y, z and all "
             "others\n"
             "  --no-features      count only\n"
             "  --format NAME      of the files, as of voxelctl voxelize\n"
             "  --ttl SECONDS      a map that is made goes when nobody used it for so "
             "long\n"
             "  --max-bytes N      device memory that a map that is made may take\n"
             "  --retry SECONDS    repeat a request that got no answer for so long; "
             "default "
             "10\n"
             "\n"
             "example\n"
             "  voxelctl map merge velodyne/*.bin --format kitti --poses poses.txt \\\n"
             "      --map drive --size 0.1\n"},
    .options = CTL_MAP_BIT(CTL_MAP_NAME) | CTL_MAP_BIT(CTL_MAP_NO_CREATE) |
               CTL_MAP_BIT(CTL_MAP_SIZE) | CTL_MAP_BIT(CTL_MAP_ORIGIN) |
               CTL_MAP_BIT(CTL_MAP_POSES) | CTL_MAP_BIT(CTL_MAP_FEATURES) |
               CTL_MAP_BIT(CTL_MAP_NO_FEATURES) | CTL_MAP_BIT(CTL_MAP_FORMAT) |
               CTL_MAP_BIT(CTL_MAP_TTL) | CTL_MAP_BIT(CTL_MAP_MAX_BYTES) |
               CTL_MAP_BIT(CTL_MAP_RETRY),
    .n_min = 1,
    .n_max = SIZE_MAX,
    .check = check,
    .run = merge_all,
};
