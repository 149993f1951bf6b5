// SPDX-License-Identifier: Apache-2.0
/* Between the files of the emulator: the device's state.
 *
 * One kernel runs at a time, all of it on the thread that launched it, so a seed gives the same
 * run again. A fiber that cannot go on takes the next one off the list of those that can and
 * switches to it; where none can, control goes back to the launch, which starts the next block
 * or has found a deadlock. None of these files is compiled with the hooks of hooks.cpp. */
#ifndef VXD_TESTS_EMULATOR_DEVICE_H
#define VXD_TESTS_EMULATOR_DEVICE_H

#include "tests/emulator/emulator.h"

/* Races (races.cpp) --------------------------------------------------------------------- */

/* What an order holds for. */
enum emu_scope {
    EMU_WARP,
    EMU_BLOCK,
    EMU_DEVICE
};

/* So many barriers and fences back a race is found. */
#define EMU_PAST 64

/* When somebody passed barriers or fences, ascending; the last EMU_PAST. */
struct emu_times {
    uint32_t n;
    uint64_t at[EMU_PAST];
};

/* Barriers and fences of a thread, of whatever scope. */
struct emu_past {
    uint64_t thread; /* 1024 times the block's number + the thread's */
    uint32_t block;  /* its number in the launch */
    struct emu_times own;
    struct emu_times *of_warp;  /* those of its warp that hold for a block or more */
    struct emu_times *of_block; /* those of its block that hold for the device */
};

/* Whether they are looked for. */
bool emu_finds_races(void);
/* A fence, or a barrier's end; not new: of the same barrier as the call before. */
void emu_past_order(struct emu_past *past, enum emu_scope scope, bool is_new);
/* A plain access by the thread that runs; code: where it is. */
void emu_race_look(const void *at, size_t n_bytes, bool is_write, const void *code);

/* Looks at the last write once more, before memory may go away. */
void emu_race_settle(void);

/* The device ---------------------------------------------------------------------------- */

/* Of a fiber; below each lies a page that faults. */
#define STACK_BYTES ((size_t)128 << 10)
#define SHARED_BYTES ((size_t)256 << 10)
#define MOST_THREADS 1024

enum emu_wait_state {
    RUNNABLE,
    IN_COLLECTIVE,
    IN_BLOCK_SYNC,
    IN_GRID_SYNC,
    EXITED
};

struct emu_block;

struct emu_lane {
    void *sp;
    struct emu_block *block;
    uint3 thread;
    unsigned warp;
    unsigned lane;
    enum emu_wait_state state;
    emu_site site; /* of the collective or barrier it waits in, or was last in */
    unsigned mask;
    int result; /* of a block's barrier */
    struct emu_past past;
};

/* Lanes on their way into one collective, by mask. */
struct emu_gathering {
    enum emu_collective kind;
    unsigned mask;
    unsigned there;
    emu_site site;
};

struct emu_warp {
    unsigned exited; /* bits of lanes */
    unsigned n_gatherings;
    struct emu_gathering gatherings[32];
    /* What lanes bring and get. */
    uint64_t values[32];
    uint64_t results[32];
    uint8_t from[32];
    struct emu_times times;
};

struct emu_block {
    char *stacks;
    char *shared;
    size_t n_filled; /* bytes of shared made garbage for this block */
    uint3 index;
    unsigned n_threads;
    unsigned n_exited;
    unsigned n_in_sync;
    /* Of the barrier that some of its threads are at. */
    enum emu_count count;
    emu_site site;
    int sum;
    bool all;
    struct emu_lane lanes[MOST_THREADS];
    struct emu_warp warps[MOST_THREADS / 32];
    struct emu_times times;
};

/* The launch that runs. */
struct emu_grid {
    const struct emu_launch *launch;
    uint64_t id;
    uint64_t n_blocks;
    uint64_t n_started;
    uint64_t n_done;
    unsigned n_resident;
    uint64_t n_in_sync;
    size_t shared_end; /* bytes of shared memory given to variables */
    unsigned pace;     /* mask of the accesses between two switches */
    uint64_t n_switches;
    bool has_progressed; /* since the last look at the clock */
    time_t progressed_s; /* processor time when it was seen */
    long most_s;         /* without progress */
    void *main_sp;
    struct emu_lane **runnable; /* n_runnable of most_runnable */
    unsigned n_runnable;
    unsigned most_runnable;
};

extern struct emu_grid emu_grid;
extern struct emu_block **emu_blocks; /* emu_grid.n_resident are in use */
/* NULL outside of kernels; a launch stays on its thread. */
extern thread_local struct emu_lane *emu_self;
/* Accesses left before another fiber runs. */
extern thread_local int emu_budget;

/* grids.cpp ------------------------------------------------------------------------------- */

/* A number > 0 of the environment. */
long emu_setting(const char *name, long usual);
unsigned emu_n_multiprocessors(void);
/* Blocks of so many threads that a multiprocessor holds. */
unsigned emu_blocks_of(unsigned n_threads);
/* A registered kernel's name and body; false for any other. */
bool emu_find(const void *kernel, struct emu_launch *launch);

/* fibers.cpp ------------------------------------------------------------------------------ */

/* Saves registers on the stack, that stack in *save_sp, and goes on where to_sp was saved. */
extern "C" void emu_switch(void **save_sp, void *to_sp);
/* xorshift, from VOXELD_EMULATOR_SEED. */
uint64_t emu_random(void);
void emu_make_runnable(struct emu_lane *lane);
struct emu_lane *emu_take_runnable(void);
/* To any fiber that can run, or out of the grid; returns when `lane`, the caller, runs again. */
void emu_leave(struct emu_lane *lane);
/* Accesses until the next switch. */
void emu_begin_budget(void);
/* Runs others. */
void emu_preempt(void);

/* collectives.cpp ------------------------------------------------------------------------- */

/* Says that a thread has ended to those who wait for it. */
void emu_exit_lane(struct emu_lane *lane);

/* faults.cpp ------------------------------------------------------------------------------ */

/* Reports and aborts; site may be NULL. */
[[noreturn]] void emu_die(const char *what, const emu_site *site);

#endif
