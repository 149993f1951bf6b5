// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "client/files/image/image_internal.h"

struct vxd_image_codecs vxd_image_codecs(void)
{
    struct vxd_image_codecs codecs = {false, false};

#ifdef VXD_WITH_PNG
    codecs.png = true;
#endif
#ifdef VXD_WITH_JPEG
    codecs.jpeg = true;
#endif
    return codecs;
}

#if !defined(VXD_WITH_PNG) || !defined(VXD_WITH_JPEG)
static enum vxd_status lacks(const char *codec, struct vxd_err *err)
{
    return vxd_fail(err, VXD_UNIMPLEMENTED, "image",
                    "this build has no %s codec: lib%s was missing when it was made",
                    codec, codec);
}
#endif

#ifndef VXD_WITH_PNG
enum vxd_status vxd_png_read_head(const uint8_t *bytes, size_t n_bytes,
                                  struct vxd_image *image, struct vxd_err *err)
{
    (void)bytes;
    (void)n_bytes;
    (void)image;
    return lacks("png", err);
}

enum vxd_status vxd_png_decode(const uint8_t *bytes, size_t n_bytes,
                               const struct vxd_image_limits *limits,
                               struct vxd_image *image, struct vxd_err *err)
{
    (void)bytes;
    (void)n_bytes;
    (void)limits;
    memset(image, 0, sizeof *image);
    return lacks("png", err);
}

enum vxd_status vxd_png_encode(const struct vxd_image *image, int level, uint8_t **bytes,
                               size_t *n_bytes, struct vxd_err *err)
{
    (void)image;
    (void)level;
    *bytes = NULL;
    *n_bytes = 0;
    return lacks("png", err);
}

enum vxd_status vxd_png_begin(const struct vxd_image *image, int level,
                              struct vxd_png_writer **out, struct vxd_err *err)
{
    (void)image;
    (void)level;
    *out = NULL;
    return lacks("png", err);
}

enum vxd_status vxd_png_write_rows(struct vxd_png_writer *writer, const void *rows,
                                   uint32_t n_rows, struct vxd_err *err)
{
    (void)writer;
    (void)rows;
    (void)n_rows;
    return lacks("png", err);
}

enum vxd_status vxd_png_take_file(struct vxd_png_writer *writer, uint8_t **bytes,
                                  size_t *n_bytes, struct vxd_err *err)
{
    (void)writer;
    *bytes = NULL;
    *n_bytes = 0;
    return lacks("png", err);
}

void vxd_png_destroy(struct vxd_png_writer *writer)
{
    (void)writer;
}
#endif

#ifndef VXD_WITH_JPEG
enum vxd_status vxd_jpeg_read_head(const uint8_t *bytes, size_t n_bytes,
                                   struct vxd_image *image, struct vxd_err *err)
{
    (void)bytes;
    (void)n_bytes;
    (void)image;
    return lacks("jpeg", err);
}

enum vxd_status vxd_jpeg_decode(const uint8_t *bytes, size_t n_bytes,
                                const struct vxd_image_limits *limits,
                                struct vxd_image *image, struct vxd_err *err)
{
    (void)bytes;
    (void)n_bytes;
    (void)limits;
    memset(image, 0, sizeof *image);
    return lacks("jpeg", err);
}

enum vxd_status vxd_jpeg_encode(const struct vxd_image *image, int quality,
                                uint8_t **bytes, size_t *n_bytes, struct vxd_err *err)
{
    (void)image;
    (void)quality;
    *bytes = NULL;
    *n_bytes = 0;
    return lacks("jpeg", err);
}
#endif

