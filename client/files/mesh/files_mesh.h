// SPDX-License-Identifier: Apache-2.0
/* Readers of triangle meshes in files. Vertices are held in memory (24 bytes each, 28 with colours); triangles are read
 * as they are asked for, so a mesh of any size takes memory for its vertices alone. */
#ifndef VXD_CLIENT_FILES_MESH_FILES_MESH_H
#define VXD_CLIENT_FILES_MESH_FILES_MESH_H

#include <stdio.h>

#include "proto/base/base.h"

/* Most corners of a face. */
#define VXD_MESH_MOST_CORNERS 256

enum vxd_mesh_format {
    VXD_MESH_PLY, /* ascii and binary of both byte orders */
    VXD_MESH_OBJ  /* vertices, their colours and faces; all else is skipped */
};

struct vxd_mesh_file {
    double *vertices;  /* n_vertices x 3 */
    uint32_t *colours; /* n_vertices, 0xRRGGBB; NULL: the file has none */
    size_t n_vertices;
    struct vxd_mesh_reader *reader;
};

/* The format of a file by its name's ending; false where it is none of these. */
bool vxd_mesh_format_of(const char *path, enum vxd_mesh_format *out);

/* Reads the vertices and, where the first one has a colour, those of all; a later one without has
 * white. The stream is borrowed until vxd_mesh_close, and can be rewound.
 *
 * in      most_vertices  more are refused
 * errors  INVALID_ARGUMENT    a malformed file: what, and on which line or at which face
 *         RESOURCE_EXHAUSTED  more vertices; no memory
 * On errors nothing has to be closed. */
enum vxd_status vxd_mesh_open(FILE *stream, enum vxd_mesh_format format,
                              size_t most_vertices, struct vxd_mesh_file *out,
                              struct vxd_err *err);

/* Reads the next triangles: rows of vertices, all below n_vertices. A face of more corners is a fan
 * around its first one. *n is 0 at the end.
 *
 * in      capacity  at least VXD_MESH_MOST_CORNERS
 * errors  INVALID_ARGUMENT  as above */
enum vxd_status vxd_mesh_next(struct vxd_mesh_file *mesh, uint32_t (*triangles)[3],
                              size_t capacity, size_t *n, struct vxd_err *err);

/* Frees what *mesh owns; an empty one is fine. */
void vxd_mesh_close(struct vxd_mesh_file *mesh);

#endif
