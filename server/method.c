// SPDX-License-Identifier: Apache-2.0
#include "server/method.h"

#include <string.h>

#include "server/service/service.h"
#include "voxeld/v1/rpc.pb-c.h"

static const struct vxd_method methods[] = {
    {.name = "server_info",
     .tag = VOXELD__V1__REQUEST__METHOD_SERVER_INFO,
     .summary = "What this server is and what it accepts.",
     .scope = VXD_SCOPE_READ,
     .lane = VXD_LANE_NONE,
     .input = &voxeld__v1__server_info_request__descriptor,
     .output = &voxeld__v1__server_info_response__descriptor,
     .check = vxd_server_info_check},
    {.name = "status",
     .tag = VOXELD__V1__REQUEST__METHOD_STATUS,
     .summary = "State, load, memory, totals by method, slow requests.",
     .scope = VXD_SCOPE_READ,
     .lane = VXD_LANE_NONE,
     .input = &voxeld__v1__status_request__descriptor,
     .output = &voxeld__v1__status_response__descriptor,
     .check = vxd_status_check},
    {.name = "self_test",
     .tag = VOXELD__V1__REQUEST__METHOD_SELF_TEST,
     .summary = "Burn-in: the same random cloud again and again, compared bit for bit.",
     .scope = VXD_SCOPE_ADMIN,
     .lane = VXD_LANE_READ,
     .input = &voxeld__v1__self_test_request__descriptor,
     .output = &voxeld__v1__self_test_response__descriptor,
     .check = vxd_self_test_check,
     .submit = vxd_self_test_submit,
     .finish = vxd_self_test_finish,
     .release = vxd_self_test_release},
    {.name = "set_log_level",
     .tag = VOXELD__V1__REQUEST__METHOD_SET_LOG_LEVEL,
     .summary = "Changes what is logged until the next start or reload.",
     .scope = VXD_SCOPE_ADMIN,
     .lane = VXD_LANE_NONE,
     .input = &voxeld__v1__set_log_level_request__descriptor,
     .output = &voxeld__v1__set_log_level_response__descriptor,
     .check = vxd_set_log_level_check},
    {.name = "voxelize",
     .tag = VOXELD__V1__REQUEST__METHOD_VOXELIZE,
     .summary = "Point clouds to unique voxels with reduced features.",
     .scope = VXD_SCOPE_READ,
     .lane = VXD_LANE_READ,
     .input = &voxeld__v1__voxelize_request__descriptor,
     .output = &voxeld__v1__voxelize_response__descriptor,
     .changes = vxd_voxelize_changes,
     .check = vxd_voxelize_check,
     .submit = vxd_voxelize_submit,
     .finish = vxd_voxelize_finish,
     .release = vxd_voxelize_release,
     .from_file = vxd_voxelize_from_file},
    {.name = "map_create",
     .tag = VOXELD__V1__REQUEST__METHOD_MAP_CREATE,
     .summary = "Makes a named hash map, empty.",
     .scope = VXD_SCOPE_WRITE,
     .lane = VXD_LANE_WRITE,
     .input = &voxeld__v1__map_create_request__descriptor,
     .output = &voxeld__v1__map_create_response__descriptor,
     .changes = vxd_map_changes,
     .check = vxd_map_create_check,
     .submit = vxd_map_create_submit,
     .finish = vxd_map_create_finish,
     .release = vxd_map_release},
    {.name = "map_drop",
     .tag = VOXELD__V1__REQUEST__METHOD_MAP_DROP,
     .summary = "Drops a map.",
     .scope = VXD_SCOPE_WRITE,
     .lane = VXD_LANE_WRITE,
     .input = &voxeld__v1__map_drop_request__descriptor,
     .output = &voxeld__v1__map_drop_response__descriptor,
     .changes = vxd_map_changes,
     .check = vxd_map_drop_check,
     .submit = vxd_map_drop_submit,
     .finish = vxd_map_drop_finish,
     .release = vxd_map_release},
    {.name = "map_list",
     .tag = VOXELD__V1__REQUEST__METHOD_MAP_LIST,
     .summary = "The maps, by name.",
     .scope = VXD_SCOPE_READ,
     .lane = VXD_LANE_WRITE,
     .input = &voxeld__v1__map_list_request__descriptor,
     .output = &voxeld__v1__map_list_response__descriptor,
     .check = vxd_map_list_check,
     .submit = vxd_map_list_submit,
     .finish = vxd_map_done,
     .release = vxd_map_release},
    {.name = "map_get",
     .tag = VOXELD__V1__REQUEST__METHOD_MAP_GET,
     .summary = "One map: spec, size, load.",
     .scope = VXD_SCOPE_READ,
     .lane = VXD_LANE_WRITE,
     .input = &voxeld__v1__map_get_request__descriptor,
     .output = &voxeld__v1__map_get_response__descriptor,
     .check = vxd_map_get_check,
     .submit = vxd_map_get_submit,
     .finish = vxd_map_done,
     .release = vxd_map_release},
    {.name = "map_insert",
     .tag = VOXELD__V1__REQUEST__METHOD_MAP_INSERT,
     .summary = "Inserts keys that are not there yet, with values.",
     .scope = VXD_SCOPE_WRITE,
     .lane = VXD_LANE_WRITE,
     .input = &voxeld__v1__map_insert_request__descriptor,
     .output = &voxeld__v1__map_insert_response__descriptor,
     .changes = vxd_map_changes,
     .check = vxd_map_insert_check,
     .submit = vxd_map_insert_submit,
     .finish = vxd_map_insert_finish,
     .release = vxd_map_release},
    {.name = "map_find",
     .tag = VOXELD__V1__REQUEST__METHOD_MAP_FIND,
     .summary = "Finds keys, or reads entries by number; neighbours too.",
     .scope = VXD_SCOPE_READ,
     .lane = VXD_LANE_WRITE,
     .input = &voxeld__v1__map_find_request__descriptor,
     .output = &voxeld__v1__map_find_response__descriptor,
     .check = vxd_map_find_check,
     .submit = vxd_map_find_submit,
     .finish = vxd_map_find_finish,
     .release = vxd_map_release},
    {.name = "map_erase",
     .tag = VOXELD__V1__REQUEST__METHOD_MAP_ERASE,
     .summary = "Erases keys, or all.",
     .scope = VXD_SCOPE_WRITE,
     .lane = VXD_LANE_WRITE,
     .input = &voxeld__v1__map_erase_request__descriptor,
     .output = &voxeld__v1__map_erase_response__descriptor,
     .changes = vxd_map_changes,
     .check = vxd_map_erase_check,
     .submit = vxd_map_erase_submit,
     .finish = vxd_map_erase_finish,
     .release = vxd_map_release},
    {.name = "map_update",
     .tag = VOXELD__V1__REQUEST__METHOD_MAP_UPDATE,
     .summary = "Sets, adds to, or takes minima or maxima of value rows.",
     .scope = VXD_SCOPE_WRITE,
     .lane = VXD_LANE_WRITE,
     .input = &voxeld__v1__map_update_request__descriptor,
     .output = &voxeld__v1__map_update_response__descriptor,
     .changes = vxd_map_changes,
     .check = vxd_map_update_check,
     .submit = vxd_map_update_submit,
     .finish = vxd_map_update_finish,
     .release = vxd_map_release},
    {.name = "map_export",
     .tag = VOXELD__V1__REQUEST__METHOD_MAP_EXPORT,
     .summary = "Keys and values of all entries, as tensors or PLY.",
     .scope = VXD_SCOPE_READ,
     .lane = VXD_LANE_WRITE,
     .input = &voxeld__v1__map_export_request__descriptor,
     .output = &voxeld__v1__map_export_response__descriptor,
     .check = vxd_map_export_check,
     .submit = vxd_map_export_submit,
     .finish = vxd_map_export_finish,
     .release = vxd_map_release},
    {.name = "map_save",
     .tag = VOXELD__V1__REQUEST__METHOD_MAP_SAVE,
     .summary = "Saves a map in the data directory.",
     .scope = VXD_SCOPE_WRITE,
     .lane = VXD_LANE_WRITE,
     .input = &voxeld__v1__map_save_request__descriptor,
     .output = &voxeld__v1__map_save_response__descriptor,
     .changes = vxd_map_changes,
     .check = vxd_map_save_check,
     .submit = vxd_map_save_submit,
     .finish = vxd_map_done,
     .release = vxd_map_release},
    {.name = "map_load",
     .tag = VOXELD__V1__REQUEST__METHOD_MAP_LOAD,
     .summary = "Makes a map of a saved file.",
     .scope = VXD_SCOPE_WRITE,
     .lane = VXD_LANE_WRITE,
     .input = &voxeld__v1__map_load_request__descriptor,
     .output = &voxeld__v1__map_load_response__descriptor,
     .changes = vxd_map_changes,
     .check = vxd_map_load_check,
     .submit = vxd_map_load_submit,
     .finish = vxd_map_load_finish,
     .release = vxd_map_release},
};
#define N_METHODS (sizeof methods / sizeof methods[0])

const struct vxd_method *vxd_methods(size_t *n_methods)
{
    *n_methods = N_METHODS;
    return methods;
}

const struct vxd_method *vxd_method_by_tag(uint32_t tag)
{
    for (size_t i = 0; i < N_METHODS; i++) {
        if (methods[i].tag == tag) {
            return &methods[i];
        }
    }
    return NULL;
}

const struct vxd_method *vxd_method_by_name(const char *name)
{
    for (size_t i = 0; i < N_METHODS; i++) {
        if (strcmp(methods[i].name, name) == 0) {
            return &methods[i];
        }
    }
    return NULL;
}

/* A method of a test's own counts among the unknown ones. */
size_t vxd_method_index(const struct vxd_method *method)
{
    for (size_t i = 0; i < N_METHODS; i++) {
        if (method == &methods[i]) {
            return i;
        }
    }
    return SIZE_MAX;
}
