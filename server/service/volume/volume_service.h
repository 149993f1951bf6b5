// SPDX-License-Identifier: Apache-2.0
/* What the methods of volume.proto share. Private to server/service/volume.
 *
 * check (any thread) looks at what the message alone says, and decodes images. The volume is found
 * in submit, when the request's turn has come on the write lane. Reads run there, too, since a
 * volume is changed in place: in one stage, or, large pictures, in several between which no change
 * may come. */
#ifndef VXD_SERVER_SERVICE_VOLUME_VOLUME_SERVICE_H
#define VXD_SERVER_SERVICE_VOLUME_VOLUME_SERVICE_H

#include "client/files/image/files_image.h"
#include "gpu/volume/scan/volume_scan.h"
#include "server/registry/volumes/volumes.h"
#include "server/service/columns/columns.h"
#include "server/service/noun/noun.h"
#include "server/request/request.h"
#include "voxeld/v1/refine.pb-c.h"
#include "server/service/clouds/clouds.h"
#include "server/service/volume/service_volume.h"
#include "voxeld/v1/volume.pb-c.h"

enum {
    VXD_VOLUME_MAX_PIXELS = 1 << 22 /* of an image or picture; a frame's stage is short */
};

/* What 2 GiB leave for the arrays beside all other fields. */
#define VXD_VOLUME_REPLY_BYTES ((size_t)INT32_MAX - ((size_t)1 << 20))

/* --- volume_job.c: memory of a request ---------------------------------------------- */

/* --- volume_image.c: images ------------------------------------------------------------ */

/* Integrates a frame, whose arrays are in device memory, within the limits: a volume that forgets
 * makes room where there is none. What was forgotten is in the commit's record.
 * errors  those of vxd_volume_integrate, completed by vxd_names_explain */
enum vxd_status vxd_volume_integrate_within(struct vxd_request *request,
                                            struct vxd_queue *queue,
                                            const struct vxd_volume_frame *frame,
                                            struct vxd_volume_activation *out,
                                            struct vxd_err *err);

/* The same for a scan.
 * errors  those of vxd_volume_integrate_scan, completed by vxd_names_explain */
enum vxd_status vxd_volume_scan_within(struct vxd_request *request,
                                       struct vxd_queue *queue,
                                       const struct vxd_volume_scan *scan,
                                       struct vxd_volume_scan_result *out,
                                       struct vxd_err *err);

/* Has the commit's record say that this frame was integrated, its arrays in host memory until the
 * request is gone. The files are what the arrays were decoded from; of a length 0 there is none, and
 * only those of PNG are kept. A frame with a mask or labels, or one that carves or is deformed, leaves the
 * record as it is: the blocks that it changed. */
void vxd_volume_keep_image(struct vxd_request *request,
                           const struct vxd_volume_frame *frame,
                           const ProtobufCBinaryData *depth_file,
                           const ProtobufCBinaryData *colour_file);

/* --- volume_track.c --------------------------------------------------------------------- */

/* Where a frame was taken, and how that is found. */
struct vxd_volume_finding {
    struct vxd_named_volume *volume;
    bool has_prior;                   /* the frame's T_map_camera is the client's */
    struct vxd_track_options options; /* with the defaults filled in */
    struct vxd_track_result result;
    bool is_first; /* the volume was empty: the pose is as it was thought to be */
};

/* Device memory that tracking takes a pixel of the finest level, at most. */
#define VXD_TRACK_BYTES_A_PIXEL 140

/* Refuses rays that would keep the lane for long. predicts: all of the frame's pixels are cast, too.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_volume_check_steps(const struct vxd_volume_finding *finding,
                                       const struct vxd_volume_frame *frame,
                                       const struct vxd_queue *queue, bool predicts,
                                       struct vxd_err *err);

/* Finds the pose of a frame, whose arrays are in device memory, or of the first frame of an empty
 * volume takes it as it is thought to be; the frame gets it. Blocking. */
enum vxd_status vxd_volume_locate(struct vxd_queue *queue,
                                  struct vxd_volume_finding *finding,
                                  const struct vxd_track_state *state,
                                  struct vxd_volume_frame *frame, struct vxd_err *err);

/* What the volume's tracker knows after a frame, from what it knew before. */
void vxd_volume_keep_track(const struct vxd_volume_finding *finding,
                           const struct vxd_track_state *state);

/* --- volume_sent.c -------------------------------------------------------------------- */

