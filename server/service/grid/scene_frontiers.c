// SPDX-License-Identifier: Apache-2.0
/* Frontiers: columns or voxels a part a stage, then the marks of all, and their clusters on the host,
 * a part a stage again. */
#include <inttypes.h>
#include <math.h>

#include "server/instance/instance.h"
#include "server/service/service.h"
#include "server/service/grid/grid_job.h"

enum {
    /* Of one stage. */
    VOXELS_PART = 1 << 19,
    MARKS_PART = 1 << 17,   /* words of 32 cells */
    CLUSTER_PART = 1 << 14, /* words */
    /* What admission counts. */
    LOOK_BYTES = 1 << 22,  /* the scene in large cells, twice */
    JOINED_CELL_BYTES = 8, /* on the host: its rank and its cluster's number */
    SHOWN_CELL_BYTES = 20,
    CLUSTER_BYTES = sizeof(struct vxd_cluster) + 32
};

enum step {
    FIND_AREA,
    STATES,
    MARKS,
    JOIN,
    DONE
};

struct frontiers_job {
    struct vxd_scene_job base; /* first: request->state is both */
    enum step step;
    struct vxd_grid_area area;
    bool in_space;
    uint32_t n[3]; /* of the dense array: x y z in space, else 1 y x */
    uint32_t n_words;
    uint32_t next; /* row of z or of x, or word */
    void *states;  /* device */
    struct vxd_scene_output marks;
    struct vxd_clusters *clusters;
    const struct vxd_cluster *list;
    size_t n_list;
};

static const Voxeld__V1__SceneFrontiersRequest *
input_of(const struct vxd_request *request)
{
    return (const Voxeld__V1__SceneFrontiersRequest *)request->input;
}

static struct vxd_grid_place place_of(const Voxeld__V1__SceneFrontiersRequest *input)
{
    return (struct vxd_grid_place){input->box, input->in_voxels, input->z_low,
                                   input->z_high, false};
}

/* Memory of the device and of the host together: a byte a cell and three words for 32 of them; and
 * what is joined and shown. */
static uint64_t count_bytes(const Voxeld__V1__SceneFrontiersRequest *input,
                            const struct vxd_grid_place *place)
{
    uint64_t n = vxd_grid_count_most(place, input->in_space, VXD_GRID_MAX_CELLS);
    uint64_t n_joined = n < VXD_GRID_MAX_FRONTIER_CELLS ? n : VXD_GRID_MAX_FRONTIER_CELLS;
    uint64_t n_clusters = n < VXD_GRID_MAX_CLUSTERS ? n : VXD_GRID_MAX_CLUSTERS;

    return LOOK_BYTES + n + n / 32 * 12 + n_clusters * CLUSTER_BYTES +
           n_joined * JOINED_CELL_BYTES +
           (input->with_cells ? n_joined * SHOWN_CELL_BYTES : 0);
}

enum vxd_status vxd_scene_frontiers_check(struct vxd_request *request,
                                          struct vxd_err *err)
{
    const Voxeld__V1__SceneFrontiersRequest *input = input_of(request);
    const struct vxd_grid_place place = place_of(input);
    enum vxd_status status;

    VXD_TRY(
        vxd_noun_begin_check(request, sizeof(struct frontiers_job), input->name, err));
    VXD_TRY(vxd_scene_check_at(input->at, "at", err));
    VXD_TRY(vxd_grid_check_place(&place, err));
    request->bulk = true;
    request->cost_bytes = count_bytes(input, &place);
out:
    return status;
}

/* --- submit ------------------------------------------------------------------------------- */

/* Clips the box to the scene, beyond which nothing is free; false: nothing is left. */
static bool clip(struct frontiers_job *job)
{
    int64_t side = (int64_t)1 << job->base.scene->spec.format.depth;
    struct vxd_grid_box *box = &job->area.box;
    bool has_volume = true;

    for (int axis = 0; axis < 3; axis++) {
        box->low[axis] = box->low[axis] > 0 ? box->low[axis] : 0;
        box->high[axis] = box->high[axis] < side ? box->high[axis] : side;
        has_volume = has_volume && box->low[axis] < box->high[axis];
    }
    return has_volume;
}

