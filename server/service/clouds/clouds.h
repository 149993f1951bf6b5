// SPDX-License-Identifier: Apache-2.0
/* Brings the clouds of a request from the schema to rows of positions and features on the
 * device. Private to server/service. */
#ifndef VXD_SERVER_SERVICE_CLOUDS_CLOUDS_H
#define VXD_SERVER_SERVICE_CLOUDS_CLOUDS_H

#include "gpu/core/core.h"
#include "gpu/volume/volume.h"
#include "gpu/voxel/voxel.h"
#include "server/request/request.h"
#include "voxeld/v1/common.pb-c.h"

enum {
    VXD_CLOUDS_MAX_SOURCES = 4096, /* clouds and sweeps of a request */
    VXD_CLOUDS_MAX_FIELDS = 256,   /* of a cloud */
    VXD_CLOUDS_ALL_FIELDS = 65536, /* of all clouds and sweeps */
    VXD_FEATURE_NAME_BYTES = 64
};

/* One column of the features. */
struct vxd_cloud_channel {
    const char *name; /* a field's; "x", "y", "z": the position; "dt": the sweep's lag */
    double scale;     /* of that; 0 counts as 1 */
    double bias;
    bool is_constant; /* `constant` instead, for every point */
    float constant;
};

struct vxd_clouds_own;

struct vxd_clouds {
    /* Set by the caller. */
    Voxeld__V1__Cloud *const *clouds;
    size_t n_clouds;
    struct vxd_cloud_channel channels[VXD_MAX_CHANNELS];
    int n_channels;
    const char
        *channels_field;  /* the request's member that names channels; NULL = none */
    double origin[3];     /* subtracted from the pose */
    bool in_sensor_frame; /* T_map_sensor is not applied, nor the origin */
    double unit_m;        /* positions are in units of so many metres; 0 = 1 */
    /* n_points x 3, device: decoding writes where the sensor was at each point. NULL: not. */
    float *origins;
    double *exact; /* likewise, positions before they are rounded */
    /* Set by vxd_clouds_check. */
    size_t n_points;
    uint32_t *starts; /* n_clouds + 1: first point of each, its sweeps' included */
    size_t n_sources;
    size_t n_fields;            /* of all sources that have their own */
    struct vxd_buffer *uploads; /* n_sources; filled by vxd_clouds_decode */
    struct vxd_clouds_own *own; /* of clouds with a robot's body; NULL: none has one */
};

/* Checks every layout, size and pose. Memory is the request's decoder's.
 * errors  INVALID_ARGUMENT  err.field is the path, "clouds[0].sweeps[1].point_step"
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_clouds_check(struct vxd_request *request, struct vxd_clouds *clouds,
                                 struct vxd_err *err);

/* Makes err.field that of a message with one cloud: "cloud" for "clouds[0]". NULL is fine. */
void vxd_clouds_name_one(struct vxd_err *err);

/* Enqueues the upload of all points; those of a robot's body get positions that are not finite. As rows from `positions` and `features` on (NULL
 * without channels).
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_clouds_decode(const struct vxd_clouds *clouds,
                                  struct vxd_queue *queue, float *positions,
                                  float *features, struct vxd_err *err);

/* How many points of bodies the last decoding left out: nearer than the least range, and others in
 * boxes. 0 before the wait after it, and once they are freed. */
void vxd_clouds_count_own(const struct vxd_clouds *clouds, uint64_t *n_near,
                          uint64_t *n_own);

/* Frees what decoding took, in queue order; harmless when there is nothing. */
void vxd_clouds_free(const struct vxd_clouds *clouds, struct vxd_queue *queue);

/* --- clouds_source.c -------------------------------------------------------------------- */

/* Names one cloud or sweep. */
struct vxd_source {
    size_t cloud;
    bool is_sweep;
    size_t sweep;
};

/* Checks the layout, data and pose of one cloud or sweep and fills *out, whose data is the
 * message's (host memory) and whose pose is relative to the origin.
 * errors  INVALID_ARGUMENT  as vxd_clouds_check */
enum vxd_status vxd_source_build(const struct vxd_clouds *clouds,
                                 const struct vxd_source *source, struct vxd_cloud *out,
                                 struct vxd_err *err);

/* Returns 0, 1, 2 for "x", "y", "z", otherwise -1. */
int vxd_axis_of(const char *name);

/* --- clouds_body.c: points of the robot itself ------------------------------------------- */

/* errors  INVALID_ARGUMENT  "clouds[0].body.boxes[3].high", ... */
enum vxd_status vxd_clouds_read_body(const Voxeld__V1__RobotBody *body, size_t cloud,
                                     struct vxd_cloud_body *out, struct vxd_err *err);
/* Checks the bodies of all clouds, and makes what counts their points.
 * errors  as vxd_clouds_check */
enum vxd_status vxd_clouds_check_body(struct vxd_request *request,
                                      struct vxd_clouds *clouds, struct vxd_err *err);
/* Before and after all clouds are decoded; *out is NULL where nothing is counted. */
enum vxd_status vxd_clouds_begin_own(const struct vxd_clouds *clouds,
                                     struct vxd_queue *queue, struct vxd_cloud_own **out,
                                     struct vxd_err *err);
enum vxd_status vxd_clouds_end_own(const struct vxd_clouds *clouds,
                                   struct vxd_queue *queue, struct vxd_err *err);
