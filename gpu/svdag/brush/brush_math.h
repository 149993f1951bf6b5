// SPDX-License-Identifier: Apache-2.0
/* Shapes and editors. An editor says of a cube whether to keep, subdivide, fill or empty
 * it, and of a voxel which value it takes. Both backends compile these. */
#ifndef VXD_GPU_SVDAG_BRUSH_BRUSH_MATH_H
#define VXD_GPU_SVDAG_BRUSH_BRUSH_MATH_H

#include "gpu/svdag/brush/copy_editor_math.h"
#include "gpu/svdag/brush/data_shapes_math.h"
#include "gpu/svdag/brush/edit_source_math.h"
#include "gpu/svdag/brush/morph_editor_math.h"
#include "gpu/svdag/brush/shape_math.h"
#include "gpu/svdag/brush/shapes_editor_math.h"
#include "gpu/svdag/brush/undo_editor_math.h"

#endif