static enum vxd_status begin(struct vxd_request *request, struct vxd_queue *queue,
                             struct vxd_err *err)
{
    struct frontiers_job *job = request->state;
    uint64_t n_cells = 1;
    enum vxd_status status;

    if (!clip(job)) {
        job->step = DONE;
        return VXD_OK;
    }
    for (int axis = 0; axis < 3; axis++) {
        uint64_t n = (uint64_t)(job->area.box.high[axis] - job->area.box.low[axis]);

        job->n[job->in_space ? axis : 2 - axis] =
            job->in_space || axis < 2 ? (uint32_t)n : 1;
        n = job->in_space || axis < 2 ? n : 1;
        if (n_cells * n > (uint64_t)VXD_GRID_MAX_CELLS) {
            return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "box",
                            "is of more than %" PRId64 " cells; take a smaller one",
                            VXD_GRID_MAX_CELLS);
        }
        n_cells *= n;
    }
    job->n_words = (uint32_t)((n_cells + 31) / 32);
    VXD_TRY(vxd_scene_take_device(request, queue, (size_t)n_cells, 1, &job->states, err));
    VXD_TRY(vxd_scene_reserve_output(request, queue, job->n_words, sizeof(uint32_t),
                                     &job->marks, err));
    job->step = STATES;
out:
    return status;
}

static enum vxd_status find_area(struct vxd_request *request, struct vxd_queue *queue,
                                 struct vxd_err *err)
{
    const Voxeld__V1__SceneFrontiersRequest *input = input_of(request);
    struct frontiers_job *job = request->state;
    const struct vxd_grid_place place = place_of(input);
    enum vxd_status status;

    if (job->base.scene == NULL) {
        VXD_TRY(vxd_scene_open(request, input->name, input->at, err));
        job->in_space = input->in_space;
        if (!job->base.scene->spec.format.tracks_free) {
            return vxd_fail(err, VXD_FAILED_PRECONDITION, "name",
                            "the scene does not track free space, so no cell of it is "
                            "known to be free");
        }
    }
    VXD_TRY(vxd_grid_find_area(request, queue, &place, &job->area, err));
    if (job->area.is_known) {
        VXD_TRY(begin(request, queue, err));
    }
out:
    return status;
}

/* Takes the next of n items, at most `part` of them, at least one. */
static struct vxd_grid_rows next_items(struct frontiers_job *job, uint32_t n,
                                       uint32_t part)
{
    struct vxd_grid_rows rows = {job->next, n};

    part = part > 0 ? part : 1;
    rows.end = n - rows.begin < part ? n : rows.begin + part;
    job->next = rows.end;
    return rows;
}

/* Takes the next voxels of a box: planes of x as a whole, or, where one is more than a stage takes,
 * rows of z of it. Sets where they begin in the dense array. */
static struct vxd_svdag_export next_voxels(struct frontiers_job *job, size_t *first)
{
    const struct vxd_grid_box *box = &job->area.box;
    struct vxd_svdag_export part = {{box->low[0], box->low[1], box->low[2]},
                                    {box->high[0], box->high[1], box->high[2]},
                                    0,
                                    false};
    uint32_t n_rows = VOXELS_PART / job->n[2] > 0 ? VOXELS_PART / job->n[2] : 1;
    struct vxd_grid_rows rows;

    *first = (size_t)job->next * job->n[2];
    if (n_rows < job->n[1]) {
        uint32_t x = job->next / job->n[1];

        rows = next_items(job, (x + 1) * job->n[1], n_rows);
        part.low[0] = box->low[0] + x;
        part.high[0] = part.low[0] + 1;
        part.low[1] = box->low[1] + (rows.begin - x * job->n[1]);
        part.high[1] = box->low[1] + (rows.end - x * job->n[1]);
    } else {
        rows = next_items(job, job->n[0] * job->n[1], n_rows / job->n[1] * job->n[1]);
        part.low[0] = box->low[0] + rows.begin / job->n[1];
        part.high[0] = box->low[0] + rows.end / job->n[1];
    }
    return part;
}

