// SPDX-License-Identifier: Apache-2.0
/* What requests say of things that are to be made. */
#include <inttypes.h>

#include "server/instance/instance.h"
#include "server/service/service.h"
#include "server/service/noun/noun.h"

enum vxd_status vxd_noun_check_name(const char *name, const char *field,
                                    struct vxd_err *err)
{
    return vxd_is_name(name) ? VXD_OK
                             : vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                                        "\"%.63s\" is no name: " VXD_NAME_RULE, name);
}

enum vxd_status vxd_noun_begin_check(struct vxd_request *request, size_t n_bytes,
                                     const char *name, struct vxd_err *err)
{
    enum vxd_status status = vxd_noun_check_name(name, "name", err);

    if (status == VXD_OK) {
        request->state = vxd_message_array(request->decoder, 1, n_bytes, err);
        status = request->state != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;
    }
    return status;
}

enum vxd_status vxd_noun_read_durability(const struct vxd_request *request,
                                         const struct vxd_noun_durability *wished,
                                         struct vxd_named_terms *terms,
                                         struct vxd_err *err)
{
    if (!wished->durable) {
        return wished->fsync == VXD_FSYNC_ALWAYS && wished->journal_max_bytes == 0
                   ? VXD_OK
                   : vxd_fail(err, VXD_INVALID_ARGUMENT,
                              wished->journal_max_bytes > 0 ? "journal_max_bytes"
                                                            : "fsync",
                              "goes with durable");
    }
    if (vxd_registry_get_journal(request->server->registry) == NULL) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "durable",
                        "the server keeps nothing: it has no data_dir");
    }
    if (terms->ttl_ns > 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "ttl_s",
                        "must be 0 of a durable %s, which lasts until it is dropped",
                        wished->one);
    }
    if (wished->journal_max_bytes > VXD_JOURNAL_MAX_BYTES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "journal_max_bytes",
                        "is %" PRIu64 ", at most 2^63 - 1 is possible",
                        wished->journal_max_bytes);
    }
    terms->durable = true;
    terms->fsync = (enum vxd_fsync)wished->fsync;
    terms->journal_max_bytes = wished->journal_max_bytes > 0 ? wished->journal_max_bytes
                                                             : VXD_NAMED_JOURNAL_BYTES;
    return VXD_OK;
}

void vxd_noun_compare_terms(const struct vxd_named_terms *has,
                            const struct vxd_named_terms *wished,
                            struct vxd_differing *differing)
{
    vxd_differing_number(differing, "max_bytes", (double)has->max_bytes,
                         (double)wished->max_bytes);
    vxd_differing_number(differing, "ttl_s", (double)has->ttl_ns / 1e9,
                         (double)wished->ttl_ns / 1e9);
    vxd_differing_other(differing, "when_full", has->forgets != wished->forgets);
    vxd_differing_flag(differing, "durable", has->durable, wished->durable);
    if (has->durable && wished->durable) {
        vxd_differing_other(differing, "fsync", has->fsync != wished->fsync);
        vxd_differing_number(differing, "journal_max_bytes",
                             (double)has->journal_max_bytes,
                             (double)wished->journal_max_bytes);
    }
}
