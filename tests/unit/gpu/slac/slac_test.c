// SPDX-License-Identifier: Apache-2.0
/* SLAC: derivatives of equation 15 against differences, rotations against their optimum, a planted
 * distortion that comes back, equal bits on all backends, and what is refused. */
#include "gpu/slac/slac.h"
#include "gpu/slac/slac_internal.h"
#include "tests/support/limits.h"
#include "tests/support/slac/slac_scene.h"
#include "tests/support/test.h"

#include <math.h>

#define AMPLITUDE 0.03

/* ---- Rotations ---- */

static void random_rotation(uint64_t *state, double q[4])
{
    double length = 0;

    for (int i = 0; i < 4; i++) {
        q[i] = (double)gpu_random_float(state, -1, 1);
        length += q[i] * q[i];
    }
    for (int i = 0; i < 4; i++) {
        q[i] /= sqrt(length);
    }
}

static double trace_with(const double q[4], const double s[9])
{
    double r[9];
    double sum = 0;

    vxd_slac_rotation_of(q, r);
    for (int i = 0; i < 9; i++) {
        sum += r[i] * s[i];
    }
    return sum;
}

/* A rotation near to the guess is found whose trace with S no small turn makes larger. */
static void test_rotation_is_the_nearest_to_a_sum(void)
{
    uint64_t state = 3;

    for (int round = 0; round < 300; round++) {
        double s[9];
        double turn[4];
        double r[9];
        double q[4] = {0, 0, 0, 1};
        double best;

        for (int i = 0; i < 3; i++) { /* a small turn of a stretch */
            turn[i] = (double)gpu_random_float(&state, -0.4f, 0.4f);
        }
        turn[3] = 1;
        vxd_slac_turn(turn, q);
        vxd_slac_rotation_of(q, r);
        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < 3; j++) {
                s[3 * i + j] = r[3 * i + j] * (0.5 + 0.3 * j) +
                               (double)gpu_random_float(&state, -0.05f, 0.05f);
            }
        }
        q[0] = q[1] = q[2] = 0;
        q[3] = 1;
        vxd_slac_polar(s, q);
        CHECK(fabs(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3] - 1) < 1e-12);
        best = trace_with(q, s);
        for (int k = 0; k < 6; k++) {
            double by[3] = {0};
            double other[4] = {q[0], q[1], q[2], q[3]};

            by[k / 2] = k % 2 == 0 ? 1e-4 : -1e-4;
            vxd_slac_turn(by, other);
            CHECK(trace_with(other, s) <= best);
        }
        for (int k = 0; k < 50; k++) { /* nor any other rotation */
            double other[4];

            random_rotation(&state, other);
            CHECK(trace_with(other, s) <= best + 1e-12);
        }
    }
}

/* A single neighbour leaves a turn open, which the guess decides; none leaves all. */
static void test_rotation_of_few_neighbours_is_the_guess_where_it_is_open(void)
{
    const double none[9] = {0};
    const double one[9] = {0, -0.2, 0, 0.9, 0, 0, 0, 0, 0}; /* x goes to y mostly */
    double q[4] = {0, 0, 0, 1};
    double r[9];

    vxd_slac_polar(none, q);
    CHECK(q[0] == 0 && q[1] == 0 && q[2] == 0 && q[3] == 1);
    vxd_slac_polar(one, q);
    vxd_slac_rotation_of(q, r);
    CHECK(fabs(r[3] - 1) < 1e-9 && fabs(r[1] + 1) < 1e-9 && fabs(r[8] - 1) < 1e-9);
}

/* ---- Problems ---- */

struct problem {
    struct slac_scene scene;
    struct vxd_slac_fragment fragments[SLAC_MAX_FRAGMENTS];
    struct vxd_buffer *buffers;
    struct vxd_slac_args args;
};

static void problem_make(struct gpu_env *env, struct problem *problem, size_t n_fragments,
                         int width)
{
    slac_scene_make(&problem->scene, n_fragments, width, AMPLITUDE, 0.0003, 0.02);
    slac_scene_upload(env, &problem->scene, problem->fragments, &problem->buffers);
    problem->args = (struct vxd_slac_args){.fragments = problem->fragments,
                                           .n_fragments = n_fragments};
}

