// SPDX-License-Identifier: Apache-2.0
#include "tests/support/svdag/svdag_grid.h"

#include <stdlib.h>
#include <string.h>

__extension__ typedef __int128 wide;

static size_t n_voxels(const struct gpu_svdag_grid *grid)
{
    return (size_t)(grid->side * grid->side * grid->side);
}

void gpu_svdag_grid_make(struct gpu_svdag_grid *grid,
                         const struct vxd_svdag_format *format)
{
    grid->format = *format;
    grid->side = (int64_t)1 << format->depth;
    grid->voxels = gpu_alloc(n_voxels(grid) * sizeof *grid->voxels);
    for (size_t i = 0; i < n_voxels(grid); i++) {
        grid->voxels[i] = GPU_VOXEL_UNSET;
    }
}

void gpu_svdag_grid_free(struct gpu_svdag_grid *grid)
{
    free(grid->voxels);
    grid->voxels = NULL;
}

void gpu_svdag_grid_copy(struct gpu_svdag_grid *to, const struct gpu_svdag_grid *from)
{
    memcpy(to->voxels, from->voxels, n_voxels(from) * sizeof *from->voxels);
}

static size_t index_of(const struct gpu_svdag_grid *grid, int64_t x, int64_t y, int64_t z)
{
    return (size_t)((x * grid->side + y) * grid->side + z);
}

int32_t gpu_svdag_grid_at(const struct gpu_svdag_grid *grid, int64_t x, int64_t y,
                          int64_t z)
{
    bool is_inside =
        x >= 0 && y >= 0 && z >= 0 && x < grid->side && y < grid->side && z < grid->side;

    return is_inside ? grid->voxels[index_of(grid, x, y, z)] : GPU_VOXEL_UNSET;
}

/* Shapes ---------------------------------------------------------------------------------- */

static wide dot(const int64_t a[3], const int64_t b[3])
{
    return (wide)a[0] * b[0] + (wide)a[1] * b[1] + (wide)a[2] * b[2];
}

static bool in_capsule(const struct vxd_svdag_shape *shape, const int64_t c[3])
{
    int64_t v[3];
    int64_t d[3];
    int64_t end[3];
    wide r2 = (wide)shape->r * shape->r;
    wide t;
    wide length;

    for (int i = 0; i < 3; i++) {
        v[i] = c[i] - shape->a[i];
        d[i] = shape->b[i] - shape->a[i];
        end[i] = c[i] - shape->b[i];
    }
    t = dot(v, d);
    length = dot(d, d);
    if (t <= 0) {
        return dot(v, v) <= r2;
    }
    if (t >= length) {
        return dot(end, end) <= r2;
    }
    return dot(v, v) * length - t * t <= r2 * length;
}

static int64_t lattice(uint32_t seed, int64_t i, int64_t j, int64_t k)
{
    uint64_t h = (uint64_t)seed * 4294967296u + (uint64_t)i;

    for (int round = 0; round < 2; round++) {
        h = (h ^ h >> 33) * 0xff51afd7ed558ccdULL;
        h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53ULL;
        h ^= h >> 33;
        if (round == 0) {
            h += (uint64_t)j * 4294967296u + (uint64_t)k;
        }
    }
    return (int64_t)(h / 281474976710656u);
}

int64_t gpu_noise(uint32_t seed, int cell_bits, int64_t amplitude, const int64_t c[3])
{
    int64_t cell = (int64_t)VXD_SVDAG_UNIT << cell_bits;
    int64_t s[3];
    int64_t z[2];

    for (int i = 0; i < 3; i++) {
        int64_t f = c[i] % cell * 65536 / cell;

        s[i] = (int64_t)((wide)f * f * (196608 - 2 * f) / 4294967296);
    }
    for (int dz = 0; dz < 2; dz++) {
        int64_t y[2];

        for (int dy = 0; dy < 2; dy++) {
            int64_t a = lattice(seed, c[0] / cell, c[1] / cell + dy, c[2] / cell + dz);
            int64_t b =
                lattice(seed, c[0] / cell + 1, c[1] / cell + dy, c[2] / cell + dz);

            y[dy] = (a * (65536 - s[0]) + b * s[0]) / 65536;
        }
        z[dz] = (y[0] * (65536 - s[1]) + y[1] * s[1]) / 65536;
    }
    z[0] = (z[0] * (65536 - s[2]) + z[1] * s[2]) / 65536;
    return amplitude * (2 * z[0] - 65535) / 65535;
}

