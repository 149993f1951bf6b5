// SPDX-License-Identifier: Apache-2.0
/* PNG by libpng (ISO/IEC 15948).
 *
 *     8 bytes   signature
 *     chunks    u32 length, 4 letters, the data, u32 CRC; all numbers big-endian
 *       IHDR    first: u32 width, u32 height, u8 bits, u8 colour type, u8 0, u8 0, u8 interlaced
 *       PLTE, tRNS, ...   palette; its alphas, or one transparent colour
 *       IDAT    zlib streams of the filtered rows
 *       IEND    last
 *
 * libpng reports a fault by longjmp. It jumps only within run_decoder and the run_ functions of a
 * writer, whose state lies in a structure that is freed on every path. */
#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "client/files/image/image_internal.h"

enum {
    HEAD_BYTES = 33,
    FIRST_ENCODED_BYTES = 65536,
    /* Of ancillary chunks, such as comments and profiles. */
    MAX_CHUNK_BYTES = 1 << 20,
    MAX_CHUNKS = 128
};

struct decoder {
    const uint8_t *bytes;
    size_t n_bytes;
    size_t at;
    const struct vxd_image_limits *limits;
    struct vxd_image *image;
    enum vxd_status status; /* of our own refusals, which are not libpng's */
    struct vxd_err *err;
    png_structp png;
    png_infop info;
};

struct vxd_png_writer {
    struct vxd_image image; /* its samples are of the caller */
    int level;
    uint32_t n_rows; /* written */
    uint8_t *bytes;
    size_t n_bytes;
    size_t capacity;
    enum vxd_status status;
    struct vxd_err *err; /* of the call that runs */
    png_structp png;
    png_infop info;
};

static void decode_fault(png_structp png, png_const_charp message)
{
    struct decoder *d = png_get_error_ptr(png);

    if (d->status == VXD_OK) {
        d->status = VXD_IMAGE_BAD(d->err, "png: %.120s, near byte %zu", message, d->at);
    }
    png_longjmp(png, 1);
}

static void encode_fault(png_structp png, png_const_charp message)
{
    struct vxd_png_writer *e = png_get_error_ptr(png);

    if (e->status == VXD_OK) {
        e->status =
            vxd_fail(e->err, VXD_RESOURCE_EXHAUSTED, "image", "png: %.120s", message);
    }
    png_longjmp(png, 1);
}

static void ignore_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static void read_bytes(png_structp png, png_bytep out, size_t n)
{
    struct decoder *d = png_get_io_ptr(png);

    if (n > d->n_bytes - d->at) {
        png_error(png, "the file is cut short");
    }
    memcpy(out, d->bytes + d->at, n);
    d->at += n;
}

static uint32_t big32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Reads the head and says what the picture becomes; of a palette without its tRNS chunk. */
enum vxd_status vxd_png_read_head(const uint8_t *bytes, size_t n_bytes,
                                  struct vxd_image *image, struct vxd_err *err)
{
    unsigned bits;
    unsigned colour;

    if (vxd_image_format_of(bytes, n_bytes) != VXD_IMAGE_PNG || n_bytes < HEAD_BYTES ||
        memcmp(bytes + 8, "\0\0\0\rIHDR", 8) != 0) {
        return VXD_IMAGE_BAD(err, "png: no signature and head in %zu bytes", n_bytes);
    }
    image->width = big32(bytes + 16);
    image->height = big32(bytes + 20);
    bits = bytes[24];
    colour = bytes[25];
    image->sample_bytes = 1;
    switch (colour) {
    case PNG_COLOR_TYPE_GRAY:
        image->n_channels = 1;
        image->sample_bytes = bits == 16 ? 2 : 1;
        break;
    case PNG_COLOR_TYPE_RGB:
    case PNG_COLOR_TYPE_PALETTE:
        image->n_channels = 3;
        break;
    case PNG_COLOR_TYPE_GRAY_ALPHA:
    case PNG_COLOR_TYPE_RGB_ALPHA:
        image->n_channels = 4;
        break;
    default:
        return VXD_IMAGE_BAD(err, "png: there is no colour type %u", colour);
    }
    return VXD_OK;
}

/* Asks libpng for the samples that vxd_image_decode promises. */
static void set_transforms(struct decoder *d)
{
    const uint16_t one = 1;
    int colour = png_get_color_type(d->png, d->info);
    int bits = png_get_bit_depth(d->png, d->info);

    if (colour == PNG_COLOR_TYPE_PALETTE) {
        png_set_palette_to_rgb(d->png);
    } else if (colour == PNG_COLOR_TYPE_GRAY && bits < 8) {
        png_set_expand_gray_1_2_4_to_8(d->png);
    }
    if (bits == 16 && colour != PNG_COLOR_TYPE_GRAY) {
        png_set_scale_16(d->png);
    } else if (bits == 16 && *(const uint8_t *)&one == 1) {
        png_set_swap(d->png);
    }
    if (colour == PNG_COLOR_TYPE_GRAY_ALPHA) {
        png_set_gray_to_rgb(d->png);
    }
    if ((colour & PNG_COLOR_MASK_COLOR) != 0 &&
        png_get_valid(d->png, d->info, PNG_INFO_tRNS) != 0) {
        png_set_tRNS_to_alpha(d->png);
    }
}

