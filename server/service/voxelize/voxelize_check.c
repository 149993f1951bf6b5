// SPDX-License-Identifier: Apache-2.0
/* Everything that can be wrong with a Voxelize request is found here, on the transport's
 * thread, before the engine hears of it. */
#include <inttypes.h>
#include <math.h>

#include "server/instance/instance.h"
#include "server/schedule/schedule.h"
#include "server/service/service.h"
#include "server/service/voxelize/voxelize_merge.h"

enum {
    BULK_POINT_BYTES = 512 /* more than most points take of the engine's memory */
};

static enum vxd_status fail_enum(struct vxd_err *err, const char *field,
                                 const ProtobufCEnumDescriptor *descriptor, int value)
{
    char names[160] = "";
    size_t n = 0;

    for (unsigned i = 0; i < descriptor->n_values && n < sizeof names - 1; i++) {
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", i > 0 ? ", " : "",
                              descriptor->values[i].name);
    }
    return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "is %d; known: %s", value, names);
}

static enum vxd_status check_size(struct vxd_voxelize_job *job, struct vxd_err *err)
{
    static const char *const fields[3] = {"size.x", "size.y", "size.z"};
    const Voxeld__V1__Vec3 *size = job->input->size;

    if (size == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "size",
                        "is required: the voxel edge per axis in metres");
    }
    for (int i = 0; i < 3; i++) {
        double edge = i == 0 ? size->x : i == 1 ? size->y : size->z;

        job->args.size_m[i] = (float)edge;
        if (!(job->args.size_m[i] > 0) || !isfinite(job->args.size_m[i])) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, fields[i],
                            "is %g, it must be > 0 and finite as float32, in metres",
                            edge);
        }
    }
    return VXD_OK;
}

static enum vxd_status check_range(struct vxd_voxelize_job *job, struct vxd_err *err)
{
    static const char axes[3] = {'x', 'y', 'z'};
    const Voxeld__V1__Range *range = job->input->range;

    if (range == NULL) {
        return VXD_OK;
    }
    if (range->low == NULL || range->high == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT,
                        range->low == NULL ? "range.low" : "range.high", "is missing");
    }
    job->args.has_range = true;
    for (int i = 0; i < 3; i++) {
        double low = i == 0 ? range->low->x : i == 1 ? range->low->y : range->low->z;
        double high = i == 0 ? range->high->x : i == 1 ? range->high->y : range->high->z;
        char field[16];

        job->args.range_lo_m[i] = (float)low;
        job->args.range_hi_m[i] = (float)high;
        if (!isfinite(job->args.range_lo_m[i])) {
            (void)snprintf(field, sizeof field, "range.low.%c", axes[i]);
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                            "is %g, it must be finite as float32", low);
        }
        if (!isfinite(job->args.range_hi_m[i]) ||
            !(job->args.range_lo_m[i] < job->args.range_hi_m[i])) {
            (void)snprintf(field, sizeof field, "range.high.%c", axes[i]);
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                            "is %g, it must be finite and above the low corner's %g",
                            high, low);
        }
    }
    return VXD_OK;
}

static enum vxd_status check_lattice(struct vxd_voxelize_job *job, struct vxd_err *err)
{
    const Voxeld__V1__VoxelizeRequest *input = job->input;
    const Voxeld__V1__Vec3 *origin = input->origin;
    enum vxd_status status;

