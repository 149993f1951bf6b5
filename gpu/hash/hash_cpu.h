// SPDX-License-Identifier: Apache-2.0
/* The CPU backend's entries (keys and values) of a hash map, for indices that stand elsewhere. */
#ifndef VXD_GPU_HASH_HASH_CPU_H
#define VXD_GPU_HASH_HASH_CPU_H

#include "gpu/hash/entries_cpu.h"

#endif
