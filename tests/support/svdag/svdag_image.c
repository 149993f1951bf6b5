// SPDX-License-Identifier: Apache-2.0
#include "tests/support/svdag/svdag_image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/svdag/svdag_run.h"

static void require(bool condition, const char *what)
{
    if (!condition) {
        (void)fprintf(stderr, "images: %s\n", what);
        exit(EXIT_FAILURE);
    }
}

static enum vxd_status take_piece(void *args, uint64_t first, const uint32_t *words,
                                  size_t n_words, struct vxd_err *err)
{
    struct gpu_svdag_image *image = args;

    if (image->n_refused > 0) {
        image->n_refused--;
        return vxd_fail(err, VXD_UNAVAILABLE, NULL, "not now");
    }
    require(first == image->n_words && n_words > 0 && n_words <= VXD_SVDAG_IMAGE_PIECE,
            "a piece that is not the next");
    if (first + n_words > image->capacity) {
        uint64_t capacity = 2 * (first + n_words);
        uint32_t *more;

        more = realloc(image->words, capacity * sizeof *words);
        if (more == NULL) {
            return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory");
        }
        image->words = more;
        image->capacity = capacity;
    }
    memcpy(image->words + first, words, n_words * sizeof *words);
    image->n_words += n_words;
    return VXD_OK;
}

enum vxd_status gpu_svdag_image_save(struct vxd_queue *queue,
                                     const struct vxd_svdag *svdag, const uint32_t *roots,
                                     struct gpu_svdag_image *image, struct vxd_err *err)
{
    struct vxd_svdag_saving *saving = NULL;
    bool is_done = false;
    enum vxd_status status;

    *image = (struct gpu_svdag_image){.n_refused = image->n_refused};
    VXD_TRY(
        vxd_svdag_image_begin(queue, svdag, roots, GPU_SVDAG_IMAGE_ROOTS, &saving, err));
    while (!is_done) {
        status = vxd_svdag_image_step(queue, saving, 0, take_piece, image, &is_done, err);
        if (status == VXD_UNAVAILABLE) {
            continue;
        }
        VXD_TRY(status);
    }
    vxd_svdag_image_result(saving, &image->info, image->roots);
    require(image->info.n_words == image->n_words, "pieces are missing");
out:
    vxd_svdag_image_end(queue, saving);
    if (status != VXD_OK) {
        free(image->words);
        image->words = NULL;
    }
    return status;
}

void gpu_svdag_image_must_save(struct gpu_env *env, const struct vxd_svdag *svdag,
                               const uint32_t *roots, struct gpu_svdag_image *image)
{
    struct vxd_err err = {0};

    if (gpu_svdag_image_save(env->queue, svdag, roots, image, &err) != VXD_OK) {
        (void)fprintf(stderr, "save: %s\n", err.message);
        exit(EXIT_FAILURE);
    }
}

bool gpu_svdag_image_is_same(const struct gpu_svdag_image *a,
                             const struct gpu_svdag_image *b)
{
    return a->n_words == b->n_words && a->info.leaves == b->info.leaves &&
           a->info.inner == b->info.inner &&
           memcmp(a->words, b->words, a->n_words * sizeof *a->words) == 0 &&
           memcmp(a->roots, b->roots, sizeof a->roots) == 0;
}

struct vxd_svdag *gpu_svdag_image_make_svdag(struct gpu_env *env,
                                             const struct vxd_svdag_format *format,
                                             enum vxd_svdag_store store)
{
    const struct vxd_svdag_spec spec = {
        .format = *format, .store = store, .table_items = 4096};

    return gpu_svdag_create(env, &spec);
}

struct vxd_svdag_summary
gpu_svdag_image_verify(struct gpu_env *env, const struct vxd_svdag *svdag, uint32_t root)
{
    struct vxd_svdag_summary summary = {0};
    struct vxd_err err = {0};

    require(vxd_svdag_verify(env->queue, svdag, root, &summary, &err) == VXD_OK,
            err.message);
    return summary;
}

static struct vxd_svdag_op random_op(const struct vxd_svdag_format *format,
                                     uint64_t *seed)
{
    const uint64_t side = (uint64_t)VXD_SVDAG_UNIT << format->depth;
    const uint64_t size = side < 64 * VXD_SVDAG_UNIT ? side : 64 * VXD_SVDAG_UNIT;
    struct vxd_svdag_op op = {
        .value = (uint32_t)(gpu_random(seed) % vxd_svdag_n_materials(format))};
    uint64_t action = gpu_random(seed) % 6;

    op.action = action == 0                          ? VXD_SVDAG_ERASE
                : action == 1 && format->tracks_free ? VXD_SVDAG_SET_FREE
                                                     : VXD_SVDAG_FILL;
    op.shape.kind = gpu_random(seed) % 3 == 0 ? VXD_SVDAG_BOX : VXD_SVDAG_BALL;
    op.shape.r = (int64_t)(gpu_random(seed) % (size / 4));
    for (int i = 0; i < 3; i++) {
        op.shape.a[i] = (int64_t)(gpu_random(seed) % side);
        op.shape.low[i] = (int64_t)(gpu_random(seed) % side);
        op.shape.high[i] = op.shape.low[i] + 1 + (int64_t)(gpu_random(seed) % (size / 2));
    }
    return op;
}

void gpu_svdag_image_scenes(struct gpu_env *env, struct vxd_svdag *svdag, uint64_t seed,
                            uint32_t roots[GPU_SVDAG_IMAGE_ROOTS],
                            struct gpu_svdag_grid *grids)
{
    const struct vxd_svdag_format *format = &vxd_svdag_get_spec(svdag)->format;
    uint32_t root = VXD_SVDAG_EMPTY;

    for (int i = 0; i < GPU_SVDAG_IMAGE_ROOTS; i++) {
        if (grids != NULL) {
            gpu_svdag_grid_make(&grids[i], format);
            if (i > 0) {
                gpu_svdag_grid_copy(&grids[i], &grids[i - 1]);
            }
        }
        for (int k = 0; k < 3; k++) {
            const struct vxd_svdag_op op = random_op(format, &seed);
            struct vxd_svdag_edit_result result = {0};

            require(gpu_svdag_edit(env, svdag, root, &op, 1, &result, NULL) == VXD_OK,
                    "edit");
            root = result.root;
            if (grids != NULL) {
                gpu_svdag_grid_edit(&grids[i], &op, 1);
            }
        }
        roots[i] = root;
    }
    roots[0] = VXD_SVDAG_UNIFORM; /* two roots that need no words */
    roots[1] = roots[2];          /* the same root twice */
}
