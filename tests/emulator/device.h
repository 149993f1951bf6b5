// SPDX-License-Identifier: Apache-2.0
/* The state of the emulated device, shared by the files of the emulator.
 *
 * One kernel runs at a time, all of it on the thread that launched it, so a seed gives the same
 * run again. A fiber that must wait takes the next one off the list of runnable fibers and
 * switches to it. Where none is runnable, control returns to the launch, which starts the next
 * block or has found a deadlock. None of these files is compiled with the hooks of hooks.cpp. */
#ifndef VXD_TESTS_EMULATOR_DEVICE_H
#define VXD_TESTS_EMULATOR_DEVICE_H

#include "tests/emulator/emulator.h"

/* Races (races.cpp) --------------------------------------------------------------------- */

/* The threads among which a barrier or fence orders accesses. */
enum emu_scope {
    EMU_WARP,
    EMU_BLOCK,
    EMU_DEVICE
};

/* Number of barriers and fences that are remembered, which limits how far back a race
 * is found. */
#define EMU_HISTORY 64

/* When barriers or fences were passed, ascending; the last EMU_HISTORY times. */
struct emu_times {
    uint32_t n;
    uint64_t at[EMU_HISTORY];
};

/* Barriers and fences of a thread, of every scope. */
struct emu_sync_history {
    uint64_t thread; /* 1024 times the block's number + the thread's */
    uint32_t block;  /* number of its block in the launch */
    struct emu_times own;
    /* barriers and fences of its warp that hold for a block or more */
    struct emu_times *of_warp;
    /* barriers and fences of its block that hold for the device */
    struct emu_times *of_block;
};

/* Whether the search for races is on. */
bool emu_finds_races(void);
/* Records a fence, or the end of a barrier; is_new is false for further threads of the
 * same barrier. */
void emu_sync_note(struct emu_sync_history *history, enum emu_scope scope, bool is_new);
/* Records a plain access by the running thread; code: the address of the instruction. */
void emu_race_look(const void *at, size_t n_bytes, bool is_write, const void *code);

/* Checks the last write once more, before its memory may be freed. */
void emu_race_settle(void);

/* The device ---------------------------------------------------------------------------- */

/* Of a fiber; the page below each stack faults. */
#define STACK_BYTES ((size_t)128 << 10)
#define SHARED_BYTES ((size_t)256 << 10)
#define MAX_THREADS 1024

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
    emu_site site; /* of the collective or barrier in which it waits, or waited last */
    unsigned mask;
    int result; /* result of a block's barrier */
    struct emu_sync_history history;
};

/* Lanes that wait for the same collective, by mask. */
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
    /* What lanes contribute and receive. */
    uint64_t values[32];
    uint64_t results[32];
    uint8_t from[32];
    struct emu_times times;
};

struct emu_block {
    char *stacks;
    char *shared;
    /* bytes of shared memory that were filled with garbage for this block */
    size_t n_filled;
    uint3 index;
    unsigned n_threads;
    unsigned n_exited;
    unsigned n_in_sync;
    /* Kind of the barrier at which some of its threads wait. */
    enum emu_count count;
    emu_site site;
    int sum;
    bool all;
    struct emu_lane lanes[MAX_THREADS];
    struct emu_warp warps[MAX_THREADS / 32];
    struct emu_times times;
};

/* The running launch. */
struct emu_grid {
    const struct emu_launch *launch;
    uint64_t id;
    uint64_t n_blocks;
    uint64_t n_started;
    uint64_t n_done;
    unsigned n_resident;
    uint64_t n_in_sync;
    size_t shared_end; /* bytes of shared memory given to variables */
    unsigned pace;     /* mask of the number of accesses between two switches */
    uint64_t n_switches;
    bool has_progressed; /* since the clock was last read */
    time_t progressed_s; /* processor time when progress was seen */
    long most_s;         /* limit of the time without progress */
    void *main_sp;
    struct emu_lane **runnable; /* n_runnable of most_runnable */
    unsigned n_runnable;
    unsigned most_runnable;
};

extern struct emu_grid emu_grid;
extern struct emu_block **emu_blocks; /* emu_grid.n_resident are in use */
/* NULL outside of kernels; a launch stays on its thread. */
extern thread_local struct emu_lane *emu_self;
/* Accesses until another fiber runs. */
extern thread_local int emu_budget;

/* grids.cpp ------------------------------------------------------------------------------- */

/* A setting of the environment, a number > 0, or its default `usual`. */
long emu_setting(const char *name, long usual);
unsigned emu_n_multiprocessors(void);
/* Number of blocks of so many threads that fit a multiprocessor. */
unsigned emu_blocks_of(unsigned n_threads);
/* Name and body of a registered kernel; false for any other address. */
bool emu_find(const void *kernel, struct emu_launch *launch);

/* fibers.cpp ------------------------------------------------------------------------------ */

/* Saves registers on the stack and the stack pointer in *save_sp, and continues where
 * to_sp was saved. */
extern "C" void emu_switch(void **save_sp, void *to_sp);
/* xorshift, seeded by VOXELD_EMULATOR_SEED. */
uint64_t emu_random(void);
void emu_make_runnable(struct emu_lane *lane);
struct emu_lane *emu_take_runnable(void);
/* Switches to any runnable fiber, or to the launch; returns when `lane`, the caller,
 * runs again. */
void emu_leave(struct emu_lane *lane);
/* Draws the number of accesses until the next switch. */
void emu_begin_budget(void);
/* Lets other fibers run. */
void emu_preempt(void);

/* collectives.cpp ------------------------------------------------------------------------- */

/* Reports the end of a thread to those that wait for it. */
void emu_exit_lane(struct emu_lane *lane);

/* faults.cpp ------------------------------------------------------------------------------ */

/* Reports a fault and aborts; site may be NULL. */
[[noreturn]] void emu_die(const char *what, const emu_site *site);

#endif
