// SPDX-License-Identifier: Apache-2.0
/* Cameras in files. */
#include <string.h>

#include "client/voxelctl/volume/volume_commands.h"

int ctl_volume_read_camera(const char *path, struct voxeld_volume_camera *out)
{
    struct ctl_array file;
    int result = ctl_array_read(path, VOXELD_FLOAT64, &file);
    double m[12] = {0};
    size_t n;

    memset(out, 0, sizeof *out);
    if (result != CTL_OK) {
        ctl_array_clear(&file);
        return result;
    }
    n = file.array.n * file.array.n_elements;
    if (file.array.dtype != VXD_FLOAT64 || n > 12) {
        n = 0;
    }
    if (n > 0) {
        memcpy(m, file.array.data, n * sizeof *m);
    }
    if (n == 9 && file.array.n == 3) {
        out->fx = m[0];
        out->fy = m[4];
        out->cx = m[2];
        out->cy = m[5];
    } else if (file.array.n == 1 && (n == 4 || n == 8 || n == 9 || n == 12)) {
        out->fx = m[0];
        out->fy = m[1];
        out->cx = m[2];
        out->cy = m[3];
        out->k1 = m[4];
        out->k2 = m[5];
        out->p1 = m[6];
        out->p2 = m[7];
        out->k3 = m[8];
        out->k4 = m[9];
        out->k5 = m[10];
        out->k6 = m[11];
    } else {
        (void)ctl_error("%s: no camera; a 3 x 3 matrix is right, or one line fx "
                        "fy cx cy with 0, 4, 5 or 8 numbers of distortion",
                        path);
        result = CTL_FAILED;
    }
    ctl_array_clear(&file);
    return result;
}