static enum vxd_status submit_states(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err)
{
    struct frontiers_job *job = request->state;
    const struct vxd_scene_state *state = &job->base.state;
    const struct vxd_grid_box *box = &job->area.box;
    enum vxd_status status;

    if (job->in_space) {
        size_t first;
        const struct vxd_svdag_export part = next_voxels(job, &first);

        VXD_TRY(vxd_svdag_export_dense(queue, state->svdag, state->root, &part,
                                       (uint8_t *)job->states + first, NULL, err));
    } else {
        uint32_t n_rows = vxd_grid_count_columns(&job->base.scene->spec, box) / job->n[2];
        const struct vxd_grid_rows rows = next_items(job, job->n[1], n_rows);

        VXD_TRY(vxd_grid_states(queue, state->svdag, state->root, box, &rows, job->states,
                                err));
    }
    if (job->next == job->n[0] * job->n[1]) { /* n[0] is 1 in a plane */
        job->step = MARKS;
        job->next = 0;
    }
out:
    return status;
}

static enum vxd_status submit_marks(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    struct frontiers_job *job = request->state;
    struct vxd_grid_rows words = next_items(job, job->n_words, MARKS_PART);
    enum vxd_status status;

    VXD_TRY(vxd_grid_mark_frontiers(queue, job->states, job->n, &words, job->marks.device,
                                    err));
    if (job->next == job->n_words) {
        job->step = JOIN;
        VXD_TRY(vxd_scene_fetch_output(request, queue, &job->marks, err));
    }
out:
    return status;
}

static enum vxd_status join(struct vxd_request *request, struct vxd_err *err)
{
    struct frontiers_job *job = request->state;
    uint32_t min_cells = input_of(request)->min_cells;
    enum vxd_status status = VXD_OK;

    if (job->clusters == NULL) {
        VXD_TRY(vxd_clusters_create(request->server->context, job->marks.bytes, job->n,
                                    &job->clusters, err));
    }
    if (vxd_clusters_step(job->clusters, CLUSTER_PART)) {
        VXD_TRY(vxd_clusters_finish(job->clusters, min_cells > 0 ? min_cells : 1,
                                    &job->list, &job->n_list, err));
        job->step = DONE;
    }
out:
    return status;
}

enum vxd_status vxd_scene_frontiers_submit(struct vxd_request *request,
                                           struct vxd_queue *queue, struct vxd_err *err)
{
    struct frontiers_job *job = request->state;
    enum vxd_status status = VXD_OK;

    switch (job->step) {
    case FIND_AREA:
        VXD_TRY(find_area(request, queue, err));
        break;
    case STATES:
        VXD_TRY(submit_states(request, queue, err));
        break;
    case MARKS:
        VXD_TRY(submit_marks(request, queue, err));
        break;
    case JOIN:
        VXD_TRY(join(request, err));
        break;
    case DONE:
        break;
    }
    request->more = job->step != DONE;
out:
    return status;
}

/* --- finish ------------------------------------------------------------------------------- */

static double metres(const struct vxd_scene_spec *spec, int axis, double voxels)
{
    return spec->origin_m[axis] + voxels * spec->voxel_size_m;
}

static enum vxd_status show_clusters(struct vxd_request *request,
                                     Voxeld__V1__SceneFrontiersResponse *reply,
                                     struct vxd_err *err)
{
    const struct frontiers_job *job = request->state;
    const struct vxd_scene_spec *spec = &job->base.scene->spec;
    const struct vxd_grid_box *box = &job->area.box;
    void *block;
    uint64_t *sizes;
    double *centroids;
    enum vxd_status status;

