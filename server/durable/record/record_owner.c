// SPDX-License-Identifier: Apache-2.0
#include "server/durable/record/record.h"

static const struct vxd_record_owner owners[] = {
    {VXD_SCENE_FAMILIES, VXD_RULES_VERSION},
    {VXD_MAP_FAMILIES, VXD_MAP_RULES_VERSION},
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
