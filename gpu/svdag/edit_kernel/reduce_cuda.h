// SPDX-License-Identifier: Apache-2.0
/* The way up: an open cube becomes a node, made of what its children became.
 *
 * - The subtrees of a block, and all cubes of a ball: a lane a cube, from entries in
 *   shared memory.
 * - Other heights with many entries: four cubes a warp, a lane for each child.
 * - The last heights, with few entries each, by the first block alone: eight lanes an
 *   entry. What a height became stays in shared memory for the next one; entries are
 *   loaded one height ahead. A node above one that the store did not have cannot be in
 *   the store: it takes an address and the next height goes on; these enter the index all
 *   at once after the root. A node that may be in the store is looked up, and enters the
 *   index before the height above looks for an equal one.
 *
 * Headers come from entries, so the words of children are never read. Bytes: an entry is
 * read once; up to 36 bytes are written for a new node; a lookup reads a bucket of 32
 * bytes and the words of candidates. Source: SVDAG editing, section 4.3. */
#ifndef VXD_GPU_SVDAG_EDIT_KERNEL_REDUCE_CUDA_H
#define VXD_GPU_SVDAG_EDIT_KERNEL_REDUCE_CUDA_H

#include "gpu/svdag/edit_kernel/changes_cuda.h"
#include "gpu/svdag/edit_kernel/dedup_cuda.h"

/* A lane a cube --------------------------------------------------------------------------- */

/* What a parent takes from a child that has an entry, or a slot of the leaf memo. */
struct vxd_svdag_reduced_child {
    uint32_t ref;
    uint32_t header;
    bool is_changed;
};

/* The child that a word of an entry names. The counts of a slot are added to counts: two
 * words of two counts each, of 16 bits. */
template <class Editor>
VXD_SVDAG_DEVICE struct vxd_svdag_reduced_child
vxd_svdag_reduced_child_at(const struct vxd_svdag_kernel_args *args,
                           struct vxd_svdag_block_memory<Editor> *block,
                           const struct vxd_svdag_phase *phase, uint32_t word,
                           uint32_t counts[2])
{
    const struct vxd_svdag_entry<typename Editor::state> *child;

    if constexpr (Editor::CLASSIFIES_ALL) {
        if (phase->is_local) {
            const struct vxd_svdag_leaf_memo *memo = &block->leaf_memo;
            const uint32_t ref = memo->refs[word];

            counts[0] += memo->counts[word] & 0x00ff00ffu;
            counts[1] += memo->counts[word] >> 8 & 0x00ff00ffu;
            return {ref, memo->headers[word], ref != vxd_svdag_leaf_memo_old(memo, word)};
        }
    }
    child = vxd_svdag_entry_at(args, block, phase, word);
    return {child->ref, child->words[0], (child->marks & VXD_SVDAG_MARK_CHANGED) != 0};
}

/* Makes the node of entry i of a phase, whose children are reduced, in the block's own
 * entry of that number. Where no node is needed *n_words is 0, and the entry has what it
 * became. Adds what changed in leaves that have slots to *sum. The loads of the eight
 * children are independent. */
template <class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_reduce_entry(const struct vxd_svdag_kernel_args *args,
                                             struct vxd_svdag_block_memory<Editor> *block,
                                             const struct vxd_svdag_phase *phase,
                                             uint32_t i, int *n_words,
                                             struct vxd_svdag_change *sum)
{
    struct vxd_svdag_entry<typename Editor::state> *entry =
        vxd_svdag_entry_at(args, block, phase, phase->begin + i);
    struct vxd_svdag_entry<typename Editor::state> *to =
        vxd_svdag_block_entry(block, phase, i);
    const uint32_t marks = entry->marks;
    struct vxd_svdag_reduced_child children[8];
    uint32_t counts[2] = {0, 0};
    uint32_t header = entry->words[0] & ~0xffu;
    uint32_t mask = 0;
    uint32_t differ = 0;
    bool is_changed = (marks & VXD_SVDAG_MARK_CHANGED) != 0;
    int n = 1;

#pragma unroll
    for (int octant = 0; octant < 8; octant++) {
        children[octant] = {entry->words[1 + octant], 0, false};
    }
#pragma unroll
    for (int octant = 0; octant < 8; octant++) {
        if ((marks >> octant & 1) != 0) {
            children[octant] = vxd_svdag_reduced_child_at(args, block, phase,
                                                          children[octant].ref, counts);
        }
    }
#pragma unroll
    for (int octant = 0; octant < 8; octant++) {
        const struct vxd_svdag_reduced_child *child = &children[octant];

        header = vxd_svdag_merge_headers(header, child->header);
        is_changed = is_changed || child->is_changed;
        differ |= child->ref ^ children[0].ref;
        mask |= (child->ref != VXD_SVDAG_EMPTY ? 1u : 0u) << octant;
        if (child->ref != VXD_SVDAG_EMPTY) {
            to->words[n++] = child->ref;
        }
    }
    header = vxd_svdag_header_at(header, phase->height) | mask;
    *n_words = 0;
    to->words[0] = header;
    entry->words[0] = header;
    entry->marks = is_changed ? VXD_SVDAG_MARK_CHANGED : 0;
    if (is_changed && differ == 0 && !vxd_svdag_is_node(children[0].ref)) {
        entry->ref = children[0].ref;
    } else if (is_changed) {
        *n_words = n;
    }
    sum->n_added += counts[0] & 0xffffu;
    sum->n_removed += counts[1] & 0xffffu;
    sum->n_changed += counts[0] >> 16;
    sum->n_freed += counts[1] >> 16;
}

