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

#endif
