// SPDX-License-Identifier: Apache-2.0
/* Tracking: checks, the arrays of one call, and the order of its steps. */
#include "gpu/track/track_internal.h"

#define MAX_ITERATIONS 100
#define DEFAULT_PIXELS 160000
#define MIN_SIDE 16 /* of the coarsest level, pixels */

/* ---- Options ---- */

/* A number that is 0 for its default. */
static enum vxd_status take(double *value, double otherwise, double low, double high,
                            const char *field, struct vxd_err *err)
{
    if (*value == 0) {
        *value = otherwise;
    }
    return *value >= low && *value <= high
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, field, "is %g, must be %g to %g",
                          *value, low, high);
}

static enum vxd_status take_iterations(struct vxd_track_options *options,
                                       struct vxd_err *err)
{
    static const int standard[3] = {8, 4, 3};
    int sum = 0;

    if (options->n_levels == 0) {
        options->n_levels = 3;
        memcpy(options->iterations, standard, sizeof standard);
    }
    if (options->n_levels < 1 || options->n_levels > VXD_TRACK_MAX_LEVELS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "iterations",
                        "of %d levels; 1 to %d are right", options->n_levels,
                        VXD_TRACK_MAX_LEVELS);
    }
    for (int i = 0; i < options->n_levels; i++) {
        if (options->iterations[i] < 0 || options->iterations[i] > MAX_ITERATIONS) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "iterations",
                            "of level %d are %d, must be 0 to %d", i,
                            options->iterations[i], MAX_ITERATIONS);
        }
        sum += options->iterations[i];
    }
    return sum > 0 ? VXD_OK
                   : vxd_fail(err, VXD_INVALID_ARGUMENT, "iterations",
                              "are 0 on all levels; one at least is right");
}

enum vxd_status vxd_track_options_init(struct vxd_track_options *options,
                                       struct vxd_err *err)
{
    bool is_grey = options->method == VXD_TRACK_INTENSITY;
    bool is_tukey = options->robust == VXD_TRACK_TUKEY;
    enum vxd_status status;

    if (options->method > VXD_TRACK_HYBRID || (int)options->method < 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "method",
                        "is %d; 0 is point to plane, 1 intensity, 2 hybrid",
                        (int)options->method);
    }
    if (options->robust > VXD_TRACK_SQUARES || (int)options->robust < 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "robust",
                        "is %d; 0 is Huber, 1 Tukey, 2 squares", (int)options->robust);
    }
    VXD_TRY(take_iterations(options, err));
    if (options->max_pixels == 0) {
        options->max_pixels = DEFAULT_PIXELS;
    }
    if (options->max_pixels < 1000 || options->max_pixels > VXD_TRACK_MAX_PIXELS) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "max_pixels",
                         "is %d, must be 1000 to %d", options->max_pixels,
                         VXD_TRACK_MAX_PIXELS));
    }
    VXD_TRY(take(&options->max_distance_m, 0.07, 1e-4, 10, "max_distance_m", err));
    VXD_TRY(take(&options->robust_scale_m, is_tukey ? 0.07 : 0.02, 1e-6, 10,
                 "robust_scale_m", err));
    VXD_TRY(take(&options->intensity_scale, is_tukey ? 0.3 : 0.1, 1e-4, 10,
                 "intensity_scale", err));
    VXD_TRY(take(&options->intensity_m, 0.1, 1e-4, 100, "intensity_m", err));
    VXD_TRY(take(&options->min_weight, 0, 0, 65535, "min_weight", err));
    VXD_TRY(take(&options->min_fitness, 0.25, 1e-6, 1, "min_fitness", err));
    VXD_TRY(take(&options->min_agreement, 0.65, 1e-6, 1, "min_agreement", err));
    VXD_TRY(take(&options->min_constraint, is_grey ? 0.003 : 0.012, 1e-9, 1,
                 "min_constraint", err));
    VXD_TRY(take(&options->max_translation_m, 0.3, 1e-6, 1000, "max_translation_m", err));
    VXD_TRY(take(&options->max_rotation_deg, 20, 1e-6, 180, "max_rotation_deg", err));
out:
    return status;
}

/* ---- The arrays of a call ---- */

struct track {
    const struct vxd_volume_frame *frame;
    struct vxd_track_options options;
    bool needs_grey;
    struct vxd_volume_camera camera; /* of the finest level, without distortion */
    int stride;
    int n_levels;
    struct vxd_track_level levels[VXD_TRACK_MAX_LEVELS]; /* finest first */
    struct vxd_track_live_call live;
    struct vxd_volume_cast_args cast;
    struct vxd_track_work *found; /* at the end: of the method, and of planes alone */
    struct vxd_buffer scratch;
    struct vxd_buffer host;
};

