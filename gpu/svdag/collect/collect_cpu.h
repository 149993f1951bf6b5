// SPDX-License-Identifier: Apache-2.0
/* Traversing everything that roots reach in a store, for collections and for images. */
#ifndef VXD_GPU_SVDAG_COLLECT_COLLECT_CPU_H
#define VXD_GPU_SVDAG_COLLECT_COLLECT_CPU_H

#include "gpu/svdag/collect/collect_source.h"
#include "gpu/svdag/collect/collect_traversal_cpu.h"

#endif
