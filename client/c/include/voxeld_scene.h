// SPDX-License-Identifier: Apache-2.0
/* libvoxeld: scenes. Part of voxeld.h, whose conventions hold here.
 *
 * A scene is a cube of 2^depth voxels a side on the server's device. A voxel is occupied,
 * with a material, or not; where the scene tracks free space it is occupied, free (a ray went
 * through it) or unknown. Every change gives a new version, which queries see as a whole or
 * not at all. Scenes live in the server's memory, and a restart forgets them, unless they are
 * made durable. Undo, snapshots, branches and differences: voxeld_version.h.
 *
 *   struct voxeld_scene_create_request create = {
 *       .scene = "yard", .voxel_size_m = 0.1, .material_bits = 4, .track_free = true};
 *   struct voxeld_scene_integrate_request integrate = {
 *       .scene = "yard", .cloud = scan, .carve = true, .max_range_m = 50};
 *   struct voxeld_scene_integrated done;
 *   if (voxeld_scene_create(client, &create, NULL, &error) == VOXELD_OK &&
 *       voxeld_scene_integrate(client, &integrate, &done, &error) == VOXELD_OK) {
 *       ... done.change.n_added, done.change.version ...
 *   }
 *
 * Geometry is metres in the scene's map frame, or voxels from its low corner where a request
 * says in_voxels. A voxel is in a shape when its centre is; boxes are half-open; balls are
 * distance <= radius. Names are [a-z0-9][a-z0-9._-]{0,62}. Where a call looks at a scene (get,
 * queries, export), its name may be NAME@VERSION or NAME@SNAPSHOT, such as "yard@7" or
 * "yard@monday": a version that is kept, instead of the newest. What is all digits is a version.
 *
 * Errors of all of these, besides UNAVAILABLE, DEADLINE_EXCEEDED and those of the token:
 *   NOT_FOUND           no such scene; at.version, at.snapshot: none that is kept
 *   INVALID_ARGUMENT    a malformed name, shape, array or number; error.field says which
 *   OUT_OF_RANGE        all shapes of an edit lie outside the scene
 *   ABORTED             the scene is not at if_version
 *   RESOURCE_EXHAUSTED  over the scene's max_bytes or the server's limits: nothing changed */
#ifndef VOXELD_SCENE_H
#define VOXELD_SCENE_H

#include "voxeld.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Scenes -------------------------------------------------------------------------------- */

/* A material's number is its place in the palette. */
struct voxeld_scene_material {
    const char *name; /* NULL or "": none */
    uint32_t rgb;     /* 0xRRGGBB, sRGB */
};

/* What the reply to a change of a durable scene promises. */
enum voxeld_scene_fsync {
    VOXELD_FSYNC_ALWAYS = 0,   /* the change outlives a loss of power */
    VOXELD_FSYNC_EVERYSEC = 1, /* it outlives the server's process; a loss of power, a
                                * second later */
    VOXELD_FSYNC_OFF = 2       /* it outlives either when the system has written it */
};

/* How the scans of a scene meet what it has. */
enum voxeld_scene_fusion {
    /* LOG_ODDS with track_free, else LAST; equal to what an existing scene has */
    VOXELD_FUSION_UNSPECIFIED = 0,
    VOXELD_FUSION_LAST = 1, /* the last word counts */
    /* A voxel is what most scans say, by OctoMap's rules: at most one hit or miss a scan, a
     * state that changes where the log-odds cross the threshold. */
    VOXELD_FUSION_LOG_ODDS = 2
};

/* Probabilities of LOG_ODDS; 0 counts as OctoMap's. */
struct voxeld_scene_log_odds {
    double hit;        /* 0.5 to 1; 0: 0.7 */
    double miss;       /* 0 to 0.5; 0: 0.4 */
    double clamp_low;  /* 0 to 0.5; 0: 0.1192 */
    double clamp_high; /* 0.5 to 1; 0: 0.971 */
    double occupied;   /* a voxel is from here on; 0: 0.5 */
    /* In an info: log-odds of a step of the server's 8-bit numbers, and the largest relative
     * error of the five, at most 0.01. */
    double step;
    double error;
    /* A voxel's material is that of most of its last so many scans that hit it, 2 to 4; 0: of the
     * last hit. */
    uint32_t label_votes;
};

