// SPDX-License-Identifier: Apache-2.0
/* Names and HTTP statuses of the codes, as common.proto lists them. */
#include "server/request/request_life.h"
#include "voxeld/v1/common.pb-c.h"

int vxd_http_status(enum vxd_status code)
{
    switch (code) {
    case VXD_OK:
        return 200;
    case VXD_INVALID_ARGUMENT:
    case VXD_OUT_OF_RANGE:
        return 400;
    case VXD_UNAUTHENTICATED:
        return 401;
    case VXD_PERMISSION_DENIED:
        return 403;
    case VXD_NOT_FOUND:
        return 404;
    case VXD_ALREADY_EXISTS:
    case VXD_ABORTED:
        return 409;
    case VXD_FAILED_PRECONDITION:
        return 412;
    case VXD_RESOURCE_EXHAUSTED:
        return 429;
    case VXD_CANCELLED:
        return 499;
    case VXD_UNIMPLEMENTED:
        return 501;
    case VXD_UNAVAILABLE:
        return 503;
    case VXD_DEADLINE_EXCEEDED:
        return 504;
    case VXD_UNKNOWN:
    case VXD_INTERNAL:
    case VXD_DATA_LOSS:
        break;
    }
    return 500;
}

const char *vxd_status_name(enum vxd_status code)
{
    const ProtobufCEnumValue *value =
        protobuf_c_enum_descriptor_get_value(&voxeld__v1__code__descriptor, (int)code);

    return value != NULL ? value->name : "UNKNOWN";
}
