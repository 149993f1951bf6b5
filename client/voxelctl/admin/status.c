// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>

#include "client/voxelctl/admin/voxelctl_admin.h"

static void json_methods(const struct voxeld_server_status *s)
{
    (void)fputs(", \"methods\": [", stdout);
    for (size_t i = 0; i < s->n_methods; i++) {
        (void)fputs(i > 0 ? ", {" : "{", stdout);
        ctl_json_member_string(stdout, true, "name", s->methods[i].name);
        ctl_json_member_count(stdout, false, "n_ok", s->methods[i].n_ok);
        ctl_json_member_count(stdout, false, "n_failed", s->methods[i].n_failed);
        ctl_json_member_number(stdout, false, "mean_ms", s->methods[i].mean_ms);
        (void)fputc('}', stdout);
    }
    (void)fputs("], \"slow\": [", stdout);
    for (size_t i = 0; i < s->n_slow; i++) {
        (void)fputs(i > 0 ? ", {" : "{", stdout);
        ctl_json_member_string(stdout, true, "request_id", s->slow[i].request_id);
        ctl_json_member_string(stdout, false, "method", s->slow[i].method);
        ctl_json_member_string(stdout, false, "client_id", s->slow[i].client_id);
        ctl_json_member_string(stdout, false, "code",
                               voxeld_status_name(s->slow[i].code));
        ctl_json_member_number(stdout, false, "queue_ms", s->slow[i].queue_ms);
        ctl_json_member_number(stdout, false, "total_ms", s->slow[i].total_ms);
        (void)printf(", \"finished_ns\": %" PRId64 "}", s->slow[i].finished_ns);
    }
    (void)fputs("]}\n", stdout);
}

static void print_json(const struct voxeld_server_status *s)
{
    (void)fputc('{', stdout);
    ctl_json_member_string(stdout, true, "state", s->state);
    ctl_json_member_number(stdout, false, "uptime_s", s->uptime_s);
    ctl_json_member_count(stdout, false, "queue_depth", s->queue_depth);
    ctl_json_member_count(stdout, false, "queue_limit", s->queue_limit);
    ctl_json_member_count(stdout, false, "running", s->running);
    ctl_json_member_count(stdout, false, "inflight_bytes", s->inflight_bytes);
    ctl_json_member_count(stdout, false, "inflight_limit_bytes", s->inflight_limit_bytes);
    ctl_json_member_count(stdout, false, "device_bytes", s->device_bytes);
    ctl_json_member_count(stdout, false, "device_budget_bytes", s->device_budget_bytes);
    ctl_json_member_count(stdout, false, "host_bytes", s->host_bytes);
    ctl_json_member_count(stdout, false, "host_budget_bytes", s->host_budget_bytes);
    ctl_json_member_count(stdout, false, "resident_bytes", s->resident_bytes);
    ctl_json_member_count(stdout, false, "n_maps", s->n_maps);
    ctl_json_member_count(stdout, false, "map_bytes", s->map_bytes);
    ctl_json_member_count(stdout, false, "map_limit_bytes", s->map_limit_bytes);
    ctl_json_member_count(stdout, false, "n_networks", s->n_networks);
    ctl_json_member_count(stdout, false, "network_bytes", s->network_bytes);
    ctl_json_member_count(stdout, false, "network_limit_bytes", s->network_limit_bytes);
    ctl_json_member_count(stdout, false, "n_scenes", s->n_scenes);
    ctl_json_member_count(stdout, false, "scene_bytes", s->scene_bytes);
    ctl_json_member_count(stdout, false, "scene_limit_bytes", s->scene_limit_bytes);
    json_methods(s);
}

static void print_bytes(const char *name, uint64_t used, uint64_t limit)
{
    (void)printf("%-16s %.1f MB of %.1f MB\n", name, (double)used / 1e6,
                 (double)limit / 1e6);
}

static void print_kept(const char *name, uint64_t n, uint64_t used, uint64_t limit)
{
    (void)printf("%-16s %" PRIu64 ", %.1f MB of %.1f MB\n", name, n, (double)used / 1e6,
                 (double)limit / 1e6);
}

static void print_text(const struct voxeld_server_status *s)
{
    (void)printf("%s for %.0f s\n", s->state, s->uptime_s);
    (void)printf("requests         %" PRIu64 " running, %" PRIu64 " of %" PRIu64
                 " places in the queue taken\n",
                 s->running, s->queue_depth, s->queue_limit);
    print_bytes("in flight", s->inflight_bytes, s->inflight_limit_bytes);
    print_bytes("device memory", s->device_bytes, s->device_budget_bytes);
    print_bytes("host memory", s->host_bytes, s->host_budget_bytes);
    (void)printf("resident         %.1f MB\n", (double)s->resident_bytes / 1e6);
    print_kept("maps", s->n_maps, s->map_bytes, s->map_limit_bytes);
    print_kept("networks", s->n_networks, s->network_bytes, s->network_limit_bytes);
    print_kept("scenes", s->n_scenes, s->scene_bytes, s->scene_limit_bytes);
    for (size_t i = 0; i < s->n_methods; i++) {
        (void)printf("%-16s %" PRIu64 " ok, %" PRIu64 " failed, %.2f ms on average\n",
                     s->methods[i].name, s->methods[i].n_ok, s->methods[i].n_failed,
                     s->methods[i].mean_ms);
    }
    for (size_t i = 0; i < s->n_slow; i++) {
        (void)printf("slow             %s %s: %s, %.1f ms, %.1f of it in the queue\n",
                     s->slow[i].method, s->slow[i].request_id,
                     voxeld_status_name(s->slow[i].code), s->slow[i].total_ms,
                     s->slow[i].queue_ms);
    }
}

static int run(struct ctl_globals *globals, int argc, char **argv)
{
    struct voxeld_client *client;
    struct voxeld_server_status *status = NULL;
    struct voxeld_error error;
    int result;

    if (ctl_plain_options(globals, &ctl_status, argc, argv, 0, 0, &result)) {
        return result;
    }
    client = ctl_connect(globals);
    if (client == NULL) {
        return CTL_FAILED;
    }
    if (voxeld_get_status(client, NULL, &status, &error) != VOXELD_OK) {
        result = ctl_failed("status", &error);
    } else {
        if (globals->json) {
            print_json(status);
        } else {
            print_text(status);
        }
        result = ctl_flush();
        voxeld_server_status_free(status);
    }
    voxeld_close(client);
    return result;
}

const struct ctl_command ctl_status = {
    .name = "status",
    .summary = "load, memory and slow requests of the daemon",
    .help =
        "voxelctl status - load, memory and slow requests of the daemon\n"
        "\n"
        "usage: voxelctl status [--json] [OPTIONS]\n"
        "\n"
        "Prints the state (serving, draining, lost), the queue, memory against its\n"
        "budgets, how many maps, networks and scenes there are and the device memory\n"
        "they take, what each method did since the start, and the slowest recent\n"
        "requests, newest first. The shared options: voxelctl --help.\n",
    .run = run,
};
