// SPDX-License-Identifier: Apache-2.0
/* Marching cubes of one block, as both backends do it.
 *
 * Rows of bits. A row holds what is true of the voxels (x = -1 to edge) at one y and z of a
 * block, both -1 to edge: bit x + 1. From the rows "is negative" and "is known" of the block and
 * its border, a few operations give the cells and edges of a whole row at once.
 *
 * Vertices. Row (z, y, axis) of a block's edges, number (z * edge + y) * 3 + axis, has bit x where
 * voxel (x, y, z) owns a vertex on its edge along the axis. The block's vertices come in that
 * order, so a vertex's number is that of the block's first, plus the rank of its row, plus the
 * bits below its own.
 *
 * Cases. Corner c of a cell is (c >> 2, c >> 1 & 1, c & 1) in x, y, z. Edge 4 * axis + k of a cell
 * begins at the k-th corner whose bit of the axis is 0. A case (bit c: corner c is negative) is a
 * word: nibble i is the i-th corner of its triangles, nibble 15 their number. The table was made
 * by following the outlines of the negative corners over the cell's six faces; where a face has two
 * diagonally opposite negative corners, the outline goes around each alone. Outlines were cut into
 * triangles so that no inner edge lies in a face, where a neighbour's could coincide with it. */
#ifndef VXD_GPU_SURFACE_SURFACE_MATH_H
#define VXD_GPU_SURFACE_SURFACE_MATH_H

#include "gpu/core/core_math.h"
#include "gpu/surface/surface_internal.h"
#include "gpu/volume/volume_math.h"

#define VXD_SURFACE_MAX_SIDE 18 /* a block of 16 and its border */
#define VXD_SURFACE_MAX_ROWS (VXD_SURFACE_MAX_SIDE * VXD_SURFACE_MAX_SIDE)