static void problem_free(struct gpu_env *env, struct problem *problem)
{
    slac_buffers_free(env, &problem->scene, problem->buffers);
    slac_scene_free(&problem->scene);
}

static struct vxd_slac *make(struct gpu_env *env, const struct vxd_slac_args *args)
{
    struct vxd_slac *slac = NULL;
    struct vxd_err err = {0};

    if (vxd_slac_create(env->queue, args, &slac, &err) != VXD_OK) {
        (void)fprintf(stderr, "%s: %s: %s\n", env->name, err.field, err.message);
        exit(1);
    }
    return slac;
}

static struct vxd_slac_loss steps(struct gpu_env *env, struct vxd_slac *slac, int n)
{
    struct vxd_slac_loss loss = {0};
    struct vxd_err err = {0};

    for (int i = 0; i < n; i++) {
        CHECK_INT(vxd_slac_step(env->queue, slac, &loss, &err), VXD_OK);
    }
    CHECK_INT(vxd_slac_find_pairs(env->queue, slac, &loss, &err), VXD_OK);
    CHECK_STR(err.message, "");
    return loss;
}

/* ---- Derivatives ---- */

static void run(struct gpu_env *env, const struct vxd_slac_state *s,
                enum vxd_slac_step_kind step, size_t n)
{
    struct vxd_err err = {0};

    CHECK_INT(vxd_slac_run(env->queue, s, step, n, &err), VXD_OK);
}

/* Half of equation 15 with the pairs, normals and rotations as they are. */
static double half_loss(struct gpu_env *env, const struct vxd_slac_state *state,
                        float *kept_normals)
{
    struct vxd_slac_state s = *state;
    struct vxd_err err = {0};
    double *strips = gpu_alloc(s.n_strips * sizeof *strips);
    double *nodes = gpu_alloc((s.n_nodes + 1) * sizeof *nodes);
    double sum = 0;

    s.placed_normals = kept_normals; /* the pairs' own stay in the links */
    run(env, &s, VXD_SLAC_STEP_place, s.n_points);
    run(env, &s, VXD_SLAC_STEP_strip_loss, s.n_strips);
    run(env, &s, VXD_SLAC_STEP_node_loss, s.n_nodes);
    CHECK(vxd_slac_read(env->queue, s.strip_losses, s.n_strips * 8, strips, &err) ==
          VXD_OK);
    CHECK(vxd_slac_read(env->queue, s.node_losses, s.n_nodes * 8, nodes, &err) == VXD_OK);
    for (size_t i = 0; i < s.n_strips; i++) {
        sum += strips[i] / 2;
    }
    for (size_t i = 0; i < s.n_nodes; i++) {
        sum += nodes[i] / 2;
    }
    free(strips);
    free(nodes);
    return sum;
}

/* Moves one unknown, on the device: a control point's offset by a step that float32 has exactly, or a
 * pose by exp(x). */
static void nudge(struct gpu_env *env, const struct vxd_slac_state *s, size_t unknown,
                  double by)
{
    struct vxd_err err = {0};
    double *x = gpu_alloc(s->n_unknowns * sizeof *x);

    memset(x, 0, s->n_unknowns * sizeof *x);
    x[unknown] = by;
    CHECK(vxd_queue_copy(env->queue, s->x, x, s->n_unknowns * 8, &err) == VXD_OK);
    gpu_wait(env);
    run(env, s, VXD_SLAC_STEP_move_node, 3 * s->n_nodes);
    run(env, s, VXD_SLAC_STEP_move_pose, s->n_fragments);
    gpu_wait(env);
    free(x);
}