struct voxeld_scene_create_request {
    const char *scene;
    double voxel_size_m;    /* edge; required */
    uint32_t depth;         /* 4 to 21; 0 counts as 17 */
    uint32_t material_bits; /* of a voxel: 0, 4, 8 or 16 */
    bool track_free;        /* tracks free and unknown voxels apart; takes the highest
                             * material */
    bool has_origin;        /* else the scene's centre lies at (0, 0, 0) */
    double origin_m[3];     /* the scene's low corner */
    const char *frame_id;   /* NULL: none */
    const struct voxeld_scene_material *palette;
    size_t n_palette;
    uint64_t max_bytes; /* of device memory; 0: what the server's limits give */
    /* Versions that are kept beside those that a snapshot names, within both bounds: */
    uint32_t keep_versions; /* the newest so many; 0: 64 */
    uint64_t keep_seconds;  /* those younger than this; 0: of any age */
    /* Keeps the scene on the server's disk, so that it exists after a restart;
     * FAILED_PRECONDITION where the server has no data_dir. */
    bool durable;
    enum voxeld_scene_fsync fsync; /* of a durable scene, as the next */
    uint64_t journal_max_bytes;    /* then a snapshot file is written; 0: 256 MiB */
    struct voxeld_call call;
    enum voxeld_scene_fusion fusion;
    struct voxeld_scene_log_odds log_odds; /* where one is not 0, fusion is LOG_ODDS */
};

struct voxeld_scene_info {
    const char *name;
    double voxel_size_m;
    uint32_t depth;
    uint32_t material_bits;
    bool track_free;
    double origin_m[3];
    const char *frame_id;
    const struct voxeld_scene_material *palette;
    size_t n_palette;
    uint64_t version;    /* rises by one with every change */
    uint64_t generation; /* a new one after the scene was dropped and made again */
    uint64_t n_bytes;    /* of device memory */
    uint64_t max_bytes;  /* 0: what the server's limits give */
    uint64_t node_bytes; /* the nodes' part of these bytes, of all kept versions */
    uint64_t n_nodes;
    const char *owner; /* name of the token that made it */
    int64_t created_ns;
    int64_t changed_ns;
    uint32_t keep_versions; /* as it was created */
    uint64_t keep_seconds;
    uint64_t oldest_version; /* that is kept apart from snapshots */
    uint32_t n_snapshots;
    uint32_t n_sharing; /* scenes that share its memory, itself included: branches */
    bool durable;
    enum voxeld_scene_fsync fsync;
    uint64_t journal_max_bytes;
    /* From voxeld_scene_get only, of the version that was asked for. */
    uint64_t n_occupied;      /* voxels */
    uint64_t n_free;          /* voxels */
    uint64_t live_node_bytes; /* of that version's own nodes */
    const char *digest;       /* equal for equal voxels; 32 hexadecimal digits */
    /* From every call again. */
    enum voxeld_scene_fusion fusion;
    struct voxeld_scene_log_odds log_odds; /* of LOG_ODDS */
    uint64_t log_odds_bytes;               /* of n_bytes, of all scenes that share it */
    uint64_t n_pinned;                     /* voxels; filled by voxeld_scene_get alone */
    uint64_t vote_bytes;                   /* of log_odds_bytes: votes for materials */
    /* The box of all occupied voxels, from voxeld_scene_get; all 0 where there are none. */
    double occupied_low_m[3];
    double occupied_high_m[3];
};

/* All pointers live until the struct is freed. */
struct voxeld_scenes {
    const struct voxeld_scene_info *scenes; /* by name */
    size_t n_scenes;
    bool existed;         /* create: it was there already */
    uint64_t n_bytes;     /* list: of all scenes ... */
    uint64_t limit_bytes; /* ... and their limit */
    bool replayed;        /* the outcome of an earlier call with this sequence */
};

/* In these two *out is the one scene; create's may be NULL if its description is not
 * needed. Creating a scene that exists is OK with equal parameters, and ALREADY_EXISTS
 * with others. voxeld_scene_get walks the whole scene. Free with voxeld_scenes_free. */
VOXELD_API enum voxeld_status
voxeld_scene_create(struct voxeld_client *client,
                    const struct voxeld_scene_create_request *request,
                    struct voxeld_scenes **out, struct voxeld_error *error);