/* A lane a child -------------------------------------------------------------------------- */

/* What the child of an entry became. */
template <class Editor>
VXD_SVDAG_DEVICE struct vxd_svdag_reduced_child vxd_svdag_compose_child(
    const struct vxd_svdag_kernel_args *args,
    struct vxd_svdag_block_memory<Editor> *block, const struct vxd_svdag_phase *phase,
    const struct vxd_svdag_entry<typename Editor::state> *entry, uint32_t octant)
{
    const uint32_t marks = entry->marks;
    struct vxd_svdag_reduced_child child = {entry->words[1 + octant], 0,
                                            (marks & VXD_SVDAG_MARK_CHANGED) != 0};

    if ((marks >> octant & 1) != 0) {
        const struct vxd_svdag_entry<typename Editor::state> *from =
            vxd_svdag_entry_at(args, block, phase, child.ref);

        child.ref = from->ref;
        child.header = from->words[0];
        child.is_changed =
            child.is_changed || (from->marks & VXD_SVDAG_MARK_CHANGED) != 0;
    }
    return child;
}

/* By all lanes of a warp: makes the nodes of up to four entries from `first` on, whose
 * children are reduced, in the block's own entries. Where no node is needed the entry has
 * what it became. */
template <class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_compose(const struct vxd_svdag_kernel_args *args,
                                        struct vxd_svdag_block_memory<Editor> *block,
                                        const struct vxd_svdag_phase *phase,
                                        uint32_t first)
{
    const uint32_t octant = vxd_svdag_lane() % 8;
    const uint32_t i = first + vxd_svdag_lane() / 8;
    const bool is_there = i < phase->n;
    struct vxd_svdag_entry<typename Editor::state> *entry =
        vxd_svdag_entry_at(args, block, phase, phase->begin + (is_there ? i : 0));
    struct vxd_svdag_entry<typename Editor::state> *to =
        vxd_svdag_block_entry(block, phase, is_there ? i : 0);
    struct vxd_svdag_reduced_child child = {VXD_SVDAG_EMPTY, 0, false};
    uint32_t n_occupied;
    uint32_t even;
    uint32_t mask;
    uint32_t flags;
    uint32_t changed;
    uint32_t differ;
    uint32_t header;

    if (is_there) {
        child = vxd_svdag_compose_child(args, block, phase, entry, octant);
    }
    n_occupied = child.header >> 10;
    /* The lane of the first child also has what the entry itself holds. */
    if (is_there && octant == 0) {
        n_occupied += entry->words[0] >> 10;
        child.header |= entry->words[0];
    }
#pragma unroll 1
    for (int step = 1; step < 8; step *= 2) {
        n_occupied += __shfl_xor_sync(UINT32_MAX, n_occupied, step);
    }
    even = vxd_svdag_8lanes_get(child.ref, 0);
    mask = vxd_svdag_8lanes_ballot(child.ref != VXD_SVDAG_EMPTY);
    differ = vxd_svdag_8lanes_ballot(child.ref != even);
    changed = vxd_svdag_8lanes_ballot(child.is_changed);
    flags = (vxd_svdag_8lanes_ballot((child.header & VXD_SVDAG_HAS_OCCUPIED) != 0) != 0
                 ? VXD_SVDAG_HAS_OCCUPIED
                 : 0) |
            (vxd_svdag_8lanes_ballot((child.header & VXD_SVDAG_HAS_FREE) != 0) != 0
                 ? VXD_SVDAG_HAS_FREE
                 : 0);
    header =
        mask | flags | (phase->height <= VXD_SVDAG_COUNT_HEIGHT ? n_occupied << 10 : 0);
    /* Now that all lanes have read, some may write. */
    __syncwarp();
    if (is_there && child.ref != VXD_SVDAG_EMPTY) {
        to->words[1 + __popc(mask & ((1u << octant) - 1))] = child.ref;
    }
    if (is_there && octant == 0) {
        const bool is_even = differ == 0 && !vxd_svdag_is_node(even);

        entry->words[0] = header;
        entry->marks = changed != 0 ? VXD_SVDAG_MARK_CHANGED : 0;
        if (changed != 0 && is_even) {
            entry->ref = even;
        }
        to->words[0] = header;
        to->marks = changed == 0 ? 0
                    : is_even    ? VXD_SVDAG_MARK_CHANGED
                                 : VXD_SVDAG_MARK_CHANGED | VXD_SVDAG_MARK_NODE;
    }
    __syncwarp();
}

