// SPDX-License-Identifier: Apache-2.0
/* voxelctl map create, drop, list, info, save, load. */
#include <inttypes.h>
#include <string.h>

#include "client/voxelctl/map/map_commands.h"

static void print_vector(const char *name, const double *v)
{
    (void)printf("\"%s\": [", name);
    for (size_t i = 0; i < 3; i++) {
        (void)fputs(i > 0 ? ", " : "", stdout);
        ctl_json_number(stdout, v[i]);
    }
    (void)fputc(']', stdout);
}

static const char *fsync_name(enum voxeld_map_fsync fsync)
{
    static const char *const names[] = {"always", "everysec", "off"};

    return (size_t)fsync < sizeof names / sizeof names[0] ? names[fsync] : "?";
}

void ctl_map_print_json(const struct voxeld_map_info *map)
{
    (void)fputc('{', stdout);
    ctl_json_member_string(stdout, true, "name", map->name);
    ctl_json_member_string(stdout, false, "key_dtype", ctl_dtype_name(map->key_dtype));
    ctl_json_member_count(stdout, false, "n_components", map->n_components);
    (void)fputs(", \"arrays\": [", stdout);
    for (size_t i = 0; i < map->n_arrays; i++) {
        (void)fputs(i > 0 ? ", {" : "{", stdout);
        ctl_json_member_string(stdout, true, "name", map->arrays[i].name);
        ctl_json_member_string(stdout, false, "dtype",
                               ctl_dtype_name(map->arrays[i].dtype));
        ctl_json_member_count(stdout, false, "n_elements", map->arrays[i].n_elements);
        (void)fputc('}', stdout);
    }
    (void)fputc(']', stdout);
    ctl_json_member_count(stdout, false, "n_entries", map->n_entries);
    ctl_json_member_count(stdout, false, "capacity", map->capacity);
    ctl_json_member_count(stdout, false, "n_bytes", map->n_bytes);
    ctl_json_member_count(stdout, false, "max_bytes", map->max_bytes);
    ctl_json_member_count(stdout, false, "erase_epoch", map->erase_epoch);
    ctl_json_member_count(stdout, false, "generation", map->generation);
    ctl_json_member_number(stdout, false, "ttl_s", map->ttl_s);
    ctl_json_member_number(stdout, false, "ttl_left_s", map->ttl_left_s);
    if (map->durable) {
        ctl_json_member_string(stdout, false, "durable", fsync_name(map->fsync));
        ctl_json_member_count(stdout, false, "journal_max_bytes", map->journal_max_bytes);
    } else {
        (void)fputs(", \"durable\": null", stdout);
    }
    (void)printf(", \"unavailable\": %s", map->unavailable ? "true" : "false");
    ctl_json_member_string(stdout, false, "owner", map->owner);
    (void)printf(", \"created_ns\": %" PRId64, map->created_ns);
    if (map->has_lattice) {
        (void)fputs(", \"lattice\": {", stdout);
        print_vector("size_m", map->lattice.size_m);
        (void)fputs(", ", stdout);
        print_vector("origin_m", map->lattice.origin_m);
        ctl_json_member_string(stdout, false, "frame_id", map->lattice.frame_id);
        (void)fputc('}', stdout);
    }
    ctl_json_member_number(stdout, false, "load", map->load);
    ctl_json_member_number(stdout, false, "mean_probes", map->mean_probes);
    ctl_json_member_count(stdout, false, "max_probes", map->max_probes);
    ctl_json_member_number(stdout, false, "index_bytes_per_entry",
                           map->index_bytes_per_entry);
    (void)fputc('}', stdout);
}

static void print_text(const struct voxeld_map_info *map)
{
    char entries[32];
    char bytes[32];

    if (map->unavailable) {
        (void)printf("%s: unavailable, the disk has not brought it back; ", map->name);
    } else {
        (void)printf("%s: %s entries, %s bytes; ", map->name,
                     ctl_thousands(map->n_entries, entries),
                     ctl_thousands(map->n_bytes, bytes));
    }
    (void)printf("keys %s x %" PRIu32, ctl_dtype_name(map->key_dtype), map->n_components);
    for (size_t i = 0; i < map->n_arrays; i++) {
        (void)printf("%s %s %s x %" PRIu32, i > 0 ? "," : "; values", map->arrays[i].name,
                     ctl_dtype_name(map->arrays[i].dtype), map->arrays[i].n_elements);
    }
    (void)fputc('\n', stdout);
}

