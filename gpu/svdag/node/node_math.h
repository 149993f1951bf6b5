// SPDX-License-Identifier: Apache-2.0
/* Words of leaves and inner nodes, and cursors over them, as both backends compile them. */
#ifndef VXD_GPU_SVDAG_NODE_NODE_MATH_H
#define VXD_GPU_SVDAG_NODE_NODE_MATH_H

#include "gpu/svdag/node/change_count_math.h"
#include "gpu/svdag/node/changed_math.h"
#include "gpu/svdag/node/inner_math.h"
#include "gpu/svdag/node/leaf_math.h"
#include "gpu/svdag/node/leaf_rotate_math.h"
#include "gpu/svdag/node/node_words_math.h"
#include "gpu/svdag/node/tree_cursor_math.h"

#endif
