// SPDX-License-Identifier: Apache-2.0
/* What the calls on maps share. */
#ifndef VXD_CLIENT_C_MAP_MAP_CALL_H
#define VXD_CLIENT_C_MAP_MAP_CALL_H

#include "client/c/call/call.h"

/* map_reply.c opens replies. Its functions take call->reply, on failure too.
 * errors  INTERNAL            the reply contradicts itself or the request
 *         RESOURCE_EXHAUSTED */

/* Opens the one or several maps of a reply. */
enum vxd_status vxd_maps_open(struct vxd_exchange *call, Voxeld__V1__MapInfo *const *maps,
                              size_t n, struct voxeld_maps **out);

/* What a result must hold. */
struct vxd_map_expect {
    size_t n; /* ignored for export, which gives any number */
    bool counts_only;
    bool any_values; /* else n_values arrays */
    size_t n_values;
    size_t n_neighbours;
    bool keys;
    bool ply;
};

/* Opens the reply of any of the five methods that give a voxeld_map_result. */
enum vxd_status vxd_map_result_open(struct vxd_exchange *call,
                                    const struct vxd_map_expect *expect,
                                    struct voxeld_map_result **out);

#endif
