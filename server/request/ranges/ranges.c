// SPDX-License-Identifier: Apache-2.0
#include "server/request/ranges/ranges.h"

#include <math.h>
#include <stdio.h>

/* Where a message stands in its request. */
struct place {
    const struct place *within; /* NULL: it is the request */
    const char *name;
    size_t i;
    bool is_in_list;
};

/* Writes the path of a field, "edges[2].width". Messages contain each other a few levels deep only:
 * the schema has no recursive ones. */
static void write_path(const struct place *place, const char *name, char *out, size_t n)
{
    const struct place *places[16];
    size_t n_places = 0;
    size_t at = 0;

    for (; place != NULL && place->within != NULL && n_places < 16;
         place = place->within) {
        places[n_places++] = place;
    }
    while (n_places > 0 && at < n) {
        const struct place *p = places[--n_places];

        at +=
            (size_t)(p->is_in_list ? snprintf(out + at, n - at, "%s[%zu].", p->name, p->i)
                                   : snprintf(out + at, n - at, "%s.", p->name));
    }
    if (at < n) {
        (void)snprintf(out + at, n - at, "%s", name);
    }
}

/* Writes the words of an enum, "FP32, FP16". */
static void write_words(const ProtobufCEnumDescriptor *words, char *out, size_t n)
{
    size_t at = 0;

    out[0] = '\0';
    for (unsigned i = 0; i < words->n_values && at < n; i++) {
        at += (size_t)snprintf(out + at, n - at, "%s%s", i > 0 ? ", " : "",
                               words->values[i].name);
    }
}

/* A field that is no message, as a number. protobuf-c keeps enums as ints. */
static double number_of(const struct vxd_field_range *range, const void *at)
{
    switch (range->kind) {
    case VXD_RANGE_DOUBLE:
        return *(const double *)at;
    case VXD_RANGE_FLOAT:
        return (double)*(const float *)at;
    case VXD_RANGE_UINT32:
        return (double)*(const uint32_t *)at;
    case VXD_RANGE_UINT64:
        return (double)*(const uint64_t *)at;
    default:
        return (double)*(const int *)at;
    }
}

/* NaN is in no range. */
static bool is_right(const struct vxd_field_range *range, double value)
{
    if (range->kind == VXD_RANGE_ENUM) {
        return protobuf_c_enum_descriptor_get_value(range->words, (int)value) != NULL;
    }
    for (size_t i = 0; i < range->n_numbers; i++) {
        if ((double)range->numbers[i] == value) {
            return true;
        }
    }
    return range->n_numbers == 0 && isfinite(value) && value >= range->low &&
           value <= range->high && !(range->without_low && value == range->low) &&
           !(range->without_high && value == range->high);
}

static enum vxd_status fail(const struct vxd_field_range *range,
                            const struct place *place, double value, struct vxd_err *err)
{
    bool is_whole = range->kind != VXD_RANGE_DOUBLE && range->kind != VXD_RANGE_FLOAT;
    char path[96];
    char words[160];
    char text[32];

    write_path(place, range->name, path, sizeof path);
    (void)snprintf(text, sizeof text, is_whole ? "%.0f" : "%g", value);
    if (range->kind != VXD_RANGE_ENUM) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, path, "is %s, it must be %s", text,
                        range->right);
    }
    write_words(range->words, words, sizeof words);
    return vxd_fail(err, VXD_INVALID_ARGUMENT, path, "is %s; known: %s", text, words);
}

static enum vxd_status check_message(const struct vxd_message_ranges *ranges,
                                     const ProtobufCMessage *message,
                                     const struct place *place, struct vxd_err *err);

static enum vxd_status check_messages(const struct vxd_field_range *range,
                                      const char *base, const struct place *place,
                                      struct vxd_err *err)
{
    struct place inner = {place, range->name, 0, range->kind == VXD_RANGE_MESSAGES};
    ProtobufCMessage *const *items = (const void *)(base + range->offset);
    size_t n = 1;

    if (inner.is_in_list) {
        n = *(const size_t *)(const void *)(base + range->count_offset);
        items = *(ProtobufCMessage *const *const *)(const void *)(base + range->offset);
    }
    for (; inner.i < n; inner.i++) {
        enum vxd_status status = check_message(range->inner, items[inner.i], &inner, err);

        if (status != VXD_OK) {
            return status;
        }
    }
    return VXD_OK;
}

static enum vxd_status check_message(const struct vxd_message_ranges *ranges,
                                     const ProtobufCMessage *message,
                                     const struct place *place, struct vxd_err *err)
{
    const char *base = (const char *)message;

    for (size_t i = 0; message != NULL && i < ranges->n; i++) {
        const struct vxd_field_range *range = &ranges->fields[i];
        enum vxd_status status = VXD_OK;

        if (range->inner != NULL) {
            status = check_messages(range, base, place, err);
        } else {
            double value = number_of(range, base + range->offset);

            status = is_right(range, value) ? VXD_OK : fail(range, place, value, err);
        }
        if (status != VXD_OK) {
            return status;
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_ranges_check(const ProtobufCMessage *request, struct vxd_err *err)
{
    const struct place whole = {0};

    for (size_t i = 0; i < vxd_n_request_ranges; i++) {
        if (vxd_request_ranges[i].message == request->descriptor) {
            return check_message(vxd_request_ranges[i].ranges, request, &whole, err);
        }
    }
    return VXD_OK;
}
