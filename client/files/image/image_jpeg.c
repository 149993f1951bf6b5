// SPDX-License-Identifier: Apache-2.0
/* JPEG by libjpeg-turbo (ITU-T T.81).
 *
 *     FF D8     start of image
 *     segments  FF xx, u16 length (its own two bytes counted), the data; big-endian
 *       SOFn    FF C0 .. CF but C4, C8, CC: u8 bits, u16 height, u16 width, u8 components, ...
 *       SOS     a scan, followed by entropy-coded bytes
 *     FF D9     end of image
 *
 * libjpeg reports a fault by longjmp. It jumps only within run_decoder and run_encoder, whose
 * state lies in a structure of their callers, who free it on every path. It goes on after
 * damaged data with a warning; here that is a fault, but for stray bytes between segments, which
 * some cameras write. */
#include <limits.h>
#include <setjmp.h>
#include <stdio.h> /* jpeglib.h needs FILE */
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "client/files/image/image_internal.h"

enum {
    MAX_SCANS = 100,
    FIRST_ENCODED_BYTES = 65536,
    /* Of libjpeg's own tables and rows, and of coefficients that fill up a narrow picture. */
    CODEC_BYTES = 8 << 20
};

/* What both directions begin with: the handlers of faults find it through client_data. */
struct codec {
    jmp_buf jump;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    enum vxd_status status;
    struct vxd_err *err;
};

static void fault(j_common_ptr info)
{
    struct codec *c = info->client_data;
    char message[JMSG_LENGTH_MAX];

    (*info->err->format_message)(info, message);
    c->status = vxd_fail(c->err,
                         info->err->msg_code == JERR_OUT_OF_MEMORY ||
                                 info->err->msg_code == JERR_NO_BACKING_STORE
                             ? VXD_RESOURCE_EXHAUSTED
                             : VXD_INVALID_ARGUMENT,
                         "image", "jpeg: %.160s", message);
    longjmp(c->jump, 1);
}

static void take_warning(j_common_ptr info, int level)
{
    if (level < 0 && info->err->msg_code != JWRN_EXTRANEOUS_DATA) {
        fault(info);
    }
}

static void print_nothing(j_common_ptr info)
{
    (void)info;
}

/* Ends a file of many scans, each of which would cost the time of a whole picture. */
static void count_scans(j_common_ptr info)
{
    struct codec *c = info->client_data;
    int n = ((j_decompress_ptr)info)->input_scan_number;

    if (n > MAX_SCANS) {
        c->status = VXD_IMAGE_BAD(c->err, "jpeg: more than %d scans", MAX_SCANS);
        longjmp(c->jump, 1);
    }
}

static struct jpeg_error_mgr *set_handlers(struct codec *c, struct vxd_err *err)
{
    struct jpeg_error_mgr *errors = jpeg_std_error(&c->errors);

    errors->error_exit = fault;
    errors->emit_message = take_warning;
    errors->output_message = print_nothing;
    c->err = err;
    return errors;
}

static unsigned big16(const uint8_t *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

/* Finds the first SOFn segment, which says what the picture becomes. */
enum vxd_status vxd_jpeg_read_head(const uint8_t *bytes, size_t n_bytes,
                                   struct vxd_image *image, struct vxd_err *err)
{
    size_t at = 2;

    if (vxd_image_format_of(bytes, n_bytes) != VXD_IMAGE_JPEG) {
        return VXD_IMAGE_BAD(err, "jpeg: no start of image in %zu bytes", n_bytes);
    }
    while (n_bytes - at >= 4) {
        unsigned marker = bytes[at + 1];
        size_t length = big16(bytes + at + 2);

        if (bytes[at] != 0xff || marker == 0xff || marker == 0x01 ||
            (marker >= 0xd0 && marker <= 0xd8)) {
            at++; /* filling and stray bytes between segments, markers without a length */
            continue;
        }
        if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 &&
            marker != 0xcc) {
            if (n_bytes - at < 10) {
                break;
            }
            image->height = big16(bytes + at + 5);
            image->width = big16(bytes + at + 7);
            image->n_channels = bytes[at + 9];
            image->sample_bytes = 1;
            if (image->n_channels != 1 && image->n_channels != 3) {
                return VXD_IMAGE_BAD(err, "jpeg: %lu components; 1 (grey) and 3 are read",
                                     (unsigned long)image->n_channels);
            }
            return VXD_OK;
        }
        if (marker == 0xd9 || marker == 0xda || length < 2 || length > n_bytes - at - 2) {
            break;
        }
        at += 2 + length;
    }
    return VXD_IMAGE_BAD(err, "jpeg: no frame header before byte %zu of %zu: cut short?",
                         at, n_bytes);
}

struct decoder {
    struct codec codec;
    struct jpeg_decompress_struct info;
    const uint8_t *bytes;
    size_t n_bytes;
    const struct vxd_image_limits *limits;
    struct vxd_image *image;
};