/* Rounds offsets to multiples of 2^-16, so that steps of 2^-12 are exact in float32. */
static void round_offsets(struct gpu_env *env, const struct vxd_slac_state *s)
{
    struct vxd_err err = {0};
    float *offsets = gpu_alloc(3 * s->n_nodes * sizeof *offsets);

    CHECK(vxd_slac_read(env->queue, s->offsets, 3 * s->n_nodes * 4, offsets, &err) ==
          VXD_OK);
    for (size_t i = 0; i < 3 * s->n_nodes; i++) {
        offsets[i] = (float)(rint((double)offsets[i] * 65536) / 65536);
    }
    CHECK(vxd_queue_copy(env->queue, s->offsets, offsets, 3 * s->n_nodes * 4, &err) ==
          VXD_OK);
    gpu_wait(env);
    free(offsets);
}

static void check_derivatives(struct gpu_env *env, enum vxd_slac_metric metric)
{
    struct problem problem;
    struct vxd_slac *slac;
    struct vxd_slac_state *s;
    struct vxd_err err = {0};
    float *normals;
    double *descent;
    double *poses;
    double largest = 0;
    uint64_t state = 5;
    void *kept = NULL;

    problem_make(env, &problem, 6, 48);
    problem.args.options.metric = metric;
    problem.args.options.fitness = 0.05;
    problem.args.options.lambda = 3;
    slac = make(env, &problem.args);
    s = &slac->state;
    (void)steps(env, slac, 1);
    round_offsets(env, s);
    (void)steps(env, slac, 0); /* pairs and rotations where the fragments are now */
    descent = gpu_alloc(s->n_unknowns * sizeof *descent);
    poses = gpu_alloc(12 * s->n_fragments * sizeof *poses);
    CHECK(vxd_queue_fill(env->queue, s->work, 0, sizeof *s->work, &err) == VXD_OK);
    run(env, s, VXD_SLAC_STEP_pull, s->n_points);
    run(env, s, VXD_SLAC_STEP_chunk, 24 * s->n_chunks);
    run(env, s, VXD_SLAC_STEP_strip, 6 * s->n_strips);
    run(env, s, VXD_SLAC_STEP_descent, s->n_unknowns);
    CHECK(vxd_slac_read(env->queue, s->r, s->n_unknowns * 8, descent, &err) == VXD_OK);
    CHECK(vxd_slac_read(env->queue, s->poses, 96 * s->n_fragments, poses, &err) ==
          VXD_OK);
    CHECK(vxd_slac_take(env->queue, &slac->memory, s->n_points, 12, &kept, &err) ==
          VXD_OK);
    normals = kept;
    for (size_t i = 0; i < s->n_unknowns; i++) {
        largest = fmax(largest, fabs(descent[i]));
    }
    for (int round = 0; round < 60; round++) {
        bool is_pose = round % 3 == 0;
        size_t n_free = 6 * (s->n_fragments - 1);
        size_t unknown = is_pose ? 3 * s->n_nodes + 6 + gpu_random(&state) % n_free
                                 : gpu_random(&state) % (3 * s->n_nodes);
        double step = is_pose ? 1e-5 : 1.0 / 4096;
        double high;
        double low;
        double error;

        nudge(env, s, unknown, step);
        high = half_loss(env, s, normals);
        if (is_pose) { /* -step from where it was, not the inverse of the step */
            CHECK(vxd_queue_copy(env->queue, s->poses, poses, 96 * s->n_fragments,
                                 &err) == VXD_OK);
            nudge(env, s, unknown, -step);
        } else {
            nudge(env, s, unknown, -2 * step);
        }
        low = half_loss(env, s, normals);
        if (is_pose) {
            CHECK(vxd_queue_copy(env->queue, s->poses, poses, 96 * s->n_fragments,
                                 &err) == VXD_OK);
        } else {
            nudge(env, s, unknown, step);
        }
        /* The loss is quadratic in control points, so differences are exact; a turn adds terms of
         * the third order. */
        error = fabs((high - low) / (2 * step) + descent[unknown]) / largest;
        CHECK(error < 1e-6);
    }
    free(descent);
    free(poses);
    vxd_slac_destroy(env->queue, slac);
    problem_free(env, &problem);
}

