// SPDX-License-Identifier: Apache-2.0
/* The published schemas (schema/foxglove), as protoc describes them. */
#include <stdlib.h>

#include "proto/base/base64.h"
#include "server/transport/foxglove/foxglove_internal.h"
#include "server/transport/foxglove/schemas_internal.h"

const char *vxd_foxglove_schema_name(enum vxd_foxglove_schema schema)
{
    static const char *const names[VXD_FOXGLOVE_N_SCHEMAS] = {
        [VXD_FOXGLOVE_TRANSFORMS] = "foxglove.FrameTransforms",
        [VXD_FOXGLOVE_POINT_CLOUD] = "foxglove.PointCloud",
        [VXD_FOXGLOVE_VOXEL_GRID] = "foxglove.VoxelGrid",
        [VXD_FOXGLOVE_SCENE_UPDATE] = "foxglove.SceneUpdate",
        [VXD_FOXGLOVE_GRID] = "foxglove.Grid",
        [VXD_FOXGLOVE_IMAGE] = "foxglove.CompressedImage",
        [VXD_FOXGLOVE_LASER_SCAN] = "foxglove.LaserScan",
        [VXD_FOXGLOVE_POSE] = "foxglove.PoseInFrame",
        [VXD_FOXGLOVE_POSES] = "foxglove.PosesInFrame",
        [VXD_FOXGLOVE_LOG] = "foxglove.Log"};

    return names[schema];
}

void vxd_foxglove_schema_append(enum vxd_foxglove_schema schema, struct vxd_text *text)
{
    static const struct {
        const char *bytes;
        const size_t *n_bytes;
    } sets[VXD_FOXGLOVE_N_SCHEMAS] = {
        [VXD_FOXGLOVE_TRANSFORMS] = {vxd_foxglove_FrameTransforms,
                                     &vxd_foxglove_FrameTransforms_bytes},
        [VXD_FOXGLOVE_POINT_CLOUD] = {vxd_foxglove_PointCloud,
                                      &vxd_foxglove_PointCloud_bytes},
        [VXD_FOXGLOVE_VOXEL_GRID] = {vxd_foxglove_VoxelGrid,
                                     &vxd_foxglove_VoxelGrid_bytes},
        [VXD_FOXGLOVE_SCENE_UPDATE] = {vxd_foxglove_SceneUpdate,
                                       &vxd_foxglove_SceneUpdate_bytes},
        [VXD_FOXGLOVE_GRID] = {vxd_foxglove_Grid, &vxd_foxglove_Grid_bytes},
        [VXD_FOXGLOVE_IMAGE] = {vxd_foxglove_CompressedImage,
                                &vxd_foxglove_CompressedImage_bytes},
        [VXD_FOXGLOVE_LASER_SCAN] = {vxd_foxglove_LaserScan,
                                     &vxd_foxglove_LaserScan_bytes},
        [VXD_FOXGLOVE_POSE] = {vxd_foxglove_PoseInFrame, &vxd_foxglove_PoseInFrame_bytes},
        [VXD_FOXGLOVE_POSES] = {vxd_foxglove_PosesInFrame,
                                &vxd_foxglove_PosesInFrame_bytes},
        [VXD_FOXGLOVE_LOG] = {vxd_foxglove_Log, &vxd_foxglove_Log_bytes}};
    size_t n_bytes = *sets[schema].n_bytes;
    size_t n_chars = vxd_base64_encoded_bytes(n_bytes);
    char *chars = malloc(n_chars);

    if (chars == NULL) {
        text->failed = true;
        return;
    }
    vxd_base64_encode((const uint8_t *)sets[schema].bytes, n_bytes, chars);
    vxd_text_append(text, chars, n_chars);
    free(chars);
}
