// SPDX-License-Identifier: Apache-2.0
/* Columns on the CPU: a task is a pillar of 32 x 32 columns, which goes down the tree once and
 * takes every leaf as two masks. States keep one mask a 4 x 4 tile of columns. */
#include "gpu/grid/grid_backends.h"

enum {
    PILLAR_HEIGHT = 5,
    PILLAR_SIDE = 1 << PILLAR_HEIGHT,
    PILLAR_TILES = PILLAR_SIDE / 4
};

/* The pillars that hold an area, x fastest. */
struct pillars {
    const struct vxd_grid_columns_call *call;
    uint32_t low[2]; /* in pillars */
    uint32_t n[2];
};

struct pillar {
    struct vxd_svdag_area area;
    uint64_t
        occupied[PILLAR_TILES * PILLAR_TILES]; /* bits of VXD_GRID_COLUMNS, by tile */
    uint64_t free[PILLAR_TILES * PILLAR_TILES];
    struct vxd_grid_span
        *spans; /* of its columns, y * 32 + x; NULL where states are asked */
};

static bool find_pillars(const struct vxd_grid_columns_call *call, struct pillars *out)
{
    out->call = call;
    if (vxd_svdag_area_is_empty(&call->area)) {
        return false;
    }
    for (int axis = 0; axis < 2; axis++) {
        out->low[axis] = (uint32_t)call->area.low[axis] >> PILLAR_HEIGHT;
        out->n[axis] =
            ((uint32_t)(call->area.high[axis] - 1) >> PILLAR_HEIGHT) - out->low[axis] + 1;
    }
    return true;
}

/* The area's part in pillar i. */
static struct vxd_svdag_area pillar_area(const struct pillars *pillars, size_t i)
{
    struct vxd_svdag_area area = pillars->call->area;
    uint32_t at[2] = {pillars->low[0] + (uint32_t)(i % pillars->n[0]),
                      pillars->low[1] + (uint32_t)(i / pillars->n[0])};

    for (int axis = 0; axis < 2; axis++) {
        int32_t low = (int32_t)(at[axis] << PILLAR_HEIGHT);

        area.low[axis] = area.low[axis] > low ? area.low[axis] : low;
        area.high[axis] =
            area.high[axis] < low + PILLAR_SIDE ? area.high[axis] : low + PILLAR_SIDE;
    }
    return area;
}

static void add_span(struct vxd_grid_span *span, int32_t low, int32_t last)
{
    uint64_t n = (uint64_t)(last - low) + 1;

    span->low = low < span->low ? low : span->low;
    span->high = last > span->high ? last : span->high;
    span->n += n;
    span->sum += n * (uint64_t)((int64_t)low + last) / 2;
}

/* Adds a region of one state to its tiles or columns. */
static void add_uniform(struct pillar *pillar, const struct vxd_svdag_position *tree_cube,
                        bool occupied)
{
    uint32_t side =
        tree_cube->height >= PILLAR_HEIGHT ? PILLAR_SIDE : 1u << tree_cube->height;
    uint32_t x = tree_cube->height >= PILLAR_HEIGHT ? 0 : tree_cube->x % PILLAR_SIDE;
    uint32_t y = tree_cube->height >= PILLAR_HEIGHT ? 0 : tree_cube->y % PILLAR_SIDE;
    int64_t low = tree_cube->z;
    int64_t last = low + ((int64_t)1 << tree_cube->height) - 1;

    if (pillar->spans == NULL) {
        uint64_t *tiles = occupied ? pillar->occupied : pillar->free;

        for (uint32_t ty = y / 4; ty < (y + side) / 4; ty++) {
            for (uint32_t tx = x / 4; tx < (x + side) / 4; tx++) {
                tiles[ty * PILLAR_TILES + tx] = VXD_GRID_COLUMNS;
            }
        }
        return;
    }
    low = low > pillar->area.low[2] ? low : pillar->area.low[2];
    last = last < pillar->area.high[2] ? last : pillar->area.high[2] - 1;
    for (uint32_t cy = y; occupied && cy < y + side; cy++) {
        for (uint32_t cx = x; cx < x + side; cx++) {
            add_span(&pillar->spans[cy * PILLAR_SIDE + cx], (int32_t)low, (int32_t)last);
        }
    }
}

