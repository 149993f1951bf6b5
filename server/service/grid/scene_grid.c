// SPDX-License-Identifier: Apache-2.0
/* Costmaps, projected maps, heights, and slices of occupancy and distances. Rows are made a part a stage: first the columns of
 * all rows, then what needs other rows, costs or slopes. */
#include <inttypes.h>
#include <math.h>

#include "server/instance/instance.h"
#include "server/service/service.h"
#include "server/service/field/service_field.h"
#include "server/service/grid/grid_job.h"

enum {
    /* Of one stage. */
    SQUARES_PART = 1 << 22,   /* cells times rows looked at */
    DISTANCES_PART = 1 << 20, /* cells */
    /* Of a reply; a PNG of as many is made in about 50 ms. */
    MAX_CELLS = 1 << 24,
    MAX_PNG_CELLS = 1 << 22,
    /* What admission counts: of a cell on the device, on the host and in a reply, and of the
     * scene in large cells, twice. */
    CELL_BYTES = 8,
    HEIGHTS_CELL_BYTES = 36,
    LOOK_BYTES = 1 << 22,
    MAX_IMAGE_BYTES = 255
};

#define DEFAULT_INFLATION_M 0.55
#define DEFAULT_SCALING 10.0

enum step {
    FIND_AREA,
    COLUMNS,
    FROM_ROWS, /* costs, or slopes */
    FIELD,     /* distances: the field is on its way */
    DONE
};

struct grid_job {
    struct vxd_field_job
        field; /* first: request->state is both; its base is the scene's job */
    enum step step;
    struct vxd_grid_area area;
    uint32_t n_x;
    uint32_t n_y;
    uint32_t next_row;
    enum vxd_grid_unknown unknown;
    uint32_t radius;
    const void *table; /* device: costs by squares */
    void *states;      /* device */
    void *squares;
    void *top;
    struct vxd_scene_output cells;     /* states, or costs */
    struct vxd_scene_output planes[4]; /* of GRID_HEIGHT: low, high, mean, slope */
};

static bool is_costs(const Voxeld__V1__SceneGridRequest *input)
{
    return input->kind == VOXELD__V1__GRID_KIND__GRID_COSTMAP;
}

static bool is_heights(const Voxeld__V1__SceneGridRequest *input)
{
    return input->kind == VOXELD__V1__GRID_KIND__GRID_HEIGHT;
}

static bool is_distances(const Voxeld__V1__SceneGridRequest *input)
{
    return input->kind == VOXELD__V1__GRID_KIND__GRID_DISTANCE;
}

static const Voxeld__V1__SceneGridRequest *input_of(const struct vxd_request *request)
{
    return (const Voxeld__V1__SceneGridRequest *)request->input;
}

static struct vxd_grid_place place_of(const Voxeld__V1__SceneGridRequest *input)
{
    return (struct vxd_grid_place){
        input->box, input->in_voxels, input->z_low, input->z_high,
        input->kind == VOXELD__V1__GRID_KIND__GRID_SLICE || is_distances(input)};
}

/* --- check -------------------------------------------------------------------------------- */

static enum vxd_status check_image(const char *image, struct vxd_err *err)
{
    size_t n =
        strspn(image, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                      "._/-");

    if (image[n] != '\0' || n > MAX_IMAGE_BYTES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "image",
                        "\"%.60s\" must be at most %d of A-Z a-z 0-9 . _ / -", image,
                        MAX_IMAGE_BYTES);
    }
    return VXD_OK;
}

/* Checks the numbers of costs as far as the message alone goes; how many cells they are the scene
 * says. */
static enum vxd_status check_costs(const Voxeld__V1__SceneGridRequest *input,
                                   struct vxd_err *err)
{
    if (!isfinite(input->inflation_radius_m)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "inflation_radius_m",
                        "is %g, it must be finite", input->inflation_radius_m);
    }
    if (input->inflation_radius_m > 0 &&
        input->inflation_radius_m < input->robot_radius_m) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "inflation_radius_m",
                        "is %g, less than robot_radius_m, %g", input->inflation_radius_m,
                        input->robot_radius_m);
    }
    return VXD_OK;
}

/* Cells that a reply of the format holds. */
static uint64_t count_most_cells(const struct vxd_request *request)
{
    const Voxeld__V1__SceneGridRequest *input = input_of(request);
    uint64_t most =
        input->format == VOXELD__V1__GRID_FORMAT__GRID_PNG ? MAX_PNG_CELLS : MAX_CELLS;
    uint64_t bytes = request->server->config.max_message_bytes;
    uint64_t cell_bytes = is_heights(input) ? 16 : is_distances(input) ? 4 : 1;

    bytes = bytes < VXD_SCENE_REPLY_BYTES ? bytes : VXD_SCENE_REPLY_BYTES;
    return most < bytes / cell_bytes ? most : bytes / cell_bytes;
}

