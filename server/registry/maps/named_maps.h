// SPDX-License-Identifier: Apache-2.0
/* The named hash maps. Requests on maps run on the write lane, one after the other, so
 * all functions here belong to that lane unless they say "any thread". A request finds
 * its map by name when its turn has come; a map that a request holds lives on when its
 * name is dropped.
 *
 * Memory: a map may grow up to its own max_bytes and to what limits.map_bytes and
 * limits.map_bytes_per_token leave. The copies that growing needs for a moment count. */
#ifndef VXD_SERVER_REGISTRY_MAPS_NAMED_MAPS_H
#define VXD_SERVER_REGISTRY_MAPS_NAMED_MAPS_H

#include "gpu/hash/hash.h"
#include "proto/base/name.h"
#include "server/durable/journal/journal.h"
#include "server/request/request.h"

enum {
    VXD_MAPS_MAX = 4096,
    VXD_MAP_FRAME_BYTES = 256
};

#define VXD_MAP_JOURNAL_BYTES ((uint64_t)256 << 20) /* the default of journal_max_bytes */

struct vxd_maps;

/* What a map is, apart from its name and its entries. */
struct vxd_map_spec {
    struct vxd_hashmap_spec engine;
    char array_names[VXD_HASHMAP_MAX_VALUES][VXD_NAME_BYTES];
    bool has_lattice;
    double size_m[3];
    double origin_m[3];
    char frame_id[VXD_MAP_FRAME_BYTES];
};

/* How long a map is kept, and how large it may be. */
struct vxd_map_terms {
    char name[VXD_NAME_BYTES];
    char owner[VXD_NAME_BYTES];
    uint64_t max_bytes; /* 0 = the limits' */
    int64_t ttl_ns;     /* 0 = never dropped */
    bool durable;       /* it is in the journal; then ttl_ns is 0 */
    enum vxd_fsync fsync;
    uint64_t
        journal_max_bytes; /* a snapshot is written when its records have so many bytes */
};

/* How a durable map stands in the journal; the write lane's. Sequence numbers are those
 * of the map's family there. */
struct vxd_map_durable {
    uint32_t journal_id; /* 0: the map is not durable */
    uint64_t sequence;   /* of the last record that was handed over */
    uint64_t decided;    /* of the last one on disk */
    size_t n_waiting;    /* changes that were handed over and are not decided */
    bool is_leaving;     /* it is being dropped */
    bool is_gone;        /* it was dropped, or could not be made: its name is free */
    /* Memory has changes that the disk lacks: one failed, and others were built on it.
     * Nobody sees the map until it is brought back. */
    bool is_broken;
};

struct vxd_map {
    struct vxd_map_terms terms;
    struct vxd_map_spec spec;
    struct vxd_hashmap *hashmap;
    uint64_t n_entries; /* exact between requests */
    uint64_t generation;
    uint64_t first_epoch; /* what the wire's epochs count from */
    int64_t created_unix_ns;
    int64_t used_ns; /* monotonic */
    struct vxd_map_durable durable;
    /* These belong to the list of maps. */
    size_t n_bytes; /* as accounted */
    int references;
    struct vxd_map *next; /* by name */
};

/* errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_maps_create(struct vxd_server *server, struct vxd_maps **out,
                                struct vxd_err *err);

/* No request may run. NULL is fine. */
void vxd_maps_destroy(struct vxd_maps *maps);

/* Whether keys, arrays and lattice are equal; capacity and limits may differ. */
bool vxd_map_spec_equal(const struct vxd_map_spec *a, const struct vxd_map_spec *b);

/* Return the bytes of one key, and of an entry's row of one array. */
size_t vxd_map_key_bytes(const struct vxd_hashmap_spec *spec);
size_t vxd_map_row_bytes(const struct vxd_hashmap_spec *spec, int array);

/* Returns the erase epoch of the wire: the engine's, counted from a number above all
 * epochs that a map of this name ever had, so that numbers of another map's entries are
 * refused. */
uint64_t vxd_map_epoch(const struct vxd_map *map);

/* Finds a map, which counts as a use of it; NULL where there is none. */
struct vxd_map *vxd_maps_find(struct vxd_maps *maps, const char *name);

/* Finds a map without using it. */
struct vxd_map *vxd_maps_peek(struct vxd_maps *maps, const char *name);

/* Returns the next map in order of names; the first one for NULL. */
struct vxd_map *vxd_maps_next(struct vxd_maps *maps, const struct vxd_map *map);

/* Makes a map that nobody can find yet, with one reference.
 * in      take_hashmap  NULL = an empty one is made
 * errors  RESOURCE_EXHAUSTED  over the limits, the engine's budget, or too many maps */
enum vxd_status vxd_map_new(struct vxd_maps *maps, struct vxd_queue *queue,
                            const struct vxd_map_terms *terms,
                            const struct vxd_map_spec *spec,
                            struct vxd_hashmap *take_hashmap, struct vxd_map **out,
                            struct vxd_err *err);

/* Gives the map its name, which is free, and takes a reference. It cannot fail. */
void vxd_maps_publish(struct vxd_maps *maps, struct vxd_map *map);

/* Takes the name away. The map is freed with its last reference. */
void vxd_maps_remove(struct vxd_maps *maps, struct vxd_queue *queue, struct vxd_map *map);

void vxd_map_hold(struct vxd_map *map);
/* Drops a reference. It ends a use, so the map's ttl begins anew. */
void vxd_map_drop(struct vxd_maps *maps, struct vxd_queue *queue, struct vxd_map *map);

/* Returns the device bytes that a map of these terms may take now, including those it
 * has. `map` is the map, or NULL for one that is to be made. */
size_t vxd_maps_allowance(const struct vxd_maps *maps, const struct vxd_map_terms *terms,
                          const struct vxd_map *map);

/* vxd_hashmap_prepare within the allowance.
 * errors  RESOURCE_EXHAUSTED  says which limit; the map is unchanged */
enum vxd_status vxd_maps_prepare(const struct vxd_maps *maps, struct vxd_queue *queue,
                                 struct vxd_map *map, const void *keys, size_t n,
                                 size_t *n_new, struct vxd_err *err);

/* Completes the engine's error where it refused what is above the allowance: names the
 * limit, unless it is the map's own. */
void vxd_maps_explain(const struct vxd_maps *maps, const struct vxd_map_terms *terms,
                      const struct vxd_map *map, struct vxd_err *err);

/* Accounts for the map's memory after it may have grown. */
void vxd_maps_account(struct vxd_maps *maps, struct vxd_map *map);

/* Drops maps that nobody used for their ttl at the time `now_ns`. */
void vxd_maps_reap(struct vxd_maps *maps, struct vxd_queue *queue, int64_t now_ns);

/* Any thread. Returns when the next map's time is over, unless it is used before;
 * INT64_MAX = never. */
int64_t vxd_maps_next_reap_ns(const struct vxd_maps *maps);

struct vxd_maps_usage {
    size_t n_maps;
    uint64_t n_bytes;
    uint64_t limit_bytes;
    size_t n_durable;
    uint64_t n_snapshots; /* files of durable maps written, and failed */
    uint64_t n_failed_snapshots;
};

/* Any thread. */
void vxd_maps_get_usage(const struct vxd_maps *maps, struct vxd_maps_usage *out);

/* Any thread. Estimates how many bytes the key and rows of an entry have, and how many
 * entries there are at most. Both are 0 where there is no such map. */
void vxd_maps_estimate(struct vxd_maps *maps, const char *name, size_t *entry_bytes,
                       uint64_t *n_entries);

#endif
