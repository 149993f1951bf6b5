// SPDX-License-Identifier: Apache-2.0
/* What the methods of odometry.proto share, and how other methods have the pose of a scan estimated.
 *
 * Scans are registered on the write lane, one after the other, in one stage: registration waits for
 * the device and takes some milliseconds. */
#ifndef VXD_SERVER_SERVICE_ODOMETRY_SERVICE_ODOMETRY_H
#define VXD_SERVER_SERVICE_ODOMETRY_SERVICE_ODOMETRY_H

#include "server/registry/odometries/odometries.h"
#include "server/request/request.h"
#include "server/service/clouds/clouds.h"
#include "voxeld/v1/odometry.pb-c.h"

/* --- odometry_estimate.c: the pose of a scan --------------------------------------------- */

/* A scan on its way to a pose. Zero-initialised it is none. */
struct vxd_estimate {
    struct vxd_named_odometry *odometry; /* held */
    Voxeld__V1__Cloud cloud;             /* as the decoder reads it */
    Voxeld__V1__Cloud *pointer;
    Voxeld__V1__Deskew deskew;
    struct vxd_clouds clouds;
    bool has_prior;
    struct vxd_volume_pose prior;
    struct vxd_buffer positions;
    bool is_done;
    struct vxd_odometry_result result;
    /* Of the sensor at the begin of the scan; the result's without deskewing. */
    struct vxd_volume_pose T_map_sensor_begin;
};

/* Checks a scan whose pose is to be found; err.field begins with "cloud". The message stays as it is
 * and must outlive the estimate. Memory is the request's.
 * errors  INVALID_ARGUMENT, RESOURCE_EXHAUSTED */
enum vxd_status vxd_estimate_check(struct vxd_request *request,
                                   const Voxeld__V1__Cloud *cloud,
                                   struct vxd_estimate *estimate, struct vxd_err *err);

/* Whose odometry a request means: the named one, or that beside the scene or volume `name` of a
 * generation where `odometry` is empty, whose owner that of the scene or volume is. The estimate holds it.
 * errors  NOT_FOUND, RESOURCE_EXHAUSTED */
enum vxd_status vxd_estimate_open(struct vxd_request *request, struct vxd_queue *queue,
                                  const char *odometry, enum vxd_odometry_owner kind,
                                  const char *name, uint64_t generation,
                                  const char *owner, struct vxd_estimate *estimate,
                                  struct vxd_err *err);

/* Registers the scan. Blocking. errors  as vxd_odometry_register */
enum vxd_status vxd_estimate_run(struct vxd_queue *queue, struct vxd_estimate *estimate,
                                 struct vxd_err *err);

/* Gives the odometry and all memory back; harmless when there is nothing. */
void vxd_estimate_release(struct vxd_queue *queue, struct vxd_estimate *estimate);

/* Writes the pose that was found into a cloud of the same request, with that of the scan's end where
 * it is deskewed.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_estimate_place(struct vxd_decoder *arena,
                                   const struct vxd_estimate *estimate,
                                   Voxeld__V1__Cloud *cloud, struct vxd_err *err);

/* Device memory that an estimate takes a point, at most. */
#define VXD_ESTIMATE_BYTES_A_POINT ((size_t)300)

#endif
