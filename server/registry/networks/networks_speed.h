// SPDX-License-Identifier: Apache-2.0
/* How long a network takes on this machine, so that a request which cannot be in time is refused
 * before its work is done.
 *
 * The estimate is the best time a voxel that a run took since the network was loaded; on a CPU the
 * first is measured when it is loaded. So it is low rather than high: a machine that is busy for a
 * while has nobody refused for long. Scans in which voxels have fewer neighbours take less time than the
 * best run says: each refusal lowers the estimate by a quarter until a run has ended, so that such
 * a request is tried after some repetitions. */
#ifndef VXD_SERVER_REGISTRY_NETWORKS_NETWORKS_SPEED_H
#define VXD_SERVER_REGISTRY_NETWORKS_NETWORKS_SPEED_H

/* Guarded by whoever owns it. */
struct vxd_network_speed {
    double voxel_ns; /* best of all runs; 0 = not known */
    double lenience; /* what the estimate is multiplied by, at most 1; 0 stands for 1 */
    double voxels_per_point; /* of the last run; 0 = not known */
};

/* Note a run that has ended, or one that ended early because its time was over. */
void vxd_network_speed_note(struct vxd_network_speed *speed, double run_ns,
                            double n_voxels, double n_points);
void vxd_network_speed_note_expired(struct vxd_network_speed *speed);
/* Notes that a request was refused by the estimate. */
void vxd_network_speed_note_refused(struct vxd_network_speed *speed);

/* Estimates a run's time in nanoseconds; 0 where nothing is known. The second takes points. */
double vxd_network_speed_of_voxels(const struct vxd_network_speed *speed,
                                   double n_voxels);
double vxd_network_speed_of_points(const struct vxd_network_speed *speed,
                                   double n_points);

#endif
