// SPDX-License-Identifier: Apache-2.0
/* libvoxeld: named hash maps. Part of voxeld.h, whose conventions hold here.
 *
 * A map leads from integer vectors (keys) to rows of typed arrays (values), on the server's
 * device. Entries are numbered from 0; an entry keeps its number while it lives, and numbers
 * of erased entries are used again. Maps live in the server's memory: a restart forgets
 * those that were neither saved nor made durable.
 *
 *   const int32_t keys[] = {1, 2, 3, -4, 5, 6};
 *   struct voxeld_map_array sum = {.name = "sum", .dtype = VOXELD_FLOAT32, .n_elements = 4};
 *   struct voxeld_map_create_request create = {
 *       .map = "drive", .n_components = 3, .arrays = &sum, .n_arrays = 1};
 *   struct voxeld_map_insert_request insert = {
 *       .map = "drive", .keys = {.dtype = VOXELD_INT32, .data = keys, .n = 2, .n_elements = 3}};
 *   struct voxeld_map_result *result;
 *   if (voxeld_map_create(client, &create, NULL, &error) == VOXELD_OK &&
 *       voxeld_map_insert(client, &insert, &result, &error) == VOXELD_OK) {
 *       ... result->indices[0], result->is_new[1], result->n_entries ...
 *       voxeld_map_result_free(result);
 *   }
 *
 * Names (of maps, files and arrays) are [a-z0-9][a-z0-9._-]{0,62}.
 *
 * Errors of all of these, besides UNAVAILABLE, DEADLINE_EXCEEDED and those of the token:
 *   NOT_FOUND            no such map
 *   INVALID_ARGUMENT     a malformed name, array or number; error.field says which
 *   FAILED_PRECONDITION  numbers of entries were given, and entries were erased since their
 *                        erase_epoch; or a sequence below all that the server remembers
 *   RESOURCE_EXHAUSTED   over the map's max_bytes or the server's limits: nothing changed */
#ifndef VOXELD_MAP_H
#define VOXELD_MAP_H

#include "voxeld.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One value array of a map. */
struct voxeld_map_array {
    const char *name;
    enum voxeld_dtype dtype;
    uint32_t n_elements; /* 0 counts as 1; a row has at most 65536 bytes */
};

/* The meaning of keys that are voxels: the low corner of key (x, y, z) is origin_m +
 * (x, y, z) * size_m in the frame frame_id. */
struct voxeld_lattice {
    double size_m[3];
    double origin_m[3];
    const char *frame_id; /* NULL: none */
};

/* Maps ---------------------------------------------------------------------------------- */

/* What the reply to a change of a durable map promises. */
enum voxeld_map_fsync {
    VOXELD_MAP_FSYNC_ALWAYS = 0,   /* the change outlives a loss of power */
    VOXELD_MAP_FSYNC_EVERYSEC = 1, /* it outlives the server's process; a loss of power, a
                              * second later */
    VOXELD_MAP_FSYNC_OFF = 2       /* it outlives either when the system has written it */
};

struct voxeld_map_create_request {
    const char *map;
    enum voxeld_dtype key_dtype;           /* INT16, INT32 (0 as well), INT64 */
    uint32_t n_components;                 /* integers a key, 1 to 8; 0 counts as 3 */
    const struct voxeld_map_array *arrays; /* at most 16; none = a set */
    size_t n_arrays;
    uint64_t capacity;  /* entries to reserve at once; maps grow by themselves */
    uint64_t max_bytes; /* of device memory; 0: what the server's limits give */
    double ttl_s;       /* dropped when nobody used it for so long; 0 = never */
    bool has_lattice;
    struct voxeld_lattice lattice;
    struct voxeld_call call;
    /* Keeps the map on the server's disk: after a restart it is what it was, with the
     * numbers of its entries and its erase_epoch; ttl_s must be 0. FAILED_PRECONDITION
     * where the server has no data_dir. */
    bool durable;
    enum voxeld_map_fsync fsync; /* of a durable map, as the next */
    uint64_t journal_max_bytes;  /* writes a snapshot file at this size; 0: 256 MiB */
};

