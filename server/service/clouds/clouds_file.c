// SPDX-License-Identifier: Apache-2.0
/* Reads a scan file that is the body of a POST. The reader says where the numbers are,
 * and the result is the same cloud that protobuf would have carried. */
#include <errno.h>
#include <stdlib.h>

#include "client/files/files.h"
#include "proto/base/utf8.h"
#include "server/service/clouds/clouds.h"
#include "server/service/service.h"

enum vxd_status vxd_query_fail(struct vxd_err *err, const struct vxd_query_item *item,
                               const char *expected)
{
    return vxd_fail(err, VXD_INVALID_ARGUMENT, item->key, "is \"%.60s\", it must be %s",
                    item->value, expected);
}

size_t vxd_query_numbers(const char *text, double *out, size_t most)
{
    for (size_t n = 0; n < most; n++) {
        char *end;

        out[n] = strtod(text, &end);
        if (end == text) {
            return 0;
        }
        if (*end == '\0') {
            return n + 1;
        }
        if (*end != ',') {
            return 0;
        }
        text = end + 1;
    }
    return 0;
}

enum vxd_status vxd_query_text(struct vxd_decoder *decoder,
                               const struct vxd_query_item *item, char **out,
                               struct vxd_err *err)
{
    *out = vxd_message_text(decoder, item->value, strlen(item->value), err);
    return *out != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;
}

enum vxd_status vxd_query_names(struct vxd_decoder *decoder,
                                const struct vxd_query_item *item, size_t most,
                                const char *expected, char ***out, size_t *n,
                                struct vxd_err *err)
{
    const char *text = item->value;