enum vxd_status vxd_scene_grid_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SceneGridRequest *input = input_of(request);
    const struct vxd_grid_place place = place_of(input);
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof(struct grid_job), input->name, err));
    VXD_TRY(vxd_scene_check_at(input->at, "at", err));
    if ((is_heights(input) || is_distances(input)) &&
        input->format != VOXELD__V1__GRID_FORMAT__GRID_TENSOR) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "format",
                         "%s is metres: it comes as GRID_TENSOR alone",
                         is_heights(input) ? "GRID_HEIGHT" : "GRID_DISTANCE"));
    }
    VXD_TRY(vxd_grid_check_place(&place, err));
    VXD_TRY(check_costs(input, err));
    VXD_TRY(check_image(input->image, err));
    request->bulk = true;
    request->cost_bytes =
        LOOK_BYTES + vxd_grid_count_most(&place, false, count_most_cells(request)) *
                         (is_heights(input) ? HEIGHTS_CELL_BYTES : CELL_BYTES);
out:
    return status;
}

/* --- submit ------------------------------------------------------------------------------- */

static enum vxd_grid_unknown read_unknown(const struct grid_job *job,
                                          Voxeld__V1__GridUnknown unknown)
{
    switch (unknown) {
    case VOXELD__V1__GRID_UNKNOWN__GRID_KEPT:
        return VXD_GRID_UNKNOWN_KEPT;
    case VOXELD__V1__GRID_UNKNOWN__GRID_AS_FREE:
        return VXD_GRID_UNKNOWN_FREE;
    case VOXELD__V1__GRID_UNKNOWN__GRID_AS_LETHAL:
        return VXD_GRID_UNKNOWN_LETHAL;
    default:
        return job->field.base.scene->spec.format.tracks_free ? VXD_GRID_UNKNOWN_KEPT
                                                              : VXD_GRID_UNKNOWN_FREE;
    }
}

/* Refuses what no reply holds. */
static enum vxd_status check_size(const struct vxd_request *request,
                                  const struct grid_job *job, struct vxd_err *err)
{
    uint64_t n = (uint64_t)job->n_x * job->n_y;
    uint64_t most = count_most_cells(request);

    if (n > most) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "box",
                        "is of %" PRIu32 " x %" PRIu32 " cells, a reply of this format "
                        "holds %" PRIu64 "; take a smaller box",
                        job->n_x, job->n_y, most);
    }
    return VXD_OK;
}

static enum vxd_status upload_table(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    const Voxeld__V1__SceneGridRequest *input = input_of(request);
    struct grid_job *job = request->state;
    struct vxd_grid_inflation inflation = {
        job->field.base.scene->spec.voxel_size_m, input->robot_radius_m,
        input->inflation_radius_m, input->cost_scaling};
    void *table;
    enum vxd_status status;

    if (inflation.inflation_m == 0) {
        inflation.inflation_m = fmax(DEFAULT_INFLATION_M, inflation.inscribed_m);
    } else if (inflation.inflation_m < 0) {
        inflation.inflation_m = inflation.inscribed_m;
    }
    inflation.scale = inflation.scale == 0 ? DEFAULT_SCALING : inflation.scale;
    VXD_TRY(vxd_scene_take_host(request, VXD_GRID_COST_ENTRIES, 1, &table, err));
    status = vxd_grid_cost_table(&inflation, &job->radius, table, err);
    if (status != VXD_OK) {
        if (err != NULL && strcmp(err->field, "inflation_m") == 0) {
            (void)snprintf(err->field, sizeof err->field, "inflation_radius_m");
        }
        return status;
    }
    VXD_TRY(vxd_scene_upload(request, queue, table, (size_t)job->radius * job->radius + 1,
                             &job->table, err));
out:
    return status;
}

/* The field of the layer. What a column counts as is what a voxel does here. */
static enum vxd_status begin_field(struct vxd_request *request, struct vxd_queue *queue,
                                   struct vxd_err *err)
{
    const Voxeld__V1__SceneGridRequest *input = input_of(request);
    struct grid_job *job = request->state;
    struct vxd_field_box box;
    Voxeld__V1__FieldUnknown unknown =
        job->unknown == VXD_GRID_UNKNOWN_KEPT
            ? VOXELD__V1__FIELD_UNKNOWN__FIELD_UNKNOWN_IGNORED
        : job->unknown == VXD_GRID_UNKNOWN_LETHAL
            ? VOXELD__V1__FIELD_UNKNOWN__FIELD_UNKNOWN_OCCUPIED
            : VOXELD__V1__FIELD_UNKNOWN__FIELD_UNKNOWN_FREE;
    enum vxd_status status;

