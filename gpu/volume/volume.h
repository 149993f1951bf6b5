// SPDX-License-Identifier: Apache-2.0
/* Dense volumes in hashed blocks (ASH, section 6.2): a truncated signed distance with its weight,
 * and colour, fused from depth images and ray cast into pictures.
 *
 * Space. A volume has an origin in the map frame (metres, double) and cubic voxels. Voxel
 * (x, y, z) covers [x, x + 1) * voxel_size on each axis, seen from the origin; its values are
 * those of its centre. A block is 8 or 16 voxels a side; its key is floor(voxel / edge), each
 * component within +-(2^20 - 2). In a block, voxel (x, y, z) has the index
 * (z * edge + y) * edge + x.
 *
 * Values. The distance is projective (depth minus z, KinectFusion), positive in front of a
 * surface, and stored in units of the truncation mu: -1 to 1. Observations below -mu are skipped,
 * above +mu clamped. Weight 0 means never observed; the distance is 0 there.
 *
 * Blocks. A block's number (entry) is its row in every array and never changes while the block
 * lives. Each has a stamp: the volume's version when it last changed. A volume's version rises
 * by one with every call that changes it.
 *
 * Queues. One queue at a time uses a volume, as with hash maps. Arrays are device memory and are
 * borrowed until the wait. */
#ifndef VXD_GPU_VOLUME_VOLUME_H
#define VXD_GPU_VOLUME_VOLUME_H

#include "gpu/deform/deform.h"
#include "gpu/hash/hash.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vxd_volume;

/* How distance and weight are stored.
 * FULL     float32 and float32: 8 bytes a voxel; weights end at max_weight
 * COMPACT  float16 and uint8: 3 bytes a voxel; the weight of an observation is rounded to a
 *          whole number, at least 1, and weights end at min(max_weight, 255) */
enum vxd_volume_form {
    VXD_VOLUME_FULL = 0,
    VXD_VOLUME_COMPACT = 1
};

struct vxd_volume_spec {
    double voxel_size_m; /* 1e-4 to 100 */
    int block_edge;      /* voxels, 8 or 16 */
    double truncation_m; /* mu: one voxel to 8 blocks */
    double origin_m[3];  /* finite, within +-1e9 */
    enum vxd_volume_form form;
    /* r, g, b and their weight as uint16: 8 bytes a voxel. Colours are in units of 1/256. */
    bool has_colour;
    /* Votes for labels 1 to 255: four pairs of label and count as uint16, 8 bytes a voxel. */
    bool has_labels;
    /* r, g, b as colours, and 1 where it is known: 8 bytes a voxel. Only a refinement writes them
     * (gpu/refine). */
    bool has_albedo;
    double max_weight; /* where weights end, 1 to 65535; 0 = 255 */
    size_t capacity;   /* blocks to reserve at once; 0 is fine */
    size_t max_bytes;  /* device memory that the blocks may ever take, the copies made by
                         * growth included; 0 = what the context's budget allows */
};

/* Bytes of one block in all layers, its key and its stamp; 0 for a spec that create refuses. */
size_t vxd_volume_block_bytes(const struct vxd_volume_spec *spec);

/* errors  INVALID_ARGUMENT    a spec outside the ranges above; err.field names it
 *         RESOURCE_EXHAUSTED  over max_bytes or the budget
 * owner   the caller. Asynchronous: usable at once on this queue */
enum vxd_status vxd_volume_create(struct vxd_queue *queue,
                                  const struct vxd_volume_spec *spec,
                                  struct vxd_volume **out, struct vxd_err *err);

/* In queue order; NULL is fine. */
void vxd_volume_destroy(struct vxd_queue *queue, struct vxd_volume *volume);

