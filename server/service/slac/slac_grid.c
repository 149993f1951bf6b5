// SPDX-License-Identifier: Apache-2.0
/* Control grids of named maps. */
#include "server/service/slac/slac_service.h"

enum vxd_status vxd_slac_find_map(struct vxd_names *maps, const char *name,
                                  const char *field, struct vxd_map **out,
                                  struct vxd_err *err)
{
    *out = vxd_maps_find(maps, name);
    if (*out == NULL) {
        return vxd_fail(err, VXD_NOT_FOUND, field, "there is no map \"%.63s\"", name);
    }
    return vxd_named_check_visible(&(*out)->named, err);
}

enum vxd_status vxd_slac_open_grid(struct vxd_queue *queue, const struct vxd_map *map,
                                   const char *field, struct vxd_deform **out,
                                   struct vxd_err *err)
{
    const struct vxd_map_spec *spec = &map->spec;
    struct vxd_deform_lattice lattice = {.cell_m = spec->size_m[0]};
    int array = vxd_map_find_array(spec, VXD_SLAC_OFFSET_NAME);
    enum vxd_status status;

    *out = NULL;
    if (!spec->has_lattice || spec->size_m[1] != spec->size_m[0] ||
        spec->size_m[2] != spec->size_m[0]) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "the map \"%s\" is no control grid: it has no lattice of cubes",
                        map->named.terms.name);
    }
    if (array < 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "the map \"%s\" is no control grid: it has no array \"%s\"",
                        map->named.terms.name, VXD_SLAC_OFFSET_NAME);
    }
    memcpy(lattice.origin_m, spec->origin_m, sizeof lattice.origin_m);
    status = vxd_deform_create(queue, map->hashmap, array, &lattice, out, err);
    if (status == VXD_INVALID_ARGUMENT && err != NULL) {
        (void)snprintf(err->field, sizeof err->field, "%s", field);
    }
    return status;
}
