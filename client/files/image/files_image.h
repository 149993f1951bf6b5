// SPDX-License-Identifier: Apache-2.0
/* PNG and JPEG pictures: a file's bytes to samples and back. Camera frames and depth images come
 * in, renderings and costmaps go out. A header of its own beside files.h, because a build of the
 * client alone may lack the codecs: vxd_image_codecs says which there are, and the functions of
 * an absent one return UNIMPLEMENTED. All functions are thread-safe and keep no state. */
#ifndef VXD_CLIENT_FILES_IMAGE_FILES_IMAGE_H
#define VXD_CLIENT_FILES_IMAGE_FILES_IMAGE_H

#include "proto/base/base.h"

/* No side of a picture may be longer; JPEG's own limit is 65,500. */
#define VXD_IMAGE_MAX_SIDE 65535u

enum vxd_image_format {
    VXD_IMAGE_UNKNOWN = 0,
    VXD_IMAGE_PNG = 1,
    VXD_IMAGE_JPEG = 2
};

/* A picture, row-major from the top left, channels interleaved, no padding between rows. */
struct vxd_image {
    uint32_t width;
    uint32_t height;
    uint32_t n_channels;   /* 1 grey, 3 RGB, 4 RGBA (alpha not premultiplied) */
    uint32_t sample_bytes; /* 1, or 2 with one channel: uint16 of this machine (depth) */
    void *data;            /* aligned for uint16; freed by vxd_image_clear */
    size_t n_bytes;        /* width * height * n_channels * sample_bytes */
};

/* What a caller lets a file ask for. A side of 0 means VXD_IMAGE_MAX_SIDE. */
struct vxd_image_limits {
    uint32_t max_width;
    uint32_t max_height;
    size_t max_bytes; /* of the decoded picture; of a JPEG's coefficients, too */
};

/* Which codecs this build has. */
struct vxd_image_codecs {
    bool png;
    bool jpeg;
};

struct vxd_image_codecs vxd_image_codecs(void);

/* Recognizes a file by its first bytes; shorter ones than 8 are UNKNOWN. */
enum vxd_image_format vxd_image_format_of(const uint8_t *bytes, size_t n_bytes);

/* Reads what a file's head says: width, height, n_channels (a tRNS chunk may make 4 of 3) and
 * sample_bytes. The rest of the picture is empty; nothing is compared with limits.
 * errors  as vxd_image_decode for a malformed head */
enum vxd_status vxd_image_read_head(const uint8_t *bytes, size_t n_bytes,
                                    struct vxd_image *image, struct vxd_err *err);

/* Decodes a whole file held in memory. Sides and decoded bytes are compared with `limits` by the
 * file's own head, before the codec is opened or anything is allocated.
 *
 * PNG   grey of 1 to 8 bits, and its alpha-less 16-bit form, as they are (fewer than 8 bits are
 *       spread over 0..255, 16-bit samples are turned from big-endian); RGB and RGBA; palettes
 *       become RGB, with a tRNS chunk RGBA; grey with alpha becomes RGBA; other 16-bit kinds are
 *       rounded to 8. A tRNS chunk of grey is ignored. No gamma or colour profile is applied.
 * JPEG  grey and colour (YCbCr and RGB), baseline and progressive, at most 100 scans.
 *
 * in      bytes   borrowed
 * out     image   owns its data; on error it is empty
 * errors  INVALID_ARGUMENT    neither PNG nor JPEG; malformed or cut short: what the codec says;
 *                             CMYK
 *         RESOURCE_EXHAUSTED  more than the limits; no memory
 *         UNIMPLEMENTED       this build lacks the codec */
enum vxd_status vxd_image_decode(const uint8_t *bytes, size_t n_bytes,
                                 const struct vxd_image_limits *limits,
                                 struct vxd_image *image, struct vxd_err *err);

/* The same of one format; another file is INVALID_ARGUMENT. */
enum vxd_status vxd_png_decode(const uint8_t *bytes, size_t n_bytes,
                               const struct vxd_image_limits *limits,
                               struct vxd_image *image, struct vxd_err *err);
enum vxd_status vxd_jpeg_decode(const uint8_t *bytes, size_t n_bytes,
                                const struct vxd_image_limits *limits,
                                struct vxd_image *image, struct vxd_err *err);

/* Encodes a picture, of which only width, height, n_channels, sample_bytes and data are read.
 * Equal pictures give equal bytes on one machine.
 *
 * in      level    0 (stored) to 9 (smallest), as zlib; 1 suits frames that are sent at once
 *         quality  1 to 100, as libjpeg; grey and RGB of 8 bits only. Colour is subsampled 4:2:0
 *                  below quality 90
 * out     bytes    freed by free(); NULL on error
 * errors  INVALID_ARGUMENT    no such picture, level or quality: what is there and what may be
 *         RESOURCE_EXHAUSTED  no memory
 *         UNIMPLEMENTED       this build lacks the codec */
enum vxd_status vxd_png_encode(const struct vxd_image *image, int level, uint8_t **bytes,
                               size_t *n_bytes, struct vxd_err *err);
enum vxd_status vxd_jpeg_encode(const struct vxd_image *image, int quality,
                                uint8_t **bytes, size_t *n_bytes, struct vxd_err *err);

/* The bytes of vxd_png_encode, a few rows a call, for a caller that may not be kept for long.
 * image->data is not read; rows are the next ones from the top, and after the last one the file is
 * taken. After an error the writer is only destroyed. NULL is fine there.
 * errors  those of vxd_png_encode; INVALID_ARGUMENT  more rows than the picture has, or a file taken
 *                                                    before the last */
struct vxd_png_writer;

enum vxd_status vxd_png_begin(const struct vxd_image *image, int level,
                              struct vxd_png_writer **out, struct vxd_err *err);
enum vxd_status vxd_png_write_rows(struct vxd_png_writer *writer, const void *rows,
                                   uint32_t n_rows, struct vxd_err *err);
enum vxd_status vxd_png_take_file(struct vxd_png_writer *writer, uint8_t **bytes,
                                  size_t *n_bytes, struct vxd_err *err);
void vxd_png_destroy(struct vxd_png_writer *writer);

/* Frees the samples and empties the picture; an empty one is fine. */
void vxd_image_clear(struct vxd_image *image);

#endif
