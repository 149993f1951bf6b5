// SPDX-License-Identifier: Apache-2.0
/* Contacts: shapes, or a robot of spheres along trajectories. */
#include <math.h>

#include "server/instance/instance.h"
#include "server/service/field/service_field.h"
#include "server/service/service.h"

enum {
    MAX_RADIUS = 64,        /* voxels, of a ball around a box or capsule, */
    MAX_REACH = 256,        /* around a sphere or robot */
    MAX_ROBOT = 256,        /* spheres of a robot */
    MAX_CHECKS = 1 << 12,   /* spheres of all steps of a trajectory */
    SPHERES_PART = 1 << 12, /* of one stage on a CPU, */
    VOXELS_PART = 1 << 21,  /* or voxels within the bounds of boxes and capsules */
    GPU_TIMES = 64,         /* as much of it on a GPU */
    SPHERE = 4,             /* numbers of a row: centre, radius */
    BOX = 10,               /* centre, half sides, quaternion */
    CAPSULE = 7,            /* both ends, radius */
    POSE = 7                /* position, quaternion */
};

struct collide_job {
    struct vxd_field_job field; /* first: request->state is both */
    size_t n_spheres;           /* of the robot */
    size_t n_steps;
    const struct vxd_field_shape *shapes; /* device */
    const double *spheres;
    const double *poses;
    struct vxd_column *hits;  /* of trajectories made of their first steps */
    struct vxd_column *first; /* NULL: shapes */
    struct vxd_column *clearance;
};

/* The tensor that a request has of the four kinds, and what it is called. */
struct given {
    const Voxeld__V1__Tensor *tensor;
    const char *field;
    size_t columns;
    enum vxd_field_shape_kind kind;
};

static bool find_given(const Voxeld__V1__SceneCollideRequest *input, struct given *out)
{
    const struct given all[4] = {
        {input->spheres, "spheres", SPHERE, VXD_FIELD_SPHERE},
        {input->boxes, "boxes", BOX, VXD_FIELD_BOX},
        {input->capsules, "capsules", CAPSULE, VXD_FIELD_CAPSULE},
        {input->poses, "poses", POSE, VXD_FIELD_SPHERE}};
    int n = 0;

    for (int i = 0; i < 4; i++) {
        if (all[i].tensor != NULL) {
            *out = all[i];
            n++;
        }
    }
    return n == 1;
}

/* --- checks ------------------------------------------------------------------------------- */

static enum vxd_status check_rows(const Voxeld__V1__Tensor *tensor, const char *field,
                                  size_t columns, struct vxd_err *err)
{
    size_t n = (size_t)tensor->shape[0];

    for (size_t i = 0; i < n * columns; i++) {
        if (!isfinite(vxd_scene_number(tensor, i))) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                            "row %zu has the number %g, it must be finite", i / columns,
                            vxd_scene_number(tensor, i));
        }
    }
    return VXD_OK;
}

/* Numbers of rows that must not be negative: radii, and half sides. */
static enum vxd_status check_sizes(const struct given *given, const char *field,
                                   struct vxd_err *err)
{
    size_t n = (size_t)given->tensor->shape[0];
    size_t first = given->columns == BOX ? 3 : given->columns - 1;
    size_t last = given->columns == BOX ? 5 : given->columns - 1;

    for (size_t i = 0; i < n; i++) {
        for (size_t j = first; j <= last; j++) {
            double size = vxd_scene_number(given->tensor, i * given->columns + j);

            if (size < 0) {
                return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                                "row %zu has the %s %g, it must be >= 0", i,
                                given->columns == BOX ? "half side" : "radius", size);
            }
        }
    }
    return VXD_OK;
}

