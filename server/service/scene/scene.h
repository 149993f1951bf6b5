// SPDX-License-Identifier: Apache-2.0
/* What the methods of scene.proto share.
 *
 * check (any thread) looks at what the message alone says; the scene is found when the
 * request's turn has come, in submit, and with it how metres become units, which materials
 * there are and whether free space is tracked. Queries read root and version once, then.
 *
 * Metres to the engine's units, everywhere: (p - origin) / voxel_size * 256 in double, in this
 * order, rounded to the nearest whole number, ties to even. */
#ifndef VXD_SERVER_SERVICE_SCENE_SCENE_H
#define VXD_SERVER_SERVICE_SCENE_SCENE_H

#include "gpu/svdag/scan/scan.h"
#include "gpu/svdag/brush/brush.h"
#include "gpu/svdag/diff/diff.h"
#include "gpu/svdag/mesh/mesh.h"
#include "server/request/request.h"
#include "server/registry/scenes/scenes.h"
#include "server/service/columns/columns.h"
#include "server/service/noun/noun.h"
#include "voxeld/v1/scene.pb-c.h"
#include "voxeld/v1/scene_version.pb-c.h"

/* What 2 GiB leave for the arrays beside all other fields. */
#define VXD_SCENE_REPLY_BYTES ((size_t)INT32_MAX - ((size_t)1 << 20))

/* This coordinate in units stands for everything at least as far from the low corner:
 * beyond every scene. */
#define VXD_SCENE_FAR (VXD_SVDAG_MAX_COORDINATE - 1)

enum {
    VXD_SCENE_PATH_BYTES = 64
};

/* --- scene_job.c: memory of a request --------------------------------------------------- */

struct vxd_scene_block {
    struct vxd_buffer buffer;
    struct vxd_scene_block *next;
};

/* An array that the engine fills and the reply, or who makes it, reads. */
struct vxd_scene_output {
    size_t n_bytes;
    void *device;
    const void *bytes; /* readable by the host once the queue has run what was fetched */
};

/* How a change of a durable scene ends. Zero-initialised it is none. */
struct vxd_scene_commit {
    struct vxd_commit base;
    struct vxd_scene_entry entry;
    bool is_handed_over;
    /* Of a scene that fuses its scans: the change has begun, and the layer of log-odds has
     * followed it (scene_fusion.h). */
    bool is_fusing;
    bool has_followed;
    void (*effect)(struct vxd_request *request, bool committed);
};

struct vxd_scene_job {
    struct vxd_query query;       /* first: request->state is both */
    struct vxd_scene *scene;      /* held from vxd_scene_open on */
    struct vxd_scene_state state; /* pinned then */
    struct vxd_scene *made;       /* a new one; held */
    struct vxd_scene_block *device;
    struct vxd_scene_block *host;
    struct vxd_decoder *arena; /* of a reply that is larger than its request's */
    struct vxd_scene_commit commit;
};

/* Checks which version a message asks for: by number or by name, not both.
 * errors  INVALID_ARGUMENT  err.field is `field`, or what of it is wrong */
enum vxd_status vxd_scene_check_at(const Voxeld__V1__SceneAt *at, const char *field,
                                   struct vxd_err *err);

/* Finds the scene, holds it and pins a version, at NULL the newest. request->state is a job, or
 * begins with one.
 * errors  NOT_FOUND */
enum vxd_status vxd_scene_open(struct vxd_request *request, const char *name,
                               const Voxeld__V1__SceneAt *at, struct vxd_err *err);

/* Drops the scene before release does, so that a client that has the reply can drop the
 * scene and have its memory back. Does nothing when there is none. */
void vxd_scene_close(struct vxd_request *request, struct vxd_queue *queue);

