// SPDX-License-Identifier: Apache-2.0
/* The command line of voxelctl scene: one list of options, of which each subcommand takes
 * some. */
#include <string.h>

#include "client/files/number.h"
#include "client/voxelctl/scene.h"

struct option_help {
    const char *name;
    const char *right; /* what its value may be */
    enum ctl_scene_option id;
    bool is_flag;
};

static const struct option_help known[] = {
    {"size", "metres > 0", CTL_SCENE_SIZE, false},
    {"depth", "4 to 21", CTL_SCENE_DEPTH, false},
    {"material-bits", "0, 4, 8 or 16", CTL_SCENE_BITS, false},
    {"track-free", "", CTL_SCENE_TRACK_FREE, true},
    {"origin", "three numbers x,y,z", CTL_SCENE_ORIGIN, false},
    {"frame", "a name", CTL_SCENE_FRAME, false},
    {"palette", "NAME:RRGGBB, at most 256 times", CTL_SCENE_PALETTE, false},
    {"max-bytes", "a whole number", CTL_SCENE_MAX_BYTES, false},
    {"missing-ok", "", CTL_SCENE_MISSING_OK, true},
    {"box", "six numbers, low x,y,z and high x,y,z", CTL_SCENE_BOX, false},
    {"ball", "x,y,z,radius", CTL_SCENE_BALL, false},
    {"capsule", "x,y,z,x,y,z,radius", CTL_SCENE_CAPSULE, false},
    {"half-space", "nx,ny,nz,offset", CTL_SCENE_HALF_SPACE, false},
    {"points", "a file; at most 64 times", CTL_SCENE_POINTS, false},
    {"noise", "amplitude,cell bits,seed, after --ball", CTL_SCENE_NOISE, false},
    {"fill", "a material, after a shape", CTL_SCENE_FILL, false},
    {"erase", "goes after a shape", CTL_SCENE_ERASE, true},
    {"free", "goes after a shape", CTL_SCENE_FREE, true},
    {"paint", "a material, after a shape", CTL_SCENE_PAINT, false},
    {"replace", "from,to: two materials, after a shape", CTL_SCENE_SWAP, false},
    {"erode", "1 to 6, after a shape", CTL_SCENE_ERODE, false},
    {"dilate", "1 to 6, after a shape", CTL_SCENE_DILATE, false},
    {"copy-from", "x,y,z, after --box", CTL_SCENE_COPY_FROM, false},
    {"turn", "nine of 0, 1, -1, after --copy-from", CTL_SCENE_TURN, false},
    {"copy-empty", "goes after --copy-from", CTL_SCENE_COPY_EMPTY, true},
    {"operations", "a JSON file", CTL_SCENE_OPERATIONS, false},
    {"in-voxels", "", CTL_SCENE_IN_VOXELS, true},
    {"if-version", "a whole number", CTL_SCENE_IF_VERSION, false},
    {"scene", "a name", CTL_SCENE_NAME, false},
    {"poses", "a file", CTL_SCENE_POSES, false},
    {"format", "a format", CTL_SCENE_FORMAT, false},
    {"no-carve", "", CTL_SCENE_NO_CARVE, true},
    {"max-range", "metres >= 0", CTL_SCENE_MAX_RANGE, false},
    {"rule", "constant, label, colour, ramp or height", CTL_SCENE_RULE, false},
    {"material", "0 to 65535", CTL_SCENE_MATERIAL, false},
    {"field", "a name", CTL_SCENE_FIELD, false},
    {"range", "low,high", CTL_SCENE_RANGE, false},
    {"retry", "seconds, at most an hour", CTL_SCENE_RETRY, false},
    {"radius", "metres > 0", CTL_SCENE_RADIUS, false},
    {"counts", "", CTL_SCENE_COUNTS, true},
    {"out", "a file", CTL_SCENE_OUT, false},
    {"level", "0 to 21", CTL_SCENE_LEVEL, false},
    {"dense", "", CTL_SCENE_DENSE, true},
    {"materials", "", CTL_SCENE_MATERIALS, true},
    {"network", "a name", CTL_SCENE_NETWORK, false},
    {"labels", "LABEL=MATERIAL,... or a file of such", CTL_SCENE_LABELS, false},
    {"output", "a name", CTL_SCENE_OUTPUT, false},
    {"expect-digest", "hexadecimal digits", CTL_SCENE_DIGEST, false},
    {"heightfield", "a file; at most 64 files", CTL_SCENE_HEIGHTS, false},
    {"grid", "x,y,cell,low z, after --heightfield", CTL_SCENE_GRID, false},
    {"point-materials", "a file, after --points", CTL_SCENE_POINT_MATERIALS, false},
    {"keep", "1 to 4096 versions", CTL_SCENE_KEEP, false},
    {"keep-seconds", "a whole number", CTL_SCENE_KEEP_SECONDS, false},
    {"durable", "always, everysec or off", CTL_SCENE_DURABLE, false},
    {"journal-max-bytes", "a whole number", CTL_SCENE_JOURNAL_BYTES, false},
    {"of", "a version", CTL_SCENE_OF, false},
    {"at", "a version or a snapshot", CTL_SCENE_AT, false},
    {"replace", "", CTL_SCENE_MOVE, true},
    {"drop", "", CTL_SCENE_UNNAME, true},
    {"from", "a version or a snapshot", CTL_SCENE_FROM, false},
    {"to", "a version or a snapshot", CTL_SCENE_TO, false},
    {"to-scene", "a name", CTL_SCENE_TO_SCENE, false},
    {"limit", "1 to 10000", CTL_SCENE_LIMIT, false},
    {"dry-run", "", CTL_SCENE_DRY_RUN, true},
};