    job->field.asked_by = "box";
    VXD_TRY(vxd_field_set_terms(&job->field, unknown, input->max_distance_m, 0, 0,
                                "max_distance_m", err));
    for (int axis = 0; axis < 3; axis++) {
        box.low[axis] = (double)job->area.box.low[axis];
        box.high[axis] = (double)job->area.box.high[axis] - 1;
    }
    vxd_field_set_box(&job->field, &box);
    status = vxd_scene_reserve_output(request, queue, (size_t)job->n_x * job->n_y,
                                      sizeof(float), &job->cells, err);
out:
    return status;
}

/* One stage: on the way to the field, or some columns of the array, which has them along x. */
static enum vxd_status submit_field(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    struct grid_job *job = request->state;
    const struct vxd_grid_box *box = &job->area.box;
    uint32_t most = DISTANCES_PART / job->n_y > 0 ? DISTANCES_PART / job->n_y : 1;
    uint32_t end = job->n_x - job->next_row < most ? job->n_x : job->next_row + most;
    const int32_t low[3] = {(int32_t)(box->low[0] + job->next_row), (int32_t)box->low[1],
                            (int32_t)box->low[2]};
    const int32_t high[3] = {(int32_t)(box->low[0] + end), (int32_t)box->high[1],
                             (int32_t)box->high[2]};
    const struct vxd_field_arrays out = {.distances = (float *)job->cells.device +
                                                      (size_t)job->next_row * job->n_y};
    bool is_ready;
    enum vxd_status status;

    VXD_TRY(vxd_field_prepare(request, queue, &is_ready, err));
    if (!is_ready) {
        return VXD_OK;
    }
    VXD_TRY(vxd_field_read(queue, vxd_field_of(&job->field), low, high, &out, err));
    job->next_row = end;
    job->step = end == job->n_x ? DONE : FIELD;
out:
    return status;
}

/* Reserves what the kind needs, once the box is known. */
static enum vxd_status begin(struct vxd_request *request, struct vxd_queue *queue,
                             struct vxd_err *err)
{
    const Voxeld__V1__SceneGridRequest *input = input_of(request);
    struct grid_job *job = request->state;
    size_t n;
    enum vxd_status status;

    job->n_x = (uint32_t)(job->area.box.high[0] - job->area.box.low[0]);
    job->n_y = (uint32_t)(job->area.box.high[1] - job->area.box.low[1]);
    n = (size_t)job->n_x * job->n_y;
    job->unknown = read_unknown(job, input->unknown);
    job->step = COLUMNS;
    VXD_TRY(check_size(request, job, err));
    if (is_heights(input)) {
        for (int i = 0; i < 4; i++) {
            VXD_TRY(vxd_scene_reserve_output(request, queue, n, sizeof(float),
                                             &job->planes[i], err));
        }
        VXD_TRY(
            vxd_scene_take_device(request, queue, n, sizeof(int32_t), &job->top, err));
        return VXD_OK;
    }
    if (is_distances(input)) {
        job->step = FIELD;
        return begin_field(request, queue, err);
    }
    VXD_TRY(vxd_scene_reserve_output(request, queue, n, 1, &job->cells, err));
    job->states = job->cells.device;
    if (is_costs(input)) {
        VXD_TRY(upload_table(request, queue, err));
        VXD_TRY(vxd_scene_take_device(request, queue, n, 1, &job->states, err));
        VXD_TRY(vxd_scene_take_device(request, queue, n, sizeof(uint16_t), &job->squares,
                                      err));
    }
out:
    return status;
}

/* Takes the next rows of a step: as many as hold about `part` cells. */
static struct vxd_grid_rows next_rows(struct grid_job *job, uint32_t part)
{
    uint32_t n = part / job->n_x > 0 ? part / job->n_x : 1;
    struct vxd_grid_rows rows = {job->next_row, job->n_y};

    rows.end = job->n_y - rows.begin < n ? job->n_y : rows.begin + n;
    job->next_row = rows.end;
    return rows;
}

