// SPDX-License-Identifier: Apache-2.0
#include "gpu/render/packet_cpu.h"

void vxd_render_packet_begin(struct vxd_render_packet *packet)
{
    packet->active = 0;
}

void vxd_render_packet_add(struct vxd_render_packet *packet, int i,
                           const struct vxd_render_origin *origin,
                           const float direction[3], int depth)
{
    packet->active |= (uint64_t)1 << i;
    packet->origins[i] = *origin;
    memcpy(packet->directions[i], direction, sizeof packet->directions[i]);
    packet->rays[i] = vxd_render_ray_of(origin, direction, depth);
}

uint64_t vxd_render_packet_trace(const struct vxd_svdag_view *view, uint32_t root,
                                 struct vxd_render_packet *packet, bool needs_hits)
{
    uint64_t hits = 0;
    uint32_t nodes[VXD_RENDER_NODES];

    for (uint64_t rest = packet->active; rest != 0; rest &= rest - 1) {
        int i = vxd_svdag_low_bit(rest);

        if (vxd_render_trace(view, root, &packet->rays[i], &packet->limit, nodes, 1,
                             needs_hits ? &packet->hits[i] : NULL)) {
            hits |= (uint64_t)1 << i;
        }
    }
    return hits;
}