enum {
    N_KNOWN = sizeof known / sizeof known[0],
    AN_HOUR_S = 3600,
    MAX_DEPTH = 21,
    MAX_VERSIONS = 4096,
    MAX_LOG = 10000
};

_Static_assert((int)N_KNOWN == CTL_SCENE_END - CTL_OPT_FIRST_OWN, "by number");
_Static_assert((int)N_KNOWN <= 64, "a bit each");

static bool parse_u64(const char *text, uint64_t *out)
{
    return vxd_number_uint64(text, strlen(text), out);
}

static bool parse_between(const char *text, double low, double high, double *out)
{
    return ctl_parse_doubles(text, out, 1) == 1 && *out >= low && *out <= high;
}

/* RRGGBB */
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

/* NAME:RRGGBB; the name may be empty. */
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

static bool parse_bits(const char *text, uint32_t *out)
{
    return ctl_parse_u32(text, 0, 16, out) &&
           (*out == 0 || *out == 4 || *out == 8 || *out == 16);
}

static bool parse_rule(const char *text, enum voxeld_scene_rule *out)
{
    static const char *const names[] = {"constant", "label", "colour", "ramp", "height"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], text) == 0) {
            *out = (enum voxeld_scene_rule)i;
            return true;
        }
    }
    return false;
}

/* --box of an export. */
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

static bool parse_fsync(const char *text, enum voxeld_scene_fsync *out)
{
    static const char *const names[] = {"always", "everysec", "off"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], text) == 0) {
            *out = (enum voxeld_scene_fsync)i;
            return true;
        }
    }
    return false;
}

/* Digits: a version; else a snapshot. */
static bool parse_at(const char *text, struct voxeld_scene_at *out)
{
    *out = (struct voxeld_scene_at){0};
    if (text[strspn(text, "0123456789")] != '\0') {
        out->snapshot = text;
        return true;
    }
    return parse_u64(text, &out->version) && out->version > 0;
}

