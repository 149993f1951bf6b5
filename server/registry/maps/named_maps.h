// SPDX-License-Identifier: Apache-2.0
/* The named hash maps: a table of named things (server/registry/named), which maps.h gives to others.
 * Requests on maps run on the write lane, one after the other, so all functions here belong to that lane
 * unless they say "any thread". */
#ifndef VXD_SERVER_REGISTRY_MAPS_NAMED_MAPS_H
#define VXD_SERVER_REGISTRY_MAPS_NAMED_MAPS_H

#include "gpu/hash/hash.h"
#include "server/registry/named/named.h"

enum {
    VXD_MAPS_MAX = 4096,
    VXD_MAP_FRAME_BYTES = 256
};

/* What a map is, apart from its name and its entries. */
struct vxd_map_spec {
    struct vxd_hashmap_spec engine;
    char array_names[VXD_HASHMAP_MAX_VALUES][VXD_NAME_BYTES];
    bool has_lattice;
    double size_m[3];
    double origin_m[3];
    char frame_id[VXD_MAP_FRAME_BYTES];
};

struct vxd_map {
    struct vxd_named named; /* first: a struct vxd_named of this table is one */
    struct vxd_map_spec spec;
    struct vxd_hashmap *hashmap;
    uint64_t n_entries;   /* exact between requests */
    uint64_t first_epoch; /* what the wire's epochs count from */
};

/* Makes the table of maps. vxd_names_destroy frees it.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_maps_create(struct vxd_server *server, struct vxd_names **out,
                                struct vxd_err *err);

/* Whether keys, arrays and lattice are equal; capacity and limits may differ. */
bool vxd_map_spec_equal(const struct vxd_map_spec *a, const struct vxd_map_spec *b);

/* Return the bytes of one key, and of an entry's row of one array. */
size_t vxd_map_key_bytes(const struct vxd_hashmap_spec *spec);
size_t vxd_map_row_bytes(const struct vxd_hashmap_spec *spec, int array);

/* Returns the erase epoch of the wire: the engine's, counted from a number above all
 * epochs that a map of this name ever had, so that numbers of another map's entries are
 * refused. */
uint64_t vxd_map_epoch(const struct vxd_map *map);

/* As vxd_names_find and vxd_names_peek. */
struct vxd_map *vxd_maps_find(struct vxd_names *maps, const char *name);
struct vxd_map *vxd_maps_peek(const struct vxd_names *maps, const char *name);

/* Makes a map that nobody can find yet, with one reference.
 * in      take_hashmap  NULL = an empty one is made
 * errors  RESOURCE_EXHAUSTED  over the limits, the engine's budget, or too many maps */
enum vxd_status vxd_map_new(struct vxd_names *maps, struct vxd_queue *queue,
                            const struct vxd_named_terms *terms,
                            const struct vxd_map_spec *spec,
                            struct vxd_hashmap *take_hashmap, struct vxd_map **out,
                            struct vxd_err *err);

/* vxd_hashmap_prepare within the allowance.
 * errors  RESOURCE_EXHAUSTED  says which limit; the map is unchanged */
enum vxd_status vxd_map_prepare(struct vxd_queue *queue, struct vxd_map *map,
                                const void *keys, size_t n, size_t *n_new,
                                struct vxd_err *err);

/* Any thread. Estimates how many bytes the key and rows of an entry have, and how many
 * entries there are at most. Both are 0 where there is no such map. */
void vxd_maps_estimate(struct vxd_names *maps, const char *name, size_t *entry_bytes,
                       uint64_t *n_entries);

#endif
