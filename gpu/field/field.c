// SPDX-License-Identifier: Apache-2.0
#include "gpu/field/field.h"

#include <stdlib.h>

#include "gpu/field/field_backends.h"
#include "gpu/svdag/diff/diff.h"

/* Voxels of a part: on the CPU what takes some milliseconds, on a GPU what fills it. */
#define PART_VOXELS_CPU ((size_t)1 << 20)
#define PART_VOXELS_CUDA ((size_t)1 << 26)

static enum vxd_status check_corner(const struct vxd_field_spec *spec, int axis,
                                    struct vxd_err *err)
{
    int64_t low = spec->low[axis];
    int64_t high = spec->high[axis];

    if (low % VXD_FIELD_BLOCK != 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "low", "%lld is no multiple of %d",
                        (long long)low, VXD_FIELD_BLOCK);
    }
    if (high % VXD_FIELD_BLOCK != 0 || high <= low) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "high",
                        "%lld must be a multiple of %d above low, %lld", (long long)high,
                        VXD_FIELD_BLOCK, (long long)low);
    }
    return VXD_OK;
}

static enum vxd_status check_spec(const struct vxd_field_spec *spec, struct vxd_err *err)
{
    int64_t n = 1;
    enum vxd_status status;

    for (int axis = 0; axis < 3; axis++) {
        VXD_TRY(check_corner(spec, axis, err));
        if (__builtin_mul_overflow(n, (int64_t)spec->high[axis] - spec->low[axis], &n)) {
            n = INT64_MAX;
        }
    }
    if (n > VXD_FIELD_MAX_VOXELS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "high",
                        "a box of %lld voxels, at most %lld are possible", (long long)n,
                        (long long)VXD_FIELD_MAX_VOXELS);
    }
    if (spec->max_distance < 1 || spec->max_distance > VXD_FIELD_MAX_DISTANCE) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "max_distance",
                        "is %d voxels, must be 1 to %d", spec->max_distance,
                        VXD_FIELD_MAX_DISTANCE);
    }
    if ((int)spec->unknown < VXD_FIELD_UNKNOWN_FREE ||
        (int)spec->unknown > VXD_FIELD_UNKNOWN_IGNORED) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "unknown", "is %d, must be 0 to %d",
                        (int)spec->unknown, VXD_FIELD_UNKNOWN_IGNORED);
    }
    status = spec->voxel_size_m > 0 && isfinite(spec->voxel_size_m)
                 ? VXD_OK
                 : vxd_fail(err, VXD_INVALID_ARGUMENT, "voxel_size_m",
                            "is %g, must be > 0 and finite", spec->voxel_size_m);
out:
    return status;
}

