// SPDX-License-Identifier: Apache-2.0
/* Arithmetic that both backends compile: exact products and sums, and half precision. */
#ifndef VXD_GPU_CORE_CORE_MATH_H
#define VXD_GPU_CORE_CORE_MATH_H

#include "gpu/core/exact_math.h"
#include "gpu/core/half_math.h"

#endif