/* Allocate memory that lasts until release, n_items of item_bytes each.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_take_device(struct vxd_request *request,
                                      struct vxd_queue *queue, size_t n_items,
                                      size_t item_bytes, void **out, struct vxd_err *err);
enum vxd_status vxd_scene_take_host(struct vxd_request *request, size_t n_items,
                                    size_t item_bytes, void **out, struct vxd_err *err);

/* Uploads the host's bytes.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_upload(struct vxd_request *request, struct vxd_queue *queue,
                                 const void *host, size_t n_bytes, const void **out,
                                 struct vxd_err *err);

/* Reserve device memory for an output, and copy it to the host once the work that fills
 * it is queued.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_reserve_output(struct vxd_request *request,
                                         struct vxd_queue *queue, size_t n_items,
                                         size_t item_bytes, struct vxd_scene_output *out,
                                         struct vxd_err *err);
enum vxd_status vxd_scene_fetch_output(struct vxd_request *request,
                                       struct vxd_queue *queue,
                                       struct vxd_scene_output *output,
                                       struct vxd_err *err);

/* scene_bounds.c: finds the box of the occupied voxels of the pinned version, which has some; half-open,
 * voxels from the low corner. Blocking.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_find_bounds(struct vxd_request *request,
                                      struct vxd_queue *queue, int64_t low[3],
                                      int64_t high[3], struct vxd_err *err);

/* Makes a tensor of n rows that shows bytes which live as long as the job; with columns 0
 * it has one extent.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_show(struct vxd_request *request, enum vxd_dtype dtype,
                               size_t n, size_t columns, const void *bytes,
                               Voxeld__V1__Tensor **out, struct vxd_err *err);

bool vxd_scene_has_materials(const struct vxd_scene *scene);

/* Reserves the query's column of uint16 materials; *out stays as it is where the scene has none.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_reserve_materials(struct vxd_request *request,
                                            struct vxd_queue *queue,
                                            Voxeld__V1__Tensor **tensor,
                                            struct vxd_column **out, struct vxd_err *err);

/* Returns the place of a row in a column that may be none. */
void *vxd_scene_row(const struct vxd_column *column, size_t row, size_t row_bytes);

/* Uploads the voxels of the query's rows, n x 3 numbers (vxd_scene_read_voxels).
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_upload_voxels(struct vxd_request *request,
                                        struct vxd_queue *queue,
                                        const Voxeld__V1__Tensor *points,
                                        const int32_t **out, struct vxd_err *err);

/* Makes what the replies of all queries echo.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_new_seen(struct vxd_request *request,
                                   Voxeld__V1__SceneSeen **out, struct vxd_err *err);

/* RESOURCE_EXHAUSTED where n rows of row_bytes are more than a reply holds. */
enum vxd_status vxd_scene_check_reply(size_t n, size_t row_bytes, struct vxd_err *err);

/* Makes a message of a version, whose texts the message shows. */
void vxd_scene_show_version(struct vxd_scene_version *version,
                            Voxeld__V1__SceneVersion *message);

/* Frees the blocks before release does; nothing queued may use the host's. */
void vxd_scene_free_blocks(struct vxd_request *request, struct vxd_queue *queue);

/* Changes, on the write lane. errors  ABORTED  the scene is at another version */
enum vxd_status vxd_scene_check_version(const struct vxd_scene_job *job,
                                        uint64_t if_version, struct vxd_err *err);

/* Begin and end a change. Before it, the newest version is pinned (the one that an
 * earlier stage opened may be another, or in a store that was collected meanwhile), one
 * more version is reserved, and the store may grow as far as the limits allow. Once the
 * request is over, the edit is stopped as CANCELLED. After it, whatever became of it, the store's
 * growth is accounted for; status is what became of it, and is returned.
 *
 * The change holds the scene from begin_change on. While the engine works it may be apart
 * (vxd_request_begin_apart), which end_change ends.
 * errors  RESOURCE_EXHAUSTED, ABORTED; of end_change UNAVAILABLE: what it builds on has failed */
enum vxd_status vxd_scene_begin_change(struct vxd_request *request,
                                       struct vxd_queue *queue, uint64_t if_version,
                                       struct vxd_err *err);
enum vxd_status vxd_scene_end_change(struct vxd_request *request, enum vxd_status status,
                                     struct vxd_err *err);

/* Hold the request's open scene, so that nothing else changes scenes of its family until it is let go:
 * when the change is concluded, or the request released. */
void vxd_scene_hold(struct vxd_request *request);
void vxd_scene_let_go(struct vxd_request *request);

/* Follows a change that has been prepared, where the scene has log-odds.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_follow(struct vxd_request *request, struct vxd_queue *queue,
                                 uint32_t root, struct vxd_err *err);
/* errors  FAILED_PRECONDITION  the scene does not fuse by log-odds; err.field is "name" */
enum vxd_status vxd_scene_need_log_odds(const struct vxd_scene *scene,
                                        struct vxd_err *err);
/* Ends what vxd_scene_begin_change began of log-odds. */
void vxd_scene_end_following(struct vxd_scene_job *job);

/* Edits the newest version within what the scene may take, waits, and prepares the change
 * for the journal as this kind. FUSE: the operations are a scan's lists, which log-odds
 * turn into those that the scene gets. PIN: the last commit.entry.n_pin_ops of them edit the
 * pins, and state.pins becomes what they make. Where commit.entry has scans, the journal gets
 * their rays instead of the operations, which are theirs.
 * errors  as vxd_svdag_edit, those of its wait included; the scene is as it was */