/* Eight lanes an entry: nodes --------------------------------------------------------------- */

/* An entry, as eight lanes have it. */
struct vxd_svdag_reduce_top_entry {
    uint32_t word; /* of the lane's child */
    uint32_t header;
    uint32_t marks;
    uint32_t ref;
};

/* What it becomes; the same to all eight lanes. */
struct vxd_svdag_reduce_top_node {
    uint32_t ref; /* where it needs no node */
    uint32_t header;
    int n_words;     /* of a node that is to be found or inserted; else 0 */
    bool is_changed; /* something in the cube is not what it was */
    bool is_new;     /* the store cannot have it: a child of it is new */
};

/* The entries of a height. */
struct vxd_svdag_reduce_top_level {
    int height;
    uint32_t begin;
    uint32_t n;
};

/* Which entry of a height this thread has. */
VXD_SVDAG_DEVICE uint32_t vxd_svdag_reduce_top_number(void)
{
    return threadIdx.x / 8;
}

template <class Editor>
VXD_SVDAG_DEVICE struct vxd_svdag_reduce_top_entry
vxd_svdag_reduce_top_load(const struct vxd_svdag_kernel_args *args,
                          const struct vxd_svdag_reduce_top_level *level)
{
    typedef struct vxd_svdag_entry<typename Editor::state> entry_t;
    const entry_t *entry =
        (const entry_t *)args->entries + level->begin + vxd_svdag_reduce_top_number();

    if (vxd_svdag_reduce_top_number() >= level->n) {
        return {VXD_SVDAG_EMPTY, 0, 0, VXD_SVDAG_EMPTY};
    }
    return {entry->words[1 + vxd_svdag_8lanes_lane()], entry->words[0], entry->marks,
            entry->ref};
}

/* What the lane's child became. The height below is in shared memory, except for the
 * first height (is_first). */
template <class Editor>
VXD_SVDAG_DEVICE struct vxd_svdag_reduce_top_entry
vxd_svdag_reduce_top_child(const struct vxd_svdag_kernel_args *args,
                           const struct vxd_svdag_reduce_top_memory *top,
                           const struct vxd_svdag_reduce_top_level *level,
                           const struct vxd_svdag_reduce_top_entry *entry, bool is_first)
{
    typedef struct vxd_svdag_entry<typename Editor::state> entry_t;
    const bool is_entry = (entry->marks >> vxd_svdag_8lanes_lane() & 1) != 0;

    if (is_entry && is_first) {
        const entry_t *child = (const entry_t *)args->entries + entry->word;

        return {0, child->words[0], child->marks, child->ref};
    }
    if (is_entry) {
        const uint32_t i = entry->word - (level->begin + level->n);

        return {0, top->headers[i], top->marks[i], top->refs[i]};
    }
    return {0, 0, 0, entry->word};
}

/* By all lanes of a warp: what an entry becomes, as far as its children decide it. The
 * words of a node go to shared memory. */
VXD_SVDAG_DEVICE struct vxd_svdag_reduce_top_node
vxd_svdag_reduce_top_compose(struct vxd_svdag_reduce_top_memory *top, int height,
                             const struct vxd_svdag_reduce_top_entry *entry,
                             const struct vxd_svdag_reduce_top_entry *child)
{
    const uint32_t lane = vxd_svdag_8lanes_lane();
    const uint32_t even = vxd_svdag_8lanes_get(child->ref, 0);
    const uint32_t mask = vxd_svdag_8lanes_ballot(child->ref != VXD_SVDAG_EMPTY);
    const bool is_even =
        vxd_svdag_8lanes_ballot(child->ref != even) == 0 && !vxd_svdag_is_node(even);
    const bool is_changed = vxd_svdag_8lanes_ballot(((child->marks | entry->marks) &
                                                     VXD_SVDAG_MARK_CHANGED) != 0) != 0;
    const bool is_new =
        vxd_svdag_8lanes_ballot((child->marks & VXD_SVDAG_MARK_NEW) != 0) != 0;
    uint32_t header =
        vxd_svdag_merge_headers(lane == 0 ? entry->header : 0, child->header);
    struct vxd_svdag_reduce_top_node node;

#pragma unroll
    for (int step = 1; step < 8; step *= 2) {
        header =
            vxd_svdag_merge_headers(header, __shfl_xor_sync(UINT32_MAX, header, step));
    }
    node.header = vxd_svdag_header_at(header, height) | mask;
    node.ref = is_changed ? even : entry->ref;
    node.n_words = is_changed && !is_even ? 1 + __popc(mask) : 0;
    node.is_changed = is_changed;
    node.is_new = node.n_words > 0 && is_new;
    if (node.n_words > 0) {
        uint32_t *words = top->words[vxd_svdag_reduce_top_number()];

        if (child->ref != VXD_SVDAG_EMPTY) {
            words[1 + __popc(mask & ((1u << lane) - 1))] = child->ref;
        }
        if (lane == 0) {
            words[0] = node.header;
        }
    }
    __syncwarp();
    return node;
}