/* Returns by longjmp, too: with the codec's status set. Everything lies in *d. */
static void run_decoder(struct decoder *d)
{
    struct jpeg_decompress_struct *info = &d->info;
    struct vxd_image *image = d->image;
    size_t row_bytes = (size_t)image->width * image->n_channels;

    if (setjmp(d->codec.jump) != 0) {
        return;
    }
    jpeg_create_decompress(info);
    info->client_data = &d->codec;
    d->codec.progress.progress_monitor = count_scans;
    info->progress = &d->codec.progress;
    info->mem->max_memory_to_use = d->limits->max_bytes < LONG_MAX / 2 - CODEC_BYTES
                                       ? (long)d->limits->max_bytes * 2 + CODEC_BYTES
                                       : LONG_MAX;
    jpeg_mem_src(info, d->bytes, d->n_bytes);
    (void)jpeg_read_header(info, TRUE);
    info->out_color_space = image->n_channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    info->dct_method = JDCT_ISLOW;
    jpeg_calc_output_dimensions(info);
    if (info->output_width != image->width || info->output_height != image->height ||
        info->output_components != (int)image->n_channels) {
        d->codec.status =
            VXD_IMAGE_BAD(d->codec.err, "jpeg: two frame headers that disagree");
        return;
    }
    d->codec.status = vxd_image_allocate(image, d->codec.err);
    if (d->codec.status != VXD_OK) {
        return;
    }
    (void)jpeg_start_decompress(info);
    while (info->output_scanline < info->output_height) {
        JSAMPROW row = (JSAMPROW)image->data + info->output_scanline * row_bytes;

        (void)jpeg_read_scanlines(info, &row, 1);
    }
    (void)jpeg_finish_decompress(info);
}

enum vxd_status vxd_jpeg_decode(const uint8_t *bytes, size_t n_bytes,
                                const struct vxd_image_limits *limits,
                                struct vxd_image *image, struct vxd_err *err)
{
    struct decoder d;
    enum vxd_status status;

    memset(image, 0, sizeof *image);
    VXD_TRY(vxd_jpeg_read_head(bytes, n_bytes, image, err));
    VXD_TRY(vxd_image_check_limits("jpeg", limits, image, err));
    memset(&d, 0, sizeof d);
    d.bytes = bytes;
    d.n_bytes = n_bytes;
    d.limits = limits;
    d.image = image;
    d.info.err = set_handlers(&d.codec, err);
    d.info.client_data = &d.codec;
    run_decoder(&d);
    jpeg_destroy_decompress(&d.info);
    status = d.codec.status;
out:
    if (status != VXD_OK) {
        vxd_image_clear(image);
    }
    return status;
}

struct encoder {
    struct codec codec;
    struct jpeg_compress_struct info;
    struct jpeg_destination_mgr destination;
    const struct vxd_image *image;
    int quality;
    uint8_t *bytes;
    size_t n_bytes; /* allocated; what is free of them is destination.free_in_buffer */
};

static void nothing_to_open(j_compress_ptr info)
{
    (void)info;
}

/* Doubles the file's memory when it is full, which it is at the beginning, too. */
static boolean grow(j_compress_ptr info)
{
    struct encoder *e = (struct encoder *)info->client_data;
    size_t n_bytes = e->n_bytes > 0 ? 2 * e->n_bytes : FIRST_ENCODED_BYTES;
    uint8_t *larger = n_bytes > e->n_bytes ? realloc(e->bytes, n_bytes) : NULL;

    if (larger == NULL) {
        ERREXIT1(info, JERR_OUT_OF_MEMORY, 0);
    } else {
        e->destination.next_output_byte = larger + e->n_bytes;
        e->destination.free_in_buffer = n_bytes - e->n_bytes;
        e->bytes = larger;
        e->n_bytes = n_bytes;
    }
    return TRUE;
}

/* Returns by longjmp, too: with the codec's status set. */
static void run_encoder(struct encoder *e)
{
    struct jpeg_compress_struct *info = &e->info;
    size_t row_bytes = (size_t)e->image->width * e->image->n_channels;

    if (setjmp(e->codec.jump) != 0) {
        return;
    }
    jpeg_create_compress(info);
    e->destination.init_destination = nothing_to_open;
    e->destination.empty_output_buffer = grow;
    e->destination.term_destination = nothing_to_open;
    info->dest = &e->destination;
    (void)grow(info);
    info->image_width = e->image->width;
    info->image_height = e->image->height;
    info->input_components = (int)e->image->n_channels;
    info->in_color_space = e->image->n_channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(info);
    jpeg_set_quality(info, e->quality, TRUE);
    info->dct_method = JDCT_ISLOW;
    if (e->quality >= 90 && e->image->n_channels == 3) {
        info->comp_info[0].h_samp_factor = 1;
        info->comp_info[0].v_samp_factor = 1;
    }
    jpeg_start_compress(info, TRUE);
    while (info->next_scanline < info->image_height) {
        /* libjpeg only reads through this pointer, although it lacks the const. */
        JSAMPROW row = (JSAMPROW)e->image->data + info->next_scanline * row_bytes;

        (void)jpeg_write_scanlines(info, &row, 1);
    }
    jpeg_finish_compress(info);
}

enum vxd_status vxd_jpeg_encode(const struct vxd_image *image, int quality,
                                uint8_t **bytes, size_t *n_bytes, struct vxd_err *err)
{
    struct encoder e;
    enum vxd_status status;

    *bytes = NULL;
    *n_bytes = 0;
    memset(&e, 0, sizeof e);
    VXD_TRY(vxd_image_check_source(image, false, err));
    if (quality < 1 || quality > 100) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "quality",
                        "jpeg: the quality is %d; it is 1 to 100", quality);
    }
    e.image = image;
    e.quality = quality;
    e.info.err = set_handlers(&e.codec, err);
    e.info.client_data = &e.codec;
    run_encoder(&e);
    status = e.codec.status;
    jpeg_destroy_compress(&e.info);
    if (status == VXD_OK) {
        *n_bytes = e.n_bytes - e.destination.free_in_buffer;
        *bytes = e.bytes;
        e.bytes = NULL;
    }
out:
    free(e.bytes);
    return status;
}
