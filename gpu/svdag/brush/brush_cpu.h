// SPDX-License-Identifier: Apache-2.0
/* Shapes against the eight children of a cube at once, for the CPU backend. */
#ifndef VXD_GPU_SVDAG_BRUSH_BRUSH_CPU_H
#define VXD_GPU_SVDAG_BRUSH_BRUSH_CPU_H

#include "gpu/svdag/brush/shape_children_math.h"

#endif
