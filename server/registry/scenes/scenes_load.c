// SPDX-License-Identifier: Apache-2.0
/* What a snapshot file has of a family:
 *
 *   catalogue   number n_scenes, then each: description, history (scene_catalogue.c); roots are
 *               numbers into the list of roots
 *   image       pieces: 4 bytes n_words, little end first, then the words; n_words 0 ends them;
 *               then numbers n_words in all, leaves, inner (gpu/svdag/image/image.h), n_roots, and
 *               each root's reference in the image
 *   log-odds    of each scene that has them, in the catalogue's order: 8 bytes layout (1, 2), 8 bytes
 *               0 or 1 (has_forgotten), 8 bytes n_blocks, then the blocks' Morton codes (8 bytes each) and their rows (512 int8
 *               each; gpu/occupancy/occupancy.h); of 2: 8 bytes n_vote_blocks, their Morton codes,
 *               and their rows (512 uint64 each)
 *   upkeep      of each scene with log-odds, in the same order, where one of them has any:
 *               decayed_ns (signed number), then of each version and snapshot in the order of
 *               its history the number of its pins among the roots, 0 = none */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/svdag/image/image.h"
#include "server/registry/scenes/scene_catalogue.h"
#include "server/registry/scenes/scene_fusion.h"
#include "server/registry/scenes/scenes_recover.h"

enum {
    CHUNK_BYTES = 1 << 20,
    MAX_SCENES = 65536
};

/* Reads all bytes of a kind; the caller frees *out. */
static enum vxd_status read_all(struct vxd_snapshot_reader *reader,
                                enum vxd_snapshot_kind kind, struct vxd_bytes_out *out,
                                struct vxd_err *err)
{
    size_t n_read = CHUNK_BYTES;
    enum vxd_status status = VXD_OK;

    while (n_read == CHUNK_BYTES) {
        uint8_t *to = vxd_bytes_reserve(out, CHUNK_BYTES);

        if (to == NULL) {
            return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                            "no memory for a snapshot's %zu bytes", out->n);
        }
        status = vxd_snapshot_read(reader, kind, to, CHUNK_BYTES, &n_read, err);
        if (status != VXD_OK) {
            return status;
        }
        out->n += n_read;
    }
    return VXD_OK;
}

struct image {
    struct vxd_svdag_image_info info;
    uint32_t *
        words; /* in `memory`, which a store may keep later; of malloc where that is exhausted */
    struct vxd_buffer memory;
    uint32_t *roots;
    size_t n_roots;
};

/* Reserves memory for all words that the file may have, page-locked where a GPU reads
 * them. */
static enum vxd_status reserve_words(struct vxd_context *context, uint64_t n_bytes,
                                     struct image *image, struct vxd_err *err)
{
    if (vxd_svdag_image_alloc(context, n_bytes / sizeof(uint32_t), &image->memory, err) ==
        VXD_OK) {
        image->words = image->memory.ptr;
        return VXD_OK;
    }
    image->words = malloc(n_bytes);
    return image->words != NULL
               ? VXD_OK
               : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                          "no memory for a snapshot's %" PRIu64 " bytes", n_bytes);
}

static void free_image(struct vxd_context *context, struct image *image)
{
    if (image->memory.ptr == NULL) {
        free(image->words);
    }
    vxd_host_free(context, &image->memory);
    free(image->roots);
}

