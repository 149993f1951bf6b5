// SPDX-License-Identifier: Apache-2.0
/* What the methods of hashmap.proto share. Private to server/service/map and the merge of
 * server/service/voxelize.
 *
 * check (any thread) looks at what the message alone says. The map is found in submit,
 * when the request's turn has come on the write lane. There everything that can fail
 * comes before the first change of the map: memory for the outputs, the reply itself, the
 * engine's blocking prepare. finish only fills in numbers. */
#ifndef VXD_SERVER_SERVICE_MAP_MAP_H
#define VXD_SERVER_SERVICE_MAP_MAP_H

#include "server/request/request.h"
#include "server/registry/maps/maps.h"
#include "server/service/columns/columns.h"
#include "server/service/noun/noun.h"
#include "voxeld/v1/hashmap.pb-c.h"

enum {
    VXD_MAP_MAX_BUFFERS = 2 * VXD_HASHMAP_MAX_VALUES + 8
};

struct vxd_map_job {
    struct vxd_query query; /* first: request->state is both */
    struct vxd_map *map;    /* held */
    struct vxd_map *made;   /* a new one, not findable yet; held */
    struct vxd_buffer device[VXD_MAP_MAX_BUFFERS];
    struct vxd_buffer host[VXD_MAP_MAX_BUFFERS];
    size_t n_device;
    size_t n_host;
    struct vxd_hashmap_image image; /* save, load */
    struct vxd_decoder *arena;      /* of a list */
    struct vxd_named_commit commit;
};

/* Find and export. */
struct vxd_map_read_job {
    struct vxd_map_job base; /* first: request->state is both */
    size_t first;            /* export: entries skipped */
    const void *asked;       /* device: keys, or numbers of entries */
    bool selected[VXD_HASHMAP_MAX_VALUES];
    size_t n_selected;
    struct vxd_column *indices;
    struct vxd_column *found;
    struct vxd_column *neighbours;
    struct vxd_column *keys;
    struct vxd_column *rows[VXD_HASHMAP_MAX_VALUES];
    void
        *values[VXD_HASHMAP_MAX_VALUES]; /* the engine reads it until the queue has run */
};
/* What 2 GiB leave for the arrays beside all other fields. */
#define VXD_MAP_REPLY_BYTES ((size_t)INT32_MAX - ((size_t)1 << 20))

/* --- map_job.c: memory of a request ------------------------------------------------ */

/* Makes request->state a new job.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_map_job_new(struct vxd_request *request, struct vxd_map_job **out,
                                struct vxd_err *err);

/* Finds the map and holds it: job->map. errors  NOT_FOUND */
enum vxd_status vxd_map_open(struct vxd_request *request, const char *name,
                             struct vxd_err *err);

/* Allocate memory that lasts until release.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_map_take_device(struct vxd_map_job *job, struct vxd_queue *queue,
                                    size_t n_bytes, void **out, struct vxd_err *err);
enum vxd_status vxd_map_take_host(struct vxd_map_job *job, struct vxd_queue *queue,
                                  size_t n_bytes, void **out, struct vxd_err *err);

/* Uploads the host's bytes.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_map_upload(struct vxd_map_job *job, struct vxd_queue *queue,
                               const void *host, size_t n_bytes, const void **out,
                               struct vxd_err *err);

/* Reads the map's size anew and accounts for its memory, after a change. */
void vxd_map_settle(struct vxd_request *request, struct vxd_queue *queue);

/* --- map_commit.c: durable maps ------------------------------------------------------ */

/* Packs the record of a change of a durable map, whose kind, entries and rows are set, in
 * host memory; to be called before the map is changed. From then on the caller sets
 * commit->has_changed once it has changed the map.
 * errors  UNAVAILABLE         the disk does not take changes now
 *         RESOURCE_EXHAUSTED  no memory, or more than the journal takes at once */
enum vxd_status vxd_map_pack_change(struct vxd_request *request,
                                    struct vxd_named_commit *commit, struct vxd_map *map,
                                    struct vxd_map_record *record, struct vxd_err *err);

/* Ends a request, at the end of finish, when its reply is complete: for a durable map the
 * reply is given once the change, or what was read, is on the disk. map NULL: all maps
 * were read. */
void vxd_map_conclude(struct vxd_request *request, struct vxd_named_commit *commit,
                      struct vxd_map *map, enum vxd_named_change kind);

/* --- map_tensor.c: arrays in and out ----------------------------------------------- */

