// SPDX-License-Identifier: Apache-2.0
/* Keyframes: their images at the level's resolution, what is seen from them, and their poses and
 * intrinsics, which move by a damped Gauss-Newton step of their own after each joint one. */
#include "gpu/refine/refine_internal.h"

#define MIN_LEVEL_PIXELS 32 /* of an image's edge */
#define CAST_PIXELS 640     /* of a cast's width, about */
#define CAST_RAY_NS 3000.0
#define TOLERANCE_VOXELS 3.0f
#define POSE_DAMPING 1e-3
#define PRIOR 0.05 /* of the mean curvature: a given pose counts so much */
#define MAX_MOVE_VOXELS 1.0
#define MAX_FOCAL_CHANGE 0.01 /* of the focal length */

/* ---- Images ---- */

/* The camera of the image in memory, which is smaller by the factor. */
static void level_camera(const struct vxd_refine_frame *frame, double out[4])
{
    double factor = frame->factor;

    out[0] = frame->camera.fx / factor;
    out[1] = frame->camera.fy / factor;
    out[2] = (frame->camera.cx + 0.5) / factor - 0.5;
    out[3] = (frame->camera.cy + 0.5) / factor - 0.5;
}

/* From the set to the camera, in voxels. */
static void eye_pose(const struct vxd_refine *refine,
                     const struct vxd_refine_frame *frame, double rotation[9],
                     double translation[3])
{
    for (int row = 0; row < 3; row++) {
        translation[row] = 0;
        for (int k = 0; k < 3; k++) {
            double at = (refine->origin_m[k] - frame->pose.translation[k]) /
                            refine->voxel_size_m +
                        refine->call.view.base[k];

            rotation[3 * row + k] = frame->pose.rotation[3 * k + row];
            translation[row] += rotation[3 * row + k] * at;
        }
    }
}

/* A pixel of the image is about a voxel, seen from the middle of the set. */
static int find_factor(const struct vxd_refine *refine,
                       const struct vxd_refine_frame *frame)
{
    const struct vxd_volume_camera *camera = &frame->given.camera;
    double rotation[9];
    double p[3];
    int factor = 1;

    eye_pose(refine, frame, rotation, p);
    for (int k = 0; k < 3; k++) {
        p[2] += rotation[6 + k] * refine->set_centre[k];
    }
    while (p[2] > 0 && factor < 64 && camera->fx / (2 * factor) / p[2] >= 1 &&
           camera->width / (2 * factor) >= MIN_LEVEL_PIXELS &&
           camera->height / (2 * factor) >= MIN_LEVEL_PIXELS) {
        factor *= 2;
    }
    return factor;
}

enum vxd_status vxd_refine_load_image(struct vxd_queue *queue, struct vxd_refine *refine,
                                      struct vxd_volume *volume, size_t index,
                                      struct vxd_err *err)
{
    struct vxd_refine_frame *frame = &refine->frames[index];
    const struct vxd_volume_camera *camera = &frame->given.camera;
    struct vxd_refine_call call = {.step = VXD_REFINE_STEP_IMAGE};
    struct vxd_buffer source = {NULL, 0, VXD_SPACE_DEVICE};
    const void *from = NULL;
    size_t n;
    enum vxd_status status;

    (void)volume;
    frame->factor = find_factor(refine, frame);
    frame->width = camera->width / frame->factor;
    frame->height = camera->height / frame->factor;
    n = (size_t)frame->width * (size_t)frame->height;
    vxd_device_free(queue, &frame->grey);
    vxd_device_free(queue, &frame->rgb8);
    VXD_TRY(vxd_device_alloc(queue, n * sizeof(float), &frame->grey, err));
    VXD_TRY(vxd_device_alloc(queue, 3 * n, &frame->rgb8, err));
    VXD_TRY(vxd_upload(queue, frame->given.colour,
                       3 * (size_t)camera->width * (size_t)camera->height, &source, &from,
                       err));
    VXD_TRY(vxd_camera_form_init(camera, "camera", &call.image.camera, err));
    call.image.from = from;
    call.image.factor = frame->factor;
    call.image.width = frame->width;
    call.image.height = frame->height;
    call.image.grey = frame->grey.ptr;
    call.image.rgb8 = frame->rgb8.ptr;
    VXD_TRY(vxd_refine_run(queue, &call, VXD_REFINE_STEP_IMAGE, n, err));
    VXD_TRY(vxd_queue_wait(queue, err));
out:
    vxd_device_free(queue, &source);
    return status;
}

