// SPDX-License-Identifier: Apache-2.0
/* traceparent is VERSION-TRACEID-PARENTID-FLAGS of 2, 32, 16 and 2 digits. Source: W3C Trace Context
 * level 1, section 3.2. */
#include "server/observe/trace.h"

#include <inttypes.h>
#include <string.h>

#define N_VERSION 2
#define N_TRACE 32
#define N_SPAN 16
#define N_FLAGS 2
#define AT_TRACE (N_VERSION + 1)
#define AT_SPAN (AT_TRACE + N_TRACE + 1)
#define AT_FLAGS (AT_SPAN + N_SPAN + 1)
#define N_ALL (AT_FLAGS + N_FLAGS)

static bool is_hex(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f'))) {
            return false;
        }
    }
    return true;
}

static bool is_zero(const char *text, size_t n)
{
    return strspn(text, "0") >= n;
}

static unsigned digit_of(char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a') + 10;
}

static bool is_well_formed(const char *text)
{
    size_t n = strnlen(text, N_ALL + 1);
    bool is_ours = strncmp(text, "00", N_VERSION) == 0;

    return n >= N_ALL && is_hex(text, N_VERSION) && strncmp(text, "ff", N_VERSION) != 0 &&
           text[N_VERSION] == '-' && is_hex(text + AT_TRACE, N_TRACE) &&
           text[AT_TRACE + N_TRACE] == '-' && is_hex(text + AT_SPAN, N_SPAN) &&
           text[AT_SPAN + N_SPAN] == '-' && is_hex(text + AT_FLAGS, N_FLAGS) &&
           (text[N_ALL] == '\0' || (!is_ours && text[N_ALL] == '-')) &&
           !is_zero(text + AT_TRACE, N_TRACE) && !is_zero(text + AT_SPAN, N_SPAN);
}

/* Spreads a number over all bits, each number to another one (splitmix64). */
static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

bool vxd_trace_read(const char *traceparent, uint64_t span_number, struct vxd_trace *out)
{
    uint64_t span = mix(span_number);

    *out = (struct vxd_trace){0};
    if (traceparent == NULL || !is_well_formed(traceparent)) {
        return false;
    }
    memcpy(out->trace_id, traceparent + AT_TRACE, N_TRACE);
    memcpy(out->parent_id, traceparent + AT_SPAN, N_SPAN);
    out->flags = (uint8_t)(16 * digit_of(traceparent[AT_FLAGS]) +
                           digit_of(traceparent[AT_FLAGS + 1]));
    (void)snprintf(out->span_id, sizeof out->span_id, "%016" PRIx64,
                   span != 0 ? span : 1);
    return true;
}

void vxd_trace_write(const struct vxd_trace *trace, char out[VXD_TRACEPARENT_BYTES])
{
    out[0] = '\0';
    if (trace->trace_id[0] != '\0') {
        /* Flags that this version does not know are not passed on. */
        (void)snprintf(out, VXD_TRACEPARENT_BYTES, "00-%s-%s-%02x", trace->trace_id,
                       trace->span_id, trace->flags & 1u);
    }
}
