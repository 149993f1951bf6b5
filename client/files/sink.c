// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "client/files/writer.h"

enum {
    BUFFER_BYTES = 65536,
    TEXT_BYTES = 256
};

enum vxd_status vxd_sink_open(struct vxd_sink *sink, FILE *stream, struct vxd_err *err)
{
    memset(sink, 0, sizeof *sink);
    sink->stream = stream;
    sink->buffer = malloc(BUFFER_BYTES);
    if (sink->buffer == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "out", "no memory for %d bytes",
                        BUFFER_BYTES);
    }
    return VXD_OK;
}

static void flush(struct vxd_sink *sink)
{
    sink->crc = (uint32_t)crc32_z(sink->crc, sink->buffer, sink->used);
    if (sink->stream != NULL && sink->failure == 0 &&
        fwrite(sink->buffer, 1, sink->used, sink->stream) != sink->used) {
        sink->failure = errno != 0 ? errno : EIO;
    }
    sink->used = 0;
}

enum vxd_status vxd_sink_close(struct vxd_sink *sink, enum vxd_status status,
                               struct vxd_err *err)
{
    if (status == VXD_OK) {
        flush(sink);
        if (sink->stream != NULL && sink->failure == 0 && fflush(sink->stream) != 0) {
            sink->failure = errno != 0 ? errno : EIO;
        }
    }
    free(sink->buffer);
    sink->buffer = NULL;
    if (status == VXD_OK && sink->failure != 0) {
        return vxd_fail(err, VXD_UNAVAILABLE, "out", "cannot write: %s",
                        strerror(sink->failure));
    }
    return status;
}

void vxd_sink_put(struct vxd_sink *sink, const void *bytes, size_t n_bytes)
{
    const uint8_t *p = bytes;

    sink->n_bytes += n_bytes;
    while (n_bytes > 0) {
        size_t n_free = BUFFER_BYTES - sink->used;
        size_t n = n_bytes < n_free ? n_bytes : n_free;

        memcpy(sink->buffer + sink->used, p, n);
        sink->used += n;
        p += n;
        n_bytes -= n;
        if (sink->used == BUFFER_BYTES) {
            flush(sink);
        }
    }
}

void vxd_sink_put_u16(struct vxd_sink *sink, uint16_t value)
{
    const uint8_t bytes[2] = {(uint8_t)(value & 0xff), (uint8_t)(value >> 8)};

    vxd_sink_put(sink, bytes, sizeof bytes);
}

void vxd_sink_put_u32(struct vxd_sink *sink, uint32_t value)
{
    vxd_sink_put_u16(sink, (uint16_t)(value & 0xffff));
    vxd_sink_put_u16(sink, (uint16_t)(value >> 16));
}

void vxd_sink_print(struct vxd_sink *sink, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n > 0) {
        vxd_sink_put(sink, text, n < TEXT_BYTES ? (size_t)n : TEXT_BYTES - 1);
    }
}

uint32_t vxd_sink_take_crc(struct vxd_sink *sink)
{
    uint32_t crc;

    flush(sink);
    crc = sink->crc;
    sink->crc = 0;
    return crc;
}
