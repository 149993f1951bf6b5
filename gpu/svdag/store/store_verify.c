// SPDX-License-Identifier: Apache-2.0
/* Traverses a root and checks every rule of node_words_math.h, the counts in headers, and
 * that the store finds each item; computes a digest of the voxels.
 *
 * A node is visited once for each height at which it occurs: it may occur at several
 * where nothing in it differs, and then means other voxels. What it holds is memoized by
 * address and height, as a DAG has more paths than nodes. A digest depends on the height
 * and on the values, or on the children's digests, never on addresses. */
#include <string.h>

#include "gpu/svdag/store/store.h"
#include "gpu/svdag/store/store_table.h"

enum {
    FIRST_ENTRIES = 1024,
    CHUNK_WORDS = 1 << VXD_SVDAG_CHUNK_BITS
};

/* What a region of the scene holds. */
struct content {
    uint64_t digest[2];
    uint64_t n_occupied;
    uint64_t n_free;
};

struct entry {
    uint64_t key; /* height and address; 0: none */
    struct content content;
};

/* A node on the stack. */
struct frame {
    uint32_t words[VXD_SVDAG_MAX_ITEM_WORDS];
    uint32_t ref;
    int octant; /* next child to visit */
    struct content children[8];
};

struct walk {
    const struct vxd_svdag *svdag;
    const struct vxd_svdag_view *view; /* the view of the image */
    const struct vxd_svdag_image *image;
    struct vxd_svdag_summary *summary;
    struct vxd_err *err;
    struct vxd_buffer memory; /* memo entries */
    size_t n_entries;         /* power of two */
    size_t n_used;
    struct frame stack[VXD_SVDAG_MAX_DEPTH + 1]; /* by height */
};

/* What a digest describes, besides its height. */
enum digest_kind {
    DIGEST_EMPTY,
    DIGEST_UNIFORM,
    DIGEST_LEAF,
    DIGEST_INNER
};

/* --- digests ----------------------------------------------------------------------- */

static void digest_add(uint64_t digest[2], uint64_t word)
{
    digest[0] = vxd_svdag_fold(digest[0] ^ word, 0xa0761d6478bd642fULL);
    digest[1] =
        vxd_svdag_fold(digest[1] ^ (word << 32 | word >> 32), 0xe7037ed1a0b428dbULL);
}

static void digest_begin(uint64_t digest[2], enum digest_kind kind, int height)
{
    digest[0] = 0x8ebc6af09c88c6e3ULL;
    digest[1] = 0x589965cc75374cc3ULL;
    digest_add(digest, (uint64_t)height << 8 | (uint64_t)kind);
}

/* FREE is described by its mask, because its value depends on the format. */
static void digest_leaf(const struct vxd_svdag_view *view,
                        const struct vxd_svdag_leaf *leaf, uint64_t digest[2])
{
    digest_begin(digest, DIGEST_LEAF, VXD_SVDAG_LEAF_HEIGHT);
    digest_add(digest, leaf->set);
    digest_add(digest, leaf->free);
    for (uint64_t rest = leaf->set & ~leaf->free; rest != 0; rest &= rest - 1) {
        int bit = __builtin_ctzll(rest);

        digest_add(digest, view->value_bits > 1 ? vxd_svdag_leaf_value(leaf, bit) : 0);
    }
}

/* --- the memo ---------------------------------------------------------------------- */

static uint64_t entry_key(uint32_t ref, int height)
{
    return (uint64_t)height << 32 | ref;
}

/* The entry of a key, or the free entry for it; the table is never full. */
static struct entry *entry_find(const struct walk *walk, uint64_t key)
{
    struct entry *entries = walk->memory.ptr;
    size_t at =
        (size_t)vxd_svdag_fold(key, 0x9e3779b97f4a7c15ULL) & (walk->n_entries - 1);

    while (entries[at].key != 0 && entries[at].key != key) {
        at = (at + 1) & (walk->n_entries - 1);
    }
    return &entries[at];
}