    *out = vxd_message_pointers(decoder, most, err);
    if (*out == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (*n = 0;;) {
        size_t n_bytes = strcspn(text, ",");
        char *name;

        if (n_bytes == 0 || *n == most) {
            return vxd_query_fail(err, item, expected);
        }
        name = vxd_message_text(decoder, text, n_bytes, err);
        if (name == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        (*out)[(*n)++] = name;
        if (text[n_bytes] == '\0') {
            return VXD_OK;
        }
        text += n_bytes + 1;
    }
}

static enum vxd_status take_frame_id(struct vxd_decoder *decoder,
                                     const struct vxd_query_item *item,
                                     Voxeld__V1__Cloud *cloud, struct vxd_err *err)
{
    /* It must be UTF-8, since the reply echoes it in a string. */
    if (!vxd_utf8_is_valid(item->value, strlen(item->value))) {
        return vxd_query_fail(err, item, "UTF-8");
    }
    return vxd_query_text(decoder, item, &cloud->frame_id, err);
}

static enum vxd_status take_stamp(const struct vxd_query_item *item,
                                  Voxeld__V1__Cloud *cloud, struct vxd_err *err)
{
    char *end;
    long long value;

    errno = 0;
    value = strtoll(item->value, &end, 10);
    if (end == item->value || *end != '\0' || errno != 0) {
        return vxd_query_fail(err, item, "a whole number of nanoseconds");
    }
    cloud->stamp_ns = value;
    return VXD_OK;
}

/* Describes the file's layout by the message's fields. */
static enum vxd_status take_fields(struct vxd_decoder *decoder,
                                   const struct vxd_cloud_file *file,
                                   Voxeld__V1__Cloud *cloud, struct vxd_err *err)
{
    cloud->fields = vxd_message_pointers(decoder, file->n_fields, err);
    if (cloud->fields == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < file->n_fields; i++) {
        const struct vxd_file_field *from = &file->fields[i];
        Voxeld__V1__Field *field =
            vxd_message_new(decoder, &voxeld__v1__field__descriptor, err);

        if (field == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        field->name = vxd_message_text(decoder, from->name, strlen(from->name), err);
        if (field->name == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        field->offset = from->offset;
        field->dtype = (Voxeld__V1__DType)from->dtype;
        field->scale = from->scale;
        field->bias = from->bias;
        cloud->fields[i] = field;
    }
    cloud->n_fields = file->n_fields;
    cloud->point_step = file->point_step;
    return VXD_OK;
}

/* Points that the reader had to unpack are copied into the decoder (page-locked on a
 * GPU); others stay in the body. */
static enum vxd_status take_points(struct vxd_decoder *decoder,
                                   const struct vxd_cloud_file *file,
                                   Voxeld__V1__Cloud *cloud, struct vxd_err *err)
{
    size_t n_bytes = file->n_points * file->point_step;

    cloud->data.len = n_bytes;
    /* The schema's field is not const; nobody writes to it. */
    cloud->data.data = (uint8_t *)(uintptr_t)file->data;
    if (file->owned == NULL || n_bytes == 0) {
        return VXD_OK;
    }
    cloud->data.data = vxd_decoder_alloc(decoder, n_bytes, err);
    if (cloud->data.data == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    memcpy(cloud->data.data, file->data, n_bytes);
    return VXD_OK;
}

static enum vxd_status read_file(struct vxd_request *request, const struct vxd_body *body,
                                 Voxeld__V1__Cloud *cloud, struct vxd_err *err)
{
    struct vxd_decoder *decoder = request->decoder;
    struct vxd_cloud_file *file = calloc(1, sizeof *file);
    size_t used = vxd_decoder_used_bytes(decoder);
    enum vxd_status status;

    if (file == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a file");
    }
    VXD_TRY(vxd_cloud_file_parse(body->format, body->bytes, body->n_bytes,
                                 (size_t)request->decoder_bytes - used, file, err));
    VXD_TRY(take_fields(decoder, file, cloud, err));
    VXD_TRY(take_points(decoder, file, cloud, err));
out:
    vxd_cloud_file_clear(file);
    free(file);
    return status;
}

/* Lists all keys of the query, as "size, range". */
static enum vxd_status refuse_key(const struct vxd_query_keys *keys,
                                  const struct vxd_query_item *item, struct vxd_err *err)
{
    char known[sizeof err->message] = "";
    size_t n = 0;

    for (size_t i = 0; i < keys->n_keys && n < sizeof known; i++) {
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i > 0 ? ", " : "",
                              keys->keys[i].key);
    }
    return vxd_fail(
        err, VXD_INVALID_ARGUMENT, item->key,
        "is no key of the query; known: format, %s, frame_id, stamp_ns, min_range, body",
        known);
}

static enum vxd_status take_item(struct vxd_decoder *decoder, const struct vxd_body *body,
                                 size_t index, const struct vxd_query_keys *keys,
                                 Voxeld__V1__Cloud *cloud, struct vxd_err *err)
{
    const struct vxd_query_item *item = &body->query[index];

    /* The transport has used this key already. */
    if (strcmp(item->key, "format") == 0) {
        return VXD_OK;
    }
    for (size_t i = 0; i < index; i++) {
        if (strcmp(body->query[i].key, item->key) == 0) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, item->key, "is given twice");
        }
    }
    for (size_t i = 0; i < keys->n_keys; i++) {
        if (strcmp(keys->keys[i].key, item->key) == 0) {
            return keys->keys[i].take(keys->query, item);
        }
    }
    if (strcmp(item->key, "frame_id") == 0) {
        return take_frame_id(decoder, item, cloud, err);
    }
    if (strcmp(item->key, "stamp_ns") == 0) {
        return take_stamp(item, cloud, err);
    }
    if (strcmp(item->key, "min_range") == 0) {
        return vxd_clouds_take_min_range(decoder, item, cloud, err);
    }
    if (strcmp(item->key, "body") == 0) {
        return vxd_clouds_take_body(decoder, item, cloud, err);
    }
    return refuse_key(keys, item, err);
}

enum vxd_status vxd_cloud_from_body(struct vxd_request *request,
                                    const struct vxd_body *body,
                                    const struct vxd_query_keys *keys,
                                    Voxeld__V1__Cloud ***out, struct vxd_err *err)
{
    struct vxd_decoder *decoder = request->decoder;
    Voxeld__V1__Cloud *cloud =
        vxd_message_new(decoder, &voxeld__v1__cloud__descriptor, err);
    enum vxd_status status = VXD_OK;

    *out = cloud != NULL ? vxd_message_pointers(decoder, 1, err) : NULL;
    if (*out == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    (*out)[0] = cloud;
    for (size_t i = 0; i < body->n_query; i++) {
        VXD_TRY(take_item(decoder, body, i, keys, cloud, err));
    }
    VXD_TRY(read_file(request, body, cloud, err));
out:
    return status;
}
