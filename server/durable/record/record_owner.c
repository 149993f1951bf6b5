// SPDX-License-Identifier: Apache-2.0
#include "server/durable/record/record.h"

static enum vxd_status check_scene(const void *bytes, size_t n_bytes,
                                   uint32_t rules_version, struct vxd_err *err)
{
    struct vxd_record_decoded decoded = {0};
    enum vxd_status status =
        vxd_record_decode(bytes, n_bytes, rules_version, 0, &decoded, err);

    vxd_record_decoded_free(&decoded);
    return status;
}

static enum vxd_status check_map(const void *bytes, size_t n_bytes,
                                 uint32_t rules_version, struct vxd_err *err)
{
    struct vxd_map_record_decoded decoded = {0};
    enum vxd_status status =
        vxd_map_record_decode(bytes, n_bytes, rules_version, 0, &decoded, err);

    vxd_map_record_decoded_free(&decoded);
    return status;
}

static enum vxd_status check_volume(const void *bytes, size_t n_bytes,
                                    uint32_t rules_version, struct vxd_err *err)
{
    struct vxd_volume_record_decoded decoded = {0};
    enum vxd_status status =
        vxd_volume_record_decode(bytes, n_bytes, rules_version, 0, &decoded, err);

    vxd_volume_record_decoded_free(&decoded);
    return status;
}

static enum vxd_status check_posegraph(const void *bytes, size_t n_bytes,
                                       uint32_t rules_version, struct vxd_err *err)
{
    struct vxd_posegraph_record_decoded decoded = {0};
    enum vxd_status status =
        vxd_posegraph_record_decode(bytes, n_bytes, rules_version, 0, &decoded, err);

    vxd_posegraph_record_decoded_free(&decoded);
    return status;
}

static const struct vxd_record_owner owners[] = {
    {VXD_SCENE_FAMILIES, VXD_RULES_VERSION, check_scene},
    {VXD_MAP_FAMILIES, VXD_MAP_RULES_VERSION, check_map},
    {VXD_VOLUME_FAMILIES, VXD_VOLUME_RULES_VERSION, check_volume},
    {VXD_POSEGRAPH_FAMILIES, VXD_POSEGRAPH_RULES_VERSION, check_posegraph},
};

const struct vxd_record_owner *vxd_record_find_owner(uint32_t rules_version)
{
    for (size_t i = 0; i < sizeof owners / sizeof owners[0]; i++) {
        if (owners[i].rules_version >> 16 == rules_version >> 16) {
            return &owners[i];
        }
    }
    return NULL;
}