enum vxd_status vxd_refine_set_eyes(struct vxd_queue *queue, struct vxd_refine *refine,
                                    struct vxd_err *err)
{
    struct vxd_refine_eye eyes[VXD_REFINE_MAX_KEYFRAMES];
    enum vxd_status status;

    if (refine->buffers[VXD_REFINE_EYES].ptr == NULL) {
        VXD_TRY(vxd_refine_alloc(queue, refine, VXD_REFINE_EYES, refine->n_frames,
                                 sizeof *eyes, err));
    }
    for (size_t i = 0; i < refine->n_frames; i++) {
        const struct vxd_refine_frame *frame = &refine->frames[i];
        struct vxd_refine_eye *eye = &eyes[i];
        double rotation[9];
        double translation[3];
        double camera[4];

        memset(eye, 0, sizeof *eye);
        eye_pose(refine, frame, rotation, translation);
        level_camera(frame, camera);
        for (int k = 0; k < 9; k++) {
            eye->rotation[k] = (vxd_refine_real)rotation[k];
        }
        for (int k = 0; k < 3; k++) {
            eye->translation[k] = (vxd_refine_real)translation[k];
        }
        eye->fx = (vxd_refine_real)camera[0];
        eye->fy = (vxd_refine_real)camera[1];
        eye->cx = (vxd_refine_real)camera[2];
        eye->cy = (vxd_refine_real)camera[3];
        eye->width = frame->width;
        eye->height = frame->height;
        eye->grey = frame->grey.ptr;
        eye->rgb8 = frame->rgb8.ptr;
    }
    VXD_TRY(vxd_refine_write(queue, refine->buffers[VXD_REFINE_EYES].ptr, eyes,
                             refine->n_frames * sizeof *eyes, err));
    refine->call.view.eyes = refine->buffers[VXD_REFINE_EYES].ptr;
out:
    return status;
}

/* ---- What is seen ---- */

static void set_cast(const struct vxd_refine *refine,
                     const struct vxd_refine_frame *frame, int shrink,
                     struct vxd_volume_cast_args *args)
{
    double camera[4];

    level_camera(frame, camera);
    args->camera = (struct vxd_volume_camera){.width = frame->width / shrink,
                                              .height = frame->height / shrink,
                                              .fx = camera[0] / shrink,
                                              .fy = camera[1] / shrink,
                                              .cx = (camera[2] + 0.5) / shrink - 0.5,
                                              .cy = (camera[3] + 0.5) / shrink - 0.5};
    args->T_map_camera = frame->pose;
    args->depth_max_m =
        refine->options.depth_max_m > 0 ? refine->options.depth_max_m : 1000;
    args->weight_threshold = refine->options.min_weight;
}

enum vxd_status vxd_refine_cast(struct vxd_queue *queue, struct vxd_refine *refine,
                                struct vxd_volume *volume, double work_ns, bool *is_whole,
                                struct vxd_err *err)
{
    const struct vxd_refine_frame *frame = &refine->frames[refine->frame];
    int shrink = frame->width >= 2 * CAST_PIXELS ? frame->width / CAST_PIXELS : 1;
    struct vxd_refine_see_call *see = &refine->call.see;
    struct vxd_volume_cast_args args = {0};
    double rows;
    int left;
    enum vxd_status status;