    VXD_TRY(vxd_scene_check_reply(job->n_list, 32, err));
    VXD_TRY(vxd_scene_take_host(request, job->n_list + 1, sizeof *sizes, &block, err));
    sizes = block;
    VXD_TRY(vxd_scene_take_host(request, job->n_list + 1, 3 * sizeof *centroids, &block,
                                err));
    centroids = block;
    for (size_t i = 0; i < job->n_list; i++) {
        const struct vxd_cluster *c = &job->list[i];

        sizes[i] = c->n_cells;
        for (int axis = 0; axis < 3; axis++) {
            double at = c->centre[job->in_space ? axis : 2 - axis] + 0.5;

            if (!job->in_space && axis == 2) {
                at = (double)(box->high[2] - box->low[2]) / 2;
            }
            centroids[3 * i + (size_t)axis] =
                metres(spec, axis, (double)box->low[axis] + at);
        }
    }
    VXD_TRY(
        vxd_scene_show(request, VXD_UINT64, job->n_list, 0, sizes, &reply->sizes, err));
    VXD_TRY(vxd_scene_show(request, VXD_FLOAT64, job->n_list, 3, centroids,
                           &reply->centroids, err));
out:
    return status;
}

static enum vxd_status show_cells(struct vxd_request *request,
                                  Voxeld__V1__SceneFrontiersResponse *reply,
                                  struct vxd_err *err)
{
    const struct frontiers_job *job = request->state;
    const struct vxd_grid_box *box = &job->area.box;
    size_t n = (size_t)reply->n_cells;
    void *block;
    int32_t *cells;
    uint32_t *indices;
    uint32_t *clusters;
    enum vxd_status status;

    VXD_TRY(vxd_scene_check_reply(n, 4 * sizeof(int32_t), err));
    VXD_TRY(vxd_scene_take_host(request, n + 1, 3 * sizeof *cells, &block, err));
    cells = block;
    VXD_TRY(vxd_scene_take_host(request, n + 1, sizeof *indices, &block, err));
    indices = block;
    VXD_TRY(vxd_scene_take_host(request, n + 1, sizeof *clusters, &block, err));
    clusters = block;
    if (job->clusters != NULL) {
        vxd_clusters_cells(job->clusters, indices, clusters);
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t at[3] = {indices[i] / job->n[2] / job->n[1],
                          indices[i] / job->n[2] % job->n[1], indices[i] % job->n[2]};

        for (int axis = 0; axis < 3; axis++) {
            cells[3 * i + (size_t)axis] =
                (int32_t)(box->low[axis] + at[job->in_space ? axis : 2 - axis]);
        }
    }
    VXD_TRY(vxd_scene_show(request, VXD_INT32, n, 3, cells, &reply->cells, err));
    VXD_TRY(vxd_scene_show(request, VXD_INT32, n, 0, clusters, &reply->clusters, err));
out:
    return status;
}

enum vxd_status vxd_scene_frontiers_finish(struct vxd_request *request,
                                           struct vxd_queue *queue, struct vxd_err *err)
{
    const struct frontiers_job *job = request->state;
    Voxeld__V1__SceneFrontiersResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__scene_frontiers_response__descriptor, err);
    const struct vxd_scene_spec *spec = &job->base.scene->spec;
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->version = job->base.state.version;
    reply->generation = job->base.scene->generation;
    reply->engine_ms = (double)request->engine_ns / 1e6;
    reply->cell_size_m = spec->voxel_size_m;
    reply->n_cells = job->clusters != NULL ? vxd_clusters_n_cells(job->clusters) : 0;
    reply->frame_id =
        vxd_message_text(request->decoder, spec->frame_id, strlen(spec->frame_id), err);
    if (reply->frame_id == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(show_clusters(request, reply, err));
    if (input_of(request)->with_cells) {
        VXD_TRY(show_cells(request, reply, err));
    }
    request->output = &reply->base;
    vxd_scene_close(request, queue);
out:
    return status;
}

void vxd_scene_frontiers_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct frontiers_job *job = request->state;

    vxd_clusters_destroy(job->clusters);
    job->clusters = NULL;
    vxd_scene_release(request, queue);
}