/* A volume with the same blocks, entries, stamps and version on another queue's context (or the
 * same one). Blocking: waits for both queues.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_volume_copy(struct vxd_queue *from_queue,
                                const struct vxd_volume *from, struct vxd_queue *to_queue,
                                struct vxd_volume **out, struct vxd_err *err);

struct vxd_volume_info {
    struct vxd_volume_spec spec; /* max_weight as it is applied */
    size_t n_blocks;
    size_t capacity;    /* blocks that fit without growth */
    size_t n_bytes;     /* device memory of the blocks, the index and the frame map */
    size_t block_bytes; /* vxd_volume_block_bytes */
    uint64_t version;
    /* The version of the last call that removed blocks; a reader of changed blocks that is
     * older starts anew. 0: none was ever removed. */
    uint64_t removed_version;
};

/* Begins the versions of a volume that nothing has changed yet at `version`, which is also that of
 * its last removal: a reader of changed blocks that knows an older version, of another volume
 * perhaps, starts anew. */
void vxd_volume_begin_version(struct vxd_volume *volume, uint64_t version);

/* What the host knows without waiting. */
void vxd_volume_get_info(const struct vxd_volume *volume, struct vxd_volume_info *out);

/* The hash map behind a volume, for export; borrowed. Its value arrays are, in this order,
 * the stamps (uint64), the distances, the weights, and the colours, the labels and then the albedo
 * where the volume has them. */
struct vxd_hashmap *vxd_volume_map(struct vxd_volume *volume);

/* Makes a volume from a map that vxd_volume_map gave once (through an image, for example) and
 * from what its info said. Blocking. Takes the map in any case.
 * errors  INVALID_ARGUMENT    the spec, or a map of another shape
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_volume_adopt(struct vxd_queue *queue,
                                 const struct vxd_volume_spec *spec, uint64_t version,
                                 uint64_t removed_version, struct vxd_hashmap *take_map,
                                 struct vxd_volume **out, struct vxd_err *err);

/* ---- Cameras ---- */

#define VXD_LIDAR_MAX_ROWS 1024
#define VXD_LIDAR_MAX_COLUMNS 16384

/* Rows and columns of beams, in a frame with x forward, y left, z up. Row 0 is the highest beam.
 * Column u has the azimuths from azimuth_begin_deg + u / columns * azimuth_span_deg on,
 * counter-clockwise seen from above, from the x axis on; a negative span turns clockwise. The
 * border between two rows is half way between their elevations, and the first and last row end as
 * far outside. */
struct vxd_volume_lidar {
    int rows; /* 2 to VXD_LIDAR_MAX_ROWS */
    int columns;
    /* rows elevations in degrees, falling, within +-89 (as a camera: 90); host memory. NULL: evenly
     * from top_deg to bottom_deg. */
    const double *elevations_deg;
    double top_deg;
    double bottom_deg;
    double azimuth_begin_deg; /* within +-720 */
    double azimuth_span_deg;  /* within +-360, 0.1 or more */
};

/* The elevation of a row, degrees. */
double vxd_volume_lidar_elevation(const struct vxd_volume_lidar *lidar, int row);

/* errors  INVALID_ARGUMENT  an elevation beyond max_deg, or another number outside of its range */
enum vxd_status vxd_volume_check_lidar(const struct vxd_volume_lidar *lidar,
                                       double max_deg, struct vxd_err *err);

/* A pinhole camera with the distortion of ROS and OpenCV (plumb_bob, rational_polynomial).
 * Pixel (0, 0) is top left and integer coordinates are centres of pixels. */
struct vxd_volume_camera {
    int width; /* 1 to 16384 */
    int height;
    double fx; /* pixels, > 0 */
    double fy;
    double cx;
    double cy;
    double distortion[8]; /* k1 k2 p1 p2 k3 k4 k5 k6; all 0: none */
};

/* A rigid transform: p_to = rotation * p_from + translation, metres. rotation is row-major and
 * orthonormal to 1e-3, with determinant 1. */
struct vxd_volume_pose {
    double rotation[9];
    double translation[3];
};

/* ---- Integration ---- */

enum vxd_volume_weighting {
    VXD_VOLUME_WEIGHT_CONST = 0, /* each observation counts `weight` */
    VXD_VOLUME_WEIGHT_INV_Z2 = 1 /* weight / z^2, z in metres */
};

