// SPDX-License-Identifier: Apache-2.0
/* PLY with faces. After the lines of the header come the rows of each element, in their order:
 *
 *   ply
 *   format ascii | binary_little_endian | binary_big_endian 1.0
 *   element vertex N            with the properties x, y, z of any type, and red, green, blue (or
 *                               diffuse_red ...), bytes or 0 to 1; others are skipped
 *   element face M              with a list vertex_indices or vertex_index; others are skipped
 *   end_header
 *
 * Elements between and after these are skipped; vertices come before faces. */
#include <string.h>

#include "client/files/mesh/mesh_internal.h"
#include "proto/base/number.h"

static const struct {
    const char *names[2];
    enum vxd_dtype dtype;
} types[] = {
    {{"char", "int8"}, VXD_INT8},        {{"uchar", "uint8"}, VXD_UINT8},
    {{"short", "int16"}, VXD_INT16},     {{"ushort", "uint16"}, VXD_UINT16},
    {{"int", "int32"}, VXD_INT32},       {{"uint", "uint32"}, VXD_UINT32},
    {{"float", "float32"}, VXD_FLOAT32}, {{"double", "float64"}, VXD_FLOAT64},
};

enum element {
    ELEMENT_OTHER,
    ELEMENT_VERTEX,
    ELEMENT_FACE
};

/* Elements before the faces, and where the vertices are among them. */
struct header {
    struct vxd_mesh_element elements[4];
    size_t n;
    size_t vertices;
    bool has_vertices;
    bool has_faces; /* the last of the elements */
};

static enum vxd_status wrong(const struct vxd_mesh_reader *reader, const char *what,
                             struct vxd_err *err)
{
    return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL, "line %llu: %s",
                    (unsigned long long)reader->n_lines, what);
}

static bool read_type(const char *word, enum vxd_dtype *out)
{
    for (size_t i = 0; word != NULL && i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(word, types[i].names[0]) == 0 ||
            strcmp(word, types[i].names[1]) == 0) {
            *out = types[i].dtype;
            return true;
        }
    }
    return false;
}

static enum vxd_status read_property(struct vxd_mesh_reader *reader, char *rest,
                                     struct vxd_mesh_element *element,
                                     struct vxd_err *err)
{
    static const char *const channels[][2] = {
        {"red", "diffuse_red"}, {"green", "diffuse_green"}, {"blue", "diffuse_blue"}};
    struct vxd_mesh_property property = {.axis = -1, .channel = -1};
    const char *word = vxd_mesh_word(&rest);
    const char *name;

    if (word != NULL && strcmp(word, "list") == 0) {
        property.is_list = true;
        if (!read_type(vxd_mesh_word(&rest), &property.count) ||
            property.count == VXD_FLOAT32 || property.count == VXD_FLOAT64) {
            return wrong(reader, "a list's count has no whole type", err);
        }
        word = vxd_mesh_word(&rest);
    }
    name = read_type(word, &property.dtype) ? vxd_mesh_word(&rest) : NULL;
    if (name == NULL || element->n_properties == VXD_MESH_MOST_PROPERTIES) {
        return wrong(reader, "a property has no known type and name, or is the 33rd",
                     err);
    }
    if (!property.is_list && strlen(name) == 1 && *name >= 'x' && *name <= 'z') {
        property.axis = *name - 'x';
    }
    for (int i = 0; i < 3 && !property.is_list; i++) {
        bool is_it =
            strcmp(name, channels[i][0]) == 0 || strcmp(name, channels[i][1]) == 0;

        property.channel = is_it ? i : property.channel;
    }
    property.is_corners = property.is_list && (strcmp(name, "vertex_indices") == 0 ||
                                               strcmp(name, "vertex_index") == 0);
    element->properties[element->n_properties++] = property;
    return VXD_OK;
}

static enum vxd_status read_element(struct vxd_mesh_reader *reader, char *rest,
                                    struct header *header, struct vxd_err *err)
{
    const char *name = vxd_mesh_word(&rest);
    const char *number = vxd_mesh_word(&rest);
    struct vxd_mesh_element *element = &header->elements[header->n];