/* Checks everything about a tensor that needs no map: a shape of 1 or 2 extents whose
 * product its data or values have. *n_rows is its first extent.
 * errors  INVALID_ARGUMENT  err.field is `field` */
enum vxd_status vxd_map_check_tensor(const Voxeld__V1__Tensor *tensor, const char *field,
                                     size_t *n_rows, struct vxd_err *err);

/* n rows of n_elements integers as `dtype` (INT16, INT32, INT64), in host memory: the
 * message's own where they are so already.
 * errors  INVALID_ARGUMENT    no integers, another row length, or a number outside of dtype;
 *                             names the row
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_map_read_integers(struct vxd_map_job *job, struct vxd_queue *queue,
                                      const Voxeld__V1__Tensor *tensor, const char *field,
                                      enum vxd_dtype dtype, size_t n_elements,
                                      const void **out, struct vxd_err *err);

/* Reads n rows of an array as they are; those given as JSON numbers are converted to
 * `dtype`. *dtype is what they should be, and becomes what they are where `widens` allows
 * another: UINT32 for UINT64, FLOAT32 for FLOAT64.
 * errors  as above */
enum vxd_status vxd_map_read_rows(struct vxd_map_job *job, struct vxd_queue *queue,
                                  const Voxeld__V1__Tensor *tensor, const char *field,
                                  size_t n, size_t n_elements, bool widens,
                                  enum vxd_dtype *dtype, const void **out,
                                  struct vxd_err *err);

/* --- map_ply.c ---------------------------------------------------------------------- */

/* Fills reply->ply from what an export has gathered; the file lives as long as the job.
 * errors  RESOURCE_EXHAUSTED
 *         FAILED_PRECONDITION  two properties would have one name */
enum vxd_status vxd_map_write_ply(struct vxd_request *request, struct vxd_queue *queue,
                                  Voxeld__V1__MapExportResponse *reply,
                                  struct vxd_err *err);

/* --- map_info.c: specs and MapInfo ------------------------------------------------- */

/* The schema's spec and lattice as ours.
 * errors  INVALID_ARGUMENT  err.field "spec.values[2].dtype", "lattice.size", ... */
enum vxd_status vxd_map_read_spec(const Voxeld__V1__MapSpec *spec,
                                  const Voxeld__V1__MapLattice *lattice,
                                  uint64_t capacity, struct vxd_map_spec *out,
                                  struct vxd_err *err);

/* The terms of a map that is to be made; ttl_s is one that the schema allows.
 * errors  INVALID_ARGUMENT  the name is none */
enum vxd_status vxd_map_read_terms(const struct vxd_request *request, const char *name,
                                   uint64_t max_bytes, double ttl_s,
                                   struct vxd_named_terms *out, struct vxd_err *err);

/* Makes a MapInfo in the arena; vxd_map_fill_info adds the numbers that change.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_map_new_info(struct vxd_decoder *arena, const struct vxd_map *map,
                                 Voxeld__V1__MapInfo **out, struct vxd_err *err);
void vxd_map_fill_info(Voxeld__V1__MapInfo *info, const struct vxd_map *map);

/* NULL where the map has no lattice. errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_map_new_lattice(struct vxd_decoder *arena,
                                    const struct vxd_map_spec *spec,
                                    Voxeld__V1__MapLattice **out, struct vxd_err *err);

/* Finds the array of this name; -1 = none. */
int vxd_map_find_array(const struct vxd_map_spec *spec, const char *name);

/* Sets selected[i] for the arrays that a request names ("*" = all).
 * errors  INVALID_ARGUMENT  no array has the name */
enum vxd_status vxd_map_choose_arrays(const struct vxd_map_spec *spec, char *const *names,
                                      size_t n_names,
                                      bool selected[VXD_HASHMAP_MAX_VALUES],
                                      struct vxd_err *err);

/* map_write.c: updates one array after the other; all or none are changed. has_changed:
 * the request has changed the map already and cannot be taken back. */
enum vxd_status vxd_map_update_arrays(struct vxd_queue *queue, struct vxd_map *map,
                                      const struct vxd_hashmap_update_args *args,
                                      size_t n_args, bool has_changed,
                                      struct vxd_err *err);

/* Fails with FAILED_PRECONDITION where numbers are from another epoch than the map's. */
enum vxd_status vxd_map_check_epoch(const struct vxd_map *map, uint64_t epoch,
                                    struct vxd_err *err);

#endif