/* A depth image and how it was taken. */
struct vxd_volume_frame {
    struct vxd_volume_camera camera;
    struct vxd_volume_pose T_map_camera; /* camera: x right, y down, z forward */
    const void *depth;                   /* height x width, z along the optical axis */
    enum vxd_dtype dtype; /* VXD_UINT16 (0 and 65535 are no depth) or VXD_FLOAT32 (NaN,
                           * infinite and <= 0 are no depth) */
    double depth_scale;   /* units a metre, > 0; 0 = 1000 for uint16, 1 for float32 */
    double depth_min_m;   /* pixels outside of [min, max] are no depth; 0 <= min < max */
    double depth_max_m;   /* at most 1000 */
    const uint8_t *mask;  /* height x width, 0 = no depth; may be NULL */

    const uint8_t *colour; /* rgb8; NULL: none. Ignored by a volume without colour */
    /* false: the colours are registered to the depth image, pixel by pixel */
    bool has_colour_camera;
    struct vxd_volume_camera colour_camera;
    struct vxd_volume_pose
        T_depth_colour; /* pose of the colour camera in the depth camera */

    /* height x width: a vote for the label in voxels where -mu < d < mu; 0 = none. NULL: none.
     * Ignored by a volume without labels. */
    const uint8_t *labels;

    /* Blocks with an observation whose centre is so near to the camera are fused too, where the
     * frame touches them not: voxels before what the frame shows learn that they are free, so what
     * is gone vanishes. 0 = none; at most 1000 */
    double carve_m;

    enum vxd_volume_weighting weighting;
    double weight; /* > 0, at most 65535; 0 = 1 */

    /* A control grid that undoes what the camera distorts: a point p of the camera is seen at
     * T_map_camera * T_camera_grid * C(T_grid_camera * p). Borrowed until the frame is fused; NULL:
     * none. */
    const struct vxd_deform *deform;
    struct vxd_volume_pose T_grid_camera; /* of deform: where the camera is in the grid */
};

struct vxd_volume_activation {
    size_t n_blocks;  /* touched by the frame, and n_carved */
    size_t n_carved;  /* of these, the blocks that carve_m adds */
    size_t n_new;     /* of these, new in the volume */
    size_t n_dropped; /* pixels whose rays leave the range of keys */
};

/* Finds the blocks that a frame touches, and adds those that are not in the volume: the frame
 * map takes the blocks along each pixel's ray from depth - mu to depth + mu, each once; the
 * volume's map is then prepared for exactly the new ones (the double hash map). New blocks get
 * the lowest free entries in Morton order of their keys, so entries are equal on every backend.
 * The frame's touched blocks are kept for vxd_volume_fuse and vxd_volume_cast until the next
 * activation. Blocking (one count is read; a second time where the frame map grew); grows.
 *
 * errors  INVALID_ARGUMENT    a frame outside the ranges above; err.field names it
 *         RESOURCE_EXHAUSTED  over max_bytes or the budget, or more than 2^22 blocks in a
 *                             frame; the volume is unchanged
 * source  ASH, algorithm 2 */
enum vxd_status vxd_volume_activate(struct vxd_queue *queue, struct vxd_volume *volume,
                                    const struct vxd_volume_frame *frame,
                                    struct vxd_volume_activation *out,
                                    struct vxd_err *err);

/* Fuses the frame into blocks [begin, end) of the last activation, which was of the same frame.
 * Asynchronous. A caller with little time takes a range after the other; each voxel is fused
 * once whatever the ranges. Raises the version where begin is 0.
 *
 * Each voxel centre is projected to the nearest pixel; distance d = depth - z, weighted running
 * average (equation 12), colours of the nearest pixel of the colour image where d > -mu and
 * d < mu. With a control grid the centres of each block's eight corner voxels are moved back by the
 * inverse of C, and those between them lie linearly between: a block is small beside a cell.
 *
 * errors  INVALID_ARGUMENT    a frame that activate refuses, a range outside the blocks
 *         FAILED_PRECONDITION no activation of a frame of this size
 * order   values are equal on every backend, bit for bit */
