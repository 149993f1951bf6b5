// SPDX-License-Identifier: Apache-2.0
/* The command line of voxelctl map: one list of options, of which each subcommand takes
 * some. */
#include <inttypes.h>
#include <string.h>

#include "client/files/number.h"
#include "client/voxelctl/map.h"

static const char *const dtype_names[] = {
    "?",       "int8",    "uint8", "int16",  "uint16",  "int32",   "uint32",
    "float32", "float64", "int64", "uint64", "float16", "bfloat16"};

enum {
    N_DTYPES = sizeof dtype_names / sizeof dtype_names[0]
};

const char *ctl_dtype_name(enum voxeld_dtype dtype)
{
    size_t i = (size_t)dtype;

    return dtype_names[i < N_DTYPES ? i : 0];
}

static bool parse_dtype(const char *text, size_t n, enum voxeld_dtype *out)
{
    for (size_t i = 1; i < N_DTYPES; i++) {
        if (strlen(dtype_names[i]) == n && memcmp(dtype_names[i], text, n) == 0) {
            *out = (enum voxeld_dtype)i;
            return true;
        }
    }
    return false;
}

/* NAME:DTYPE or NAME:DTYPE:N */
static bool parse_array(struct ctl_map_args *args, const char *text)
{
    size_t i = args->n_arrays;
    size_t n_name = strcspn(text, ":");
    const char *dtype = text + n_name + 1;
    size_t n_dtype;

    if (i == CTL_MAP_MAX_ARRAYS || text[n_name] == '\0' || n_name == 0 ||
        n_name >= sizeof args->array_names[i]) {
        return false;
    }
    n_dtype = strcspn(dtype, ":");
    memcpy(args->array_names[i], text, n_name);
    args->arrays[i].name = args->array_names[i];
    args->arrays[i].n_elements = 1;
    args->n_arrays++;
    return parse_dtype(dtype, n_dtype, &args->arrays[i].dtype) &&
           (dtype[n_dtype] == '\0' ||
            ctl_parse_u32(dtype + n_dtype + 1, 1, UINT16_MAX + 1,
                          &args->arrays[i].n_elements));
}

static bool parse_names(struct ctl_map_names *names, const char *text)
{
    size_t n = strlen(text);
    char *at = names->text;

    if (n >= sizeof names->text) {
        return false;
    }
    memcpy(names->text, text, n + 1);
    for (names->n = 0;;) {
        size_t length = strcspn(at, ",");
        bool last = at[length] == '\0';

        if (length == 0 || names->n == CTL_MAP_MAX_NAMES) {
            return false;
        }
        at[length] = '\0';
        names->names[names->n++] = at;
        if (last) {
            return true;
        }
        at += length + 1;
    }
}

static bool parse_size(const char *text, double *size_m)
{
    size_t n = ctl_parse_doubles(text, size_m, 3);

    if (n == 1) {
        size_m[1] = size_m[0];
        size_m[2] = size_m[0];
    }
    return (n == 1 || n == 3) && size_m[0] > 0 && size_m[1] > 0 && size_m[2] > 0;
}

static bool parse_combine(const char *text, enum voxeld_combine *out)
{
    static const char *const names[] = {"set", "add", "min", "max"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], text) == 0) {
            *out = (enum voxeld_combine)i;
            return true;
        }
    }
    return false;
}

static bool parse_u64(const char *text, uint64_t *out)
{
    return vxd_number_uint64(text, strlen(text), out);
}

static bool parse_seconds(const char *text, double most, double *out)
{
    return ctl_parse_doubles(text, out, 1) == 1 && *out >= 0 && *out <= most;
}

static bool add_values(struct ctl_map_args *args, const char *text)
{
    if (args->n_values == CTL_MAP_MAX_ARRAYS || strchr(text, '=') == NULL) {
        return false;
    }
    args->values[args->n_values++] = text;
    return true;
}

static bool parse_neighbours(const char *text, uint32_t *out)
{
    return ctl_parse_u32(text, 6, 27, out) && (*out == 6 || *out == 8 || *out == 27);
}

struct option_help {
    enum ctl_map_option id;
    const char *name;
    const char *right; /* what its value may be; NULL: it takes none */
};

static const struct option_help known[] = {
    {CTL_MAP_KEY_DTYPE, "key-dtype", "int16, int32 or int64"},
    {CTL_MAP_COMPONENTS, "components", "1 to 8"},
    {CTL_MAP_VALUE, "value", "NAME:DTYPE or NAME:DTYPE:ELEMENTS, at most 16 times"},
    {CTL_MAP_CAPACITY, "capacity", "a whole number"},
    {CTL_MAP_MAX_BYTES, "max-bytes", "a whole number"},
    {CTL_MAP_TTL, "ttl", "seconds, at most a year"},
    {CTL_MAP_SIZE, "size", "metres > 0, one number or three x,y,z"},
    {CTL_MAP_ORIGIN, "origin", "three numbers x,y,z"},
    {CTL_MAP_FRAME, "frame", "a name"},
    {CTL_MAP_MISSING_OK, "missing-ok", NULL},
    {CTL_MAP_VALUES, "values", "ARRAY=FILE, at most 16 times"},
    {CTL_MAP_OUT, "out", "a file"},
    {CTL_MAP_ARRAYS, "arrays", "1 to 64 names, with commas"},
    {CTL_MAP_NEIGHBOURS, "neighbours", "6, 8 or 27"},
    {CTL_MAP_ALL, "all", NULL},
    {CTL_MAP_COMBINE, "combine", "set, add, min or max"},
    {CTL_MAP_INSERT_MISSING, "insert-missing", NULL},
    {CTL_MAP_FIRST, "first", "a whole number"},
    {CTL_MAP_LIMIT, "limit", "a whole number"},
    {CTL_MAP_FILE, "file", "a name"},
    {CTL_MAP_REPLACE, "replace", NULL},
    {CTL_MAP_NAME, "map", "a name"},
    {CTL_MAP_FEATURES, "features", "1 to 64 names, with commas"},
    {CTL_MAP_NO_FEATURES, "no-features", NULL},
    {CTL_MAP_FORMAT, "format", "a format"},
    {CTL_MAP_POSES, "poses", "a file"},
    {CTL_MAP_NO_CREATE, "no-create", NULL},
    {CTL_MAP_RETRY, "retry", "seconds, at most an hour"},
    {CTL_MAP_DURABLE, "durable", "always, everysec or off"},
    {CTL_MAP_JOURNAL_MAX_BYTES, "journal-max-bytes", "a whole number"},
};