/* 256 words. */
#define VXD_SURFACE_CASES                                                                \
    {                                                                                    \
        0x0000000000000000ULL, 0x1000000000000840ULL, 0x1000000000000581ULL,             \
            0x2000000000541140ULL, 0x1000000000000492ULL, 0x2000000000928820ULL,         \
            0x2000000000492581ULL, 0x3000000925521120ULL, 0x1000000000000953ULL,         \
            0x2000000000953840ULL, 0x2000000000983381ULL, 0x3000000943341140ULL,         \
            0x2000000000534432ULL, 0x3000000325528820ULL, 0x3000000482283381ULL,         \
            0x2000000000321120ULL, 0x10000000000006a0ULL, 0x2000000000a86684ULL,         \
            0x20000000005816a0ULL, 0x30000006a44a55a1ULL, 0x20000000004926a0ULL,         \
            0x300000089aa96692ULL, 0x30000004925816a0ULL, 0x40006a22a99a55a1ULL,         \
            0x20000000009536a0ULL, 0x3000000a86684953ULL, 0x30000009833816a0ULL,         \
            0x40006a44a99a33a1ULL, 0x30000005344326a0ULL, 0x400053883aa36632ULL,         \
            0x40004822833816a0ULL, 0x30000006a22a33a1ULL, 0x1000000000000a71ULL,         \
            0x2000000000a71840ULL, 0x2000000000a78875ULL, 0x300000054774aa40ULL,         \
            0x2000000000492a71ULL, 0x3000000a71928820ULL, 0x3000000a78875492ULL,         \
            0x400092552772aa20ULL, 0x2000000000953a71ULL, 0x3000000953a71840ULL,         \
            0x3000000a78879973ULL, 0x400094334774aa40ULL, 0x3000000534432a71ULL,         \
            0x4000a71325528820ULL, 0x400073aa38834432ULL, 0x300000032772aa20ULL,         \
            0x2000000000716610ULL, 0x3000000674478871ULL, 0x3000000587786680ULL,         \
            0x2000000000756654ULL, 0x3000000492716610ULL, 0x4000672279978871ULL,         \
            0x4000492587786680ULL, 0x3000000597796692ULL, 0x3000000953716610ULL,         \
            0x4000953674478871ULL, 0x4000983387786680ULL, 0x3000000674479973ULL,         \
            0x4000534432716610ULL, 0x5672325528278871ULL, 0x5482283387786680ULL,         \
            0x2000000000736632ULL, 0x1000000000000b62ULL, 0x2000000000b62840ULL,         \
            0x2000000000b62581ULL, 0x3000000b62541140ULL, 0x2000000000b69964ULL,         \
            0x3000000b69968860ULL, 0x3000000b69964581ULL, 0x4000b69965561160ULL,         \
            0x2000000000953b62ULL, 0x3000000953b62840ULL, 0x3000000b62983381ULL,         \
            0x4000b62943341140ULL, 0x300000045665bb53ULL, 0x4000b63365568860ULL,         \
            0x400048668bb83381ULL, 0x3000000b63361160ULL, 0x2000000000ba22a0ULL,         \
            0x300000084aa4bb42ULL, 0x3000000581ba22a0ULL, 0x4000ba22a44a55a1ULL,         \
            0x3000000ba99a44a0ULL, 0x2000000000ba99a8ULL, 0x4000581ba99a44a0ULL,         \
            0x3000000ba99a55a1ULL, 0x3000000953ba22a0ULL, 0x400095384aa4bb42ULL,         \
            0x4000983381ba22a0ULL, 0x5ba22a44a99a33a1ULL, 0x4000ba33a55a44a0ULL,         \
            0x300000085aa5bb53ULL, 0x5ba31388343a44a0ULL, 0x2000000000ba33a1ULL,         \
            0x2000000000b62a71ULL, 0x3000000b62a71840ULL, 0x3000000a78875b62ULL,         \
            0x4000b6254774aa40ULL, 0x3000000b69964a71ULL, 0x4000a71b69968860ULL,         \
            0x4000a78875b69964ULL, 0x5b6996575aa50560ULL, 0x3000000953b62a71ULL,         \
            0x4000953b62a71840ULL, 0x4000a78879973b62ULL, 0x5b6294334774aa40ULL,         \
            0x400045665bb53a71ULL, 0x5a71b63365568860ULL, 0x5a7887464bb43473ULL,         \
            0x4000b6373aa30360ULL, 0x300000071bb12210ULL, 0x4000b72274478871ULL,         \
            0x400058778bb82280ULL, 0x300000054774bb42ULL, 0x400071bb19914410ULL,         \
            0x3000000b79978871ULL, 0x558778b9b44b0b80ULL, 0x2000000000b79975ULL,         \
            0x400095371bb12210ULL, 0x5953b72274478871ULL, 0x598338778bb82280ULL,         \
            0x400094334774bb42ULL, 0x571b3b55b4b14410ULL, 0x40003b55b8b78871ULL,         \
            0x2000000000b73480ULL, 0x1000000000000b73ULL, 0x10000000000007b3ULL,         \
            0x20000000007b3840ULL, 0x20000000007b3581ULL, 0x30000007b3541140ULL,         \
            0x20000000007b3492ULL, 0x30000007b3928820ULL, 0x30000007b3492581ULL,         \
            0x40007b3925521120ULL, 0x2000000000b97795ULL, 0x3000000b97795840ULL,         \
            0x300000098bb87781ULL, 0x400094bb47741140ULL, 0x30000007b55b44b2ULL,         \
            0x4000b27725528820ULL, 0x400048228bb87781ULL, 0x3000000b27721120ULL,         \
            0x20000000007b36a0ULL, 0x3000000a866847b3ULL, 0x30000007b35816a0ULL,         \
            0x40007b36a44a55a1ULL, 0x30000007b34926a0ULL, 0x40007b389aa96692ULL,         \
            0x40007b34925816a0ULL, 0x57b36a22a99a55a1ULL, 0x3000000b977956a0ULL,         \
            0x4000b97795a86684ULL, 0x400098bb877816a0ULL, 0x56a44a9b977919a1ULL,         \
            0x40007b55b44b26a0ULL, 0x57b55b8a866828b2ULL, 0x548228bb877816a0ULL,         \
            0x40006a2b277212a1ULL, 0x2000000000b3aa31ULL, 0x3000000b3aa31840ULL,         \
            0x3000000ab88b55b3ULL, 0x400054334bb4aa40ULL, 0x3000000492b3aa31ULL,         \
            0x4000b3aa31928820ULL, 0x4000ab88b55b3492ULL, 0x592535bb5a52aa20ULL,         \
            0x300000095bb5aa51ULL, 0x400095bb5aa51840ULL, 0x2000000000b9aa98ULL,         \
            0x300000094bb4aa40ULL, 0x400045225bb5aa51ULL, 0x5b2aa21125528820ULL,         \
            0x3000000ab88b44b2ULL, 0x2000000000b2aa20ULL, 0x300000031bb16610ULL,         \
            0x4000b36634438831ULL, 0x400058338bb86680ULL, 0x30000006b44b55b3ULL,         \
            0x400049231bb16610ULL, 0x5b36269968638831ULL, 0x549258338bb86680ULL,         \
            0x400035bb56596692ULL, 0x400051991bb16610ULL, 0x595bb56468861651ULL,         \
            0x300000098bb86680ULL, 0x2000000000b96694ULL, 0x551441221bb16610ULL,         \
            0x20000000006b2851ULL, 0x400048228bb86680ULL, 0x10000000000006b2ULL,         \
            0x2000000000763362ULL, 0x3000000763362840ULL, 0x3000000763362581ULL,         \
            0x4000763362541140ULL, 0x3000000496697793ULL, 0x4000763369968860ULL,         \
            0x4000496697793581ULL, 0x5763369965561160ULL, 0x3000000765569962ULL,         \
            0x4000765569962840ULL, 0x4000982286687781ULL, 0x5296697947741140ULL,         \
            0x2000000000765564ULL, 0x3000000765568860ULL, 0x3000000486687781ULL,         \
            0x2000000000761160ULL, 0x30000007a33a22a0ULL, 0x400084aa47743342ULL,         \
            0x40005817a33a22a0ULL, 0x57a33a22a44a55a1ULL, 0x40007a33a99a44a0ULL,         \
            0x300000089aa97793ULL, 0x55817a33a99a44a0ULL, 0x40007a33a99a55a1ULL,         \
            0x40007a55a99a22a0ULL, 0x584aa47579972742ULL, 0x51788797a99a22a0ULL,         \
            0x20000000009427a1ULL, 0x30000007a55a44a0ULL, 0x2000000000a87785ULL,         \
            0x40001788747a44a0ULL, 0x10000000000007a1ULL, 0x300000023663aa31ULL,         \
            0x400023663aa31840ULL, 0x4000a68865563362ULL, 0x554323663a34aa40ULL,         \
            0x400093443663aa31ULL, 0x5a61163369968860ULL, 0x549669a8a55a3a93ULL,         \
            0x2000000000593a60ULL, 0x400095225665aa51ULL, 0x595225665aa51840ULL,         \
            0x3000000a68869962ULL, 0x400029669a94aa40ULL, 0x300000045665aa51ULL,         \
            0x4000a61165568860ULL, 0x2000000000a68864ULL, 0x1000000000000a60ULL,         \
            0x2000000000312210ULL, 0x3000000234438831ULL, 0x3000000583382280ULL,         \
            0x2000000000543342ULL, 0x3000000319914410ULL, 0x2000000000938831ULL,         \
            0x4000583934430380ULL, 0x1000000000000593ULL, 0x3000000519912210ULL,         \
            0x4000952428821251ULL, 0x2000000000982280ULL, 0x1000000000000942ULL,         \
            0x2000000000514410ULL, 0x1000000000000851ULL, 0x1000000000000480ULL,         \
            0x0000000000000000ULL                                                        \
    }

