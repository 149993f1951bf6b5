// SPDX-License-Identifier: Apache-2.0
/* What every layer shares: status codes, the error record, element types and
 * overflow-checked sizes. Pure C, no other header of ours. Installed with the
 * engine, never with the client. */
#ifndef VXD_PROTO_BASE_BASE_H
#define VXD_PROTO_BASE_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* gRPC's numbers; the same on the wire (voxeld.v1.Code) and in the client's API. */
enum vxd_status {
    VXD_OK = 0,
    VXD_CANCELLED = 1,
    VXD_UNKNOWN = 2,
    VXD_INVALID_ARGUMENT = 3,
    VXD_DEADLINE_EXCEEDED = 4,
    VXD_NOT_FOUND = 5,
    VXD_ALREADY_EXISTS = 6,
    VXD_PERMISSION_DENIED = 7,
    VXD_RESOURCE_EXHAUSTED = 8,
    VXD_FAILED_PRECONDITION = 9,
    VXD_ABORTED = 10,
    VXD_OUT_OF_RANGE = 11,
    VXD_UNIMPLEMENTED = 12,
    VXD_INTERNAL = 13,
    VXD_UNAVAILABLE = 14,
    VXD_DATA_LOSS = 15,
    VXD_UNAUTHENTICATED = 16
};

/* Whoever finds the fault fills this record; the caller owns it, and it is never
 * allocated. `field` names the offending input as the user wrote it
 * ("cloud.fields[2].offset"), or is empty where no single field is wrong. It is
 * untouched on success. */
struct vxd_err {
    enum vxd_status code;
    char field[96];
    char message[240];
};

/* Records a fault and returns its code, so that `return vxd_fail(...)` reads well.
 * `err` may be NULL (the caller wants the code only); `field` may be NULL. The message
 * says what was wrong and what would be right; longer ones are cut, never overflow. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
static inline enum vxd_status
vxd_fail(struct vxd_err *err, enum vxd_status code, const char *field, const char *format,
         ...)
{
    if (err != NULL) {
        va_list args;

        err->code = code;
        (void)snprintf(err->field, sizeof err->field, "%s", field != NULL ? field : "");
        va_start(args, format);
        (void)vsnprintf(err->message, sizeof err->message, format, args);
        va_end(args);
    }
    return code;
}

/* Clang's analyser does not look into variadic functions: it would follow a failure
 * that returned VXD_OK. */
#if defined(__clang_analyzer__)
#define vxd_fail(err, code, ...) (vxd_fail(err, code, __VA_ARGS__), (code))
#endif

/* Needs a local `enum vxd_status status` and a label `out:` that frees in reverse order.
 */
#define VXD_TRY(expression)                                                              \
    do {                                                                                 \
        status = (expression);                                                           \
        if (status != VXD_OK) {                                                          \
            goto out;                                                                    \
        }                                                                                \
    } while (0)

/* Element types of tensors and cloud fields; the wire's numbers (voxeld.v1.DType). */
enum vxd_dtype {
    VXD_DTYPE_UNSPECIFIED = 0,
    VXD_INT8 = 1,
    VXD_UINT8 = 2,
    VXD_INT16 = 3,
    VXD_UINT16 = 4,
    VXD_INT32 = 5,
    VXD_UINT32 = 6,
    VXD_FLOAT32 = 7,
    VXD_FLOAT64 = 8,
    VXD_INT64 = 9,
    VXD_UINT64 = 10,
    VXD_FLOAT16 = 11,
    VXD_BFLOAT16 = 12
};

/* Returns the bytes of one element, 0 for a value that is no element type. */
static inline size_t vxd_dtype_bytes(enum vxd_dtype dtype)
{
    switch (dtype) {
    case VXD_INT8:
    case VXD_UINT8:
        return 1;
    case VXD_INT16:
    case VXD_UINT16:
    case VXD_FLOAT16:
    case VXD_BFLOAT16:
        return 2;
    case VXD_INT32:
    case VXD_UINT32:
    case VXD_FLOAT32:
        return 4;
    case VXD_INT64:
    case VXD_UINT64:
    case VXD_FLOAT64:
        return 8;
    case VXD_DTYPE_UNSPECIFIED:
        break;
    }
    return 0;
}

/* Compute a * b and a + b; false on overflow, and then *out must not be used. */
static inline bool vxd_size_mul(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool vxd_size_add(size_t a, size_t b, size_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

#endif
