// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>

#include "client/voxelctl/admin/status.h"
#include "client/voxelctl/admin/voxelctl_admin.h"
#include "proto/base/clock.h"

static void json_lists(const struct voxeld_server_status *s)
{
    (void)fputs(", \"memory\": [", stdout);
    for (size_t i = 0; i < s->n_memory; i++) {
        (void)fputs(i > 0 ? ", {" : "{", stdout);
        ctl_json_member_string(stdout, true, "name", s->memory[i].name);
        ctl_json_member_count(stdout, false, "n", s->memory[i].n);
        ctl_json_member_count(stdout, false, "n_bytes", s->memory[i].n_bytes);
        ctl_json_member_count(stdout, false, "limit_bytes", s->memory[i].limit_bytes);
        (void)printf(", \"on_device\": %s}", s->memory[i].on_device ? "true" : "false");
    }
    (void)fputs("], \"methods\": [", stdout);
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

void ctl_status_print_json(const struct voxeld_server_status *s)
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
    json_lists(s);
}

static void add_memory(struct ctl_table *table, const char *name, const char *n,
                       uint64_t used, uint64_t limit)
{
    char text[2][CTL_NUMBER_BYTES];

    ctl_table_cell(table, "%s", name);
    ctl_table_cell(table, "%s", n);
    ctl_table_cell(table, "%s", ctl_bytes(used, text[0]));
    if (limit > 0) {
        ctl_table_cell(table, "%s", ctl_bytes(limit, text[1]));
        ctl_table_cell(table, "%.0f%%", 100 * (double)used / (double)limit);
    } else {
        ctl_table_cell(table, "-");
        ctl_table_cell(table, "-");
    }
}

void ctl_status_print_memory(const struct voxeld_server_status *s)
{
    struct ctl_table table;
    char n[CTL_NUMBER_BYTES];

    ctl_table_begin(&table, "memory|>count|>used|>limit|>full");
    add_memory(&table, "requests in flight", "", s->inflight_bytes,
               s->inflight_limit_bytes);
    add_memory(&table, "device", "", s->device_bytes, s->device_budget_bytes);
    add_memory(&table, "host", "", s->host_bytes, s->host_budget_bytes);
    add_memory(&table, "process", "", s->resident_bytes, 0);
    if (s->n_memory == 0) { /* a server older than 0.2.0 */
        add_memory(&table, "maps", ctl_thousands(s->n_maps, n), s->map_bytes,
                   s->map_limit_bytes);
        add_memory(&table, "networks", ctl_thousands(s->n_networks, n), s->network_bytes,
                   s->network_limit_bytes);
        add_memory(&table, "scenes", ctl_thousands(s->n_scenes, n), s->scene_bytes,
                   s->scene_limit_bytes);
    }
    for (size_t i = 0; i < s->n_memory; i++) {
        const struct voxeld_memory_owner *owner = &s->memory[i];
        bool is_rest = strcmp(owner->name, "others") == 0;

        add_memory(&table, owner->name, is_rest ? "" : ctl_thousands(owner->n, n),
                   owner->n_bytes, owner->limit_bytes);
    }
    ctl_table_end(&table);
}

/* Those that were called. */
static void print_methods(const struct voxeld_server_status *s)
{
    struct ctl_table table;
    char text[CTL_NUMBER_BYTES];

    ctl_table_begin(&table, "method|>ok|>failed|>mean ms");
    for (size_t i = 0; i < s->n_methods; i++) {
        if (s->methods[i].n_ok + s->methods[i].n_failed == 0) {
            continue;
        }
        ctl_table_cell(&table, "%s", s->methods[i].name);
        ctl_table_cell(&table, "%s", ctl_thousands(s->methods[i].n_ok, text));
        ctl_table_cell(&table, "%s", ctl_thousands(s->methods[i].n_failed, text));
        ctl_table_cell(&table, "%.2f", s->methods[i].mean_ms);
    }
    ctl_table_end(&table);
}

void ctl_status_print_slow(const struct voxeld_server_status *s, size_t n_most)
{
    struct ctl_table table;
    int64_t now_ns = vxd_clock_unix_ns();
    char text[CTL_NUMBER_BYTES];

    if (s->n_slow == 0) {
        return;
    }
    ctl_table_begin(&table, "slow request|method|client|outcome|>ms|>queued ms|>ago");
    for (size_t i = 0; i < s->n_slow && i < n_most; i++) {
        const struct voxeld_slow_request *slow = &s->slow[i];
        double ago_s = (double)(now_ns - slow->finished_ns) / 1e9;

        ctl_table_cell(&table, "%s", slow->request_id);
        ctl_table_cell(&table, "%s", slow->method);
        ctl_table_cell(&table, "%s", slow->client_id);
        ctl_table_cell(&table, "%s", voxeld_status_name(slow->code));
        ctl_table_cell(&table, "%.1f", slow->total_ms);
        ctl_table_cell(&table, "%.1f", slow->queue_ms);
        ctl_table_cell(&table, "%s",
                       slow->finished_ns > 0 ? ctl_duration(ago_s > 0 ? ago_s : 0, text)
                                             : "-");
    }
    ctl_table_end(&table);
}

void ctl_status_print_head(const struct voxeld_server_status *s)
{
    bool is_serving = strcmp(s->state, "serving") == 0;
    char up[CTL_NUMBER_BYTES];

    (void)printf("%s%s%s for %s; %" PRIu64 " requests run, %" PRIu64 " of %" PRIu64
                 " places in the queue are taken\n",
                 ctl_style(stdout, is_serving ? CTL_GREEN : CTL_RED), s->state,
                 ctl_style(stdout, CTL_PLAIN), ctl_duration(s->uptime_s, up), s->running,
                 s->queue_depth, s->queue_limit);
}

static void print_text(const struct voxeld_server_status *s)
{
    ctl_status_print_head(s);
    (void)putchar('\n');
    ctl_status_print_memory(s);
    (void)putchar('\n');
    print_methods(s);
    if (s->n_slow > 0) {
        (void)putchar('\n');
    }
    ctl_status_print_slow(s, SIZE_MAX);
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
            ctl_status_print_json(status);
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
        "budgets, who holds it (maps, scenes, distance fields, volumes, pose graphs,\n"
        "odometries, networks, alignments that run, remembered outcomes, and others:\n"
        "requests that run), what each method that was called did since the start, and "
        "the\n"
        "slowest recent requests, newest first (\"voxelctl why ID\" explains one).\n"
        "\"voxelctl top\" shows it live. The shared options: voxelctl --help.\n",
    .run = run,
};
