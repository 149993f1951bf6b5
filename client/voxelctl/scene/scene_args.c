// SPDX-License-Identifier: Apache-2.0
/* Parses the command line of voxelctl scene: one list of options, of which each
 * subcommand takes some. */
#include <string.h>

#include "client/voxelctl/scene/scene_commands.h"

/* The options by enum ctl_scene_option. */
static const struct ctl_own_option known[] = {
    {"size", "metres > 0", false},
    {"depth", "4 to 21", false},
    {"material-bits", "0, 4, 8 or 16", false},
    {"track-free", "", true},
    {"origin", "three numbers x,y,z", false},
    {"frame", "a name", false},
    {"palette", "NAME:RRGGBB, at most 256 times, or semantickitti", false},
    {"max-bytes", "a whole number", false},
    {"missing-ok", "", true},
    {"box", "six numbers, low x,y,z and high x,y,z", false},
    {"ball", "x,y,z,radius", false},
    {"capsule", "x,y,z,x,y,z,radius", false},
    {"half-space", "nx,ny,nz,offset", false},
    {"points", "a file; at most 64 times", false},
    {"noise", "amplitude,cell bits,seed, after --ball", false},
    {"fill", "a material, after a shape", false},
    {"erase", "goes after a shape", true},
    {"free", "goes after a shape", true},
    {"paint", "a material, after a shape", false},
    {"replace", "from,to: two materials, after a shape", false},
    {"erode", "1 to 6, after a shape", false},
    {"dilate", "1 to 6, after a shape", false},
    {"copy-from", "x,y,z, after --box", false},
    {"turn", "nine of 0, 1, -1, after --copy-from", false},
    {"copy-empty", "goes after --copy-from", true},
    {"operations", "a JSON file", false},
    {"in-voxels", "", true},
    {"if-version", "a whole number", false},
    {"scene", "a name", false},
    {"poses", "a file", false},
    {"format", "a format", false},
    {"no-carve", "", true},
    {"max-range", "metres >= 0", false},
    {"rule", "constant, label, colour, ramp or height", false},
    {"material", "0 to 65535", false},
    {"field", "a name", false},
    {"range", "low,high", false},
    {"retry", "seconds, at most an hour", false},
    {"radius", "metres > 0", false},
    {"counts", "", true},
    {"out", "a file", false},
    {"level", "0 to 21", false},
    {"dense", "", true},
    {"materials", "", true},
    {"network", "a name", false},
    {"labels", "LABEL=MATERIAL,... or a file of such", false},
    {"output", "a name", false},
    {"expect-digest", "hexadecimal digits", false},
    {"heightfield", "a file; at most 64 files", false},
    {"grid", "x,y,cell,low z, after --heightfield", false},
    {"point-materials", "a file, after --points", false},
    {"keep", "1 to 4096 versions", false},
    {"keep-seconds", "a whole number", false},
    {"durable", "always, everysec or off", false},
    {"journal-max-bytes", "a whole number", false},
    {"of", "a version", false},
    {"at", "a version or a snapshot", false},
    {"replace", "", true},
    {"drop", "", true},
    {"from", "a version or a snapshot", false},
    {"to", "a version or a snapshot", false},
    {"to-scene", "a name", false},
    {"limit", "1 to 10000", false},
    {"dry-run", "", true},
    {"fusion", "last or log-odds", false},
    {"log-odds",
     "hit,miss,clamp low,clamp high,occupied: probabilities, 0 = the usual one", false},
    {"discretize", "", true},
    {"half-life", "seconds > 0", false},
    {"elapsed", "seconds > 0", false},
    {"until", "nanoseconds", false},
    {"factor", "above 0 and below 1", false},
    {"step", "log-odds > 0", false},
    {"keep-ball", "x,y,z,radius", false},
    {"pin", "goes after a shape", true},
    {"unpin", "goes after a shape", true},
    {"leave", "goes after a shape", true},
    {"pinned", "", true},
    {"ground", "", true},
    {"min-hits", "a whole number", false},
    {"no-speckles", "", true},
    {"label-votes", "2 to 4", false},
    {"estimate", "", true},
    {"odometry", "a name", false},
};

enum {
    N_KNOWN = sizeof known / sizeof known[0],
    AN_HOUR_S = 3600,
    MAX_DEPTH = 21,
    MAX_VERSIONS = 4096,
    MAX_LOG = 10000
};

_Static_assert((int)N_KNOWN == CTL_SCENE_END - CTL_OPT_FIRST_OWN, "by number");
_Static_assert((int)N_KNOWN <= CTL_MAX_OWN, "a bit each");

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

/* Parses NAME:RRGGBB; the name may be empty. */
static bool add_material(struct ctl_scene_args *args, const char *text)
{
    size_t i = args->n_palette;
    size_t n_name = strcspn(text, ":");

    if (i == CTL_SCENE_MAX_PALETTE || n_name >= sizeof args->palette_names[i] ||
        text[n_name] == '\0' || !parse_rgb(text + n_name + 1, &args->palette[i].rgb)) {
        return false;
    }
    memcpy(args->palette_names[i], text, n_name);
    args->palette[i].name = args->palette_names[i];
    args->n_palette++;
    return true;
}

