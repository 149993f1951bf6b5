// SPDX-License-Identifier: Apache-2.0
/* A scan file as the body of a POST: the reader says where the numbers lie, and out comes the
 * same cloud that protobuf would have carried. */
#include <errno.h>
#include <stdlib.h>

#include "client/files/cloud_file.h"
#include "proto/utf8.h"
#include "server/service/clouds.h"
#include "server/service/message.h"

enum vxd_status vxd_query_fail(struct vxd_err *err, const struct vxd_query_item *item,
                               const char *wanted)
{
    return vxd_fail(err, VXD_INVALID_ARGUMENT, item->key, "is \"%.60s\", it must be %s",
                    item->value, wanted);
}

static enum vxd_status take_frame_id(struct vxd_decoder *decoder,
                                     const struct vxd_query_item *item,
                                     Voxeld__V1__Cloud *cloud, struct vxd_err *err)
{
    size_t n_bytes = strlen(item->value);
    char *text;

    /* The reply echoes it, and no string of a message may be anything else. */
    if (!vxd_utf8_is_valid(item->value, n_bytes)) {
        return vxd_query_fail(err, item, "UTF-8");
    }
    text = vxd_message_text(decoder, item->value, n_bytes, err);
    if (text == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    cloud->frame_id = text;
    return VXD_OK;
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

bool vxd_cloud_is_query_key(const char *key)
{
    return strcmp(key, "frame_id") == 0 || strcmp(key, "stamp_ns") == 0;
}

enum vxd_status vxd_cloud_take_query(struct vxd_decoder *decoder,
                                     const struct vxd_query_item *item,
                                     Voxeld__V1__Cloud *cloud, struct vxd_err *err)
{
    return strcmp(item->key, "frame_id") == 0 ? take_frame_id(decoder, item, cloud, err)
                                              : take_stamp(item, cloud, err);
}

/* The file's layout as the message's fields. */
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

/* Points that the reader had to unpack move into the decoder (page-locked on a GPU), others
 * stay where they are in the body. */
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

enum vxd_status vxd_cloud_from_file(struct vxd_request *request, const char *format,
                                    const uint8_t *bytes, size_t n_bytes,
                                    Voxeld__V1__Cloud *cloud, struct vxd_err *err)
{
    struct vxd_cloud_file *file = calloc(1, sizeof *file);
    size_t used = vxd_decoder_used_bytes(request->decoder);
    enum vxd_status status;

    if (file == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a file");
    }
    VXD_TRY(vxd_cloud_file_parse(format, bytes, n_bytes,
                                 (size_t)request->decoder_bytes - used, file, err));
    VXD_TRY(take_fields(request->decoder, file, cloud, err));
    VXD_TRY(take_points(request->decoder, file, cloud, err));
out:
    vxd_cloud_file_clear(file);
    free(file);
    return status;
}
