// SPDX-License-Identifier: Apache-2.0
/* Between the files of the emulator. */
#ifndef VXD_TESTS_EMULATOR_DEVICE_H
#define VXD_TESTS_EMULATOR_DEVICE_H

#include <vector>

#include "tests/emulator/emulator.h"

/* Accesses left before another fiber runs. */
extern thread_local int emu_budget;
/* Runs others. */
void emu_preempt(void);
/* Whether the caller is a thread of a kernel. */
bool emu_is_inside(void);

unsigned emu_n_multiprocessors(void);
/* Blocks of so many threads that a multiprocessor holds. */
unsigned emu_blocks_of(unsigned n_threads);
/* A registered kernel's name and body; false for any other. */
bool emu_find(const void *kernel, struct emu_launch *launch);

/* Races (races.cpp) --------------------------------------------------------------------- */

/* What an order holds for. */
enum emu_scope {
    EMU_WARP,
    EMU_BLOCK,
    EMU_DEVICE,
    EMU_N_SCOPES
};

/* So many barriers and fences back a race is found. */
#define EMU_PAST 32

/* Barriers and fences of a thread. */
struct emu_past {
    uint64_t thread; /* 1024 times the block's number + the thread's; unique in a launch */
    uint32_t block;
    uint32_t n_passed[EMU_N_SCOPES];
    uint64_t last[EMU_N_SCOPES]; /* times */
    uint64_t times[EMU_N_SCOPES][EMU_PAST];
};

bool emu_finds_races(void);
void emu_past_begin(struct emu_past *past, uint64_t thread, uint32_t block);
/* A fence, or a barrier's end; not new: of the same barrier as the call before. */
void emu_past_order(struct emu_past *past, enum emu_scope scope, bool is_new);
/* A plain access by the thread that runs; code: where it is. */
void emu_race_look(const void *at, size_t n_bytes, bool is_write, const void *code);

/* Of emulator.cpp. */
const struct emu_past *emu_own_past(void);
bool emu_is_stack(const void *at);
bool emu_is_shared(const void *at);
uint64_t emu_launch_id(void);
const char *emu_kernel_name(void);
/* What is subtracted from an address in this program to get that in its file. */
uintptr_t emu_image_base(void);

#endif