    VXD_TRY(check_size(job, err));
    VXD_TRY(check_range(job, err));
    job->rule = input->rule;
    if (job->rule == VOXELD__V1__VOXEL_RULE__VOXEL_RULE_UNSPECIFIED) {
        job->rule = job->args.has_range ? VOXELD__V1__VOXEL_RULE__SPCONV
                                        : VOXELD__V1__VOXEL_RULE__MINKOWSKI;
    }
    job->args.order = input->order == VOXELD__V1__VOXEL_ORDER__MORTON
                          ? VXD_ORDER_MORTON
                          : VXD_ORDER_FIRST_POINT;
    if (origin != NULL) {
        if (!isfinite(origin->x) || !isfinite(origin->y) || !isfinite(origin->z)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "origin",
                            "(%g, %g, %g) is not finite", origin->x, origin->y,
                            origin->z);
        }
        job->clouds.origin[0] = origin->x;
        job->clouds.origin[1] = origin->y;
        job->clouds.origin[2] = origin->z;
    }
    if (job->rule == VOXELD__V1__VOXEL_RULE__MINKOWSKI) {
        job->args.rule = VXD_RULE_MINKOWSKI;
        return VXD_OK;
    }
    if (job->rule == VOXELD__V1__VOXEL_RULE__DOUBLE) {
        job->args.rule = VXD_RULE_DOUBLE;
        job->args.exact_size_m[0] = input->size->x;
        job->args.exact_size_m[1] = input->size->y;
        job->args.exact_size_m[2] = input->size->z;
        return VXD_OK;
    }
    job->args.rule = VXD_RULE_SPCONV;
    if (!job->args.has_range) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "range",
                        "is required by the rule SPCONV");
    }
    status = vxd_voxelize_grid(&job->args, job->grid, err);
    if (status != VXD_OK) {
        /* The engine's names are not the schema's. */
        (void)snprintf(err->field, sizeof err->field, "%s",
                       strcmp(err->field, "size_m") == 0 ? "size" : "range");
    }
out:
    return status;
}

static enum vxd_status check_reductions(struct vxd_voxelize_job *job, struct vxd_err *err)
{
    const Voxeld__V1__VoxelizeRequest *input = job->input;
    static const enum vxd_result arrays[] = {VXD_RESULT_MEAN, VXD_RESULT_SUM,
                                             VXD_RESULT_MIN, VXD_RESULT_MAX,
                                             VXD_RESULT_FIRST};

    if (input->n_reduce == 0) {
        job->results[VXD_RESULT_MEAN].selected = job->args.n_channels > 0;
        return VXD_OK;
    }
    for (size_t i = 0; i < input->n_reduce; i++) {
        int value = (int)input->reduce[i];
        char field[48];

        if (value < VOXELD__V1__REDUCE__REDUCE_MEAN ||
            value > VOXELD__V1__REDUCE__REDUCE_FIRST) {
            (void)snprintf(field, sizeof field, "reduce[%zu]", i);
            return fail_enum(err, field, &voxeld__v1__reduce__descriptor, value);
        }
        job->results[arrays[value - VOXELD__V1__REDUCE__REDUCE_MEAN]].selected = true;
    }
    return VXD_OK;
}

static enum vxd_status check_outputs(struct vxd_voxelize_job *job, struct vxd_err *err)
{
    const Voxeld__V1__VoxelizeRequest *input = job->input;
    static const enum vxd_result arrays[] = {VXD_RESULT_COORDS, VXD_RESULT_COUNTS,
                                             VXD_RESULT_INVERSE, VXD_RESULT_POINTS,
                                             VXD_RESULT_FIRST_POINT};

    job->results[VXD_RESULT_TOTALS].selected = true;
    job->results[VXD_RESULT_STARTS].selected = true;
    if (input->n_outputs == 0) {
        job->results[VXD_RESULT_COORDS].selected = true;
        job->results[VXD_RESULT_COUNTS].selected = true;
    }
    for (size_t i = 0; i < input->n_outputs; i++) {
        int value = (int)input->outputs[i];
        char field[48];

        (void)snprintf(field, sizeof field, "outputs[%zu]", i);
        if (value < VOXELD__V1__VOXEL_OUTPUT__OUTPUT_COORDS ||
            value > VOXELD__V1__VOXEL_OUTPUT__OUTPUT_FIRST_INDEX) {
            return fail_enum(err, field, &voxeld__v1__voxel_output__descriptor, value);
        }
        if (value == VOXELD__V1__VOXEL_OUTPUT__OUTPUT_POINTS &&
            (input->max_points == 0 || input->max_voxels == 0 ||
             job->args.n_channels == 0)) {
            return vxd_fail(
                err, VXD_INVALID_ARGUMENT, field,
                "OUTPUT_POINTS needs features, max_points (%u) and max_voxels "
                "(%u)",
                input->max_points, input->max_voxels);
        }
        job->results[arrays[value - VOXELD__V1__VOXEL_OUTPUT__OUTPUT_COORDS]].selected =
            true;
    }
    job->args.max_points = input->max_points;
    job->args.max_voxels = input->max_voxels;
    return VXD_OK;
}