/* Checks the limits again by what libpng will give, and allocates it. */
static bool allocate_rows(struct decoder *d)
{
    size_t row_bytes = png_get_rowbytes(d->png, d->info);

    d->image->n_channels = png_get_channels(d->png, d->info);
    d->image->sample_bytes = png_get_bit_depth(d->png, d->info) == 16 ? 2 : 1;
    d->status = vxd_image_check_limits("png", d->limits, d->image, d->err);
    if (d->status == VXD_OK && row_bytes != d->image->n_bytes / d->image->height) {
        d->status =
            vxd_fail(d->err, VXD_INTERNAL, "image", "png: a row has %zu bytes, not %zu",
                     row_bytes, d->image->n_bytes / d->image->height);
    }
    if (d->status == VXD_OK) {
        d->status = vxd_image_allocate(d->image, d->err);
    }
    return d->status == VXD_OK;
}

/* Returns by longjmp, too: with d->status set. Everything lies in *d. */
static void run_decoder(struct decoder *d)
{
    int n_passes;

    if (setjmp(png_jmpbuf(d->png)) != 0) {
        return;
    }
    png_set_read_fn(d->png, d, read_bytes);
    png_set_user_limits(d->png, d->image->width, d->image->height);
    png_set_chunk_cache_max(d->png, MAX_CHUNKS);
    png_set_chunk_malloc_max(d->png, MAX_CHUNK_BYTES);
    png_read_info(d->png, d->info);
    set_transforms(d);
    n_passes = png_set_interlace_handling(d->png);
    png_read_update_info(d->png, d->info);
    if (!allocate_rows(d)) {
        return;
    }
    /* The first of several passes leaves gaps. */
    memset(d->image->data, 0, d->image->n_bytes);
    for (int pass = 0; pass < n_passes; pass++) {
        uint8_t *row = d->image->data;

        for (uint32_t y = 0; y < d->image->height; y++) {
            png_read_row(d->png, row, NULL);
            row += d->image->n_bytes / d->image->height;
        }
    }
    png_read_end(d->png, NULL);
}

/* libpng asks for as much as a chunk says that it has, before it reads it: a file of 141 bytes took
 * 2 GB. No chunk that counts has so much, and no row. */
static png_voidp allocate_some(png_structp png, png_alloc_size_t n_bytes)
{
    struct decoder *d = png_get_mem_ptr(png);
    size_t most = 2 * (size_t)MAX_CHUNK_BYTES + (size_t)64 * d->image->width;
    void *memory = n_bytes <= most ? malloc(n_bytes) : NULL;

    if (memory == NULL && n_bytes <= most && d->status == VXD_OK) {
        d->status = vxd_fail(d->err, VXD_RESOURCE_EXHAUSTED, "image",
                             "no memory of %zu bytes for libpng", (size_t)n_bytes);
    }
    return memory;
}

static void release_some(png_structp png, png_voidp memory)
{
    (void)png;
    free(memory);
}

enum vxd_status vxd_png_decode(const uint8_t *bytes, size_t n_bytes,
                               const struct vxd_image_limits *limits,
                               struct vxd_image *image, struct vxd_err *err)
{
    struct decoder d = {
        .bytes = bytes, .n_bytes = n_bytes, .limits = limits, .image = image, .err = err};
    enum vxd_status status;

    memset(image, 0, sizeof *image);
    VXD_TRY(vxd_png_read_head(bytes, n_bytes, image, err));
    VXD_TRY(vxd_image_check_limits("png", limits, image, err));
    d.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &d, decode_fault,
                                     ignore_warning, &d, allocate_some, release_some);
    d.info = d.png != NULL ? png_create_info_struct(d.png) : NULL;
    if (d.info == NULL) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "image", "no memory for libpng");
        goto out;
    }
    run_decoder(&d);
    status = d.status;
out:
    png_destroy_read_struct(&d.png, &d.info, NULL);
    if (status != VXD_OK) {
        vxd_image_clear(image);
    }
    return status;
}

static void write_bytes(png_structp png, png_bytep bytes, size_t n)
{
    struct vxd_png_writer *e = png_get_io_ptr(png);

    if (n > e->capacity - e->n_bytes) {
        size_t capacity;
        uint8_t *larger;

        if (!vxd_size_add(e->n_bytes, n, &capacity) ||
            !vxd_size_add(capacity, capacity / 2 + FIRST_ENCODED_BYTES, &capacity)) {
            png_error(png, "the file is too large");
        }
        larger = realloc(e->bytes, capacity);
        if (larger == NULL) {
            png_error(png, "no memory for the file");
        }
        e->bytes = larger;
        e->capacity = capacity;
    }
    memcpy(e->bytes + e->n_bytes, bytes, n);
    e->n_bytes += n;
}

