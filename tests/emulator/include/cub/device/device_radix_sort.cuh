// SPDX-License-Identifier: Apache-2.0
/* CUB's radix sort, done on the host at the call; the result lies where passes of 8 bits leave
 * it, and the other buffers hold garbage then. */
#ifndef VXD_TESTS_EMULATOR_DEVICE_RADIX_SORT_H
#define VXD_TESTS_EMULATOR_DEVICE_RADIX_SORT_H

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "tests/emulator/emulator.h"

namespace cub
{
template <class T> struct DoubleBuffer {
    T *d_buffers[2] = {nullptr, nullptr};
    int selector = 0;

    DoubleBuffer() = default;
    DoubleBuffer(T *current, T *alternate) : d_buffers{current, alternate}
    {
    }

    T *Current() const
    {
        return d_buffers[selector];
    }

    T *Alternate() const
    {
        return d_buffers[selector ^ 1];
    }
};

struct DeviceRadixSort {
    template <class KEY, class VALUE, class N>
    static cudaError_t SortPairs(void *scratch, size_t &n_bytes, DoubleBuffer<KEY> &keys,
                                 DoubleBuffer<VALUE> &values, N n, int begin = 0,
                                 int end = sizeof(KEY) * 8, cudaStream_t = nullptr)
    {
        if (scratch == nullptr) {
            n_bytes = 1;
            return cudaSuccess;
        }
        std::vector<size_t> order = order_of(keys.Current(), (size_t)n, begin, end);

        put(keys, order, begin, end);
        put(values, order, begin, end);
        return cudaSuccess;
    }

    template <class KEY, class N>
    static cudaError_t SortKeys(void *scratch, size_t &n_bytes, DoubleBuffer<KEY> &keys,
                                N n, int begin = 0, int end = sizeof(KEY) * 8,
                                cudaStream_t = nullptr)
    {
        if (scratch == nullptr) {
            n_bytes = 1;
            return cudaSuccess;
        }
        put(keys, order_of(keys.Current(), (size_t)n, begin, end), begin, end);
        return cudaSuccess;
    }

  private:
    template <class KEY>
    static std::vector<size_t> order_of(const KEY *keys, size_t n, int begin, int end)
    {
        std::vector<size_t> order(n);
        int n_bits = end - begin;
        KEY mask = n_bits >= (int)sizeof(KEY) * 8 ? (KEY) ~(KEY)0
                                                  : (KEY)(((KEY)1 << n_bits) - 1);

        std::iota(order.begin(), order.end(), (size_t)0);
        if (n_bits > 0) {
            std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
                return (keys[a] >> begin & mask) < (keys[b] >> begin & mask);
            });
        }
        return order;
    }

    template <class T>
    static void put(DoubleBuffer<T> &buffer, const std::vector<size_t> &order, int begin,
                    int end)
    {
        std::vector<T> sorted(order.size());

        for (size_t i = 0; i < order.size(); i++) {
            sorted[i] = buffer.Current()[order[i]];
        }
        buffer.selector ^= (end - begin + 7) / 8 & 1;
        if (order.size() > 0) {
            memset((void *)buffer.Alternate(), 0xa5, order.size() * sizeof(T));
            memcpy((void *)buffer.Current(), sorted.data(), order.size() * sizeof(T));
        }
    }
};
} // namespace cub

#endif
