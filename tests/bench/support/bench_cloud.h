// SPDX-License-Identifier: Apache-2.0
/* Point clouds for benchmarks: a real scan from a file, or a synthetic one, tiled to
 * any size. */
#ifndef VXD_TESTS_BENCH_SUPPORT_BENCH_CLOUD_H
#define VXD_TESTS_BENCH_SUPPORT_BENCH_CLOUD_H

#include "proto/base/base.h"

struct bench_cloud {
    size_t n_points;
    int n_columns; /* 3 or more: x, y, z, then the further columns of the file */
    float *rows;
};

/* Reads PATH: .npy (two-dimensional '<f4' in C order) or .bin (rows of bin_columns float32).
 * False after printing why to stderr. The caller frees with bench_cloud_free. */
bool bench_cloud_read(const char *path, int bin_columns, struct bench_cloud *out);

/* A synthetic scan of about 130,000 points: 64 beams, a full turn, in a street with
 * walls. */
bool bench_cloud_make(struct bench_cloud *out);
void bench_cloud_free(struct bench_cloud *cloud);

/* Takes n points from the scan: an even subset where n is smaller, otherwise copies
 * side by side, each moved by its own whole number of scan extents. positions is n x
 * 3; features is n x n_channels: x, y, z, then the file's further columns, repeated as
 * often as needed. */
void bench_cloud_tile(const struct bench_cloud *cloud, size_t n, int n_channels,
                      float *positions, float *features);

/* A scene: the scan repeated while the sensor moves 0.1 m a scan along x, with noise
 * of up to 1 cm on every coordinate, so that surfaces are seen repeatedly, as by a
 * passing sensor. Arrays as for bench_cloud_tile. */
void bench_cloud_drive(const struct bench_cloud *cloud, size_t n, int n_channels,
                       float *positions, float *features);

#endif
