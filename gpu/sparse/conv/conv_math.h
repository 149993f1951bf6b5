// SPDX-License-Identifier: Apache-2.0
/* Activations and stored elements, for all code that ends a layer; compiled by both gcc
 * and nvcc. GELU and sigmoid use the backend's own erff and expf. */
#ifndef VXD_GPU_SPARSE_CONV_CONV_MATH_H
#define VXD_GPU_SPARSE_CONV_CONV_MATH_H

#include "gpu/core/core_math.h"
#include "gpu/sparse/conv/conv.h"

VXD_HD float vxd_activate(enum vxd_net_act act, float alpha, float x)
{
    switch (act) {
    case VXD_ACT_RELU:
        return x < 0.0f ? 0.0f : x;
    case VXD_ACT_LEAKY_RELU:
        return x < 0.0f ? vxd_mulf(alpha, x) : x;
    case VXD_ACT_GELU:
        return vxd_mulf(vxd_mulf(0.5f, x),
                        vxd_addf(1.0f, erff(vxd_mulf(x, 0.70710678118654752f))));
    case VXD_ACT_SIGMOID:
        return vxd_divf(1.0f, vxd_addf(1.0f, expf(-x)));
    case VXD_ACT_NONE:
        break;
    }
    return x;
}

/* Element i of a row in this precision. */
VXD_HD float vxd_element_load(enum vxd_net_precision precision, const void *row, size_t i)
{
    switch (precision) {
    case VXD_NET_FP16:
        return vxd_float_of_half(((const uint16_t *)row)[i]);
    case VXD_NET_BF16:
        return vxd_float_of_bfloat(((const uint16_t *)row)[i]);
    default:
        return ((const float *)row)[i];
    }
}

/* Rounds once; NaN becomes the type's one NaN. */
VXD_HD void vxd_element_store(enum vxd_net_precision precision, void *row, size_t i,
                              float value)
{
    switch (precision) {
    case VXD_NET_FP16:
        ((uint16_t *)row)[i] = vxd_half_of_float(value);
        break;
    case VXD_NET_BF16:
        ((uint16_t *)row)[i] = vxd_bfloat_of_float(value);
        break;
    default:
        ((float *)row)[i] = vxd_canonical_nanf(value);
        break;
    }
}

#endif
