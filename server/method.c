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
     .check = vxd_voxelize_check,
     .submit = vxd_voxelize_submit,
     .finish = vxd_voxelize_finish,
     .release = vxd_voxelize_release,
     .from_file = vxd_voxelize_from_file},
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
