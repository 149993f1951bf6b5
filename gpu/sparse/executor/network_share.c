// SPDX-License-Identifier: Apache-2.0
/* Coordinate sets and kernel maps, shared by content. */
#include <string.h>

#include "gpu/sparse/executor/network_internal.h"

static bool same_axes(const int32_t a[3], const int32_t b[3])
{
    return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
}

static bool same_geometry(const struct vxd_sparse_geometry *a,
                          const struct vxd_sparse_geometry *b)
{
    return same_axes(a->kernel, b->kernel) && same_axes(a->stride, b->stride) &&
           same_axes(a->padding, b->padding) && same_axes(a->dilation, b->dilation) &&
           a->transposed == b->transposed;
}

/* With one tap on an axis the dilation has no effect. */
static void simplify(struct vxd_sparse_geometry *geometry)
{
    for (int axis = 0; axis < 3; axis++) {
        if (geometry->kernel[axis] == 1) {
            geometry->dilation[axis] = 1;
        }
    }
}

static bool is_identity(const struct vxd_sparse_geometry *geometry)
{
    for (int axis = 0; axis < 3; axis++) {
        if (geometry->kernel[axis] != 1 || geometry->stride[axis] != 1 ||
            geometry->padding[axis] != 0) {
            return false;
        }
    }
    return true;
}

/* A floor set depends on its stride alone. */
static struct vxd_net_coord_set
simple_coord_set(const struct vxd_net_coord_set *coord_set)
{
    struct vxd_net_coord_set simple = *coord_set;

    if (coord_set->kind == VXD_NET_COORD_SET_DERIVED) {
        simplify(&simple.geometry);
    }
    if (coord_set->kind == VXD_NET_COORD_SET_DERIVED &&
        coord_set->rule == VXD_DERIVE_FLOOR) {
        for (int axis = 0; axis < 3; axis++) {
            simple.geometry.kernel[axis] = 1;
            simple.geometry.padding[axis] = 0;
            simple.geometry.dilation[axis] = 1;
        }
    }
    return simple;
}

static bool same_coord_set(const struct vxd_net_coord_set *a,
                           const struct vxd_net_coord_set *b)
{
    if (a->kind != b->kind || a->a != b->a || a->b != b->b ||
        !same_axes(a->shape, b->shape) || !same_axes(a->times, b->times)) {
        return false;
    }
    if (a->kind == VXD_NET_COORD_SET_DERIVED) {
        return a->rule == b->rule && same_geometry(&a->geometry, &b->geometry);
    }
    return a->kind != VXD_NET_COORD_SET_SUBSET || a->layer == b->layer;
}

enum vxd_status vxd_net_share_coord_set(struct vxd_net *net,
                                        const struct vxd_net_coord_set *coord_set,
                                        int *number, struct vxd_err *err)
{
    struct vxd_net_coord_set simple = simple_coord_set(coord_set);

    if (coord_set->kind == VXD_NET_COORD_SET_DERIVED && is_identity(&simple.geometry) &&
        same_axes(simple.shape, net->coord_sets[coord_set->a].shape)) {
        *number = coord_set->a;
        return VXD_OK;
    }
    for (int i = 0; i < net->n_coord_sets; i++) {
        if (same_coord_set(&net->coord_sets[i], &simple)) {
            *number = i;
            return VXD_OK;
        }
    }
    if (net->n_coord_sets > net->n_layers) {
        return vxd_fail(err, VXD_INTERNAL, NULL, "more coordinate sets than layers");
    }
    *number = net->n_coord_sets;
    net->coord_sets[net->n_coord_sets++] = simple;
    return VXD_OK;
}

enum vxd_status vxd_net_share_map(struct vxd_net *net, const struct vxd_net_map *map,
                                  int *number, struct vxd_err *err)
{
    struct vxd_net_map simple = *map;

    simplify(&simple.geometry);
    if (is_identity(&simple.geometry) && simple.in == simple.out) {
        *number = -1;
        return VXD_OK;
    }
    for (int i = 0; i < net->n_maps; i++) {
        if (net->maps[i].in == simple.in && net->maps[i].out == simple.out &&
            same_geometry(&net->maps[i].geometry, &simple.geometry)) {
            *number = i;
            return VXD_OK;
        }
    }
    if (net->n_maps == net->n_layers) {
        return vxd_fail(err, VXD_INTERNAL, NULL, "more kernel maps than layers");
    }
    *number = net->n_maps;
    net->maps[net->n_maps++] = simple;
    return VXD_OK;
}
