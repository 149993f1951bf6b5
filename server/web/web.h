// SPDX-License-Identifier: Apache-2.0
/* The dashboard's files as parts of the program. */
#ifndef VXD_SERVER_WEB_WEB_H
#define VXD_SERVER_WEB_WEB_H

#include <stddef.h>

struct vxd_web_file {
    const char *path; /* of its URL, "/index.html" */
    const char *bytes;
    const size_t *n_bytes;
};

extern const struct vxd_web_file vxd_web_files[];
extern const size_t vxd_n_web_files;

#endif
