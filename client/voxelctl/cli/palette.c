// SPDX-License-Identifier: Apache-2.0
/* Parses the materials of a scene. */
#include <string.h>

#include "client/voxelctl/cli/cli.h"

/* Parses RRGGBB. */
static bool parse_rgb(const char *text, uint32_t *out)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    size_t n = strlen(text);

    *out = 0;
    for (size_t i = 0; i < n; i++) {
        const char *digit = strchr(digits, text[i]);

        if (digit == NULL) {
            return false;
        }
        *out = *out * 16 + (uint32_t)(digit - digits) % 16;
    }
    return n == 6;
}

static bool add_one(struct ctl_palette *palette, const char *text)
{
    size_t i = palette->n;
    size_t n_name = strcspn(text, ":");

    if (i == CTL_MAX_PALETTE || n_name >= sizeof palette->names[i] ||
        text[n_name] == '\0' ||
        !parse_rgb(text + n_name + 1, &palette->materials[i].rgb)) {
        return false;
    }
    memcpy(palette->names[i], text, n_name);
    palette->names[i][n_name] = '\0';
    palette->materials[i].name = palette->names[i];
    palette->n++;
    return true;
}

/* The 19 classes of SemanticKITTI in the order of its networks' labels, with its colours. */
static const char *const semantic_kitti[] = {
    "car:6496f5",           "bicycle:64e6f5", "motorcycle:1e3c96",  "truck:501eb4",
    "other-vehicle:6450fa", "person:ff1e1e",  "bicyclist:ff28c8",   "motorcyclist:961e5a",
    "road:ff00ff",          "parking:ff96ff", "sidewalk:4b004b",    "other-ground:af004b",
    "building:ffc800",      "fence:ff7832",   "vegetation:00af00",  "trunk:873c00",
    "terrain:96f050",       "pole:fff096",    "traffic-sign:ff0000"};

bool ctl_add_material(struct ctl_palette *palette, const char *text)
{
    bool is_right = true;

    if (strcmp(text, "semantickitti") != 0) {
        return add_one(palette, text);
    }
    for (size_t i = 0; i < sizeof semantic_kitti / sizeof semantic_kitti[0]; i++) {
        is_right = is_right && add_one(palette, semantic_kitti[i]);
    }
    return is_right;
}