static void print_more(const struct voxeld_map_info *map)
{
    const struct voxeld_lattice *l = &map->lattice;
    char number[32];

    (void)printf("capacity    %s entries; index load %.2f, %.1f bytes an entry\n",
                 ctl_thousands(map->capacity, number), map->load,
                 map->index_bytes_per_entry);
    (void)printf("probes      %.2f on average, %" PRIu32 " at most\n", map->mean_probes,
                 map->max_probes);
    if (map->max_bytes > 0) {
        (void)printf("limit       %s bytes\n", ctl_thousands(map->max_bytes, number));
    }
    if (map->ttl_s > 0) {
        (void)printf("dropped     when unused for %g s; %.0f s are left\n", map->ttl_s,
                     map->ttl_left_s);
    }
    if (map->durable) {
        (void)printf("durable     fsync %s; a snapshot file every %s bytes of journal\n",
                     fsync_name(map->fsync),
                     ctl_thousands(map->journal_max_bytes, number));
    }
    if (map->has_lattice) {
        (void)printf("voxels      %g x %g x %g m, origin %g, %g, %g%s%s\n", l->size_m[0],
                     l->size_m[1], l->size_m[2], l->origin_m[0], l->origin_m[1],
                     l->origin_m[2], l->frame_id[0] != '\0' ? ", frame " : "",
                     l->frame_id);
    }
    (void)printf("owner       %s\n", map->owner[0] != '\0' ? map->owner : "nobody");
    (void)printf("generation  %" PRIu64 ", erase epoch %" PRIu64 "\n", map->generation,
                 map->erase_epoch);
}

/* Prints the one map that was made or loaded. */
static int print_one(const struct ctl_globals *globals, struct voxeld_maps *take_maps,
                     const char *existed, const char *made)
{
    if (globals->json) {
        (void)printf("{\"existed\": %s, \"map\": ",
                     take_maps->existed ? "true" : "false");
        ctl_map_print_json(&take_maps->maps[0]);
        (void)fputs("}\n", stdout);
    } else {
        (void)printf("%s ", take_maps->existed ? existed : made);
        print_text(&take_maps->maps[0]);
    }
    voxeld_maps_free(take_maps);
    return ctl_flush();
}

static int check_create(const struct ctl_map_args *args)
{
    if (!ctl_map_has(args, CTL_MAP_SIZE) &&
        (ctl_map_has(args, CTL_MAP_ORIGIN) || ctl_map_has(args, CTL_MAP_FRAME))) {
        return ctl_usage("map create", "--origin and --frame go with --size");
    }
    if (ctl_map_has(args, CTL_MAP_JOURNAL_MAX_BYTES) &&
        !ctl_map_has(args, CTL_MAP_DURABLE)) {
        return ctl_usage("map create", "--journal-max-bytes goes with --durable");
    }
    if (ctl_map_has(args, CTL_MAP_TTL) && ctl_map_has(args, CTL_MAP_DURABLE)) {
        return ctl_usage("map create", "a map is either --durable or has a --ttl");
    }
    return CTL_OK;
}

static int create(struct voxeld_client *client, const struct ctl_globals *globals,
                  const struct ctl_map_args *args)
{
    struct voxeld_map_create_request request = {
        .map = args->words[0],
        .key_dtype = args->key_dtype,
        .n_components = args->n_components,
        .arrays = args->arrays,
        .n_arrays = args->n_arrays,
        .capacity = args->capacity,
        .max_bytes = args->max_bytes,
        .ttl_s = args->ttl_s,
        .has_lattice = ctl_map_has(args, CTL_MAP_SIZE),
        .lattice = {.frame_id = args->frame_id},
        .durable = ctl_map_has(args, CTL_MAP_DURABLE),
        .fsync = args->fsync,
        .journal_max_bytes = args->journal_max_bytes,
    };
    struct voxeld_maps *maps;
    struct voxeld_error error;

    memcpy(request.lattice.size_m, args->size_m, sizeof args->size_m);
    memcpy(request.lattice.origin_m, args->origin_m, sizeof args->origin_m);
    if (voxeld_map_create(client, &request, &maps, &error) != VOXELD_OK) {
        return ctl_failed(request.map, &error);
    }
    return print_one(globals, maps, "there already:", "made");
}

