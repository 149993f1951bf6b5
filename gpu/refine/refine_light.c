// SPDX-License-Identifier: Apache-2.0
/* Spatially varying light (setup 9): a hash map from the corners of cubes to nine harmonics. The
 * voxels of a cube have the same eight corners, so the normal equations are one dense matrix a cube,
 * summed over chunks of its voxels, and the harmonics come from conjugate gradients over the
 * corners. */
#include <stdlib.h>

#include "gpu/refine/refine_internal.h"

#define CHUNK_VOXELS 1024

/* A set of n keys, of which some may be equal; entries are numbered by first place. Blocking. */
static enum vxd_status make_map(struct vxd_queue *queue, const int32_t *keys, size_t n,
                                int n_values, int32_t *indices, struct vxd_hashmap **out,
                                size_t *n_entries, struct vxd_err *err)
{
    struct vxd_hashmap_spec spec = {.key_dtype = VXD_INT32,
                                    .n_components = 3,
                                    .n_values = n_values,
                                    .values = {{VXD_FLOAT32, VXD_REFINE_HARMONICS}},
                                    .index = VXD_HASH_OPEN};
    struct vxd_hashmap_insert_args insert = {
        .keys = keys, .n = n, .order = VXD_HASH_FIRST, .indices = indices};
    enum vxd_status status;

    vxd_hashmap_destroy(queue, *out);
    *out = NULL;
    VXD_TRY(vxd_hashmap_create(queue, &spec, out, err));
    VXD_TRY(vxd_hashmap_prepare(queue, *out, keys, n, &insert.max_new, err));
    VXD_TRY(vxd_hashmap_insert(queue, *out, &insert, err));
    VXD_TRY(vxd_hashmap_size(queue, *out, n_entries, err));
out:
    return status;
}

static enum vxd_status find_voxels_cubes(struct vxd_queue *queue,
                                         struct vxd_refine *refine, struct vxd_err *err)
{
    struct vxd_refine_call *call = &refine->call;
    struct vxd_buffer keys = {NULL, 0, VXD_SPACE_DEVICE};
    enum vxd_status status;

    call->view.cube = refine->options.subvolume_m / refine->voxel_size_m;
    VXD_TRY(vxd_device_alloc(queue, refine->n * 3 * sizeof(int32_t), &keys, err));
    VXD_TRY(vxd_refine_alloc(queue, refine, VXD_REFINE_CUBES, refine->n, sizeof(int32_t),
                             err));
    call->light.keys = keys.ptr;
    VXD_TRY(vxd_refine_run(queue, call, VXD_REFINE_STEP_CUBE, refine->n, err));
    VXD_TRY(make_map(queue, keys.ptr, refine->n, 0, refine->buffers[VXD_REFINE_CUBES].ptr,
                     &refine->cubes, &refine->n_cubes, err));
    call->view.cells = refine->buffers[VXD_REFINE_CUBES].ptr;
    call->light.n_cubes = refine->n_cubes;
    call->light.cube_keys = vxd_hashmap_keys(refine->cubes);
out:
    vxd_device_free(queue, &keys);
    return status;
}

/* The corners of all cubes, whose neighbours and which cubes' corners they are. */
static enum vxd_status find_corners(struct vxd_queue *queue, struct vxd_refine *refine,
                                    struct vxd_err *err)
{
    struct vxd_refine_call *call = &refine->call;
    struct vxd_buffer keys = {NULL, 0, VXD_SPACE_DEVICE};
    size_t n = 8 * refine->n_cubes;
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, n * 3 * sizeof(int32_t), &keys, err));
    VXD_TRY(vxd_refine_alloc(queue, refine, VXD_REFINE_CORNERS, n, sizeof(int32_t), err));
    call->light.keys = keys.ptr;
    VXD_TRY(vxd_refine_run(queue, call, VXD_REFINE_STEP_CORNER, n, err));
    VXD_TRY(make_map(queue, keys.ptr, n, 1, refine->buffers[VXD_REFINE_CORNERS].ptr,
                     &refine->corners, &refine->n_corners, err));
    call->view.corners = refine->buffers[VXD_REFINE_CORNERS].ptr;
    call->light.n_corners = refine->n_corners;
    call->light.corner_keys = vxd_hashmap_keys(refine->corners);
    call->view.lights = vxd_hashmap_values(refine->corners, 0);
    vxd_device_free(queue, &keys);
    n = 8 * refine->n_corners;
    VXD_TRY(vxd_device_alloc(queue, n * 3 * sizeof(int32_t), &keys, err));
    VXD_TRY(vxd_refine_alloc(queue, refine, VXD_REFINE_OWNERS, n, sizeof(int32_t), err));
    VXD_TRY(vxd_refine_alloc(queue, refine, VXD_REFINE_AROUND, 6 * refine->n_corners,
                             sizeof(int32_t), err));
    call->light.keys = keys.ptr;
    VXD_TRY(vxd_refine_run(queue, call, VXD_REFINE_STEP_OWNER, n, err));
    VXD_TRY(vxd_hashmap_find(queue, refine->cubes, keys.ptr, n,
                             refine->buffers[VXD_REFINE_OWNERS].ptr, NULL, err));
    VXD_TRY(vxd_hashmap_neighbours(queue, refine->corners, call->light.corner_keys,
                                   refine->n_corners, VXD_NEIGHBOURS_6,
                                   refine->buffers[VXD_REFINE_AROUND].ptr, err));
    call->light.owners = refine->buffers[VXD_REFINE_OWNERS].ptr;
    call->light.around = refine->buffers[VXD_REFINE_AROUND].ptr;
