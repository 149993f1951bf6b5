// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/support/bench_cloud.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N_BEAMS 64
#define N_AZIMUTHS 2048
#define MAX_RANGE_M 80.0
#define TILES_A_ROW 8

static bool complain(const char *path, const char *what)
{
    (void)fprintf(stderr, "%s: %s\n", path, what);
    return false;
}

/* Reads the shape from a .npy header and leaves the file at the first number. */
static bool read_npy_header(FILE *file, const char *path, struct bench_cloud *out)
{
    unsigned char start[10];
    char header[1024];
    size_t n_bytes;
    char *shape;
    unsigned long n_rows;
    unsigned long n_columns = 0;

    if (fread(start, 1, sizeof start, file) != sizeof start ||
        memcmp(start, "\x93NUMPY\x01", 7) != 0) {
        return complain(path, "no .npy file of version 1");
    }
    n_bytes = (size_t)start[8] | (size_t)start[9] << 8;
    if (n_bytes >= sizeof header || fread(header, 1, n_bytes, file) != n_bytes) {
        return complain(path, "its header is cut or too long");
    }
    header[n_bytes] = '\0';
    shape = strstr(header, "'shape': (");
    if (strstr(header, "'<f4'") == NULL || strstr(header, "False") == NULL ||
        shape == NULL) {
        return complain(path, "wants '<f4' in C order");
    }
    n_rows = strtoul(shape + strlen("'shape': ("), &shape, 10);
    if (*shape == ',') {
        n_columns = strtoul(shape + 1, NULL, 10);
    }
    if (n_columns < 3 || n_columns > 64) {
        return complain(path, "wants a shape of (n, 3 to 64)");
    }
    out->n_points = n_rows;
    out->n_columns = (int)n_columns;
    return true;
}

static bool read_bin_size(FILE *file, const char *path, int n_columns,
                          struct bench_cloud *out)
{
    long n_bytes;

    if (n_columns < 3 || fseek(file, 0, SEEK_END) != 0 || (n_bytes = ftell(file)) < 0 ||
        fseek(file, 0, SEEK_SET) != 0) {
        return complain(path, "cannot be measured, or has fewer than 3 columns");
    }
    out->n_columns = n_columns;
    out->n_points = (size_t)n_bytes / ((size_t)n_columns * sizeof(float));
    return true;
}

bool bench_cloud_read(const char *path, int bin_columns, struct bench_cloud *out)
{
    size_t length = strlen(path);
    FILE *file = fopen(path, "rb");
    size_t n_floats = 0;
    bool ok;

    *out = (struct bench_cloud){0, 0, NULL};
    if (file == NULL) {
        return complain(path, "cannot be opened");
    }
    if (length > 4 && strcmp(path + length - 4, ".npy") == 0) {
        ok = read_npy_header(file, path, out);
    } else {
        ok = read_bin_size(file, path, bin_columns, out);
    }
    if (ok && (out->n_points == 0 ||
               !vxd_size_mul(out->n_points, (size_t)out->n_columns, &n_floats))) {
        ok = complain(path, "holds no points");
    }
    if (ok) {
        out->rows = calloc(n_floats, sizeof *out->rows);
        ok = out->rows != NULL || complain(path, "no memory for it");
    }
    if (ok && fread(out->rows, sizeof *out->rows, n_floats, file) != n_floats) {
        bench_cloud_free(out);
        ok = complain(path, "is shorter than its header says");
    }
    (void)fclose(file);
    return ok;
}

/* Distance along a ray from a sensor 1.8 m above a street 20 m wide; 0 where the ray
 * hits nothing. */
static double street_range(const double ray[3])
{
    double range = MAX_RANGE_M;

    if (ray[2] < 0.0) {
        range = fmin(range, -1.8 / ray[2]);
    }
    if (ray[1] != 0.0) {
        range = fmin(range, (ray[1] > 0.0 ? 9.0 : -11.0) / ray[1]);
    }
    return range < MAX_RANGE_M ? range : 0.0;
}