/* x, y, z and whatever else the first cloud has one element of; "dt" is the lag's name. */
static enum vxd_status bind_all_fields(struct vxd_voxelize_job *job, struct vxd_err *err)
{
    static const char *const axes[3] = {"x", "y", "z"};
    const Voxeld__V1__Cloud *cloud = job->input->clouds[0];
    int n = 0;

    for (; n < 3; n++) {
        job->clouds.channels[n].name = axes[n];
    }
    for (size_t i = 0; i < cloud->n_fields; i++) {
        const Voxeld__V1__Field *field = cloud->fields[i];

        if (field->count > 1 || vxd_axis_of(field->name) >= 0 ||
            strcmp(field->name, "dt") == 0) {
            continue;
        }
        if (n == VXD_MAX_CHANNELS) {
            return vxd_fail(
                err, VXD_INVALID_ARGUMENT, "features",
                "clouds[0] has more than %d one-element fields: name those you "
                "want",
                VXD_MAX_CHANNELS);
        }
        job->clouds.channels[n++].name = field->name;
    }
    job->clouds.n_channels = n;
    return VXD_OK;
}

static enum vxd_status bind_features(struct vxd_voxelize_job *job, struct vxd_err *err)
{
    const Voxeld__V1__VoxelizeRequest *input = job->input;

    if (input->no_features) {
        if (input->n_features > 0 || input->n_reduce > 0) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "no_features",
                            "is true, but %s are asked for",
                            input->n_features > 0 ? "features" : "reductions");
        }
        job->clouds.n_channels = 0;
        return VXD_OK;
    }
    if (input->n_features == 0) {
        return bind_all_fields(job, err);
    }
    if (input->n_features > VXD_MAX_CHANNELS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "features",
                        "has %zu entries, at most %d are allowed", input->n_features,
                        VXD_MAX_CHANNELS);
    }
    for (size_t i = 0; i < input->n_features; i++) {
        job->clouds.channels[i].name = input->features[i];
    }
    job->clouds.n_channels = (int)input->n_features;
    return VXD_OK;
}

/* Computes the rows for which each array needs capacity. */
static size_t result_rows(const struct vxd_voxelize_job *job, size_t i)
{
    switch (i) {
    case VXD_RESULT_TOTALS:
        return (size_t)job->args.n_batch;
    case VXD_RESULT_STARTS:
        return (size_t)job->args.n_batch + 1;
    case VXD_RESULT_INVERSE:
        return job->args.n_points;
    default:
        return vxd_voxelize_capacity(&job->args);
    }
}

