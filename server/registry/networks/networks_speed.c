// SPDX-License-Identifier: Apache-2.0
#include "server/registry/networks/networks_speed.h"

/* Fewer voxels say more about what a run costs whatever its size than about a voxel. */
#define LEAST_VOXELS 1024.0
#define LOWERED_BY 0.75

void vxd_network_speed_note(struct vxd_network_speed *speed, double run_ns,
                            double n_voxels, double n_points)
{
    speed->lenience = 1;
    if (n_voxels < LEAST_VOXELS || run_ns <= 0) {
        return;
    }
    if (speed->voxel_ns == 0 || run_ns / n_voxels < speed->voxel_ns) {
        speed->voxel_ns = run_ns / n_voxels;
    }
    if (n_points > 0) {
        speed->voxels_per_point = n_voxels / n_points;
    }
}

void vxd_network_speed_note_expired(struct vxd_network_speed *speed)
{
    speed->lenience = 1;
}

void vxd_network_speed_note_refused(struct vxd_network_speed *speed)
{
    speed->lenience = (speed->lenience == 0 ? 1 : speed->lenience) * LOWERED_BY;
}

double vxd_network_speed_of_voxels(const struct vxd_network_speed *speed, double n_voxels)
{
    return speed->voxel_ns * (speed->lenience == 0 ? 1 : speed->lenience) * n_voxels;
}

double vxd_network_speed_of_points(const struct vxd_network_speed *speed, double n_points)
{
    return vxd_network_speed_of_voxels(speed, speed->voxels_per_point * n_points);
}