/* Reads a quaternion x y z w and makes it one of unit length; all zero is no rotation. */
static bool read_rotation(const Voxeld__V1__Tensor *tensor, size_t at, double q[4])
{
    double length = 0;

    for (size_t i = 0; i < 4; i++) {
        q[i] = vxd_scene_number(tensor, at + i);
        length += q[i] * q[i];
    }
    length = sqrt(length);
    if (length == 0) {
        q[3] = 1;
        return true;
    }
    for (int i = 0; i < 4; i++) {
        q[i] /= length;
    }
    return fabs(length - 1) <= 1e-3;
}

static enum vxd_status check_rotations(const struct given *given, size_t first,
                                       struct vxd_err *err)
{
    size_t n = (size_t)given->tensor->shape[0];
    double q[4];

    for (size_t i = 0; i < n; i++) {
        if (!read_rotation(given->tensor, i * given->columns + first, q)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, given->field,
                            "row %zu: the quaternion's norm must be within 1e-3 of 1, or "
                            "0 for no rotation",
                            i);
        }
    }
    return VXD_OK;
}

/* The robot, and the number of steps. */
static enum vxd_status check_robot(const Voxeld__V1__SceneCollideRequest *input,
                                   struct collide_job *job, struct vxd_err *err)
{
    struct vxd_query *query = &job->field.base.query;
    struct given robot = {input->robot, "robot", SPHERE, VXD_FIELD_SPHERE};
    enum vxd_status status;

    VXD_TRY(vxd_scene_check_numbers(input->robot, "robot", SPHERE, false, &job->n_spheres,
                                    err));
    VXD_TRY(check_rows(input->robot, "robot", SPHERE, err));
    VXD_TRY(check_sizes(&robot, "robot", err));
    if (job->n_spheres == 0) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "robot", "has no sphere"));
    }
    job->n_steps = input->n_steps;
    if (job->n_steps == 0 || query->n % job->n_steps != 0) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "n_steps",
                         "is %zu, it must divide the %zu poses", job->n_steps, query->n));
    }
    if (job->n_spheres > MAX_ROBOT) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "robot",
                         "has %zu spheres, at most %d are possible, and %d in all steps "
                         "of a trajectory",
                         job->n_spheres, MAX_ROBOT, MAX_CHECKS));
    }
    if (job->n_spheres > MAX_CHECKS / job->n_steps) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "n_steps",
                         "%zu steps of %zu spheres are more than %d of a trajectory "
                         "(and a robot has at most %d): give trajectories of at most "
                         "%zu steps",
                         job->n_steps, job->n_spheres, MAX_CHECKS, MAX_ROBOT,
                         MAX_CHECKS / job->n_spheres));
    }
    query->n /= job->n_steps;
out:
    return status;
}

enum vxd_status vxd_scene_collide_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SceneCollideRequest *input =
        (const Voxeld__V1__SceneCollideRequest *)request->input;
    struct collide_job *job;
    struct given given;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    job->field.asked_by = "name";
    VXD_TRY(vxd_scene_check_at(input->at, "at", err));
    if (!find_given(input, &given)) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "spheres",
                         "one of spheres, boxes, capsules and poses is required"));
    }
    VXD_TRY(vxd_scene_check_numbers(given.tensor, given.field, given.columns, false,
                                    &job->field.base.query.n, err));
    VXD_TRY(check_rows(given.tensor, given.field, given.columns, err));
    request->bulk = job->field.base.query.n > request->server->config.bulk_points / 16;
    request->cost_bytes = job->field.base.query.n * (sizeof(struct vxd_field_shape) + 16);
    if (given.tensor == input->poses) {
        VXD_TRY(check_rotations(&given, 3, err));
        VXD_TRY(check_robot(input, job, err));
    } else {
        VXD_TRY(check_sizes(&given, given.field, err));
        VXD_TRY(given.columns == BOX ? check_rotations(&given, 6, err) : VXD_OK);
    }
out:
    return status;
}

/* --- shapes ------------------------------------------------------------------------------- */

static double to_voxels(const struct vxd_scene_spec *spec, size_t axis, double metres)
{
    return (metres - spec->origin_m[axis]) / spec->voxel_size_m;
}

