// SPDX-License-Identifier: Apache-2.0
/* What the files of the Foxglove protocol share; nobody else but tests includes this. */
#ifndef VXD_SERVER_TRANSPORT_FOXGLOVE_FOXGLOVE_INTERNAL_H
#define VXD_SERVER_TRANSPORT_FOXGLOVE_FOXGLOVE_INTERNAL_H

#include "proto/base/name.h"
#include "proto/wire/wire.h"
#include "server/transport/foxglove/foxglove.h"
#include "voxeld/v1/grid.pb-c.h"
#include "voxeld/v1/odometry.pb-c.h"
#include "voxeld/v1/posegraph.pb-c.h"
#include "voxeld/v1/render.pb-c.h"
#include "voxeld/v1/scene.pb-c.h"
#include "voxeld/v1/volume.pb-c.h"

/* --- schemas.c ------------------------------------------------------------------------------ */

enum vxd_foxglove_schema {
    VXD_FOXGLOVE_TRANSFORMS,
    VXD_FOXGLOVE_POINT_CLOUD,
    VXD_FOXGLOVE_VOXEL_GRID,
    VXD_FOXGLOVE_SCENE_UPDATE,
    VXD_FOXGLOVE_GRID,
    VXD_FOXGLOVE_IMAGE,
    VXD_FOXGLOVE_LASER_SCAN,
    VXD_FOXGLOVE_POSE,
    VXD_FOXGLOVE_POSES,
    VXD_FOXGLOVE_LOG,
    VXD_FOXGLOVE_N_SCHEMAS
};

/* "foxglove.PointCloud" */
const char *vxd_foxglove_schema_name(enum vxd_foxglove_schema schema);

/* Appends the schema as a FileDescriptorSet with all that it imports, in base64. */
void vxd_foxglove_schema_append(enum vxd_foxglove_schema schema, struct vxd_text *text);

/* --- client_message.c: what a client says --------------------------------------------------- */

enum vxd_foxglove_op {
    VXD_FOXGLOVE_SUBSCRIBE,
    VXD_FOXGLOVE_UNSUBSCRIBE
};

#define VXD_FOXGLOVE_MOST_SUBSCRIPTIONS 256

/* Subscriptions, and of VXD_FOXGLOVE_SUBSCRIBE the channel of each. */
struct vxd_foxglove_command {
    enum vxd_foxglove_op op;
    uint32_t ids[VXD_FOXGLOVE_MOST_SUBSCRIPTIONS];
    uint32_t channels[VXD_FOXGLOVE_MOST_SUBSCRIPTIONS];
    size_t n;
};

/* Reads a text message. errors  INVALID_ARGUMENT; UNIMPLEMENTED names the capability */
enum vxd_status vxd_foxglove_read(const uint8_t *bytes, size_t n_bytes,
                                  struct vxd_foxglove_command *out, struct vxd_err *err);

/* --- message.c: protobuf as it is written ---------------------------------------------------- */

void vxd_fox_double(struct vxd_text *text, uint32_t field, double value);
void vxd_fox_fixed32(struct vxd_text *text, uint32_t field, uint32_t value);
void vxd_fox_number(struct vxd_text *text, uint32_t field, uint64_t value);
/* The caller appends so many bytes. */
void vxd_fox_begin_bytes(struct vxd_text *text, uint32_t field, size_t n_bytes);
void vxd_fox_bytes(struct vxd_text *text, uint32_t field, const void *bytes,
                   size_t n_bytes);
void vxd_fox_string(struct vxd_text *text, uint32_t field, const char *value);
/* A message as a field: what is written between these two. */
size_t vxd_fox_open(struct vxd_text *text, uint32_t field);
void vxd_fox_close(struct vxd_text *text, size_t at);
void vxd_fox_time(struct vxd_text *text, uint32_t field, int64_t unix_ns);
void vxd_fox_vector(struct vxd_text *text, uint32_t field, double x, double y, double z);
/* Without a rotation; and with one: x, y, z, w. */
void vxd_fox_pose(struct vxd_text *text, uint32_t field, double x, double y, double z);
void vxd_fox_turned_pose(struct vxd_text *text, uint32_t field, const double place[3],
                         const double turn[4]);
void vxd_fox_colour(struct vxd_text *text, uint32_t field, double r, double g, double b,
                    double a);