static bool take_version(struct ctl_scene_args *args, enum ctl_scene_option id,
                         const char *value)
{
    switch (id) {
    case CTL_SCENE_KEEP:
        return ctl_parse_u32(value, 1, MAX_VERSIONS, &args->keep_versions);
    case CTL_SCENE_KEEP_SECONDS:
        return parse_u64(value, &args->keep_seconds);
    case CTL_SCENE_DURABLE:
        return parse_fsync(value, &args->fsync);
    case CTL_SCENE_JOURNAL_BYTES:
        return parse_u64(value, &args->journal_max_bytes);
    case CTL_SCENE_OF:
        return parse_u64(value, &args->of_version) && args->of_version > 0;
    case CTL_SCENE_AT:
        return parse_at(value, &args->at);
    case CTL_SCENE_FROM:
        return parse_at(value, &args->from);
    case CTL_SCENE_TO:
        return parse_at(value, &args->to);
    case CTL_SCENE_TO_SCENE:
        args->to_scene = value;
        return true;
    case CTL_SCENE_LIMIT:
        return ctl_parse_u32(value, 1, MAX_LOG, &args->limit);
    default: /* a flag */
        return true;
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
        return add_material(args, value);
    case CTL_SCENE_MAX_BYTES:
        return parse_u64(value, &args->max_bytes);
    case CTL_SCENE_BOX:
        return parse_box(value, &args->box);
    case CTL_SCENE_IF_VERSION:
        return parse_u64(value, &args->if_version);
    case CTL_SCENE_MAX_RANGE:
        return parse_between(value, 0, 1e9, &args->max_range_m);
    case CTL_SCENE_RULE:
        return parse_rule(value, &args->rule);
    case CTL_SCENE_MATERIAL:
        return ctl_parse_u32(value, 0, UINT16_MAX, &args->material);
    case CTL_SCENE_RANGE:
        return ctl_parse_doubles(value, args->range, 2) == 2;
    case CTL_SCENE_RETRY:
        return parse_between(value, 0, AN_HOUR_S, &args->retry_s);
    case CTL_SCENE_RADIUS:
        return ctl_parse_doubles(value, &args->radius_m, 1) == 1 && args->radius_m > 0;
    case CTL_SCENE_LEVEL:
        return ctl_parse_u32(value, 0, MAX_DEPTH, &args->level);
    default:
        return take_text(args, id, value);
    }
}

static void fill_options(uint64_t taken, struct option *options)
{
    static const struct option shared[] = {CTL_GLOBAL_OPTIONS};
    size_t n = sizeof shared / sizeof shared[0];

    memcpy(options, shared, sizeof shared);
    for (size_t i = 0; i < N_KNOWN; i++) {
        if ((taken & CTL_SCENE_BIT(known[i].id)) != 0) {
            options[n++] = (struct option){
                known[i].name, known[i].is_flag ? no_argument : required_argument, NULL,
                (int)known[i].id};
        }
    }
    options[n] = (struct option){NULL, 0, NULL, 0};
}

int ctl_scene_parse(struct ctl_globals *globals, const struct ctl_scene_sub *sub,
                    int argc, char **argv, struct ctl_scene_args *args, bool *go_on)
{
    struct option options[16 + N_KNOWN];
    int result = CTL_OK;
    int id;

    *go_on = false;
    fill_options(sub->options, options);
    while ((id = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (id >= CTL_OPT_FIRST_OWN) {
            const struct option_help *option = &known[id - CTL_OPT_FIRST_OWN];
            bool is_shape = sub->makes_edits &&
                            (CTL_SCENE_BIT(option->id) & CTL_SCENE_SHAPE_BITS) != 0;

            args->given |= CTL_SCENE_BIT(option->id);
            if (!(is_shape ? ctl_scene_take_shape(args, option->id, optarg)
                           : take_option(args, option->id, optarg))) {
                return ctl_usage(sub->command.name, "--%s%s%s: %s", option->name,
                                 option->is_flag ? "" : " ",
                                 option->is_flag ? "" : optarg, option->right);
            }
        } else if (ctl_common_option(globals, &sub->command, id, optarg, &result)) {
            return result;
        }
    }
    args->words = (const char *const *)argv + optind;
    args->n_words = (size_t)(argc - optind);
    if (args->n_words < sub->n_min || args->n_words > sub->n_max) {
        return ctl_usage(sub->command.name, "%zu words after the options", args->n_words);
    }
    result = sub->check != NULL ? sub->check(args) : CTL_OK;
    *go_on = result == CTL_OK;
    return result;
}