struct voxeld_map_info {
    const char *name;
    enum voxeld_dtype key_dtype;
    uint32_t n_components;
    const struct voxeld_map_array *arrays;
    size_t n_arrays;
    uint64_t n_entries;
    uint64_t capacity;
    uint64_t n_bytes;   /* of device memory */
    uint64_t max_bytes; /* 0: what the server's limits give */
    uint64_t erase_epoch;
    uint64_t generation; /* a new one after the map was dropped and made again, or after a
                     * start that could not bring back all of a durable map */
    double ttl_s;
    double ttl_left_s;
    const char *owner; /* name of the token that made it */
    int64_t created_ns;
    bool has_lattice;
    struct voxeld_lattice lattice;
    /* From voxeld_map_get only. */
    double load;        /* mean entries a slot of the index */
    double mean_probes; /* slots read to find a key */
    uint32_t max_probes;
    double index_bytes_per_entry;
    bool durable;
    enum voxeld_map_fsync fsync;
    uint64_t journal_max_bytes;
    /* True in lists for a durable map of which a change could not be written to the
     * disk, until the map has come back from there. n_entries, capacity and
     * erase_epoch are 0 then. */
    bool unavailable;
};

/* All pointers live until the struct is freed. */
struct voxeld_maps {
    const struct voxeld_map_info *maps; /* by name */
    size_t n_maps;
    bool existed;         /* create: the map existed already; load: it replaced another */
    uint64_t n_bytes;     /* list: of all maps ... */
    uint64_t limit_bytes; /* ... and their limit */
    bool replayed;        /* the outcome of an earlier call with this sequence */
};

/* In these three, and in voxeld_map_load, *out is the one map; out may be NULL if its
 * description is not needed. Free with voxeld_maps_free.
 *
 * Creating a map that exists is OK with equal parameters (capacity aside), and
 * ALREADY_EXISTS with others. */
VOXELD_API enum voxeld_status
voxeld_map_create(struct voxeld_client *client,
                  const struct voxeld_map_create_request *request,
                  struct voxeld_maps **out, struct voxeld_error *error);
VOXELD_API enum voxeld_status voxeld_map_get(struct voxeld_client *client,
                                             const struct voxeld_call *call,
                                             const char *map, struct voxeld_maps **out,
                                             struct voxeld_error *error);
VOXELD_API enum voxeld_status voxeld_map_list(struct voxeld_client *client,
                                              const struct voxeld_call *call,
                                              struct voxeld_maps **out,
                                              struct voxeld_error *error);
VOXELD_API void voxeld_maps_free(struct voxeld_maps *maps);

/* With missing_ok a map that does not exist is no error. existed may be NULL. */
VOXELD_API enum voxeld_status voxeld_map_drop(struct voxeld_client *client,
                                              const struct voxeld_call *call,
                                              const char *map, bool missing_ok,
                                              bool *existed, struct voxeld_error *error);

/* Entries ------------------------------------------------------------------------------- */

/* The outcome of n keys, or n entries. Arrays that the call does not give are NULL; so
 * are all arrays where arrays_dropped says so. All pointers live until the struct is
 * freed. */
