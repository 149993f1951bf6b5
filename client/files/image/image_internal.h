// SPDX-License-Identifier: Apache-2.0
/* What the picture codecs share; private to this folder. */
#ifndef VXD_CLIENT_FILES_IMAGE_IMAGE_INTERNAL_H
#define VXD_CLIENT_FILES_IMAGE_IMAGE_INTERNAL_H

#include "client/files/image/files_image.h"

/* Fails with the file as the field. */
#define VXD_IMAGE_BAD(err, ...)                                                          \
    vxd_fail((err), VXD_INVALID_ARGUMENT, "image", __VA_ARGS__)

/* Compares sides and samples with the limits and sets image->n_bytes.
 * errors  INVALID_ARGUMENT    a side of 0
 *         RESOURCE_EXHAUSTED  beyond the limits */
enum vxd_status vxd_image_check_limits(const char *format,
                                       const struct vxd_image_limits *limits,
                                       struct vxd_image *image, struct vxd_err *err);

/* Checks a picture that is to be encoded, 16-bit samples where `wide` says so. */
enum vxd_status vxd_image_check_source(const struct vxd_image *image, bool wide,
                                       struct vxd_err *err);

/* As vxd_image_read_head, of one format; nothing but these four members is set. */
enum vxd_status vxd_png_read_head(const uint8_t *bytes, size_t n_bytes,
                                  struct vxd_image *image, struct vxd_err *err);
enum vxd_status vxd_jpeg_read_head(const uint8_t *bytes, size_t n_bytes,
                                   struct vxd_image *image, struct vxd_err *err);

/* Allocates image->n_bytes. RESOURCE_EXHAUSTED where there is no memory. */
enum vxd_status vxd_image_allocate(struct vxd_image *image, struct vxd_err *err);

#endif