const struct ctl_map_sub ctl_map_create = {
    .command =
        {.name = "map create",
         .help =
             "voxelctl map create - makes an empty map\n"
             "\n"
             "usage: voxelctl map create NAME [OPTIONS]\n"
             "\n"
             "Where the map is there already, made with the same options, that is fine.\n"
             "\n"
             "  --key-dtype T      int16, int32 (default) or int64\n"
             "  --components N     numbers a key, 1 to 8; default 3\n"
             "  --value NAME:T[:N] a value array: N (default 1) numbers of type T, as "
             "int32,\n"
             "                     uint64, float32; may be given up to 16 times\n"
             "  --capacity N       entries to reserve at once; maps grow by "
             "themselves\n"
             "  --max-bytes N      device memory it may take\n"
             "  --ttl SECONDS      drop it when nobody used it for so long\n"
             "  --durable WHEN     keep it on the server's disk: a change that was "
             "answered\n"
             "                     outlives a loss of power (always), or the server and, "
             "a\n"
             "                     second later (everysec) or some time later (off), "
             "that\n"
             "  --journal-max-bytes N  write a snapshot file after so much; default 256 "
             "MiB\n"
             "  --size S | X,Y,Z   keys are voxels of this size, metres ...\n"
             "  --origin X,Y,Z     ... counted from here; default 0,0,0\n"
             "  --frame NAME       ... in this frame\n"
             "\n"
             "example\n"
             "  voxelctl map create seen --value count:uint64 --value colour:uint8:3 \\\n"
             "      --ttl 3600\n"},
    .options = CTL_MAP_BIT(CTL_MAP_KEY_DTYPE) | CTL_MAP_BIT(CTL_MAP_COMPONENTS) |
               CTL_MAP_BIT(CTL_MAP_VALUE) | CTL_MAP_BIT(CTL_MAP_CAPACITY) |
               CTL_MAP_BIT(CTL_MAP_MAX_BYTES) | CTL_MAP_BIT(CTL_MAP_TTL) |
               CTL_MAP_BIT(CTL_MAP_SIZE) | CTL_MAP_BIT(CTL_MAP_ORIGIN) |
               CTL_MAP_BIT(CTL_MAP_FRAME) | CTL_MAP_BIT(CTL_MAP_DURABLE) |
               CTL_MAP_BIT(CTL_MAP_JOURNAL_MAX_BYTES),
    .n_min = 1,
    .n_max = 1,
    .check = check_create,
    .run = create,
};

static int drop(struct voxeld_client *client, const struct ctl_globals *globals,
                const struct ctl_map_args *args)
{
    const char *name = args->words[0];
    bool existed = false;
    struct voxeld_error error;

    if (voxeld_map_drop(client, NULL, name, ctl_map_has(args, CTL_MAP_MISSING_OK),
                        &existed, &error) != VOXELD_OK) {
        return ctl_failed(name, &error);
    }
    ctl_print_dropped(globals, existed, name);
    return ctl_flush();
}

const struct ctl_map_sub ctl_map_drop = {
    .command = {.name = "map drop",
                .help = "voxelctl map drop - forgets a map\n"
                        "\n"
                        "usage: voxelctl map drop NAME [--missing-ok] [OPTIONS]\n"
                        "\n"
                        "  --missing-ok       no error where there is no such map\n"
                        "\n"
                        "Files it was saved to stay.\n"
                        "\n"
                        "example\n"
                        "  voxelctl map drop drive\n"},
    .options = CTL_MAP_BIT(CTL_MAP_MISSING_OK),
    .n_min = 1,
    .n_max = 1,
    .run = drop,
};

static int list(struct voxeld_client *client, const struct ctl_globals *globals,
                const struct ctl_map_args *args)
{
    struct voxeld_maps *maps;
    struct voxeld_error error;

    (void)args;
    if (voxeld_map_list(client, NULL, &maps, &error) != VOXELD_OK) {
        return ctl_failed("map list", &error);
    }
    if (globals->json) {
        (void)fputs("{\"maps\": [", stdout);
    }
    for (size_t i = 0; i < maps->n_maps; i++) {
        if (globals->json) {
            (void)fputs(i > 0 ? ", " : "", stdout);
            ctl_map_print_json(&maps->maps[i]);
        } else {
            print_text(&maps->maps[i]);
        }
    }
    ctl_print_total(globals, maps->n_maps, "maps", maps->n_bytes, maps->limit_bytes);
    voxeld_maps_free(maps);
    return ctl_flush();
}

const struct ctl_map_sub ctl_map_list = {
    .command = {.name = "map list",
                .help = "voxelctl map list - all maps, and the memory they take\n"
                        "\n"
                        "usage: voxelctl map list [--json] [OPTIONS]\n"
                        "\n"
                        "example\n"
                        "  voxelctl map list --json\n"},
    .run = list,
};

