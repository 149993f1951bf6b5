// SPDX-License-Identifier: Apache-2.0
/* Whether memory stays constant over many runs and many loads of a network. */
#ifndef VXD_TESTS_BENCH_GPU_BENCH_SOAK_H
#define VXD_TESTS_BENCH_GPU_BENCH_SOAK_H

#include "tests/bench/support/bench_device.h"
#include "tests/bench/gpu/sparse/bench_nets.h"

/* coords and features, device memory: unique and in order, n_rows of them. */
struct bench_soak {
    struct bench_device *device;
    const char *network;
    int n_channels;
    int32_t shape[3];
    struct vxd_net_options options;
    const int32_t *coords;
    const float *features;
    size_t n_rows;
};

/* Runs n_runs inferences of clouds of a quarter of the rows to all of them, in no
 * particular order, then n_loads loads and unloads, each with a run. Prints device and
 * host memory at the beginning and the end, and the largest ratio of a run's memory to
 * what it needed. */
enum vxd_status bench_soak_run(const struct bench_soak *soak, int n_runs, int n_loads,
                               struct vxd_err *err);

#endif