static bool in_heights(const struct vxd_svdag_shape *shape, const int64_t c[3])
{
    const struct vxd_svdag_heights *field = &shape->field;
    int64_t x = c[0] / VXD_SVDAG_UNIT - field->x;
    int64_t y = c[1] / VXD_SVDAG_UNIT - field->y;

    if (x < 0 || y < 0 || x / field->cell >= field->n_x ||
        y / field->cell >= field->n_y) {
        return false;
    }
    return c[2] >= shape->low[2] &&
           c[2] < field->heights[x / field->cell * field->n_y + y / field->cell];
}

/* Index of a voxel's leaf in the list, or n if the list has no such leaf. */
static size_t entry_of(const struct vxd_svdag_voxels *voxels, const int64_t c[3])
{
    uint64_t code = 0;
    size_t i = 0;
    size_t step = 1;

    for (int axis = 0; axis < 3; axis++) {
        uint64_t leaf = (uint64_t)c[axis] / (4 * VXD_SVDAG_UNIT);

        for (int bit = 0; leaf >> bit != 0; bit++) {
            code |= (leaf >> bit & 1) << (3 * bit + 2 - axis);
        }
    }
    while (step < voxels->n) {
        step *= 2;
    }
    for (; step > 0; step /= 2) {
        i += i + step <= voxels->n && voxels->codes[i + step - 1] <= code ? step : 0;
    }
    return i > 0 && voxels->codes[i - 1] == code ? i - 1 : voxels->n;
}

static int leaf_bit(const int64_t c[3])
{
    int bit = 0;

    for (int axis = 0; axis < 3; axis++) {
        int64_t voxel = c[axis] / VXD_SVDAG_UNIT;

        bit |= (int)(voxel % 2) << (2 - axis) | (int)(voxel / 2 % 2) << (5 - axis);
    }
    return bit;
}

static bool in_list(const struct vxd_svdag_voxels *voxels, const int64_t c[3],
                    int32_t *value)
{
    size_t i = entry_of(voxels, c);
    int bit = leaf_bit(c);
    uint32_t rank = 0;

    if (i == voxels->n || (voxels->masks[i] >> bit & 1) == 0) {
        return false;
    }
    for (int k = 0; k < bit; k++) {
        rank += (uint32_t)(voxels->masks[i] >> k & 1);
    }
    if (voxels->values != NULL) {
        *value = voxels->values[voxels->first_value[i] + rank];
    }
    return true;
}

/* Changes *value if the shape itself has a value for the voxel. */
static bool in_shape(const struct vxd_svdag_shape *shape, const int64_t c[3],
                     int32_t *value)
{
    int64_t v[3] = {c[0] - shape->a[0], c[1] - shape->a[1], c[2] - shape->a[2]};
    int64_t n[3] = {shape->n[0], shape->n[1], shape->n[2]};
    int64_t r = shape->r;

    switch (shape->kind) {
    case VXD_SVDAG_BOX:
        return c[0] >= shape->low[0] && c[1] >= shape->low[1] && c[2] >= shape->low[2] &&
               c[0] < shape->high[0] && c[1] < shape->high[1] && c[2] < shape->high[2];
    case VXD_SVDAG_BALL:
        return dot(v, v) <= (wide)r * r;
    case VXD_SVDAG_CAPSULE:
        return in_capsule(shape, c);
    case VXD_SVDAG_HALF_SPACE:
        return dot(n, c) <= shape->d;
    case VXD_SVDAG_NOISE_BALL:
        r += gpu_noise(shape->seed, shape->cell_bits, shape->amplitude, c);
        return r >= 0 && dot(v, v) <= (wide)r * r;
    case VXD_SVDAG_VOXELS:
        return in_list(&shape->voxels, c, value);
    case VXD_SVDAG_HEIGHTFIELD:
        return in_heights(shape, c);
    }
    return false;
}