    if (header->n == sizeof header->elements / sizeof header->elements[0]) {
        return wrong(reader, "there are more than 4 elements", err);
    }
    if (name == NULL || number == NULL ||
        !vxd_number_uint64(number, strlen(number), &element->n)) {
        return wrong(reader, "an element has a name and a number", err);
    }
    if (strcmp(name, "vertex") == 0 && !header->has_vertices) {
        header->has_vertices = true;
        header->vertices = header->n;
    }
    if (strcmp(name, "face") == 0) {
        if (!header->has_vertices) {
            return wrong(reader, "faces come before vertices", err);
        }
        header->has_faces = true;
    }
    header->n++;
    return VXD_OK;
}

static enum vxd_status read_format(struct vxd_mesh_reader *reader, char *rest,
                                   struct vxd_err *err)
{
    const char *name = vxd_mesh_word(&rest);

    reader->is_ascii = name != NULL && strcmp(name, "ascii") == 0;
    reader->is_big_endian = name != NULL && strcmp(name, "binary_big_endian") == 0;
    return name != NULL && (reader->is_ascii || reader->is_big_endian ||
                            strcmp(name, "binary_little_endian") == 0)
               ? VXD_OK
               : wrong(reader,
                       "the format is ascii, binary_little_endian or binary_big_endian",
                       err);
}

static enum vxd_status read_header(struct vxd_mesh_reader *reader, struct header *header,
                                   struct vxd_err *err)
{
    bool has_format = false;
    bool is_end;
    enum vxd_status status;

    VXD_TRY(vxd_mesh_read_line(reader, &is_end, err));
    if (is_end || strcmp(reader->line, "ply") != 0) {
        VXD_TRY(wrong(reader, "this is no PLY", err));
    }
    for (;;) {
        char *rest = reader->line;
        const char *word;

        VXD_TRY(vxd_mesh_read_line(reader, &is_end, err));
        word = vxd_mesh_word(&rest);
        if (is_end || (word != NULL && strcmp(word, "end_header") == 0)) {
            break;
        }
        if (word != NULL && strcmp(word, "format") == 0) {
            has_format = true;
            VXD_TRY(read_format(reader, rest, err));
        } else if (word != NULL && strcmp(word, "element") == 0 && header->has_faces) {
            /* What follows the faces is not read. */
            while (!is_end && strcmp(reader->line, "end_header") != 0) {
                VXD_TRY(vxd_mesh_read_line(reader, &is_end, err));
            }
            break;
        } else if (word != NULL && strcmp(word, "element") == 0) {
            VXD_TRY(read_element(reader, rest, header, err));
        } else if (word != NULL && strcmp(word, "property") == 0 && header->n > 0) {
            VXD_TRY(read_property(reader, rest, &header->elements[header->n - 1], err));
        }
    }
    if (is_end || !has_format || !header->has_vertices || !header->has_faces) {
        VXD_TRY(wrong(reader, "the header has no format, vertices, faces or end", err));
    }
    status = VXD_OK;
out:
    return status;
}

/* --- rows ------------------------------------------------------------------------------------ */

static double value_of(const uint8_t bytes[8], enum vxd_dtype dtype)
{
    union {
        int8_t i8;
        uint8_t u8;
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        float f32;
        double f64;
    } value;

    memcpy(&value, bytes, sizeof value);
    switch (dtype) {
    case VXD_INT8:
        return value.i8;
    case VXD_UINT8:
        return value.u8;
    case VXD_INT16:
        return value.i16;
    case VXD_UINT16:
        return value.u16;
    case VXD_INT32:
        return value.i32;
    case VXD_UINT32:
        return value.u32;
    case VXD_FLOAT32:
        return (double)value.f32;
    default:
        return value.f64;
    }
}

static enum vxd_status read_binary(struct vxd_mesh_reader *reader, enum vxd_dtype dtype,
                                   double *out, struct vxd_err *err)
{
    uint8_t bytes[8] = {0};
    size_t n = vxd_dtype_bytes(dtype);

    if (fread(bytes, 1, n, reader->stream) != n) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL,
                        "the file ends within its rows (face %llu)",
                        (unsigned long long)reader->n_faces);
    }
    for (size_t i = 0; reader->is_big_endian && i < n / 2; i++) {
        uint8_t byte = bytes[i];

        bytes[i] = bytes[n - 1 - i];
        bytes[n - 1 - i] = byte;
    }
    *out = value_of(bytes, dtype);
    return VXD_OK;
}

/* A number of a row; of an ascii row the next word. */
static enum vxd_status read_number(struct vxd_mesh_reader *reader, enum vxd_dtype dtype,
                                   char **rest, double *out, struct vxd_err *err)
{
    const char *word;

    if (!reader->is_ascii) {
        return read_binary(reader, dtype, out, err);
    }
    word = vxd_mesh_word(rest);
    return word != NULL && vxd_number_double(word, strlen(word), out)
               ? VXD_OK
               : wrong(reader, "a row has too few numbers", err);
}