static void derivatives(struct gpu_env *env)
{
    check_derivatives(env, VXD_SLAC_POINT_TO_PLANE);
    check_derivatives(env, VXD_SLAC_POINT_TO_POINT);
}

static void test_descent_is_the_derivative_of_equation_15(void)
{
    struct gpu_env env;

    gpu_env_create(&env, VXD_BACKEND_CPU, 2, 0, 0);
    derivatives(&env);
    gpu_env_destroy(&env);
}

/* ---- The matrix ---- */

/* The product with p is J^T (J p), so it is the change of the descent that a move by p makes, and it is
 * symmetric. */
static void test_product_is_symmetric_and_the_descents_change(void)
{
    struct gpu_env env;
    struct problem problem;
    struct vxd_slac *slac;
    struct vxd_slac_state *s;
    struct vxd_err err = {0};
    double *vectors[4];
    uint64_t state = 17;
    double ab = 0;
    double ba = 0;
    double aa = 0;

    gpu_env_create(&env, VXD_BACKEND_CPU, 2, 0, 0);
    problem_make(&env, &problem, 6, 48);
    problem.args.options.fitness = 0.05;
    slac = make(&env, &problem.args);
    s = &slac->state;
    (void)steps(&env, slac, 0);
    CHECK(vxd_queue_fill(env.queue, s->work, 0, sizeof *s->work, &err) == VXD_OK);
    CHECK(vxd_queue_fill(env.queue, s->damping, 0, s->n_nodes * 8, &err) == VXD_OK);
    for (int i = 0; i < 4; i++) {
        vectors[i] = gpu_alloc(s->n_unknowns * sizeof(double));
    }
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < s->n_unknowns; k++) {
            bool is_first_pose = k >= 3 * s->n_nodes && k < 3 * s->n_nodes + 6;

            vectors[i][k] = is_first_pose ? 0 : (double)gpu_random_float(&state, -1, 1);
        }
        CHECK(vxd_queue_copy(env.queue, s->p, vectors[i], s->n_unknowns * 8, &err) ==
              VXD_OK);
        run(&env, s, VXD_SLAC_STEP_displace, s->n_points);
        run(&env, s, VXD_SLAC_STEP_force, s->n_points);
        run(&env, s, VXD_SLAC_STEP_chunk, 24 * s->n_chunks);
        run(&env, s, VXD_SLAC_STEP_strip, 6 * s->n_strips);
        run(&env, s, VXD_SLAC_STEP_product, s->n_unknowns);
        CHECK(vxd_slac_read(env.queue, s->q, s->n_unknowns * 8, vectors[2 + i], &err) ==
              VXD_OK);
    }
    for (size_t k = 0; k < s->n_unknowns; k++) {
        ab += vectors[0][k] * vectors[3][k];
        ba += vectors[1][k] * vectors[2][k];
        aa += vectors[0][k] * vectors[2][k];
    }
    CHECK(aa > 0);
    CHECK(fabs(ab - ba) < 1e-9 * aa);
    for (int i = 0; i < 4; i++) {
        free(vectors[i]);
    }
    vxd_slac_destroy(env.queue, slac);
    problem_free(&env, &problem);
    gpu_env_destroy(&env);
}

/* ---- A planted distortion ---- */

struct outcome {
    double map_m;        /* rms distance of points to where they truly are */
    double distortion_m; /* of C to D */
    struct slac_score score;
};

static struct outcome judge(struct gpu_env *env, const struct problem *problem,
                            const struct vxd_slac *slac)
{
    struct vxd_volume_pose poses[SLAC_MAX_FRAGMENTS];
    struct vxd_err err = {0};
    struct outcome out;
    size_t n;
    float *truth = slac_scene_truth(&problem->scene, &n);
    float *points;

    CHECK_INT(vxd_slac_read_poses(env->queue, slac, poses, &err), VXD_OK);
    points = slac_scene_map(env, &problem->scene, vxd_slac_grid(slac),
                            slac->options.cell_m, poses, &n);
    out.map_m = slac_align(points, truth, n);
    out.score = slac_score(points, n, truth, n, 0.02);
    out.distortion_m = slac_distortion_left(env, &problem->scene, vxd_slac_grid(slac),
                                            slac->options.cell_m, AMPLITUDE);
    free(points);
    free(truth);
    return out;
}