enum vxd_status vxd_scene_apply(struct vxd_request *request, struct vxd_queue *queue,
                                enum vxd_record_kind kind, const struct vxd_svdag_op *ops,
                                size_t n_ops, struct vxd_svdag_edit_result *result,
                                struct vxd_err *err);

/* The same for a decay of log-odds; decayed_ns is the record's.
 * errors  RESOURCE_EXHAUSTED; the scene is as it was */
enum vxd_status vxd_scene_fade(struct vxd_request *request, struct vxd_queue *queue,
                               const struct vxd_occupancy_decay *decay,
                               int64_t decayed_ns, struct vxd_svdag_edit_result *result,
                               struct vxd_err *err);

/* --- scene_commit.c: the end of a change -------------------------------------------------- */

/* Begins to pack what the journal gets of a change of the newest version, beside the change
 * itself. What is given stays until the end. Does nothing for scenes in memory alone.
 * errors  UNAVAILABLE (the disk), RESOURCE_EXHAUSTED; the end need not follow */
enum vxd_status vxd_scene_begin_prepare(struct vxd_request *request,
                                        struct vxd_queue *queue,
                                        enum vxd_record_kind kind,
                                        const struct vxd_svdag_op *ops, size_t n_ops,
                                        struct vxd_err *err);
/* Ends it: waits, or forgets what is not needed. Does nothing where it did not begin.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_end_prepare(struct vxd_request *request, bool is_needed,
                                      struct vxd_err *err);

/* Both, for a change that has been executed and has no operations: of `made` where there
 * is one, otherwise of the scene.
 * errors  UNAVAILABLE (the disk), RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_prepare(struct vxd_request *request, struct vxd_queue *queue,
                                  enum vxd_record_kind kind, uint64_t of_version,
                                  struct vxd_err *err);

/* Reserves the name of job->made until it is published. err.field is `field`.
 * errors  ALREADY_EXISTS, UNAVAILABLE (another one is about to have it) */
enum vxd_status vxd_scene_reserve(struct vxd_request *request, const char *field,
                                  struct vxd_err *err);

/* Ends a change, in finish: `effect` makes everybody see the change, or takes it back;
 * now, or when it is on disk. It cannot fail. */
void vxd_scene_conclude(struct vxd_request *request,
                        void (*effect)(struct vxd_request *request, bool committed));

/* Makes the result the scene's newest version, in finish, and fills in what has changed.
 * It cannot fail. */
void vxd_scene_publish(struct vxd_request *request,
                       const struct vxd_svdag_edit_result *result,
                       enum vxd_scene_made_by kind, uint64_t of_version,
                       Voxeld__V1__SceneChange *change);

/* --- scene_units.c: places -------------------------------------------------------------- */

/* How lengths become units: the scene's metres, or voxels from its low corner. */
struct vxd_scene_frame {
    double origin[3];
    double size;
};

struct vxd_scene_frame vxd_scene_frame_of(const struct vxd_scene_spec *spec,
                                          bool in_voxels);

/* Return the unit nearest to a length or coordinate, finite or not, at most VXD_SCENE_FAR
 * either way; NaN becomes the lowest. */
int64_t vxd_scene_length(const struct vxd_scene_frame *frame, double length);
int64_t vxd_scene_coordinate(const struct vxd_scene_frame *frame, int axis, double p);

/* Return the first voxel whose centre is at or above a coordinate, and the voxel that
 * holds it. */
int64_t vxd_scene_first_voxel(int64_t units);
int64_t vxd_scene_voxel_at(int64_t units);

/* Convert three coordinates. Corners of a box that are out of range are clamped, which
 * changes nothing.
 * errors  OUT_OF_RANGE  as far as VXD_SCENE_FAR; err.field is `field` */
enum vxd_status vxd_scene_place(const struct vxd_scene_frame *frame,
                                const Voxeld__V1__Vec3 *v, const char *field,
                                int64_t out[3], struct vxd_err *err);
void vxd_scene_corner(const struct vxd_scene_frame *frame, const Voxeld__V1__Vec3 *v,
                      int64_t out[3]);

/* errors  INVALID_ARGUMENT  absent or not finite; err.field is `field` */
enum vxd_status vxd_scene_check_vector(const Voxeld__V1__Vec3 *v, const char *field,
                                       struct vxd_err *err);
