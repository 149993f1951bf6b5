// SPDX-License-Identifier: Apache-2.0
/* What the readers of meshes share. */
#ifndef VXD_CLIENT_FILES_MESH_MESH_INTERNAL_H
#define VXD_CLIENT_FILES_MESH_MESH_INTERNAL_H

#include "client/files/mesh/files_mesh.h"

enum {
    VXD_MESH_LINE_BYTES = 4096,
    VXD_MESH_MOST_PROPERTIES = 32
};

/* A property of an element of PLY. */
struct vxd_mesh_property {
    enum vxd_dtype dtype;
    bool is_list;
    enum vxd_dtype count; /* of a list */
    int axis;             /* of a vertex: 0 to 2; -1: another one */
    int channel;          /* of a vertex: red, green, blue, 0 to 2; -1: another one */
    bool is_corners;      /* of a face: the list of its vertices */
};

struct vxd_mesh_element {
    struct vxd_mesh_property properties[VXD_MESH_MOST_PROPERTIES];
    size_t n_properties;
    uint64_t n;
};

struct vxd_mesh_reader {
    FILE *stream;
    enum vxd_mesh_format format;
    char line[VXD_MESH_LINE_BYTES];
    uint64_t n_lines;
    /* PLY */
    bool is_ascii;
    bool is_big_endian;
    struct vxd_mesh_element faces;
    uint64_t n_faces; /* read */
    /* OBJ: vertices before the line that is read, which negative numbers count back from */
    uint64_t n_before;
};

/* Reads a line without its end. *is_end at the end of the file.
 * errors  INVALID_ARGUMENT  it is too long, or has a zero */
enum vxd_status vxd_mesh_read_line(struct vxd_mesh_reader *reader, bool *is_end,
                                   struct vxd_err *err);

/* Cuts the next word off; NULL: there is none. */
char *vxd_mesh_word(char **rest);

/* A vertex as it is read. */
struct vxd_mesh_vertex {
    double x[3];
    double rgb[3]; /* 0 to 255 */
    bool has_colour;
};

/* Appends a vertex. errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_mesh_add_vertex(struct vxd_mesh_file *mesh, size_t *capacity,
                                    size_t most, const struct vxd_mesh_vertex *vertex,
                                    struct vxd_err *err);

/* Writes the fan of a face. Returns its triangles. */
size_t vxd_mesh_fan(const uint32_t *corners, size_t n, uint32_t (*triangles)[3]);

enum vxd_status vxd_mesh_open_ply(struct vxd_mesh_file *mesh, size_t most,
                                  struct vxd_err *err);
/* The corners of the next face; *n is 0 at the end. */
enum vxd_status vxd_mesh_face_ply(struct vxd_mesh_file *mesh, uint32_t *corners,
                                  size_t *n, struct vxd_err *err);
enum vxd_status vxd_mesh_open_obj(struct vxd_mesh_file *mesh, size_t most,
                                  struct vxd_err *err);
enum vxd_status vxd_mesh_face_obj(struct vxd_mesh_file *mesh, uint32_t *corners,
                                  size_t *n, struct vxd_err *err);

#endif