static enum vxd_status submit_columns(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__SceneGridRequest *input = input_of(request);
    struct grid_job *job = request->state;
    const struct vxd_scene_state *state = &job->field.base.state;
    const struct vxd_grid_rows rows = next_rows(
        job, vxd_grid_count_columns(&job->field.base.scene->spec, &job->area.box));
    enum vxd_status status;

    if (is_heights(input)) {
        const struct vxd_scene_spec *spec = &job->field.base.scene->spec;
        const struct vxd_grid_heights heights = {
            spec->origin_m[2],     spec->voxel_size_m,    job->planes[0].device,
            job->planes[1].device, job->planes[2].device, job->top};

        VXD_TRY(vxd_grid_heights(queue, state->svdag, state->root, &job->area.box, &rows,
                                 &heights, err));
    } else {
        VXD_TRY(vxd_grid_states(queue, state->svdag, state->root, &job->area.box, &rows,
                                job->states, err));
        if (is_costs(input)) {
            VXD_TRY(vxd_grid_row_squares(queue, job->states, job->n_x, job->n_y, &rows,
                                         job->radius, job->unknown, job->squares, err));
        }
    }
    if (job->next_row == job->n_y) {
        job->step = is_heights(input) || is_costs(input) ? FROM_ROWS : DONE;
        job->next_row = 0;
    }
out:
    return status;
}

static enum vxd_status submit_from_rows(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    struct grid_job *job = request->state;
    uint32_t part = SQUARES_PART / (2 * job->radius + 1);
    const struct vxd_grid_rows rows = next_rows(job, part);
    enum vxd_status status;

    if (is_costs(input_of(request))) {
        VXD_TRY(vxd_grid_costs(queue, job->states, job->squares, job->n_x, job->n_y,
                               &rows, job->radius, job->unknown, job->table,
                               job->cells.device, err));
    } else {
        VXD_TRY(vxd_grid_slope(queue, job->top, job->n_x, job->n_y, &rows,
                               job->planes[3].device, err));
    }
    job->step = job->next_row == job->n_y ? DONE : FROM_ROWS;
out:
    return status;
}

static enum vxd_status find_area(struct vxd_request *request, struct vxd_queue *queue,
                                 struct vxd_err *err)
{
    const Voxeld__V1__SceneGridRequest *input = input_of(request);
    struct grid_job *job = request->state;
    const struct vxd_grid_place place = place_of(input);
    enum vxd_status status;

    if (job->field.base.scene == NULL) {
        VXD_TRY(vxd_scene_open(request, input->name, input->at, err));
    }
    VXD_TRY(vxd_grid_find_area(request, queue, &place, &job->area, err));
    if (job->area.is_known) {
        VXD_TRY(begin(request, queue, err));
    }
out:
    return status;
}

enum vxd_status vxd_scene_grid_submit(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err)
{
    struct grid_job *job = request->state;
    enum vxd_status status = VXD_OK;

    switch (job->step) {
    case FIND_AREA:
        VXD_TRY(find_area(request, queue, err));
        break;
    case COLUMNS:
        VXD_TRY(submit_columns(request, queue, err));
        break;
    case FROM_ROWS:
        VXD_TRY(submit_from_rows(request, queue, err));
        break;
    case FIELD:
        VXD_TRY(submit_field(request, queue, err));
        break;
    case DONE:
        break;
    }
    request->more = job->step != DONE;
    if (!request->more) {
        VXD_TRY(vxd_scene_fetch_output(request, queue, &job->cells, err));
        for (int i = 0; i < 4; i++) {
            VXD_TRY(vxd_scene_fetch_output(request, queue, &job->planes[i], err));
        }
    }
out:
    return status;
}

/* --- finish ------------------------------------------------------------------------------- */

static enum vxd_status set_place(struct vxd_request *request,
                                 Voxeld__V1__SceneGridResponse *reply,
                                 struct vxd_err *err)
{
    const struct grid_job *job = request->state;
    const struct vxd_scene_spec *spec = &job->field.base.scene->spec;
    const struct vxd_grid_box *box = &job->area.box;