/* By all lanes of warps, when the nodes of their height are all in shared memory: the
 * first of the entries before this one that has to be inserted too and has an equal node;
 * else this one. */
VXD_SVDAG_DEVICE uint32_t
vxd_svdag_reduce_top_duplicate(const struct vxd_svdag_reduce_top_memory *top,
                               const struct vxd_svdag_8lanes_key *at, bool inserts)
{
    const uint32_t i = vxd_svdag_reduce_top_number();
    uint32_t first = i;

#pragma unroll 1
    for (uint32_t begin = 0; begin < VXD_SVDAG_FEW_ENTRIES; begin += 8) {
        const uint32_t other = begin + vxd_svdag_8lanes_lane();
        const bool is_equal =
            inserts && other < i && top->n_words[other] == (uint32_t)at->n_words &&
            top->hashes[other] == at->hash &&
            vxd_svdag_words_equal(top->words[other], at->words, at->n_words);
        const uint32_t duplicates = vxd_svdag_8lanes_ballot(is_equal);

        if (duplicates != 0 && first == i) {
            first = begin + (uint32_t)__ffs((int)duplicates) - 1;
        }
    }
    return first;
}

/* What the first block takes of the store, in one word: words, at most ten for each
 * entry, and from this bit on items. */
#define VXD_SVDAG_REDUCE_TOP_ITEMS 20

VXD_SVDAG_DEVICE uint32_t vxd_svdag_reduce_top_words(uint32_t taken)
{
    return taken & ((1u << VXD_SVDAG_REDUCE_TOP_ITEMS) - 1);
}

/* By all lanes of a warp: takes words, which lie in one chunk from *first on, and items.
 * False: the store has no capacity, and a fault is set. */
VXD_SVDAG_DEVICE bool vxd_svdag_reduce_top_take(const struct vxd_svdag_kernel_args *args,
                                                struct vxd_svdag_reduce_top_memory *top,
                                                uint32_t n_words, uint32_t n_items,
                                                uint32_t *first)
{
    uint32_t taken;
    uint32_t fault;
    uint64_t begin;

    do {
        taken = 0;
        if (vxd_svdag_lane() == 0) {
            taken = atomicAdd(&top->n_taken,
                              n_words + (n_items << VXD_SVDAG_REDUCE_TOP_ITEMS));
        }
        taken = __shfl_sync(UINT32_MAX, taken, 0);
        begin = top->next + vxd_svdag_reduce_top_words(taken);
    } while (begin >> VXD_SVDAG_CHUNK_BITS !=
             (begin + n_words - 1) >> VXD_SVDAG_CHUNK_BITS);
    fault = (taken >> VXD_SVDAG_REDUCE_TOP_ITEMS) + n_items > top->n_items_left
                ? VXD_SVDAG_NO_SLOTS
                : 0;
    fault |= begin + n_words > args->capacity_words ? VXD_SVDAG_NO_WORDS : 0;
    if (fault != 0) {
        vxd_svdag_set_fault(args, fault);
    }
    *first = (uint32_t)begin;
    return fault == 0;
}

/* By all lanes of a warp: addresses for the nodes that are to be inserted (takes), and
 * their words there. False: the store has no capacity. */
VXD_SVDAG_DEVICE bool vxd_svdag_reduce_top_place(const struct vxd_svdag_kernel_args *args,
                                                 struct vxd_svdag_reduce_top_memory *top,
                                                 const struct vxd_svdag_8lanes_key *at,
                                                 bool takes, uint32_t *ref)
{
    const uint32_t own = takes ? (uint32_t)at->n_words : 0;
    const uint32_t number = threadIdx.x % 32 / 8;
    uint32_t n_words = 0; /* of the warp, */
    uint32_t before = 0;  /* and of entries before this one */
    uint32_t n_items = 0;
    uint32_t first;

#pragma unroll
    for (uint32_t k = 0; k < 4; k++) {
        const uint32_t other = __shfl_sync(UINT32_MAX, own, (int)k * 8);

        before += k < number ? other : 0;
        n_words += other;
        n_items += other > 0;
    }
    if (n_words == 0) {
        return true;
    }
    if (!vxd_svdag_reduce_top_take(args, top, n_words, n_items, &first)) {
        return false;
    }
    if (takes) {
        uint32_t *to;

        *ref = first + before;
        to = vxd_svdag_words_to(args, *ref);
        for (uint32_t i = vxd_svdag_8lanes_lane(); i < own; i += 8) {
            to[i] = at->words[i];
        }
    }
    __syncwarp();
    return true;
}

/* Eight lanes an entry: heights ------------------------------------------------------------- */

/* By all lanes of a warp, after a barrier: the node of an entry that has an address,
 * *ref, but is not in the index. */
