// SPDX-License-Identifier: Apache-2.0
/* Reads the envelope's top level field by field (proto/wire/wire_format.h). */
#include "proto/wire/decode.h"
#include "proto/wire/wire_format.h"
#include "voxeld/v1/rpc.pb-c.h"

enum {
    HEADER_FIELD = 1,
    FIRST_METHOD_FIELD = 10,
    MAX_FIELDS = 64
};

/* Skips one value; for length-delimited ones *body and *body_bytes are its content.
 */
static enum vxd_status read_value(struct vxd_wire_reader *r, uint32_t field,
                                  unsigned wire_type, const uint8_t **body,
                                  size_t *body_bytes, struct vxd_err *err)
{
    uint64_t value = 0;
    bool ok = false;

    switch (wire_type) {
    case PROTOBUF_C_WIRE_TYPE_VARINT:
        ok = vxd_wire_read_varint(r, VXD_WIRE_VARINT_BYTES, &value);
        break;
    case PROTOBUF_C_WIRE_TYPE_64BIT:
        ok = vxd_wire_skip(r, 8);
        break;
    case PROTOBUF_C_WIRE_TYPE_32BIT:
        ok = vxd_wire_skip(r, 4);
        break;
    case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
        if (!vxd_wire_read_varint(r, VXD_WIRE_VARINT_BYTES, &value)) {
            break;
        }
        *body = r->at;
        *body_bytes = (size_t)value;
        if (!vxd_wire_skip(r, value)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL,
                            "field %u of the request claims %llu bytes, %lld are left",
                            (unsigned)field, (unsigned long long)value,
                            (long long)(r->end - *body));
        }
        ok = true;
        break;
    default:
        return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL,
                        "field %u of the request has wire type %u (groups and unknown "
                        "types are not accepted)",
                        (unsigned)field, wire_type);
    }
    if (!ok) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL,
                        "field %u of the request is cut short or no valid number",
                        (unsigned)field);
    }
    return VXD_OK;
}

/* Records one field as header, method or neither. */
static enum vxd_status file_field(uint32_t field, unsigned wire_type, const uint8_t *body,
                                  size_t body_bytes, struct vxd_envelope *out,
                                  struct vxd_err *err)
{
    bool is_delimited = wire_type == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;

    if (!is_delimited) {
        const ProtobufCFieldDescriptor *known = protobuf_c_message_descriptor_get_field(
            &voxeld__v1__request__descriptor, field);

        if (known != NULL) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, known->name,
                            "has wire type %u; it is a message (2)", wire_type);
        }
        return VXD_OK;
    }
    if (field == HEADER_FIELD) {
        if (out->header != NULL) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "header",
                            "the request has two headers");
        }
        out->header = body;
        out->header_bytes = body_bytes;
    } else if (field >= FIRST_METHOD_FIELD) {
        if (out->body != NULL) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "method",
                            "the request has two methods, fields %u and %u",
                            (unsigned)out->method_tag, (unsigned)field);
        }
        out->method_tag = field;
        out->body = body;
        out->body_bytes = body_bytes;
    }
    return VXD_OK;
}

enum vxd_status vxd_envelope_scan(const uint8_t *message, size_t n_bytes,
                                  struct vxd_envelope *out, struct vxd_err *err)
{
    struct vxd_wire_reader r = {.at = message,
                                .end = message != NULL ? message + n_bytes : message};
    struct vxd_envelope found = {0};
    enum vxd_status status;
    int n_fields = 0;

    while (r.at < r.end) {
        const uint8_t *body = NULL;
        size_t body_bytes = 0;
        unsigned wire_type;
        uint32_t field;

        if (!vxd_wire_read_tag(&r, &field, &wire_type)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL,
                            "byte %zu of the request begins no field",
                            (size_t)(r.at - message));
        }
        n_fields++;
        if (n_fields > MAX_FIELDS) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL,
                            "the request has more than %d fields at its top level",
                            MAX_FIELDS);
        }
        VXD_TRY(read_value(&r, field, wire_type, &body, &body_bytes, err));
        VXD_TRY(file_field(field, wire_type, body, body_bytes, &found, err));
    }
    if (found.body == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "method", "the request has no method");
    }
    *out = found;
    status = VXD_OK;
out:
    return status;
}