static bool lay_out(struct vxd_voxelize_job *job)
{
    size_t channel_bytes = (size_t)job->args.n_channels * sizeof(float);
    size_t row_bytes[VXD_N_RESULTS] = {
        [VXD_RESULT_TOTALS] = sizeof(struct vxd_voxel_totals),
        [VXD_RESULT_STARTS] = sizeof(uint32_t),
        [VXD_RESULT_COORDS] = 4 * sizeof(int32_t),
        [VXD_RESULT_COUNTS] = sizeof(uint32_t),
        [VXD_RESULT_INVERSE] = sizeof(int32_t),
        [VXD_RESULT_FIRST_POINT] = sizeof(uint32_t),
        [VXD_RESULT_MEAN] = channel_bytes,
        [VXD_RESULT_SUM] = channel_bytes,
        [VXD_RESULT_MIN] = channel_bytes,
        [VXD_RESULT_MAX] = channel_bytes,
        [VXD_RESULT_FIRST] = channel_bytes,
        [VXD_RESULT_POINTS] = job->args.max_points * channel_bytes,
    };
    size_t offset;

    for (size_t i = 0; i < VXD_N_RESULTS; i++) {
        struct vxd_result_array *result = &job->results[i];

        result->row_bytes = row_bytes[i];
        if (result->selected && !vxd_layout_add(&job->results_bytes, result_rows(job, i),
                                                result->row_bytes, &result->offset)) {
            return false;
        }
    }
    return vxd_layout_add(&job->work_bytes, job->args.n_points, 3 * sizeof(float),
                          &offset) &&
           vxd_layout_add(&job->work_bytes, job->args.n_points, channel_bytes,
                          &job->features_offset) &&
           vxd_layout_add(&job->work_bytes,
                          job->args.rule == VXD_RULE_DOUBLE ? job->args.n_points : 0,
                          3 * sizeof(double), &job->exact_offset);
}

/* Estimates what the engine will take of its device budget. */
static enum vxd_status check_cost(struct vxd_request *request,
                                  struct vxd_voxelize_job *job, struct vxd_err *err)
{
    struct vxd_server *server = request->server;
    struct vxd_memory_usage memory;
    size_t cost =
        vxd_voxelize_scratch_bytes(vxd_scheduler_probe(server->scheduler), &job->args);
    bool fits = lay_out(job) && vxd_size_add(cost, job->results_bytes, &cost) &&
                vxd_size_add(cost, job->work_bytes, &cost);

    if (fits && vxd_context_backend(server->context) == VXD_BACKEND_CUDA) {
        fits = vxd_size_add(cost, (size_t)request->body_bytes, &cost);
    }
    vxd_context_get_memory(server->context, &memory);
    if (!fits || cost > memory.device_budget_bytes) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "%zu points with %d features would take %zu bytes of the device, "
                        "its budget is %zu",
                        job->args.n_points, job->args.n_channels, fits ? cost : SIZE_MAX,
                        memory.device_budget_bytes);
    }
    request->cost_bytes += cost;
    return VXD_OK;
}

enum vxd_status vxd_voxelize_check(struct vxd_request *request, struct vxd_err *err)
{
    struct vxd_voxelize_job *job =
        vxd_message_array(request->decoder, 1, sizeof *job, err);
    enum vxd_status status;

    if (job == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    job->input = (const Voxeld__V1__VoxelizeRequest *)request->input;
    if (job->input->n_clouds < 1 || job->input->n_clouds > VXD_VOXELIZE_MAX_CLOUDS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "clouds",
                        "has %zu entries, it must have 1 to %d", job->input->n_clouds,
                        VXD_VOXELIZE_MAX_CLOUDS);
    }
    job->clouds.clouds = job->input->clouds;
    job->clouds.n_clouds = job->input->n_clouds;
    job->clouds.channels_field = "features";
    VXD_TRY(check_lattice(job, err));
    VXD_TRY(bind_features(job, err));
    job->args.n_channels = job->clouds.n_channels;
    VXD_TRY(check_reductions(job, err));
    VXD_TRY(check_outputs(job, err));
    for (size_t i = 0; i < VXD_N_RESULTS; i++) {
        job->results[i].sent = job->results[i].selected;
    }
    VXD_TRY(vxd_clouds_check(request, &job->clouds, err));
    job->args.batch_starts = job->clouds.starts;
    job->args.n_batch = (int)job->clouds.n_clouds;
    job->args.n_points = job->clouds.n_points;
    request->state = job;
    if (job->input->merge != NULL) {
        VXD_TRY(vxd_merge_check(request, err));
    }
    VXD_TRY(check_cost(request, job, err));
    request->n_points = job->args.n_points;
    /* A few points can ask for many bytes: max_points of 64 channels each. */
    request->bulk =
        job->args.n_points > request->server->config.bulk_points ||
        request->cost_bytes / BULK_POINT_BYTES > request->server->config.bulk_points;
out:
    return status;
}