    set_cast(refine, frame, shrink, &args);
    if (refine->cast_row == 0) {
        VXD_TRY(vxd_refine_alloc(queue, refine, VXD_REFINE_DEPTH,
                                 (size_t)args.camera.width * (size_t)args.camera.height,
                                 sizeof(float), err));
    }
    rows = floor(work_ns / CAST_RAY_NS / args.camera.width / VXD_VOLUME_CAST_ROWS) *
               VXD_VOLUME_CAST_ROWS +
           VXD_VOLUME_CAST_ROWS;
    left = args.camera.height - refine->cast_row;
    args.depth = refine->buffers[VXD_REFINE_DEPTH].ptr;
    args.row_begin = refine->cast_row;
    args.row_end = args.row_begin + (rows < left ? (int)rows : left);
    VXD_TRY(vxd_volume_cast(queue, volume, &args, err));
    refine->cast_row = args.row_end;
    *is_whole = args.row_end == args.camera.height;
    if (*is_whole) {
        *see = (struct vxd_refine_see_call){.keyframe = refine->frame,
                                            .depth = args.depth,
                                            .width = args.camera.width,
                                            .height = args.camera.height,
                                            .scale = 1.0f / (float)shrink,
                                            .voxel_size = (float)refine->voxel_size_m,
                                            .tolerance = TOLERANCE_VOXELS};
        for (int k = 0; k < 3; k++) {
            see->eye[k] =
                (vxd_refine_real)((frame->pose.translation[k] - refine->origin_m[k]) /
                                      refine->voxel_size_m -
                                  refine->call.view.base[k]);
        }
        refine->cast_row = 0;
        VXD_TRY(
            vxd_refine_run(queue, &refine->call, VXD_REFINE_STEP_SEE, refine->n, err));
    }
out:
    return status;
}

/* ---- Poses ---- */

/* Solves n positive definite equations in place (Cholesky); false where they are not. */
static bool solve(double *a, double *b, int n)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i; j++) {
            double sum = a[i * n + j];

            for (int k = 0; k < j; k++) {
                sum -= a[i * n + k] * a[j * n + k];
            }
            if (i != j) {
                a[i * n + j] = sum / a[j * n + j];
            } else if (sum > 0) {
                a[i * n + i] = sqrt(sum);
            } else {
                return false;
            }
        }
    }
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++) {
            b[i] -= a[i * n + k] * b[k];
        }
        b[i] /= a[i * n + i];
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++) {
            b[i] -= a[k * n + i] * b[k];
        }
        b[i] /= a[i * n + i];
    }
    return true;
}

/* The rotation of an axis times an angle (Rodrigues). */
static void rotation_of(const double w[3], double r[9])
{
    double angle = sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]);
    double s = angle > 1e-9 ? sin(angle) / angle : 1;
    double c = angle > 1e-9 ? (1 - cos(angle)) / (angle * angle) : 0.5;
    const double cross[9] = {0, -w[2], w[1], w[2], 0, -w[0], -w[1], w[0], 0};

    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            double square = 0;

            for (int k = 0; k < 3; k++) {
                square += cross[3 * i + k] * cross[3 * k + j];
            }
            r[3 * i + j] = (i == j ? 1 : 0) + s * cross[3 * i + j] + c * square;
        }
    }
}

/* Moves the camera: by t, and by a rotation about the set's centre. */
static void move_pose(const struct vxd_refine *refine, struct vxd_volume_pose *pose,
                      const double x[6])
{
    const double w[3] = {x[3] / refine->reach, x[4] / refine->reach,
                         x[5] / refine->reach};
    struct vxd_volume_pose was = *pose;
    double r[9];
    double arm[3];

    rotation_of(w, r);
    for (int k = 0; k < 3; k++) {
        arm[k] =
            was.translation[k] - refine->origin_m[k] -
            (refine->call.view.base[k] + refine->set_centre[k]) * refine->voxel_size_m;
    }
    for (int i = 0; i < 3; i++) {
        double turned = 0;

        for (int k = 0; k < 3; k++) {
            double sum = 0;

            for (int l = 0; l < 3; l++) {
                sum += r[3 * i + l] * was.rotation[3 * l + k];
            }
            pose->rotation[3 * i + k] = sum;
            turned += r[3 * i + k] * arm[k];
        }
        pose->translation[i] =
            was.translation[i] - arm[i] + turned + x[i] * refine->voxel_size_m;
    }
}