/* Takes a number of a vertex that is a part of its colour: a byte, or from 0 to 1. */
static void take_channel(const struct vxd_mesh_property *property, double value,
                         struct vxd_mesh_vertex *vertex)
{
    bool is_float = property->dtype == VXD_FLOAT32 || property->dtype == VXD_FLOAT64;

    vertex->rgb[property->channel] = is_float ? value * 255 : value;
    vertex->has_colour = true;
}

/* Reads a row: a vertex, or the corners of a face. */
static enum vxd_status read_row(struct vxd_mesh_file *mesh,
                                const struct vxd_mesh_element *element,
                                struct vxd_mesh_vertex *vertex, uint32_t *corners,
                                size_t *n_corners, struct vxd_err *err)
{
    struct vxd_mesh_reader *reader = mesh->reader;
    char *rest = reader->line;
    bool is_end = false;
    enum vxd_status status = VXD_OK;

    if (reader->is_ascii) {
        VXD_TRY(vxd_mesh_read_line(reader, &is_end, err));
    }
    if (is_end) {
        VXD_TRY(wrong(reader, "the file ends within its rows", err));
    }
    for (size_t i = 0; i < element->n_properties; i++) {
        const struct vxd_mesh_property *property = &element->properties[i];
        double value;
        double n = 1;

        if (property->is_list) {
            VXD_TRY(read_number(reader, property->count, &rest, &n, err));
        }
        if (property->is_list && !(n >= 0 && n <= VXD_MESH_MOST_CORNERS)) {
            VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, NULL,
                             "face %llu has a list of %g numbers, at most %d",
                             (unsigned long long)reader->n_faces, n,
                             VXD_MESH_MOST_CORNERS));
        }
        for (size_t k = 0; k < (size_t)n; k++) {
            VXD_TRY(read_number(reader, property->dtype, &rest, &value, err));
            if (property->axis >= 0 && vertex != NULL) {
                vertex->x[property->axis] = value;
            } else if (property->channel >= 0 && vertex != NULL) {
                take_channel(property, value, vertex);
            }
            if (!property->is_corners || corners == NULL) {
                continue;
            }
            if (!(value >= 0 && value < (double)mesh->n_vertices)) {
                VXD_TRY(vxd_fail(
                    err, VXD_INVALID_ARGUMENT, NULL, "face %llu has vertex %g of %zu",
                    (unsigned long long)reader->n_faces, value, mesh->n_vertices));
            }
            corners[k] = (uint32_t)value;
            *n_corners = k + 1;
        }
    }
out:
    return status;
}

enum vxd_status vxd_mesh_open_ply(struct vxd_mesh_file *mesh, size_t most,
                                  struct vxd_err *err)
{
    struct header header = {0};
    struct vxd_mesh_reader *reader = mesh->reader;
    size_t capacity = 0;
    enum vxd_status status;

    VXD_TRY(read_header(reader, &header, err));
    for (size_t i = 0; i + 1 < header.n; i++) {
        const struct vxd_mesh_element *element = &header.elements[i];

        /* Rows without a property take no bytes, however many there are. */
        for (uint64_t row = 0; row < element->n && element->n_properties > 0; row++) {
            struct vxd_mesh_vertex vertex = {0};

            VXD_TRY(read_row(mesh, element, i == header.vertices ? &vertex : NULL, NULL,
                             NULL, err));
            if (i == header.vertices) {
                VXD_TRY(vxd_mesh_add_vertex(mesh, &capacity, most, &vertex, err));
            }
        }
    }
    reader->faces = header.elements[header.n - 1];
    if (reader->faces.n_properties == 0) {
        reader->faces.n = 0;
    }
out:
    return status;
}

enum vxd_status vxd_mesh_face_ply(struct vxd_mesh_file *mesh, uint32_t *corners,
                                  size_t *n, struct vxd_err *err)
{
    struct vxd_mesh_reader *reader = mesh->reader;
    enum vxd_status status = VXD_OK;

    *n = 0;
    /* Faces of no corners are skipped. */
    while (*n == 0 && status == VXD_OK && reader->n_faces < reader->faces.n) {
        status = read_row(mesh, &reader->faces, NULL, corners, n, err);
        reader->n_faces++;
    }
    return status;
}