enum vxd_status vxd_volume_fuse(struct vxd_queue *queue, struct vxd_volume *volume,
                                const struct vxd_volume_frame *frame, size_t begin,
                                size_t end, struct vxd_err *err);

/* Both: activates, then fuses all touched blocks. Blocking as activate is. */
enum vxd_status vxd_volume_integrate(struct vxd_queue *queue, struct vxd_volume *volume,
                                     const struct vxd_volume_frame *frame,
                                     struct vxd_volume_activation *out,
                                     struct vxd_err *err);

/* Refuses what activate refuses, and does nothing else. */
enum vxd_status vxd_volume_check_frame(const struct vxd_volume *volume,
                                       const struct vxd_volume_frame *frame,
                                       struct vxd_err *err);

/* Frees the frame map of the last activation and its depths, in queue order, and with them the
 * touched blocks: fuse and LOCAL casts need another activation. The blocks stay. */
void vxd_volume_forget_frame(struct vxd_queue *queue, struct vxd_volume *volume);

/* What integration by other means than frames needs (gpu/volume/scan).
 *
 * prepare: makes the table right after an earlier failure; blocking only then.
 * add: adds n blocks that the volume has not, each once, given as Morton codes (volume_math.h) in
 *     any order; codes is overwritten. entries becomes theirs in Morton order. Grows.
 * begin_change: raises the version and returns it.
 * set_lacking: after an add that was refused, says for vxd_volume_forget_farthest which blocks were
 *     touched that are there (entries, device memory, n_known) and how many are lacking; 0: none.
 *     Asynchronous; where memory for it fails, nothing can be forgotten.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_volume_prepare(struct vxd_queue *queue, struct vxd_volume *volume,
                                   struct vxd_err *err);
enum vxd_status vxd_volume_add_blocks(struct vxd_queue *queue, struct vxd_volume *volume,
                                      uint64_t *codes, size_t n, int32_t *entries,
                                      struct vxd_err *err);
uint64_t vxd_volume_begin_change(struct vxd_volume *volume);
void vxd_volume_set_lacking(struct vxd_queue *queue, struct vxd_volume *volume,
                            const int32_t *entries, size_t n_known, size_t n_lacking);

/* errors  INVALID_ARGUMENT with `field` */
enum vxd_status vxd_volume_check_pose(const struct vxd_volume_pose *pose,
                                      const char *field, struct vxd_err *err);
enum vxd_status vxd_volume_check_depths(double depth_min_m, double depth_max_m,
                                        struct vxd_err *err);

/* Distances that no sensor measured: of another map, say. Host memory. */
struct vxd_volume_observation {
    size_t n;
    const int32_t *keys; /* n x 3, within the range, each block once */
    /* n x edge^3 in the order of a block's voxels: metres, signed; NaN: nothing is known */
    const float *distances;
    /* n x edge^3: a vote for the label where the distance is within the truncation; 0 = none.
     * NULL: none. Ignored by a volume without labels. */
    const uint8_t *labels;
    double
        weight; /* of each voxel, at most 65535; 0 = 1. Of COMPACT: rounded, at least 1 */
};

/* Averages distances into the voxels of blocks, which are made where there are none. A distance
 * below -mu is skipped, above +mu clamped. Blocking; raises the version by one.
 *
 * out     n_new  blocks that were made
 * errors  INVALID_ARGUMENT    keys out of range, the weight
 *         RESOURCE_EXHAUSTED  over max_bytes or the budget, or no scratch (about twice the blocks):
 *                             values are unchanged, new blocks hold no observation
 * order   equal on every backend, bit for bit */
enum vxd_status vxd_volume_observe(struct vxd_queue *queue, struct vxd_volume *volume,
                                   const struct vxd_volume_observation *observation,
                                   size_t *n_new, struct vxd_err *err);

/* ---- Ray casting ---- */

#define VXD_VOLUME_CAST_ROWS 8