/* Reads the pieces, each to its place. */
static enum vxd_status read_words(struct vxd_context *context,
                                  struct vxd_snapshot_reader *reader, struct image *image,
                                  uint64_t *n_words, struct vxd_err *err)
{
    uint64_t capacity = vxd_snapshot_get_size(reader) / sizeof(uint32_t);
    enum vxd_status status;

    *n_words = 0;
    VXD_TRY(reserve_words(context, capacity * sizeof(uint32_t), image, err));
    for (;;) {
        uint8_t head[4] = {0};
        size_t n_read;
        size_t n;

        VXD_TRY(vxd_snapshot_read(reader, VXD_SNAPSHOT_IMAGE, head, sizeof head, &n_read,
                                  err));
        n = (size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 |
            (size_t)head[3] << 24;
        if (n_read < sizeof head || n > capacity - *n_words) {
            VXD_TRY(vxd_fail(err, VXD_DATA_LOSS, NULL, "a snapshot's image is cut off"));
        }
        if (n == 0) {
            break;
        }
        /* Files are little-endian, and so are all hosts that this is built for (base.h). */
        VXD_TRY(vxd_snapshot_read(reader, VXD_SNAPSHOT_IMAGE, image->words + *n_words,
                                  n * sizeof(uint32_t), &n_read, err));
        if (n_read < n * sizeof(uint32_t)) {
            VXD_TRY(vxd_fail(err, VXD_DATA_LOSS, NULL, "a snapshot's image is cut off"));
        }
        *n_words += n;
    }
out:
    return status;
}

/* Reads what follows the pieces. */
static enum vxd_status read_roots(const struct vxd_bytes_out *bytes, uint64_t n_words,
                                  struct image *image, struct vxd_err *err)
{
    struct vxd_bytes_in in = {.bytes = bytes->bytes, .n = bytes->n};
    uint64_t n_roots;

    image->info.n_words = vxd_bytes_get_number(&in);
    image->info.leaves = vxd_bytes_get_number(&in);
    image->info.inner = vxd_bytes_get_number(&in);
    n_roots = vxd_bytes_get_number(&in);
    if (in.is_bad || n_roots > in.n - in.at || image->info.n_words != n_words) {
        return vxd_fail(err, VXD_DATA_LOSS, NULL, "a snapshot's roots are cut off");
    }
    image->roots = calloc((size_t)n_roots + 1, sizeof *image->roots);
    if (image->roots == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for roots");
    }
    image->n_roots = (size_t)n_roots;
    for (size_t i = 0; i < image->n_roots; i++) {
        uint64_t root = vxd_bytes_get_number(&in);

        in.is_bad = in.is_bad || root > UINT32_MAX;
        image->roots[i] = (uint32_t)root;
    }
    return !in.is_bad && in.at == in.n
               ? VXD_OK
               : vxd_fail(err, VXD_DATA_LOSS, NULL, "a snapshot's roots are damaged");
}

static enum vxd_status read_image(struct vxd_context *context,
                                  struct vxd_snapshot_reader *reader, struct image *image,
                                  struct vxd_err *err)
{
    struct vxd_bytes_out rest = {0};
    uint64_t n_words;
    enum vxd_status status;

    VXD_TRY(read_words(context, reader, image, &n_words, err));
    VXD_TRY(read_all(reader, VXD_SNAPSHOT_IMAGE, &rest, err));
    status = read_roots(&rest, n_words, image, err);
out:
    free(rest.bytes);
    return status;
}

static enum vxd_status read_scene(struct vxd_scenes *scenes, uint32_t journal_id,
                                  uint64_t least_generation, struct vxd_bytes_in *in,
                                  uint64_t n_roots, struct vxd_scene **out,
                                  struct vxd_err *err)
{
    struct vxd_scene_described described;
    struct vxd_scene_history history = {0};
    struct vxd_scene *scene;
    uint64_t generation;
    enum vxd_status status = vxd_scene_read_description(in, &described, err);

    if (status != VXD_OK) {
        return status;
    }
    VXD_TRY(vxd_scene_read_history(in, &history, n_roots, err));
    generation =
        described.generation > least_generation ? described.generation : least_generation;
    VXD_TRY(vxd_scenes_add_described(scenes, journal_id, &described.terms,
                                     &described.spec, generation,
                                     described.created_unix_ns, &scene, err));
    history.keeps_all = true;
    history.filed = history.snapshots;
    history.n_filed = history.n_snapshots;
    history.snapshots = NULL;
    history.n_snapshots = 0;
    scene->history = history;
    memset(&history, 0, sizeof history);
    *out = scene;
out:
    vxd_scene_history_free(&history);
    free(described.palette);
    return status;
}

static uint32_t root_of(void *argument, uint32_t number)
{
    const struct image *image = argument;

    return image->roots[number];
}

/* Loads all roots at once, so that what they share is stored once. */
static enum vxd_status load_roots(struct vxd_scenes *scenes, uint32_t journal_id,
                                  struct image *image, struct vxd_err *err)
{
    struct vxd_scene_family *family = vxd_scenes_find_family(scenes, journal_id);
    enum vxd_status status;

    if (family == NULL) {
        return vxd_fail(err, VXD_DATA_LOSS, NULL, "a snapshot has no scene");
    }
    image->info.format = family->first->spec.format;
    vxd_scene_allow(family->first);
    if (image->memory.ptr == NULL) {
        status = vxd_svdag_image_load(scenes->queue, family->store->svdag, &image->info,
                                      image->words, image->roots, image->n_roots, err);
    } else {
        status =
            vxd_svdag_image_load_own(scenes->queue, family->store->svdag, &image->info,
                                     &image->memory, image->roots, image->n_roots, err);
        image->words = image->memory.ptr;
    }
    vxd_scene_account(family->first);
    if (status != VXD_OK) {
        return status == VXD_INVALID_ARGUMENT ? (err->code = VXD_DATA_LOSS) : status;
    }
    for (struct vxd_scene *scene = family->first; scene != NULL;
         scene = scene->next_in_family) {
        vxd_scene_history_map(&scene->history, root_of, image);
    }
    return VXD_OK;
}

/* Reads so many bytes of log-odds. */
static enum vxd_status get_log_odds(struct vxd_snapshot_reader *reader, void *to,
                                    size_t n_bytes, struct vxd_err *err)
{
    size_t n_read;
    enum vxd_status status =
        vxd_snapshot_read(reader, VXD_SNAPSHOT_LOG_ODDS, to, n_bytes, &n_read, err);

    return status != VXD_OK || n_read == n_bytes
               ? status
               : vxd_fail(err, VXD_DATA_LOSS, NULL, "a snapshot's log-odds are cut off");
}

static enum vxd_status load_votes(struct vxd_scene *scene,
                                  struct vxd_snapshot_reader *reader,
                                  struct vxd_occupancy_image *image, struct vxd_err *err)
{
    struct vxd_occupancy_image votes = {0};
    uint64_t n;
    enum vxd_status status;

    VXD_TRY(get_log_odds(reader, &n, sizeof n, err));
    if (n > vxd_snapshot_get_size(reader) / VXD_OCCUPANCY_BLOCK_VOXELS) {
        VXD_TRY(vxd_fail(err, VXD_DATA_LOSS, NULL, "a snapshot's votes are damaged"));
    }
    VXD_TRY(vxd_occupancy_image_alloc(scene->scenes->context, 0, (size_t)n, &votes, err));
    image->n_vote_blocks = votes.n_vote_blocks;
    image->vote_keys = votes.vote_keys;
    image->vote_rows = votes.vote_rows;
    votes.vote_keys = (struct vxd_buffer){0};
    votes.vote_rows = (struct vxd_buffer){0};
    if (n > 0) {
        VXD_TRY(
            get_log_odds(reader, image->vote_keys.ptr, image->vote_keys.n_bytes, err));
        VXD_TRY(
            get_log_odds(reader, image->vote_rows.ptr, image->vote_rows.n_bytes, err));
    }
out:
    vxd_occupancy_image_free(scene->scenes->context, &votes);
    return status;
}

static enum vxd_status load_layer(struct vxd_scene *scene,
                                  struct vxd_snapshot_reader *reader, struct vxd_err *err)
{
    struct vxd_context *context = scene->scenes->context;
    struct vxd_occupancy_image image = {0};
    uint64_t most = vxd_snapshot_get_size(reader) / VXD_OCCUPANCY_BLOCK_VOXELS;
    uint64_t head[3];
    enum vxd_status status;

    VXD_TRY(get_log_odds(reader, head, sizeof head, err));
    if ((head[0] != VXD_SCENE_LOG_ODDS_LAYOUT && head[0] != VXD_SCENE_VOTES_LAYOUT) ||
        head[1] > 1 || head[2] > most) {
        VXD_TRY(vxd_fail(err, VXD_DATA_LOSS, NULL, "a snapshot's log-odds are damaged"));
    }
    VXD_TRY(vxd_occupancy_image_alloc(context, (size_t)head[2], 0, &image, err));
    if (head[2] > 0) {
        VXD_TRY(get_log_odds(reader, image.keys.ptr, image.keys.n_bytes, err));
        VXD_TRY(get_log_odds(reader, image.rows.ptr, image.rows.n_bytes, err));
    }
    if (head[0] == VXD_SCENE_VOTES_LAYOUT) {
        VXD_TRY(load_votes(scene, reader, &image, err));
    }
    VXD_TRY(vxd_scene_import_log_odds(scene, &image, head[1] == 1, err));
out:
    vxd_occupancy_image_free(context, &image);
    return status;
}

/* What stands behind the log-odds: nothing where no scene has pins or has decayed. */
static enum vxd_status load_upkeep(struct vxd_scene **scenes, size_t n_scenes,
                                   const struct image *image,
                                   struct vxd_snapshot_reader *reader,
                                   struct vxd_err *err)
{
    struct vxd_bytes_out bytes = {0};
    struct vxd_bytes_in in;
    enum vxd_status status = read_all(reader, VXD_SNAPSHOT_UPKEEP, &bytes, err);

    in = (struct vxd_bytes_in){.bytes = bytes.bytes, .n = bytes.n};
    for (size_t i = 0; i < n_scenes && status == VXD_OK && bytes.n > 0; i++) {
        if (vxd_scene_fuses(scenes[i])) {
            status =
                vxd_scene_read_upkeep(&in, scenes[i], image->roots, image->n_roots, err);
        }
    }
    if (status == VXD_OK && in.at != in.n) {
        status = vxd_fail(err, VXD_DATA_LOSS, NULL, "more follows a snapshot's upkeep");
    }
    free(bytes.bytes);
    return status;
}

enum vxd_status vxd_scenes_load(struct vxd_scenes *scenes, uint32_t journal_id,
                                uint64_t least_generation,
                                struct vxd_snapshot_reader *reader, struct vxd_err *err)
{
    struct vxd_bytes_out catalogue = {0};
    struct image image = {0};
    struct vxd_scene **loaded = NULL;
    struct vxd_bytes_in in;
    uint64_t n_scenes;
    enum vxd_status status;

    VXD_TRY(read_all(reader, VXD_SNAPSHOT_CATALOGUE, &catalogue, err));
    VXD_TRY(read_image(scenes->context, reader, &image, err));
    in = (struct vxd_bytes_in){.bytes = catalogue.bytes, .n = catalogue.n};
    n_scenes = vxd_bytes_get_number(&in);
    if (in.is_bad || n_scenes == 0 || n_scenes > MAX_SCENES) {
        VXD_TRY(vxd_fail(err, VXD_DATA_LOSS, NULL, "a snapshot's catalogue is damaged"));
    }
    loaded = calloc((size_t)n_scenes, sizeof(void *));
    if (loaded == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for scenes"));
    }
    for (uint64_t i = 0; i < n_scenes; i++) {
        VXD_TRY(read_scene(scenes, journal_id, least_generation, &in, image.n_roots,
                           &loaded[i], err));
    }
    VXD_TRY(in.at == in.n ? VXD_OK
                          : vxd_fail(err, VXD_DATA_LOSS, NULL,
                                     "more follows a snapshot's catalogue"));
    VXD_TRY(load_roots(scenes, journal_id, &image, err));
    for (uint64_t i = 0; i < n_scenes; i++) {
        if (vxd_scene_fuses(loaded[i])) {
            VXD_TRY(load_layer(loaded[i], reader, err));
        }
    }
    VXD_TRY(load_upkeep(loaded, (size_t)n_scenes, &image, reader, err));
out:
    free(loaded);
    free(catalogue.bytes);
    free_image(scenes->context, &image);
    return status;
}
