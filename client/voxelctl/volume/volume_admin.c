// SPDX-License-Identifier: Apache-2.0
/* What voxelctl volume create, list and info print for people. */
#include <inttypes.h>

#include "client/voxelctl/volume/volume_commands.h"

void ctl_volume_print_line(const struct voxeld_volume_info *v)
{
    char text[3][32];

    if (v->unavailable) {
        (void)printf(
            "%s: the disk lacks a change of it, and it could not be brought back\n",
            v->name);
        return;
    }
    (void)printf("%s: %s blocks of %s images, %s bytes; voxels of %g m, truncation %g m, "
                 "blocks of %" PRIu32 "%s%s%s\n",
                 v->name, ctl_thousands(v->n_blocks, text[0]),
                 ctl_thousands(v->n_images, text[1]), ctl_thousands(v->n_bytes, text[2]),
                 v->voxel_size_m, v->truncation_m, v->block,
                 v->compact ? ", compact" : "", v->colour ? ", colour" : "",
                 v->durable ? ", durable" : "");
}

void ctl_volume_print_info(const struct voxeld_volume_info *v)
{
    char number[32];

    ctl_volume_print_line(v);
    (void)printf("origin      %g, %g, %g\nweights     up to %g\n", v->origin[0],
                 v->origin[1], v->origin[2], v->max_weight);
    if (v->max_bytes > 0) {
        (void)printf("limit       %s bytes%s\n", ctl_thousands(v->max_bytes, number),
                     v->when_full == VOXELD_VOLUME_FULL_FORGET_FARTHEST
                         ? "; then the farthest blocks are removed"
                         : "");
    }
    if (v->durable) {
        static const char *const when[] = {"always", "everysec", "off"};

        (void)printf("durable     fsync %s; a snapshot file every %s bytes of journal\n",
                     when[v->fsync], ctl_thousands(v->journal_max_bytes, number));
    }
    if (v->ttl_s > 0) {
        (void)printf("dropped     when unused for %g s; %.0f s are left\n", v->ttl_s,
                     v->ttl_left_s);
    }
    (void)printf("owner       %s\n", v->owner[0] != '\0' ? v->owner : "nobody");
    (void)printf("generation  %" PRIu64 ", stamp %" PRIu64 "\n", v->generation, v->stamp);
}

void ctl_volume_print_list(const struct voxeld_volumes *volumes)
{
    struct ctl_table table;
    char text[CTL_NUMBER_BYTES];

    ctl_table_begin(&table, "volume|>blocks|>images|>voxel m|holds|>memory|owner");
    for (size_t i = 0; i < volumes->n_volumes; i++) {
        const struct voxeld_volume_info *v = &volumes->volumes[i];

        ctl_table_cell(&table, "%s", v->name);
        if (v->unavailable) { /* the disk has not brought it back */
            ctl_table_cell(&table, "-");
            ctl_table_cell(&table, "-");
        } else {
            ctl_table_cell(&table, "%s", ctl_thousands(v->n_blocks, text));
            ctl_table_cell(&table, "%s", ctl_thousands(v->n_images, text));
        }
        ctl_table_cell(&table, "%g", v->voxel_size_m);
        ctl_table_cell(&table, "distance%s%s%s%s", v->colour ? ", colour" : "",
                       v->labels ? ", labels" : "", v->albedo ? ", albedo" : "",
                       v->durable ? ", durable" : "");
        ctl_table_cell(&table, "%s", ctl_bytes(v->n_bytes, text));
        ctl_table_cell(&table, "%s", v->owner);
    }
    ctl_table_end(&table);
}