/* Divides a camera's image by a whole factor; pixel (0, 0) is the mean of its first ones. */
static struct vxd_volume_camera scale_camera(const struct vxd_volume_camera *camera,
                                             int by)
{
    return (struct vxd_volume_camera){.width = camera->width / by,
                                      .height = camera->height / by,
                                      .fx = camera->fx / by,
                                      .fy = camera->fy / by,
                                      .cx = (camera->cx + 0.5) / by - 0.5,
                                      .cy = (camera->cy + 0.5) / by - 0.5};
}

static void choose_levels(struct track *track)
{
    const struct vxd_volume_camera *camera = &track->frame->camera;
    int side = camera->width < camera->height ? camera->width : camera->height;

    track->stride = 1;
    while (track->stride < side &&
           (long)(camera->width / track->stride) * (camera->height / track->stride) >
               track->options.max_pixels) {
        track->stride++;
    }
    track->camera = scale_camera(camera, track->stride);
    side /= track->stride;
    track->n_levels = 1;
    while (track->n_levels < track->options.n_levels &&
           side >> track->n_levels >= MIN_SIDE) {
        track->n_levels++;
    }
}

static void init_rule(const struct track *track, struct vxd_track_rule *rule)
{
    const struct vxd_track_options *options = &track->options;

    *rule = (struct vxd_track_rule){
        .use_plane = options->method != VXD_TRACK_INTENSITY ? 1 : 0,
        .use_grey = track->needs_grey ? 1 : 0,
        .robust = {[VXD_TRACK_HUBER] = options->robust == VXD_TRACK_HUBER ? 1 : 0,
                   [VXD_TRACK_TUKEY] = options->robust == VXD_TRACK_TUKEY ? 1 : 0,
                   [VXD_TRACK_SQUARES] = options->robust == VXD_TRACK_SQUARES ? 1 : 0},
        .max_distance2 = (float)(options->max_distance_m * options->max_distance_m),
        .min_cosine = VXD_TRACK_MIN_COSINE,
        .plane_scale = (float)options->robust_scale_m,
        .grey_scale = (float)options->intensity_scale,
        .grey_m = (float)options->intensity_m};
}

static void init_level(const struct track *track, int k, struct vxd_track_level *level)
{
    struct vxd_volume_camera camera = scale_camera(&track->camera, 1 << k);

    *level = (struct vxd_track_level){.camera = {.width = camera.width,
                                                 .height = camera.height,
                                                 .fx = (float)camera.fx,
                                                 .fy = (float)camera.fy,
                                                 .cx = (float)camera.cx,
                                                 .cy = (float)camera.cy}};
    level->live.width = camera.width;
    level->live.height = camera.height;
    level->live.n = (size_t)camera.width * (size_t)camera.height;
    level->model = level->live;
    level->n_strips = (level->live.n + VXD_TRACK_STRIP - 1) / VXD_TRACK_STRIP;
    init_rule(track, &level->rule);
}

/* Lays all arrays out in one block. */
static enum vxd_status lay_out(struct vxd_queue *queue, struct track *track,
                               struct vxd_err *err)
{
    size_t n = (size_t)track->camera.width * (size_t)track->camera.height;
    size_t live[VXD_TRACK_MAX_LEVELS] = {0};
    size_t model[VXD_TRACK_MAX_LEVELS] = {0};
    size_t depths = 0;
    size_t filtered = 0;
    size_t depth = 0;
    size_t normal = 0;
    size_t colour = 0;
    size_t strips = 0;
    size_t work = 0;
    size_t arrived = 0;
    size_t total = 0;
    size_t n_scratch = VXD_ON_CUDA(queue->context) ? 0 : n;
    bool fits = true;
    char *at;
    enum vxd_status status;

