// SPDX-License-Identifier: Apache-2.0
/* Writes triangle meshes, and points, as binary glTF or as Wavefront OBJ.
 *
 * GLB (glTF 2.0, chapter 4): a header of 12 bytes (magic "glTF", version 2, length), then two
 * chunks of a length, a type and data that ends at a multiple of 4: JSON (padded with blanks) and
 * BIN. Everything is little-endian. Ours has one mesh, with one buffer view and accessor an
 * attribute: POSITION and NORMAL (float32 x 3), COLOR_0 (uint16 x 4, normalized and linear, as the
 * standard says; ours are sRGB bytes), _LABEL (float32), and indices (uint32). glTF's y axis points
 * up and maps' z does, so the mesh's node turns it by -90 degrees about x; the numbers stay.
 *
 * OBJ: "v x y z r g b" (colours from 0 to 1, as MeshLab and others read them), "vn x y z", "f a//a
 * b//b c//c" with numbers from 1 on. It has no labels. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "client/files/files.h"
#include "client/files/writer.h"

enum {
    JSON_BYTES = 4096,
    CHUNK_JSON = 0x4e4f534a, /* "JSON" */
    CHUNK_BIN = 0x004e4942,  /* "BIN" */
    GLB_MAGIC = 0x46546c67,
    GLB_HEADER_BYTES = 12,
    CHUNK_HEADER_BYTES = 8,
    MODE_POINTS = 0,
    MODE_TRIANGLES = 4
};

struct mesh {
    const struct vxd_surface_part *parts;
    size_t n_parts;
    uint64_t n_vertices;
    uint64_t n_triangles;
    bool has_normals; /* of all parts that have vertices */
    bool has_colours;
    bool has_labels;
    float low[3];
    float high[3];
};

static void measure(const struct vxd_surface_part *parts, size_t n_parts,
                    struct mesh *out)
{
    *out = (struct mesh){.parts = parts,
                         .n_parts = n_parts,
                         .has_normals = true,
                         .has_colours = true,
                         .has_labels = true};
    for (size_t i = 0; i < n_parts; i++) {
        const struct vxd_surface_part *part = &parts[i];

        for (size_t k = 0; k < 3 * part->n_vertices; k++) {
            float value = part->vertices[k];
            bool is_first = out->n_vertices == 0 && k < 3;

            out->low[k % 3] =
                is_first || value < out->low[k % 3] ? value : out->low[k % 3];
            out->high[k % 3] =
                is_first || value > out->high[k % 3] ? value : out->high[k % 3];
        }
        if (part->n_vertices > 0) {
            out->has_normals = out->has_normals && part->normals != NULL;
            out->has_colours = out->has_colours && part->colours != NULL;
            out->has_labels = out->has_labels && part->labels != NULL;
        }
        out->n_vertices += part->n_vertices;
        out->n_triangles += part->n_triangles;
    }
    out->has_normals = out->has_normals && out->n_vertices > 0;
    out->has_colours = out->has_colours && out->n_vertices > 0;
    out->has_labels = out->has_labels && out->n_vertices > 0;
}

/* --- GLB ---------------------------------------------------------------------------------- */

/* Text that grows; a longer one than fits is cut, which no mesh's is. */
struct text {
    char bytes[JSON_BYTES];
    size_t n;
};

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
say(struct text *text, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start has just set it
    n = vsnprintf(text->bytes + text->n, sizeof text->bytes - text->n, format, args);
    va_end(args);
    if (n > 0 && text->n + (size_t)n < sizeof text->bytes) {
        text->n += (size_t)n;
    }
}

/* One array of the buffer. */
struct attribute {
    const char *name; /* NULL: the indices */
    int component;    /* glTF's number of the type */
    const char *type;
    uint64_t n_bytes; /* an item */
    uint64_t n;
};

enum {
    COMPONENT_UINT16 = 5123,
    COMPONENT_UINT32 = 5125,
    COMPONENT_FLOAT32 = 5126,
    MAX_ATTRIBUTES = 5
};

static size_t list_attributes(const struct mesh *mesh,
                              struct attribute out[MAX_ATTRIBUTES])
{
    size_t n = 0;

    out[n++] =
        (struct attribute){"POSITION", COMPONENT_FLOAT32, "VEC3", 12, mesh->n_vertices};
    if (mesh->has_normals) {
        out[n++] =
            (struct attribute){"NORMAL", COMPONENT_FLOAT32, "VEC3", 12, mesh->n_vertices};
    }
    if (mesh->has_colours) {
        out[n++] =
            (struct attribute){"COLOR_0", COMPONENT_UINT16, "VEC4", 8, mesh->n_vertices};
    }
    if (mesh->has_labels) {
        out[n++] = (struct attribute){"_LABEL", COMPONENT_FLOAT32, "SCALAR", 4,
                                      mesh->n_vertices};
    }
    if (mesh->n_triangles > 0) {
        out[n++] = (struct attribute){NULL, COMPONENT_UINT32, "SCALAR", 4,
                                      3 * mesh->n_triangles};
    }
    return n;
}

