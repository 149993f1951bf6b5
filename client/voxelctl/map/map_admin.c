// SPDX-License-Identifier: Apache-2.0
/* What voxelctl map create, list, info, save and load print for people. */
#include <inttypes.h>
#include <string.h>

#include "client/voxelctl/generated/map_args.h"

static const char *fsync_name(enum voxeld_map_fsync fsync)
{
    static const char *const names[] = {"always", "everysec", "off"};

    return (size_t)fsync < sizeof names / sizeof names[0] ? names[fsync] : "?";
}

void ctl_map_print_line(const struct voxeld_map_info *map)
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

void ctl_map_print_info(const struct voxeld_map_info *map)
{
    const struct voxeld_lattice *l = &map->lattice;
    char number[32];

    ctl_map_print_line(map);
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

void ctl_map_print_list(const struct voxeld_maps *maps)
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

void ctl_map_print_saved(const struct voxeld_map_saved *saved)
{
    char entries[32];
    char bytes[32];

    (void)printf("%s: %s entries in %s bytes, digest %016" PRIx64 "\n", saved->file,
                 ctl_thousands(saved->n_entries, entries),
                 ctl_thousands(saved->n_bytes, bytes), saved->digest);
}