enum vxd_volume_cast_mode {
    VXD_VOLUME_CAST_GLOBAL = 0, /* all blocks */
    /* The touched blocks of the last activation: their cells, or they bound the rays. */
    VXD_VOLUME_CAST_LOCAL = 1
};

struct vxd_volume_cast_args {
    struct vxd_volume_camera camera;
    /* Instead of the camera: a picture of a row a beam and a column an azimuth, for lidars and
     * panoramas. Its depths are ranges, and the pose's frame is the lidar's. NULL: none. */
    const struct vxd_volume_lidar *lidar;
    struct vxd_volume_pose T_map_camera;
    double depth_min_m; /* 0 <= min < max <= 1000 */
    double depth_max_m;
    double
        weight_threshold; /* voxels of less weight count as unknown; 0 = any observed */
    enum vxd_volume_cast_mode mode;
    bool
        passes_backs; /* a ray goes on through surfaces that it meets from behind: into rooms */
    /* Rows of pixels to cast, for a caller that casts a picture in stages: multiples of
     * VXD_VOLUME_CAST_ROWS, or the height for the end; 0 to 0: all. */
    int row_begin;
    int row_end;
    /* Outputs, device memory, height x width x (1 or 3); each may be NULL. Pixels without a
     * surface are all zero. */
    float *depth;    /* z, metres */
    float *vertex;   /* metres from the volume's origin, axes of the map frame */
    float *normal;   /* unit length, map frame, out of the surface */
    uint8_t *colour; /* rgb8 */
    uint8_t *mask;   /* 1 where a surface was hit */
    uint8_t *label;  /* of the voxel that the surface is in; 0: none */
    float *weight;   /* of that voxel */
};

/* Casts a ray for each pixel and finds the first change of the distance from + to -.
 *
 * By cells: the distance is trilinear over eight known voxel centres, and the surface is where it
 * changes its sign in such a cell. By rays, for lidars, lenses, and where the blocks hold more than
 * 256 voxels a pixel: a coarse image of the least and the greatest z of the blocks that project to
 * it bounds each ray; unallocated blocks are skipped to their exit; voxels below the weight
 * threshold are stepped over one by one; else the step is the distance, at least half a voxel; near
 * the surface the distance is trilinear where all eight are known, else the voxel's own. A change
 * from - to + (seen from behind) ends the ray, unless args say that it passes.
 *
 * errors  INVALID_ARGUMENT    arguments outside the ranges above, colour or labels of a volume
 *                             without them
 *         FAILED_PRECONDITION LOCAL without an activation
 * order   equal on every backend, bit for bit
 * sync    asynchronous; with a lidar, whose angles are uploaded, it waits for the queue
 * source  ASH, algorithm 3, with its errata mended (README.md); by cells is our own (cast/README.md) */
enum vxd_status vxd_volume_cast(struct vxd_queue *queue, struct vxd_volume *volume,
                                const struct vxd_volume_cast_args *args,
                                struct vxd_err *err);

/* ---- Removal ---- */

/* What vxd_volume_clear removes. Lengths are metres in the map frame. */
struct vxd_volume_region {
    bool is_ball;
    double low[3]; /* a half-open box: voxels whose centre is in it */
    double high[3];
    double centre[3]; /* is_ball: blocks whose centre is farther away than the radius */
    double radius;
};

/* Box: forgets the voxels in it; blocks that lie in it whole are removed. Ball: removes blocks
 * outside. Blocking.
 * errors  INVALID_ARGUMENT    not finite, a negative radius, low above high
 *         RESOURCE_EXHAUSTED  no scratch; the volume is unchanged */
enum vxd_status vxd_volume_clear(struct vxd_queue *queue, struct vxd_volume *volume,
                                 const struct vxd_volume_region *region,
                                 size_t *n_removed, struct vxd_err *err);

/* Removes blocks by key, and raises the version. Blocking.
 * in      keys  n x 3 int32, device memory; those that are not there are fine
 * errors  RESOURCE_EXHAUSTED  no scratch; the volume is unchanged */
