// SPDX-License-Identifier: Apache-2.0
/* What a snapshot file has of a family.
 *
 * catalogue   number n_scenes, then each: description, history (scene_catalogue.c); roots are
 *             numbers into the list of roots
 * image       pieces: 4 bytes n_words, little end first, then the words; n_words 0 ends them;
 *             then numbers n_words in all, leaves, inner (gpu/dag/image.h), n_roots, and each
 *             root's reference in the image */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/dag/image.h"
#include "server/scene_catalogue.h"
#include "server/scenes_recover.h"

enum {
    PART_BYTES = 1 << 20,
    MAX_SCENES = 65536
};

/* All bytes of a kind; *out is to be freed. */
static enum vxd_status read_all(struct vxd_snapshot_reader *reader,
                                enum vxd_snapshot_kind kind, struct vxd_bytes_out *out,
                                struct vxd_err *err)
{
    size_t n_read = PART_BYTES;
    enum vxd_status status = VXD_OK;

    while (n_read == PART_BYTES) {
        uint8_t *to = vxd_bytes_room(out, PART_BYTES);

        if (to == NULL) {
            return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                            "no memory for a snapshot's %zu bytes", out->n);
        }
        status = vxd_snapshot_read(reader, kind, to, PART_BYTES, &n_read, err);
        if (status != VXD_OK) {
            return status;
        }
        out->n += n_read;
    }
    return VXD_OK;
}

struct image {
    struct vxd_dag_image_info info;
    uint32_t *words;
    uint32_t *roots;
    size_t n_roots;
};

/* Puts the pieces together, in place: each moves down over the lengths before it. */
static bool join_pieces(struct vxd_bytes_out *bytes, struct vxd_bytes_in *in,
                        struct image *image)
{
    size_t n = 0;

    for (;;) {
        const uint8_t *head = vxd_bytes_get(in, 4);
        size_t n_words = head != NULL ? (size_t)head[0] | (size_t)head[1] << 8 |
                                            (size_t)head[2] << 16 | (size_t)head[3] << 24
                                      : 0;
        const uint8_t *piece;

        if (n_words == 0) {
            break;
        }
        piece = vxd_bytes_get(in, 4 * n_words);
        if (piece == NULL) {
            return false;
        }
        memmove(bytes->bytes + 4 * n, piece, 4 * n_words);
        n += n_words;
    }
    /* malloc's memory is aligned for words; files are little-endian, and so are all hosts that
     * this is built for (base.h). */
    image->words = (uint32_t *)(void *)bytes->bytes;
    image->info.n_words = vxd_bytes_get_number(in);
    return !in->is_bad && image->info.n_words == n;
}

static enum vxd_status read_image(struct vxd_bytes_out *bytes, struct image *image,
                                  struct vxd_err *err)
{
    struct vxd_bytes_in in = {.bytes = bytes->bytes, .n = bytes->n};
    uint64_t n_roots;

    if (!join_pieces(bytes, &in, image)) {
        return vxd_fail(err, VXD_DATA_LOSS, NULL, "a snapshot's image is cut off");
    }
    image->info.leaves = vxd_bytes_get_number(&in);
    image->info.inner = vxd_bytes_get_number(&in);
    n_roots = vxd_bytes_get_number(&in);
    if (in.is_bad || n_roots > in.n - in.at) {
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

static enum vxd_status read_scene(struct vxd_scenes *scenes, uint32_t journal_id,
                                  uint64_t least_generation, struct vxd_bytes_in *in,
                                  uint64_t n_roots, struct vxd_err *err)
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

/* All roots at once, so that what they share is stored once. */
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
    status = vxd_dag_image_load(scenes->queue, family->store->dag, &image->info,
                                image->words, image->roots, image->n_roots, err);
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

enum vxd_status vxd_scenes_load(struct vxd_scenes *scenes, uint32_t journal_id,
                                uint64_t least_generation,
                                struct vxd_snapshot_reader *reader, struct vxd_err *err)
{
    struct vxd_bytes_out catalogue = {0};
    struct vxd_bytes_out bytes = {0};
    struct image image = {0};
    struct vxd_bytes_in in;
    uint64_t n_scenes;
    enum vxd_status status;

    VXD_TRY(read_all(reader, VXD_SNAPSHOT_CATALOGUE, &catalogue, err));
    VXD_TRY(read_all(reader, VXD_SNAPSHOT_IMAGE, &bytes, err));
    VXD_TRY(read_image(&bytes, &image, err));
    in = (struct vxd_bytes_in){.bytes = catalogue.bytes, .n = catalogue.n};
    n_scenes = vxd_bytes_get_number(&in);
    if (in.is_bad || n_scenes == 0 || n_scenes > MAX_SCENES) {
        VXD_TRY(vxd_fail(err, VXD_DATA_LOSS, NULL, "a snapshot's catalogue is damaged"));
    }
    for (uint64_t i = 0; i < n_scenes; i++) {
        VXD_TRY(
            read_scene(scenes, journal_id, least_generation, &in, image.n_roots, err));
    }
    VXD_TRY(in.at == in.n ? VXD_OK
                          : vxd_fail(err, VXD_DATA_LOSS, NULL,
                                     "more follows a snapshot's catalogue"));
    status = load_roots(scenes, journal_id, &image, err);
out:
    free(catalogue.bytes);
    free(bytes.bytes);
    free(image.roots);
    return status;
}
