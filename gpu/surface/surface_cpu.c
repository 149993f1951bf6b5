// SPDX-License-Identifier: Apache-2.0
/* Surfaces on the CPU: a task takes some blocks, one after the other. */
#include "gpu/core/core_cpu.h"
#include "gpu/surface/surface_math.h"

#define LISTED_BLOCKS ((size_t)1024) /* a task's, of the steps that look at keys alone */
#define BLOCKS ((size_t)8)           /* a task's, of the steps that read voxels */

static const uint64_t cases[256] = VXD_SURFACE_CASES;

/* "Is negative" and "is known" of a block and its border. */
struct rows {
    uint32_t negative[VXD_SURFACE_MAX_ROWS];
    uint32_t known[VXD_SURFACE_MAX_ROWS];
};

static enum vxd_status push(struct vxd_queue *queue, const struct vxd_surface_work *work,
                            vxd_job_fn job, struct vxd_err *err)
{
    return vxd_queue_push(queue, job, work, sizeof *work, err);
}

/* --- which blocks ---------------------------------------------------------------------- */

static void choose_blocks(void *args, size_t begin, size_t end)
{
    const struct vxd_surface_work *work = args;

    for (size_t i = begin; i < end; i++) {
        int32_t entry = work->entries[i];

        work->is_chosen[entry] = (uint8_t)vxd_surface_is_asked(work, (uint32_t)i, entry,
                                                               work->neighbours + 27 * i);
    }
}

static enum vxd_status choose_job(struct vxd_pool *pool, const void *args,
                                  struct vxd_err *err)
{
    struct vxd_surface_work work = *(const struct vxd_surface_work *)args;

    (void)err;
    vxd_parallel_for(pool, work.n, LISTED_BLOCKS, choose_blocks, &work);
    return VXD_OK;
}

enum vxd_status vxd_surface_choose_cpu(struct vxd_queue *queue,
                                       const struct vxd_surface_work *work,
                                       struct vxd_err *err)
{
    return push(queue, work, choose_job, err);
}

static void pick_blocks(void *args, size_t begin, size_t end)
{
    const struct vxd_surface_work *work = args;

    for (size_t i = begin; i < end; i++) {
        work->picked[i] =
            (uint32_t)vxd_surface_is_picked(work, work->neighbours + 27 * i);
    }
}

static enum vxd_status pick_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    struct vxd_surface_work work = *(const struct vxd_surface_work *)args;

    (void)err;
    vxd_parallel_for(pool, work.n, LISTED_BLOCKS, pick_blocks, &work);
    return VXD_OK;
}

enum vxd_status vxd_surface_pick_cpu(struct vxd_queue *queue,
                                     const struct vxd_surface_work *work,
                                     struct vxd_err *err)
{
    return push(queue, work, pick_job, err);
}

static void list_blocks(void *args, size_t begin, size_t end)
{
    const struct vxd_surface_work *work = args;

    for (size_t i = begin; i < end; i++) {
        if (work->picked[i + 1] > work->picked[i]) {
            work->list[work->picked[i]] = (uint32_t)i;
            work->places[work->entries[i]] = (int32_t)work->picked[i];
        }
    }
}

static enum vxd_status list_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    struct vxd_surface_work work = *(const struct vxd_surface_work *)args;

    (void)err;
    vxd_parallel_for(pool, work.n, LISTED_BLOCKS, list_blocks, &work);
    return VXD_OK;
}

enum vxd_status vxd_surface_list_cpu(struct vxd_queue *queue,
                                     const struct vxd_surface_work *work,
                                     struct vxd_err *err)
{
    return push(queue, work, list_job, err);
}

/* --- counts ---------------------------------------------------------------------------- */

/* Reads the rows; false where no two signs meet at the block's edges and in its cells, which
 * needs no row of lower blocks. */
static bool read_rows(const struct vxd_surface_work *work, const int32_t *neighbours,
                      struct rows *rows)
{
    int edge = work->view.edge;
    uint32_t some = 0;
    uint32_t positive = 0;

    for (int z = 0; z <= edge; z++) {
        for (int y = 0; y <= edge; y++) {
            int row = vxd_surface_row(edge, y, z);

            vxd_surface_read_rows(work, neighbours, y, z, &rows->negative[row],
                                  &rows->known[row]);
            some |= rows->negative[row];
            positive |= rows->known[row] & ~rows->negative[row];
        }
    }
    if (some >> 1 == 0 || positive >> 1 == 0) {
        return false;
    }
    for (int i = -1; i <= edge && work->is_mesh; i++) {
        int row_y = vxd_surface_row(edge, -1, i);
        int row_z = vxd_surface_row(edge, i, -1);

        vxd_surface_read_rows(work, neighbours, -1, i, &rows->negative[row_y],
                              &rows->known[row_y]);
        vxd_surface_read_rows(work, neighbours, i, -1, &rows->negative[row_z],
                              &rows->known[row_z]);
    }
    return true;
}

static uint32_t count_vertices(const struct vxd_surface_work *work,
                               const int32_t *neighbours, const struct rows *rows,
                               uint16_t *edges, uint16_t *ranks)
{
    int edge = work->view.edge;
    uint32_t n = 0;

    for (int z = 0; z < edge; z++) {
        for (int y = 0; y < edge; y++) {
            uint32_t bits[3];

            vxd_surface_edges(work, neighbours, rows->negative, rows->known, y, z, bits);
            for (int axis = 0; axis < 3; axis++) {
                *edges++ = (uint16_t)bits[axis];
                *ranks++ = (uint16_t)n;
                n += vxd_surface_n_bits(bits[axis]);
            }
        }
    }
    return n;
}

