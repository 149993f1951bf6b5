// SPDX-License-Identifier: Apache-2.0
/* What is said of a fault: the kernel, the thread, the line, and where all others are. */
#include "tests/emulator/device.h"

static const char *name_of(const struct emu_lane *lane)
{
    switch (lane->state) {
    case IN_COLLECTIVE:
        return "a warp's collective";
    case IN_BLOCK_SYNC:
        return "__syncthreads";
    case IN_GRID_SYNC:
        return "the grid's barrier";
    case EXITED:
        return "its end";
    default:
        return "running";
    }
}

/* Groups lanes that are at the same place, in order. */
static void tell_block(const struct emu_block *block)
{
    for (unsigned first = 0, n = 0; first < block->n_threads; first += n) {
        const struct emu_lane *lane = block->lanes + first;

        for (n = 1; first + n < block->n_threads; n++) {
            const struct emu_lane *next = lane + n;

            if (next->state != lane->state ||
                (lane->state != EXITED && lane->state != RUNNABLE &&
                 (next->site.line != lane->site.line ||
                  (lane->state == IN_COLLECTIVE && next->mask != lane->mask)))) {
                break;
            }
        }
        fprintf(stderr, "emulator:   block %u threads %u to %u: %s", block->index.x,
                first, first + n - 1, name_of(lane));
        if (lane->state == IN_COLLECTIVE) {
            fprintf(stderr, " of lanes %08x", lane->mask);
        }
        if (lane->state != EXITED && lane->state != RUNNABLE) {
            fprintf(stderr, " at %s:%d", lane->site.file, lane->site.line);
        }
        fprintf(stderr, "\n");
    }
}

void emu_die(const char *what, const emu_site *site)
{
    struct emu_lane *lane = emu_self;

    emu_self = NULL;
    fflush(stdout);
    fprintf(stderr, "emulator: %s", what);
    if (emu_grid.launch != NULL) {
        fprintf(stderr, "; kernel %s", emu_grid.launch->name);
    }
    if (lane != NULL) {
        fprintf(stderr, ", block %u, thread %u (warp %u, lane %u)", lane->block->index.x,
                lane->warp * 32 + lane->lane, lane->warp, lane->lane);
    }
    if (site != NULL) {
        fprintf(stderr, " at %s:%d", site->file, site->line);
    }
    fprintf(stderr, "; seed %ld\n", emu_setting("VOXELD_EMULATOR_SEED", 1));
    for (unsigned i = 0; emu_grid.launch != NULL && i < emu_grid.n_resident; i++) {
        if (emu_blocks[i]->n_exited < emu_blocks[i]->n_threads) {
            tell_block(emu_blocks[i]);
        }
    }
    abort();
}

void emu_fault(const char *what, emu_site site)
{
    emu_die(what, &site);
}
