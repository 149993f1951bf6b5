// SPDX-License-Identifier: Apache-2.0
/* What the methods of slac.proto share. Private to server/service/slac. */
#ifndef VXD_SERVER_SERVICE_SLAC_SLAC_SERVICE_H
#define VXD_SERVER_SERVICE_SLAC_SLAC_SERVICE_H

#include "server/registry/volumes/volumes.h"
#include "server/request/request.h"
#include "server/service/map/map.h"
#include "server/service/slac/service_slac.h"
#include "voxeld/v1/slac.pb-c.h"

/* --- slac_jobs.c ------------------------------------------------------------------------- */

struct vxd_slac_progress {
    Voxeld__V1__SlacState state;
    uint32_t iteration;
    uint32_t iterations;
    struct vxd_slac_loss loss;
    uint64_t n_control_points;
    int64_t began_ns;
    int64_t ended_ns; /* 0: it runs */
    char error[240];
};

/* Begins a job; *id is not 0.
 * errors  ALREADY_EXISTS      one of the name runs
 *         RESOURCE_EXHAUSTED  too many run */
enum vxd_status vxd_slac_jobs_begin(struct vxd_slac_jobs *jobs, const char *name,
                                    uint32_t iterations, uint64_t *id,
                                    struct vxd_err *err);
void vxd_slac_jobs_update(struct vxd_slac_jobs *jobs, uint64_t id, uint32_t iteration,
                          const struct vxd_slac_loss *loss, uint64_t n_control_points);
bool vxd_slac_jobs_is_cancelled(struct vxd_slac_jobs *jobs, uint64_t id);
void vxd_slac_jobs_end(struct vxd_slac_jobs *jobs, uint64_t id,
                       Voxeld__V1__SlacState state, const char *error);

/* Of the last job of a name. errors  NOT_FOUND */
enum vxd_status vxd_slac_jobs_get(struct vxd_slac_jobs *jobs, const char *name,
                                  struct vxd_slac_progress *out, struct vxd_err *err);
enum vxd_status vxd_slac_jobs_cancel(struct vxd_slac_jobs *jobs, const char *name,
                                     bool *was_running, struct vxd_err *err);

/* --- slac_poses.c ------------------------------------------------------------------------ */

/* Rows of x y z and a unit quaternion x y z w as poses.
 * errors  INVALID_ARGUMENT  names the row as "poses[3]" */
enum vxd_status vxd_slac_read_pose_rows(const double *rows, size_t n,
                                        struct vxd_volume_pose *out, struct vxd_err *err);
void vxd_slac_write_pose_rows(const struct vxd_volume_pose *poses, size_t n,
                              double *rows);

/* An absent pose is the identity.
 * errors  INVALID_ARGUMENT */
enum vxd_status vxd_slac_read_pose(const Voxeld__V1__Pose *pose, const char *field,
                                   struct vxd_deform_pose *out, struct vxd_err *err);

/* --- slac_optimize_check.c ---------------------------------------------------------------- */

enum vxd_slac_stage {
    VXD_SLAC_OPEN = 0,     /* on the write lane: names, and points to the device */
    VXD_SLAC_SURFACES = 1, /* on the write lane: of one volume after the other */
    VXD_SLAC_CREATE = 2,   /* from here on a read lane */
    VXD_SLAC_PAIRS = 3,
    VXD_SLAC_SOLVE = 4,
    VXD_SLAC_READ = 5,
    VXD_SLAC_KEEP = 6 /* on the write lane: the grid becomes a map */
};

/* A fragment's points on the device. */
struct vxd_slac_part {
    struct vxd_named_volume *volume; /* held until its surface is made; NULL: none */
    struct vxd_buffer points;
    struct vxd_buffer normals;
    char name[64];
};

struct vxd_slac_optimize_job {
    struct vxd_map_job base; /* first: request->state is both */
    enum vxd_slac_stage stage;
    struct vxd_slac_options options;
    uint32_t iterations;
    uint32_t iteration;
    int64_t max_ns; /* from when it began */
    int64_t began_ns;
    struct vxd_named_terms terms;
    uint64_t id; /* among the jobs; 0: it has not begun */
    bool is_ended;
    size_t n_parts;
    size_t n_surfaces; /* made so far */
    struct vxd_slac_part *parts;
    struct vxd_slac_fragment *fragments;
    struct vxd_slac_edge *edges;
    size_t n_edges;
    const float *points; /* host memory, of clouds */
    const float *normals;
    struct vxd_slac *slac;
    struct vxd_map *replaced;
    double *losses; /* 4 a row */
    Voxeld__V1__SlacOptimizeResponse *reply;
};

#endif
