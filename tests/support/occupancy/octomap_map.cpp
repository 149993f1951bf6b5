// SPDX-License-Identifier: Apache-2.0
#include "tests/support/occupancy/octomap_map.h"

#include <octomap/octomap.h>

struct octomap_map {
    octomap::OcTree tree{1.0};
};

struct octomap_map *octomap_map_new(void)
{
    return new octomap_map;
}

void octomap_map_free(struct octomap_map *map)
{
    delete map;
}

void octomap_map_insert(struct octomap_map *map, const float *points, size_t n,
                        const float origin[3], double max_range)
{
    octomap::Pointcloud cloud;

    for (size_t i = 0; i < n; i++) {
        cloud.push_back(points[3 * i], points[3 * i + 1], points[3 * i + 2]);
    }
    map->tree.insertPointCloud(cloud, octomap::point3d(origin[0], origin[1], origin[2]),
                               max_range > 0 ? max_range : -1.0);
}

int octomap_map_find(const struct octomap_map *map, const int32_t voxel[3],
                     float *log_odds, int *is_occupied)
{
    const octomap::OcTreeNode *node = map->tree.search(
        double(voxel[0]) + 0.5, double(voxel[1]) + 0.5, double(voxel[2]) + 0.5);

    if (node == nullptr) {
        return 0;
    }
    *log_odds = node->getLogOdds();
    *is_occupied = map->tree.isNodeOccupied(node) ? 1 : 0;
    return 1;
}