out:
    vxd_device_free(queue, &keys);
    return status;
}

/* Sorts the voxels by their cubes; *take_begins is where each begins, n_cubes + 1 of them, malloc'd. */
static enum vxd_status sort_voxels(struct vxd_queue *queue, struct vxd_refine *refine,
                                   uint32_t **take_begins, struct vxd_err *err)
{
    struct vxd_refine_call *call = &refine->call;
    size_t n = refine->n;
    size_t n_scratch = vxd_sort_pairs_scratch_bytes(queue, n);
    struct vxd_buffer keys = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer others = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer scratch = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer begins = {NULL, 0, VXD_SPACE_DEVICE};
    enum vxd_status status;

    *take_begins = malloc((refine->n_cubes + 1) * sizeof **take_begins);
    if (*take_begins == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu cubes",
                        refine->n_cubes);
    }
    VXD_TRY(vxd_device_alloc(queue, n * sizeof(uint64_t), &keys, err));
    VXD_TRY(
        vxd_device_alloc(queue, n * (sizeof(uint64_t) + sizeof(uint32_t)), &others, err));
    VXD_TRY(vxd_device_alloc(queue, n_scratch, &scratch, err));
    VXD_TRY(vxd_device_alloc(queue, refine->n_cubes * sizeof(uint32_t), &begins, err));
    VXD_TRY(vxd_refine_alloc(queue, refine, VXD_REFINE_ORDER, n, sizeof(uint32_t), err));
    call->order = refine->buffers[VXD_REFINE_ORDER].ptr;
    call->light.order = call->order;
    call->light.sort_keys = keys.ptr;
    call->light.begins = begins.ptr;
    VXD_TRY(vxd_refine_run(queue, call, VXD_REFINE_STEP_SORT_KEY, n, err));
    VXD_TRY(vxd_sort_pairs(queue, keys.ptr, call->order, others.ptr,
                           (uint32_t *)(void *)((uint64_t *)others.ptr + n), n, 0, 32,
                           scratch.ptr, n_scratch, err));
    VXD_TRY(vxd_refine_run(queue, call, VXD_REFINE_STEP_BEGIN_OF, n, err));
    VXD_TRY(vxd_refine_read(queue, begins.ptr, refine->n_cubes * sizeof(uint32_t),
                            *take_begins, err));
    (*take_begins)[refine->n_cubes] = (uint32_t)n;
out:
    vxd_device_free(queue, &begins);
    vxd_device_free(queue, &scratch);
    vxd_device_free(queue, &others);
    vxd_device_free(queue, &keys);
    return status;
}