void vxd_clouds_free_own(const struct vxd_clouds *clouds, struct vxd_queue *queue);
/* The keys min_range and body of a file's query. */
enum vxd_status vxd_clouds_take_min_range(struct vxd_decoder *decoder,
                                          const struct vxd_query_item *item,
                                          Voxeld__V1__Cloud *cloud, struct vxd_err *err);
enum vxd_status vxd_clouds_take_body(struct vxd_decoder *decoder,
                                     const struct vxd_query_item *item,
                                     Voxeld__V1__Cloud *cloud, struct vxd_err *err);

/* --- clouds_pose.c: poses, of clouds and of cameras ------------------------------------- */

/* Between a unit quaternion x y z w and its matrix, rows first. */
void vxd_pose_rotation(const double q[4], double out[9]);
void vxd_pose_quaternion(const double r[9], double out[4]);

/* The rotation of a pose as a unit quaternion; where it or the pose is absent, or all zeros, the identity.
 * errors  INVALID_ARGUMENT */
enum vxd_status vxd_pose_read_quaternion(const Voxeld__V1__Pose *pose, const char *field,
                                         double out[4], struct vxd_err *err);

/* Makes a Pose in the arena; NULL after an error: RESOURCE_EXHAUSTED. */
Voxeld__V1__Pose *vxd_pose_new(struct vxd_decoder *arena, const double t[3],
                               const double q[4], struct vxd_err *err);

/* An absent pose is the identity.
 * errors  INVALID_ARGUMENT  not finite, or no unit quaternion */
enum vxd_status vxd_volume_read_pose(const Voxeld__V1__Pose *pose, const char *field,
                                     struct vxd_volume_pose *out, struct vxd_err *err);

/* Fills in a Pose that has its translation and rotation. */
void vxd_volume_fill_pose(const struct vxd_volume_pose *pose, Voxeld__V1__Pose *out);
/* Makes a Pose in the arena; NULL after an error: RESOURCE_EXHAUSTED. */
Voxeld__V1__Pose *vxd_volume_new_pose(struct vxd_decoder *arena,
                                      const struct vxd_volume_pose *pose,
                                      struct vxd_err *err);
/* The pose that a query says, as x,y,z or x,y,z,qx,qy,qz,qw.
 * errors  INVALID_ARGUMENT, RESOURCE_EXHAUSTED */
enum vxd_status vxd_volume_query_pose(struct vxd_decoder *decoder,
                                      const struct vxd_query_item *item,
                                      Voxeld__V1__Pose **out, struct vxd_err *err);

/* --- clouds_query.c: the query beside a file that is the body of a POST ------------------- */

/* A key of a method's query that is a field of its message: true or false, a number, text, a pose or
 * three numbers, as the field's type says. */
struct vxd_query_field {
    const char *key;
    const char *field; /* its name, or a path whose messages are made: "camera.fx" */
};

/* A key whose value is anything else, and the function that takes it. */
struct vxd_query_key {
    const char *key;
    enum vxd_status (*take)(void *query, const struct vxd_query_item *item);
};

/* All keys of a method's query, and the destination of their values. */
struct vxd_query_keys {
    const struct vxd_query_key *keys;
    size_t n_keys;
    void *query; /* of the functions */
    const struct vxd_query_field *fields;
    size_t n_fields;
    ProtobufCMessage *message; /* of the fields */
};

/* Takes the value of a query's item; *is_known: its key is one of these, or format.
 * errors  INVALID_ARGUMENT  also where the key was given before; RESOURCE_EXHAUSTED */
enum vxd_status vxd_query_take(struct vxd_decoder *decoder, const struct vxd_body *body,
                               size_t index, const struct vxd_query_keys *keys,
                               bool *is_known, struct vxd_err *err);

/* Takes all items. errors  as of one; INVALID_ARGUMENT  for keys that are unknown */
enum vxd_status vxd_query_take_all(struct vxd_decoder *decoder,
                                   const struct vxd_body *body,
                                   const struct vxd_query_keys *keys,
                                   struct vxd_err *err);

/* Returns INVALID_ARGUMENT: the key is unknown. The message has all others; more: ", frame_id" */
enum vxd_status vxd_query_refuse(const struct vxd_query_keys *keys, const char *more,
                                 const struct vxd_query_item *item, struct vxd_err *err);

/* Reads a scan file that is the body of a POST, and the query beside it. *out becomes a
 * list of one cloud, whose points stay in the file where they are stored as records.
 * format, frame_id, stamp_ns, min_range and body are keys of every method.
 * errors  INVALID_ARGUMENT  also for keys that are unknown or given twice
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_cloud_from_body(struct vxd_request *request,
                                    const struct vxd_body *body,
                                    const struct vxd_query_keys *keys,
                                    Voxeld__V1__Cloud ***out, struct vxd_err *err);

/* Copies the value into the request's memory.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_query_text(struct vxd_decoder *decoder,
                               const struct vxd_query_item *item, char **out,
                               struct vxd_err *err);

/* Copies names separated by commas, at most `most` of them.
 * errors  INVALID_ARGUMENT  the value is not what the key takes
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_query_names(struct vxd_decoder *decoder,
                                const struct vxd_query_item *item, size_t most,
                                const char *expected, char ***out, size_t *n,
                                struct vxd_err *err);

/* Reads numbers separated by commas; returns how many, or 0 when the text is anything
 * else or has more than `most`. */
size_t vxd_query_numbers(const char *text, double *out, size_t most);

/* Returns INVALID_ARGUMENT: the value is not what the key takes. */
enum vxd_status vxd_query_fail(struct vxd_err *err, const struct vxd_query_item *item,
                               const char *expected);

#endif
