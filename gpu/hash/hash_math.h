// SPDX-License-Identifier: Apache-2.0
/* What indexes outside this folder compile on both backends: keys and tags, the map
 * behind the opaque name, and the tables of functions of an index. */
#ifndef VXD_GPU_HASH_HASH_MATH_H
#define VXD_GPU_HASH_HASH_MATH_H

#include "gpu/hash/hash_internal.h"
#include "gpu/hash/hashmap_math.h"

#endif