/* errors  INVALID_ARGUMENT  a corner missing or not finite; err.field "<path>.low", ... */
enum vxd_status vxd_scene_check_box(const Voxeld__V1__SceneBox *box, const char *path,
                                    struct vxd_err *err);

/* Computes the voxels whose centres are in a box, or all of the scene for NULL: from low
 * up to, but not including, high. Where the box's corners are the wrong way round, high
 * is below low. */
void vxd_scene_voxels_in(const struct vxd_scene_spec *spec, bool in_voxels,
                         const Voxeld__V1__SceneBox *box, int64_t low[3],
                         int64_t high[3]);

enum vxd_status vxd_scene_read_level(const struct vxd_scene_spec *spec, uint32_t level,
                                     int *out, struct vxd_err *err);

/* --- scene_tensor.c: arrays ------------------------------------------------------------- */

/* n x columns numbers: int32 and int64 where integers are taken, float32, float64, or values
 * of any of these (without a dtype: float64).
 * errors  INVALID_ARGUMENT  err.field is `field` */
enum vxd_status vxd_scene_check_numbers(const Voxeld__V1__Tensor *tensor,
                                        const char *field, size_t columns,
                                        bool takes_integers, size_t *n_rows,
                                        struct vxd_err *err);

/* Whether they are voxel indices. */
bool vxd_scene_is_indices(const Voxeld__V1__Tensor *tensor);

/* Returns element i of such a tensor. */
double vxd_scene_number(const Voxeld__V1__Tensor *tensor, size_t i);

/* Computes the voxels of n x 3 such numbers: -1 -1 -1 for those that are not finite,
 * which are counted where n_non_finite is not NULL. Numbers beyond int32 become the
 * nearest that fit, outside every scene. */
void vxd_scene_read_voxels(const Voxeld__V1__Tensor *tensor,
                           const struct vxd_scene_frame *frame, int32_t *voxels,
                           uint64_t *n_non_finite);

/* n materials of uint8 or uint16 (or values): those that the scene does not have are refused,
 * naming the row. errors  INVALID_ARGUMENT */
enum vxd_status vxd_scene_check_materials(const Voxeld__V1__Tensor *tensor,
                                          const char *field, size_t n_rows,
                                          struct vxd_err *err);
enum vxd_status vxd_scene_read_materials(const Voxeld__V1__Tensor *tensor,
                                         const char *field, uint32_t n_materials,
                                         uint16_t *out, struct vxd_err *err);

/* --- scene_info.c: specs and SceneInfo -------------------------------------------------- */

/* Converts the schema's spec to ours and fills in defaults; the palette is in the
 * request's memory.
 * errors  INVALID_ARGUMENT  err.field "spec.palette[2].name", ...
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_read_spec(struct vxd_request *request,
                                    const Voxeld__V1__SceneSpec *spec,
                                    struct vxd_scene_spec *out, struct vxd_err *err);

/* Decides how scans are fused where a spec does not say: as the scene that exists does, or,
 * with NULL, by log-odds where free space is tracked. */
enum vxd_status vxd_scene_choose_fusion(const struct vxd_scene_spec *existing,
                                        struct vxd_scene_spec *spec, struct vxd_err *err);

/* Returns the bytes of an arena that an info of this scene fits in; and makes one in the
 * arena.
 * errors  RESOURCE_EXHAUSTED */
size_t vxd_scene_info_bytes(const struct vxd_scene *scene, bool with_palette);
enum vxd_status vxd_scene_new_info(struct vxd_decoder *arena, struct vxd_scene *scene,
                                   bool with_palette, Voxeld__V1__SceneInfo **out,
                                   struct vxd_err *err);

/* --- scene_shapes.c: operations --------------------------------------------------------- */

/* What every operation says by itself. errors  INVALID_ARGUMENT  "operations[3].ball.radius" */
enum vxd_status vxd_scene_check_operation(const Voxeld__V1__SceneOperation *operation,
                                          size_t i, struct vxd_err *err);

/* Converts an operation to the engine's, except for lists of voxels and heights, and says
 * whether it lies outside the scene as a whole.
 * errors  INVALID_ARGUMENT, OUT_OF_RANGE, FAILED_PRECONDITION  err.field as above */
enum vxd_status vxd_scene_read_operation(const struct vxd_scene *scene,
                                         const struct vxd_scene_frame *frame,
                                         const Voxeld__V1__SceneOperation *operation,
                                         size_t i, struct vxd_svdag_op *out,
                                         bool *outside, struct vxd_err *err);

