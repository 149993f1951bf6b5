// SPDX-License-Identifier: Apache-2.0
/* voxelctl odometry create, drop, list, info, reset. */
#include <inttypes.h>

#include "client/voxelctl/odometry/odometry_commands.h"

static void print_line(const struct voxeld_odometry_info *o)
{
    char text[3][32];
    const double *t = o->T_map_sensor.translation_m;

    (void)printf(
        "%s: %s scans, %s of them lost, at %.3f, %.3f, %.3f; map of %s voxels of "
        "%g m up to %g m away\n",
        o->name, ctl_thousands(o->n_scans, text[0]), ctl_thousands(o->n_lost, text[1]),
        t[0], t[1], t[2], ctl_thousands(o->n_voxels, text[2]), o->voxel_size_m,
        o->max_range_m);
}

static void print_more(const struct voxeld_odometry_info *o)
{
    static const char *const methods[] = {"points to planes", "points to points"};
    char text[2][32];

    (void)printf("method      %s; threshold %g m\n", methods[o->method == 0 ? 0 : 1],
                 o->threshold_m);
    (void)printf("lost        below %g inliers a point, %g of constraint; beyond %g m or "
                 "%g degrees; %" PRIu64 " in a row now\n",
                 o->min_fitness, o->min_constraint, o->max_translation_m,
                 o->max_rotation_deg, o->n_lost_in_a_row);
    (void)printf("memory      %s bytes of %s\n", ctl_thousands(o->n_bytes, text[0]),
                 ctl_thousands(o->max_bytes, text[1]));
    if (o->ttl_s > 0) {
        (void)printf("dropped     when unused for %g s; %.0f s are left\n", o->ttl_s,
                     o->ttl_left_s);
    }
    (void)printf("owner       %s\n", o->owner[0] != '\0' ? o->owner : "nobody");
}

int ctl_odometry_create(struct voxeld_client *client, const struct ctl_globals *globals,
                        const struct ctl_odometry_args *args)
{
    struct voxeld_odometry_create_request request = {0};
    struct voxeld_odometries *odometries;
    struct voxeld_error error;

    ctl_odometry_create_request(args, &request);
    if (args->initial != NULL &&
        ctl_read_pose(args->initial, &request.initial) != CTL_OK) {
        return CTL_FAILED;
    }
    if (voxeld_odometry_create(client, &request, &odometries, &error) != VOXELD_OK) {
        return ctl_failed(request.odometry, &error);
    }
    if (globals->json) {
        (void)printf("{\"existed\": %s, \"odometry\": ",
                     odometries->existed ? "true" : "false");
        ctl_odometry_print_json(&odometries->odometries[0]);
        (void)fputs("}\n", stdout);
    } else {
        (void)printf("%s ", odometries->existed ? "there already:" : "made");
        print_line(&odometries->odometries[0]);
    }
    voxeld_odometries_free(odometries);
    return ctl_flush();
}

int ctl_odometry_drop(struct voxeld_client *client, const struct ctl_globals *globals,
                      const struct ctl_odometry_args *args)
{
    const char *name = args->words[0];
    bool existed = false;
    struct voxeld_error error;

    if (voxeld_odometry_drop(client, NULL, name,
                             ctl_odometry_has(args, CTL_ODOMETRY_MISSING_OK), &existed,
                             &error) != VOXELD_OK) {
        return ctl_failed(name, &error);
    }
    ctl_print_dropped(globals, existed, name);
    return ctl_flush();
}

static void print_table(const struct voxeld_odometries *odometries)
{
    struct ctl_table table;
    char text[CTL_NUMBER_BYTES];

    ctl_table_begin(&table,
                    "odometry|>scans|>lost|position m|>map voxels|>voxel m|>range "
                    "m|>memory|owner");
    for (size_t i = 0; i < odometries->n_odometries; i++) {
        const struct voxeld_odometry_info *o = &odometries->odometries[i];
        const double *t = o->T_map_sensor.translation_m;

        ctl_table_cell(&table, "%s", o->name);
        ctl_table_cell(&table, "%s", ctl_thousands(o->n_scans, text));
        ctl_table_cell(&table, "%s", ctl_thousands(o->n_lost, text));
        ctl_table_cell(&table, "%.3f, %.3f, %.3f", t[0], t[1], t[2]);
        ctl_table_cell(&table, "%s", ctl_thousands(o->n_voxels, text));
        ctl_table_cell(&table, "%g", o->voxel_size_m);
        ctl_table_cell(&table, "%g", o->max_range_m);
        ctl_table_cell(&table, "%s", ctl_bytes(o->n_bytes, text));
        ctl_table_cell(&table, "%s", o->owner);
    }
    ctl_table_end(&table);
}

int ctl_odometry_list(struct voxeld_client *client, const struct ctl_globals *globals,
                      const struct ctl_odometry_args *args)
{
    struct voxeld_odometries *odometries;
    struct voxeld_error error;

    (void)args;
    if (voxeld_odometry_list(client, NULL, &odometries, &error) != VOXELD_OK) {
        return ctl_failed("odometry list", &error);
    }
    if (globals->json) {
        (void)fputs("{\"odometries\": [", stdout);
    }
    for (size_t i = 0; i < odometries->n_odometries && globals->json; i++) {
        (void)fputs(i > 0 ? ", " : "", stdout);
        ctl_odometry_print_json(&odometries->odometries[i]);
    }
    if (globals->json) {
        (void)fputs("]}\n", stdout);
    } else if (odometries->n_odometries == 0) {
        (void)fputs("no odometries\n", stdout);
    } else {
        print_table(odometries);
    }
    voxeld_odometries_free(odometries);
    return ctl_flush();
}

/* Prints one and frees it. */
static int print_one(const struct ctl_globals *globals,
                     struct voxeld_odometries *odometries)
{
    if (globals->json) {
        ctl_odometry_print_json(&odometries->odometries[0]);
        (void)fputc('\n', stdout);
    } else {
        print_line(&odometries->odometries[0]);
        print_more(&odometries->odometries[0]);
    }
    voxeld_odometries_free(odometries);
    return ctl_flush();
}

int ctl_odometry_info(struct voxeld_client *client, const struct ctl_globals *globals,
                      const struct ctl_odometry_args *args)
{
    struct voxeld_odometries *odometries;
    struct voxeld_error error;

    if (voxeld_odometry_get(client, NULL, args->words[0], &odometries, &error) !=
        VOXELD_OK) {
        return ctl_failed(args->words[0], &error);
    }
    return print_one(globals, odometries);
}

int ctl_odometry_reset(struct voxeld_client *client, const struct ctl_globals *globals,
                       const struct ctl_odometry_args *args)
{
    struct voxeld_odometry_reset_request request = {0};
    struct voxeld_odometries *odometries;
    struct voxeld_error error;

    ctl_odometry_reset_request(args, &request);
    if (args->initial != NULL &&
        ctl_read_pose(args->initial, &request.initial) != CTL_OK) {
        return CTL_FAILED;
    }
    if (voxeld_odometry_reset(client, &request, &odometries, &error) != VOXELD_OK) {
        return ctl_failed(request.odometry, &error);
    }
    return print_one(globals, odometries);
}