template <class Editor>
VXD_SVDAG_DEVICE void
vxd_svdag_reduce_top_stored(const struct vxd_svdag_kernel_args *args,
                            struct vxd_svdag_reduce_top_memory *top, uint32_t entry,
                            bool is_there, struct vxd_svdag_8lanes_key *at, uint32_t *ref)
{
    typedef struct vxd_svdag_entry<typename Editor::state> entry_t;
    const entry_t *from = (const entry_t *)args->entries + (is_there ? entry : 0);
    const bool is_stored = is_there && (from->marks & VXD_SVDAG_MARK_STORED) != 0;
    uint32_t *words = top->words[vxd_svdag_reduce_top_number()];
    int n_words = 0;

    *ref = is_stored ? from->ref : (uint32_t)VXD_SVDAG_EMPTY;
    if (is_stored) {
        const uint32_t *stored = vxd_svdag_words_to(args, *ref);

        n_words = 1 + __popc(__ldcg(stored) & 0xffu);
        for (int i = (int)vxd_svdag_8lanes_lane(); i < n_words; i += 8) {
            words[i] = __ldcg(&stored[i]);
        }
    }
    __syncwarp();
    *at = vxd_svdag_8lanes_key_of(words, n_words, is_stored, is_stored);
}

/* By all lanes of a warp, after a lookup of that node: enters it into the index. False:
 * not yet. */
template <class Editor>
VXD_SVDAG_DEVICE bool vxd_svdag_reduce_top_enter(const struct vxd_svdag_kernel_args *args,
                                                 uint32_t entry,
                                                 const struct vxd_svdag_8lanes_key *at,
                                                 uint32_t ref, bool *has_capacity)
{
    typedef struct vxd_svdag_entry<typename Editor::state> entry_t;
    const bool enters = ref != VXD_SVDAG_EMPTY;
    const bool is_done = vxd_svdag_8lanes_enter(args, at, ref, enters, has_capacity);

    if (enters && is_done && vxd_svdag_8lanes_lane() == 0) {
        ((entry_t *)args->entries)[entry].marks &= ~VXD_SVDAG_MARK_STORED;
    }
    return is_done;
}

/* By all that reduce the top, the block or its first warp alone: whether one of them has
 * this. A barrier. */
VXD_SVDAG_DEVICE bool vxd_svdag_reduce_top_any(bool is_block, bool has)
{
    bool any;

    if (is_block) {
        return __syncthreads_or(has) != 0;
    }
    any = __any_sync(UINT32_MAX, has);
    __syncwarp();
    return any;
}

/* By the lanes of an entry: counts its node, of so many words (0: it needs none), which
 * may be new. */
VXD_SVDAG_DEVICE void vxd_svdag_reduce_top_count(struct vxd_svdag_block_counts *counts,
                                                 struct vxd_svdag_reduce_top_memory *top,
                                                 int height, int n_words, bool is_new)
{
    if (n_words > 0 && vxd_svdag_8lanes_lane() == 0) {
        (void)atomicAdd(&counts->n_lookups[height], 1u);
    }
    if (is_new && vxd_svdag_8lanes_lane() == 0) {
        (void)atomicAdd(&counts->n_new[height], 1u);
        (void)atomicAdd(&top->n_new_words, (uint32_t)n_words);
    }
}

/* By all that reduce the top, a barrier before and behind: hands what an entry became to
 * the height above and to the frontier. */
template <class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_reduce_top_put(
    const struct vxd_svdag_kernel_args *args, struct vxd_svdag_reduce_top_memory *top,
    const struct vxd_svdag_reduce_top_level *level,
    const struct vxd_svdag_reduce_top_node *node, uint32_t ref, uint32_t marks)
{
    typedef struct vxd_svdag_entry<typename Editor::state> entry_t;
    const uint32_t i = vxd_svdag_reduce_top_number();
    entry_t *entry = (entry_t *)args->entries + level->begin + i;

    if (i < level->n && vxd_svdag_8lanes_lane() == 0) {
        top->refs[i] = ref;
        top->headers[i] = node->header;
        top->marks[i] = marks & ~VXD_SVDAG_MARK_STORED;
        entry->ref = ref;
        entry->marks = marks;
    }
}

/* By all that reduce the top: what the entries of a height become as far as their
 * children decide it, and which nodes have to be looked up. */
template <class Editor>
VXD_SVDAG_DEVICE struct vxd_svdag_reduce_top_node
vxd_svdag_reduce_top_begin_lookup(const struct vxd_svdag_kernel_args *args,
                                  struct vxd_svdag_reduce_top_memory *top,
                                  const struct vxd_svdag_reduce_top_level *level,
                                  const struct vxd_svdag_reduce_top_entry *entry,
                                  bool is_first, struct vxd_svdag_8lanes_key *at)
{
    const struct vxd_svdag_reduce_top_entry child =
        vxd_svdag_reduce_top_child<Editor>(args, top, level, entry, is_first);
    const struct vxd_svdag_reduce_top_node node =
        vxd_svdag_reduce_top_compose(top, level->height, entry, &child);
    const bool is_one = level->n <= 1;

    *at = vxd_svdag_8lanes_key_of(top->words[vxd_svdag_reduce_top_number()], node.n_words,
                                  node.n_words > 0 && (!node.is_new || !is_one),
                                  node.n_words > 0 && !node.is_new);
    return node;
}

