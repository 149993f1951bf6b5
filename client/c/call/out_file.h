// SPDX-License-Identifier: Apache-2.0
/* A file that appears whole or not at all: it is written under another name beside its
 * place. */
#ifndef VXD_CLIENT_C_CALL_OUT_FILE_H
#define VXD_CLIENT_C_CALL_OUT_FILE_H

#include <stdio.h>

#include "proto/base/base.h"

struct vxd_out_file {
    const char *path; /* borrowed */
    char *beside;
    FILE *file;
};

/* Opens the file. The caller ends it, also where this fails.
 * errors  INVALID_ARGUMENT                path is NULL
 *         PERMISSION_DENIED, UNAVAILABLE  the file cannot be written
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_out_file_open(const char *path, struct vxd_out_file *out,
                                  struct vxd_err *err);

/* errors  PERMISSION_DENIED, UNAVAILABLE */
enum vxd_status vxd_out_file_write(struct vxd_out_file *file, const void *bytes,
                                   size_t n_bytes, struct vxd_err *err);

/* If status is OK the file takes its place, else it is deleted. Returns status, or the
 * reason why it could not take its place. */
enum vxd_status vxd_out_file_end(struct vxd_out_file *file, enum vxd_status status,
                                 struct vxd_err *err);

#endif