static void describe(const struct mesh *mesh, const struct attribute *attributes,
                     size_t n, struct text *text)
{
    uint64_t offset = 0;

    say(text, "{\"asset\":{\"version\":\"2.0\",\"generator\":\"voxeld\"},\"scene\":0,"
              "\"scenes\":[{\"nodes\":[0]}],\"nodes\":[{\"mesh\":0,\"rotation\":"
              "[-0.70710678118654757,0,0,0.70710678118654757]}],\"materials\":[{"
              "\"pbrMetallicRoughness\":{\"metallicFactor\":0,\"roughnessFactor\":1},"
              "\"doubleSided\":true}],\"meshes\":[{\"primitives\":[{\"attributes\":{");
    for (size_t i = 0; i < n && attributes[i].name != NULL; i++) {
        say(text, "%s\"%s\":%zu", i > 0 ? "," : "", attributes[i].name, i);
    }
    say(text, "},\"material\":0,");
    if (mesh->n_triangles > 0) {
        say(text, "\"indices\":%zu,", n - 1);
    }
    say(text, "\"mode\":%d}]}],\"accessors\":[",
        mesh->n_triangles > 0 ? MODE_TRIANGLES : MODE_POINTS);
    for (size_t i = 0; i < n; i++) {
        const struct attribute *a = &attributes[i];

        say(text,
            "%s{\"bufferView\":%zu,\"componentType\":%d,\"count\":%llu,"
            "\"type\":\"%s\"",
            i > 0 ? "," : "", i, a->component, (unsigned long long)a->n, a->type);
        if (a->component == COMPONENT_UINT16) {
            say(text, ",\"normalized\":true");
        }
        if (i == 0) {
            say(text, ",\"min\":[%.9g,%.9g,%.9g],\"max\":[%.9g,%.9g,%.9g]",
                (double)mesh->low[0], (double)mesh->low[1], (double)mesh->low[2],
                (double)mesh->high[0], (double)mesh->high[1], (double)mesh->high[2]);
        }
        say(text, "}");
    }
    say(text, "],\"bufferViews\":[");
    for (size_t i = 0; i < n; i++) {
        uint64_t n_bytes = attributes[i].n_bytes * attributes[i].n;

        say(text, "%s{\"buffer\":0,\"byteOffset\":%llu,\"byteLength\":%llu}",
            i > 0 ? "," : "", (unsigned long long)offset, (unsigned long long)n_bytes);
        offset += n_bytes;
    }
    say(text, "],\"buffers\":[{\"byteLength\":%llu}]}", (unsigned long long)offset);
}

/* sRGB's transfer function, as 16 bits. */
static uint16_t linear_of(uint8_t byte)
{
    double value = byte / 255.0;
    double linear = value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4);

    return (uint16_t)(linear * 65535 + 0.5);
}

static void put_floats(struct vxd_sink *sink, const float *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;

        memcpy(&bits, &values[i], sizeof bits);
        vxd_sink_put_u32(sink, bits);
    }
}

static void put_colours(struct vxd_sink *sink, const struct mesh *mesh)
{
    uint16_t linear[256];

    for (int i = 0; i < 256; i++) {
        linear[i] = linear_of((uint8_t)i);
    }
    for (size_t i = 0; i < mesh->n_parts; i++) {
        const struct vxd_surface_part *part = &mesh->parts[i];

        for (size_t k = 0; k < part->n_vertices; k++) {
            for (size_t c = 0; c < 3; c++) {
                vxd_sink_put_u16(sink, linear[part->colours[3 * k + c]]);
            }
            vxd_sink_put_u16(sink, 65535);
        }
    }
}

static void put_labels(struct vxd_sink *sink, const struct vxd_surface_part *part)
{
    for (size_t k = 0; k < part->n_vertices; k++) {
        float label = part->labels[k];

        put_floats(sink, &label, 1);
    }
}

static void put_arrays(struct vxd_sink *sink, const struct mesh *mesh)
{
    uint64_t first = 0;

    for (size_t i = 0; i < mesh->n_parts; i++) {
        put_floats(sink, mesh->parts[i].vertices, 3 * mesh->parts[i].n_vertices);
    }
    for (size_t i = 0; i < mesh->n_parts && mesh->has_normals; i++) {
        put_floats(sink, mesh->parts[i].normals, 3 * mesh->parts[i].n_vertices);
    }
    if (mesh->has_colours) {
        put_colours(sink, mesh);
    }
    for (size_t i = 0; i < mesh->n_parts && mesh->has_labels; i++) {
        put_labels(sink, &mesh->parts[i]);
    }
    for (size_t i = 0; i < mesh->n_parts; i++) {
        const struct vxd_surface_part *part = &mesh->parts[i];

        for (size_t k = 0; k < 3 * part->n_triangles; k++) {
            vxd_sink_put_u32(sink, (uint32_t)(first + (uint32_t)part->triangles[k]));
        }
        first += part->n_vertices;
    }
}