/* By all that reduce the top, after the lookup: what the entries of a height become.
 * *is_missing: one of the nodes has to enter the index now. False: the store has no
 * capacity. */
template <class Editor>
VXD_SVDAG_DEVICE bool vxd_svdag_reduce_top_finish_level(
    const struct vxd_svdag_kernel_args *args, struct vxd_svdag_block_counts *counts,
    struct vxd_svdag_reduce_top_memory *top,
    const struct vxd_svdag_reduce_top_level *level,
    const struct vxd_svdag_reduce_top_node *node, const struct vxd_svdag_8lanes_key *at,
    bool is_block, bool *is_missing)
{
    const uint32_t i = vxd_svdag_reduce_top_number();
    const bool is_one = level->n <= 1;
    const bool inserts = node->n_words > 0 && at->ref == VXD_SVDAG_EMPTY;
    uint32_t ref = at->ref != VXD_SVDAG_EMPTY ? at->ref : node->ref;
    uint32_t duplicate = i;
    uint32_t marks;
    bool has_capacity;

    if (!is_one) {
        if (vxd_svdag_8lanes_lane() == 0) {
            top->hashes[i] = at->hash;
            top->n_words[i] = inserts ? (uint32_t)node->n_words : 0;
        }
        (void)vxd_svdag_reduce_top_any(is_block, false);
        duplicate = vxd_svdag_reduce_top_duplicate(top, at, inserts);
    }
    has_capacity =
        vxd_svdag_reduce_top_place(args, top, at, inserts && duplicate == i, &ref);
    marks = (node->is_changed ? VXD_SVDAG_MARK_CHANGED : 0) |
            (inserts ? VXD_SVDAG_MARK_NEW : 0) |
            (inserts && duplicate == i ? VXD_SVDAG_MARK_STORED : 0);
    vxd_svdag_reduce_top_put<Editor>(args, top, level, node, ref, marks);
    vxd_svdag_reduce_top_count(counts, top, level->height, node->n_words,
                               inserts && duplicate == i);
    if (vxd_svdag_reduce_top_any(is_block, !has_capacity)) {
        return false;
    }
    if (!is_one) {
        if (duplicate != i) {
            vxd_svdag_reduce_top_put<Editor>(args, top, level, node, top->refs[duplicate],
                                             marks);
        }
        (void)vxd_svdag_reduce_top_any(is_block, false);
    }
    *is_missing = vxd_svdag_reduce_top_any(is_block, inserts && !node->is_new);
    return true;
}

/* By one thread: what the store has capacity for. */
VXD_SVDAG_DEVICE void vxd_svdag_reduce_top_begin(const struct vxd_svdag_kernel_args *args,
                                                 struct vxd_svdag_reduce_top_memory *top)
{
    const uint64_t taken = vxd_svdag_load_volatile64(&args->state->n_taken);
    const uint64_t n_slots = (uint64_t)args->index.n_buckets * VXD_SVDAG_INDEX_SLOTS;
    const uint64_t n_most = vxd_svdag_index_most(n_slots);
    const uint64_t n_items = args->state->n_items + vxd_svdag_taken_items(taken);

    top->next = args->store->next + vxd_svdag_taken_words(taken);
    top->n_items_left = n_items < n_most ? n_most - n_items : 0;
    top->n_taken = 0;
    top->n_new_words = 0;
    top->has_failed = 0;
}

/* By one thread: what was taken. */
VXD_SVDAG_DEVICE void
vxd_svdag_reduce_top_end(const struct vxd_svdag_kernel_args *args,
                         struct vxd_svdag_block_counts *counts,
                         const struct vxd_svdag_reduce_top_memory *top, uint32_t n_all)
{
    args->state->n_taken +=
        vxd_svdag_reduce_top_words(top->n_taken) +
        ((uint64_t)(top->n_taken >> VXD_SVDAG_REDUCE_TOP_ITEMS) << VXD_SVDAG_TAKEN_ITEMS);
    counts->n_new_words += top->n_new_words;
    args->state->n_reduced += n_all;
}

/* What a turn does: it looks up the nodes of a height, or enters nodes into the index. */
struct vxd_svdag_reduce_top_turn {
    bool is_block; /* else the first warp is alone */
    bool enters;
    uint32_t entry; /* the first one that enters, */
    uint32_t end;   /* and the one behind the last */
};

/* Plans the next turn. Nodes that are missing enter the index before the height above is
 * looked up, and all others after the root. False: there is no further turn. */
