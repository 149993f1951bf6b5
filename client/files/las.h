// SPDX-License-Identifier: Apache-2.0
/* LAS, as reader and writer share it; private to client/files. All little-endian.
 *
 *     0   4  "LASF"                        107  4    points, legacy (0 where it has none)
 *     6   2  global encoding               111  5*4  points by return, legacy
 *    24   2  major, minor                  131  3*8  scale of x, y, z
 *    26  32  system, 58 32 software        155  3*8  offset of x, y, z
 *    90   2  day of the year, 92 2 year    179  6*8  max x, min x, max y, min y, ...
 *    94   2  bytes of the header           227  8    waveforms, since 1.3
 *    96   4  where the points begin        235  8    extended records, 243 4 how many,
 *   100   4  variable length records                 since 1.4
 *   104   1  format of the points          247  8    points, since 1.4
 *   105   2  bytes of a point              255  15*8 points by return, since 1.4
 *
 * Variable length records follow the header, 54 bytes and then their own:
 *     2  16  user id      18  2  record id      20  2  bytes that follow
 *
 * A point of every format begins with int32 x, y, z and uint16 intensity; coordinates are
 * raw * scale + offset. Where the rest lies: vxd_las_layouts. */
#ifndef VXD_CLIENT_FILES_LAS_H
#define VXD_CLIENT_FILES_LAS_H

#include "proto/base/base.h"

enum {
    VXD_LAS_ENCODING_AT = 6,
    VXD_LAS_VERSION_AT = 24,
    VXD_LAS_SYSTEM_AT = 26,
    VXD_LAS_SOFTWARE_AT = 58,
    VXD_LAS_HEADER_BYTES_AT = 94,
    VXD_LAS_POINTS_AT = 96,
    VXD_LAS_N_RECORDS_AT = 100,
    VXD_LAS_FORMAT_AT = 104,
    VXD_LAS_STEP_AT = 105,
    VXD_LAS_LEGACY_COUNT_AT = 107,
    VXD_LAS_LEGACY_RETURNS_AT = 111,
    VXD_LAS_SCALE_AT = 131,
    VXD_LAS_OFFSET_AT = 155,
    VXD_LAS_BOUNDS_AT = 179,
    VXD_LAS_COUNT_AT = 247,
    VXD_LAS_RETURNS_AT = 255,

    VXD_LAS_HEADER_1_2 = 227,
    VXD_LAS_HEADER_1_3 = 235,
    VXD_LAS_HEADER_1_4 = 375,
    VXD_LAS_N_FORMATS = 11,
    VXD_LAS_INTENSITY_AT = 12,
    VXD_LAS_RETURN_AT = 14 /* which return of how many */
};

/* Offsets in a point, 0 where the format lacks it. */
struct vxd_las_layout {
    uint8_t n_bytes;
    uint8_t classification;
    uint8_t gps_time;
    uint8_t rgb;
    uint8_t nir;
};

/* By format, 0 to 10. */
extern const struct vxd_las_layout vxd_las_layouts[VXD_LAS_N_FORMATS];

#endif
