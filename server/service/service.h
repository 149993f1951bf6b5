// SPDX-License-Identifier: Apache-2.0
/* The functions of all methods, as struct vxd_method describes them. */
#ifndef VXD_SERVER_SERVICE_SERVICE_H
#define VXD_SERVER_SERVICE_SERVICE_H

#include "server/method.h"

/* service/admin.c */
enum vxd_status vxd_server_info_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_status_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_set_log_level_check(struct vxd_request *request, struct vxd_err *err);

/* service/self_test.c */
enum vxd_status vxd_self_test_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_self_test_submit(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err);
enum vxd_status vxd_self_test_finish(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err);
void vxd_self_test_release(struct vxd_request *request, struct vxd_queue *queue);

/* service/voxelize*.c */
enum vxd_status vxd_voxelize_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_voxelize_submit(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err);
enum vxd_status vxd_voxelize_finish(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err);
void vxd_voxelize_release(struct vxd_request *request, struct vxd_queue *queue);
enum vxd_status vxd_voxelize_from_file(struct vxd_request *request, const char *format,
                                       const uint8_t *bytes, size_t n_bytes,
                                       const struct vxd_query_item *query, size_t n_query,
                                       struct vxd_err *err);

#endif