VOXELD_API enum voxeld_status voxeld_scene_get(struct voxeld_client *client,
                                               const struct voxeld_call *call,
                                               const char *scene,
                                               struct voxeld_scenes **out,
                                               struct voxeld_error *error);
/* As voxeld_scene_get, without walking the scene: what that alone fills stays empty, but for the
 * palette. */
VOXELD_API enum voxeld_status voxeld_scene_describe(struct voxeld_client *client,
                                                    const struct voxeld_call *call,
                                                    const char *scene,
                                                    struct voxeld_scenes **out,
                                                    struct voxeld_error *error);
VOXELD_API enum voxeld_status voxeld_scene_list(struct voxeld_client *client,
                                                const struct voxeld_call *call,
                                                struct voxeld_scenes **out,
                                                struct voxeld_error *error);
VOXELD_API void voxeld_scenes_free(struct voxeld_scenes *scenes);

/* With missing_ok a scene that does not exist is no error. existed may be NULL. */
VOXELD_API enum voxeld_status voxeld_scene_drop(struct voxeld_client *client,
                                                const struct voxeld_call *call,
                                                const char *scene, bool missing_ok,
                                                bool *existed,
                                                struct voxeld_error *error);

/* Edits --------------------------------------------------------------------------------- */

enum voxeld_scene_shape {
    VOXELD_SHAPE_NONE = 0,
    VOXELD_SHAPE_BOX = 1,
    VOXELD_SHAPE_BALL = 2,
    VOXELD_SHAPE_CAPSULE = 3,
    VOXELD_SHAPE_HALF_SPACE = 4,
    VOXELD_SHAPE_POINTS = 5,
    VOXELD_SHAPE_HEIGHTFIELD = 6
};

enum voxeld_scene_action {
    VOXELD_SCENE_FILL = 0,     /* occupied, of `material` */
    VOXELD_SCENE_ERASE = 1,    /* neither occupied nor free */
    VOXELD_SCENE_SET_FREE = 2, /* only in scenes that track free space */
    VOXELD_SCENE_PAINT = 3,    /* occupied voxels take `material` */
    VOXELD_SCENE_REPLACE = 4,  /* voxels of from_material take `material` */
    /* Voxels with fewer than `threshold` occupied face neighbours are erased. */
    VOXELD_SCENE_ERODE = 5,
    /* Other voxels with at least `threshold` occupied face neighbours become occupied,
     * with the material of the first of -x +x -y +y -z +z. */
    VOXELD_SCENE_DILATE = 6,
    VOXELD_SCENE_COPY = 7, /* the box takes the voxels of another place: see
                            * voxeld_scene_copy */
    VOXELD_SCENE_KEEP = 8  /* they stay as they are; with `pin` */
};

/* In scenes that fuse by log-odds, scans and decays leave pinned voxels as they are, until
 * they are unpinned; edits change them like others. */
enum voxeld_scene_pin {
    VOXELD_SCENE_PIN_UNCHANGED = 0,
    VOXELD_SCENE_PINNED = 1,
    VOXELD_SCENE_UNPINNED = 2
};

struct voxeld_scene_box {
    double low[3];
    double high[3];
};

struct voxeld_scene_ball {
    double centre[3];
    double radius;
    /* Value noise adds at most this to the radius, or subtracts it, on a lattice of
     * 2^noise_cell_bits voxels (at most 16). */
    double noise;
    uint32_t noise_cell_bits;
    uint32_t noise_seed;
};

struct voxeld_scene_capsule {
    double a[3];
    double b[3];
    double radius;
};

/* normal . p <= offset, with a normal of any length. */
struct voxeld_scene_half_space {
    double normal[3];
    double offset;
};

struct voxeld_scene_points {
    struct voxeld_array points; /* n x 3: INT32, INT64 voxels; FLOAT32, FLOAT64 metres */
    /* n UINT8 or UINT16, used instead of the operation's material in FILL and PAINT;
     * of equal voxels the last one's counts. Zeroed: none. */
    struct voxeld_array materials;
};

