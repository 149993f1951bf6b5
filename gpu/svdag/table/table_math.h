// SPDX-License-Identifier: Apache-2.0
/* The interface of the backends, for stores of other modules. */
#ifndef VXD_GPU_SVDAG_TABLE_TABLE_MATH_H
#define VXD_GPU_SVDAG_TABLE_TABLE_MATH_H

#include "gpu/svdag/table/table_backends.h"

#endif