/* A PackedElementField; type is one of its NumericType. */
enum vxd_fox_type {
    VXD_FOX_UINT8 = 1,
    VXD_FOX_UINT16 = 3,
    VXD_FOX_FLOAT32 = 7
};
void vxd_fox_packed_field(struct vxd_text *text, uint32_t field, const char *name,
                          uint32_t offset, enum vxd_fox_type type);
/* The four of a colour in bytes, from this offset on. */
void vxd_fox_packed_colour(struct vxd_text *text, uint32_t field, uint32_t offset);

/* --- scene_messages.c, volume_messages.c: replies as messages ------------------------------- */

/* Most rows of an export that a message of so many bytes can hold. */
uint64_t vxd_fox_scene_limit(enum vxd_foxglove_schema schema, size_t max_bytes);

/* Appends the occupied cells of a PLY export. *fits is false, and nothing useful was appended,
 * where they take more than max_bytes: a coarser level is due.
 * errors  INTERNAL (no such PLY) */
enum vxd_status vxd_fox_scene_message(enum vxd_foxglove_schema schema,
                                      const Voxeld__V1__SceneExportResponse *reply,
                                      const char *name, int64_t stamp_ns,
                                      size_t max_bytes, struct vxd_text *text, bool *fits,
                                      struct vxd_err *err);

/* Appends a costmap, halved until it fits into max_bytes.
 * errors  INTERNAL, RESOURCE_EXHAUSTED */
enum vxd_status vxd_fox_costmap_message(const Voxeld__V1__SceneGridResponse *reply,
                                        int64_t stamp_ns, size_t max_bytes,
                                        struct vxd_text *text, struct vxd_err *err);

/* Appends a part of a volume's surface as a model (GLB). After the last part come n_gone deletions
 * of parts that are none any more.
 * errors  INTERNAL, RESOURCE_EXHAUSTED */
enum vxd_status vxd_fox_mesh_message(const Voxeld__V1__VolumeExtractResponse *reply,
                                     const char *name, uint32_t part, uint32_t n_gone,
                                     int64_t stamp_ns, struct vxd_text *text,
                                     struct vxd_err *err);

/* --- sensor_messages.c: what sensors would say ------------------------------------------------ */

/* Appends a picture as a CompressedImage. */
void vxd_fox_image_message(const Voxeld__V1__SceneRenderResponse *reply,
                           const char *frame, int64_t stamp_ns, struct vxd_text *text);
/* Appends the depths of a level lidar's row as a LaserScan from a place, its axes those of the
 * frame. errors  INTERNAL (no such depths) */
enum vxd_status vxd_fox_laser_message(const Voxeld__V1__SceneRenderResponse *reply,
                                      const char *frame, const double place[3],
                                      int64_t stamp_ns, struct vxd_text *text,
                                      struct vxd_err *err);
/* Appends a pose as a PoseInFrame. */
void vxd_fox_pose_message(const Voxeld__V1__Pose *pose, const char *frame,
                          int64_t stamp_ns, struct vxd_text *text);
/* Appends the poses of a pose graph as PosesInFrame: every second, third ... one where they take more than
 * max_bytes; and its edges as lines of a SceneUpdate, those between nodes that were added one after the
 * other apart from the others.
 * errors  INTERNAL (no such reply), RESOURCE_EXHAUSTED (edges of more than max_bytes) */
enum vxd_status vxd_fox_poses_message(const Voxeld__V1__PosegraphReadResponse *reply,
                                      int64_t stamp_ns, size_t max_bytes,
                                      struct vxd_text *text, struct vxd_err *err);
enum vxd_status vxd_fox_edges_message(const Voxeld__V1__PosegraphReadResponse *reply,
                                      const char *name, int64_t stamp_ns,
                                      size_t max_bytes, struct vxd_text *text,
                                      struct vxd_err *err);
/* Appends a line about an object as a Log, of the level INFO. */
void vxd_fox_log_message(const char *name, const char *message, int64_t stamp_ns,
                         struct vxd_text *text);

/* Appends the transform of a frame to a thing's, as a field of FrameTransforms. */
void vxd_fox_transform(struct vxd_text *text, const char *parent, const char *prefix,
                       const char *name, const double place[3], const double turn[4],
                       int64_t stamp_ns);

#endif