/* The images of a message, and how they were taken. */
struct vxd_volume_sent {
    const Voxeld__V1__VolumeCamera *camera;
    ProtobufCBinaryData depth;
    Voxeld__V1__VolumeDepth depth_type;
    ProtobufCBinaryData colour; /* empty: there is none */
    Voxeld__V1__VolumeColour colour_type;
    const Voxeld__V1__VolumeCamera *colour_camera; /* NULL: the depth's */
    const Voxeld__V1__Pose *T_depth_colour;
};

/* Those of a request whose fields have these names. */
#define VXD_VOLUME_SENT(input)                                                           \
    {                                                                                    \
        (input)->camera, (input)->depth, (input)->depth_type, (input)->colour,           \
            (input)->colour_type, (input)->colour_camera, (input)->t_depth_colour        \
    }

/* Decodes them into `depth` and `colour`, which the caller clears in forget, or points to the
 * message's bytes; fills in cameras and arrays of the frame, in host memory.
 * errors  INVALID_ARGUMENT    no image, or not as it should be
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_volume_read_images(struct vxd_request *request,
                                       const struct vxd_volume_sent *sent,
                                       struct vxd_image *depth, struct vxd_image *colour,
                                       struct vxd_volume_frame *frame,
                                       struct vxd_err *err);

/* The labels of a frame whose camera is known: a byte a pixel, or a PNG of them, decoded into `image`,
 * which the caller clears in forget.
 * errors  INVALID_ARGUMENT, RESOURCE_EXHAUSTED */
enum vxd_status vxd_volume_read_labels(struct vxd_request *request,
                                       const ProtobufCBinaryData *sent,
                                       struct vxd_image *image,
                                       struct vxd_volume_frame *frame,
                                       struct vxd_err *err);

/* The image of a keyframe, decoded into `image`, which the caller clears in forget, or the message's
 * bytes; its camera and pose. Errors name keyframes[index].
 * errors  INVALID_ARGUMENT, RESOURCE_EXHAUSTED */
enum vxd_status vxd_volume_read_keyframe(struct vxd_request *request,
                                         const Voxeld__V1__VolumeKeyframe *keyframe,
                                         size_t index, struct vxd_image *image,
                                         struct vxd_volume_camera *camera,
                                         struct vxd_volume_pose *pose,
                                         const uint8_t **colour, struct vxd_err *err);

/* --- volume_refine.c ------------------------------------------------------------------- */

/* A refinement that runs, between its stages. */
struct vxd_volume_refining {
    struct vxd_refine *refine;
    bool is_cancelled; /* its next stage is its end */
};

/* --- volume_info.c: parameters ------------------------------------------------------- */

/* Makes a VolumeInfo in the arena.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_volume_new_info(struct vxd_decoder *arena,
                                    const struct vxd_named_volume *volume,
                                    Voxeld__V1__VolumeInfo **out, struct vxd_err *err);

/* The schema's camera as the engine's. A size of 0 becomes that of the image, where one is given;
 * another size than the image's is refused.
 * errors  INVALID_ARGUMENT */
enum vxd_status vxd_volume_read_camera(const Voxeld__V1__VolumeCamera *camera,
                                       const char *field, const struct vxd_image *image,
                                       struct vxd_volume_camera *out,
                                       struct vxd_err *err);

/* The engine's camera as the schema's. */
void vxd_volume_show_camera(const struct vxd_volume_camera *camera,
                            Voxeld__V1__VolumeCamera *out);

/* Elevations that a lidar may have, degrees either way: of scans, and of pictures. */
#define VXD_SCAN_MAX_ELEVATION 89.0
#define VXD_CAMERA_MAX_ELEVATION 90.0

/* The schema's lidar as the engine's, whose elevations stay in the message.
 * errors  INVALID_ARGUMENT */
enum vxd_status vxd_volume_read_lidar(const Voxeld__V1__VolumeLidar *lidar,
                                      double max_elevation_deg,
                                      struct vxd_volume_lidar *out, struct vxd_err *err);

/* errors  INVALID_ARGUMENT  not a number from low to high */
enum vxd_status vxd_volume_check_number(double value, const char *field, double low,
                                        double high, struct vxd_err *err);

/* --- volume_ply.c ---------------------------------------------------------------------- */

/* A surface on the host. */
struct vxd_volume_mesh {
    size_t n_vertices;
    size_t n_triangles;
    const float *vertices;
    const float *normals;
    const uint8_t *colours; /* NULL: none */
    const int32_t *triangles;
};

/* Bytes of a surface as PLY. */
size_t vxd_volume_ply_bytes(const struct vxd_volume_mesh *mesh);

/* Writes them. */
void vxd_volume_write_ply(const struct vxd_volume_mesh *mesh, uint8_t *out);

#endif
