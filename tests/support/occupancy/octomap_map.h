// SPDX-License-Identifier: Apache-2.0
/* OctoMap's own library behind a few C functions: the peer of gpu/occupancy. Built only where
 * the library is installed (Debian: liboctomap-dev). Its tree has voxels of edge 1, so that
 * coordinates are voxels: voxel v covers [v, v + 1). */
#ifndef VXD_TESTS_SUPPORT_OCCUPANCY_OCTOMAP_MAP_H
#define VXD_TESTS_SUPPORT_OCCUPANCY_OCTOMAP_MAP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct octomap_map;

/* With OctoMap's default probabilities; failures end the program. */
struct octomap_map *octomap_map_new(void);
void octomap_map_free(struct octomap_map *map);

/* OcTree::insertPointCloud of n x 3 points, each point's ray cast; max_range 0 = none. */
void octomap_map_insert(struct octomap_map *map, const float *points, size_t n,
                        const float origin[3], double max_range);

/* Voxels by log-odds; false where it is unknown. */
int octomap_map_find(const struct octomap_map *map, const int32_t voxel[3],
                     float *log_odds, int *is_occupied);

#ifdef __cplusplus
}
#endif
#endif