static void flush_nothing(png_structp png)
{
    (void)png;
}

/* The three return by longjmp, too: with e->status set. */
static void run_begin(struct vxd_png_writer *e)
{
    static const int colours[5] = {0, PNG_COLOR_TYPE_GRAY, 0, PNG_COLOR_TYPE_RGB,
                                   PNG_COLOR_TYPE_RGB_ALPHA};
    const uint16_t one = 1;
    const struct vxd_image *image = &e->image;

    if (setjmp(png_jmpbuf(e->png)) != 0) {
        return;
    }
    png_set_write_fn(e->png, e, write_bytes, flush_nothing);
    png_set_IHDR(e->png, e->info, image->width, image->height,
                 (int)(8 * image->sample_bytes), colours[image->n_channels],
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_level(e->png, e->level);
    /* A filter costs more than it saves where the caller asked for speed. */
    png_set_filter(e->png, PNG_FILTER_TYPE_BASE,
                   e->level <= 1 ? PNG_FILTER_NONE : PNG_ALL_FILTERS);
    png_write_info(e->png, e->info);
    if (image->sample_bytes == 2 && *(const uint8_t *)&one == 1) {
        png_set_swap(e->png);
    }
}

static void run_rows(struct vxd_png_writer *e, const uint8_t *rows, uint32_t n_rows)
{
    const struct vxd_image *image = &e->image;
    size_t row_bytes = (size_t)image->width * image->n_channels * image->sample_bytes;

    if (setjmp(png_jmpbuf(e->png)) != 0) {
        return;
    }
    for (uint32_t y = 0; y < n_rows; y++) {
        png_write_row(e->png, rows + y * row_bytes);
    }
}

static void run_end(struct vxd_png_writer *e)
{
    if (setjmp(png_jmpbuf(e->png)) != 0) {
        return;
    }
    png_write_end(e->png, e->info);
}

void vxd_png_destroy(struct vxd_png_writer *writer)
{
    if (writer != NULL) {
        png_destroy_write_struct(&writer->png, &writer->info);
        free(writer->bytes);
        free(writer);
    }
}

enum vxd_status vxd_png_begin(const struct vxd_image *image, int level,
                              struct vxd_png_writer **out, struct vxd_err *err)
{
    struct vxd_png_writer *e = NULL;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(vxd_image_check_source(image, true, err));
    if (level < 0 || level > 9) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "level",
                        "png: the level is %d; it is 0 to 9", level);
    }
    e = calloc(1, sizeof *e);
    if (e == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "image", "no memory for a picture");
    }
    e->image = *image;
    e->level = level;
    e->err = err;
    e->png =
        png_create_write_struct(PNG_LIBPNG_VER_STRING, e, encode_fault, ignore_warning);
    e->info = e->png != NULL ? png_create_info_struct(e->png) : NULL;
    if (e->info == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "image", "no memory for libpng"));
    }
    run_begin(e);
    status = e->status;
out:
    if (status != VXD_OK) {
        vxd_png_destroy(e);
        e = NULL;
    }
    *out = e;
    return status;
}

enum vxd_status vxd_png_write_rows(struct vxd_png_writer *writer, const void *rows,
                                   uint32_t n_rows, struct vxd_err *err)
{
    if (n_rows > writer->image.height - writer->n_rows) {
        return VXD_IMAGE_BAD(err, "png: %lu rows behind %lu of %lu",
                             (unsigned long)n_rows, (unsigned long)writer->n_rows,
                             (unsigned long)writer->image.height);
    }
    writer->err = err;
    run_rows(writer, rows, n_rows);
    writer->n_rows += n_rows;
    return writer->status;
}

enum vxd_status vxd_png_take_file(struct vxd_png_writer *writer, uint8_t **bytes,
                                  size_t *n_bytes, struct vxd_err *err)
{
    *bytes = NULL;
    *n_bytes = 0;
    if (writer->n_rows < writer->image.height) {
        return VXD_IMAGE_BAD(err, "png: %lu rows of %lu are there",
                             (unsigned long)writer->n_rows,
                             (unsigned long)writer->image.height);
    }
    writer->err = err;
    run_end(writer);
    if (writer->status == VXD_OK) {
        *bytes = writer->bytes;
        *n_bytes = writer->n_bytes;
        writer->bytes = NULL;
    }
    return writer->status;
}

enum vxd_status vxd_png_encode(const struct vxd_image *image, int level, uint8_t **bytes,
                               size_t *n_bytes, struct vxd_err *err)
{
    struct vxd_png_writer *writer = NULL;
    enum vxd_status status;

    *bytes = NULL;
    *n_bytes = 0;
    VXD_TRY(vxd_png_begin(image, level, &writer, err));
    VXD_TRY(vxd_png_write_rows(writer, image->data, image->height, err));
    VXD_TRY(vxd_png_take_file(writer, bytes, n_bytes, err));
out:
    vxd_png_destroy(writer);
    return status;
}