    for (int k = 0; k < track->n_levels; k++) {
        init_level(track, k, &track->levels[k]);
        fits = fits &&
               vxd_layout_add(&total, VXD_TRACK_N_PLANES * track->levels[k].live.n,
                              sizeof(float), &live[k]) &&
               vxd_layout_add(&total, VXD_TRACK_N_PLANES * track->levels[k].live.n,
                              sizeof(float), &model[k]);
    }
    fits = fits && vxd_layout_add(&total, n_scratch, sizeof(float), &depths) &&
           vxd_layout_add(&total, n_scratch, sizeof(float), &filtered) &&
           vxd_layout_add(&total, n, sizeof(float), &depth) &&
           vxd_layout_add(&total, 3 * n, sizeof(float), &normal) &&
           vxd_layout_add(&total, 3 * n, 1, &colour) &&
           vxd_layout_add(&total, 2 * track->levels[0].n_strips * VXD_TRACK_N_SUMS,
                          sizeof(float), &strips) &&
           vxd_layout_add(&total, 1, sizeof(struct vxd_track_work), &work) &&
           vxd_layout_add(&total, VXD_TRACK_N_ITERATE_CALLS, sizeof(uint32_t), &arrived);
    if (!fits) { /* of at most VXD_TRACK_MAX_PIXELS they do */
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "%zu pixels are too many", n);
    }
    VXD_TRY(vxd_host_alloc(queue->context, 2 * sizeof *track->found, &track->host, err));
    track->found = track->host.ptr;
    VXD_TRY(vxd_device_alloc(queue, total, &track->scratch, err));
    at = track->scratch.ptr;
    for (int k = 0; k < track->n_levels; k++) {
        struct vxd_track_level *level = &track->levels[k];

        level->live.planes = (float *)(void *)(at + live[k]);
        level->model.planes = (float *)(void *)(at + model[k]);
        level->strips = (float *)(void *)(at + strips);
        level->work = (struct vxd_track_work *)(void *)(at + work);
    }
    track->live.work = track->levels[0].work;
    track->live.arrived = (uint32_t *)(void *)(at + arrived);
    track->live.is_filtered = !track->options.no_filter;
    track->live.depths = (float *)(void *)(at + depths);
    track->live.filtered = (float *)(void *)(at + filtered);
    track->cast.depth = (float *)(void *)(at + depth);
    track->cast.normal = (float *)(void *)(at + normal);
    track->cast.colour = track->needs_grey ? (uint8_t *)(at + colour) : NULL;
out:
    return status;
}

/* ---- Steps ---- */

static enum vxd_status check_greys(const struct vxd_volume *volume,
                                   const struct track *track, struct vxd_err *err)
{
    struct vxd_volume_info info;

    vxd_volume_get_info(volume, &info);
    if (track->needs_grey && !info.spec.has_colour) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "method",
                        "needs intensities, but the volume keeps no colours; point to "
                        "plane needs none");
    }
    if (track->needs_grey && track->frame->colour == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "colour",
                        "is missing; the method needs the image's intensities");
    }
    return VXD_OK;
}

static enum vxd_status init_source(const struct track *track,
                                   struct vxd_track_source *source, struct vxd_err *err)
{
    const struct vxd_volume_frame *frame = track->frame;
    const double *r = frame->T_depth_colour.rotation;
    bool is_u16 = frame->dtype == VXD_UINT16;
    double scale = frame->depth_scale != 0 ? frame->depth_scale : is_u16 ? 1000 : 1;
    enum vxd_status status;

    *source =
        (struct vxd_track_source){.depth = frame->depth,
                                  .mask = frame->mask,
                                  .colour = track->needs_grey ? frame->colour : NULL,
                                  .is_u16 = is_u16 ? 1 : 0,
                                  .depth_scale = (float)scale,
                                  .depth_min = (float)frame->depth_min_m,
                                  .depth_max = (float)frame->depth_max_m,
                                  .stride = track->stride};
    VXD_TRY(vxd_camera_form_init(&frame->camera, "camera", &source->camera, err));
    if (source->colour != NULL && frame->has_colour_camera) {
        source->has_colour_camera = 1;
        VXD_TRY(vxd_camera_form_init(&frame->colour_camera, "colour_camera",
                                     &source->colour_camera, err));
        for (int i = 0; i < 3; i++) {
            double shift = 0;

            for (int j = 0; j < 3; j++) {
                source->to_colour[4 * i + j] = (float)r[3 * j + i];
                shift -= r[3 * j + i] * frame->T_depth_colour.translation[j];
            }
            source->to_colour[4 * i + 3] = (float)shift;
        }
    }
out:
    return status;
}

/* Makes the pyramids of the image and of the model. */
static enum vxd_status make_images(struct vxd_queue *queue, struct vxd_volume *volume,
                                   struct track *track, struct vxd_err *err)
{
    const struct vxd_volume_frame *frame = track->frame;
    struct vxd_track_pyramids_call pyramids;
    enum vxd_status status;