static uint32_t count_triangles(const struct vxd_surface_work *work,
                                const int32_t *neighbours, const struct rows *rows)
{
    int edge = work->view.edge;
    uint32_t n = 0;

    for (int z = 0; z < edge; z++) {
        for (int y = 0; y < edge; y++) {
            uint32_t cut = vxd_surface_cut_cells(work, neighbours, rows->negative,
                                                 rows->known, y, z);

            for (; cut != 0; cut &= cut - 1) {
                n += (uint32_t)(cases[vxd_surface_case(rows->negative, edge,
                                                       vxd_surface_lowest(cut), y, z)] >>
                                60);
            }
        }
    }
    return n;
}

static void count_blocks(void *args, size_t begin, size_t end)
{
    const struct vxd_surface_work *work = args;
    size_t n_rows = 3 * (size_t)work->view.edge * (size_t)work->view.edge;
    struct rows rows;

    for (size_t place = begin; place < end; place++) {
        const int32_t *neighbours = work->neighbours + 27 * (size_t)work->list[place];
        bool is_chosen = vxd_surface_chosen(work, neighbours, 1, 1, 1);
        bool is_cut = read_rows(work, neighbours, &rows);

        work->chosen[place] = is_chosen;
        work->vertices[place] = 0;
        work->triangles[place] = 0;
        if (!is_cut) {
            memset(work->edges + place * n_rows, 0, n_rows * sizeof *work->edges);
            memset(work->ranks + place * n_rows, 0, n_rows * sizeof *work->ranks);
            continue;
        }
        work->vertices[place] =
            count_vertices(work, neighbours, &rows, work->edges + place * n_rows,
                           work->ranks + place * n_rows);
        if (work->is_mesh && is_chosen) {
            work->triangles[place] = count_triangles(work, neighbours, &rows);
        }
    }
}

static enum vxd_status count_job(struct vxd_pool *pool, const void *args,
                                 struct vxd_err *err)
{
    struct vxd_surface_work work = *(const struct vxd_surface_work *)args;

    (void)err;
    vxd_parallel_for(pool, work.n_picked, BLOCKS, count_blocks, &work);
    return VXD_OK;
}

enum vxd_status vxd_surface_count_cpu(struct vxd_queue *queue,
                                      const struct vxd_surface_work *work,
                                      struct vxd_err *err)
{
    return push(queue, work, count_job, err);
}

/* --- outputs --------------------------------------------------------------------------- */

static void write_vertices(const struct vxd_surface_work *work, size_t place,
                           const int32_t *neighbours)
{
    int edge = work->view.edge;
    const uint16_t *edges = work->edges + place * 3 * (size_t)(edge * edge);
    uint64_t k = work->vertices[place];

    for (int row = 0; row < 3 * edge * edge; row++) {
        for (uint32_t bits = edges[row]; bits != 0; bits &= bits - 1) {
            vxd_surface_write_vertex(work, neighbours, k++, vxd_surface_lowest(bits),
                                     row / 3 % edge, row / 3 / edge, row % 3);
        }
    }
}

static void write_triangles(const struct vxd_surface_work *work, size_t place,
                            const int32_t *neighbours)
{
    int edge = work->view.edge;
    int32_t *out = work->out.triangles + 3 * (uint64_t)work->triangles[place];
    struct rows rows;

    (void)read_rows(work, neighbours, &rows);
    for (int z = 0; z < edge; z++) {
        for (int y = 0; y < edge; y++) {
            uint32_t cut =
                vxd_surface_cut_cells(work, neighbours, rows.negative, rows.known, y, z);

            for (; cut != 0; cut &= cut - 1) {
                int x = vxd_surface_lowest(cut);
                uint64_t word = cases[vxd_surface_case(rows.negative, edge, x, y, z)];

                for (int i = 0; i < 3 * (int)(word >> 60); i++) {
                    *out++ = vxd_surface_vertex_number(work, neighbours, x, y, z,
                                                       (int)(word >> 4 * i & 15));
                }
            }
        }
    }
}

static void write_blocks(void *args, size_t begin, size_t end)
{
    const struct vxd_surface_work *work = args;

    for (size_t place = begin; place < end; place++) {
        const int32_t *neighbours = work->neighbours + 27 * (size_t)work->list[place];

        if (work->out.vertices != NULL || work->out.normals != NULL ||
            work->out.colours != NULL || work->out.labels != NULL) {
            write_vertices(work, place, neighbours);
        }
        if (work->out.triangles != NULL &&
            work->triangles[place + 1] > work->triangles[place]) {
            write_triangles(work, place, neighbours);
        }
        if (work->out.blocks != NULL && work->chosen[place + 1] > work->chosen[place]) {
            vxd_surface_write_block(work, neighbours, (uint32_t)place);
        }
    }
}

static enum vxd_status write_job(struct vxd_pool *pool, const void *args,
                                 struct vxd_err *err)
{
    struct vxd_surface_work work = *(const struct vxd_surface_work *)args;

    (void)err;
    vxd_parallel_for(pool, work.n_picked, BLOCKS, write_blocks, &work);
    return VXD_OK;
}

enum vxd_status vxd_surface_write_cpu(struct vxd_queue *queue,
                                      const struct vxd_surface_work *work,
                                      struct vxd_err *err)
{
    return push(queue, work, write_job, err);
}