VXD_SVDAG_DEVICE bool
vxd_svdag_reduce_top_next_turn(const struct vxd_svdag_reduce_top_level *level,
                               uint32_t n_all, bool is_root, bool is_missing,
                               bool is_done, struct vxd_svdag_reduce_top_turn *turn)
{
    if (turn->enters) {
        turn->entry += is_done ? VXD_SVDAG_FEW_ENTRIES : 0;
        turn->enters = turn->entry < turn->end;
        return turn->enters || !is_root;
    }
    turn->enters = is_root || is_missing;
    turn->entry = is_root ? 0 : level->begin;
    turn->end = is_root ? n_all : level->begin + level->n;
    return true;
}

/* By all lanes of a warp: the height above. */
VXD_SVDAG_DEVICE struct vxd_svdag_reduce_top_level
vxd_svdag_reduce_top_above(const struct vxd_svdag_reduce_top_level *level,
                           const struct vxd_svdag_stage *stage)
{
    const uint32_t n = __shfl_sync(UINT32_MAX, stage->n_cubes_at, level->height + 1);

    return {level->height + 1, level->begin - n, n};
}

/* By all that reduce the top: one turn. False: the store has no capacity. */
template <class Store, class Editor>
VXD_SVDAG_DEVICE bool vxd_svdag_reduce_top_take_turn(
    struct vxd_svdag_worker<Store, Editor> *worker, const struct vxd_svdag_stage *stage,
    const struct vxd_svdag_reduce_top_turn *turn,
    struct vxd_svdag_reduce_top_level *level, struct vxd_svdag_reduce_top_entry *entry,
    bool *is_missing, bool *is_done)
{
    const struct vxd_svdag_kernel_args *args = worker->args;
    struct vxd_svdag_reduce_top_memory *top = &worker->block->reduce_top;
    const uint32_t entering = turn->entry + vxd_svdag_reduce_top_number();
    struct vxd_svdag_reduce_top_node node = {VXD_SVDAG_EMPTY, 0, 0, false, false};
    struct vxd_svdag_8lanes_key at;
    uint32_t ref = VXD_SVDAG_EMPTY;
    bool has_capacity = true;

    if (turn->enters) {
        vxd_svdag_reduce_top_stored<Editor>(args, top, entering, entering < turn->end,
                                            &at, &ref);
    } else {
        struct vxd_svdag_reduce_top_level above;

        *level = vxd_svdag_reduce_top_above(level, stage);
        above = vxd_svdag_reduce_top_above(level, stage);
        node = vxd_svdag_reduce_top_begin_lookup<Editor>(
            args, top, level, entry, level->height == stage->height, &at);
        *entry = vxd_svdag_reduce_top_load<Editor>(args, &above);
    }
    vxd_svdag_8lanes_search(args, &at);
    *is_missing = false;
    *is_done = true;
    if (!turn->enters) {
        return vxd_svdag_reduce_top_finish_level<Editor>(
            args, worker->counts, top, level, &node, &at, turn->is_block, is_missing);
    }
    *is_done = !vxd_svdag_reduce_top_any(
        turn->is_block,
        !vxd_svdag_reduce_top_enter<Editor>(args, entering, &at, ref, &has_capacity));
    return !vxd_svdag_reduce_top_any(turn->is_block, !has_capacity);
}

/* By all lanes of a warp: whether each of the first n_entries entries has one child that
 * is an entry. */
template <class Editor>
VXD_SVDAG_DEVICE bool
vxd_svdag_reduce_top_is_chain(const struct vxd_svdag_kernel_args *args, uint32_t n_all)
{
    typedef struct vxd_svdag_entry<typename Editor::state> entry_t;
    const entry_t *entry = (const entry_t *)args->entries + vxd_svdag_lane();

    return __all_sync(UINT32_MAX, vxd_svdag_lane() >= n_all ||
                                      __popc(entry->marks & VXD_SVDAG_MARK_ENTRIES) == 1);
}

/* By the first warp alone: reduces all heights above one whose only entry has a new node,
 * where each height has one entry with one child that is an entry. All their nodes are
 * new then. A lane takes an entry; what one holds all above it hold too. False: the store
 * has no capacity. */