static enum vxd_status grow(struct walk *walk, size_t n_entries)
{
    struct vxd_context *context = walk->svdag->context;
    struct vxd_buffer old = walk->memory;
    const struct entry *entries = old.ptr;
    size_t n_old = walk->n_entries;
    size_t n_bytes = n_entries * sizeof *entries;
    enum vxd_status status = vxd_host_alloc(context, n_bytes, &walk->memory, walk->err);

    if (status != VXD_OK) {
        walk->memory = old;
        return status;
    }
    memset(walk->memory.ptr, 0, n_bytes);
    walk->n_entries = n_entries;
    for (size_t i = 0; i < n_old; i++) {
        if (entries[i].key != 0) {
            *entry_find(walk, entries[i].key) = entries[i];
        }
    }
    vxd_host_free(context, &old);
    return VXD_OK;
}

static enum vxd_status remember(struct walk *walk, uint32_t ref, int height,
                                const struct content *content)
{
    uint64_t key = entry_key(ref, height);

    if ((walk->n_used + 1) * 4 > walk->n_entries * 3) {
        enum vxd_status status = grow(walk, walk->n_entries * 2);

        if (status != VXD_OK) {
            return status;
        }
    }
    *entry_find(walk, key) = (struct entry){key, *content};
    walk->n_used++;
    return VXD_OK;
}

/* --- the rules --------------------------------------------------------------------- */

static enum vxd_status broken(struct walk *walk, const char *what, uint32_t ref,
                              const char *rule)
{
    return vxd_fail(walk->err, VXD_DATA_LOSS, NULL, "%s at word %u: %s", what, ref, rule);
}

static bool tail_is_zero(const uint32_t *words, int n_bits)
{
    return n_bits % 32 == 0 || words[n_bits / 32] >> (n_bits % 32) == 0;
}

static bool lies_in_store(const struct vxd_svdag_view *view, uint32_t ref, int n_words)
{
    return vxd_svdag_is_node(ref) && view->chunks[ref >> VXD_SVDAG_CHUNK_BITS] != NULL &&
           (ref & (CHUNK_WORDS - 1)) + (uint32_t)n_words <= CHUNK_WORDS;
}

/* For a split item: whether its first word is at the place of a head, and the rest is in
 * the chunk. */
static bool rest_lies_in_store(const struct vxd_svdag_view *view, uint32_t ref,
                               int n_words)
{
    uint32_t at = ref & (CHUNK_WORDS - 1);

    return !view->is_split ||
           (at >= VXD_SVDAG_SPLIT_FIRST && at % 2 == 0 &&
            (at - VXD_SVDAG_SPLIT_FIRST) / VXD_SVDAG_SPLIT_ROW % (uint32_t)n_words < 2 &&
            at + vxd_svdag_split_distance(ref, n_words) + (uint32_t)n_words - 2 <=
                CHUNK_WORDS);
}

/* Looks an item up in the copy of a store of gpu/paper. */
static uint32_t find_in_tables(const struct walk *walk, enum vxd_svdag_kind kind,
                               const uint32_t *words, int n_words)
{
    const struct vxd_svdag_lookup_key key = {vxd_svdag_hash(kind, words, n_words), words,
                                             kind, n_words};

    return walk->svdag->device_ops->find_in_copy(walk->svdag, walk->image, &key);
}

static uint32_t find(const struct walk *walk, enum vxd_svdag_kind kind,
                     const uint32_t *words, int n_words)
{
    const struct vxd_svdag_image *image = walk->image;

    return image->tables != NULL ? find_in_tables(walk, kind, words, n_words)
           : image->index.buckets != NULL
               ? vxd_svdag_index_find(&image->index, walk->view, kind, words, n_words)
               : vxd_svdag_find(walk->svdag, kind, words, n_words);
}

/* Copies the words of an item after checking that they lie in the store, and that the
 * store finds the item by them. */
