// SPDX-License-Identifier: Apache-2.0
/* Packets of rays, which share a traversal of the tree. */
#ifndef VXD_GPU_RENDER_PACKET_CPU_H
#define VXD_GPU_RENDER_PACKET_CPU_H

#include "gpu/core/core_cpu.h"
#include "gpu/render/shade_math.h"

enum {
    VXD_RENDER_TILE = 8,
    VXD_RENDER_PACKET = VXD_RENDER_TILE * VXD_RENDER_TILE
};

/* Rays by number; which there are, `active` says. Of the others nothing is read that counts. */
struct vxd_render_packet {
    uint64_t active;
    struct vxd_render_limit limit;
    struct vxd_render_origin origins[VXD_RENDER_PACKET];
    float directions[VXD_RENDER_PACKET][3];
    struct vxd_render_ray rays[VXD_RENDER_PACKET];
    struct vxd_render_hit hits[VXD_RENDER_PACKET]; /* of those that hit something */
    /* What the rays' members are, axis by axis, for vector instructions. */
    float cells[3][VXD_RENDER_PACKET];
    float offsets[3][VXD_RENDER_PACKET];
    float inverses[3][VXD_RENDER_PACKET];
};

/* Makes a packet empty; adds ray i. */
void vxd_render_packet_begin(struct vxd_render_packet *packet);
void vxd_render_packet_add(struct vxd_render_packet *packet, int i,
                           const struct vxd_render_origin *origin,
                           const float direction[3], int depth);

/* Traces all rays; returns those that hit something. Hits are those of vxd_render_trace;
 * without needs_hits only whether there is one is found. */
uint64_t vxd_render_packet_trace(const struct vxd_svdag_view *view, uint32_t root,
                                 struct vxd_render_packet *packet, bool needs_hits);

#endif
