// SPDX-License-Identifier: Apache-2.0
/* What services of other nouns need of volumes: the job that their requests begin with, its commit,
 * surfaces, and pictures. On the write lane. */
#ifndef VXD_SERVER_SERVICE_VOLUME_SERVICE_VOLUME_H
#define VXD_SERVER_SERVICE_VOLUME_SERVICE_VOLUME_H

#include "gpu/render/render.h"
#include "gpu/surface/surface.h"
#include "gpu/volume/volume.h"
#include "server/registry/volumes/volumes.h"
#include "server/request/request.h"
#include "server/service/columns/columns.h"
#include "voxeld/v1/volume.pb-c.h"

/* The commit of a request on a durable volume. Zero-initialised it is none. */
struct vxd_volume_commit {
    struct vxd_named_commit base;  /* first: request->commit is both */
    struct vxd_named_volume *copy; /* READ: goes where what was read never was; held */
    struct vxd_volume_entry entry;
    size_t n_blocks; /* before the change */
    bool is_change;
};

struct vxd_volume_job {
    struct vxd_query query;          /* first: request->state is both */
    struct vxd_named_volume *volume; /* held */
    struct vxd_named_volume *made;   /* a new one, not findable yet; held */
    struct vxd_volume_commit commit;
    int32_t *forgotten; /* keys of blocks that made room; freed by release */
};

/* --- volume_job.c ---------------------------------------------------------------------- */

/* Finds the volume and holds it: job->volume. Where it is durable, what the request changes until
 * the end of finish is journalled (volume_commit.c), whatever the method.
 * errors  NOT_FOUND; UNAVAILABLE  of a durable volume */
enum vxd_status vxd_volume_open(struct vxd_request *request, const char *name,
                                struct vxd_err *err);

/* --- volume_info.c --------------------------------------------------------------------- */

/* errors  INVALID_ARGUMENT  a corner is missing or not finite, or low is not below high */
enum vxd_status vxd_volume_read_box(const Voxeld__V1__VolumeBox *box, double low[3],
                                    double high[3], struct vxd_err *err);

/* --- volume_surface.c ------------------------------------------------------------------ */

/* A surface, or a part of one, as columns of a request's job. Zero-initialised it is none. */
struct vxd_volume_surface {
    struct vxd_surface_args args;
    bool has_albedo;
    bool keys_only; /* only `blocks` is written; the others have no rows */
    struct vxd_surface *counted;
    struct vxd_surface_counts n;
    size_t n_colours; /* rows */
    size_t n_labels;
    struct vxd_column *vertices;
    struct vxd_column *normals;
    struct vxd_column *colours;
    struct vxd_column *labels;
    struct vxd_column *triangles;
    struct vxd_column *blocks;
};

/* Where the tensors that show it go. */
struct vxd_volume_surface_tensors {
    Voxeld__V1__Tensor **vertices;
    Voxeld__V1__Tensor **normals;
    Voxeld__V1__Tensor **colours;
    Voxeld__V1__Tensor **labels;
    Voxeld__V1__Tensor **triangles;
    Voxeld__V1__Tensor **blocks;
};

/* errors  FAILED_PRECONDITION  the volume keeps no albedo */
enum vxd_status vxd_volume_check_albedo(const struct vxd_named_volume *volume,
                                        bool has_albedo, struct vxd_err *err);

/* Counts the surface of `args`. Blocking.
 * errors  those of vxd_surface_create */
enum vxd_status vxd_volume_surface_count(struct vxd_queue *queue,
                                         const struct vxd_named_volume *volume,
                                         struct vxd_volume_surface *surface,
                                         struct vxd_err *err);

/* Reserves the columns of a surface that was counted, or of none, and queues what fills them.
 * in      tensors  NULL: none shows them
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_volume_surface_write(struct vxd_request *request,
                                         struct vxd_queue *queue,
                                         struct vxd_volume_surface *surface,
                                         const struct vxd_volume_surface_tensors *tensors,
                                         struct vxd_err *err);

/* The columns are the job's, and are freed with them. */
void vxd_volume_surface_free(struct vxd_queue *queue, struct vxd_volume_surface *surface);