/* Columns that reach from low_z up to heights above square cells. */
struct voxeld_scene_heightfield {
    /* n = n_x rows of n_elements = n_y FLOAT32 or FLOAT64; NaN: no column there. */
    struct voxeld_array heights;
    double x; /* low corner of the first cell */
    double y;
    double cell; /* edge: a whole number of voxels */
    double low_z;
};

/* Voxel p of the box takes the voxel at from + M (p - low), where low is the box's low
 * voxel. */
struct voxeld_scene_copy {
    double from[3]; /* a position in the source of the low voxel */
    /* The matrix row by row, with one 1 or -1 in each row and column: quarter turns
     * and mirrors. All zero: no turn. */
    int32_t matrix[9];
    bool copy_empty; /* copies empty and free voxels, too */
};

struct voxeld_scene_operation {
    enum voxeld_scene_shape shape; /* says which of the next six counts */
    union {
        struct voxeld_scene_box box;
        struct voxeld_scene_ball ball;
        struct voxeld_scene_capsule capsule;
        struct voxeld_scene_half_space half_space;
        struct voxeld_scene_points points;
        struct voxeld_scene_heightfield heightfield;
    } in;
    enum voxeld_scene_action action;
    uint32_t material;
    uint32_t from_material;
    uint32_t threshold; /* 1 to 6; 0: 6 of ERODE, 1 of DILATE */
    struct voxeld_scene_copy copy;
    enum voxeld_scene_pin pin; /* of all its voxels; with FILL, ERASE, SET_FREE, KEEP */
};

/* A growing list of operations; zero it first, and free it with voxeld_scene_clear.
 *
 *   struct voxeld_scene_operations list = {0};
 *   struct voxeld_scene_operation *ball = voxeld_scene_add(&list, VOXELD_SHAPE_BALL);
 *   if (ball != NULL) {
 *       ball->in.ball = (struct voxeld_scene_ball){.centre = {1, 2, 0}, .radius = 0.5};
 *       ball->material = 3;
 *   }
 */
struct voxeld_scene_operations {
    struct voxeld_scene_operation *operations;
    size_t n;
    size_t capacity; /* private */
};

/* Appends an operation, zeroed except for its shape. It stays where it is until the
 * next one is added. NULL where there is no memory. What its arrays point to is
 * borrowed. */
VOXELD_API struct voxeld_scene_operation *
voxeld_scene_add(struct voxeld_scene_operations *list, enum voxeld_scene_shape shape);

/* Frees the list, which is empty then. */
VOXELD_API void voxeld_scene_clear(struct voxeld_scene_operations *list);

struct voxeld_scene_edit_request {
    const char *scene;
    const struct voxeld_scene_operation *operations; /* 1 to 4096 */
    size_t n_operations;
    bool in_voxels;      /* lengths are voxels, not metres */
    uint64_t if_version; /* ABORTED unless the scene is at this version; 0: at any */
    struct voxeld_call call;
};

/* What a change did, in voxels. */
struct voxeld_scene_change {
    uint64_t version;   /* the new one */
    uint64_t n_added;   /* occupied now and not before */
    uint64_t n_removed; /* occupied before and not now */
    uint64_t n_changed; /* of another material */
    uint64_t n_freed;   /* free now and not before */
    uint64_t n_new_nodes;
};

struct voxeld_scene_edited {
    struct voxeld_scene_change change;
    uint64_t n_outside;    /* points of lists, outside the scene */
    uint64_t n_non_finite; /* points of lists */
    double engine_ms;
    double queue_ms; /* waited at the server */
    double total_ms; /* at the server, from arrival to reply */
    bool replayed;   /* the outcome of an earlier call with this sequence */
};

/* Applies operations, in order, as one change: all or none. out may be NULL. */
VOXELD_API enum voxeld_status
voxeld_scene_edit(struct voxeld_client *client,
                  const struct voxeld_scene_edit_request *request,
                  struct voxeld_scene_edited *out, struct voxeld_error *error);

/* Scans --------------------------------------------------------------------------------- */

/* How a scan's points get their material. */
enum voxeld_scene_rule {
    VOXELD_MATERIAL_CONSTANT = 0, /* `material` for all */
    VOXELD_MATERIAL_LABEL = 1,    /* the field's number, rounded; else `material` */
    /* The material whose colour is nearest in CIELAB to the fields rgb, rgba, r g b or
     * red green blue. */
    VOXELD_MATERIAL_COLOUR = 2,
    /* The palette from first to last material, as the field goes from low to high. */
    VOXELD_MATERIAL_RAMP = 3,
    VOXELD_MATERIAL_HEIGHT = 4 /* the same with z in the map frame */
};

