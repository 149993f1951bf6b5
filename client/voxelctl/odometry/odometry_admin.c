// SPDX-License-Identifier: Apache-2.0
/* What voxelctl odometry create, list, info and reset read, and print for people. */
#include <inttypes.h>

#include "client/voxelctl/odometry/odometry_commands.h"

void ctl_odometry_print_line(const struct voxeld_odometry_info *o)
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

void ctl_odometry_print_info(const struct voxeld_odometry_info *o)
{
    static const char *const methods[] = {"points to planes", "points to points"};
    char text[2][32];

    ctl_odometry_print_line(o);
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

void ctl_odometry_print_list(const struct voxeld_odometries *odometries)
{
    struct ctl_table table;
    char text[CTL_NUMBER_BYTES];

    if (odometries->n_odometries == 0) {
        (void)fputs("no odometries\n", stdout);
        return;
    }
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

int ctl_odometry_fill_create(const struct ctl_odometry_args *args,
                             struct voxeld_odometry_create_request *request)
{
    return args->initial != NULL ? ctl_read_pose(args->initial, &request->initial)
                                 : CTL_OK;
}

int ctl_odometry_fill_reset(const struct ctl_odometry_args *args,
                            struct voxeld_odometry_reset_request *request)
{
    return args->initial != NULL ? ctl_read_pose(args->initial, &request->initial)
                                 : CTL_OK;
}
