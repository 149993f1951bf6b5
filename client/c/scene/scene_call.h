// SPDX-License-Identifier: Apache-2.0
/* What the calls on scenes share. */
#ifndef VXD_CLIENT_C_SCENE_SCENE_CALL_H
#define VXD_CLIENT_C_SCENE_SCENE_CALL_H

#include "client/c/call/call.h"
#include "client/c/include/voxeld_version.h"

/* Initializes *out and returns it. */
Voxeld__V1__Vec3 *vxd_scene_vec3(const double in[3], Voxeld__V1__Vec3 *out);

/* Splits NAME, NAME@VERSION or NAME@SNAPSHOT; *at is NULL where there is no '@'. Both
 * live as long as the call. Only digits are a version.
 * errors  INVALID_ARGUMENT    nothing after the '@', or a number that is no version
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_name(struct vxd_exchange *call, const char *scene, char **name,
                               Voxeld__V1__SceneAt **at);

/* scene_reply.c opens replies. Its functions take call->reply, on failure too.
 * errors  INTERNAL            the reply contradicts itself or the request
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_scenes_open(struct vxd_exchange *call,
                                Voxeld__V1__SceneInfo *const *scenes, size_t n,
                                struct voxeld_scenes **out);

/* Opens the reply, of n rows, of any of the four methods that give a
 * voxeld_scene_found. counts: the request of an overlap asked for counts. */
enum vxd_status vxd_scene_found_open(struct vxd_exchange *call, size_t n, bool counts,
                                     struct voxeld_scene_found **out);

enum vxd_status vxd_scene_cells_open(struct vxd_exchange *call,
                                     enum voxeld_scene_format format, bool counts,
                                     struct voxeld_scene_cells **out);

/* scene_version_reply.c opens these in the same way. */
enum vxd_status vxd_scene_log_open(struct vxd_exchange *call,
                                   struct voxeld_scene_log **out);
enum vxd_status vxd_scene_diff_open(struct vxd_exchange *call,
                                    struct voxeld_scene_diff **out);

/* Copies the change of a reply.
 * errors  INTERNAL  there is none */
enum vxd_status vxd_scene_change_copy(const Voxeld__V1__SceneChange *in,
                                      struct voxeld_scene_change *out,
                                      struct vxd_err *err);

#endif