enum vxd_status vxd_volume_remove(struct vxd_queue *queue, struct vxd_volume *volume,
                                  const int32_t *keys, size_t n, struct vxd_err *err);

struct vxd_volume_decay {
    struct vxd_volume_region region;
    double factor;     /* 0 to 1 */
    double min_weight; /* 0 to 65535 */
    bool keeps_votes;  /* for labels: as decays of old journals did */
};

/* Multiplies the weights in the region by the factor (of a ball: those of blocks outside), and
 * removes blocks of the region of which no voxel weighs min_weight afterwards, or anything.
 * Products are rounded to float32; uint8 weights, those of colours and votes for labels then down
 * to whole numbers.
 * A voxel whose weight becomes 0 is forgotten. Blocking.
 *
 * errors  INVALID_ARGUMENT    a region as in clear, a factor or weight outside its range
 *         RESOURCE_EXHAUSTED  no scratch; the volume is unchanged
 * order   equal on every backend, bit for bit */
enum vxd_status vxd_volume_decay(struct vxd_queue *queue, struct vxd_volume *volume,
                                 const struct vxd_volume_decay *decay, size_t *n_removed,
                                 struct vxd_err *err);

/* Makes room after an activation, or a scan, that was refused: removes the blocks whose centres are farthest
 * from a point, but none that the activation touched. As many as it lacked are removed, and a
 * sixteenth of the capacity besides, where there are so many; nothing is, where even all would be
 * too few. Of blocks equally far those of greater entries go first. Blocking.
 *
 * in      point     metres, map frame
 * out     take_keys n_keys x 3 int32, host memory, for the caller to free: what was removed, the
 *                   farthest last; NULL where nothing was
 * errors  RESOURCE_EXHAUSTED   no scratch; the volume is unchanged
 * order   equal on every backend */
enum vxd_status vxd_volume_forget_farthest(struct vxd_queue *queue,
                                           struct vxd_volume *volume,
                                           const double point[3], int32_t **take_keys,
                                           size_t *n_keys, struct vxd_err *err);

/* ---- Blocks as arrays on the host, for files and journals ---- */

#define VXD_VOLUME_MAX_LAYERS (VXD_HASHMAP_MAX_VALUES - 1)

/* One layer of every block. */
struct vxd_volume_layer {
    const char *name; /* "distance", "weight", "colour", ...: static */
    enum vxd_dtype dtype;
    uint32_t n_elements; /* a block */
};

/* Returns how many layers a volume has. */
int vxd_volume_get_layers(const struct vxd_volume *volume,
                          struct vxd_volume_layer out[VXD_VOLUME_MAX_LAYERS]);

/* Blocks in host memory, rows in the order of `entries`. Arrays that were read belong to the
 * buffers; those to be written are the caller's. */
struct vxd_volume_blocks {
    size_t n;
    const int32_t *entries; /* ascending */
    const int32_t *keys;    /* 3 each */
    const uint64_t *stamps;
    const void *layers[VXD_VOLUME_MAX_LAYERS]; /* as vxd_volume_get_layers */
    struct vxd_context *context;               /* of the buffers; NULL: none */
    struct vxd_buffer device[VXD_HASHMAP_MAX_VALUES + 1];
    struct vxd_buffer host[VXD_HASHMAP_MAX_VALUES + 1];
};

