// SPDX-License-Identifier: Apache-2.0
/* Which cells of two versions differ, and which cells of a version are set. */
#ifndef VXD_GPU_SVDAG_DIFF_DIFF_H
#define VXD_GPU_SVDAG_DIFF_DIFF_H

#include "gpu/svdag/diff/diff_cells.h"
#include "gpu/svdag/diff/export_bits.h"
#include "gpu/svdag/diff/export_cells.h"

#endif