static void test_planted_distortion_is_found(void)
{
    struct gpu_env env;
    struct problem problem;
    struct vxd_slac *slac;
    struct vxd_slac_loss rigid_loss;
    struct vxd_slac_loss loss;
    struct outcome rigid;
    struct outcome bent;

    gpu_env_create(&env, VXD_BACKEND_CPU, 2, 0, 0);
    problem_make(&env, &problem, 24, 120);
    problem.args.options.is_rigid = true;
    slac = make(&env, &problem.args);
    CHECK(vxd_slac_grid(slac) == NULL);
    rigid_loss = steps(&env, slac, 5);
    rigid = judge(&env, &problem, slac);
    vxd_slac_destroy(env.queue, slac);
    problem.args.options.is_rigid = false;
    slac = make(&env, &problem.args);
    loss = steps(&env, slac, 5);
    bent = judge(&env, &problem, slac);
    vxd_slac_destroy(env.queue, slac);
    (void)printf("rigid: %.1f mm, F %.3f; bent: %.1f mm, F %.3f, distortion %.2f of %.2f "
                 "mm left\n",
                 1e3 * rigid.map_m, rigid.score.f, 1e3 * bent.map_m, bent.score.f,
                 1e3 * bent.distortion_m, 1e3 * rigid.distortion_m);
    CHECK(rigid.distortion_m > 0.02);
    CHECK(bent.distortion_m <= 0.0025);
    CHECK(bent.score.f >= rigid.score.f + 0.08);
    CHECK(loss.data < 0.5 * rigid_loss.data);
    problem_free(&env, &problem);
    gpu_env_destroy(&env);
}

/* ---- Equal bits ---- */

static uint64_t digest_of(struct gpu_env *env, const struct vxd_slac *slac)
{
    struct vxd_hashmap_image image = {0};
    struct vxd_volume_pose poses[SLAC_MAX_FRAGMENTS];
    struct vxd_err err = {0};
    uint64_t digest = GPU_FNV_START;

    CHECK_INT(vxd_slac_read_poses(env->queue, slac, poses, &err), VXD_OK);
    digest = gpu_digest(digest, poses, slac->state.n_fragments * sizeof poses[0]);
    if (vxd_slac_grid(slac) != NULL) {
        CHECK_INT(vxd_hashmap_export(env->queue, vxd_slac_grid(slac), &image, &err),
                  VXD_OK);
        digest = gpu_digest(digest, image.keys.ptr, image.n_entries * 12);
        digest =
            gpu_digest(digest, image.values[VXD_SLAC_OFFSETS].ptr, image.n_entries * 12);
        digest = gpu_digest(digest, image.values[VXD_SLAC_ROTATIONS].ptr,
                            image.n_entries * 16);
        vxd_hashmap_image_free(&image);
    }
    return digest;
}

static uint64_t first_digest;

static void same_bits(struct gpu_env *env)
{
    struct problem problem;
    struct vxd_slac *slac;
    struct vxd_slac_loss loss;
    uint64_t digest = GPU_FNV_START;

    problem_make(env, &problem, 5, 32);
    problem.args.options.fitness = 0.05;
    problem.args.options.solver_steps = 8;
    problem.args.options.voxel_m = 0.1;
    problem.args.options.cell_m = 0.75;
    problem.args.options.distance_m = 0.15;
    for (int kind = 0; kind < 3; kind++) {
        problem.args.options.is_rigid = kind == 2;
        problem.args.options.metric =
            kind == 1 ? VXD_SLAC_POINT_TO_POINT : VXD_SLAC_POINT_TO_PLANE;
        slac = make(env, &problem.args);
        loss = steps(env, slac, 2);
        digest = gpu_digest(digest, &loss.data, sizeof loss.data);
        digest = gpu_digest(digest, &loss.regularizer, sizeof loss.regularizer);
        CHECK(loss.n_pairs > 100);
        digest ^= digest_of(env, slac);
        vxd_slac_destroy(env->queue, slac);
    }
    if (first_digest == 0) {
        first_digest = digest;
    }
    CHECK(digest == first_digest);
    problem_free(env, &problem);
}