struct voxeld_map_result {
    size_t n;               /* rows of every array; as many as were given */
    const int32_t *indices; /* insert, find, export: the entries' numbers, -1 = none */
    const uint8_t *is_new;  /* insert: 1 for the first of equal new keys, else 0 */
    const uint8_t *found;
    const uint8_t *erased;    /* 1 for the first of equal keys that existed, else 0 */
    const uint8_t *updated;   /* 1 where the entry lives */
    struct voxeld_array keys; /* export; find with return_keys */
    const struct voxeld_array *values; /* find, export */
    size_t n_values;
    const int32_t *neighbours; /* find: n x n_neighbours entries, -1 = none */
    size_t n_neighbours;
    const uint8_t *ply; /* export as PLY */
    size_t n_ply_bytes;
    uint64_t n_new; /* insert; update with insert_missing */
    uint64_t n_found;
    uint64_t n_erased;
    uint64_t n_updated;
    uint64_t n_entries;   /* in the map afterwards; find does not give it */
    uint64_t erase_epoch; /* rises when entries are erased, or the map is made again or
                           * replaced; send it with the entries' numbers */
    bool has_lattice;     /* export */
    struct voxeld_lattice lattice;
    double engine_ms; /* in the engine, copies included */
    double queue_ms;  /* waited at the server */
    double total_ms;  /* at the server, from arrival to reply */
    const char *request_id;
    bool
        replayed; /* the outcome of an earlier call with this sequence: see voxeld_call */
    bool arrays_dropped; /* the server remembered only the counts of that earlier call */
};

/* In all functions below, out may be NULL in calls that change something; free with
 * voxeld_map_result_free. keys are rows of any integer dtype whose values fit the
 * map's. */
VOXELD_API void voxeld_map_result_free(struct voxeld_map_result *result);

struct voxeld_map_insert_request {
    const char *map;
    struct voxeld_array keys;
    const struct voxeld_array
        *values; /* of new entries; arrays that are not given start as zeros */
    size_t n_values;
    bool counts_only; /* no arrays come back */
    struct voxeld_call call;
};

/* Of equal new keys the first wins, and new keys take the lowest free numbers in order, so
 * equal requests give equal results. Entries that exist keep their values. */
VOXELD_API enum voxeld_status
voxeld_map_insert(struct voxeld_client *client,
                  const struct voxeld_map_insert_request *request,
                  struct voxeld_map_result **out, struct voxeld_error *error);

/* error is NULL when done is not, which is the callback's to free; error lives until it returns. It
 * may start new calls and must not close the client. */
typedef void (*voxeld_map_result_callback)(void *context, struct voxeld_map_result *done,
                                           const struct voxeld_error *error);

/* Starts the same and returns at once, so that the next one goes out while the server works on this
 * one. They take effect in the order in which they were started. When the result is OK, the callback
 * is called exactly once, from voxeld_dispatch (or voxeld_close); otherwise never. What *request
 * points to is needed until then. */
VOXELD_API enum voxeld_status voxeld_map_insert_async(
    struct voxeld_client *client, const struct voxeld_map_insert_request *request,
    voxeld_map_result_callback callback, void *context, struct voxeld_error *error);

struct voxeld_map_find_request {
    const char *map;
    struct voxeld_array keys; /* either keys ... */
    const int32_t *indices;   /* ... or, where this is not NULL, entries by number, */
    size_t n_indices;
    uint64_t erase_epoch;      /* with the epoch that the numbers are from */
    const char *const *arrays; /* arrays to send rows of; "*" = all */
    size_t n_arrays;
    uint32_t neighbours; /* 0, 6, 8 or 27; with keys only. 6: -x +x -y +y -z +z; 8:
                                 * x, y, z each +0, +1 and 27: each -1, 0, +1, z fastest */
    bool return_keys;
    struct voxeld_call call;
};

/* Finds keys, or gathers entries by number. Rows of keys that are not in the map are
 * zeros. */
VOXELD_API enum voxeld_status
voxeld_map_find(struct voxeld_client *client,
                const struct voxeld_map_find_request *request,
                struct voxeld_map_result **out, struct voxeld_error *error);

struct voxeld_map_erase_request {
    const char *map;
    struct voxeld_array keys;
    bool all; /* erases everything instead of keys */
    bool counts_only;
    struct voxeld_call call;
};

VOXELD_API enum voxeld_status
voxeld_map_erase(struct voxeld_client *client,
                 const struct voxeld_map_erase_request *request,
                 struct voxeld_map_result **out, struct voxeld_error *error);