/* Whether every column of a cube has a state that FREE voxels do not change. Not for spans. */
static bool is_settled(const struct pillar *pillar,
                       const struct vxd_svdag_position *tree_cube)
{
    uint32_t side =
        tree_cube->height >= PILLAR_HEIGHT ? PILLAR_SIDE : 1u << tree_cube->height;
    uint32_t x = tree_cube->height >= PILLAR_HEIGHT ? 0 : tree_cube->x % PILLAR_SIDE;
    uint32_t y = tree_cube->height >= PILLAR_HEIGHT ? 0 : tree_cube->y % PILLAR_SIDE;
    uint64_t columns = VXD_GRID_COLUMNS;

    for (uint32_t ty = y / 4; ty < (y + side) / 4; ty++) {
        for (uint32_t tx = x / 4; tx < (x + side) / 4; tx++) {
            uint32_t tile = ty * PILLAR_TILES + tx;

            columns &= pillar->occupied[tile] | pillar->free[tile];
        }
    }
    return columns == VXD_GRID_COLUMNS;
}

static void add_leaf_spans(struct pillar *pillar,
                           const struct vxd_svdag_position *tree_cube, uint64_t occupied)
{
    for (uint64_t columns = vxd_grid_flatten(occupied); columns != 0;
         columns &= columns - 1) {
        int bit = vxd_svdag_low_bit(columns);
        uint32_t x =
            tree_cube->x % PILLAR_SIDE + (uint32_t)((bit >> 4 & 2) | (bit >> 2 & 1));
        uint32_t y =
            tree_cube->y % PILLAR_SIDE + (uint32_t)((bit >> 3 & 2) | (bit >> 1 & 1));
        unsigned z = vxd_grid_column(occupied, bit);

        for (int k = 0; k < 4; k++) {
            if ((z >> k & 1) != 0) {
                add_span(&pillar->spans[y * PILLAR_SIDE + x], (int32_t)tree_cube->z + k,
                         (int32_t)tree_cube->z + k);
            }
        }
    }
}

/* Adds a leaf below a node of these states: where all of its voxels have one, its values need not
 * be read. */
static void add_leaf(const struct vxd_svdag_view *view, struct pillar *pillar,
                     const struct vxd_svdag_position *tree_cube, unsigned states)
{
    uint32_t tile =
        tree_cube->y % PILLAR_SIDE / 4 * PILLAR_TILES + tree_cube->x % PILLAR_SIDE / 4;
    uint64_t band =
        vxd_grid_band_mask(tree_cube->z, pillar->area.low[2], pillar->area.high[2]);
    uint64_t set = vxd_svdag_leaf_mask(vxd_svdag_words(view, tree_cube->ref)) & band;
    uint64_t occupied = 0;
    uint64_t free = 0;

    if (states == VXD_SVDAG_OCCUPIED) {
        occupied = set;
    } else if (states == VXD_SVDAG_FREE) {
        free = set;
    } else {
        vxd_svdag_tree_cube_masks(view, tree_cube->ref, &occupied, &free);
        occupied &= band;
        free &= band;
    }
    if (pillar->spans != NULL) {
        add_leaf_spans(pillar, tree_cube, occupied);
    } else {
        pillar->occupied[tile] |= vxd_grid_flatten(occupied);
        pillar->free[tile] |= vxd_grid_flatten(free);
    }
}

/* Takes a cube's states, as far as the cube itself gives them; true where its children do. */
static bool take_tree_cube(const struct vxd_svdag_view *view, struct pillar *pillar,
                           const struct vxd_svdag_cursor *cursor)
{
    const struct vxd_svdag_position *tree_cube = &cursor->tree_cube;
    bool is_leaf = tree_cube->height == VXD_SVDAG_LEAF_HEIGHT;
    unsigned states;

    if (tree_cube->ref == VXD_SVDAG_EMPTY ||
        vxd_svdag_area_relation(&pillar->area, tree_cube) == VXD_SVDAG_OUTSIDE) {
        return false;
    }
    if (!vxd_svdag_is_node(tree_cube->ref)) {
        add_uniform(pillar, tree_cube,
                    vxd_svdag_uniform_state(view, tree_cube->ref) == VXD_SVDAG_OCCUPIED);
        return false;
    }
    /* Of a leaf those of its parent: they cost nothing, and are a superset. */
    {
        struct vxd_svdag_position node = *tree_cube;

        node.ref = is_leaf ? cursor->refs[VXD_SVDAG_LEAF_HEIGHT + 1] : tree_cube->ref;
        node.height = is_leaf ? VXD_SVDAG_LEAF_HEIGHT + 1 : tree_cube->height;
        states = vxd_svdag_position_states(view, &node);
    }
    if ((states & VXD_SVDAG_OCCUPIED) == 0 &&
        (pillar->spans != NULL || is_settled(pillar, tree_cube))) {
        return false;
    }
    if (is_leaf) {
        add_leaf(view, pillar, tree_cube, states);
    }
    return !is_leaf;
}

