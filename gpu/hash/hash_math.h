// SPDX-License-Identifier: Apache-2.0
/* What both backends of the hash maps compile, and the tables of functions between them. */
#ifndef VXD_GPU_HASH_HASH_MATH_H
#define VXD_GPU_HASH_HASH_MATH_H

#include "gpu/hash/hash_internal.h"
#include "gpu/hash/hashmap_math.h"

#endif