/* Divides the cubes' voxels into chunks. */
static enum vxd_status make_chunks(struct vxd_queue *queue, struct vxd_refine *refine,
                                   const uint32_t *begins, struct vxd_err *err)
{
    size_t most = refine->n / CHUNK_VOXELS + refine->n_cubes;
    struct vxd_refine_chunk *chunks = calloc(most, sizeof *chunks);
    uint32_t *first = calloc(refine->n_cubes + 1, sizeof *first);
    size_t n = 0;
    enum vxd_status status = VXD_RESOURCE_EXHAUSTED;

    if (chunks == NULL || first == NULL) {
        (void)vxd_fail(err, status, NULL, "no memory for %zu cubes", refine->n_cubes);
        goto out;
    }
    for (size_t cube = 0; cube < refine->n_cubes; cube++) {
        first[cube] = (uint32_t)n;
        for (uint32_t at = begins[cube]; at < begins[cube + 1]; at += CHUNK_VOXELS) {
            uint32_t left = begins[cube + 1] - at;

            chunks[n++] = (struct vxd_refine_chunk){
                (uint32_t)cube, at, at + (left < CHUNK_VOXELS ? left : CHUNK_VOXELS), 0};
        }
    }
    first[refine->n_cubes] = (uint32_t)n;
    refine->n_chunks = n;
    VXD_TRY(vxd_refine_alloc(queue, refine, VXD_REFINE_CHUNKS, n, sizeof *chunks, err));
    VXD_TRY(vxd_refine_alloc(queue, refine, VXD_REFINE_FIRST_CHUNK, refine->n_cubes + 1,
                             sizeof *first, err));
    VXD_TRY(vxd_refine_write(queue, refine->buffers[VXD_REFINE_CHUNKS].ptr, chunks,
                             n * sizeof *chunks, err));
    VXD_TRY(vxd_refine_write(queue, refine->buffers[VXD_REFINE_FIRST_CHUNK].ptr, first,
                             (refine->n_cubes + 1) * sizeof *first, err));
out:
    free(first);
    free(chunks);
    return status;
}

enum vxd_status vxd_refine_find_cubes(struct vxd_queue *queue, struct vxd_refine *refine,
                                      struct vxd_err *err)
{
    struct vxd_refine_light_call *light = &refine->call.light;
    uint32_t *begins = NULL;
    enum vxd_status status;

    VXD_TRY(find_voxels_cubes(queue, refine, err));
    VXD_TRY(find_corners(queue, refine, err));
    VXD_TRY(sort_voxels(queue, refine, &begins, err));
    VXD_TRY(make_chunks(queue, refine, begins, err));
    VXD_TRY(vxd_refine_alloc(queue, refine, VXD_REFINE_CHUNK_SUMS, refine->n_chunks,
                             VXD_REFINE_LIGHT_SUMS * sizeof(vxd_refine_real), err));
    VXD_TRY(vxd_refine_alloc(queue, refine, VXD_REFINE_CUBE_SUMS, refine->n_cubes,
                             VXD_REFINE_LIGHT_SUMS * sizeof(vxd_refine_real), err));
    VXD_TRY(vxd_refine_alloc(queue, refine, VXD_REFINE_LIGHT_VECTORS,
                             (size_t)36 * refine->n_corners, sizeof(vxd_refine_real),
                             err));
    VXD_TRY(vxd_refine_alloc(queue, refine, VXD_REFINE_LIGHT_PRODUCTS,
                             (size_t)72 * refine->n_corners, sizeof(vxd_refine_real),
                             err));
    VXD_TRY(vxd_refine_reserve_sums(queue, refine, 9 * refine->n_corners, err));
    light->products = refine->buffers[VXD_REFINE_LIGHT_PRODUCTS].ptr;
    light->chunks = refine->buffers[VXD_REFINE_CHUNKS].ptr;
    light->first_chunk = refine->buffers[VXD_REFINE_FIRST_CHUNK].ptr;
    light->chunk_sums = refine->buffers[VXD_REFINE_CHUNK_SUMS].ptr;
    light->cube_sums = refine->buffers[VXD_REFINE_CUBE_SUMS].ptr;
out:
    free(begins);
    return status;
}

void vxd_refine_push_light_sums(struct vxd_refine *refine)
{
    size_t n = 9 * refine->n_corners;
    double a_corner = (double)refine->n / (double)refine->n_corners * refine->brightness *
                      refine->brightness;

    refine->call.light.smooth = (vxd_refine_real)(refine->options.light * a_corner);
    refine->call.light.damping = (vxd_refine_real)(1e-5 * a_corner + 1e-9);
    vxd_refine_push_op(refine, (struct vxd_refine_op){.step = VXD_REFINE_STEP_LIGHT_CHUNK,
                                                      .n = refine->n_chunks});
    vxd_refine_push_op(
        refine, (struct vxd_refine_op){.step = VXD_REFINE_STEP_CUBE_SUM,
                                       .n = refine->n_cubes * VXD_REFINE_LIGHT_SUMS});
    vxd_refine_push_op(refine, (struct vxd_refine_op){.step = VXD_REFINE_STEP_LIGHT_RIGHT,
                                                      .n = n,
                                                      .is_light = true});
    vxd_refine_push_op(refine, (struct vxd_refine_op){.step = VXD_REFINE_STEP_BEGIN,
                                                      .n = n,
                                                      .kind = VXD_REFINE_SUM_RZ_FIRST,
                                                      .is_light = true});
}
