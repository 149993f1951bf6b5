// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>

#include "client/voxelctl/admin/status.h"
#include "client/voxelctl/generated/admin_args.h"
#include "proto/base/clock.h"

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

void ctl_status_print_current(const struct voxeld_server_status *s, size_t n_most)
{
    struct ctl_table table;

    if (s->n_current == 0) {
        return;
    }
    ctl_table_begin(&table,
                    "request|method|by|client|stage|>ms|>waited|>engine|>left ms");
    for (size_t i = 0; i < s->n_current && i < n_most; i++) {
        const struct voxeld_current_request *current = &s->current[i];

        ctl_table_cell(&table, "%s", current->request_id);
        ctl_table_cell(&table, "%s", current->method);
        ctl_table_cell(&table, "%s", current->by);
        ctl_table_cell(&table, "%s", current->client_id);
        ctl_table_cell(&table, "%s",
                       current->stage[0] != '\0' ? current->stage
                       : current->is_running     ? "runs" /* a server older than 0.3.0 */
                                                 : "waits");
        ctl_table_cell(&table, "%.1f", current->total_ms);
        ctl_table_cell(&table, "%.1f", current->wait_ms);
        ctl_table_cell(&table, "%.1f", current->engine_ms);
        ctl_table_cell(&table, "%.0f", current->left_ms);
    }
    ctl_table_end(&table);
    (void)putchar('\n');
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

void ctl_print_status(const struct voxeld_server_status *s)
{
    ctl_status_print_head(s);
    (void)putchar('\n');
    ctl_status_print_memory(s);
    (void)putchar('\n');
    ctl_status_print_current(s, SIZE_MAX);
    print_methods(s);
    if (s->n_slow > 0) {
        (void)putchar('\n');
    }
    ctl_status_print_slow(s, SIZE_MAX);
}