/* Shape i in voxels. Returns the radius of a ball around `middle` that holds it. */
static double read_shape(const struct vxd_scene_spec *spec, const struct given *given,
                         size_t i, struct vxd_field_shape *out, double middle[3])
{
    size_t at = i * given->columns;
    double length = 0;

    *out = (struct vxd_field_shape){.kind = (int32_t)given->kind};
    for (size_t axis = 0; axis < 3; axis++) {
        out->a[axis] = to_voxels(spec, axis, vxd_scene_number(given->tensor, at + axis));
        middle[axis] = out->a[axis];
    }
    if (given->kind == VXD_FIELD_BOX) {
        for (size_t axis = 0; axis < 3; axis++) {
            out->b[axis] =
                vxd_scene_number(given->tensor, at + 3 + axis) / spec->voxel_size_m;
            length += out->b[axis] * out->b[axis];
        }
        (void)read_rotation(given->tensor, at + 6, out->q);
        return sqrt(length);
    }
    out->r =
        vxd_scene_number(given->tensor, at + given->columns - 1) / spec->voxel_size_m;
    for (size_t axis = 0; axis < 3 && given->kind == VXD_FIELD_CAPSULE; axis++) {
        out->b[axis] =
            to_voxels(spec, axis, vxd_scene_number(given->tensor, at + 3 + axis));
        middle[axis] = (out->a[axis] + out->b[axis]) / 2;
        length += (out->b[axis] - out->a[axis]) * (out->b[axis] - out->a[axis]);
    }
    return sqrt(length) / 2 + out->r;
}

/* Adds a ball to the box, if it is where a field can be. */
static enum vxd_status add_ball(const struct vxd_scene_spec *spec, const char *field,
                                size_t row, const double middle[3], double radius,
                                int most, struct vxd_field_box *box, struct vxd_err *err)
{
    double side = (double)((int64_t)1 << spec->format.depth);

    if (!(radius <= most)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "row %zu takes a ball with the radius %.3g m, at most %g m (%d "
                        "voxels) are possible",
                        row, radius * spec->voxel_size_m, most * spec->voxel_size_m,
                        most);
    }
    for (int axis = 0; axis < 3; axis++) {
        if (!(middle[axis] - radius >= -VXD_FIELD_OUTSIDE &&
              middle[axis] + radius <= side + VXD_FIELD_OUTSIDE)) {
            return vxd_fail(err, VXD_OUT_OF_RANGE, field,
                            "row %zu reaches more than %d voxels out of the scene", row,
                            VXD_FIELD_OUTSIDE);
        }
    }
    vxd_field_box_add(box, middle, radius);
    return VXD_OK;
}

/* Voxels within the bounds of a ball. */
static double voxels_of(double radius)
{
    double side = 2 * radius + 2;

    return side * side * side;
}

static enum vxd_status begin_shapes(struct vxd_request *request, struct vxd_queue *queue,
                                    const struct given *given, struct vxd_field_box *box,
                                    double *radius, struct vxd_err *err)
{
    struct collide_job *job = request->state;
    struct vxd_query *query = request->state;
    Voxeld__V1__SceneCollideResponse *reply =
        (Voxeld__V1__SceneCollideResponse *)query->reply;
    const struct vxd_scene_spec *spec = &job->field.base.scene->spec;
    struct vxd_field_shape *shapes;
    const void *uploaded;
    void *block;
    enum vxd_status status;

    VXD_TRY(vxd_scene_take_host(request, query->n, sizeof *shapes, &block, err));
    shapes = block;
    for (size_t i = 0; i < query->n; i++) {
        double middle[3];
        double here = read_shape(spec, given, i, &shapes[i], middle);

        VXD_TRY(add_ball(spec, given->field, i, middle, here,
                         given->kind == VXD_FIELD_SPHERE ? MAX_REACH : MAX_RADIUS, box,
                         err));
        *radius = fmax(*radius, here);
    }
    VXD_TRY(vxd_scene_upload(request, queue, shapes, query->n * sizeof *shapes, &uploaded,
                             err));
    job->shapes = uploaded;
    query->part_rows = given->kind == VXD_FIELD_SPHERE
                           ? SPHERES_PART
                           : (size_t)fmin(VOXELS_PART / voxels_of(*radius), SPHERES_PART);
    query->part_rows = query->part_rows > 0 ? query->part_rows : 1;
    VXD_TRY(
        vxd_query_reserve(request, queue, VXD_UINT8, 0, &reply->hits, &job->hits, err));
out:
    return status;
}