enum {
    N_KNOWN = sizeof known / sizeof known[0],
    A_YEAR_S = 31536000,
    AN_HOUR_S = 3600
};

_Static_assert((int)N_KNOWN == CTL_MAP_END - CTL_OPT_FIRST_OWN, "by number");

static bool take_text(struct ctl_map_args *args, enum ctl_map_option id,
                      const char *value)
{
    switch (id) {
    case CTL_MAP_FRAME:
        args->frame_id = value;
        return true;
    case CTL_MAP_OUT:
        args->out = value;
        return true;
    case CTL_MAP_FILE:
        args->file = value;
        return true;
    case CTL_MAP_NAME:
        args->map = value;
        return true;
    case CTL_MAP_FORMAT:
        args->format = value;
        return true;
    case CTL_MAP_POSES:
        args->poses = value;
        return true;
    default: /* a flag */
        return true;
    }
}

static bool parse_fsync(const char *text, enum voxeld_map_fsync *out)
{
    static const char *const names[] = {"always", "everysec", "off"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], text) == 0) {
            *out = (enum voxeld_map_fsync)i;
            return true;
        }
    }
    return false;
}

static bool take_option(struct ctl_map_args *args, enum ctl_map_option id,
                        const char *value)
{
    switch (id) {
    case CTL_MAP_KEY_DTYPE:
        return parse_dtype(value, strlen(value), &args->key_dtype);
    case CTL_MAP_COMPONENTS:
        return ctl_parse_u32(value, 1, 8, &args->n_components);
    case CTL_MAP_VALUE:
        return parse_array(args, value);
    case CTL_MAP_CAPACITY:
        return parse_u64(value, &args->capacity);
    case CTL_MAP_MAX_BYTES:
        return parse_u64(value, &args->max_bytes);
    case CTL_MAP_TTL:
        return parse_seconds(value, A_YEAR_S, &args->ttl_s);
    case CTL_MAP_RETRY:
        return parse_seconds(value, AN_HOUR_S, &args->retry_s);
    case CTL_MAP_SIZE:
        return parse_size(value, args->size_m);
    case CTL_MAP_ORIGIN:
        return ctl_parse_doubles(value, args->origin_m, 3) == 3;
    case CTL_MAP_VALUES:
        return add_values(args, value);
    case CTL_MAP_ARRAYS:
    case CTL_MAP_FEATURES:
        return parse_names(&args->names, value);
    case CTL_MAP_NEIGHBOURS:
        return parse_neighbours(value, &args->neighbours);
    case CTL_MAP_COMBINE:
        return parse_combine(value, &args->combine);
    case CTL_MAP_FIRST:
        return parse_u64(value, &args->first);
    case CTL_MAP_LIMIT:
        return parse_u64(value, &args->limit);
    case CTL_MAP_DURABLE:
        return parse_fsync(value, &args->fsync);
    case CTL_MAP_JOURNAL_MAX_BYTES:
        return parse_u64(value, &args->journal_max_bytes);
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
        if ((taken & CTL_MAP_BIT(known[i].id)) != 0) {
            options[n++] = (struct option){
                known[i].name, known[i].right != NULL ? required_argument : no_argument,
                NULL, (int)known[i].id};
        }
    }
    options[n] = (struct option){NULL, 0, NULL, 0};
}

int ctl_map_parse(struct ctl_globals *globals, const struct ctl_map_sub *sub, int argc,
                  char **argv, struct ctl_map_args *args, bool *go_on)
{
    struct option options[16 + N_KNOWN];
    int result = CTL_OK;
    int id;

    *go_on = false;
    fill_options(sub->options, options);
    while ((id = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (id >= CTL_OPT_FIRST_OWN) {
            const struct option_help *option = &known[id - CTL_OPT_FIRST_OWN];

            args->given |= CTL_MAP_BIT(option->id);
            if (!take_option(args, option->id, optarg)) {
                return ctl_usage(sub->command.name, "--%s %s: %s", option->name, optarg,
                                 option->right);
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
    if (args->out != NULL && !ctl_has_ending(args->out, ".npy") &&
        !ctl_has_ending(args->out, ".npz")) {
        return ctl_usage(sub->command.name, "--out %s: a name ending in .npy or .npz",
                         args->out);
    }
    result = sub->check != NULL ? sub->check(args) : CTL_OK;
    *go_on = result == CTL_OK;
    return result;
}