static enum vxd_status put_glb(struct vxd_sink *sink, const struct mesh *mesh,
                               struct vxd_err *err)
{
    struct attribute attributes[MAX_ATTRIBUTES];
    size_t n = list_attributes(mesh, attributes);
    struct text text = {.n = 0};
    uint64_t n_bytes = 0; /* all items are multiples of 4 bytes */
    uint64_t n_all;

    if (mesh->n_vertices == 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "out",
                        "glTF has no mesh without vertices");
    }
    for (size_t i = 0; i < n; i++) {
        n_bytes += attributes[i].n_bytes * attributes[i].n;
    }
    describe(mesh, attributes, n, &text);
    while (text.n % 4 != 0) {
        say(&text, " ");
    }
    n_all = GLB_HEADER_BYTES + 2 * CHUNK_HEADER_BYTES + text.n + n_bytes;
    if (n_all > UINT32_MAX) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "out",
                        "the mesh has %llu bytes, a GLB file at most 4 GiB",
                        (unsigned long long)n_all);
    }
    vxd_sink_put_u32(sink, GLB_MAGIC);
    vxd_sink_put_u32(sink, 2);
    vxd_sink_put_u32(sink, (uint32_t)n_all);
    vxd_sink_put_u32(sink, (uint32_t)text.n);
    vxd_sink_put_u32(sink, CHUNK_JSON);
    vxd_sink_put(sink, text.bytes, text.n);
    vxd_sink_put_u32(sink, (uint32_t)n_bytes);
    vxd_sink_put_u32(sink, CHUNK_BIN);
    put_arrays(sink, mesh);
    return VXD_OK;
}

/* --- OBJ ---------------------------------------------------------------------------------- */

static void put_obj_vertices(struct vxd_sink *sink, const struct mesh *mesh,
                             const struct vxd_surface_part *part)
{
    for (size_t i = 0; i < part->n_vertices; i++) {
        const float *v = part->vertices + 3 * i;

        vxd_sink_print(sink, "v %.9g %.9g %.9g", (double)v[0], (double)v[1],
                       (double)v[2]);
        if (mesh->has_colours) {
            const uint8_t *c = part->colours + 3 * i;

            vxd_sink_print(sink, " %.4f %.4f %.4f", c[0] / 255.0, c[1] / 255.0,
                           c[2] / 255.0);
        }
        vxd_sink_print(sink, "\n");
    }
}

static enum vxd_status put_obj(struct vxd_sink *sink, const struct mesh *mesh)
{
    uint64_t first = 1;

    vxd_sink_print(sink, "# voxeld, metres\n");
    for (size_t i = 0; i < mesh->n_parts; i++) {
        put_obj_vertices(sink, mesh, &mesh->parts[i]);
    }
    for (size_t i = 0; i < mesh->n_parts && mesh->has_normals; i++) {
        for (size_t k = 0; k < mesh->parts[i].n_vertices; k++) {
            const float *v = mesh->parts[i].normals + 3 * k;

            vxd_sink_print(sink, "vn %.6g %.6g %.6g\n", (double)v[0], (double)v[1],
                           (double)v[2]);
        }
    }
    for (size_t i = 0; i < mesh->n_parts; i++) {
        const struct vxd_surface_part *part = &mesh->parts[i];

        for (size_t k = 0; k < part->n_triangles; k++) {
            unsigned long long corner[3];

            for (size_t c = 0; c < 3; c++) {
                corner[c] = first + (uint64_t)part->triangles[3 * k + c];
            }
            if (mesh->has_normals) {
                vxd_sink_print(sink, "f %llu//%llu %llu//%llu %llu//%llu\n", corner[0],
                               corner[0], corner[1], corner[1], corner[2], corner[2]);
            } else {
                vxd_sink_print(sink, "f %llu %llu %llu\n", corner[0], corner[1],
                               corner[2]);
            }
        }
        first += part->n_vertices;
    }
    return VXD_OK;
}

enum vxd_status vxd_surface_file_write(FILE *stream, enum vxd_surface_format format,
                                       const struct vxd_surface_part *parts,
                                       size_t n_parts, struct vxd_err *err)
{
    struct vxd_sink sink;
    struct mesh mesh;
    enum vxd_status status = vxd_sink_open(&sink, stream, err);

    if (status != VXD_OK) {
        return status;
    }
    measure(parts, n_parts, &mesh);
    status =
        format == VXD_SURFACE_GLB ? put_glb(&sink, &mesh, err) : put_obj(&sink, &mesh);
    return vxd_sink_close(&sink, status, err);
}
