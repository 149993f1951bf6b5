// SPDX-License-Identifier: Apache-2.0
/* Makes lists of voxels from triangles: the surface voxelizer of meshes. */
#ifndef VXD_GPU_SVDAG_MESH_MESH_H
#define VXD_GPU_SVDAG_MESH_MESH_H

#include "gpu/svdag/scan/scan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Vertices farther out than this, in voxels, are in no scene. */
#define VXD_SVDAG_MESH_FAR 2147483648.0 /* 2^31 */

/* Which voxels a triangle sets. A voxel is half open: what lies in the plane between two voxels
 * belongs to the higher one. */
enum vxd_svdag_mesh_rule {
    /* Those whose cube it meets (26-separating): nothing passes a closed surface, not even along
     * diagonals. */
    VXD_SVDAG_MESH_CONSERVATIVE = 0,
    /* Those in which it meets one of the three axes through the centre (6-separating): the thinnest
     * surface that nothing passes from face to face. */
    VXD_SVDAG_MESH_THIN = 1
};

struct vxd_svdag_mesh {
    const double
        *vertices; /* n_vertices x 3, voxels from the scene's low corner; host memory */
    size_t n_vertices;
    const uint32_t *triangles; /* n x 3, below n_vertices; host memory */
    const uint16_t
        *values; /* n, of each triangle; host memory. NULL: the list has none */
    size_t n;
    enum vxd_svdag_mesh_rule rule;
};

/* How far a mesh has come; zero-initialised = its beginning. */
struct vxd_svdag_mesh_state {
    size_t triangle; /* the next one, and its next row of voxels */
    uint32_t row;
    uint64_t n_voxels;     /* set so far; those of two triangles count twice */
    uint64_t n_outside;    /* triangles that are in the scene with no part */
    uint64_t n_non_finite; /* triangles with a vertex that is not finite or too far */
};

/* Makes the list of the next triangles, as many as bounded memory allows: after some calls
 * state->triangle is n. Of voxels that several triangles set, the last triangle's value counts, in
 * a list and over lists that are applied in this order.
 *
 * errors  INVALID_ARGUMENT    a triangle names a vertex that is none; the rule; the format
 *         RESOURCE_EXHAUSTED  no memory for the list
 * owner   the caller frees the list (vxd_svdag_voxel_list_free), also after a failure
 * order   the list is that of vxd_svdag_list_voxels: equal on every backend, bit for bit
 * sync    the call waits for the queue before the list is queued; *list is written by the next wait
 * source  Schwarz and Seidel, Fast parallel surface and solid voxelization on GPUs, 2010; Laine, A
 *         topological approach to voxelization, 2013 */
enum vxd_status vxd_svdag_list_triangles(struct vxd_queue *queue,
                                         const struct vxd_svdag_format *format,
                                         const struct vxd_svdag_mesh *mesh,
                                         struct vxd_svdag_mesh_state *state,
                                         struct vxd_svdag_voxel_list *list,
                                         struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