/* Goes down the tree where it holds something in the pillar. */
static void walk_pillar(const struct vxd_grid_columns_call *call, struct pillar *pillar)
{
    const struct vxd_svdag_position root = {call->root, 0, 0, 0, call->view.depth};
    struct vxd_svdag_cursor cursor;
    bool is_more = true;

    vxd_svdag_cursor_begin(&cursor, &root);
    while (is_more) {
        if (take_tree_cube(&call->view, pillar, &cursor)) {
            vxd_svdag_cursor_down(&call->view, &cursor);
        } else {
            is_more = vxd_svdag_cursor_next(&call->view, &cursor);
        }
    }
}

/* The cell of a column of the scene. */
static size_t cell_of(const struct vxd_grid_columns_call *call, int32_t x, int32_t y)
{
    return (size_t)(y - call->low[1]) * call->n_x + (size_t)(x - call->low[0]);
}

static void states_pillar(void *context, size_t begin, size_t end)
{
    const struct pillars *pillars = context;
    const struct vxd_grid_columns_call *call = pillars->call;

    for (size_t i = begin; i < end; i++) {
        struct pillar pillar = {.area = pillar_area(pillars, i)};

        walk_pillar(call, &pillar);
        for (int32_t y = pillar.area.low[1]; y < pillar.area.high[1]; y++) {
            uint8_t *row = call->states + cell_of(call, pillar.area.low[0], y);

            for (int32_t x = pillar.area.low[0]; x < pillar.area.high[0]; x++) {
                uint32_t tile = (uint32_t)y % PILLAR_SIDE / 4 * PILLAR_TILES +
                                (uint32_t)x % PILLAR_SIDE / 4;
                int bit = vxd_grid_column_bit((uint32_t)x, (uint32_t)y);

                row[x - pillar.area.low[0]] =
                    vxd_grid_state((pillar.occupied[tile] >> bit & 1) != 0,
                                   (pillar.free[tile] >> bit & 1) != 0);
            }
        }
    }
}

static void heights_pillar(void *context, size_t begin, size_t end)
{
    const struct pillars *pillars = context;
    const struct vxd_grid_columns_call *call = pillars->call;
    struct vxd_grid_span spans[PILLAR_SIDE * PILLAR_SIDE];

    for (size_t i = begin; i < end; i++) {
        struct pillar pillar = {.area = pillar_area(pillars, i), .spans = spans};

        for (size_t k = 0; k < sizeof spans / sizeof spans[0]; k++) {
            spans[k] = (struct vxd_grid_span){INT32_MAX, INT32_MIN, 0, 0};
        }
        walk_pillar(call, &pillar);
        for (int32_t y = pillar.area.low[1]; y < pillar.area.high[1]; y++) {
            for (int32_t x = pillar.area.low[0]; x < pillar.area.high[0]; x++) {
                vxd_grid_put_heights(&call->heights, cell_of(call, x, y),
                                     &spans[(uint32_t)y % PILLAR_SIDE * PILLAR_SIDE +
                                            (uint32_t)x % PILLAR_SIDE]);
            }
        }
    }
}

/* Sets rows to what columns have that hold nothing. */
static void clear_rows(void *context, size_t begin, size_t end)
{
    const struct vxd_grid_columns_call *call = context;
    const struct vxd_grid_span none = {INT32_MAX, INT32_MIN, 0, 0};
    size_t first = call->rows.begin + begin;

    for (size_t i = first * call->n_x; i < (call->rows.begin + end) * call->n_x; i++) {
        vxd_grid_put_heights(&call->heights, i, &none);
    }
}

static enum vxd_status columns_job(struct vxd_pool *pool, const void *args,
                                   struct vxd_err *err)
{
    struct vxd_grid_columns_call call = *(const struct vxd_grid_columns_call *)args;
    bool is_states = call.states != NULL;
    struct pillars pillars;

    (void)err;
    if (!is_states) {
        vxd_parallel_for(pool, call.rows.end - call.rows.begin, 16, clear_rows, &call);
    }
    if (find_pillars(&call, &pillars)) {
        vxd_parallel_for(pool, (size_t)pillars.n[0] * pillars.n[1], 1,
                         is_states ? states_pillar : heights_pillar, &pillars);
    }
    return VXD_OK;
}

enum vxd_status vxd_grid_columns_cpu(struct vxd_queue *queue,
                                     const struct vxd_grid_columns_call *call,
                                     struct vxd_err *err)
{
    return vxd_queue_push(queue, columns_job, call, sizeof *call, err);
}
