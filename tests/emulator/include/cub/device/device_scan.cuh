// SPDX-License-Identifier: Apache-2.0
/* CUB's scans, done on the host at the call. */
#ifndef VXD_TESTS_EMULATOR_DEVICE_SCAN_H
#define VXD_TESTS_EMULATOR_DEVICE_SCAN_H

#include "tests/emulator/emulator.h"

namespace cub
{
struct DeviceScan {
    template <class IN, class OUT, class N>
    static cudaError_t ExclusiveSum(void *scratch, size_t &n_bytes, IN in, OUT *out, N n,
                                    cudaStream_t = nullptr)
    {
        OUT sum = 0;

        for (N i = 0; scratch != nullptr && i < n; i++) {
            OUT item = in[i];

            out[i] = sum;
            sum += item;
        }
        n_bytes = scratch == nullptr ? 1 : n_bytes;
        return cudaSuccess;
    }

    template <class IN, class OUT, class N>
    static cudaError_t InclusiveSum(void *scratch, size_t &n_bytes, IN in, OUT *out, N n,
                                    cudaStream_t = nullptr)
    {
        OUT sum = 0;

        for (N i = 0; scratch != nullptr && i < n; i++) {
            sum += in[i];
            out[i] = sum;
        }
        n_bytes = scratch == nullptr ? 1 : n_bytes;
        return cudaSuccess;
    }
};
} // namespace cub

#endif