bool gpu_svdag_is_in(const struct vxd_svdag_shape *shape, const int64_t c[3])
{
    int32_t value;

    return in_shape(shape, c, &value);
}

/* Actions --------------------------------------------------------------------------------- */

static int32_t morph(const struct gpu_svdag_grid *before, const struct vxd_svdag_op *op,
                     int32_t old, int64_t x, int64_t y, int64_t z)
{
    static const int steps[6][3] = {{-1, 0, 0}, {1, 0, 0},  {0, -1, 0},
                                    {0, 1, 0},  {0, 0, -1}, {0, 0, 1}};
    int n = 0;
    int32_t first = GPU_VOXEL_UNSET;

    for (int i = 0; i < 6; i++) {
        int32_t other =
            gpu_svdag_grid_at(before, x + steps[i][0], y + steps[i][1], z + steps[i][2]);

        first = n == 0 && other >= 0 ? other : first;
        n += other >= 0;
    }
    if (op->action == VXD_SVDAG_ERODE) {
        return old >= 0 && n < op->threshold ? GPU_VOXEL_UNSET : old;
    }
    return old < 0 && n >= op->threshold ? first : old;
}

static int32_t copied(const struct gpu_svdag_grid *before, const struct vxd_svdag_op *op,
                      int32_t old, int64_t x, int64_t y, int64_t z)
{
    int64_t p[3] = {x - op->shape.low[0] / VXD_SVDAG_UNIT,
                    y - op->shape.low[1] / VXD_SVDAG_UNIT,
                    z - op->shape.low[2] / VXD_SVDAG_UNIT};
    int64_t from[3];
    int32_t value;

    for (int i = 0; i < 3; i++) {
        from[i] = op->from_voxel[i];
        for (int j = 0; j < 3; j++) {
            from[i] += op->matrix[i][j] * p[j];
        }
    }
    value = gpu_svdag_grid_at(before, from[0], from[1], from[2]);
    return value < 0 && !op->copy_empty ? old : value;
}

static int32_t apply(const struct gpu_svdag_grid *before, const struct vxd_svdag_op *op,
                     int32_t old, int32_t value, int64_t x, int64_t y, int64_t z)
{
    switch (op->action) {
    case VXD_SVDAG_FILL:
        return value;
    case VXD_SVDAG_ERASE:
        return GPU_VOXEL_UNSET;
    case VXD_SVDAG_SET_FREE:
        return GPU_VOXEL_FREE;
    case VXD_SVDAG_PAINT:
        return old >= 0 ? value : old;
    case VXD_SVDAG_REPLACE:
        return old == (int32_t)op->from ? (int32_t)op->value : old;
    case VXD_SVDAG_ERODE:
    case VXD_SVDAG_DILATE:
        return morph(before, op, old, x, y, z);
    case VXD_SVDAG_COPY:
        return copied(before, op, old, x, y, z);
    }
    return old;
}

/* Bounds of a shape within the grid, low .. high - 1 on each axis, so that small shapes
 * do not visit every voxel. */
