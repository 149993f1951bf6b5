// SPDX-License-Identifier: Apache-2.0
/* voxelctl volume create, drop, list, info. */
#include <inttypes.h>
#include <string.h>

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

static void print_more(const struct voxeld_volume_info *v)
{
    char number[32];

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

int ctl_volume_create(struct voxeld_client *client, const struct ctl_globals *globals,
                      const struct ctl_volume_args *args)
{
    struct voxeld_volume_create_request request = {0};
    struct voxeld_volumes *volumes;
    struct voxeld_error error;

    ctl_volume_create_request(args, &request);
    if (voxeld_volume_create(client, &request, &volumes, &error) != VOXELD_OK) {
        return ctl_failed(request.volume, &error);
    }
    if (globals->json) {
        (void)printf("{\"existed\": %s, \"volume\": ",
                     volumes->existed ? "true" : "false");
        ctl_volume_print_json(&volumes->volumes[0]);
        (void)fputs("}\n", stdout);
    } else {
        (void)printf("%s ", volumes->existed ? "there already:" : "made");
        ctl_volume_print_line(&volumes->volumes[0]);
    }
    voxeld_volumes_free(volumes);
    return ctl_flush();
}

int ctl_volume_drop(struct voxeld_client *client, const struct ctl_globals *globals,
                    const struct ctl_volume_args *args)
{
    const char *name = args->words[0];
    bool existed = false;
    struct voxeld_error error;

    if (voxeld_volume_drop(client, NULL, name,
                           ctl_volume_has(args, CTL_VOLUME_MISSING_OK), &existed,
                           &error) != VOXELD_OK) {
        return ctl_failed(name, &error);
    }
    ctl_print_dropped(globals, existed, name);
    return ctl_flush();
}

static void print_table(const struct voxeld_volumes *volumes)
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

int ctl_volume_list(struct voxeld_client *client, const struct ctl_globals *globals,
                    const struct ctl_volume_args *args)
{
    struct voxeld_volumes *volumes;
    struct voxeld_error error;

    (void)args;
    if (voxeld_volume_list(client, NULL, &volumes, &error) != VOXELD_OK) {
        return ctl_failed("volume list", &error);
    }
    if (globals->json) {
        (void)fputs("{\"volumes\": [", stdout);
    }
    for (size_t i = 0; i < volumes->n_volumes && globals->json; i++) {
        (void)fputs(i > 0 ? ", " : "", stdout);
        ctl_volume_print_json(&volumes->volumes[i]);
    }
    if (!globals->json && volumes->n_volumes > 0) {
        print_table(volumes);
    }
    ctl_print_total(globals, volumes->n_volumes, "volumes", volumes->n_bytes,
                    volumes->limit_bytes);
    voxeld_volumes_free(volumes);
    return ctl_flush();
}

int ctl_volume_info(struct voxeld_client *client, const struct ctl_globals *globals,
                    const struct ctl_volume_args *args)
{
    struct voxeld_volumes *volumes;
    struct voxeld_error error;

    if (voxeld_volume_get(client, NULL, args->words[0], &volumes, &error) != VOXELD_OK) {
        return ctl_failed(args->words[0], &error);
    }
    if (globals->json) {
        ctl_volume_print_json(&volumes->volumes[0]);
        (void)fputc('\n', stdout);
    } else {
        ctl_volume_print_line(&volumes->volumes[0]);
        print_more(&volumes->volumes[0]);
    }
    voxeld_volumes_free(volumes);
    return ctl_flush();
}