/* The material for the points of one label of a network. */
struct voxeld_scene_label {
    int32_t label;             /* or the number for points without a label, usually -1 */
    const char *label_name;    /* name in the network's config, instead of the number; may
                                * be NULL */
    int32_t material;          /* -1: none */
    const char *material_name; /* name in the scene's palette, instead of the number; may
                                * be NULL */
};

/* Points that hit nothing, though their rays count. All zero: none. */
struct voxeld_scene_filter {
    bool ground; /* those of the ground: the plane that most points are near (RANSAC) */
    double ground_distance_m;    /* of the plane; 0: 0.04 */
    double ground_angle;         /* radians that it may be inclined; 0: 0.15 */
    double ground_z;             /* where it is at the sensor's x and y, */
    double ground_z_tolerance_m; /* and how far from there it may be; 0: anywhere */
    uint32_t min_hits;           /* those of voxels that fewer points of the scan hit */
    bool no_speckles; /* and of voxels of whose 26 neighbours no other is hit */
};

struct voxeld_scene_integrate_request {
    const char *scene;
    const struct voxeld_cloud *cloud; /* with its pose; rays start at its translation */
    bool carve; /* empties what lies between the sensor and each point */
    /* For carving: rays end at this range, and farther points hit nothing; 0: no
     * limit. */
    double max_range_m;
    /* For carving: erases voxels instead of marking them free; INVALID_ARGUMENT where the
     * scene fuses by log-odds. */
    bool erase;
    enum voxeld_scene_rule rule;
    uint32_t material;
    const char *field; /* LABEL: NULL counts as "label"; RAMP: as "intensity" */
    double low;        /* RAMP, HEIGHT */
    double high;
    /* A loaded network with labels by point. The cloud goes through the network first,
     * and its labels decide which material a point takes, instead of a rule. NULL:
     * none. Points whose label takes no material hit nothing; their rays carve all the
     * same. */
    const char *network;
    const struct voxeld_scene_label
        *labels;        /* labels that are not listed take no material; */
    size_t n_labels;    /* 0: label i takes material i */
    const char *output; /* of the network; NULL: the only one that has labels by point */
    const char *expect_digest; /* FAILED_PRECONDITION unless the network's begins so */
    uint64_t if_version; /* ABORTED unless the scene is at this version; 0: at any */
    struct voxeld_call call;
    /* For carving: one ray for each voxel that points hit, instead of one for each point:
     * faster, and a few voxels that only other rays pass stay as they are. */
    bool discretize;
    struct voxeld_scene_filter filter; /* not with a network */
    /* The cloud's pose, and with deskew that of its end, are found by odometry; a pose that
     * the cloud has is where the sensor is thought to be at the end. A scan that is LOST is
     * not added. odometry NULL: one that is kept beside the scene. */
    bool estimate;
    const char *odometry;
};

struct voxeld_scene_integrated {
    struct voxeld_scene_change change;
    int64_t stamp_ns;  /* the cloud's */
    uint64_t n_points; /* = used + the four below + n_near + n_own */
    uint64_t n_used;
    uint64_t n_non_finite;
    uint64_t n_outside; /* of the scene */
    uint64_t n_beyond;  /* max_range_m */
    uint64_t n_dropped; /* their label takes no material, or the filter drops them */
    uint64_t n_hit_voxels;
    uint64_t n_passed_voxels; /* free voxels and cells that rays went through */
    double decode_ms;
    double carve_ms;
    double edit_ms;
    double engine_ms; /* in the engine, all of it */
    double queue_ms;  /* waited at the server */
    double total_ms;  /* at the server, from arrival to reply */
    bool replayed;    /* the outcome of an earlier call with this sequence */
    /* The network's digest, "" without a network; and its times, which engine_ms
     * includes. */
    char digest[65];
    struct voxeld_network_timings network;
    uint64_t n_relabelled; /* voxels that were occupied and took another material */
    /* The filter's points: of the ground, and of voxels that too few hit. */
    uint64_t n_ground;
    uint64_t n_sparse;
    /* With estimate: whether the pose was found, and why not; and the pose, or where the
     * sensor was thought to be. */
    bool is_lost;
    int lost_reason; /* enum voxeld_odometry_reason */
    struct voxeld_pose T_map_sensor;
    /* Points that cloud.body leaves out: nearer than its min_range_m, and others in its boxes. */
    uint64_t n_near;
    uint64_t n_own;
};

