// SPDX-License-Identifier: Apache-2.0
/* What the subcommands of voxelctl map share. */
#ifndef VXD_CLIENT_VOXELCTL_MAP_MAP_COMMANDS_H
#define VXD_CLIENT_VOXELCTL_MAP_MAP_COMMANDS_H

#include "client/voxelctl/cli/cli.h"

enum {
    CTL_MAP_MAX_ARRAYS = 16,
    CTL_MAP_MAX_NAMES = 64,
    CTL_MAP_TEXT_BYTES = 4096
};

/* Options of voxelctl map; each subcommand takes some of them. */
enum ctl_map_option {
    CTL_MAP_KEY_DTYPE = CTL_OPT_FIRST_OWN,
    CTL_MAP_COMPONENTS,
    CTL_MAP_VALUE,
    CTL_MAP_CAPACITY,
    CTL_MAP_MAX_BYTES,
    CTL_MAP_TTL,
    CTL_MAP_SIZE,
    CTL_MAP_ORIGIN,
    CTL_MAP_FRAME,
    CTL_MAP_MISSING_OK,
    CTL_MAP_VALUES,
    CTL_MAP_OUT,
    CTL_MAP_ARRAYS,
    CTL_MAP_NEIGHBOURS,
    CTL_MAP_ALL,
    CTL_MAP_COMBINE,
    CTL_MAP_INSERT_MISSING,
    CTL_MAP_FIRST,
    CTL_MAP_LIMIT,
    CTL_MAP_FILE,
    CTL_MAP_REPLACE,
    CTL_MAP_NAME,
    CTL_MAP_FEATURES,
    CTL_MAP_NO_FEATURES,
    CTL_MAP_FORMAT,
    CTL_MAP_POSES,
    CTL_MAP_NO_CREATE,
    CTL_MAP_RETRY,
    CTL_MAP_DURABLE,
    CTL_MAP_JOURNAL_MAX_BYTES,
    CTL_MAP_END
};

#define CTL_MAP_BIT(option) (UINT64_C(1) << ((option)-CTL_OPT_FIRST_OWN))

/* A list of names separated by commas; they point into text. */
struct ctl_map_names {
    char text[CTL_MAP_TEXT_BYTES];
    const char *names[CTL_MAP_MAX_NAMES];
    size_t n;
};

/* A parsed command line. Members that were not given are zero or NULL. */
struct ctl_map_args {
    const char *const *words; /* after the options */
    size_t n_words;
    uint64_t given; /* CTL_MAP_BIT of the options that were */
    enum voxeld_dtype key_dtype;
    uint32_t n_components;
    struct voxeld_map_array arrays[CTL_MAP_MAX_ARRAYS]; /* --value */
    char array_names[CTL_MAP_MAX_ARRAYS][64];
    size_t n_arrays;
    uint64_t capacity;
    uint64_t max_bytes;
    double ttl_s;
    double size_m[3];
    double origin_m[3];
    const char *frame_id;
    const char *values[CTL_MAP_MAX_ARRAYS]; /* NAME=FILE */
    size_t n_values;
    const char *out;
    struct ctl_map_names names; /* --arrays, --features */
    uint32_t neighbours;
    enum voxeld_combine combine;
    uint64_t first;
    uint64_t limit;
    const char *file;
    const char *map; /* --map */
    const char *format;
    const char *poses;
    double retry_s;
    enum voxeld_map_fsync fsync; /* --durable */
    uint64_t journal_max_bytes;
};

struct ctl_map_sub {
    struct ctl_command command; /* .run unused */
    uint64_t options;           /* bits of those it takes */
    size_t n_min;               /* words after the options */
    size_t n_max;
    /* Checks what getopt cannot see: CTL_OK, or CTL_USAGE after a message. May be
     * NULL. */
    int (*check)(const struct ctl_map_args *args);
    int (*run)(struct voxeld_client *client, const struct ctl_globals *globals,
               const struct ctl_map_args *args);
};

extern const struct ctl_map_sub ctl_map_create;
extern const struct ctl_map_sub ctl_map_drop;
extern const struct ctl_map_sub ctl_map_list;
extern const struct ctl_map_sub ctl_map_info;
extern const struct ctl_map_sub ctl_map_insert;
extern const struct ctl_map_sub ctl_map_find;
extern const struct ctl_map_sub ctl_map_erase;
extern const struct ctl_map_sub ctl_map_update;
extern const struct ctl_map_sub ctl_map_export;
extern const struct ctl_map_sub ctl_map_save;
extern const struct ctl_map_sub ctl_map_load;
extern const struct ctl_map_sub ctl_map_merge;

/* map_args.c: parses a command line: CTL_OK and *go_on, or the exit status. */
int ctl_map_parse(struct ctl_globals *globals, const struct ctl_map_sub *sub, int argc,
                  char **argv, struct ctl_map_args *args, bool *go_on);

static inline bool ctl_map_has(const struct ctl_map_args *args,
                               enum ctl_map_option option)
{
    return (args->given & CTL_MAP_BIT(option)) != 0;
}

/* map_admin.c: prints a map as a JSON object without its end. */
void ctl_map_print_json(const struct voxeld_map_info *map);

#endif
