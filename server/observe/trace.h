// SPDX-License-Identifier: Apache-2.0
/* W3C Trace Context: the header traceparent, by which requests of several services are one trace. */
#ifndef VXD_SERVER_OBSERVE_TRACE_H
#define VXD_SERVER_OBSERVE_TRACE_H

#include "proto/base/base.h"

#define VXD_TRACE_ID_BYTES 33 /* with the NUL, as the next ones */
#define VXD_SPAN_ID_BYTES 17
#define VXD_TRACEPARENT_BYTES 56

/* Identifiers are lower-case hexadecimal, as on the wire. */
struct vxd_trace {
    char trace_id[VXD_TRACE_ID_BYTES]; /* "": the request is of no trace */
    char parent_id[VXD_SPAN_ID_BYTES]; /* the span that sent it */
    char span_id[VXD_SPAN_ID_BYTES];   /* the request's own */
    uint8_t flags;                     /* 1: sampled */
};

/* Reads a traceparent, NULL where there is none. What is malformed counts as none, as the
 * specification wants; a version above ours is read as far as ours goes. span_number makes the span
 * of the request's own: any number that others do not have. Returns whether it is of a trace. */
bool vxd_trace_read(const char *traceparent, uint64_t span_number, struct vxd_trace *out);

/* Writes the traceparent that names the request's own span; "" where it is of no trace. */
void vxd_trace_write(const struct vxd_trace *trace, char out[VXD_TRACEPARENT_BYTES]);

#endif