/* --- volume_commit.c: durable volumes -------------------------------------------------- */

/* Lists a request's commit: its change of the volume, or that it reads what is not decided. A change
 * is journalled as the blocks that it changed, unless the method says in commit.entry.record what it
 * was, by a kind of record. Before the volume is changed.
 * errors  UNAVAILABLE  the disk takes no changes now, or the volume is not to be seen */
enum vxd_status vxd_volume_enlist(struct vxd_request *request, struct vxd_err *err);

/* Ends a request, in finish, when its reply is complete, in another way than by a change of blocks:
 * a volume was made or dropped, or read. volume NULL: all volumes were read. */
void vxd_volume_conclude(struct vxd_request *request, struct vxd_volume_commit *commit,
                         struct vxd_named_volume *volume, enum vxd_named_change kind);

/* In release, while the volume is still held. A change that never got to the journal marks the
 * volume as broken. */
void vxd_volume_end_commit(struct vxd_queue *queue, struct vxd_volume_commit *commit);

/* --- volume_cast.c: pictures ----------------------------------------------------------- */

/* A picture that is cast in stages of rows. */
struct vxd_volume_casting {
    const struct vxd_named_volume *volume; /* which the request holds */
    struct vxd_volume_cast_args args;
    int stage_rows;   /* of pixels; 0: no stage is planned */
    uint64_t version; /* of the volume in the first stage */
};

/* Chooses the rows of a stage, once the volume and the view are set.
 * errors  RESOURCE_EXHAUSTED  the picture takes too long */
enum vxd_status vxd_volume_plan_casting(struct vxd_request *request,
                                        const struct vxd_queue *queue,
                                        struct vxd_volume_casting *casting,
                                        struct vxd_err *err);

/* Queues the next rows; *is_done: they are the last ones.
 * errors  ABORTED  the volume is another one than in the first stage; of vxd_volume_cast */
enum vxd_status vxd_volume_cast_rows(struct vxd_queue *queue,
                                     struct vxd_volume_casting *casting, bool *is_done,
                                     struct vxd_err *err);

/* --- volume_view.c: what a camera of gpu/render sees ----------------------------------- */

/* How far the camera may be from the volume's origin, metres. */
#define VXD_VOLUME_MAX_DISTANCE_M 1e6

/* A picture of the surface. The volume is in casting.volume. */
struct vxd_volume_sight {
    /* Lengths in metres, places from the volume's origin; no orthographic camera. */
    struct vxd_render_picture picture;
    double low[3]; /* the box of the volume's blocks, likewise */
    double high[3];
    struct vxd_volume_casting casting;
    struct vxd_volume_lidar lidar; /* of the casting, for cameras that look all around */
    struct vxd_column *depth;
    struct vxd_column *places;
    struct vxd_column *normals;
    struct vxd_column *colours;
    struct vxd_column *labels;
};

/* Finds the box of the volume's blocks; of none it is around the origin. Blocking.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_volume_find_box(struct vxd_queue *queue,
                                    struct vxd_volume_sight *view, struct vxd_err *err);

/* Sets the casting's camera to the picture's, once the box is known; depth_max_m 0: as far as the
 * blocks are.
 * errors  INVALID_ARGUMENT    rows of a lidar that rays of volumes cannot have; err.field is "lidar..."
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_volume_aim(struct vxd_request *request, struct vxd_volume_sight *view,
                               double depth_max_m, struct vxd_err *err);

/* Reserves what the casting finds: depths, and, by the picture's mode, normals, places, colours and
 * labels, which the volume has where the mode is LABEL. No tensor of it goes out.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_volume_reserve_seen(struct vxd_request *request,
                                        struct vxd_columns *columns,
                                        struct vxd_queue *queue,
                                        struct vxd_volume_sight *view,
                                        struct vxd_err *err);

/* What was seen, once it is fetched. */
struct vxd_render_seen vxd_volume_seen(const struct vxd_volume_sight *view);

#endif
