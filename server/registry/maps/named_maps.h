// SPDX-License-Identifier: Apache-2.0
/* The named hash maps. Requests on maps run on the write lane, one after the other, so all
 * here is that lane's unless a function says "any thread". Maps are found by name when their
 * request's turn has come; what a request holds outlives its name's being dropped.
 *
 * Memory: a map may grow to its own max_bytes and to what limits.map_bytes and
 * limits.map_bytes_per_token leave, the copies that growing needs for a moment included. */
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

#define VXD_MAP_JOURNAL_BYTES                                                            \
    ((uint64_t)256 << 20) /* journal_max_bytes that is not given */

struct vxd_maps;

/* What a map is, but for its name and its entries. */
struct vxd_map_spec {
    struct vxd_hashmap_spec engine;
    char array_names[VXD_HASHMAP_MAX_VALUES][VXD_NAME_BYTES];
    bool has_lattice;
    double size_m[3];
    double origin_m[3];
    char frame_id[VXD_MAP_FRAME_BYTES];
};

/* How long and how large. */
struct vxd_map_terms {
    char name[VXD_NAME_BYTES];
    char owner[VXD_NAME_BYTES];
    uint64_t max_bytes; /* 0 = the limits' */
    int64_t ttl_ns;     /* 0 = never dropped */
    bool durable;       /* in the journal; then ttl_ns is 0 */
    enum vxd_fsync fsync;
    uint64_t journal_max_bytes; /* of its records, then a snapshot is written */
};

/* Of a durable map: the write lane's. Sequence numbers are the family's in the journal. */
struct vxd_map_durable {
    uint32_t journal_id; /* 0: it is none */
    uint64_t sequence;   /* of the last record that was handed over */
    uint64_t decided;    /* of the last one on disk */
    size_t n_waiting;    /* handed over and not decided */
    bool is_leaving;     /* being dropped */
    bool is_gone;        /* dropped, or its making failed: the name is taken away */
    /* What the map has in memory is not what is on disk: a change failed, and all that was built
     * on it. Nobody sees it until it is brought back. */
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
    /* The registry's. */
    size_t n_bytes; /* as accounted */
    int references;
    struct vxd_map *next; /* by name */
};

/* errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_maps_create(struct vxd_server *server, struct vxd_maps **out,
                                struct vxd_err *err);

/* No request may run. NULL is fine. */
void vxd_maps_destroy(struct vxd_maps *maps);

/* Equal keys, arrays and lattice; capacity and limits may differ. */
bool vxd_map_spec_equal(const struct vxd_map_spec *a, const struct vxd_map_spec *b);

/* Bytes of one key, and of one entry's rows of all arrays. */
size_t vxd_map_key_bytes(const struct vxd_hashmap_spec *spec);
size_t vxd_map_row_bytes(const struct vxd_hashmap_spec *spec, int array);

/* The erase epoch of the wire: the engine's, counted from a number above all epochs that a
 * map of this name ever had, so that what was numbered by another map is refused. */
uint64_t vxd_map_epoch(const struct vxd_map *map);

/* The map, used now; NULL where there is none. */
struct vxd_map *vxd_maps_find(struct vxd_maps *maps, const char *name);

/* The same without that being a use. */
struct vxd_map *vxd_maps_peek(struct vxd_maps *maps, const char *name);

/* In order of their names; NULL = the first. */
struct vxd_map *vxd_maps_next(struct vxd_maps *maps, const struct vxd_map *map);

/* A map that nobody can find yet, with one reference.
 * in      take_hashmap  NULL = an empty one is made
 * errors  RESOURCE_EXHAUSTED  over the limits, the engine's budget, or too many maps */
enum vxd_status vxd_map_new(struct vxd_maps *maps, struct vxd_queue *queue,
                            const struct vxd_map_terms *terms,
                            const struct vxd_map_spec *spec,
                            struct vxd_hashmap *take_hashmap, struct vxd_map **out,
                            struct vxd_err *err);

/* Makes it findable, the registry's reference being another; its name is free. Cannot fail. */
void vxd_maps_publish(struct vxd_maps *maps, struct vxd_map *map);

/* Takes the name away; the map goes with its last reference. */
void vxd_maps_remove(struct vxd_maps *maps, struct vxd_queue *queue, struct vxd_map *map);

void vxd_map_hold(struct vxd_map *map);
/* A use ends here: the map's ttl begins anew. */
void vxd_map_drop(struct vxd_maps *maps, struct vxd_queue *queue, struct vxd_map *map);

/* Device bytes that a map of these terms may take now; `map` is it, NULL for one to be made.
 * What a map has counts as its own. */
size_t vxd_maps_allowance(const struct vxd_maps *maps, const struct vxd_map_terms *terms,
                          const struct vxd_map *map);

/* vxd_hashmap_prepare within the allowance.
 * errors  RESOURCE_EXHAUSTED  says which limit; the map is unchanged */
enum vxd_status vxd_maps_prepare(const struct vxd_maps *maps, struct vxd_queue *queue,
                                 struct vxd_map *map, const void *keys, size_t n,
                                 size_t *n_new, struct vxd_err *err);

/* Where the engine refused what is above the allowance: names the limit that it came from, if
 * it is not the map's own. */
void vxd_maps_explain(const struct vxd_maps *maps, const struct vxd_map_terms *terms,
                      const struct vxd_map *map, struct vxd_err *err);

/* After it may have grown. */
void vxd_maps_account(struct vxd_maps *maps, struct vxd_map *map);

/* Drops maps that nobody used for their ttl at the time `now_ns`. */
void vxd_maps_reap(struct vxd_maps *maps, struct vxd_queue *queue, int64_t now_ns);

/* Any thread. When the next map's time is over, unless it is used before; INT64_MAX = none. */
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

/* Any thread: bytes of key and rows of an entry, and how many there are at most, for
 * estimating what a request will take. Zeros where there is no such map. */
void vxd_maps_estimate(struct vxd_maps *maps, const char *name, size_t *entry_bytes,
                       uint64_t *n_entries);

#endif
