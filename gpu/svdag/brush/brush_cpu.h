// SPDX-License-Identifier: Apache-2.0
/* Classifies the children of a cube against shapes, for the CPU backend. */
#ifndef VXD_GPU_SVDAG_BRUSH_BRUSH_CPU_H
#define VXD_GPU_SVDAG_BRUSH_BRUSH_CPU_H

#include "gpu/svdag/brush/shape_children_math.h"

#endif