bool bench_cloud_make(struct bench_cloud *out)
{
    uint64_t state = 1;
    size_t n = 0;

    *out = (struct bench_cloud){0, 4, NULL};
    out->rows = calloc((size_t)N_BEAMS * N_AZIMUTHS * 4, sizeof *out->rows);
    if (out->rows == NULL) {
        return complain("made-up scan", "no memory for it");
    }
    for (int a = 0; a < N_AZIMUTHS; a++) {
        double azimuth = 2.0 * 3.14159265358979 * a / N_AZIMUTHS;

        for (int b = 0; b < N_BEAMS; b++) {
            double elevation =
                (2.0 - 26.8 * b / (N_BEAMS - 1)) * 3.14159265358979 / 180.0;
            double ray[3] = {cos(elevation) * cos(azimuth), cos(elevation) * sin(azimuth),
                             sin(elevation)};
            double range = street_range(ray);
            float *row = out->rows + 4 * n;

            if (range > 0.0) {
                state = state * 6364136223846793005ULL + 1442695040888963407ULL;
                range += ((double)(state >> 40) / 16777216.0 - 0.5) * 0.04;
                for (int axis = 0; axis < 3; axis++) {
                    row[axis] = (float)(range * ray[axis]);
                }
                row[3] = (float)(state >> 56) / 255.0f;
                n++;
            }
        }
    }
    out->n_points = n;
    return true;
}

void bench_cloud_free(struct bench_cloud *cloud)
{
    free(cloud->rows);
    *cloud = (struct bench_cloud){0, 0, NULL};
}

/* Extents in x and y, rounded up to whole metres. */
static void measure(const struct bench_cloud *cloud, float extent[2])
{
    for (int axis = 0; axis < 2; axis++) {
        float lo = INFINITY;
        float hi = -INFINITY;

        for (size_t i = 0; i < cloud->n_points; i++) {
            lo = fminf(lo, cloud->rows[i * (size_t)cloud->n_columns + (size_t)axis]);
            hi = fmaxf(hi, cloud->rows[i * (size_t)cloud->n_columns + (size_t)axis]);
        }
        extent[axis] = ceilf(hi - lo);
    }
}

void bench_cloud_tile(const struct bench_cloud *cloud, size_t n, int n_channels,
                      float *positions, float *features)
{
    float extent[2];

    measure(cloud, extent);
    for (size_t i = 0; i < n; i++) {
        size_t tile = i / cloud->n_points;
        size_t source =
            n < cloud->n_points ? i * cloud->n_points / n : i % cloud->n_points;
        const float *row = cloud->rows + source * (size_t)cloud->n_columns;
        size_t tile_row = tile / TILES_A_ROW;
        float *position = positions + 3 * i;

        position[0] = row[0] + (float)(tile % TILES_A_ROW) * extent[0];
        position[1] = row[1] + (float)tile_row * extent[1];
        position[2] = row[2];
        for (int c = 0; c < n_channels; c++) {
            features[i * (size_t)n_channels + (size_t)c] =
                c < 3 ? position[c] : row[c % cloud->n_columns];
        }
    }
}

void bench_cloud_drive(const struct bench_cloud *cloud, size_t n, int n_channels,
                       float *positions, float *features)
{
    uint64_t state = 1;

    for (size_t i = 0; i < n; i++) {
        size_t scan = i / cloud->n_points;
        const float *row = cloud->rows + i % cloud->n_points * (size_t)cloud->n_columns;
        float *position = positions + 3 * i;

        for (int axis = 0; axis < 3; axis++) {
            state = state * 6364136223846793005ULL + 1442695040888963407ULL;
            position[axis] =
                row[axis] + 0.02f * ((float)(state >> 40) / 16777216.0f - 0.5f);
        }
        position[0] += 0.1f * (float)scan;
        for (int c = 0; c < n_channels; c++) {
            features[i * (size_t)n_channels + (size_t)c] =
                c < 3 ? position[c] : row[c % cloud->n_columns];
        }
    }
}
