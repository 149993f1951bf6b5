// SPDX-License-Identifier: Apache-2.0
/* Reads a scan file that is the body of a POST. The reader says where the numbers are,
 * and the result is the same cloud that protobuf would have carried. */
#include <errno.h>
#include <stdlib.h>

#include "client/files/files.h"
#include "proto/base/utf8.h"
#include "server/service/clouds/clouds.h"
#include "server/service/service.h"

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

static enum vxd_status take_item(struct vxd_decoder *decoder, const struct vxd_body *body,
                                 size_t index, const struct vxd_query_keys *keys,
                                 Voxeld__V1__Cloud *cloud, struct vxd_err *err)
{
    const struct vxd_query_item *item = &body->query[index];
    bool is_known;
    enum vxd_status status = vxd_query_take(decoder, body, index, keys, &is_known, err);

    if (status != VXD_OK || is_known) {
        return status;
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
    return vxd_query_refuse(keys, ", frame_id, stamp_ns, min_range, body", item, err);
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
