// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "gpu/voxel/voxel_backends.h"

#define MAX_CELLS (1 << 20)

static enum vxd_status check_geometry(const struct vxd_voxelize_args *args,
                                      struct vxd_err *err)
{
    for (int axis = 0; axis < 3; axis++) {
        float size = args->size_m[axis];
        float lo = args->range_lo_m[axis];
        float hi = args->range_hi_m[axis];

        if (!isfinite(size) || !(size > 0.0f)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "size_m",
                            "axis %c: %g m; must be > 0 and finite", "xyz"[axis],
                            (double)size);
        }
        if (args->rule == VXD_RULE_DOUBLE &&
            (!isfinite(args->exact_size_m[axis]) || !(args->exact_size_m[axis] > 0.0))) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "exact_size_m",
                            "axis %c: %g m; must be > 0 and finite", "xyz"[axis],
                            args -> exact_size_m[axis]);
        }
        if (args->has_range && (!isfinite(lo) || !isfinite(hi) || !(lo < hi))) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "range",
                            "axis %c: %g to %g m; must be finite and low < high",
                            "xyz"[axis], (double)lo, (double)hi);
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_voxelize_grid(const struct vxd_voxelize_args *args, int32_t grid[3],
                                  struct vxd_err *err)
{
    enum vxd_status status = check_geometry(args, err);

    if (status != VXD_OK) {
        return status;
    }
    if (!args->has_range) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "range",
                        "missing; the rule of spconv needs one");
    }
    for (int axis = 0; axis < 3; axis++) {
        float extent = vxd_subf(args->range_hi_m[axis], args->range_lo_m[axis]);
        float cells = roundf(vxd_divf(extent, args->size_m[axis]));

        if (!(cells >= 1.0f && cells <= (float)MAX_CELLS)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "size_m",
                            "axis %c: range / size gives %g cells, must be 1 to %d",
                            "xyz"[axis], (double)cells, MAX_CELLS);
        }
        grid[axis] = (int32_t)cells;
    }
    return VXD_OK;
}

/* Bias and levels of signed coordinates between floor(lo / size) and floor(hi / size).
 * Division and floor are monotonic, so no point in the range is outside these bounds. */
static void narrow_minkowski(struct vxd_voxel_lattice *lattice)
{
    uint32_t magnitude = 0;
    bool is_signed = false;

    for (int axis = 0; axis < 3; axis++) {
        float low = floorf(vxd_divf(lattice->lo[axis], lattice->size[axis]));
        float high = floorf(vxd_divf(lattice->hi[axis], lattice->size[axis]));
        int32_t l = low < -1048576.0f  ? -1048576
                    : low > 1048575.0f ? 1048575
                                       : (int32_t)low;
        int32_t h = high < -1048576.0f  ? -1048576
                    : high > 1048575.0f ? 1048575
                                        : (int32_t)high;

        is_signed = is_signed || l < 0;
        magnitude |= (uint32_t)(l < 0 ? ~l : l) | (uint32_t)(h < 0 ? ~h : h);
    }
    lattice->levels = vxd_bits_of(magnitude);
    if (is_signed) {
        lattice->bias = (int32_t)1 << lattice->levels;
        lattice->levels++;
    }
    if (lattice->levels == 0) {
        lattice->levels = 1;
    }
}

enum vxd_status vxd_voxel_lattice_init(const struct vxd_voxelize_args *args,
                                       struct vxd_voxel_lattice *out, struct vxd_err *err)
{
    struct vxd_voxel_lattice lattice = {.rule = args->rule, .has_range = args->has_range};
    enum vxd_status status = check_geometry(args, err);

    if (status != VXD_OK) {
        return status;
    }
    for (int axis = 0; axis < 3; axis++) {
        lattice.size[axis] = args->size_m[axis];
        lattice.lo[axis] = args->has_range ? args->range_lo_m[axis] : 0.0f;
        lattice.hi[axis] = args->has_range ? args->range_hi_m[axis] : 0.0f;
        lattice.exact_size[axis] =
            args->rule == VXD_RULE_DOUBLE ? args->exact_size_m[axis] : 0.0;
    }
    if (args->rule == VXD_RULE_SPCONV) {
        uint32_t largest = 1;

        status = vxd_voxelize_grid(args, lattice.grid, err);
        if (status != VXD_OK) {
            return status;
        }
        for (int axis = 0; axis < 3; axis++) {
            largest |= (uint32_t)(lattice.grid[axis] - 1);
        }
        lattice.levels = vxd_bits_of(largest);
    } else if (args->has_range && args->rule == VXD_RULE_MINKOWSKI) {
        narrow_minkowski(&lattice);
    } else {
        lattice.bias = (int32_t)1 << (VXD_COORD_BITS - 1);
        lattice.levels = VXD_COORD_BITS;
    }
    *out = lattice;
    return VXD_OK;
}