static void test_result_has_the_same_bits_everywhere(void)
{
    first_digest = 0;
    gpu_each_backend(same_bits);
}

/* ---- What is refused ---- */

static void refuse(struct gpu_env *env, const struct vxd_slac_args *args,
                   enum vxd_status expected, const char *field, const char *text)
{
    struct vxd_slac *slac = NULL;
    struct vxd_slac_loss loss;
    struct vxd_err err = {0};
    enum vxd_status status = vxd_slac_create(env->queue, args, &slac, &err);

    if (status == VXD_OK) {
        status = vxd_slac_find_pairs(env->queue, slac, &loss, &err);
    }
    CHECK_INT(status, expected);
    CHECK_STR(err.field, field);
    if (strstr(err.message, text) == NULL) {
        CHECK_STR(err.message, text);
    }
    vxd_slac_destroy(env->queue, slac);
}

static void refusals(struct gpu_env *env)
{
    struct problem problem;
    struct vxd_slac_args args;
    struct vxd_slac_edge edges[2] = {{0, 1}, {1, 1}};
    const float nothing[3] = {NAN, 0, 0};
    struct vxd_buffer nan_point = gpu_to_device(env, nothing, sizeof nothing);
    struct vxd_slac_fragment kept;

    problem_make(env, &problem, 3, 32);
    args = problem.args;
    args.options.fitness = 0.02;
    args.n_fragments = 1;
    refuse(env, &args, VXD_INVALID_ARGUMENT, "fragments", "2 to 1024");
    args.n_fragments = 3;
    args.edges = edges;
    args.n_edges = 2;
    refuse(env, &args, VXD_INVALID_ARGUMENT, "edges[1]", "from fragment 1 to 1");
    edges[1].target = 7;
    refuse(env, &args, VXD_INVALID_ARGUMENT, "edges[1]", "to 7");
    args.n_edges = 1;
    refuse(env, &args, VXD_FAILED_PRECONDITION, "fragments",
           "\"part-2\" does not overlap");
    args.edges = NULL;
    args.options.max_unknowns = 100;
    refuse(env, &args, VXD_RESOURCE_EXHAUSTED, "max_unknowns", "100 are allowed");
    args.options.max_unknowns = 0;
    args.options.cell_m = NAN;
    refuse(env, &args, VXD_INVALID_ARGUMENT, "cell_m", "0.01");
    args.options.cell_m = 0;
    kept = problem.fragments[1];
    problem.fragments[1].T_map_fragment.rotation[4] += 0.1;
    refuse(env, &args, VXD_INVALID_ARGUMENT, "fragments[1].T_map_fragment", "rotation");
    problem.fragments[1] = kept;
    problem.fragments[1].T_map_fragment.translation[0] += 100;
    refuse(env, &args, VXD_FAILED_PRECONDITION, "fragments", "\"part-1\"");
    problem.fragments[1] = kept;
    problem.fragments[1].normals = NULL;
    refuse(env, &args, VXD_INVALID_ARGUMENT, "fragments[1]", "no normals");
    problem.fragments[1] = kept;
    problem.fragments[1].points = nan_point.ptr;
    problem.fragments[1].n = 1;
    refuse(env, &args, VXD_INVALID_ARGUMENT, "fragments[1]", "no point that is finite");
    problem.fragments[1] = kept;
    vxd_device_free(env->queue, &nan_point);
    problem_free(env, &problem);
}

static void test_wrong_arguments_are_named(void)
{
    struct gpu_env env;

    gpu_env_create(&env, VXD_BACKEND_CPU, 2, 0, 0);
    refusals(&env);
    gpu_env_destroy(&env);
}