static int round_up(int n, int multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

/* The view's numbers, and how updates are divided. */
static void set_sizes(struct vxd_field *field, bool on_cuda)
{
    const struct vxd_field_spec *spec = &field->spec;
    struct vxd_field_view *view = &field->view;
    size_t most = on_cuda ? PART_VOXELS_CUDA : PART_VOXELS_CPU;

    for (int axis = 0; axis < 3; axis++) {
        view->low[axis] = spec->low[axis];
        view->size[axis] = spec->high[axis] - spec->low[axis];
    }
    view->n_words = (view->size[2] + VXD_FIELD_WORD - 1) / VXD_FIELD_WORD;
    view->pitch = round_up(view->size[2], VXD_FIELD_LANES);
    view->reach = spec->max_distance;
    view->voxel_size_m = spec->voxel_size_m;
    for (int axis = 0; axis < 2; axis++) {
        size_t block =
            (size_t)VXD_FIELD_BLOCK * (size_t)view->size[1 - axis] * (size_t)view->pitch;
        size_t n = most / block;

        view->n_blocks[axis] = view->size[axis] / VXD_FIELD_BLOCK;
        n = n < 1 ? 1 : n;
        n = n > (size_t)view->n_blocks[axis] ? (size_t)view->n_blocks[axis] : n;
        field->part_blocks[axis] = (int)n;
        field->n_parts[axis] = ((size_t)view->n_blocks[axis] + n - 1) / n;
    }
    field->flag_bytes =
        (size_t)view->n_blocks[0] * (size_t)view->n_blocks[1] * (size_t)view->n_words;
}

/* Where each array lies in one block of memory. Sizes were checked: nothing overflows. */
struct layout {
    size_t obstacles, unknown, occupied, free;
    size_t plane_squares, squares, lines;
    size_t plane_steps, steps;
    size_t bits_changed, plane_changed;
    size_t n_bytes;
};

static bool lay_out(const struct vxd_field *field, bool on_cuda, struct layout *out)
{
    const struct vxd_field_view *view = &field->view;
    size_t n_rows = (size_t)view->size[0] * (size_t)view->size[1];
    size_t n = n_rows * (size_t)view->pitch;
    size_t n_words = n_rows * (size_t)view->n_words;
    size_t part_rows =
        (size_t)field->part_blocks[0] * VXD_FIELD_BLOCK * (size_t)view->size[1];
    size_t y_lines = (size_t)field->part_blocks[0] * VXD_FIELD_BLOCK *
                     vxd_field_line_rows(view->size[1]);
    size_t x_lines = (size_t)field->part_blocks[1] * VXD_FIELD_BLOCK *
                     vxd_field_line_rows(view->size[0]);
    size_t line_rows = y_lines > x_lines ? y_lines : x_lines;
    size_t *total = &out->n_bytes;

    *total = 0;
    return vxd_layout_add(total, n_words, 8, &out->obstacles) &&
           vxd_layout_add(total,
                          field->spec.unknown == VXD_FIELD_UNKNOWN_IGNORED ? n_words : 0,
                          8, &out->unknown) &&
           vxd_layout_add(total, part_rows * (size_t)view->n_words, 8, &out->occupied) &&
           vxd_layout_add(total, part_rows * (size_t)view->n_words, 8, &out->free) &&
           vxd_layout_add(total, n, 2, &out->plane_squares) &&
           vxd_layout_add(total, n, 2, &out->squares) &&
           vxd_layout_add(total, on_cuda ? 0 : line_rows * (size_t)view->pitch, 2,
                          &out->lines) &&
           vxd_layout_add(total, n, 1, &out->plane_steps) &&
           vxd_layout_add(total, n, 1, &out->steps) &&
           vxd_layout_add(total, field->flag_bytes, 1, &out->bits_changed) &&
           vxd_layout_add(total, field->flag_bytes, 1, &out->plane_changed);
}

static void set_arrays(struct vxd_field *field, const struct layout *layout)
{
    unsigned char *memory = field->memory.ptr;
    struct vxd_field_view *view = &field->view;

    view->obstacles = (uint64_t *)(void *)(memory + layout->obstacles);
    view->unknown = field->spec.unknown == VXD_FIELD_UNKNOWN_IGNORED
                        ? (uint64_t *)(void *)(memory + layout->unknown)
                        : NULL;
    view->plane_squares = (int16_t *)(void *)(memory + layout->plane_squares);
    view->squares = (int16_t *)(void *)(memory + layout->squares);
    view->plane_steps = (int8_t *)(void *)(memory + layout->plane_steps);
    view->steps = (int8_t *)(void *)(memory + layout->steps);
    view->bits_changed = memory + layout->bits_changed;
    view->plane_changed = memory + layout->plane_changed;
    field->occupied = (uint64_t *)(void *)(memory + layout->occupied);
    field->free = (uint64_t *)(void *)(memory + layout->free);
    field->lines = (int16_t *)(void *)(memory + layout->lines);
}

size_t vxd_field_bytes(const struct vxd_context *context,
                       const struct vxd_field_spec *spec)
{
    struct vxd_field field = {.spec = *spec};
    bool on_cuda = vxd_context_backend(context) == VXD_BACKEND_CUDA;
    struct layout layout;

    if (check_spec(spec, NULL) != VXD_OK) {
        return 0;
    }
    set_sizes(&field, on_cuda);
    return lay_out(&field, on_cuda, &layout) ? layout.n_bytes : 0;
}

enum vxd_status vxd_field_create(struct vxd_queue *queue,
                                 const struct vxd_field_spec *spec,
                                 struct vxd_field **out, struct vxd_err *err)
{
    struct vxd_context *context = vxd_queue_context(queue);
    bool on_cuda = vxd_context_backend(context) == VXD_BACKEND_CUDA;
    struct vxd_field *field = NULL;
    struct layout layout;
    enum vxd_status status;

    VXD_TRY(check_spec(spec, err));
    field = calloc(1, sizeof *field);
    if (field == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a field"));
    }
    field->context = context;
    field->spec = *spec;
    set_sizes(field, on_cuda);
    if (!lay_out(field, on_cuda, &layout)) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "a field of too many bytes"));
    }
    VXD_TRY(vxd_device_alloc(queue, layout.n_bytes, &field->memory, err));
    set_arrays(field, &layout);
    *out = field;
    field = NULL;
out:
    vxd_field_destroy(queue, field);
    return status;
}

