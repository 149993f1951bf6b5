// SPDX-License-Identifier: Apache-2.0
/* Parses the command line of voxelctl map: one list of options, of which each
 * subcommand takes some. */
#include <string.h>

#include "client/voxelctl/map/map_commands.h"

/* Parses NAME:DTYPE or NAME:DTYPE:N. */
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
    return ctl_parse_dtype(dtype, n_dtype, &args->arrays[i].dtype) &&
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

/* The options by enum ctl_map_option. */
static const struct ctl_own_option known[] = {
    {"key-dtype", "int16, int32 or int64", false},
    {"components", "1 to 8", false},
    {"value", "NAME:DTYPE or NAME:DTYPE:ELEMENTS, at most 16 times", false},
    {"capacity", "a whole number", false},
    {"max-bytes", "a whole number", false},
    {"ttl", "seconds, at most a year", false},
    {"size", "metres > 0, one number or three x,y,z", false},
    {"origin", "three numbers x,y,z", false},
    {"frame", "a name", false},
    {"missing-ok", "", true},
    {"values", "ARRAY=FILE, at most 16 times", false},
    {"out", "a file", false},
    {"arrays", "1 to 64 names, with commas", false},
    {"neighbours", "6, 8 or 27", false},
    {"all", "", true},
    {"combine", "set, add, min or max", false},
    {"insert-missing", "", true},
    {"first", "a whole number", false},
    {"limit", "a whole number", false},
    {"file", "a name", false},
    {"replace", "", true},
    {"map", "a name", false},
    {"features", "1 to 64 names, with commas", false},
    {"no-features", "", true},
    {"format", "a format", false},
    {"poses", "a file", false},
    {"no-create", "", true},
    {"retry", "seconds, at most an hour", false},
    {"durable", "always, everysec or off", false},
    {"journal-max-bytes", "a whole number", false},
};

enum {
    N_KNOWN = sizeof known / sizeof known[0],
    A_YEAR_S = 31536000,
    AN_HOUR_S = 3600
};

_Static_assert((int)N_KNOWN == CTL_MAP_END - CTL_OPT_FIRST_OWN, "by number");
_Static_assert((int)N_KNOWN <= CTL_MAX_OWN, "a bit each");

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

static bool take_choice(struct ctl_map_args *args, enum ctl_map_option id,
                        const char *value)
{
    static const char *const combines[] = {"set", "add", "min", "max", NULL};
    int choice = id == CTL_MAP_COMBINE ? ctl_parse_choice(value, combines)
                                       : ctl_parse_fsync(value);

    if (id == CTL_MAP_COMBINE) {
        args->combine = (enum voxeld_combine)choice;
    } else {
        args->fsync = (enum voxeld_map_fsync)choice;
    }
    return choice >= 0;
}

static bool take_option(struct ctl_map_args *args, enum ctl_map_option id,
                        const char *value)
{
    switch (id) {
    case CTL_MAP_KEY_DTYPE:
        return ctl_parse_dtype(value, strlen(value), &args->key_dtype);
    case CTL_MAP_COMPONENTS:
        return ctl_parse_u32(value, 1, 8, &args->n_components);
    case CTL_MAP_VALUE:
        return parse_array(args, value);
    case CTL_MAP_CAPACITY:
        return ctl_parse_u64(value, &args->capacity);
    case CTL_MAP_MAX_BYTES:
        return ctl_parse_u64(value, &args->max_bytes);
    case CTL_MAP_TTL:
        return ctl_parse_between(value, 0, A_YEAR_S, &args->ttl_s);
    case CTL_MAP_RETRY:
        return ctl_parse_between(value, 0, AN_HOUR_S, &args->retry_s);
    case CTL_MAP_SIZE:
        return ctl_parse_size(value, args->size_m);
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
    case CTL_MAP_DURABLE:
        return take_choice(args, id, value);
    case CTL_MAP_FIRST:
        return ctl_parse_u64(value, &args->first);
    case CTL_MAP_LIMIT:
        return ctl_parse_u64(value, &args->limit);
    case CTL_MAP_JOURNAL_MAX_BYTES:
        return ctl_parse_u64(value, &args->journal_max_bytes);
    default:
        return take_text(args, id, value);
    }
}

static bool take(void *user, int id, const char *value)
{
    struct ctl_map_args *args = user;

    args->given |= CTL_MAP_BIT(id);
    return take_option(args, (enum ctl_map_option)id, value);
}

int ctl_map_parse(struct ctl_globals *globals, const struct ctl_map_sub *sub, int argc,
                  char **argv, struct ctl_map_args *args, bool *go_on)
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
    if (ctl_take_own_options(globals, &sub->command, &own, argc, argv, &result)) {
        return result;
    }
    args->words = (const char *const *)argv + optind;
    args->n_words = (size_t)(argc - optind);
    if (args->out != NULL && !ctl_has_ending(args->out, ".npy") &&
        !ctl_has_ending(args->out, ".npz")) {
        return ctl_usage(sub->command.name, "--out %s: a name ending in .npy or .npz",
                         args->out);
    }
    result = sub->check != NULL ? sub->check(args) : CTL_OK;
    *go_on = result == CTL_OK;
    return result;
}
