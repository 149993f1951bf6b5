// SPDX-License-Identifier: Apache-2.0
/* Where threads wait for each other: barriers of blocks and grids, collectives of warps. */
#include "tests/emulator/device.h"

static inline void order(struct emu_lane *lane, enum emu_scope scope, bool is_new)
{
    if (emu_finds_races()) {
        emu_sync_note(&lane->history, scope, is_new);
    }
}

void emu_fence(bool is_block)
{
    if (emu_self != NULL) {
        order(emu_self, is_block ? EMU_BLOCK : EMU_DEVICE, true);
    }
}

/* Barriers -------------------------------------------------------------------------------- */

static void finish_block_sync(struct emu_block *block)
{
    int result = block->count == EMU_COUNT_AND  ? block->all
                 : block->count == EMU_COUNT_OR ? block->sum != 0
                                                : block->sum;
    bool is_first = true;

    for (unsigned i = 0; i < block->n_threads; i++) {
        struct emu_lane *lane = block->lanes + i;

        if (lane->state == IN_BLOCK_SYNC) {
            lane->result = result;
            order(lane, EMU_BLOCK, is_first);
            is_first = false;
            emu_make_runnable(lane);
        }
    }
    block->n_in_sync = 0;
    emu_grid.has_progressed = true;
}

int emu_block_sync(enum emu_count count, int predicate, emu_site site)
{
    struct emu_lane *lane = emu_self;
    struct emu_block *block = lane->block;

    if (block->n_in_sync == 0) {
        block->count = count;
        block->site = site;
        block->sum = 0;
        block->all = true;
    }
    if (block->site.line != site.line || block->count != count) {
        emu_die("threads of a block are at different __syncthreads", &site);
    }
    block->sum += predicate != 0;
    block->all = block->all && predicate != 0;
    block->n_in_sync++;
    lane->site = site;
    lane->state = IN_BLOCK_SYNC;
    if (block->n_in_sync + block->n_exited == block->n_threads) {
        finish_block_sync(block);
    }
    emu_leave(lane);
    return lane->result;
}

void emu_grid_sync(emu_site site)
{
    struct emu_lane *lane = emu_self;

    if (!emu_grid.launch->is_cooperative) {
        emu_die("a grid's barrier in a kernel that was not launched for it", &site);
    }
    lane->site = site;
    lane->state = IN_GRID_SYNC;
    emu_grid.n_in_sync++;
    if (emu_grid.n_in_sync == emu_grid.n_blocks * lane->block->n_threads) {
        for (unsigned i = 0; i < emu_grid.n_resident; i++) {
            for (unsigned j = 0; j < emu_blocks[i]->n_threads; j++) {
                order(emu_blocks[i]->lanes + j, EMU_DEVICE, i + j == 0);
                emu_make_runnable(emu_blocks[i]->lanes + j);
            }
        }
        emu_grid.n_in_sync = 0;
        emu_grid.has_progressed = true;
    }
    emu_leave(lane);
}

/* Collectives ----------------------------------------------------------------------------- */

static uint64_t reduce(enum emu_collective kind, uint64_t a, uint64_t b)
{
    switch (kind) {
    case EMU_ADD:
        return (uint32_t)(a + b);
    case EMU_OR:
        return a | b;
    case EMU_AND:
        return a & b;
    case EMU_XOR:
        return a ^ b;
    case EMU_MIN:
        return a < b ? a : b;
    default:
        return a > b ? a : b;
    }
}

/* A result that is the same for all lanes of `in`. */
static uint64_t uniform_result(const struct emu_warp *warp, enum emu_collective kind,
                               unsigned in)
{
    uint64_t result = kind == EMU_BALLOT ? 0 : warp->values[__builtin_ctz(in)];

    for (unsigned left = kind == EMU_BALLOT ? in : in & (in - 1); left != 0;
         left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);

        result = kind == EMU_BALLOT ? result | warp->values[i] << i
                                    : reduce(kind, result, warp->values[i]);
    }
    return result;
}

static uint64_t match(const struct emu_warp *warp, unsigned in, unsigned lane)
{
    uint64_t equal = 0;

    for (unsigned left = in; left != 0; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);

        equal |= (uint64_t)(warp->values[i] == warp->values[lane]) << i;
    }
    return equal;
}

/* Ends a collective whose lanes have all arrived. */
static void finish_collective(struct emu_block *block, struct emu_warp *warp,
                              struct emu_gathering *at)
{
    struct emu_lane *lanes = block->lanes + (warp - block->warps) * 32;
    enum emu_collective kind = at->kind;
    unsigned in = at->there;
    uint64_t uniform =
        kind < EMU_BALLOT || kind == EMU_MATCH ? 0 : uniform_result(warp, kind, in);

    emu_grid.has_progressed = true;
    *at = warp->gatherings[--warp->n_gatherings];
    for (unsigned left = in; left != 0; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        unsigned from = warp->from[i];

        /* A value that is shuffled from a lane outside the mask is undefined. */
        warp->results[i] = kind == EMU_MATCH       ? match(warp, in, i)
                           : kind != EMU_SHUFFLE   ? uniform
                           : (in >> from & 1) != 0 ? warp->values[from]
                                                   : 0xa5a5a5a5deadbeefULL;
        order(lanes + i, EMU_WARP, left == in);
        emu_make_runnable(lanes + i);
    }
}

static struct emu_gathering *find_gathering(struct emu_warp *warp,
                                            enum emu_collective kind, unsigned mask,
                                            emu_site site)
{
    struct emu_gathering *at = warp->gatherings;
    struct emu_gathering *end = at + warp->n_gatherings;

    while (at < end && at->mask != mask) {
        at++;
    }
    if (at == end) {
        warp->n_gatherings++;
        *at = {kind, mask, 0, site};
    }
    if (at->kind != kind || (kind != EMU_SYNC && at->site.line != site.line)) {
        emu_die("lanes of one mask are in different collectives", &site);
    }
    return at;
}

uint64_t emu_collect(enum emu_collective kind, unsigned mask, uint64_t value, int aux,
                     emu_site site)
{
    struct emu_lane *lane = emu_self;
    struct emu_block *block = lane->block;
    struct emu_warp *warp = block->warps + lane->warp;
    struct emu_gathering *at;

    if ((mask >> lane->lane & 1) == 0) {
        emu_die("a lane that its own mask does not name", &site);
    }
    at = find_gathering(warp, kind, mask, site);
    at->there |= 1u << lane->lane;
    warp->values[lane->lane] = value;
    warp->from[lane->lane] = (uint8_t)(aux & 31);
    lane->mask = mask;
    lane->site = site;
    lane->state = IN_COLLECTIVE;
    if (((at->there | warp->exited) & mask) == mask) {
        finish_collective(block, warp, at);
    }
    emu_leave(lane);
    return warp->results[lane->lane];
}

/* Ends ------------------------------------------------------------------------------------ */

void emu_exit_lane(struct emu_lane *lane)
{
    struct emu_block *block = lane->block;
    struct emu_warp *warp = block->warps + lane->warp;

    emu_grid.has_progressed = true;
    lane->state = EXITED;
    block->n_exited++;
    warp->exited |= 1u << lane->lane;
    /* Threads that waited for this one alone continue. */
    for (unsigned i = warp->n_gatherings; i-- > 0;) {
        struct emu_gathering *at = warp->gatherings + i;

        if (((at->there | warp->exited) & at->mask) == at->mask) {
            finish_collective(block, warp, at);
        }
    }
    if (block->n_in_sync > 0 && block->n_in_sync + block->n_exited == block->n_threads) {
        finish_block_sync(block);
    }
}
