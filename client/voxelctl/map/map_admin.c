// SPDX-License-Identifier: Apache-2.0
/* voxelctl map create, drop, list, info, save, load. */
#include <inttypes.h>
#include <string.h>

#include "client/voxelctl/map/map_commands.h"

static const char *fsync_name(enum voxeld_map_fsync fsync)
{
    static const char *const names[] = {"always", "everysec", "off"};

    return (size_t)fsync < sizeof names / sizeof names[0] ? names[fsync] : "?";
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

int ctl_map_create(struct voxeld_client *client, const struct ctl_globals *globals,
                   const struct ctl_map_args *args)
{
    struct voxeld_map_create_request request = {0};
    struct voxeld_maps *maps;
    struct voxeld_error error;

    ctl_map_create_request(args, &request);
    if (voxeld_map_create(client, &request, &maps, &error) != VOXELD_OK) {
        return ctl_failed(request.map, &error);
    }
    return print_one(globals, maps, "there already:", "made");
}

int ctl_map_drop(struct voxeld_client *client, const struct ctl_globals *globals,
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

static void print_table(const struct voxeld_maps *maps)
{
    struct ctl_table table;
    char text[CTL_NUMBER_BYTES];

    ctl_table_begin(&table, "map|>entries|>voxel m|arrays|>memory|owner");
    for (size_t i = 0; i < maps->n_maps; i++) {
        const struct voxeld_map_info *map = &maps->maps[i];

        ctl_table_cell(&table, "%s", map->name);
        ctl_table_cell(&table, "%s", ctl_thousands(map->n_entries, text));
        if (map->has_lattice) {
            ctl_table_cell(&table, "%g", map->lattice.size_m[0]);
        } else {
            ctl_table_cell(&table, "-");
        }
        ctl_table_cell(&table, "%zu", map->n_arrays);
        ctl_table_cell(&table, "%s", ctl_bytes(map->n_bytes, text));
        ctl_table_cell(&table, "%s", map->owner);
    }
    ctl_table_end(&table);
}

int ctl_map_list(struct voxeld_client *client, const struct ctl_globals *globals,
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
    for (size_t i = 0; i < maps->n_maps && globals->json; i++) {
        (void)fputs(i > 0 ? ", " : "", stdout);
        ctl_map_print_json(&maps->maps[i]);
    }
    if (!globals->json && maps->n_maps > 0) {
        print_table(maps);
    }
    ctl_print_total(globals, maps->n_maps, "maps", maps->n_bytes, maps->limit_bytes);
    voxeld_maps_free(maps);
    return ctl_flush();
}

int ctl_map_info(struct voxeld_client *client, const struct ctl_globals *globals,
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

int ctl_map_save(struct voxeld_client *client, const struct ctl_globals *globals,
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

int ctl_map_load(struct voxeld_client *client, const struct ctl_globals *globals,
                 const struct ctl_map_args *args)
{
    struct voxeld_map_load_request request = {0};
    struct voxeld_maps *maps;
    struct voxeld_error error;

    ctl_map_load_request(args, &request);
    if (voxeld_map_load(client, &request, &maps, &error) != VOXELD_OK) {
        return ctl_failed(request.map, &error);
    }
    return print_one(globals, maps, "replaced", "loaded");
}