static enum vxd_status item_words(struct walk *walk, enum vxd_svdag_kind kind,
                                  uint32_t ref, uint32_t out[VXD_SVDAG_MAX_ITEM_WORDS])
{
    static const char *const names[VXD_SVDAG_N_KINDS] = {"leaf", "inner node", "block"};
    const struct vxd_svdag_view *view = walk->view;
    struct vxd_svdag_item item;
    const uint32_t *words;
    int n_words;

    if (!lies_in_store(view, ref, kind == VXD_SVDAG_LEAF ? 2 : 1)) {
        return broken(walk, names[kind], ref, "it lies outside the store");
    }
    words = vxd_svdag_words(view, ref);
    if (kind == VXD_SVDAG_BLOCK) {
        if (words[0] < 1 || words[0] > 64) {
            return broken(walk, names[kind], ref, "it does not have 1 to 64 values");
        }
        n_words = vxd_svdag_block_words(view->value_bits, (int)words[0]);
    } else if (kind == VXD_SVDAG_LEAF) {
        n_words = vxd_svdag_leaf_words(view->value_bits, vxd_svdag_leaf_mask(words));
    } else {
        n_words = vxd_svdag_inner_words(words);
    }
    if (!lies_in_store(view, ref, n_words) || !rest_lies_in_store(view, ref, n_words)) {
        return broken(walk, names[kind], ref, "it crosses the end of its chunk");
    }
    item = vxd_svdag_item_at(view, ref, n_words);
    for (int i = 0; i < n_words; i++) {
        out[i] = vxd_svdag_item_word(&item, i);
    }
    if (find(walk, kind, out, n_words) != ref) {
        return broken(walk, names[kind], ref, "the store does not find its words here");
    }
    walk->summary->node_bytes += (size_t)n_words * sizeof(uint32_t);
    return VXD_OK;
}

/* Checks the block of a leaf with n set voxels. Leaves share blocks, which are counted
 * once. */
static enum vxd_status check_block(struct walk *walk, uint32_t ref, int n)
{
    static const struct content nothing;
    int bits = walk->view->value_bits;
    uint32_t words[VXD_SVDAG_MAX_ITEM_WORDS];
    uint32_t differ = 0;
    enum vxd_status status;

    if (entry_find(walk, entry_key(ref, 0))->key != 0) {
        return vxd_svdag_words(walk->view, ref)[0] == (uint32_t)n
                   ? VXD_OK
                   : broken(walk, "block", ref,
                            "it does not have one value for each set voxel");
    }
    status = item_words(walk, VXD_SVDAG_BLOCK, ref, words);
    if (status != VXD_OK) {
        return status;
    }
    if (words[0] != (uint32_t)n) {
        return broken(walk, "block", ref,
                      "it does not have one value for each set voxel");
    }
    if (!tail_is_zero(words + 1, n * bits)) {
        return broken(walk, "block", ref, "words after its values are not zero");
    }
    for (int i = 1; i < n; i++) {
        uint32_t value = words[1 + i * bits / 32] >> (i * bits % 32);

        differ |= (value ^ words[1]) & ((1u << bits) - 1);
    }
    if (differ == 0) {
        return broken(walk, "block", ref, "its values are all equal");
    }
    walk->summary->n_blocks++;
    return remember(walk, ref, 0, &nothing);
}

static enum vxd_status check_uniform(struct walk *walk, uint32_t ref)
{
    return vxd_svdag_uniform_value(ref) >> walk->view->value_bits == 0
               ? VXD_OK
               : broken(walk, "reference", ref, "a uniform reference has no valid value");
}

/* Checks the rules that the words of a leaf alone decide. */
static enum vxd_status check_leaf_words(struct walk *walk, uint32_t ref,
                                        const uint32_t *words)
{
    int bits = walk->view->value_bits;
    uint64_t mask = vxd_svdag_leaf_mask(words);
    int n = vxd_svdag_popc(mask);

    if (mask == 0) {
        return broken(walk, "leaf", ref, "no voxel is set");
    }
    if (bits == 1 && (((uint64_t)words[3] << 32 | words[2]) & ~mask) != 0) {
        return broken(walk, "leaf", ref, "a voxel is FREE and not set");
    }
    if (bits == 4 && !tail_is_zero(words + 2, n * bits)) {
        return broken(walk, "leaf", ref, "words after its values are not zero");
    }
    if (bits <= 4) {
        return VXD_OK;
    }
    return vxd_svdag_is_uniform(words[2]) ? check_uniform(walk, words[2])
                                          : check_block(walk, words[2], n);
}

