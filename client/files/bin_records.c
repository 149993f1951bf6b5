// SPDX-License-Identifier: Apache-2.0
/* The .bin files of the KITTI and nuScenes data sets: float32 records without a
 * header, which is why only the user can say which format a file has.
 *
 *   KITTI     16 bytes  x y z intensity
 *   nuScenes  20 bytes  x y z intensity ring
 */
#include <string.h>

#include "client/files/reader.h"

static enum vxd_status records_parse(const char *format, const char *const *names,
                                     size_t n_names, const uint8_t *bytes, size_t n_bytes,
                                     struct vxd_cloud_file *out, struct vxd_err *err)
{
    size_t step = n_names * sizeof(float);
    enum vxd_status status = VXD_OK;

    if (n_bytes % step != 0) {
        return VXD_FILE_BAD(err,
                            "%s: %zu bytes are no whole number of %zu-byte records: %zu "
                            "are left after byte %zu",
                            format, n_bytes, step, n_bytes % step,
                            n_bytes - n_bytes % step);
    }
    for (size_t i = 0; i < n_names; i++) {
        VXD_TRY(vxd_file_add_field(out, names[i], strlen(names[i]), i * sizeof(float),
                                   VXD_FLOAT32, err));
    }
    out->point_step = (uint32_t)step;
    out->n_points = n_bytes / step;
    out->data = bytes;
out:
    return status;
}

enum vxd_status vxd_kitti_parse(const uint8_t *bytes, size_t n_bytes, size_t budget_bytes,
                                struct vxd_cloud_file *out, struct vxd_err *err)
{
    static const char *const names[] = {"x", "y", "z", "intensity"};

    (void)budget_bytes;
    return records_parse("kitti", names, 4, bytes, n_bytes, out, err);
}

enum vxd_status vxd_nuscenes_parse(const uint8_t *bytes, size_t n_bytes,
                                   size_t budget_bytes, struct vxd_cloud_file *out,
                                   struct vxd_err *err)
{
    static const char *const names[] = {"x", "y", "z", "intensity", "ring"};

    (void)budget_bytes;
    return records_parse("nuscenes", names, 5, bytes, n_bytes, out, err);
}