void vxd_field_destroy(struct vxd_queue *queue, struct vxd_field *field)
{
    if (field != NULL) {
        vxd_device_free(queue, &field->memory);
        free(field);
    }
}

const struct vxd_field_spec *vxd_field_get_spec(const struct vxd_field *field)
{
    return &field->spec;
}

size_t vxd_field_n_parts(const struct vxd_field *field)
{
    return 2 * field->n_parts[0] + field->n_parts[1];
}

void vxd_field_forget(struct vxd_field *field)
{
    field->is_whole = false;
    field->next_part = 0;
}

/* Queues the reading of the scene's bits of blocks along x. */
static enum vxd_status read_scene(struct vxd_queue *queue, const struct vxd_field *field,
                                  const struct vxd_field_part *part,
                                  const struct vxd_field_source *source,
                                  struct vxd_err *err)
{
    const struct vxd_field_spec *spec = &field->spec;
    int64_t low[3] = {spec->low[0] + (int64_t)part->first * VXD_FIELD_BLOCK, spec->low[1],
                      spec->low[2]};
    int64_t high[3] = {spec->low[0] + (int64_t)part->last * VXD_FIELD_BLOCK,
                       spec->high[1], spec->high[2]};

    return vxd_svdag_export_bits(queue, source->svdag, source->root, low, high,
                                 field->occupied, field->free, err);
}

/* Reads the bits of a part, and takes them. */
static enum vxd_status read_part(struct vxd_queue *queue, const struct vxd_field *field,
                                 const struct vxd_field_source *source,
                                 const struct vxd_field_part *part, struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(source->read(queue, field, part, source, err));
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_field_take_bits)(queue, part, err));
out:
    return status;
}

static enum vxd_status run_part(struct vxd_queue *queue, const struct vxd_field *field,
                                const struct vxd_field_source *source, size_t i,
                                struct vxd_err *err)
{
    size_t stage = i < field->n_parts[0] ? 0 : i < 2 * field->n_parts[0] ? 1 : 2;
    int axis = stage == 2 ? 1 : 0;
    int number = (int)(i - stage * field->n_parts[0]);
    struct vxd_field_part part = {.field = field->view,
                                  .first = number * field->part_blocks[axis],
                                  .is_all = field->is_all,
                                  .unknown = field->spec.unknown,
                                  .tracks_free = source->tracks_free,
                                  .occupied = field->occupied,
                                  .free = field->free,
                                  .lines = field->lines};

    part.last = part.first + field->part_blocks[axis];
    part.last =
        part.last < field->view.n_blocks[axis] ? part.last : field->view.n_blocks[axis];
    return stage == 0   ? read_part(queue, field, source, &part, err)
           : stage == 1 ? VXD_BACKEND_FN(queue, vxd_field_plane_pass)(queue, &part, err)
                        : VXD_BACKEND_FN(queue, vxd_field_space_pass)(queue, &part, err);
}

enum vxd_status vxd_field_update_from(struct vxd_queue *queue, struct vxd_field *field,
                                      const struct vxd_field_source *source, size_t first,
                                      size_t n, struct vxd_err *err)
{
    size_t n_parts = vxd_field_n_parts(field);
    enum vxd_status status = VXD_OK;

    if ((first != 0 && first != field->next_part) || n > n_parts - first) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "first",
                        "parts %zu to %zu, of %zu the next one is %zu", first, first + n,
                        n_parts, field->next_part);
    }
    if (first == 0 && n > 0) {
        int all = field->is_whole ? 0 : 1;

        field->is_all = !field->is_whole;
        field->is_whole = false;
        VXD_TRY(
            vxd_queue_fill(queue, field->view.bits_changed, all, field->flag_bytes, err));
        VXD_TRY(vxd_queue_fill(queue, field->view.plane_changed, all, field->flag_bytes,
                               err));
    }
    field->next_part = first;
    for (size_t i = first; i < first + n; i++) {
        VXD_TRY(run_part(queue, field, source, i, err));
        field->next_part = i + 1;
    }
    if (field->next_part == n_parts) {
        field->next_part = 0;
        field->is_whole = true;
    }
out:
    return status;
}

enum vxd_status vxd_field_update(struct vxd_queue *queue, struct vxd_field *field,
                                 const struct vxd_svdag *svdag, uint32_t root,
                                 size_t first, size_t n, struct vxd_err *err)
{
    const struct vxd_field_source source = {
        .read = read_scene,
        .tracks_free = vxd_svdag_get_spec(svdag)->format.tracks_free,
        .svdag = svdag,
        .root = root};

    return vxd_field_update_from(queue, field, &source, first, n, err);
}