static int info(struct voxeld_client *client, const struct ctl_globals *globals,
                const struct ctl_map_args *args)
{
    struct voxeld_maps *maps;
    struct voxeld_error error;

    if (voxeld_map_get(client, NULL, args->words[0], &maps, &error) != VOXELD_OK) {
        return ctl_failed(args->words[0], &error);
    }
    if (globals->json) {
        ctl_map_print_json(&maps->maps[0]);
        (void)fputc('\n', stdout);
    } else {
        print_text(&maps->maps[0]);
        print_more(&maps->maps[0]);
    }
    voxeld_maps_free(maps);
    return ctl_flush();
}

const struct ctl_map_sub ctl_map_info = {
    .command = {.name = "map info",
                .help = "voxelctl map info - what a map is, and how full\n"
                        "\n"
                        "usage: voxelctl map info NAME [--json] [OPTIONS]\n"
                        "\n"
                        "example\n"
                        "  voxelctl map info drive\n"},
    .n_min = 1,
    .n_max = 1,
    .run = info,
};

static int save(struct voxeld_client *client, const struct ctl_globals *globals,
                const struct ctl_map_args *args)
{
    struct voxeld_map_saved saved = {0};
    struct voxeld_error error;
    char entries[32];
    char bytes[32];

    if (voxeld_map_save(client, NULL, args->words[0], args->file, &saved, &error) !=
        VOXELD_OK) {
        return ctl_failed(args->words[0], &error);
    }
    if (globals->json) {
        char digest[20];

        (void)snprintf(digest, sizeof digest, "%016" PRIx64, saved.digest);
        (void)fputc('{', stdout);
        ctl_json_member_string(stdout, true, "file", saved.file);
        ctl_json_member_count(stdout, false, "n_bytes", saved.n_bytes);
        ctl_json_member_count(stdout, false, "n_entries", saved.n_entries);
        ctl_json_member_string(stdout, false, "digest", digest);
        (void)fputs("}\n", stdout);
    } else {
        (void)printf("%s: %s entries in %s bytes, digest %016" PRIx64 "\n", saved.file,
                     ctl_thousands(saved.n_entries, entries),
                     ctl_thousands(saved.n_bytes, bytes), saved.digest);
    }
    return ctl_flush();
}

const struct ctl_map_sub ctl_map_save = {
    .command =
        {.name = "map save",
         .help =
             "voxelctl map save - saves a map in the server's data directory\n"
             "\n"
             "usage: voxelctl map save NAME [--file FILE] [OPTIONS]\n"
             "\n"
             "  --file FILE        its name there; default the map's. An older file of\n"
             "                     that name is replaced\n"
             "\n"
             "example\n"
             "  voxelctl map save drive --file drive-2026-11-21\n"},
    .options = CTL_MAP_BIT(CTL_MAP_FILE),
    .n_min = 1,
    .n_max = 1,
    .run = save,
};

static int load(struct voxeld_client *client, const struct ctl_globals *globals,
                const struct ctl_map_args *args)
{
    struct voxeld_map_load_request request = {
        .map = args->words[0],
        .file = args->file,
        .replace = ctl_map_has(args, CTL_MAP_REPLACE),
        .max_bytes = args->max_bytes,
        .ttl_s = args->ttl_s,
    };
    struct voxeld_maps *maps;
    struct voxeld_error error;

    if (voxeld_map_load(client, &request, &maps, &error) != VOXELD_OK) {
        return ctl_failed(request.map, &error);
    }
    return print_one(globals, maps, "replaced", "loaded");
}

const struct ctl_map_sub ctl_map_load = {
    .command =
        {.name = "map load",
         .help =
             "voxelctl map load - makes a map of a file in the server's data directory\n"
             "\n"
             "usage: voxelctl map load NAME [--file FILE] [--replace] [OPTIONS]\n"
             "\n"
             "  --file FILE        its name there; default the map's\n"
             "  --replace          drop a map of that name\n"
             "  --max-bytes N      device memory it may take\n"
             "  --ttl SECONDS      drop it when nobody used it for so long\n"
             "\n"
             "example\n"
             "  voxelctl map load drive --file drive-2026-11-21\n"},
    .options = CTL_MAP_BIT(CTL_MAP_FILE) | CTL_MAP_BIT(CTL_MAP_REPLACE) |
               CTL_MAP_BIT(CTL_MAP_MAX_BYTES) | CTL_MAP_BIT(CTL_MAP_TTL),
    .n_min = 1,
    .n_max = 1,
    .run = load,
};