/* --- scene_heights.c -------------------------------------------------------------------- */

/* Checks the array; scene_shapes.c has checked the numbers beside it.
 * errors  INVALID_ARGUMENT  "operations[3].heightfield.heights" */
enum vxd_status vxd_scene_check_heights(const Voxeld__V1__SceneHeightfield *field,
                                        const char *path, struct vxd_err *err);
/* Fills out->shape.field and low; memory of the request's.
 * errors  as above, RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_read_heights(struct vxd_request *request,
                                       const struct vxd_scene_frame *frame,
                                       const Voxeld__V1__SceneHeightfield *field,
                                       const char *path, struct vxd_svdag_op *out,
                                       bool *outside, struct vxd_err *err);

/* --- scene_diff.c: where two roots differ ----------------------------------------------- */

enum {
    VXD_SCENE_DIFFERENCE_BYTES = 3 * sizeof(int32_t) + 1 /* of a cell in a reply */
};

struct vxd_scene_difference {
    uint32_t
        from; /* a root in the store of the job's pinned version, which it leads to */
    struct vxd_svdag_diff_box box;
    uint64_t n_cells;         /* in the box */
    size_t n;                 /* taken */
    struct vxd_column *cells; /* NULL: none are taken */
    struct vxd_column *changes;
    struct vxd_column *total;   /* 2 uint64 */
    struct vxd_column *written; /* likewise */
};

/* Reads the box in which to look, NULL for all of the scene, and the level of the cells.
 * errors  INVALID_ARGUMENT  err.field "level" */
enum vxd_status vxd_scene_difference_box(const struct vxd_scene_spec *spec,
                                         const Voxeld__V1__SceneBox *in, bool in_voxels,
                                         uint32_t level, struct vxd_svdag_diff_box *out,
                                         struct vxd_err *err);

/* Two stages: the first counts the cells; the second takes up to `limit` (0 = as many as a reply
 * holds) from `first` on.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_difference_count(struct vxd_request *request,
                                           struct vxd_queue *queue,
                                           struct vxd_scene_difference *d,
                                           struct vxd_err *err);
enum vxd_status vxd_scene_difference_take(struct vxd_request *request,
                                          struct vxd_queue *queue,
                                          struct vxd_scene_difference *d, uint64_t first,
                                          uint64_t limit, struct vxd_err *err);

/* Makes the arrays of the reply, in finish; they live as long as the job.
 * errors  RESOURCE_EXHAUSTED, INTERNAL */
enum vxd_status vxd_scene_difference_show(struct vxd_request *request,
                                          const struct vxd_scene_difference *d,
                                          Voxeld__V1__Tensor **cells,
                                          Voxeld__V1__Tensor **changes,
                                          struct vxd_err *err);

/* --- scene_ply.c ------------------------------------------------------------------------ */

/* Writes a PLY file of n cells, 2^level voxels a side; reply->ply lives as long as the
 * job.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_write_ply(struct vxd_request *request, const int32_t *cells,
                                    const uint16_t *materials, const uint64_t *counts,
                                    size_t n, int level,
                                    Voxeld__V1__SceneExportResponse *reply,
                                    struct vxd_err *err);

/* --- scene_triangles.c: triangles as voxels that an edit fills --------------------------------- */

/* Zero-initialised it is none. It lasts until release, which frees it. */
struct vxd_scene_triangles {
    struct vxd_svdag_voxel_list *lists;
    size_t n_lists;
    struct vxd_svdag_op *ops; /* that fill the lists */
};

/* Lists the voxels of the next triangles of a mesh, from *state on, and waits.
 * errors  RESOURCE_EXHAUSTED  with the field and the text `too_many` where one edit cannot have so many */
enum vxd_status vxd_scene_list_triangles(struct vxd_request *request,
                                         struct vxd_queue *queue,
                                         const struct vxd_svdag_mesh *mesh,
                                         struct vxd_svdag_mesh_state *state,
                                         struct vxd_scene_triangles *triangles,
                                         const char *field, const char *too_many,
                                         struct vxd_err *err);

/* Fills the lists, of which there is one at least: vxd_scene_apply. */
enum vxd_status
vxd_scene_fill_triangles(struct vxd_request *request, struct vxd_queue *queue,
                         struct vxd_scene_triangles *triangles, uint32_t material,
                         struct vxd_svdag_edit_result *result, struct vxd_err *err);

void vxd_scene_free_triangles(struct vxd_queue *queue,
                              struct vxd_scene_triangles *triangles);

#endif
