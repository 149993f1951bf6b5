// SPDX-License-Identifier: Apache-2.0
/* Records of durable pose graphs: whatever the bytes, either a change that can be packed again, to bytes
 * that say the same, or a reason. */
#include <assert.h>
#include <string.h>

#include "server/durable/record/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vxd_posegraph_record_decoded first, second;
    struct vxd_record_bytes bytes = {0};
    struct vxd_record_bytes again = {0};
    struct vxd_err err = {0};

    if (vxd_posegraph_record_decode(data, size, VXD_POSEGRAPH_RULES_VERSION, 1 << 24,
                                    &first, &err) != VXD_OK) {
        assert(err.code != VXD_OK && err.message[0] != '\0');
        return 0;
    }
    assert(vxd_posegraph_record_encode(&first.record, &bytes, &err) == VXD_OK);
    assert(vxd_posegraph_record_decode(bytes.bytes, bytes.n_bytes,
                                       VXD_POSEGRAPH_RULES_VERSION, 0, &second,
                                       &err) == VXD_OK);
    assert(vxd_posegraph_record_encode(&second.record, &again, &err) == VXD_OK);
    assert(again.n_bytes == bytes.n_bytes &&
           memcmp(again.bytes, bytes.bytes, bytes.n_bytes) == 0);
    vxd_record_bytes_free(&bytes);
    vxd_record_bytes_free(&again);
    vxd_posegraph_record_decoded_free(&first);
    vxd_posegraph_record_decoded_free(&second);
    return 0;
}
