// SPDX-License-Identifier: Apache-2.0
/* voxelctl posegraph relocalize: the places where scans were taken. */
#include <inttypes.h>

#include "client/voxelctl/generated/posegraph_args.h"

static void print_match(const struct voxeld_posegraph_match *m)
{
    const double *t = m->T_map_sensor.translation_m;
    const double *q = m->T_map_sensor.rotation;

    (void)printf("node %" PRIu64 ": %s%s%s; at %.3f %.3f %.3f, turned %.5f %.5f %.5f "
                 "%.5f; fitness %.2f, rmse %.3f m, descriptor %.3g away\n",
                 m->id, m->accepted ? "matches" : "refused, ",
                 m->accepted ? "" : m->reason, "", t[0], t[1], t[2], q[0], q[1], q[2],
                 q[3], m->fitness, m->rmse_m, m->descriptor_distance);
}

static void print_match_json(const struct voxeld_posegraph_match *m)
{
    const double *t = m->T_map_sensor.translation_m;
    const double *q = m->T_map_sensor.rotation;

    (void)fputc('{', stdout);
    ctl_json_member_count(stdout, true, "id", m->id);
    (void)printf(", \"accepted\": %s", m->accepted ? "true" : "false");
    ctl_json_member_string(stdout, false, "reason", m->reason);
    ctl_json_member_vec3(stdout, false, "translation", t);
    (void)printf(", \"rotation\": [%.17g, %.17g, %.17g, %.17g]", q[0], q[1], q[2], q[3]);
    ctl_json_member_number(stdout, false, "fitness", m->fitness);
    ctl_json_member_number(stdout, false, "rmse_m", m->rmse_m);
    ctl_json_member_number(stdout, false, "constraint", m->constraint);
    ctl_json_member_number(stdout, false, "descriptor_distance", m->descriptor_distance);
    (void)fputc('}', stdout);
}

int ctl_posegraph_relocalize(struct voxeld_client *client,
                             const struct ctl_globals *globals,
                             const struct ctl_posegraph_args *args)
{
    struct voxeld_posegraph_relocalize_request request = {0};
    struct voxeld_posegraph_places *places;
    struct voxeld_cloud *cloud = NULL;
    struct voxeld_error error;
    bool found = false;
    int result;

    ctl_posegraph_relocalize_request(args, &request);
    if (ctl_read_cloud(args->words[1], args->format, &cloud, &error) != VOXELD_OK) {
        return ctl_failed(args->words[1], &error);
    }
    request.cloud = cloud;
    if (voxeld_posegraph_relocalize(client, &request, &places, &error) != VOXELD_OK) {
        voxeld_cloud_free(cloud);
        return ctl_failed(request.posegraph, &error);
    }
    if (globals->json) {
        (void)fputs("{\"matches\": [", stdout);
    }
    for (size_t i = 0; i < places->n_matches; i++) {
        if (globals->json) {
            (void)fputs(i > 0 ? ", " : "", stdout);
            print_match_json(&places->matches[i]);
        } else {
            print_match(&places->matches[i]);
        }
    }
    found = places->n_accepted > 0;
    if (globals->json) {
        (void)printf("], \"n_accepted\": %" PRIu32 "}\n", places->n_accepted);
    } else if (!found) {
        (void)printf("none of %" PRIu64 " keyframes matches\n", places->n_keyframes);
    }
    voxeld_posegraph_places_free(places);
    voxeld_cloud_free(cloud);
    result = ctl_flush();
    return found ? result : CTL_FAILED;
}