template <class Editor>
VXD_SVDAG_DEVICE bool vxd_svdag_reduce_top_chain(const struct vxd_svdag_kernel_args *args,
                                                 struct vxd_svdag_block_counts *counts,
                                                 struct vxd_svdag_reduce_top_memory *top,
                                                 uint32_t n_all)
{
    typedef struct vxd_svdag_entry<typename Editor::state> entry_t;
    const uint32_t lane = vxd_svdag_lane();
    const bool is_there = lane < n_all;
    entry_t *entry = (entry_t *)args->entries + (is_there ? lane : 0);
    const uint32_t marks = entry->marks & VXD_SVDAG_MARK_ENTRIES;
    const int height = args->view.depth - (int)lane;
    uint32_t header = is_there ? entry->words[0] : lane == n_all ? top->headers[0] : 0;
    uint32_t words[8];
    uint32_t mask = 0;
    uint32_t before;
    uint32_t total;
    uint32_t first;
    uint32_t child;

#pragma unroll
    for (int i = 0; i < 8; i++) {
        words[i] = entry->words[1 + i];
        mask |= words[i] != VXD_SVDAG_EMPTY ? 1u << i : 0;
    }
    before = vxd_svdag_sum_before(is_there ? 1 + (uint32_t)__popc(mask) : 0, &total);
    if (!vxd_svdag_reduce_top_take(args, top, total, n_all, &first)) {
        return false;
    }
#pragma unroll 1
    for (int step = 1; step < 32; step *= 2) {
        const uint32_t lower = __shfl_down_sync(UINT32_MAX, header, step);

        header = lane + (uint32_t)step < 32 ? vxd_svdag_merge_headers(header, lower)
                                            : header & ~0xffu;
    }
    child = __shfl_down_sync(UINT32_MAX, first + before, 1);
    child = lane + 1 == n_all ? top->refs[0] : child;
    if (is_there) {
        uint32_t *to = vxd_svdag_words_to(args, first + before);

        *to++ = vxd_svdag_header_at(header, height) | mask;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            if (words[i] != VXD_SVDAG_EMPTY) {
                *to++ = (marks >> i & 1) != 0 ? child : words[i];
            }
        }
        entry->ref = first + before;
        entry->marks =
            VXD_SVDAG_MARK_CHANGED | VXD_SVDAG_MARK_NEW | VXD_SVDAG_MARK_STORED;
        counts->n_lookups[height]++;
        counts->n_new[height]++;
    }
    if (lane == 0) {
        top->n_new_words += total;
    }
    __syncwarp();
    return true;
}

/* By all threads of the first block, alone: reduces what is left, from the height of the
 * stage up to the root. From where all heights have up to four entries the first warp
 * goes on alone; the others help again when nodes enter the index at the end. */
template <class Store, class Editor>
VXD_SVDAG_DEVICE void vxd_svdag_reduce_top(struct vxd_svdag_worker<Store, Editor> *worker,
                                           const struct vxd_svdag_stage *stage)
{
    const struct vxd_svdag_kernel_args *args = worker->args;
    struct vxd_svdag_reduce_top_memory *top = &worker->block->reduce_top;
    const uint32_t n_all = stage->entries + stage->n_entries;
    const uint32_t many = __ballot_sync(UINT32_MAX, stage->n_cubes_at > 4);
    const uint32_t several = __ballot_sync(UINT32_MAX, stage->n_cubes_at > 1);
    struct vxd_svdag_reduce_top_level level = {stage->height - 1, n_all, 0};
    struct vxd_svdag_reduce_top_level first = {stage->height, stage->entries,
                                               stage->n_entries};
    struct vxd_svdag_reduce_top_turn turn = {true, false, 0, 0};
    struct vxd_svdag_reduce_top_entry entry;
    bool goes_on = true;

    if (threadIdx.x == 0) {
        vxd_svdag_reduce_top_begin(args, top);
    }
    __syncthreads();
    if (worker->block->batches.is_bad != 0) {
        return; /* entries may be missing */
    }
    entry = vxd_svdag_reduce_top_load<Editor>(args, &first);
#pragma unroll 1
    while (goes_on) {
        bool is_missing = false;
        bool is_done = true;
        bool has_capacity;

        if (!turn.enters) {
            turn.is_block = many >> (level.height + 1) != 0;
        }
        if (turn.is_block || threadIdx.x < 32) {
            has_capacity = vxd_svdag_reduce_top_take_turn(worker, stage, &turn, &level,
                                                          &entry, &is_missing, &is_done);
            if (has_capacity && !turn.enters && level.height < args->view.depth &&
                level.n == 1 && several >> level.height == 0 &&
                (top->marks[0] & VXD_SVDAG_MARK_NEW) != 0 &&
                vxd_svdag_reduce_top_is_chain<Editor>(args, level.begin)) {
                has_capacity = vxd_svdag_reduce_top_chain<Editor>(args, worker->counts,
                                                                  top, level.begin);
                level = {args->view.depth, 0, 1};
            }
            if (!has_capacity && threadIdx.x == 0) {
                top->has_failed = 1;
            }
        } else {
            level.height = args->view.depth;
            has_capacity = true;
        }
        goes_on = has_capacity && vxd_svdag_reduce_top_next_turn(
                                      &level, n_all, level.height == args->view.depth,
                                      is_missing, is_done, &turn);
        if (!turn.is_block &&
            (!goes_on || (turn.enters && level.height == args->view.depth))) {
            __syncthreads(); /* waits for the first warp */
            goes_on = top->has_failed == 0;
            turn.is_block = true;
        }
    }
    if (threadIdx.x == 0) {
        vxd_svdag_reduce_top_end(args, worker->counts, top, n_all - level.begin);
    }
}

#endif
