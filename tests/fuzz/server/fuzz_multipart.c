// SPDX-License-Identifier: Apache-2.0
/* Multipart bodies: the first line of the input is a Content-Type, the rest the body. Either parts
 * that lie in the body, in order and apart, or a reason. */
#include <assert.h>
#include <string.h>

#include "server/request/request_life.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *line_end = size > 0 ? memchr(data, '\n', size) : NULL;
    struct vxd_body_part parts[VXD_BODY_MAX_PARTS];
    char boundary[VXD_BOUNDARY_BYTES];
    char type[256];
    struct vxd_err err = {0};
    const uint8_t *at;
    size_t n = line_end != NULL ? (size_t)(line_end - data) : 0;
    size_t n_parts = 0;
    enum vxd_status status;

    if (line_end == NULL || n >= sizeof type) {
        return 0;
    }
    memcpy(type, data, n);
    type[n] = '\0';
    if (!vxd_multipart_boundary(type, boundary)) {
        return 0;
    }
    assert(strlen(boundary) >= 1 && strlen(boundary) < VXD_BOUNDARY_BYTES);
    at = line_end + 1;
    status = vxd_multipart_split(at, size - n - 1, boundary, parts, &n_parts, &err);
    assert(n_parts <= VXD_BODY_MAX_PARTS);
    if (status != VXD_OK) {
        assert(err.code == status && err.message[0] != '\0');
        return 0;
    }
    assert(n_parts > 0);
    for (size_t i = 0; i < n_parts; i++) {
        assert(parts[i].name[0] != '\0' &&
               memchr(parts[i].name, '\0', sizeof parts[i].name) != NULL);
        assert(parts[i].bytes >= at && parts[i].bytes + parts[i].n_bytes <= data + size);
        at = parts[i].bytes + parts[i].n_bytes;
    }
    return 0;
}