/* The 19 classes of SemanticKITTI in the order of its networks' labels, with its colours. */
static const char *const semantic_kitti[] = {
    "car:6496f5",           "bicycle:64e6f5", "motorcycle:1e3c96",  "truck:501eb4",
    "other-vehicle:6450fa", "person:ff1e1e",  "bicyclist:ff28c8",   "motorcyclist:961e5a",
    "road:ff00ff",          "parking:ff96ff", "sidewalk:4b004b",    "other-ground:af004b",
    "building:ffc800",      "fence:ff7832",   "vegetation:00af00",  "trunk:873c00",
    "terrain:96f050",       "pole:fff096",    "traffic-sign:ff0000"};

/* Takes one material, or a palette of ours by its name. */
static bool add_materials(struct ctl_scene_args *args, const char *text)
{
    if (strcmp(text, "semantickitti") != 0) {
        return add_material(args, text);
    }
    for (size_t i = 0; i < sizeof semantic_kitti / sizeof semantic_kitti[0]; i++) {
        if (!add_material(args, semantic_kitti[i])) {
            return false;
        }
    }
    return true;
}

static bool parse_bits(const char *text, uint32_t *out)
{
    return ctl_parse_u32(text, 0, 16, out) &&
           (*out == 0 || *out == 4 || *out == 8 || *out == 16);
}

/* Parses --box of an export. */
static bool parse_box(const char *text, struct voxeld_scene_box *out)
{
    double numbers[6];

    if (ctl_parse_doubles(text, numbers, 6) != 6) {
        return false;
    }
    memcpy(out->low, numbers, sizeof out->low);
    memcpy(out->high, numbers + 3, sizeof out->high);
    return true;
}

/* Parses a version, which is all digits, or the name of a snapshot. */
static bool parse_at(const char *text, struct voxeld_scene_at *out)
{
    *out = (struct voxeld_scene_at){0};
    if (text[strspn(text, "0123456789")] != '\0') {
        out->snapshot = text;
        return true;
    }
    return ctl_parse_u64(text, &out->version) && out->version > 0;
}

static bool take_choice(struct ctl_scene_args *args, enum ctl_scene_option id,
                        const char *value)
{
    static const char *const rules[] = {"constant", "label",  "colour",
                                        "ramp",     "height", NULL};
    int choice =
        id == CTL_SCENE_RULE ? ctl_parse_choice(value, rules) : ctl_parse_fsync(value);

    if (id == CTL_SCENE_RULE) {
        args->rule = (enum voxeld_scene_rule)choice;
    } else {
        args->fsync = (enum voxeld_scene_fsync)choice;
    }
    return choice >= 0;
}

static bool take_fusion(struct ctl_scene_args *args, const char *value)
{
    static const char *const names[] = {"last", "log-odds", NULL};
    int choice = ctl_parse_choice(value, names);

    args->fusion = (enum voxeld_scene_fusion)(choice + VOXELD_FUSION_LAST);
    return choice >= 0;
}

static bool is_positive(const char *value, double *out)
{
    return ctl_parse_doubles(value, out, 1) == 1 && *out > 0;
}

/* Takes an option of a decay. */
static bool take_decay(struct ctl_scene_args *args, enum ctl_scene_option id,
                       const char *value)
{
    switch (id) {
    case CTL_SCENE_HALF_LIFE:
        return is_positive(value, &args->half_life_s);
    case CTL_SCENE_ELAPSED:
        return is_positive(value, &args->elapsed_s);
    case CTL_SCENE_UNTIL:
        return ctl_parse_u64(value, &args->until_ns) && args->until_ns <= INT64_MAX;
    case CTL_SCENE_FACTOR:
        return is_positive(value, &args->factor) && args->factor < 1;
    case CTL_SCENE_STEP:
        return is_positive(value, &args->step);
    case CTL_SCENE_MIN_HITS:
        return ctl_parse_u32(value, 0, UINT32_MAX, &args->min_hits);
    case CTL_SCENE_KEEP_BALL:
        return ctl_parse_doubles(value, args->keep_ball, 4) == 4 &&
               args->keep_ball[3] > 0;
    default: /* a flag */
        return true;
    }
}

static bool take_version(struct ctl_scene_args *args, enum ctl_scene_option id,
                         const char *value)
{
    switch (id) {
    case CTL_SCENE_KEEP:
        return ctl_parse_u32(value, 1, MAX_VERSIONS, &args->keep_versions);
    case CTL_SCENE_KEEP_SECONDS:
        return ctl_parse_u64(value, &args->keep_seconds);
    case CTL_SCENE_DURABLE:
        return take_choice(args, id, value);
    case CTL_SCENE_JOURNAL_BYTES:
        return ctl_parse_u64(value, &args->journal_max_bytes);
    case CTL_SCENE_OF:
        return ctl_parse_u64(value, &args->of_version) && args->of_version > 0;
    case CTL_SCENE_AT:
        return parse_at(value, &args->at);
    case CTL_SCENE_FROM:
        return parse_at(value, &args->from);
    case CTL_SCENE_TO:
        return parse_at(value, &args->to);
    case CTL_SCENE_FUSION:
        return take_fusion(args, value);
    case CTL_SCENE_LOG_ODDS:
        return ctl_parse_doubles(value, args->log_odds, 5) == 5;
    case CTL_SCENE_LABEL_VOTES:
        return ctl_parse_u32(value, 2, 4, &args->label_votes);
    case CTL_SCENE_TO_SCENE:
        args->to_scene = value;
        return true;
    case CTL_SCENE_LIMIT:
        return ctl_parse_u32(value, 1, MAX_LOG, &args->limit);
    default:
        return take_decay(args, id, value);
    }
}