/* Adds a scan: its points become occupied, and with carve the voxels between the
 * sensor and each point are emptied, except those that a point of this scan hits. This
 * is one change. out may be NULL. */
VOXELD_API enum voxeld_status
voxeld_scene_integrate(struct voxeld_client *client,
                       const struct voxeld_scene_integrate_request *request,
                       struct voxeld_scene_integrated *out, struct voxeld_error *error);

/* error is NULL when done is not; both live until the callback returns. It may start new calls and
 * must not close the client. */
typedef void (*voxeld_integrated_callback)(void *context,
                                           const struct voxeld_scene_integrated *done,
                                           const struct voxeld_error *error);

/* Starts the same and returns at once, so that the next scan goes out while the server works on
 * this one. Scans are added in the order in which they were started. When the result is OK, the
 * callback is called exactly once, from voxeld_dispatch (or voxeld_close); otherwise never. What
 * *request points to is needed until this returns. */
VOXELD_API enum voxeld_status voxeld_scene_integrate_async(
    struct voxeld_client *client, const struct voxeld_scene_integrate_request *request,
    voxeld_integrated_callback callback, void *context, struct voxeld_error *error);

/* Queries ------------------------------------------------------------------------------- */

/* States of a voxel; sets of states are sums of these. */
enum voxeld_voxel_state {
    VOXELD_VOXEL_UNKNOWN = 1, /* or empty, where free space is not tracked */
    VOXELD_VOXEL_OCCUPIED = 2,
    VOXELD_VOXEL_FREE = 4
};

/* The answers, a row for each row of the request. Arrays that the call does not give
 * are NULL. All pointers live until the struct is freed. */
struct voxeld_scene_found {
    size_t n;
    const uint8_t *states;      /* values: of the voxel; overlap: the set in each shape */
    const uint16_t *materials;  /* 0 where nothing was found; NULL: a scene without
                                 * materials */
    const float *distances;     /* rays, nearest: metres; -1 = nothing */
    const int32_t *voxels;      /* rays, nearest: n x 3; -1 = nothing */
    const int8_t *normals;      /* rays: n x 3, outward, of the face; 0 from inside */
    const uint64_t *n_occupied; /* overlap with counts: voxels in each shape */
    const uint64_t *n_free;
    uint64_t n_hits;  /* rays, nearest: rows that found something */
    uint64_t version; /* the version that was read */
    uint64_t generation;
    double engine_ms; /* in the engine, copies included */
    double queue_ms;  /* waited at the server */
    double total_ms;  /* at the server, from arrival to reply */
    const char *request_id;
};

VOXELD_API void voxeld_scene_found_free(struct voxeld_scene_found *found);

/* Reads the voxels at points: n x 3, INT32 or INT64 voxels, FLOAT32 or FLOAT64 metres.
 * Voxels outside the scene are unknown. call may be NULL, in all functions below. */
VOXELD_API enum voxeld_status
voxeld_scene_values(struct voxeld_client *client, const struct voxeld_call *call,
                    const char *scene, const struct voxeld_array *points,
                    struct voxeld_scene_found **out, struct voxeld_error *error);

/* Finds the first occupied voxel along each ray.
 *
 * in  origins      n x 3 FLOAT32 or FLOAT64, metres; or one for all rays
 *     directions   n x 3 FLOAT32 or FLOAT64, of any length but 0
 *     max_range_m  0: no limit */
VOXELD_API enum voxeld_status
voxeld_scene_cast_rays(struct voxeld_client *client, const struct voxeld_call *call,
                       const char *scene, const struct voxeld_array *origins,
                       const struct voxeld_array *directions, double max_range_m,
                       struct voxeld_scene_found **out, struct voxeld_error *error);

/* Finds the occupied voxel whose centre is nearest to each point, within radius_m.
 *
 * in  points  n x 3 FLOAT32 or FLOAT64, metres */