static void bounds_of(const struct vxd_svdag_shape *shape, int64_t side, int64_t low[3],
                      int64_t high[3])
{
    int64_t r = shape->r + (shape->kind == VXD_SVDAG_NOISE_BALL ? shape->amplitude : 0);

    for (int axis = 0; axis < 3; axis++) {
        const int64_t a = shape->a[axis];
        const int64_t b = shape->kind == VXD_SVDAG_CAPSULE ? shape->b[axis] : a;
        int64_t from = (a < b ? a : b) - r;
        int64_t to = (a > b ? a : b) + r;

        if (shape->kind == VXD_SVDAG_BOX) {
            from = shape->low[axis];
            to = shape->high[axis];
        } else if (shape->kind == VXD_SVDAG_HALF_SPACE ||
                   shape->kind == VXD_SVDAG_VOXELS ||
                   shape->kind == VXD_SVDAG_HEIGHTFIELD) {
            from = 0;
            to = side * VXD_SVDAG_UNIT;
        }
        /* Division rounds towards 0, hence one more voxel on each side. */
        low[axis] = from / VXD_SVDAG_UNIT - 1;
        high[axis] = to / VXD_SVDAG_UNIT + 2;
        low[axis] = low[axis] < 0 ? 0 : low[axis];
        high[axis] = high[axis] > side ? side : high[axis];
    }
}

static void edit_one(struct gpu_svdag_grid *grid, const struct gpu_svdag_grid *before,
                     const struct vxd_svdag_op *op)
{
    int64_t low[3];
    int64_t high[3];

    bounds_of(&op->shape, grid->side, low, high);
    for (int64_t x = low[0]; x < high[0]; x++) {
        for (int64_t y = low[1]; y < high[1]; y++) {
            for (int64_t z = low[2]; z < high[2]; z++) {
                int32_t *voxel = &grid->voxels[index_of(grid, x, y, z)];
                int32_t value = (int32_t)op->value;
                const int64_t c[3] = {x * VXD_SVDAG_UNIT + VXD_SVDAG_UNIT / 2,
                                      y * VXD_SVDAG_UNIT + VXD_SVDAG_UNIT / 2,
                                      z * VXD_SVDAG_UNIT + VXD_SVDAG_UNIT / 2};

                if (in_shape(&op->shape, c, &value)) {
                    *voxel = apply(before, op, *voxel, value, x, y, z);
                }
            }
        }
    }
}

void gpu_svdag_grid_edit(struct gpu_svdag_grid *grid, const struct vxd_svdag_op *ops,
                         size_t n_ops)
{
    struct gpu_svdag_grid before = {.voxels = NULL};

    for (size_t i = 0; i < n_ops; i++) {
        if (ops[i].action >= VXD_SVDAG_ERODE) {
            if (before.voxels == NULL) {
                gpu_svdag_grid_make(&before, &grid->format);
            }
            gpu_svdag_grid_copy(&before, grid);
        }
        edit_one(grid, &before, &ops[i]);
    }
    gpu_svdag_grid_free(&before);
}

void gpu_svdag_grid_change(const struct gpu_svdag_grid *before,
                           const struct gpu_svdag_grid *after,
                           struct vxd_svdag_edit_result *out)
{
    out->n_added = out->n_removed = out->n_changed = out->n_freed = 0;
    for (size_t at = 0; at < n_voxels(before); at++) {
        int32_t from = before->voxels[at];
        int32_t to = after->voxels[at];

        out->n_added += from < 0 && to >= 0;
        out->n_removed += from >= 0 && to < 0;
        out->n_changed += from >= 0 && to >= 0 && from != to;
        out->n_freed += from != GPU_VOXEL_FREE && to == GPU_VOXEL_FREE;
    }
}

/* Stored and listed ----------------------------------------------------------------------- */

static void require(enum vxd_status status, const struct vxd_err *err)
{
    if (status != VXD_OK) {
        (void)fprintf(stderr, "a grid was not stored: %s\n", err->message);
        exit(EXIT_FAILURE);
    }
}

static uint32_t put_leaf(const struct gpu_svdag_grid *grid,
                         struct vxd_svdag_writer *writer, const int64_t low[3])
{
    uint16_t values[64];
    struct vxd_svdag_leaf leaf = {.is_mixed = true, .values = values};
    struct vxd_err err = {0};
    uint32_t ref;

