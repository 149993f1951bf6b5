// SPDX-License-Identifier: Apache-2.0
/* The part of cooperative groups that the engine uses: the barrier of a whole grid. */
#ifndef VXD_TESTS_EMULATOR_INCLUDE_COOPERATIVE_GROUPS_H
#define VXD_TESTS_EMULATOR_INCLUDE_COOPERATIVE_GROUPS_H

#include "tests/emulator/emulator.h"

namespace cooperative_groups
{
struct grid_group {
    void sync(int line = __builtin_LINE(), const char *file = __builtin_FILE()) const
    {
        emu_grid_sync(emu_site{file, line});
    }
};

static inline grid_group this_grid()
{
    return {};
}
} // namespace cooperative_groups

#endif
