// SPDX-License-Identifier: Apache-2.0
/* What the tests of readers and writers share. */
#ifndef VXD_TESTS_SUPPORT_CLIENT_CLOUD_FILES_H
#define VXD_TESTS_SUPPORT_CLIENT_CLOUD_FILES_H

#include <stdint.h>

#include "client/files/files.h"

#define FILES VOXELD_SOURCE_DIR "/tests/data/files/"
#define SHARED VOXELD_SOURCE_DIR "/../shared/data/"
#define BUDGET ((size_t)64 << 20)

/* A whole file in memory of exactly its size, so that ASan sees a read past it. NULL where
 * there is none; freed by the caller. */
uint8_t *load(const char *path, size_t *n_bytes);

/* The field of this name, NULL where there is none. */
const struct vxd_file_field *field(const struct vxd_cloud_file *file, const char *name);

/* Value of a field of a point, from the records themselves; NaN where there is no such
 * field. 64-bit integers are rounded. */
double value(const struct vxd_cloud_file *file, size_t point, const char *name);

#endif
