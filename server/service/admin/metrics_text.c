// SPDX-License-Identifier: Apache-2.0
/* The text exposition format, version 0.0.4. */
#include <inttypes.h>

#include "gpu/core/core.h"
#include "server/request/request.h"
#include "server/registry/maps/maps.h"
#include "server/registry/networks/networks.h"
#include "server/observe/metrics_internal.h"
#include "server/observe/observe.h"
#include "server/durable/journal/journal.h"
#include "server/registry/scenes/scenes.h"
#include "server/instance/instance.h"
#include "server/schedule/schedule.h"

static void describe(struct vxd_text *text, const char *name, const char *type,
                     const char *help)
{
    vxd_text_printf(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_uint(struct vxd_text *text, const char *name, const char *type,
                       const char *help, uint64_t value)
{
    describe(text, name, type, help);
    vxd_text_printf(text, "%s %" PRIu64 "\n", name, value);
}

static void write_real(struct vxd_text *text, const char *name, const char *type,
                       const char *help, double value)
{
    describe(text, name, type, help);
    vxd_text_printf(text, "%s %.17g\n", name, value);
}

/* The label is "" or `op="voxelize"`. */
static void write_histogram(struct vxd_text *text, const char *name, const char *label,
                            const double *bounds, const struct vxd_histogram *histogram)
{
    const char *comma = label[0] != '\0' ? "," : "";
    uint64_t cumulative = 0;
    uint64_t n = atomic_load(&histogram->n);

    for (int i = 0; i < VXD_METRICS_BUCKETS; i++) {
        cumulative += atomic_load(&histogram->buckets[i]);
        vxd_text_printf(text, "%s_bucket{%s%sle=\"%g\"} %" PRIu64 "\n", name, label,
                        comma, bounds[i], cumulative);
    }
    /* Counting goes on meanwhile; +Inf is never below the buckets. */
    n = n < cumulative ? cumulative : n;
    vxd_text_printf(text, "%s_bucket{%s%sle=\"+Inf\"} %" PRIu64 "\n", name, label, comma,
                    n);
    vxd_text_printf(text, "%s_sum%s%s%s %.9f\n", name, label[0] != '\0' ? "{" : "", label,
                    label[0] != '\0' ? "}" : "",
                    (double)atomic_load(&histogram->sum_ns) / 1e9);
    vxd_text_printf(text, "%s_count%s%s%s %" PRIu64 "\n", name,
                    label[0] != '\0' ? "{" : "", label, label[0] != '\0' ? "}" : "", n);
}

/* Rows of the method table, then the one for unknown methods; NULL past the end. */
static const char *op_name(const struct vxd_method_table *table, size_t row,
                           size_t *index)
{
    if (row < table->n_methods) {
        *index = row;
        return table->methods[row].name;
    }
    *index = VXD_METRICS_MAX_METHODS - 1;
    return row == table->n_methods ? "unknown" : NULL;
}

static void write_requests(const struct vxd_metrics *metrics,
                           const struct vxd_method_table *table, struct vxd_text *text)
{
    const char *op;
    size_t index;

    describe(text, "voxeld_requests_total", "counter", "Requests answered.");
    for (size_t row = 0; (op = op_name(table, row, &index)) != NULL; row++) {
        for (int code = 0; code < VXD_METRICS_CODES; code++) {
            uint64_t n = atomic_load(&metrics->methods[index].requests[code]);

            if (n > 0 || (code == VXD_OK && index != VXD_METRICS_MAX_METHODS - 1)) {
                vxd_text_printf(
                    text, "voxeld_requests_total{op=\"%s\",code=\"%s\"} %" PRIu64 "\n",
                    op, vxd_status_name((enum vxd_status)code), n);
            }
        }
    }
    describe(text, "voxeld_request_duration_seconds", "histogram",
             "From arrival to reply.");
    for (size_t row = 0; (op = op_name(table, row, &index)) != NULL; row++) {
        char label[80];

        (void)snprintf(label, sizeof label, "op=\"%s\"", op);
        if (atomic_load(&metrics->methods[index].duration.n) > 0) {
            write_histogram(text, "voxeld_request_duration_seconds", label,
                            vxd_metrics_bounds, &metrics->methods[index].duration);
        }
    }
    describe(text, "voxeld_queue_wait_seconds", "histogram",
             "From arrival until the engine took the request.");
    write_histogram(text, "voxeld_queue_wait_seconds", "", vxd_metrics_bounds,
                    &metrics->queue_wait);
    describe(text, "voxeld_scene_publish_seconds", "histogram",
             "From a version's end, or its place on the disk, until everybody sees it.");
    write_histogram(text, "voxeld_scene_publish_seconds", "", vxd_metrics_small_bounds,
                    &metrics->publish);
    write_uint(text, "voxeld_superseded_total", "counter",
               "Requests superseded by newer ones of their stream.",
               atomic_load(&metrics->superseded));
    describe(text, "voxeld_rejected_total", "counter", "Requests refused on arrival.");
    for (int i = 0; i < VXD_METRICS_REASONS; i++) {
        vxd_text_printf(text, "voxeld_rejected_total{reason=\"%s\"} %" PRIu64 "\n",
                        vxd_metrics_reasons[i], atomic_load(&metrics->rejected[i]));
    }
    write_uint(text, "voxeld_points_total", "counter", "Points voxelized.",
               atomic_load(&metrics->points));
}

static void write_memory(struct vxd_text *text, const char *name, const char *help,
                         size_t used, size_t peak, size_t budget)
{
    describe(text, name, "gauge", help);
    vxd_text_printf(text, "%s{use=\"used\"} %zu\n%s{use=\"peak\"} %zu\n", name, used,
                    name, peak);
    vxd_text_printf(text, "%s{use=\"budget\"} %zu\n", name, budget);
}

static void write_maps(const struct vxd_server *server, struct vxd_text *text)
{
    struct vxd_maps_usage maps;
    struct vxd_once_usage once;

    vxd_maps_get_usage(server->maps, &maps);
    vxd_once_get_usage(server->once, &once);
    write_uint(text, "voxeld_maps", "gauge", "Named hash maps.", maps.n_maps);
    describe(text, "voxeld_map_bytes", "gauge", "Device memory of named hash maps.");
    vxd_text_printf(text,
                    "voxeld_map_bytes{use=\"used\"} %" PRIu64
                    "\nvoxeld_map_bytes{use=\"budget\"} %" PRIu64 "\n",
                    maps.n_bytes, maps.limit_bytes);
    write_uint(text, "voxeld_durable_maps", "gauge", "Of the maps, those on the disk.",
               maps.n_durable);
    describe(text, "voxeld_map_snapshots_total", "counter",
             "Snapshot files of durable maps.");
    vxd_text_printf(text,
                    "voxeld_map_snapshots_total{result=\"written\"} %" PRIu64
                    "\nvoxeld_map_snapshots_total{result=\"failed\"} %" PRIu64 "\n",
                    maps.n_snapshots, maps.n_failed_snapshots);
    write_uint(text, "voxeld_replay_clients", "gauge",
               "Clients whose outcomes are remembered.", once.n_clients);
    write_uint(text, "voxeld_replay_outcomes", "gauge", "Outcomes remembered or awaited.",
               once.n_outcomes);
    write_uint(text, "voxeld_replay_bytes", "gauge", "Memory of remembered outcomes.",
               once.n_bytes);
}

static void write_networks(const struct vxd_server *server, struct vxd_text *text)
{
    struct vxd_networks_usage networks;

    vxd_networks_get_usage(server->networks, &networks);
    write_uint(text, "voxeld_networks", "gauge", "Loaded networks.", networks.n_networks);
    describe(text, "voxeld_network_bytes", "gauge",
             "Device memory of networks' weights.");
    vxd_text_printf(text,
                    "voxeld_network_bytes{use=\"used\"} %" PRIu64
                    "\nvoxeld_network_bytes{use=\"budget\"} %" PRIu64 "\n",
                    networks.n_bytes, networks.limit_bytes);
}

static void write_scenes(const struct vxd_server *server, struct vxd_text *text)
{
    struct vxd_scenes_usage scenes;

    vxd_scenes_get_usage(server->scenes, &scenes);
    write_uint(text, "voxeld_scenes", "gauge", "Scenes.", scenes.n_scenes);
    describe(text, "voxeld_scene_bytes", "gauge", "Device memory of scenes.");
    vxd_text_printf(text,
                    "voxeld_scene_bytes{use=\"used\"} %" PRIu64
                    "\nvoxeld_scene_bytes{use=\"budget\"} %" PRIu64 "\n",
                    scenes.n_bytes, scenes.limit_bytes);
    write_uint(text, "voxeld_scene_collections_total", "counter",
               "Collections of scenes.", scenes.n_collections);
    write_uint(text, "voxeld_scene_collected_bytes_total", "counter",
               "Device memory that they gave back.", scenes.collected_bytes);
}

static void write_journal(const struct vxd_server *server, struct vxd_text *text)
{
    struct vxd_journal *journal = vxd_scenes_get_journal(server->scenes);
    struct vxd_journal_stats stats = {.is_available = true};

    if (journal != NULL) {
        vxd_journal_get_stats(journal, &stats);
    }
    write_uint(text, "voxeld_journal_available", "gauge",
               "1 while the disk takes changes, 0 while they are refused.",
               stats.is_available ? 1 : 0);
    write_uint(text, "voxeld_journal_lost_total", "counter",
               "Acknowledged changes that the start found missing in the journal.",
               stats.n_lost);
    write_uint(text, "voxeld_journal_failed_total", "counter",
               "Transactions that were not written.", stats.n_failed);
}

static void write_process(const struct vxd_server *server, struct vxd_text *text)
{
    struct vxd_process_usage usage;

    vxd_process_get_usage(&usage);
    write_real(text, "process_cpu_seconds_total", "counter", "User and system CPU time.",
               usage.cpu_seconds);
    write_uint(text, "process_resident_memory_bytes", "gauge", "Resident memory.",
               usage.resident_bytes);
    write_uint(text, "process_virtual_memory_bytes", "gauge", "Virtual memory.",
               usage.virtual_bytes);
    write_uint(text, "process_open_fds", "gauge", "Open file descriptors.",
               usage.n_open_fds);
    write_real(text, "process_start_time_seconds", "gauge", "Start, Unix time.",
               (double)server->started_unix_ns / 1e9);
}

void vxd_metrics_write(struct vxd_server *server, struct vxd_text *text)
{
    struct vxd_scheduler_load load;
    struct vxd_memory_usage memory;
    char backend[32];

    vxd_scheduler_get_load(server->scheduler, &load);
    vxd_context_get_memory(server->context, &memory);
    vxd_server_backend_name(server, backend, sizeof backend);
    write_requests(server->metrics, server->methods, text);
    write_uint(text, "voxeld_queue_depth", "gauge", "Requests waiting.", load.n_queued);
    write_uint(text, "voxeld_running", "gauge", "Requests begun and not finished.",
               load.n_running);
    write_uint(text, "voxeld_inflight_bytes", "gauge",
               "Bytes of requests received and not answered.",
               atomic_load(&server->inflight_bytes));
    write_memory(text, "voxeld_device_memory_bytes", "Engine memory on the device.",
                 memory.device_bytes, memory.device_peak_bytes,
                 memory.device_budget_bytes);
    write_memory(text, "voxeld_host_memory_bytes", "Engine memory on the host.",
                 memory.host_bytes, memory.host_peak_bytes, memory.host_budget_bytes);
    write_maps(server, text);
    write_networks(server, text);
    write_scenes(server, text);
    write_journal(server, text);
    describe(text, "voxeld_build_info", "gauge", "Always 1.");
    vxd_text_printf(text,
                    "voxeld_build_info{version=\"" VXD_VERSION "\",backend=\"%s\"} 1\n",
                    backend);
    write_process(server, text);
}
