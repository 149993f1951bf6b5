// SPDX-License-Identifier: Apache-2.0
/* voxelctl volume clear, decay: which part. */
#include <string.h>

#include "client/voxelctl/volume/volume_commands.h"

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

/* What a change is about: everything, a box, or what is outside of a ball. */
struct region {
    bool all;
    bool has_box;
    struct voxeld_volume_box box;
    double ball[4];
};

static int parse_region(const char *command, const struct ctl_volume_args *args,
                        struct region *out)
{
    *out = (struct region){.all = ctl_volume_has(args, CTL_VOLUME_ALL)};
    if (ctl_volume_parse_box(args->box, &out->has_box, &out->box) != CTL_OK) {
        return CTL_USAGE;
    }
    if (args->outside != NULL &&
        (ctl_parse_doubles(args->outside, out->ball, 4) != 4 || !(out->ball[3] > 0))) {
        return ctl_usage(command,
                         "--outside \"%s\": x,y,z,radius is right, the radius above 0",
                         args->outside);
    }
    if ((out->all ? 1 : 0) + (out->has_box ? 1 : 0) + (args->outside != NULL ? 1 : 0) !=
        1) {
        return ctl_usage(command, "one of --all, --box and --outside is needed");
    }
    return CTL_OK;
}

int ctl_volume_fill_clear(const struct ctl_volume_args *args,
                          struct voxeld_volume_clear_request *request)
{
    struct region region;

    if (parse_region("volume clear", args, &region) != CTL_OK) {
        return CTL_USAGE;
    }
    request->all = region.all;
    request->has_box = region.has_box;
    request->box = region.box;
    memcpy(request->centre, region.ball, sizeof request->centre);
    request->radius_m = region.ball[3];
    return CTL_OK;
}

int ctl_volume_fill_decay(const struct ctl_volume_args *args,
                          struct voxeld_volume_decay_request *request)
{
    struct region region;

    if (parse_region("volume decay", args, &region) != CTL_OK) {
        return CTL_USAGE;
    }
    request->all = region.all;
    request->has_box = region.has_box;
    request->box = region.box;
    memcpy(request->centre, region.ball, sizeof request->centre);
    request->radius_m = region.ball[3];
    return CTL_OK;
}