    reply->origin = vxd_message_new(request->decoder, &voxeld__v1__vec3__descriptor, err);
    reply->frame_id =
        vxd_message_text(request->decoder, spec->frame_id, strlen(spec->frame_id), err);
    if (reply->origin == NULL || reply->frame_id == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->version = job->field.base.state.version;
    reply->generation = job->field.base.scene->generation;
    reply->engine_ms = (double)request->engine_ns / 1e6;
    reply->n_x = job->n_x;
    reply->n_y = job->n_y;
    reply->origin->x = spec->origin_m[0] + (double)box->low[0] * spec->voxel_size_m;
    reply->origin->y = spec->origin_m[1] + (double)box->low[1] * spec->voxel_size_m;
    reply->origin->z = spec->origin_m[2] + (double)box->low[2] * spec->voxel_size_m;
    reply->top_m = spec->origin_m[2] + (double)box->high[2] * spec->voxel_size_m;
    reply->cell_size_m = spec->voxel_size_m;
    return VXD_OK;
}

/* Shows costs as they are, and states as what the wire says of them. */
static enum vxd_status show_cells(struct vxd_request *request,
                                  const struct vxd_grid_picture *picture,
                                  Voxeld__V1__SceneGridResponse *reply,
                                  struct vxd_err *err)
{
    const struct grid_job *job = request->state;
    size_t n = (size_t)job->n_x * job->n_y;
    int8_t table[256];
    void *occupancy;
    enum vxd_status status;

    if (picture->is_costs) {
        return vxd_scene_show(request, VXD_UINT8, job->n_y, job->n_x, picture->cells,
                              &reply->cells, err);
    }
    vxd_grid_occupancy_table(picture, table);
    VXD_TRY(vxd_scene_take_host(request, n, 1, &occupancy, err));
    for (size_t i = 0; i < n; i++) {
        ((int8_t *)occupancy)[i] = table[picture->cells[i]];
    }
    VXD_TRY(vxd_scene_show(request, VXD_INT8, job->n_y, job->n_x, occupancy,
                           &reply->cells, err));
out:
    return status;
}

static enum vxd_status show_heights(struct vxd_request *request,
                                    Voxeld__V1__SceneGridResponse *reply,
                                    struct vxd_err *err)
{
    const struct grid_job *job = request->state;
    Voxeld__V1__Tensor **planes[4] = {&reply->low, &reply->high, &reply->mean,
                                      &reply->slope};
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < 4; i++) {
        VXD_TRY(vxd_scene_show(request, VXD_FLOAT32, job->n_y, job->n_x,
                               job->planes[i].bytes, planes[i], err));
    }
out:
    return status;
}

/* A row of the field's array is a column of the grid. */
static enum vxd_status show_distances(struct vxd_request *request,
                                      Voxeld__V1__SceneGridResponse *reply,
                                      struct vxd_err *err)
{
    const struct grid_job *job = request->state;
    const float *from = job->cells.bytes;
    void *cells;
    enum vxd_status status;

    VXD_TRY(vxd_scene_take_host(request, (size_t)job->n_x * job->n_y, sizeof(float),
                                &cells, err));
    for (size_t y = 0; y < job->n_y; y++) {
        for (size_t x = 0; x < job->n_x; x++) {
            ((float *)cells)[y * job->n_x + x] = from[x * job->n_y + y];
        }
    }
    VXD_TRY(vxd_scene_show(request, VXD_FLOAT32, job->n_y, job->n_x, cells, &reply->cells,
                           err));
out:
    return status;
}

static enum vxd_status show(struct vxd_request *request,
                            Voxeld__V1__SceneGridResponse *reply, struct vxd_err *err)
{
    const Voxeld__V1__SceneGridRequest *input = input_of(request);
    const struct grid_job *job = request->state;
    char image[VXD_NAME_BYTES + 4];
    struct vxd_grid_picture picture = {
        .cells = job->cells.bytes,
        .n_x = job->n_x,
        .n_y = job->n_y,
        .is_costs = is_costs(input),
        .unknown = job->unknown,
        .origin_m = {reply->origin->x, reply->origin->y, reply->origin->z},
        .cell_m = reply->cell_size_m,
        .frame_id = reply->frame_id,
        .stamp_ns = input->stamp_ns != 0 ? input->stamp_ns
                                         : job->field.base.state.changed_unix_ns,
        .image = image};

    if (is_heights(input)) {
        return show_heights(request, reply, err);
    }
    if (is_distances(input)) {
        return show_distances(request, reply, err);
    }
    if (input->format == VOXELD__V1__GRID_FORMAT__GRID_TENSOR) {
        return show_cells(request, &picture, reply, err);
    }
    (void)snprintf(image, sizeof image, "%s.pgm", input->name);
    picture.image = input->image[0] != '\0' ? input->image : image;
    return vxd_grid_write(request, input->format, &picture, &reply->file.data,
                          &reply->file.len, err);
}

enum vxd_status vxd_scene_grid_finish(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err)
{
    Voxeld__V1__SceneGridResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__scene_grid_response__descriptor, err);
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(set_place(request, reply, err));
    VXD_TRY(show(request, reply, err));
    request->output = &reply->base;
    vxd_field_close(request, queue);
out:
    return status;
}