static void move_frame(struct vxd_refine *refine, struct vxd_refine_frame *frame,
                       const double sums[VXD_REFINE_POSE_SUMS])
{
    int n = refine->options.refine_intrinsics ? VXD_REFINE_POSE : 6;
    int first = refine->options.keep_poses ? 6 : 0;
    double a[VXD_REFINE_POSE * VXD_REFINE_POSE] = {0};
    double b[VXD_REFINE_POSE] = {0};
    double longest = 0;
    double prior = 0;
    int m = n - first;
    int e = 0;

    for (int i = 0; i < n; i++) {
        for (int j = i; j < n; j++, e++) {
            if (i >= first) {
                a[(j - first) * m + i - first] = sums[e];
            }
        }
        if (i >= first) {
            b[i - first] = -sums[VXD_REFINE_POSE_SUMS - VXD_REFINE_POSE + i];
        }
    }
    for (int i = first; i < 6; i++) {
        prior += PRIOR / 6 * a[i * m + i];
    }
    for (int i = 0; i < m; i++) {
        a[i * m + i] += POSE_DAMPING * a[i * m + i] + 1e-6;
    }
    for (int i = first; i < 6; i++) {
        a[i * m + i] += prior;
        b[i] -= prior * frame->moved[i];
    }
    if (m == 0 || !solve(a, b, m)) {
        return;
    }
    if (first == 0) {
        for (int i = 0; i < 6; i++) {
            longest = fmax(longest, fabs(b[i]));
        }
        for (int i = 0; longest > MAX_MOVE_VOXELS && i < m; i++) {
            b[i] *= MAX_MOVE_VOXELS / longest;
        }
        move_pose(refine, &frame->pose, b);
        for (int i = 0; i < 6; i++) {
            frame->moved[i] += b[i];
        }
    }
    if (n > 6) {
        double most = MAX_FOCAL_CHANGE * frame->camera.fx / frame->factor;

        for (int i = 6 - first; i < m; i++) {
            b[i] = fmax(-most, fmin(most, b[i])) * frame->factor;
        }
        frame->camera.fx += b[6 - first];
        frame->camera.fy += b[7 - first];
        frame->camera.cx += b[8 - first];
        frame->camera.cy += b[9 - first];
    }
}

enum vxd_status vxd_refine_move_frames(struct vxd_queue *queue, struct vxd_refine *refine,
                                       struct vxd_err *err)
{
    struct vxd_buffer host = {NULL, 0, VXD_SPACE_HOST};
    const void *sums = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_download(queue, refine->buffers[VXD_REFINE_POSE_TOTALS].ptr,
                         refine->n_frames * VXD_REFINE_POSE_SUMS * sizeof(double), &host,
                         &sums, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    for (size_t i = 0; i < refine->n_frames; i++) {
        move_frame(refine, &refine->frames[i],
                   (const double *)sums + i * VXD_REFINE_POSE_SUMS);
    }
out:
    vxd_host_free(queue->context, &host);
    return status;
}

void vxd_refine_keep_frames(struct vxd_refine *refine)
{
    for (size_t i = 0; i < refine->n_frames; i++) {
        refine->frames[i].pose_before = refine->frames[i].pose;
        memcpy(refine->frames[i].moved_before, refine->frames[i].moved,
               sizeof refine->frames[i].moved);
        refine->frames[i].camera_before = refine->frames[i].camera;
    }
}

void vxd_refine_revert_frames(struct vxd_refine *refine)
{
    for (size_t i = 0; i < refine->n_frames; i++) {
        refine->frames[i].pose = refine->frames[i].pose_before;
        memcpy(refine->frames[i].moved, refine->frames[i].moved_before,
               sizeof refine->frames[i].moved);
        refine->frames[i].camera = refine->frames[i].camera_before;
    }
}
