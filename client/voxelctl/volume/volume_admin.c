// SPDX-License-Identifier: Apache-2.0
/* voxelctl volume create, drop, list, info, clear. */
#include <inttypes.h>
#include <string.h>

#include "client/voxelctl/volume/volume_commands.h"

static void print_text(const struct voxeld_volume_info *v)
{
    char text[3][32];

    (void)printf("%s: %s blocks of %s images, %s bytes; voxels of %g m, truncation %g m, "
                 "blocks of %" PRIu32 "%s%s\n",
                 v->name, ctl_thousands(v->n_blocks, text[0]),
                 ctl_thousands(v->n_images, text[1]), ctl_thousands(v->n_bytes, text[2]),
                 v->voxel_size_m, v->truncation_m, v->block,
                 v->compact ? ", compact" : "", v->colour ? ", colour" : "");
}

static void print_more(const struct voxeld_volume_info *v)
{
    char number[32];

    (void)printf("origin      %g, %g, %g\nweights     up to %g\n", v->origin[0],
                 v->origin[1], v->origin[2], v->max_weight);
    if (v->max_bytes > 0) {
        (void)printf("limit       %s bytes\n", ctl_thousands(v->max_bytes, number));
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
        print_text(&volumes->volumes[0]);
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
    for (size_t i = 0; i < volumes->n_volumes; i++) {
        if (globals->json) {
            (void)fputs(i > 0 ? ", " : "", stdout);
            ctl_volume_print_json(&volumes->volumes[i]);
        } else {
            print_text(&volumes->volumes[i]);
        }
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
        print_text(&volumes->volumes[0]);
        print_more(&volumes->volumes[0]);
    }
    voxeld_volumes_free(volumes);
    return ctl_flush();
}

int ctl_volume_parse_box(const char *text, bool *has_box, struct voxeld_volume_box *out)
{
    double numbers[6];

    *has_box = text != NULL;
    if (text == NULL) {
        return CTL_OK;
    }
    if (ctl_parse_doubles(text, numbers, 6) != 6) {
        return ctl_usage("volume",
                         "--box \"%s\": six numbers are right: the low corner "
                         "x,y,z and the high one",
                         text);
    }
    memcpy(out->low, numbers, sizeof out->low);
    memcpy(out->high, numbers + 3, sizeof out->high);
    return CTL_OK;
}

int ctl_volume_clear(struct voxeld_client *client, const struct ctl_globals *globals,
                     const struct ctl_volume_args *args)
{
    struct voxeld_volume_clear_request request = {
        .volume = args->words[0], .all = ctl_volume_has(args, CTL_VOLUME_ALL)};
    struct voxeld_volume_change *change;
    struct voxeld_error error;
    double ball[4] = {0};
    char text[2][32];

    if (ctl_volume_parse_box(args->box, &request.has_box, &request.box) != CTL_OK) {
        return CTL_USAGE;
    }
    if (args->outside != NULL &&
        (ctl_parse_doubles(args->outside, ball, 4) != 4 || !(ball[3] > 0))) {
        return ctl_usage("volume clear",
                         "--outside \"%s\": x,y,z,radius is right, the radius above 0",
                         args->outside);
    }
    if ((request.all ? 1 : 0) + (request.has_box ? 1 : 0) +
            (args->outside != NULL ? 1 : 0) !=
        1) {
        return ctl_usage("volume clear", "one of --all, --box and --outside is needed");
    }
    memcpy(request.centre, ball, sizeof request.centre);
    request.radius_m = ball[3];
    if (voxeld_volume_clear(client, &request, &change, &error) != VOXELD_OK) {
        return ctl_failed(request.volume, &error);
    }
    if (globals->json) {
        ctl_volume_clear_json(change);
    } else {
        (void)printf("%s: %s blocks removed, it has %s\n", request.volume,
                     ctl_thousands(change->n_removed, text[0]),
                     ctl_thousands(change->n_blocks, text[1]));
    }
    voxeld_volume_change_free(change);
    return ctl_flush();
}