enum voxeld_combine {
    VOXELD_COMBINE_SET = 0, /* the last row stays */
    VOXELD_COMBINE_ADD = 1, /* integers clamp at their range */
    VOXELD_COMBINE_MIN = 2,
    VOXELD_COMBINE_MAX = 3
};

struct voxeld_map_update_request {
    const char *map;
    struct voxeld_array
        keys; /* either keys, or numbers with their erase_epoch: as find */
    const int32_t *indices;
    size_t n_indices;
    uint64_t erase_epoch;
    const struct voxeld_array *values; /* at least one array, n rows each */
    size_t n_values;
    enum voxeld_combine combine; /* with the present values; rows of one entry in order */
    bool insert_missing;         /* inserts missing keys first, as zeros; else they are
                                  * skipped */
    bool counts_only;
    struct voxeld_call call;
};

VOXELD_API enum voxeld_status
voxeld_map_update(struct voxeld_client *client,
                  const struct voxeld_map_update_request *request,
                  struct voxeld_map_result **out, struct voxeld_error *error);
/* As voxeld_map_insert_async. */
VOXELD_API enum voxeld_status voxeld_map_update_async(
    struct voxeld_client *client, const struct voxeld_map_update_request *request,
    voxeld_map_result_callback callback, void *context, struct voxeld_error *error);

struct voxeld_map_export_request {
    const char *map;
    bool as_ply;               /* gives a PLY instead of arrays; keys of three components
                                * only */
    const char *const *arrays; /* none = all */
    size_t n_arrays;
    bool keys_only;
    uint64_t first; /* of the entries by number: skip so many, */
    uint64_t limit; /* send at most so many; 0 = all */
    struct voxeld_call call;
};

/* Exports entries by ascending number. As PLY: a vertex an entry, x y z the centre of
 * its voxel in metres where the map has a lattice, else its key; then the value
 * arrays and, of a map that voxelize merged points into, their means mean_x, mean_y,
 * mean_z in the map frame, while sums count from the origin. */
VOXELD_API enum voxeld_status
voxeld_map_export(struct voxeld_client *client,
                  const struct voxeld_map_export_request *request,
                  struct voxeld_map_result **out, struct voxeld_error *error);

/* Exports as a PLY file at path, whatever as_ply says; the file appears whole or not
 * at all. n_entries (may be NULL): how many the map has.
 * errors  PERMISSION_DENIED, UNAVAILABLE  the file cannot be written */
VOXELD_API enum voxeld_status
voxeld_map_export_file(struct voxeld_client *client,
                       const struct voxeld_map_export_request *request, const char *path,
                       uint64_t *n_entries, struct voxeld_error *error);

/* Files of the server ------------------------------------------------------------------- */

struct voxeld_map_saved {
    char file[64];
    uint64_t n_bytes;
    uint64_t n_entries;
    uint64_t digest; /* of the contents; equal on every backend */
    bool replayed;
};

/* Saves the map to the server's data directory, replacing an older file of that name.
 * file NULL: the map's name; call and out may be NULL. */
VOXELD_API enum voxeld_status voxeld_map_save(struct voxeld_client *client,
                                              const struct voxeld_call *call,
                                              const char *map, const char *file,
                                              struct voxeld_map_saved *out,
                                              struct voxeld_error *error);

struct voxeld_map_load_request {
    const char *map;
    const char *file; /* NULL: the map's name */
    bool replace;     /* else ALREADY_EXISTS where the map exists */
    uint64_t max_bytes;
    double ttl_s; /* both as in voxeld_map_create_request */
    struct voxeld_call call;
};

/* Makes a map of a saved file, the entries' numbers included. */
VOXELD_API enum voxeld_status
voxeld_map_load(struct voxeld_client *client,
                const struct voxeld_map_load_request *request, struct voxeld_maps **out,
                struct voxeld_error *error);

#ifdef __cplusplus
}
#endif

#endif