static bool take_text(struct ctl_scene_args *args, enum ctl_scene_option id,
                      const char *value)
{
    switch (id) {
    case CTL_SCENE_FRAME:
        args->frame_id = value;
        return true;
    case CTL_SCENE_OPERATIONS:
        args->json = value;
        return true;
    case CTL_SCENE_NAME:
        args->scene = value;
        return true;
    case CTL_SCENE_POSES:
        args->poses = value;
        return true;
    case CTL_SCENE_FORMAT:
        args->format = value;
        return true;
    case CTL_SCENE_FIELD:
        args->field = value;
        return true;
    case CTL_SCENE_NETWORK:
        args->network = value;
        return true;
    case CTL_SCENE_LABELS:
        args->labels = value;
        return true;
    case CTL_SCENE_ODOMETRY:
        args->odometry = value;
        return true;
    case CTL_SCENE_OUTPUT:
        args->output = value;
        return true;
    case CTL_SCENE_DIGEST:
        args->digest = value;
        return true;
    case CTL_SCENE_OUT:
        args->out = value;
        return ctl_has_ending(value, ".npy") || ctl_has_ending(value, ".npz");
    default:
        return take_version(args, id, value);
    }
}

static bool take_option(struct ctl_scene_args *args, enum ctl_scene_option id,
                        const char *value)
{
    switch (id) {
    case CTL_SCENE_SIZE:
        return ctl_parse_doubles(value, &args->size_m, 1) == 1 && args->size_m > 0;
    case CTL_SCENE_DEPTH:
        return ctl_parse_u32(value, 4, MAX_DEPTH, &args->depth);
    case CTL_SCENE_BITS:
        return parse_bits(value, &args->material_bits);
    case CTL_SCENE_ORIGIN:
        return ctl_parse_doubles(value, args->origin_m, 3) == 3;
    case CTL_SCENE_PALETTE:
        return add_materials(args, value);
    case CTL_SCENE_MAX_BYTES:
        return ctl_parse_u64(value, &args->max_bytes);
    case CTL_SCENE_BOX:
        return parse_box(value, &args->box);
    case CTL_SCENE_IF_VERSION:
        return ctl_parse_u64(value, &args->if_version);
    case CTL_SCENE_MAX_RANGE:
        return ctl_parse_between(value, 0, 1e9, &args->max_range_m);
    case CTL_SCENE_RULE:
        return take_choice(args, id, value);
    case CTL_SCENE_MATERIAL:
        return ctl_parse_u32(value, 0, UINT16_MAX, &args->material);
    case CTL_SCENE_RANGE:
        return ctl_parse_doubles(value, args->range, 2) == 2;
    case CTL_SCENE_RETRY:
        return ctl_parse_between(value, 0, AN_HOUR_S, &args->retry_s);
    case CTL_SCENE_RADIUS:
        return ctl_parse_doubles(value, &args->radius_m, 1) == 1 && args->radius_m > 0;
    case CTL_SCENE_LEVEL:
        return ctl_parse_u32(value, 0, MAX_DEPTH, &args->level);
    default:
        return take_text(args, id, value);
    }
}

static bool take(void *user, int id, const char *value)
{
    struct ctl_scene_args *args = user;
    bool is_shape = args->makes_edits && (CTL_SCENE_BIT(id) & CTL_SCENE_SHAPE_BITS) != 0;

    args->given |= CTL_SCENE_BIT(id);
    return is_shape ? ctl_scene_take_shape(args, (enum ctl_scene_option)id, value)
                    : take_option(args, (enum ctl_scene_option)id, value);
}

int ctl_scene_parse(struct ctl_globals *globals, const struct ctl_scene_sub *sub,
                    int argc, char **argv, struct ctl_scene_args *args, bool *go_on)
{
    const struct ctl_own_options own = {.known = known,
                                        .n_known = N_KNOWN,
                                        .taken = sub->options,
                                        .n_min = sub->n_min,
                                        .n_max = sub->n_max,
                                        .take = take,
                                        .args = args};
    int result = CTL_OK;

    *go_on = false;
    args->makes_edits = sub->makes_edits;
    if (ctl_take_own_options(globals, &sub->command, &own, argc, argv, &result)) {
        return result;
    }
    args->words = (const char *const *)argv + optind;
    args->n_words = (size_t)(argc - optind);
    result = sub->check != NULL ? sub->check(args) : CTL_OK;
    *go_on = result == CTL_OK;
    return result;
}
