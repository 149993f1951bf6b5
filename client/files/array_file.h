// SPDX-License-Identifier: Apache-2.0
/* Arrays of numbers in files: .npy, and text. */
#ifndef VXD_CLIENT_FILES_ARRAY_FILE_H
#define VXD_CLIENT_FILES_ARRAY_FILE_H

#include "proto/base/base.h"

/* n rows of n_elements. data points into the caller's bytes where those hold the elements as
 * they are (.npy), otherwise into `owned`; little-endian, perhaps unaligned. */
struct vxd_array_file {
    enum vxd_dtype dtype;
    size_t n;
    size_t n_elements;
    const uint8_t *data;
    uint8_t *owned; /* freed by vxd_array_file_clear */
};

/* An .npy file with one or two axes, little-endian and row-major, borrowed.
 * errors  INVALID_ARGUMENT  anything else: what, and at which byte */
enum vxd_status vxd_npy_parse_array(const uint8_t *bytes, size_t n_bytes,
                                    struct vxd_array_file *out, struct vxd_err *err);

/* Text: a row a line, its numbers separated by commas, semicolons or blanks, as many on every
 * line. Empty lines and lines that begin with "#" are passed over, and so is a first line
 * that begins with a letter and no number: names of columns.
 *
 * in      dtype  to read the numbers as; not float16, not bfloat16
 * errors  INVALID_ARGUMENT    no such number: at which line; lines of different lengths
 *         RESOURCE_EXHAUSTED  no memory
 * On error *out owns nothing. */
enum vxd_status vxd_text_parse_array(const uint8_t *bytes, size_t n_bytes,
                                     enum vxd_dtype dtype, struct vxd_array_file *out,
                                     struct vxd_err *err);

void vxd_array_file_clear(struct vxd_array_file *file);

#endif