    for (int i = 0; i < 64; i++) {
        int64_t x = low[0] + i / 16;
        int64_t y = low[1] + i / 4 % 4;
        int64_t z = low[2] + i % 4;
        int32_t voxel = grid->voxels[index_of(grid, x, y, z)];
        int64_t c[3] = {x * VXD_SVDAG_UNIT, y * VXD_SVDAG_UNIT, z * VXD_SVDAG_UNIT};
        int bit = leaf_bit(c);

        leaf.set |= (uint64_t)(voxel != GPU_VOXEL_UNSET) << bit;
        leaf.free |= (uint64_t)(voxel == GPU_VOXEL_FREE) << bit;
        values[bit] = voxel >= 0 ? (uint16_t)voxel : 0;
    }
    require(vxd_svdag_leaf_put(writer, &leaf, &ref, &err), &err);
    return ref;
}

uint32_t gpu_svdag_grid_put(const struct gpu_svdag_grid *grid, struct vxd_svdag *svdag)
{
    struct vxd_svdag_writer writer = {.svdag = svdag};
    int64_t side = grid->side / 4;
    uint32_t *refs = gpu_alloc((size_t)(side * side * side) * sizeof *refs);
    struct vxd_err err = {0};
    uint32_t root;

    for (int64_t i = 0; i < side * side * side; i++) {
        int64_t low[3] = {i / side / side * 4, i / side % side * 4, i % side * 4};

        refs[i] = put_leaf(grid, &writer, low);
    }
    for (int height = 3; height <= grid->format.depth; height++) {
        int64_t fine_side = side;

        side /= 2;
        for (int64_t i = 0; i < side * side * side; i++) {
            int64_t x = i / side / side * 2;
            int64_t y = i / side % side * 2;
            int64_t z = i % side * 2;
            uint32_t children[8];

            for (int octant = 0; octant < 8; octant++) {
                children[octant] =
                    refs[((x + octant / 4) * fine_side + y + octant / 2 % 2) * fine_side +
                         z + octant % 2];
            }
            require(vxd_svdag_inner_put(&writer, height, children, &refs[i], &err), &err);
        }
    }
    root = refs[0];
    vxd_svdag_writer_close(&writer);
    free(refs);
    return root;
}

void gpu_voxel_list_make(struct gpu_voxel_list *list, int depth, const uint8_t *flags,
                         const uint16_t *values)
{
    size_t n_leaves = (size_t)1 << (3 * (depth - 2));
    size_t side = (size_t)1 << depth;
    uint32_t n_values = 0;
    size_t n = 0;

    list->codes = gpu_alloc(n_leaves * sizeof *list->codes);
    list->masks = gpu_alloc(n_leaves * sizeof *list->masks);
    list->first_value = gpu_alloc(n_leaves * sizeof *list->first_value);
    list->values = gpu_alloc(n_leaves * 64 * sizeof *list->values);
    for (uint64_t code = 0; code < n_leaves; code++) {
        size_t low[3] = {vxd_gather3(code >> 2) * 4, vxd_gather3(code >> 1) * 4,
                         vxd_gather3(code) * 4};
        uint64_t mask = 0;
        uint32_t first = n_values;

        for (size_t bit = 0; bit < 64; bit++) {
            size_t x = low[0] + (bit >> 5 & 1) * 2 + (bit >> 2 & 1);
            size_t y = low[1] + (bit >> 4 & 1) * 2 + (bit >> 1 & 1);
            size_t z = low[2] + (bit >> 3 & 1) * 2 + (bit & 1);
            size_t at = (x * side + y) * side + z;

            if (flags[at] != 0) {
                mask |= (uint64_t)1 << bit;
                list->values[n_values++] = values[at];
            }
        }
        if (mask != 0) {
            list->codes[n] = code;
            list->masks[n] = mask;
            list->first_value[n++] = first;
        }
    }
    list->voxels = (struct vxd_svdag_voxels){list->codes, list->masks, list->first_value,
                                             list->values, n};
}

void gpu_voxel_list_free(struct gpu_voxel_list *list)
{
    free(list->codes);
    free(list->masks);
    free(list->first_value);
    free(list->values);
}