/* --- trajectories ------------------------------------------------------------------------- */

/* The robot in voxels; returns the radius of a ball around its frame's origin that holds it, and
 * in *largest that of its largest sphere. */
static double read_robot(const struct vxd_scene_spec *spec,
                         const Voxeld__V1__Tensor *robot, size_t n, double *spheres,
                         double *largest)
{
    double radius = 0;

    for (size_t i = 0; i < n; i++) {
        double *sphere = spheres + SPHERE * i;
        double away;

        for (size_t j = 0; j < SPHERE; j++) {
            sphere[j] = vxd_scene_number(robot, SPHERE * i + j) / spec->voxel_size_m;
        }
        away =
            sqrt(sphere[0] * sphere[0] + sphere[1] * sphere[1] + sphere[2] * sphere[2]);
        radius = fmax(radius, away + sphere[3]);
        *largest = fmax(*largest, sphere[3]);
    }
    return radius;
}

static enum vxd_status read_poses(struct collide_job *job, const struct given *given,
                                  double around, double *poses, struct vxd_field_box *box,
                                  struct vxd_err *err)
{
    const struct vxd_scene_spec *spec = &job->field.base.scene->spec;
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < job->field.base.query.n * job->n_steps; i++) {
        double *pose = poses + POSE * i;

        for (size_t axis = 0; axis < 3; axis++) {
            pose[axis] =
                to_voxels(spec, axis, vxd_scene_number(given->tensor, POSE * i + axis));
        }
        (void)read_rotation(given->tensor, POSE * i + 3, pose + 3);
        VXD_TRY(add_ball(spec, given->field, i, pose, around, MAX_REACH, box, err));
    }
out:
    return status;
}

static enum vxd_status begin_trajectories(struct vxd_request *request,
                                          struct vxd_queue *queue,
                                          const struct given *given,
                                          struct vxd_field_box *box, double *radius,
                                          struct vxd_err *err)
{
    const Voxeld__V1__SceneCollideRequest *input =
        (const Voxeld__V1__SceneCollideRequest *)request->input;
    struct collide_job *job = request->state;
    struct vxd_query *query = request->state;
    Voxeld__V1__SceneCollideResponse *reply =
        (Voxeld__V1__SceneCollideResponse *)query->reply;
    size_t n_poses = query->n * job->n_steps;
    const void *spheres;
    const void *poses;
    void *blocks[2];
    double around;
    enum vxd_status status;

    VXD_TRY(vxd_scene_take_host(request, job->n_spheres, (size_t)SPHERE * 8, &blocks[0],
                                err));
    VXD_TRY(vxd_scene_take_host(request, n_poses, (size_t)POSE * 8, &blocks[1], err));
    around = read_robot(&job->field.base.scene->spec, input->robot, job->n_spheres,
                        blocks[0], radius);
    VXD_TRY(read_poses(job, given, around, blocks[1], box, err));
    VXD_TRY(vxd_scene_upload(request, queue, blocks[0], job->n_spheres * SPHERE * 8,
                             &spheres, err));
    VXD_TRY(vxd_scene_upload(request, queue, blocks[1], n_poses * POSE * 8, &poses, err));
    job->spheres = spheres;
    job->poses = poses;
    query->part_rows = SPHERES_PART / (job->n_steps * job->n_spheres); /* 1 at least */
    VXD_TRY(
        vxd_query_reserve(request, queue, VXD_INT32, 0, &reply->first, &job->first, err));
    VXD_TRY(vxd_query_reserve_made(request, VXD_UINT8, 0, &reply->hits, &job->hits, err));
out:
    return status;
}

