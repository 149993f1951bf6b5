// SPDX-License-Identifier: Apache-2.0
/* traceparent: whatever the text, either none, or a trace that is written as the specification wants
 * and read again as the same one. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/observe/observe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vxd_trace trace;
    struct vxd_trace again;
    char written[VXD_TRACEPARENT_BYTES];
    char *text = malloc(size + 1);

    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    if (!vxd_trace_read(text, size, &trace)) {
        vxd_trace_write(&trace, written);
        assert(written[0] == '\0');
    } else {
        assert(strncmp(text + 3, trace.trace_id, 32) == 0);
        assert(strncmp(text + 36, trace.parent_id, 16) == 0);
        vxd_trace_write(&trace, written);
        assert(strlen(written) == VXD_TRACEPARENT_BYTES - 1);
        assert(vxd_trace_read(written, 1, &again));
        assert(strcmp(again.trace_id, trace.trace_id) == 0);
        assert(strcmp(again.parent_id, trace.span_id) == 0);
    }
    free(text);
    return 0;
}