static enum vxd_status check_leaf(struct walk *walk, uint32_t ref, struct content *out)
{
    const struct vxd_svdag_view *view = walk->view;
    struct vxd_svdag_leaf leaf;
    uint16_t values[64];
    uint32_t words[VXD_SVDAG_MAX_ITEM_WORDS] = {0};
    enum vxd_status status = item_words(walk, VXD_SVDAG_LEAF, ref, words);

    if (status == VXD_OK) {
        status = check_leaf_words(walk, ref, words);
    }
    if (status != VXD_OK) {
        return status;
    }
    vxd_svdag_leaf_read(view, ref, values, &leaf);
    if (leaf.set == UINT64_MAX && !leaf.is_mixed &&
        (leaf.free == 0 || leaf.free == leaf.set)) {
        return broken(walk, "leaf", ref, "its 64 voxels are equal");
    }
    out->n_free = (uint64_t)vxd_svdag_popc(leaf.free);
    out->n_occupied = (uint64_t)vxd_svdag_popc(leaf.set) - out->n_free;
    digest_leaf(view, &leaf, out->digest);
    walk->summary->n_nodes[VXD_SVDAG_LEAF_HEIGHT]++;
    return remember(walk, ref, VXD_SVDAG_LEAF_HEIGHT, out);
}

/* Checks the rules of an inner node that need only its children's references. */
static enum vxd_status check_inner_words(struct walk *walk, uint32_t ref,
                                         const uint32_t *words)
{
    int n = vxd_svdag_inner_words(words) - 1;
    bool equal = n == 8 && vxd_svdag_is_uniform(words[1]);

    if (n == 0) {
        return broken(walk, "inner node", ref, "no child is present");
    }
    for (int i = 1; i <= n; i++) {
        if (words[i] == VXD_SVDAG_EMPTY) {
            return broken(walk, "inner node", ref, "an empty child is present");
        }
        equal = equal && words[i] == words[1];
    }
    return equal ? broken(walk, "inner node", ref,
                          "its eight children are equal and uniform")
                 : VXD_OK;
}

/* Checks the header of a node whose children were visited, and computes its content. */
static enum vxd_status check_header(struct walk *walk, const struct frame *frame,
                                    int height, struct content *out)
{
    uint32_t expected = frame->words[0] & 0xffu;

    out->n_occupied = 0;
    out->n_free = 0;
    digest_begin(out->digest, DIGEST_INNER, height);
    for (int i = 0; i < 8; i++) {
        const struct content *child = &frame->children[i];

        out->n_occupied += child->n_occupied;
        out->n_free += child->n_free;
        digest_add(out->digest, child->digest[0]);
        digest_add(out->digest, child->digest[1]);
    }
    expected |= out->n_occupied != 0 ? VXD_SVDAG_HAS_OCCUPIED : 0;
    expected |= out->n_free != 0 ? VXD_SVDAG_HAS_FREE : 0;
    expected |= height <= VXD_SVDAG_COUNT_HEIGHT ? (uint32_t)out->n_occupied << 10 : 0;
    if (frame->words[0] != expected) {
        return broken(walk, "inner node", frame->ref,
                      "its header does not match its children");
    }
    walk->summary->n_nodes[height]++;
    return remember(walk, frame->ref, height, out);
}

/* --- the traversal ----------------------------------------------------------------- */

