// SPDX-License-Identifier: Apache-2.0
/* Voxelizes a point cloud file and prints the first voxels.
 * Build: cc voxelize.c $(pkg-config --cflags --libs voxeld) */
#include <inttypes.h>
#include <stdio.h>
#include <voxeld.h>

int main(int argc, char **argv)
{
    struct voxeld_client *client = NULL;
    struct voxeld_cloud *scan = NULL;
    struct voxeld_voxels *voxels = NULL;
    struct voxeld_error error = {0};
    struct voxeld_voxelize_request request = {.n_clouds = 1, .size_m = {0.1, 0.1, 0.1}};

    if (argc != 2) {
        (void)fprintf(stderr, "usage: %s scan.pcd\n", argv[0]);
        return 2;
    }
    if (voxeld_connect(NULL, &client, &error) == VOXELD_OK &&
        voxeld_cloud_read_file(argv[1], NULL, &scan, &error) == VOXELD_OK) {
        request.clouds = scan;
        (void)voxeld_voxelize(client, &request, &voxels, &error);
    }
    if (voxels != NULL) {
        (void)printf("%zu voxels from %zu points\n", voxels->n_voxels, voxels->n_points);
        for (size_t i = 0; i < voxels->n_voxels && i < 3; i++) {
            const int32_t *c = voxels->coords + 4 * i;

            (void)printf("(%" PRId32 ", %" PRId32 ", %" PRId32 ") of %" PRIu32
                         " points\n",
                         c[1], c[2], c[3], voxels->counts[i]);
        }
    } else {
        (void)fprintf(stderr, "%s: %s %s\n", voxeld_status_name(error.code), error.field,
                      error.message);
    }
    voxeld_voxels_free(voxels);
    voxeld_cloud_free(scan);
    voxeld_close(client);
    return voxels != NULL ? 0 : 1;
}
