// SPDX-License-Identifier: Apache-2.0
/* The report of a fault: the kernel, the thread, the line, and where all other threads
 * are. */
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

static bool is_at_same_place(const struct emu_lane *a, const struct emu_lane *b)
{
    if (a->state != b->state || a->state == EXITED || a->state == RUNNABLE) {
        return a->state == b->state;
    }
    return a->site.line == b->site.line && a->site.file == b->site.file &&
           (a->state != IN_COLLECTIVE || a->mask == b->mask);
}

/* Prints one line for each place where threads of a block are. */
static void print_block(const struct emu_block *block)
{
    bool is_reported_lane[MAX_THREADS] = {};

    for (unsigned i = 0; i < block->n_threads; i++) {
        const struct emu_lane *lane = block->lanes + i;
        unsigned n = 0;

        for (unsigned j = i; !is_reported_lane[i] && j < block->n_threads; j++) {
            if (is_at_same_place(lane, block->lanes + j)) {
                n++;
                is_reported_lane[j] = j > i;
            }
        }
        if (n == 0) {
            continue;
        }
        fprintf(stderr, "emulator:   block %u, thread %u and %u others: %s",
                block->index.x, i, n - 1, name_of(lane));
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
            print_block(emu_blocks[i]);
        }
    }
    abort();
}

void emu_fault(const char *what, emu_site site)
{
    emu_die(what, &site);
}