/* The number of bits that are set. */
VXD_HD uint32_t vxd_surface_n_bits(uint32_t bits)
{
#if defined(__CUDA_ARCH__)
    return (uint32_t)__popc(bits);
#else
    bits -= bits >> 1 & 0x55555555u;
    bits = (bits & 0x33333333u) + (bits >> 2 & 0x33333333u);
    return ((bits + (bits >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24;
#endif
}

/* The place of the lowest bit; bits is not 0. */
VXD_HD int vxd_surface_lowest(uint32_t bits)
{
#if defined(__CUDA_ARCH__)
    return __ffs((int)bits) - 1;
#else
    return __builtin_ctz(bits);
#endif
}

/* The entry and the voxel's number there of (x, y, z), each -1 to edge + 1 from the low corner of
 * the block whose 27 neighbours are given; VXD_NO_ENTRY where no block is. */
VXD_HD int32_t vxd_surface_locate(const struct vxd_volume_view *view,
                                  const int32_t *neighbours, int x, int y, int z,
                                  uint32_t *voxel)
{
    int edge = view->edge;
    int bx = x < 0 ? 0 : x < edge ? 1 : 2;
    int by = y < 0 ? 0 : y < edge ? 1 : 2;
    int bz = z < 0 ? 0 : z < edge ? 1 : 2;
    int inside = edge - 1;

    *voxel = (uint32_t)((((z & inside) << view->shift) + (y & inside)) << view->shift) +
             (uint32_t)(x & inside);
    return neighbours[bx * 9 + by * 3 + bz];
}

VXD_HD uint64_t vxd_surface_voxel_index(const struct vxd_volume_view *view, int32_t entry,
                                        uint32_t voxel)
{
    return ((uint64_t)(uint32_t)entry << 3 * view->shift) + voxel;
}

VXD_HD float vxd_surface_weight(const struct vxd_volume_view *view, uint64_t at)
{
    return view->is_compact ? (float)((const uint8_t *)view->weights)[at]
                            : ((const float *)view->weights)[at];
}

VXD_HD float vxd_surface_distance(const struct vxd_volume_view *view, uint64_t at)
{
    return view->is_compact ? vxd_float_of_half(((const uint16_t *)view->distances)[at])
                            : ((const float *)view->distances)[at];
}

VXD_HD int vxd_surface_is_known(float weight, float min_weight)
{
    return weight > 0.0f && weight >= min_weight;
}

/* Adds one voxel to the rows, at bit `bit`. */
VXD_HD void vxd_surface_read_voxel(const struct vxd_surface_work *work, uint64_t at,
                                   int bit, uint32_t *negative, uint32_t *known)
{
    float weight = vxd_surface_weight(&work->view, at);
    float distance = vxd_surface_distance(&work->view, at);

    *negative |= (uint32_t)(distance < 0.0f) << bit;
    *known |= (uint32_t)vxd_surface_is_known(weight, work->min_weight) << bit;
}

/* Eight truth values, bytes of 0 or 1, as bits. */
VXD_HD uint32_t vxd_surface_pack(const uint8_t bytes[8])
{
    uint64_t word;

    memcpy(&word, bytes, sizeof word);
    return (uint32_t)(word * 0x0102040810204080ULL >> 56);
}

/* Adds eight voxels from `at` on, a multiple of 8, the first at bit `bit`. On the host the loops
 * become vector instructions; a GPU loads 16 bytes at once. */
VXD_HD void vxd_surface_read_8(const struct vxd_surface_work *work, uint64_t at, int bit,
                               uint32_t *negative, uint32_t *known)
{
    const struct vxd_volume_view *view = &work->view;
    float min_weight = work->min_weight;

#if defined(__CUDA_ARCH__)
    if (!view->is_compact) {
        const float4 *distances = (const float4 *)((const float *)view->distances + at);
        const float4 *weights = (const float4 *)((const float *)view->weights + at);
        float4 d[2] = {distances[0], distances[1]};
        float4 w[2] = {weights[0], weights[1]};

        for (int i = 0; i < 8; i++) {
            *negative |= (uint32_t)((&d[0].x)[i] < 0.0f) << (bit + i);
            *known |= (uint32_t)vxd_surface_is_known((&w[0].x)[i], min_weight)
                      << (bit + i);
        }
        return;
    }
    for (int i = 0; i < 8; i++) {
        vxd_surface_read_voxel(work, at + (uint64_t)i, bit + i, negative, known);
    }
#else
    uint8_t is_negative[8];
    uint8_t is_known[8];

    if (view->is_compact) {
        const uint16_t *distances = (const uint16_t *)view->distances + at;
        const uint8_t *weights = (const uint8_t *)view->weights + at;

        for (int i = 0; i < 8; i++) {
            is_negative[i] = distances[i] > 0x8000u;
            is_known[i] = (weights[i] > 0) & ((float)weights[i] >= min_weight);
        }
    } else {
        const float *distances = (const float *)view->distances + at;
        const float *weights = (const float *)view->weights + at;

        for (int i = 0; i < 8; i++) {
            is_negative[i] = distances[i] < 0.0f;
            is_known[i] = (weights[i] > 0.0f) & (weights[i] >= min_weight);
        }
    }
    *negative |= vxd_surface_pack(is_negative) << bit;
    *known |= vxd_surface_pack(is_known) << bit;
#endif
}

/* The rows at y and z, each -1 to edge. */
VXD_HD void vxd_surface_read_rows(const struct vxd_surface_work *work,
                                  const int32_t *neighbours, int y, int z,
                                  uint32_t *negative, uint32_t *known)
{
    const struct vxd_volume_view *view = &work->view;
    int edge = view->edge;
    int by = y < 0 ? 0 : y < edge ? 1 : 2;
    int bz = z < 0 ? 0 : z < edge ? 1 : 2;
    const int32_t *column = neighbours + (size_t)(by * 3 + bz);
    uint32_t row =
        (uint32_t)((((z & (edge - 1)) << view->shift) + (y & (edge - 1))) << view->shift);

    *negative = 0;
    *known = 0;
    if (column[0] >= 0) {
        vxd_surface_read_voxel(
            work, vxd_surface_voxel_index(view, column[0], row + (uint32_t)edge - 1), 0,
            negative, known);
    }
    if (column[9] >= 0) {
        uint64_t at = vxd_surface_voxel_index(view, column[9], row);

        vxd_surface_read_8(work, at, 1, negative, known);
        if (edge == 16) {
            vxd_surface_read_8(work, at + 8, 9, negative, known);
        }
    }
    if (column[18] >= 0) {
        vxd_surface_read_voxel(work, vxd_surface_voxel_index(view, column[18], row),
                               edge + 1, negative, known);
    }
    *negative &= *known;
}

/* Where a row is among those of a block and its border. */
VXD_HD int vxd_surface_row(int edge, int y, int z)
{
    return (z + 1) * (edge + 2) + y + 1;
}

VXD_HD int vxd_surface_chosen(const struct vxd_surface_work *work,
                              const int32_t *neighbours, int bx, int by, int bz)
{
    int32_t entry = neighbours[bx * 9 + by * 3 + bz];

    return entry >= 0 && work->is_chosen[entry] != 0;
}

/* The cells of row (y, z), each -1 to edge - 1, that belong to chosen blocks and whose voxels are
 * all known. */
VXD_HD uint32_t vxd_surface_cells(const struct vxd_surface_work *work,
                                  const int32_t *neighbours, const uint32_t *known, int y,
                                  int z)
{
    int edge = work->view.edge;
    int by = y < 0 ? 0 : 1;
    int bz = z < 0 ? 0 : 1;
    uint32_t all = known[vxd_surface_row(edge, y, z)] &
                   known[vxd_surface_row(edge, y + 1, z)] &
                   known[vxd_surface_row(edge, y, z + 1)] &
                   known[vxd_surface_row(edge, y + 1, z + 1)];
    uint32_t chosen = 0;

    all &= all >> 1;
    if (all != 0) {
        uint32_t own = (((uint32_t)1 << edge) - 1) << 1;

        chosen |= vxd_surface_chosen(work, neighbours, 1, by, bz) ? own : 0;
        chosen |= vxd_surface_chosen(work, neighbours, 0, by, bz) ? 1u : 0;
    }
    return all & chosen;
}

/* The edges of row (y, z) of a block that own a vertex, one row of bits an axis. */
VXD_HD void vxd_surface_edges(const struct vxd_surface_work *work,
                              const int32_t *neighbours, const uint32_t *negative,
                              const uint32_t *known, int y, int z, uint32_t edges[3])
{
    int edge = work->view.edge;
    int row = vxd_surface_row(edge, y, z);
    int row_y = vxd_surface_row(edge, y + 1, z);
    int row_z = vxd_surface_row(edge, y, z + 1);
    uint32_t own = ((uint32_t)1 << edge) - 1;
    uint32_t used[3];

    edges[0] = negative[row] ^ negative[row] >> 1;
    edges[1] = negative[row] ^ negative[row_y];
    edges[2] = negative[row] ^ negative[row_z];
    if (((edges[0] | edges[1] | edges[2]) >> 1 & own) == 0) {
        edges[0] = edges[1] = edges[2] = 0;
        return;
    }
    if (work->is_mesh) {
        uint32_t cells = vxd_surface_cells(work, neighbours, known, y, z);
        uint32_t below_y = vxd_surface_cells(work, neighbours, known, y - 1, z);
        uint32_t below_z = vxd_surface_cells(work, neighbours, known, y, z - 1);
        uint32_t below = vxd_surface_cells(work, neighbours, known, y - 1, z - 1);

        used[0] = cells | below_y | below_z | below;
        used[1] = cells | below_z;
        used[2] = cells | below_y;
        used[1] |= used[1] << 1;
        used[2] |= used[2] << 1;
    } else {
        used[0] = known[row] & known[row] >> 1;
        used[1] = known[row] & known[row_y];
        used[2] = known[row] & known[row_z];
    }
    for (int axis = 0; axis < 3; axis++) {
        edges[axis] = (edges[axis] & used[axis]) >> 1 & own;
    }
}

/* The cells of row (y, z) of a chosen block that have triangles: bit x. */
VXD_HD uint32_t vxd_surface_cut_cells(const struct vxd_surface_work *work,
                                      const int32_t *neighbours, const uint32_t *negative,
                                      const uint32_t *known, int y, int z)
{
    int edge = work->view.edge;
    uint32_t a = negative[vxd_surface_row(edge, y, z)];
    uint32_t b = negative[vxd_surface_row(edge, y + 1, z)];
    uint32_t c = negative[vxd_surface_row(edge, y, z + 1)];
    uint32_t d = negative[vxd_surface_row(edge, y + 1, z + 1)];
    uint32_t any = a | b | c | d;
    uint32_t all = a & b & c & d;
    uint32_t mixed = (any | any >> 1) & ~(all & all >> 1);

    mixed &= (((uint32_t)1 << edge) - 1) << 1;
    return mixed != 0 ? (mixed & vxd_surface_cells(work, neighbours, known, y, z)) >> 1
                      : 0;
}

/* The case of cell (x, y, z): bit c, corner c is negative. */
VXD_HD uint32_t vxd_surface_case(const uint32_t *negative, int edge, int x, int y, int z)
{
    uint32_t bits = 0;

    for (int c = 0; c < 8; c++) {
        uint32_t row = negative[vxd_surface_row(edge, y + (c >> 1 & 1), z + (c & 1))];

        bits |= (row >> (x + 1 + (c >> 2)) & 1u) << c;
    }
    return bits;
}

/* The corner at which an edge of a cell begins. */
VXD_HD int vxd_surface_edge_corner(int edge)
{
    int k = edge & 3;

    return edge < 4 ? k : edge < 8 ? (k & 1) | (k & 2) << 1 : k << 1;
}

/* The number of the vertex on edge `cell_edge` of cell (x, y, z) of a block. */
VXD_HD int32_t vxd_surface_vertex_number(const struct vxd_surface_work *work,
                                         const int32_t *neighbours, int x, int y, int z,
                                         int cell_edge)
{
    int corner = vxd_surface_edge_corner(cell_edge);
    int edge = work->view.edge;
    uint32_t place;
    uint64_t row;

    x += corner >> 2;
    y += corner >> 1 & 1;
    z += corner & 1;
    place = (uint32_t)work->places[neighbours[(x < edge ? 9 : 18) + (y < edge ? 3 : 6) +
                                              (z < edge ? 1 : 2)]];
    x &= edge - 1;
    row = (uint64_t)((z & (edge - 1)) * edge + (y & (edge - 1))) * 3 +
          (uint64_t)(cell_edge >> 2) + (uint64_t)place * (uint64_t)(3 * edge * edge);
    return (int32_t)(work->vertices[place] + work->ranks[row] +
                     vxd_surface_n_bits(work->edges[row] & (((uint32_t)1 << x) - 1)));
}

/* The distance at a voxel; false where it is not known. */
VXD_HD int vxd_surface_sample(const struct vxd_surface_work *work,
                              const int32_t *neighbours, int x, int y, int z,
                              float *distance)
{
    const struct vxd_volume_view *view = &work->view;
    uint32_t voxel;
    int32_t entry = vxd_surface_locate(view, neighbours, x, y, z, &voxel);
    /* Some voxel is loaded where there is none, so that no load waits for a branch. */
    uint64_t at =
        vxd_surface_voxel_index(view, entry >= 0 ? entry : neighbours[13], voxel);

    *distance = vxd_surface_distance(view, at);
    return vxd_surface_is_known(vxd_surface_weight(view, at), work->min_weight) &&
           entry >= 0;
}

/* The gradient at a voxel that is known, per voxel. */
VXD_HD void vxd_surface_gradient(const struct vxd_surface_work *work,
                                 const int32_t *neighbours, int x, int y, int z,
                                 float distance, float gradient[3])
{
    for (int axis = 0; axis < 3; axis++) {
        int dx = axis == 0;
        int dy = axis == 1;
        int dz = axis == 2;
        float above = distance;
        float below = distance;
        int has_above =
            vxd_surface_sample(work, neighbours, x + dx, y + dy, z + dz, &above);
        int has_below =
            vxd_surface_sample(work, neighbours, x - dx, y - dy, z - dz, &below);

        above = has_above ? above : distance;
        below = has_below ? below : distance;
        gradient[axis] =
            vxd_mulf(vxd_subf(above, below), has_above && has_below ? 0.5f : 1.0f);
    }
}

VXD_HD float vxd_surface_mix(float a, float b, float t)
{
    return vxd_addf(a, vxd_mulf(vxd_subf(b, a), t));
}

/* The colour between two voxels; that of the one that has any, black where neither has. */
VXD_HD void vxd_surface_mix_colours(const uint16_t *a, const uint16_t *b, float t,
                                    uint8_t out[3])
{
    t = a[3] == 0 ? 1.0f : b[3] == 0 ? 0.0f : t;
    for (int i = 0; i < 3; i++) {
        float mixed = vxd_surface_mix((float)a[i], (float)b[i], t);
        int rounded = (int)vxd_addf(vxd_mulf(mixed, 1.0f / 256.0f), 0.5f);

        out[i] = (uint8_t)(rounded < 0 ? 0 : rounded > 255 ? 255 : rounded);
    }
}

/* Writes the vertex number `k` on the edge along `axis` of voxel (x, y, z) of a block. */
VXD_HD void vxd_surface_write_vertex(const struct vxd_surface_work *work,
                                     const int32_t *neighbours, uint64_t k, int x, int y,
                                     int z, int axis)
{
    const struct vxd_volume_view *view = &work->view;
    const int32_t *key = view->keys + 3 * (int64_t)neighbours[13];
    int end[3] = {x + (axis == 0), y + (axis == 1), z + (axis == 2)};
    int begin[3] = {x, y, z};
    float a = 0.0f;
    float b = 0.0f;
    float t;

    (void)vxd_surface_sample(work, neighbours, x, y, z, &a);
    (void)vxd_surface_sample(work, neighbours, end[0], end[1], end[2], &b);
    t = vxd_divf(a, vxd_subf(a, b));
    t = t < 1.0f / 1024.0f      ? 1.0f / 1024.0f
        : t > 1023.0f / 1024.0f ? 1023.0f / 1024.0f
                                : t;
    if (work->out.vertices != NULL) {
        for (int i = 0; i < 3; i++) {
            double voxel = (double)((int64_t)key[i] * view->edge + begin[i]);

            voxel = vxd_addd(voxel, i == axis ? 0.5 + (double)t : 0.5);
            work->out.vertices[3 * k + (uint64_t)i] =
                (float)vxd_muld(voxel, work->voxel_size);
        }
    }
    if (work->out.normals != NULL) {
        float first[3];
        float second[3];
        float square = 0.0f;
        float scale;

        vxd_surface_gradient(work, neighbours, x, y, z, a, first);
        vxd_surface_gradient(work, neighbours, end[0], end[1], end[2], b, second);
        for (int i = 0; i < 3; i++) {
            first[i] = vxd_surface_mix(first[i], second[i], t);
            square = vxd_addf(square, vxd_mulf(first[i], first[i]));
        }
        if (!(square > 1e-30f)) {
            first[0] = first[1] = first[2] = 0.0f;
            first[axis] = b > a ? 1.0f : -1.0f;
            square = 1.0f;
        }
        scale = vxd_divf(1.0f, sqrtf(square));
        for (int i = 0; i < 3; i++) {
            work->out.normals[3 * k + (uint64_t)i] = vxd_mulf(first[i], scale);
        }
    }
    if (work->out.colours != NULL) {
        uint32_t voxel;
        int32_t entry = vxd_surface_locate(view, neighbours, x, y, z, &voxel);
        const uint16_t *low =
            view->colours + 4 * vxd_surface_voxel_index(view, entry, voxel);
        const uint16_t *high;

        entry = vxd_surface_locate(view, neighbours, end[0], end[1], end[2], &voxel);
        high = view->colours + 4 * vxd_surface_voxel_index(view, entry, voxel);
        vxd_surface_mix_colours(low, high, t, work->out.colours + 3 * k);
    }
    if (work->out.labels != NULL) {
        uint32_t voxel;
        int32_t entry = vxd_surface_locate(view, neighbours, x, y, z, &voxel);
        uint32_t low =
            vxd_volume_label(view, (size_t)vxd_surface_voxel_index(view, entry, voxel));
        uint32_t high;

        entry = vxd_surface_locate(view, neighbours, end[0], end[1], end[2], &voxel);
        high =
            vxd_volume_label(view, (size_t)vxd_surface_voxel_index(view, entry, voxel));
        work->out.labels[k] =
            (uint8_t)(low != 0 && (t <= 0.5f || high == 0) ? low : high);
    }
}

/* Writes the row of a chosen block. */
VXD_HD void vxd_surface_write_block(const struct vxd_surface_work *work,
                                    const int32_t *neighbours, uint32_t place)
{
    const int32_t *key = work->view.keys + 3 * (int64_t)neighbours[13];
    int32_t *out = work->out.blocks + 4 * (uint64_t)work->chosen[place];

    for (int i = 0; i < 3; i++) {
        out[i] = key[i];
    }
    out[3] = (int32_t)(work->is_mesh ? work->triangles : work->vertices)[place + 1];
}

/* Whether a block's surface depends on the neighbour at these offsets: its cells reach one voxel into
 * the upper ones, and gradients one voxel farther along a single axis. */
VXD_HD int vxd_surface_depends_on(int x, int y, int z)
{
    return (x < 0 ? 1 : 0) + (y < 0 ? 1 : 0) + (z < 0 ? 1 : 0) < 2;
}

/* Whether the surface of an observed block, the i-th of them, is asked for. */
VXD_HD int vxd_surface_is_asked(const struct vxd_surface_work *work, uint32_t i,
                                int32_t own, const int32_t *neighbours)
{
    const struct vxd_volume_view *view = &work->view;
    const int32_t *key = view->keys + 3 * (int64_t)own;
    int is_newer = work->since == 0;

    if (i < work->begin || i >= work->end) {
        return 0;
    }
    for (int c = 0; c < 27 && !is_newer; c++) {
        int32_t entry = neighbours[c];

        is_newer = entry >= 0 &&
                   vxd_surface_depends_on(c / 9 - 1, c / 3 % 3 - 1, c % 3 - 1) &&
                   view->stamps[entry] > work->since;
    }
    for (int axis = 0; axis < 3 && is_newer && work->has_box; axis++) {
        double low = (double)key[axis] * view->edge;

        is_newer = low < work->high[axis] && low + view->edge > work->low[axis];
    }
    return is_newer;
}

/* Whether an observed block is chosen, or owns vertices of a chosen one's cells. */
VXD_HD int vxd_surface_is_picked(const struct vxd_surface_work *work,
                                 const int32_t *neighbours)
{
    int is_picked = vxd_surface_chosen(work, neighbours, 1, 1, 1);

    for (int c = 0; c < 7 && !is_picked && work->is_mesh; c++) {
        is_picked = vxd_surface_chosen(work, neighbours, c >> 2, c >> 1 & 1, c & 1);
    }
    return is_picked;
}

#endif
