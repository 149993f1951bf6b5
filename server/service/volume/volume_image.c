// SPDX-License-Identifier: Apache-2.0
/* Images and scans into volumes: room for their blocks, and what the journal keeps of images. */
#include <stdlib.h>

#include "server/instance/instance.h"
#include "server/service/volume/volume_service.h"

/* Makes room in a volume that forgets, where it was full: what was forgotten is in the commit's
 * record. Returns whether anything was, so that trying again makes sense. */
static bool make_space(struct vxd_request *request, struct vxd_queue *queue,
                       enum vxd_status status, const double sensor[3])
{
    struct vxd_volume_job *job = request->state;
    struct vxd_volume_record *record = &job->commit.entry.record;
    struct vxd_err why = {0};

    if (!job->volume->named.terms.forgets || status != VXD_RESOURCE_EXHAUSTED ||
        vxd_volume_forget_farthest(queue, job->volume->state.volume, sensor,
                                   &job->forgotten, &record->n_forgotten,
                                   &why) != VXD_OK) {
        return false;
    }
    record->forgotten = job->forgotten;
    return record->n_forgotten > 0;
}

enum vxd_status vxd_volume_integrate_within(struct vxd_request *request,
                                            struct vxd_queue *queue,
                                            const struct vxd_volume_frame *frame,
                                            struct vxd_volume_activation *out,
                                            struct vxd_err *err)
{
    struct vxd_volume_job *job = request->state;
    struct vxd_named_volume *volume = job->volume;
    struct vxd_names *volumes = request->server->volumes;
    enum vxd_status status;

    vxd_named_volume_allow(volume);
    status = vxd_volume_integrate(queue, volume->state.volume, frame, out, err);
    if (make_space(request, queue, status, frame->T_map_camera.translation)) {
        status = vxd_volume_integrate(queue, volume->state.volume, frame, out, err);
    }
    if (status != VXD_OK) {
        vxd_names_explain(volumes, &volume->named.terms, &volume->named, err);
    }
    return status;
}

enum vxd_status vxd_volume_scan_within(struct vxd_request *request,
                                       struct vxd_queue *queue,
                                       const struct vxd_volume_scan *scan,
                                       struct vxd_volume_scan_result *out,
                                       struct vxd_err *err)
{
    struct vxd_volume_job *job = request->state;
    struct vxd_named_volume *volume = job->volume;
    struct vxd_names *volumes = request->server->volumes;
    enum vxd_status status;

    vxd_named_volume_allow(volume);
    status = vxd_volume_integrate_scan(queue, volume->state.volume, scan, out, err);
    if (make_space(request, queue, status, scan->T_map_sensor.translation)) {
        status = vxd_volume_integrate_scan(queue, volume->state.volume, scan, out, err);
    }
    if (status != VXD_OK) {
        vxd_names_explain(volumes, &volume->named.terms, &volume->named, err);
    }
    return status;
}

/* Whether a file gives the same pixels whoever decodes it: a PNG of so many channels, which is kept
 * as it came. The pixels of others are kept. */
static bool is_kept(const ProtobufCBinaryData *file, uint32_t n_channels)
{
    struct vxd_image head;

    return file->len > 0 && vxd_image_format_of(file->data, file->len) == VXD_IMAGE_PNG &&
           vxd_image_read_head(file->data, file->len, &head, NULL) == VXD_OK &&
           head.n_channels == n_channels;
}

static void keep(const ProtobufCBinaryData *file, uint32_t n_channels, const void *pixels,
                 size_t n_bytes, struct vxd_record_image *out)
{
    bool is_file = is_kept(file, n_channels);

    out->form = is_file ? VXD_RECORD_PIXELS_PNG : VXD_RECORD_PIXELS_RAW;
    out->bytes = is_file ? file->data : pixels;
    out->n_bytes = is_file ? file->len : n_bytes;
}

void vxd_volume_keep_image(struct vxd_request *request,
                           const struct vxd_volume_frame *frame,
                           const ProtobufCBinaryData *depth_file,
                           const ProtobufCBinaryData *colour_file)
{
    struct vxd_volume_job *job = request->state;
    struct vxd_volume_record *record = &job->commit.entry.record;
    const struct vxd_volume_camera *camera = &frame->camera;
    const struct vxd_volume_camera *colour_camera =
        frame->has_colour_camera ? &frame->colour_camera : camera;

    if (frame->mask != NULL || frame->labels != NULL || frame->carve_m > 0 ||
        frame->deform != NULL || !job->commit.is_change) {
        return;
    }
    record->kind = VXD_VOLUME_RECORD_IMAGE;
    record->frame = *frame;
    keep(depth_file, 1, frame->depth,
         (size_t)camera->width * (size_t)camera->height * vxd_dtype_bytes(frame->dtype),
         &record->depth);
    if (frame->colour != NULL) {
        keep(colour_file, 3, frame->colour,
             3 * (size_t)colour_camera->width * (size_t)colour_camera->height,
             &record->colour);
    }
}
