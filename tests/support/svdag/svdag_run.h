// SPDX-License-Identifier: Apache-2.0
/* Edits and scans of scenes for tests that run on either backend. Arrays are in host
 * memory; they are copied to the device and back where the backend needs that, and every
 * call waits for its results. */
#ifndef VXD_TESTS_SUPPORT_SVDAG_SVDAG_RUN_H
#define VXD_TESTS_SUPPORT_SVDAG_SVDAG_RUN_H

#include "gpu/svdag/scan/scan.h"
#include "gpu/svdag/store/store_math.h"
#include "gpu/svdag/store/store.h"
#include "tests/support/gpu/gpu_helpers.h"

/* Creates a store; failures end the program. */
struct vxd_svdag *gpu_svdag_create(struct gpu_env *env,
                                   const struct vxd_svdag_spec *spec);

/* Calls vxd_svdag_edit_wait. */
enum vxd_status gpu_svdag_edit(struct gpu_env *env, struct vxd_svdag *svdag,
                               uint32_t root, const struct vxd_svdag_op *ops,
                               size_t n_ops, struct vxd_svdag_edit_result *out,
                               struct vxd_err *err);

/* Calls vxd_svdag_edit and waits; the result may say that capacity did not suffice. */
enum vxd_status gpu_svdag_try(struct gpu_env *env, struct vxd_svdag *svdag, uint32_t root,
                              const struct vxd_svdag_op *ops, size_t n_ops,
                              struct vxd_svdag_edit_result *out, struct vxd_err *err);

/* Calls vxd_svdag_scan_voxels; free the lists with gpu_svdag_list_free, and ends that were wanted
 * with gpu_svdag_ends_free. */
enum vxd_status gpu_svdag_scan(struct gpu_env *env, const struct vxd_svdag_format *format,
                               const struct vxd_svdag_scan *scan,
                               struct vxd_svdag_scan_result *out, struct vxd_err *err);

/* Calls vxd_svdag_list_voxels; free the list with gpu_svdag_list_free. */
enum vxd_status gpu_svdag_list(struct gpu_env *env, const struct vxd_svdag_format *format,
                               const int32_t *voxels, const uint16_t *values, size_t n,
                               struct vxd_svdag_voxel_list *list, uint64_t *n_outside,
                               struct vxd_err *err);
void gpu_svdag_list_free(struct gpu_env *env, struct vxd_svdag_voxel_list *list);
void gpu_svdag_ends_free(struct gpu_env *env, struct vxd_svdag_ray_ends *ends);

/* A reader of the store on the host, valid until the store changes; failures end the
 * program. */
void gpu_svdag_image_open(struct gpu_env *env, const struct vxd_svdag *svdag,
                          struct vxd_svdag_image *image);
void gpu_svdag_image_close(struct gpu_env *env, struct vxd_svdag_image *image);

#endif
