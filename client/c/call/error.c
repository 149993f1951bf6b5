// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "client/c/call/client_internal.h"

/* Both enums are gRPC's numbers, so a cast converts them. */
_Static_assert((int)VOXELD_CANCELLED == (int)VXD_CANCELLED &&
                   (int)VOXELD_UNAUTHENTICATED == (int)VXD_UNAUTHENTICATED,
               "one set of numbers");
_Static_assert((int)VOXELD_FLOAT32 == (int)VXD_FLOAT32 &&
                   (int)VOXELD_BFLOAT16 == (int)VXD_BFLOAT16,
               "one set of numbers");

#define VERSION_TEXT_(major, minor, patch) #major "." #minor "." #patch
#define VERSION_TEXT(major, minor, patch) VERSION_TEXT_(major, minor, patch)

const char *voxeld_version(void)
{
    return VERSION_TEXT(VOXELD_VERSION_MAJOR, VOXELD_VERSION_MINOR, VOXELD_VERSION_PATCH);
}

const char *voxeld_status_name(enum voxeld_status status)
{
    static const char *const names[] = {
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    };
    size_t i = (size_t)status;

    return i < sizeof names / sizeof names[0] ? names[i] : names[VOXELD_UNKNOWN];
}

enum voxeld_status vxd_client_error(const struct vxd_err *err, const char *request_id,
                                    struct voxeld_error *error)
{
    if (error != NULL) {
        error->code = (enum voxeld_status)err->code;
        (void)snprintf(error->field, sizeof error->field, "%s", err->field);
        (void)snprintf(error->message, sizeof error->message, "%s", err->message);
        (void)snprintf(error->request_id, sizeof error->request_id, "%s", request_id);
        error->sequence = 0;
    }
    return (enum voxeld_status)err->code;
}

enum voxeld_status vxd_client_change_error(const struct vxd_err *err,
                                           const char *request_id, uint64_t sequence,
                                           struct voxeld_error *error)
{
    enum voxeld_status status = vxd_client_error(err, request_id, error);

    if (error != NULL) {
        error->sequence = sequence;
    }
    return status;
}

enum vxd_status vxd_client_nng_error(int result, const char *what, struct vxd_err *err)
{
    enum vxd_status code = VXD_INTERNAL;

    switch (result) {
    case NNG_ETIMEDOUT:
        code = VXD_DEADLINE_EXCEEDED;
        break;
    case NNG_ECANCELED:
        code = VXD_CANCELLED;
        break;
    case NNG_ENOMEM:
    case NNG_ENOFILES:
    case NNG_EMSGSIZE:
        code = VXD_RESOURCE_EXHAUSTED;
        break;
    case NNG_EADDRINVAL:
    case NNG_EINVAL:
    case NNG_ENOTSUP:
        code = VXD_INVALID_ARGUMENT;
        break;
    case NNG_ECONNREFUSED:
    case NNG_ECONNRESET:
    case NNG_ECONNABORTED:
    case NNG_ECONNSHUT:
    case NNG_ECLOSED:
    case NNG_ENOENT:
    case NNG_EUNREACHABLE:
        code = VXD_UNAVAILABLE;
        break;
    default:
        break;
    }
    return vxd_fail(err, code, NULL, "%s: %s", what, nng_strerror(result));
}