/* Without memory anywhere along the way nothing is left behind: the context's usage is as before. */
static void test_lack_of_memory_leaves_nothing(void)
{
    struct gpu_env env;
    struct problem problem;
    struct vxd_memory_usage before;
    struct vxd_memory_usage after;
    size_t n_failed = 0;

    gpu_env_create(&env, VXD_BACKEND_CPU, 2, (size_t)1 << 21, 0);
    problem_make(&env, &problem, 4, 48);
    problem.args.options.fitness = 0.02;
    vxd_context_get_memory(env.context, &before);
    for (double voxel = 0.4; voxel > 0.006; voxel *= 0.7) {
        struct vxd_slac *slac = NULL;
        struct vxd_slac_loss loss;
        struct vxd_err err = {0};
        enum vxd_status status;

        problem.args.options.voxel_m = voxel;
        status = vxd_slac_create(env.queue, &problem.args, &slac, &err);
        if (status == VXD_OK) {
            status = vxd_slac_find_pairs(env.queue, slac, &loss, &err);
        }
        CHECK(status == VXD_OK || status == VXD_RESOURCE_EXHAUSTED ||
              status == VXD_FAILED_PRECONDITION);
        n_failed += status == VXD_RESOURCE_EXHAUSTED ? 1 : 0;
        vxd_slac_destroy(env.queue, slac);
        gpu_wait(&env);
        vxd_context_get_memory(env.context, &after);
        CHECK_INT(after.device_bytes, before.device_bytes);
    }
    CHECK(n_failed > 0);
    problem_free(&env, &problem);
    gpu_env_destroy(&env);
}

static enum vxd_status check_options(void *user, void *structure, struct vxd_err *err)
{
    struct vxd_slac_options options = *(struct vxd_slac_options *)structure;

    (void)user;
    return vxd_slac_options_init(&options, err);
}

static void test_options_are_taken_up_to_the_ends_of_their_ranges(void)
{
#define REAL(name, low, high) TEST_LIMIT(struct vxd_slac_options, name, #name, low, high)
    static const struct test_limit limits[] = {
        TEST_LIMIT_INT(struct vxd_slac_options, metric, "metric", 0, 1),
        TEST_LIMIT_INT(struct vxd_slac_options, solver_steps, "solver_steps", 0, 1000),
        REAL(cell_m, 0.01, 100),
        REAL(lambda, 1e-9, 1e9),
        REAL(distance_m, 1e-3, 10),
        REAL(fitness, 1e-6, 1),
        REAL(voxel_m, 1e-3, 10),
        REAL(tolerance, 1e-9, 1)};
#undef REAL
    struct vxd_slac_options options = {.metric = VXD_SLAC_POINT_TO_PLANE};
    struct test_limited of = {&options, sizeof options, check_options, NULL};
    struct vxd_err err = {0};

    test_limits(&of, limits, sizeof limits / sizeof limits[0]);
    options.max_unknowns = VXD_SLAC_MAX_UNKNOWNS + 1;
    CHECK_INT(vxd_slac_options_init(&options, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "max_unknowns");
    options.max_unknowns = VXD_SLAC_MAX_UNKNOWNS;
    REQUIRE(vxd_slac_options_init(&options, &err) == VXD_OK);
    CHECK(options.cell_m == 0.375 && options.lambda == 0.2 && options.distance_m == 0.07);
    CHECK(options.fitness == 0.3 && options.voxel_m == 0.05 && options.tolerance == 1e-3);
    CHECK_INT(options.solver_steps, 60);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_rotation_is_the_nearest_to_a_sum),
    VXD_TEST(test_rotation_of_few_neighbours_is_the_guess_where_it_is_open),
    VXD_TEST(test_descent_is_the_derivative_of_equation_15),
    VXD_TEST(test_product_is_symmetric_and_the_descents_change),
    VXD_TEST(test_planted_distortion_is_found),
    VXD_TEST(test_result_has_the_same_bits_everywhere),
    VXD_TEST(test_wrong_arguments_are_named),
    VXD_TEST(test_options_are_taken_up_to_the_ends_of_their_ranges),
    VXD_TEST(test_lack_of_memory_leaves_nothing),
};

VXD_TEST_MAIN(tests)