/* --- the request -------------------------------------------------------------------------- */

/* Whether clearances are known, for which the field reaches beyond the largest sphere. */
static bool has_clearance(const Voxeld__V1__SceneCollideRequest *input)
{
    return input->spheres != NULL || input->poses != NULL;
}

static enum vxd_status begin(struct vxd_request *request, struct vxd_queue *queue,
                             struct vxd_err *err)
{
    const Voxeld__V1__SceneCollideRequest *input =
        (const Voxeld__V1__SceneCollideRequest *)request->input;
    struct collide_job *job = request->state;
    struct vxd_query *query = request->state;
    struct vxd_field_box box = vxd_field_box_empty();
    struct given given = {0};
    double radius = 0;
    enum vxd_status status;

    (void)find_given(input, &given);
    VXD_TRY(vxd_scene_open(request, input->name, input->at, err));
    VXD_TRY(input->poses != NULL
                ? begin_trajectories(request, queue, &given, &box, &radius, err)
                : begin_shapes(request, queue, &given, &box, &radius, err));
    VXD_TRY(vxd_field_set_terms(
        &job->field, input->unknown, input->max_distance_m,
        has_clearance(input) ? radius + 1 : 0, VXD_FIELD_SURFACE_SPARE,
        input->max_distance_m > 0 ? "max_distance_m" : given.field, err));
    vxd_field_set_box(&job->field, &box);
    VXD_TRY(
        vxd_query_reserve(request, queue, VXD_FLOAT32, 0,
                          &((Voxeld__V1__SceneCollideResponse *)query->reply)->clearance,
                          &job->clearance, err));
    query->part_rows *= vxd_field_on_gpu(request) ? GPU_TIMES : 1;
out:
    return status;
}

static enum vxd_status run(struct vxd_request *request, struct vxd_queue *queue,
                           size_t first, size_t n, struct vxd_err *err)
{
    const struct collide_job *job = request->state;
    const struct vxd_field *field = vxd_field_of(&job->field);
    float *clearance = vxd_scene_row(job->clearance, first, sizeof *clearance);
    struct vxd_field_trajectories in = {job->spheres, job->poses, job->n_spheres,
                                        job->n_steps, n};

    if (job->poses == NULL) {
        return vxd_field_collide(queue, field, job->shapes + first, n,
                                 vxd_scene_row(job->hits, first, 1), clearance, err);
    }
    in.poses += POSE * job->n_steps * first;
    return vxd_field_follow(queue, field, &in,
                            vxd_scene_row(job->first, first, sizeof(int32_t)), clearance,
                            err);
}

/* Says which rows are in contact: as the engine says of shapes, by the first step of trajectories. */
static enum vxd_status end(struct vxd_request *request, struct vxd_queue *queue,
                           struct vxd_err *err)
{
    const struct collide_job *job = request->state;
    Voxeld__V1__SceneCollideResponse *reply =
        (Voxeld__V1__SceneCollideResponse *)job->field.base.query.reply;
    const int32_t *first = job->first != NULL ? job->first->bytes : NULL;
    uint8_t *hits = job->hits->bytes;

    (void)queue;
    for (size_t i = 0; i < job->field.base.query.n; i++) {
        if (first != NULL) {
            hits[i] = first[i] >= 0 ? 1 : 0;
        }
        reply->n_hits += hits[i];
    }
    reply->max_distance_m = vxd_field_reach_m(&job->field, VXD_FIELD_SURFACE_SPARE);
    return vxd_scene_new_seen(request, &reply->seen, err);
}

const struct vxd_query_calls vxd_scene_collide_query = {.begin = begin,
                                                        .prepare = vxd_field_prepare,
                                                        .run = run,
                                                        .end = end,
                                                        .close = vxd_field_close};