/* The content of a reference, where it is known without a descent. */
static enum vxd_status find_content(struct walk *walk, uint32_t ref, int height,
                                    bool *known, struct content *out)
{
    const struct entry *entry;

    *known = true;
    *out = (struct content){0};
    if (ref == VXD_SVDAG_EMPTY) {
        digest_begin(out->digest, DIGEST_EMPTY, height);
        return VXD_OK;
    }
    if (vxd_svdag_is_uniform(ref)) {
        bool is_free =
            vxd_svdag_uniform_state(walk->view, ref) == (unsigned)VXD_SVDAG_FREE;
        uint64_t n_voxels = (uint64_t)1 << (3 * height);

        digest_begin(out->digest, DIGEST_UNIFORM, height);
        digest_add(out->digest, is_free ? UINT64_MAX : vxd_svdag_uniform_value(ref));
        out->n_free = is_free ? n_voxels : 0;
        out->n_occupied = is_free ? 0 : n_voxels;
        return check_uniform(walk, ref);
    }
    entry = entry_find(walk, entry_key(ref, height));
    if (entry->key != 0) {
        *out = entry->content;
        return VXD_OK;
    }
    if (height == VXD_SVDAG_LEAF_HEIGHT) {
        return check_leaf(walk, ref, out);
    }
    *known = false;
    return VXD_OK;
}

/* Begins a node that was not visited yet. */
static enum vxd_status enter(struct walk *walk, uint32_t ref, int height)
{
    struct frame *frame = &walk->stack[height];
    enum vxd_status status = item_words(walk, VXD_SVDAG_INNER, ref, frame->words);

    frame->ref = ref;
    frame->octant = 0;
    return status == VXD_OK ? check_inner_words(walk, ref, frame->words) : status;
}

static enum vxd_status walk_root(struct walk *walk, uint32_t root, struct content *out)
{
    int depth = walk->view->depth;
    int height = depth;
    bool known;
    enum vxd_status status;

    VXD_TRY(find_content(walk, root, depth, &known, out));
    if (known) {
        goto out;
    }
    VXD_TRY(enter(walk, root, depth));
    for (;;) {
        struct frame *frame = &walk->stack[height];

        if (frame->octant < 8) {
            uint32_t child = vxd_svdag_child(frame->words, frame->octant);

            VXD_TRY(find_content(walk, child, height - 1, &known,
                                 &frame->children[frame->octant]));
            if (known) {
                frame->octant++;
            } else {
                height--;
                VXD_TRY(enter(walk, child, height));
            }
            continue;
        }
        VXD_TRY(check_header(walk, frame, height, out));
        if (height == depth) {
            break;
        }
        height++;
        walk->stack[height].children[walk->stack[height].octant++] = *out;
    }

out:
    return status;
}

enum vxd_status vxd_svdag_image_open(struct vxd_queue *queue,
                                     const struct vxd_svdag *svdag,
                                     struct vxd_svdag_image *out, struct vxd_err *err)
{
    *out = (struct vxd_svdag_image){.view = svdag->view};
    return VXD_ON_CUDA(queue->context) ? vxd_svdag_device_copy(queue, svdag, out, err)
                                       : VXD_OK;
}

enum vxd_status vxd_svdag_verify(struct vxd_queue *queue, const struct vxd_svdag *svdag,
                                 uint32_t root, struct vxd_svdag_summary *out,
                                 struct vxd_err *err)
{
    struct vxd_svdag_image image;
    struct walk walk = {
        .svdag = svdag, .view = &image.view, .image = &image, .summary = out, .err = err};
    struct content content;
    enum vxd_status status;

    *out = (struct vxd_svdag_summary){0};
    VXD_TRY(vxd_svdag_image_open(queue, svdag, &image, err));
    VXD_TRY(grow(&walk, FIRST_ENTRIES));
    VXD_TRY(walk_root(&walk, root, &content));
    out->n_occupied = content.n_occupied;
    out->n_free = content.n_free;
    memcpy(out->digest, content.digest, sizeof out->digest);

out:
    vxd_host_free(svdag->context, &walk.memory);
    vxd_host_free(svdag->context, &image.memory);
    return status;
}