enum vxd_image_format vxd_image_format_of(const uint8_t *bytes, size_t n_bytes)
{
    static const uint8_t png[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

    if (n_bytes < sizeof png) {
        return VXD_IMAGE_UNKNOWN;
    }
    if (memcmp(bytes, png, sizeof png) == 0) {
        return VXD_IMAGE_PNG;
    }
    if (bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff) {
        return VXD_IMAGE_JPEG;
    }
    return VXD_IMAGE_UNKNOWN;
}

enum vxd_status vxd_image_read_head(const uint8_t *bytes, size_t n_bytes,
                                    struct vxd_image *image, struct vxd_err *err)
{
    memset(image, 0, sizeof *image);
    switch (vxd_image_format_of(bytes, n_bytes)) {
    case VXD_IMAGE_PNG:
        return vxd_png_read_head(bytes, n_bytes, image, err);
    case VXD_IMAGE_JPEG:
        return vxd_jpeg_read_head(bytes, n_bytes, image, err);
    case VXD_IMAGE_UNKNOWN:
        break;
    }
    return VXD_IMAGE_BAD(err, "%zu bytes that begin like neither a PNG nor a JPEG file",
                         n_bytes);
}

enum vxd_status vxd_image_decode(const uint8_t *bytes, size_t n_bytes,
                                 const struct vxd_image_limits *limits,
                                 struct vxd_image *image, struct vxd_err *err)
{
    switch (vxd_image_format_of(bytes, n_bytes)) {
    case VXD_IMAGE_PNG:
        return vxd_png_decode(bytes, n_bytes, limits, image, err);
    case VXD_IMAGE_JPEG:
        return vxd_jpeg_decode(bytes, n_bytes, limits, image, err);
    case VXD_IMAGE_UNKNOWN:
        break;
    }
    memset(image, 0, sizeof *image);
    return VXD_IMAGE_BAD(err, "%zu bytes that begin like neither a PNG nor a JPEG file",
                         n_bytes);
}

enum vxd_status vxd_image_check_limits(const char *format,
                                       const struct vxd_image_limits *limits,
                                       struct vxd_image *image, struct vxd_err *err)
{
    uint32_t max_width = limits->max_width != 0 ? limits->max_width : VXD_IMAGE_MAX_SIDE;
    uint32_t max_height =
        limits->max_height != 0 ? limits->max_height : VXD_IMAGE_MAX_SIDE;
    size_t n_bytes;

    if (image->width == 0 || image->height == 0) {
        return VXD_IMAGE_BAD(err, "%s: the picture is %lu x %lu", format,
                             (unsigned long)image->width, (unsigned long)image->height);
    }
    if (image->width > max_width || image->height > max_height) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "image",
                        "%s: the picture is %lu x %lu, at most %lu x %lu are allowed",
                        format, (unsigned long)image->width, (unsigned long)image->height,
                        (unsigned long)max_width, (unsigned long)max_height);
    }
    if (!vxd_size_mul(image->width, image->height, &n_bytes) ||
        !vxd_size_mul(n_bytes, (size_t)image->n_channels * image->sample_bytes,
                      &n_bytes) ||
        n_bytes > limits->max_bytes) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "image",
                        "%s: %lu x %lu samples of %lu bytes are more than the %zu bytes "
                        "that are allowed",
                        format, (unsigned long)image->width, (unsigned long)image->height,
                        (unsigned long)image->n_channels * image->sample_bytes,
                        limits->max_bytes);
    }
    image->n_bytes = n_bytes;
    return VXD_OK;
}

enum vxd_status vxd_image_check_source(const struct vxd_image *image, bool wide,
                                       struct vxd_err *err)
{
    if (image->width == 0 || image->height == 0 || image->width > VXD_IMAGE_MAX_SIDE ||
        image->height > VXD_IMAGE_MAX_SIDE) {
        return VXD_IMAGE_BAD(err, "the picture is %lu x %lu; a side has 1 to %u pixels",
                             (unsigned long)image->width, (unsigned long)image->height,
                             VXD_IMAGE_MAX_SIDE);
    }
    if (!(image->sample_bytes == 1 && image->n_channels != 2 && image->n_channels >= 1 &&
          image->n_channels <= (wide ? 4u : 3u)) &&
        !(wide && image->sample_bytes == 2 && image->n_channels == 1)) {
        return VXD_IMAGE_BAD(
            err, "%lu channels of %lu bytes; this format takes %s",
            (unsigned long)image->n_channels, (unsigned long)image->sample_bytes,
            wide ? "1, 3 or 4 of 1 byte, or 1 of 2" : "1 or 3 of 1 byte");
    }
    return VXD_OK;
}

enum vxd_status vxd_image_allocate(struct vxd_image *image, struct vxd_err *err)
{
    image->data = malloc(image->n_bytes);
    if (image->data == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "image", "no memory for %zu bytes",
                        image->n_bytes);
    }
    return VXD_OK;
}

void vxd_image_clear(struct vxd_image *image)
{
    free(image->data);
    memset(image, 0, sizeof *image);
}