    VXD_TRY(init_source(track, &track->live.source, err));
    track->live.image = track->levels[0].live;
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_track_live)(queue, &track->live, err));
    track->cast.camera = track->camera;
    track->cast.T_map_camera = frame->T_map_camera;
    track->cast.depth_min_m = frame->depth_min_m;
    track->cast.depth_max_m = frame->depth_max_m;
    track->cast.weight_threshold = track->options.min_weight;
    VXD_TRY(vxd_volume_cast(queue, volume, &track->cast, err));
    pyramids = (struct vxd_track_pyramids_call){.n_levels = track->n_levels,
                                                .camera = track->levels[0].camera,
                                                .depth = track->cast.depth,
                                                .normal = track->cast.normal,
                                                .colour = track->cast.colour};
    for (int k = 0; k < track->n_levels; k++) {
        pyramids.live[k] = track->levels[k].live;
        pyramids.model[k] = track->levels[k].model;
    }
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            pyramids.to_camera[4 * i + j] =
                (float)frame->T_map_camera.rotation[3 * j + i];
        }
    }
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_track_pyramids)(queue, &pyramids, err));
out:
    return status;
}

/* From the coarsest level to the finest, and once more for the sums at the pose that was found;
 * with greys also for those of the planes alone. */
static enum vxd_status iterate(struct vxd_queue *queue, const struct track *track,
                               struct vxd_err *err)
{
    int skipped = track->options.n_levels - track->n_levels;
    uint32_t *arrived = track->live.arrived;
    enum vxd_status status = VXD_OK;

    for (int k = track->n_levels - 1; k >= 0; k--) {
        struct vxd_track_iterate_call call = {
            .level = track->levels[k],
            .n = track->options.iterations[skipped + track->n_levels - 1 - k],
            .sums_after = k == 0 && !track->needs_grey,
            .arrived = arrived,
            .report = k == 0 && !track->needs_grey ? track->found : NULL};

        arrived++; /* each launch counts its own thread blocks */
        if (call.n > 0 || call.sums_after) {
            VXD_TRY(VXD_BACKEND_FN(queue, vxd_track_iterate)(queue, &call, err));
        }
    }
    if (track->needs_grey) {
        struct vxd_track_iterate_call sums = {.level = track->levels[0],
                                              .n = 0,
                                              .arrived = arrived,
                                              .report = track->found + 1};

        sums.level.rule.use_plane = 1;
        sums.level.rule.use_grey = 0;
        VXD_TRY(VXD_BACKEND_FN(queue, vxd_track_iterate)(queue, &sums, err));
        sums.level = track->levels[0];
        sums.arrived = arrived + 1;
        sums.report = track->found;
        VXD_TRY(VXD_BACKEND_FN(queue, vxd_track_iterate)(queue, &sums, err));
    }
out:
    return status;
}

static enum vxd_status run(struct vxd_queue *queue, struct vxd_volume *volume,
                           struct track *track, struct vxd_track_result *out,
                           struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(lay_out(queue, track, err));
    VXD_TRY(make_images(queue, volume, track, err));
    VXD_TRY(iterate(queue, track, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    vxd_track_judge(&track->options, &track->frame->T_map_camera, track->found,
                    track->found[1].sums, out);
out:
    if (status != VXD_OK) { /* what is queued may write to the host's memory */
        (void)vxd_queue_wait(queue, NULL);
    }
    vxd_device_free(queue, &track->scratch);
    return status;
}

enum vxd_status vxd_track(struct vxd_queue *queue, struct vxd_volume *volume,
                          const struct vxd_volume_frame *frame,
                          const struct vxd_track_options *options,
                          struct vxd_track_result *out, struct vxd_err *err)
{
    struct track track = {.frame = frame, .options = *options};
    enum vxd_status status;

    *out = (struct vxd_track_result){.status = VXD_TRACK_LOST,
                                     .T_map_camera = frame->T_map_camera};
    VXD_TRY(vxd_track_options_init(&track.options, err));
    VXD_TRY(vxd_volume_check_frame(volume, frame, err));
    track.needs_grey = track.options.method != VXD_TRACK_POINT_TO_PLANE;
    track.scratch.space = VXD_SPACE_DEVICE;
    track.host.space = VXD_SPACE_HOST;
    VXD_TRY(check_greys(volume, &track, err));
    choose_levels(&track);
    VXD_TRY(run(queue, volume, &track, out, err));
out:
    vxd_host_free(vxd_queue_context(queue), &track.host);
    return status;
}