VOXELD_API enum voxeld_status
voxeld_scene_nearest(struct voxeld_client *client, const struct voxeld_call *call,
                     const char *scene, const struct voxeld_array *points,
                     double radius_m, struct voxeld_scene_found **out,
                     struct voxeld_error *error);

/* Finds out which states the voxels in boxes, or balls, have.
 *
 * in  shapes  FLOAT32 or FLOAT64, metres: n x 6, low x y z, high x y z; or n x 4, x y
 * z radius
 *     counts  whether to count the voxels, too */
VOXELD_API enum voxeld_status
voxeld_scene_overlap(struct voxeld_client *client, const struct voxeld_call *call,
                     const char *scene, const struct voxeld_array *shapes, bool counts,
                     struct voxeld_scene_found **out, struct voxeld_error *error);

/* Export -------------------------------------------------------------------------------- */

enum voxeld_scene_format {
    VOXELD_SCENE_CELLS = 0, /* cells as a list */
    VOXELD_SCENE_DENSE = 1, /* a box as a dense array */
    VOXELD_SCENE_PLY = 2    /* the bytes of a PLY file */
};

struct voxeld_scene_export_request {
    const char *scene;
    enum voxeld_scene_format format;
    bool has_box; /* else all of the scene; DENSE needs one */
    struct voxeld_scene_box box;
    bool in_voxels;   /* the box is voxels, not metres */
    uint32_t level;   /* cells are 2^level voxels a side */
    bool free;        /* exports the free voxels instead of the occupied ones; not for
                       * DENSE */
    uint64_t first;   /* of the cells in Morton order: skip so many, */
    uint64_t limit;   /* send at most so many; 0: as many as fit in a reply */
    bool with_counts; /* voxels a cell */
    struct voxeld_call call;
    bool pinned; /* exports the pinned voxels instead; not for DENSE, nor with free */
};

/* All pointers live until the struct is freed. */
struct voxeld_scene_cells {
    size_t n;
    const int32_t *cells;      /* CELLS: n x 3, voxel indices >> level */
    const uint16_t *materials; /* n, of the cell's first voxel; NULL: a scene without */
    const uint64_t *counts;    /* n; NULL unless asked for */
    const uint8_t *states; /* DENSE: shape[0] x shape[1] x shape[2] = n sets of states */
    size_t shape[3];
    int64_t low_cell[3]; /* DENSE: of the array's first cell */
    const uint8_t *ply;
    size_t n_ply_bytes;
    uint64_t n_cells; /* of the whole box, not of this reply; not for DENSE */
    /* The low corner of cell (x, y, z) is origin_m + (x, y, z) * cell_size_m. */
    double origin_m[3];
    double cell_size_m;
    const char *frame_id;
    uint64_t version; /* the version that was read */
    uint64_t generation;
    double engine_ms; /* in the engine, copies included */
    double queue_ms;  /* waited at the server */
    double total_ms;  /* at the server, from arrival to reply */
    const char *request_id;
};

/* Exports the cells that have occupied (or free) voxels. Free with
 * voxeld_scene_cells_free. */
VOXELD_API enum voxeld_status
voxeld_scene_export(struct voxeld_client *client,
                    const struct voxeld_scene_export_request *request,
                    struct voxeld_scene_cells **out, struct voxeld_error *error);
VOXELD_API void voxeld_scene_cells_free(struct voxeld_scene_cells *cells);

/* Exports the whole scene or box (first and limit are ignored) as a PLY file at path,
 * whatever the format says. It asks for as many replies as it takes, all of one
 * version; the file appears whole or not at all. A vertex is a cell: its centre in
 * metres, its material and, with a palette, its colour. n_cells (may be NULL): how
 * many.
 * errors  ABORTED, NOT_FOUND              the scene was made again, or changed until
 * that version
 *                                         was not kept: try again
 *         PERMISSION_DENIED, UNAVAILABLE  the file cannot be written */
VOXELD_API enum voxeld_status
voxeld_scene_export_file(struct voxeld_client *client,
                         const struct voxeld_scene_export_request *request,
                         const char *path, uint64_t *n_cells, struct voxeld_error *error);

#ifdef __cplusplus
}
#endif

/* Versions of scenes. */
#include "voxeld_version.h"

#endif