/* Reads n blocks by their entries (int32, host memory). Blocking.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_volume_read_blocks(struct vxd_queue *queue,
                                       const struct vxd_volume *volume,
                                       const int32_t *entries, size_t n, bool with_layers,
                                       struct vxd_volume_blocks *out,
                                       struct vxd_err *err);
void vxd_volume_blocks_free(struct vxd_queue *queue, struct vxd_volume_blocks *blocks);

/* Lists what changed after a version: blocks with a later stamp, and those without any, which an
 * activation made; with since 0, all blocks. Ascending, malloc'd for the caller. Blocking.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_volume_list_changed(struct vxd_queue *queue,
                                        const struct vxd_volume *volume, uint64_t since,
                                        int32_t **take_entries, size_t *n,
                                        struct vxd_err *err);

/* Gives blocks their rows again: new ones are made, which must get the entries that the blocks
 * say, and the volume gets the versions. A layer that is NULL is left alone (zeros of new
 * blocks). Blocking; after a failure the volume is to be thrown away.
 * errors  DATA_LOSS           a key out of range, or another entry than the blocks say
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_volume_write_blocks(struct vxd_queue *queue,
                                        struct vxd_volume *volume,
                                        const struct vxd_volume_blocks *blocks,
                                        uint64_t version, uint64_t removed_version,
                                        struct vxd_err *err);

/* Removes the blocks whose keys are not among these (n x 3 int32, host memory). Blocking.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_volume_keep_only(struct vxd_queue *queue, struct vxd_volume *volume,
                                     const int32_t *keys, size_t n, struct vxd_err *err);

/* ---- Access for extraction ---- */

/* One slot of the block table: open addressing over a power of two of slots. */
struct vxd_block_slot {
    uint64_t tag; /* vxd_block_tag of the key, or VXD_BLOCK_EMPTY */
    int32_t entry;
    uint32_t unused;
};

#define VXD_BLOCK_EMPTY UINT64_MAX

/* What kernels and CPU loops read; passed by value. Pointers are device memory, borrowed until
 * the volume changes or is destroyed. Functions on it are in volume_math.h. */
struct vxd_volume_view {
    const struct vxd_block_slot *table;
    uint32_t table_mask; /* slots - 1 */
    uint32_t capacity;   /* entries */
    const int32_t *keys; /* 3 an entry */
    uint64_t *stamps;
    void *distances;   /* float32 or float16, block_edge^3 an entry */
    void *weights;     /* float32 or uint8 */
    uint16_t *colours; /* r, g, b, weight; NULL: none */
    uint16_t *labels;  /* four votes (volume_math.h); NULL: none */
    uint16_t *albedo;  /* r, g, b, 0 or 1; NULL: none */
    /* 27 entries an entry, as vxd_volume_neighbours; NULL: they are found by the table */
    const int32_t *neighbours;
    int edge;  /* voxels a block's side */
    int shift; /* log2 of the edge */
    int is_compact;
    float max_weight;
    float voxel_size;
    float truncation;
    double origin[3];
};

void vxd_volume_get_view(const struct vxd_volume *volume, struct vxd_volume_view *out);

/* The blocks that the frame of the last activation touches: n entries in device memory, valid until
 * the next call that changes the volume. Returns false where there is no such frame. */
bool vxd_volume_get_touched(const struct vxd_volume *volume, const int32_t **entries,
                            size_t *n);

/* A camera's pose in blocks: position = base + offset + rotation * p, p in metres. */
void vxd_pose_to_blocks(const struct vxd_volume *volume,
                        const struct vxd_volume_pose *pose, int32_t base[3],
                        float offset[3], float rotation[9]);

/* Lists the blocks with a stamp above `since`, ascending by entry. 0 lists all blocks that hold an
 * observation: a block that was only activated has the stamp 0.
 *
 * out     entries   int32, device memory, the number of blocks of the info fit
 *         n_entries how many there are
 * Blocking: the count is read. */
enum vxd_status vxd_volume_changed_since(struct vxd_queue *queue,
                                         struct vxd_volume *volume, uint64_t since,
                                         int32_t *entries, size_t *n_entries,
                                         struct vxd_err *err);

/* The 27 neighbours of n blocks, in the order of VXD_NEIGHBOURS_27 (x slowest, 13 the block
 * itself): n x 27 int32 entries, VXD_NO_ENTRY where there is none. Asynchronous.
 * source  ASH, algorithm 4 */
enum vxd_status vxd_volume_neighbours(struct vxd_queue *queue,
                                      const struct vxd_volume *volume,
                                      const int32_t *entries, size_t n, int32_t *indices,
                                      struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
