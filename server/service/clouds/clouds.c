// SPDX-License-Identifier: Apache-2.0
#include "server/service/clouds/clouds.h"

#include "server/service/service.h"

/* Checks one item: the cloud and its sweeps. *scratch is one engine cloud that is reused
 * for all. */
static enum vxd_status check_cloud(struct vxd_clouds *clouds, size_t index,
                                   struct vxd_cloud *scratch, uint64_t *n_points,
                                   struct vxd_err *err)
{
    const Voxeld__V1__Cloud *cloud = clouds->clouds[index];

    for (size_t i = 0; i <= cloud->n_sweeps; i++) {
        struct vxd_source source = {index, i > 0, i > 0 ? i - 1 : 0};
        enum vxd_status status;

        if (++clouds->n_sources > VXD_CLOUDS_MAX_SOURCES) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "clouds",
                            "have more than %d clouds and sweeps in all",
                            VXD_CLOUDS_MAX_SOURCES);
        }
        /* Names are compared pair by pair, which would take seconds without a limit. */
        clouds->n_fields += i == 0 ? cloud->n_fields : cloud->sweeps[i - 1]->n_fields;
        if (clouds->n_fields > VXD_CLOUDS_ALL_FIELDS) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "clouds",
                            "have more than %d fields in all", VXD_CLOUDS_ALL_FIELDS);
        }
        status = vxd_source_build(clouds, &source, scratch, err);
        if (status != VXD_OK) {
            return status;
        }
        *n_points += scratch->n_points;
        if (*n_points > INT32_MAX) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "clouds",
                            "have more than %d points in all", INT32_MAX);
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_clouds_check(struct vxd_request *request, struct vxd_clouds *clouds,
                                 struct vxd_err *err)
{
    struct vxd_cloud scratch = {0};
    uint64_t n_points = 0;
    enum vxd_status status = VXD_OK;

    clouds->starts = vxd_message_array(request->decoder, clouds->n_clouds + 1,
                                       sizeof *clouds->starts, err);
    if (clouds->starts == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < clouds->n_clouds; i++) {
        VXD_TRY(check_cloud(clouds, i, &scratch, &n_points, err));
        clouds->starts[i + 1] = (uint32_t)n_points;
    }
    VXD_TRY(vxd_clouds_check_body(request, clouds, err));
    clouds->uploads = vxd_message_array(request->decoder, clouds->n_sources,
                                        sizeof *clouds->uploads, err);
    if (clouds->uploads == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    clouds->n_points = (size_t)n_points;
out:
    return status;
}

void vxd_clouds_name_one(struct vxd_err *err)
{
    static const char list[] = "clouds[0]";
    char field[sizeof err->field];

    if (err == NULL) {
        return;
    }
    if (strncmp(err->field, list, sizeof list - 1) == 0) {
        (void)snprintf(field, sizeof field, "cloud%s", err->field + sizeof list - 1);
        memcpy(err->field, field, sizeof field);
    } else if (strcmp(err->field, "clouds") == 0) {
        (void)snprintf(err->field, sizeof err->field, "cloud");
    }
}

/* Where the next source's rows are, and what is counted of it. */
struct target {
    float *positions;
    float *features;
    size_t row;
    struct vxd_cloud_own *own;
};

/* Decodes one cloud or sweep. */
static enum vxd_status decode_source(const struct vxd_clouds *clouds,
                                     const struct vxd_source *source,
                                     struct vxd_queue *queue, struct vxd_buffer *uploaded,
                                     struct target *to, struct vxd_err *err)
{
    const Voxeld__V1__RobotBody *message = clouds->clouds[source->cloud]->body;
    size_t n_channels = (size_t)clouds->n_channels;
    struct vxd_cloud cloud = {0};
    struct vxd_cloud_body body;
    enum vxd_status status;

    VXD_TRY(vxd_source_build(clouds, source, &cloud, err));
    if (cloud.n_points == 0) {
        return VXD_OK;
    }
    if (message != NULL) {
        VXD_TRY(vxd_clouds_read_body(message, source->cloud, &body, err));
        cloud.body = &body;
        cloud.own = to->own;
    }
    VXD_TRY(vxd_upload(queue, cloud.data, cloud.n_points * cloud.point_step, uploaded,
                       &cloud.data, err));
    cloud.origins = clouds->origins != NULL ? clouds->origins + 3 * to->row : NULL;
    cloud.exact = clouds->exact != NULL ? clouds->exact + 3 * to->row : NULL;
    VXD_TRY(vxd_cloud_decode(queue, &cloud, to->positions + 3 * to->row,
                             n_channels > 0 ? to->features + n_channels * to->row : NULL,
                             err));
    to->row += cloud.n_points;
out:
    return status;
}

enum vxd_status vxd_clouds_decode(const struct vxd_clouds *clouds,
                                  struct vxd_queue *queue, float *positions,
                                  float *features, struct vxd_err *err)
{
    struct target to = {positions, features, 0, NULL};
    size_t n_source = 0;
    enum vxd_status status;

    VXD_TRY(vxd_clouds_begin_own(clouds, queue, &to.own, err));
    for (size_t i = 0; i < clouds->n_clouds; i++) {
        for (size_t k = 0; k <= clouds->clouds[i]->n_sweeps; k++, n_source++) {
            const struct vxd_source source = {i, k > 0, k > 0 ? k - 1 : 0};

            VXD_TRY(decode_source(clouds, &source, queue, &clouds->uploads[n_source], &to,
                                  err));
        }
    }
    status = vxd_clouds_end_own(clouds, queue, err);
out:
    return status;
}

void vxd_clouds_free(const struct vxd_clouds *clouds, struct vxd_queue *queue)
{
    for (size_t i = 0; i < clouds->n_sources && clouds->uploads != NULL; i++) {
        vxd_device_free(queue, &clouds->uploads[i]);
    }
    vxd_clouds_free_own(clouds, queue);
}
