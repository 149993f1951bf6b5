// SPDX-License-Identifier: Apache-2.0
/* How the CPU packs weights: n_taps x panels x n_in x VXD_CONV_PANEL float32. A panel
 * is that many output channels, filled up with zeros. 16-bit precisions are rounded to
 * their type and widened again, because the arithmetic is float32. */
#ifndef VXD_GPU_SPARSE_CONV_CONV_CPU_H
#define VXD_GPU_SPARSE_CONV_CONV_CPU_H

#include "gpu/sparse/conv/conv_backends.h"

#define VXD_CONV_PANEL 16

static inline size_t vxd_conv_n_panels(int n_out)
{
    return ((size_t)n_out + VXD_CONV_PANEL - 1) / VXD_CONV_PANEL;
}

#endif
