// SPDX-License-Identifier: Apache-2.0
/* The text of /metrics: the counters, and gauges of what the server has at the moment. */
#include "server/service/admin/admin.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "gpu/core/core.h"
#include "server/instance/instance.h"
#include "server/observe/log/log.h"
#include "server/observe/observe.h"
#include "server/registry/maps/maps.h"
#include "server/registry/networks/networks.h"
#include "server/registry/registry.h"
#include "server/registry/scenes/scenes.h"
#include "server/registry/posegraphs/posegraphs.h"
#include "server/registry/odometries/odometries.h"
#include "server/registry/volumes/volumes.h"
#include "server/request/request.h"
#include "server/schedule/schedule.h"
#include "server/service/watch/watch.h"
#include "server/transport/tls/tls.h"

enum {
    MAX_TOKENS = 256 /* labels */
};

/* Two values of a metric, each with a label of its own. */
static void write_two(struct vxd_text *text, const char *name, const char *kind,
                      const char *help, const char *const labels[2], uint64_t first,
                      uint64_t second)
{
    vxd_metrics_describe(text, name, kind, help);
    vxd_text_printf(text, "%s{%s} %" PRIu64 "\n%s{%s} %" PRIu64 "\n", name, labels[0],
                    first, name, labels[1], second);
}

static const char *const of_budget[2] = {"use=\"used\"", "use=\"budget\""};
static const char *const of_result[2] = {"result=\"written\"", "result=\"failed\""};

/* What is counted of every noun whose things may be durable: each metric, and what it is. */
struct named_metrics {
    const char *n[2];
    const char *bytes[2];
    const char *durable[2];
    const char *snapshots[2];
};

static const struct named_metrics of_maps = {
    {"voxeld_maps", "Named hash maps."},
    {"voxeld_map_bytes", "Device memory of named hash maps."},
    {"voxeld_durable_maps", "Of the maps, those on the disk."},
    {"voxeld_map_snapshots_total", "Snapshot files of durable maps."}};
static const struct named_metrics of_volumes = {
    {"voxeld_volumes", "Named volumes."},
    {"voxeld_volume_bytes", "Device memory of named volumes."},
    {"voxeld_durable_volumes", "Of the volumes, those on the disk."},
    {"voxeld_volume_snapshots_total", "Snapshot files of durable volumes."}};
static const struct named_metrics of_posegraphs = {
    {"voxeld_posegraphs", "Named pose graphs."},
    {"voxeld_posegraph_bytes", "Host memory of named pose graphs."},
    {"voxeld_durable_posegraphs", "Of the pose graphs, those on the disk."},
    {"voxeld_posegraph_snapshots_total", "Snapshot files of durable pose graphs."}};

static void write_named(const struct vxd_names *names, const struct named_metrics *of,
                        struct vxd_text *text)
{
    struct vxd_names_usage usage;

    vxd_names_get_usage(names, &usage);
    vxd_metrics_write_uint(text, of->n[0], "gauge", of->n[1], usage.n);
    write_two(text, of->bytes[0], "gauge", of->bytes[1], of_budget, usage.n_bytes,
              usage.limit_bytes);
    vxd_metrics_write_uint(text, of->durable[0], "gauge", of->durable[1],
                           usage.n_durable);
    write_two(text, of->snapshots[0], "counter", of->snapshots[1], of_result,
              usage.n_snapshots, usage.n_failed_snapshots);
}

static void write_replays(const struct vxd_server *server, struct vxd_text *text)
{
    struct vxd_once_usage once;

    vxd_once_get_usage(server->once, &once);
    vxd_metrics_write_uint(text, "voxeld_replay_clients", "gauge",
                           "Clients whose outcomes are remembered.", once.n_clients);
    vxd_metrics_write_uint(text, "voxeld_replay_outcomes", "gauge",
                           "Outcomes remembered or awaited.", once.n_outcomes);
    vxd_metrics_write_uint(text, "voxeld_replay_bytes", "gauge",
                           "Memory of remembered outcomes.", once.n_bytes);
}

static void write_odometries(const struct vxd_server *server, struct vxd_text *text)
{
    struct vxd_names_usage odometries;

    vxd_odometries_get_usage(server->odometries, &odometries);
    vxd_metrics_write_uint(text, "voxeld_odometries", "gauge",
                           "Odometries, those beside scenes and volumes included.",
                           odometries.n);
    vxd_metrics_write_uint(text, "voxeld_odometry_bytes", "gauge",
                           "Device memory of their maps.", odometries.n_bytes);
}

static void write_networks(const struct vxd_server *server, struct vxd_text *text)
{
    struct vxd_names_usage networks;

    vxd_names_get_usage(server->networks, &networks);
    vxd_metrics_write_uint(text, "voxeld_networks", "gauge", "Loaded networks.",
                           networks.n);
    write_two(text, "voxeld_network_bytes", "gauge",
              "Device memory of networks' weights.", of_budget, networks.n_bytes,
              networks.limit_bytes);
}

static void write_scenes(const struct vxd_server *server, struct vxd_text *text)
{
    struct vxd_scenes_usage scenes;

    vxd_scenes_get_usage(server->scenes, &scenes);
    vxd_metrics_write_uint(text, "voxeld_scenes", "gauge", "Scenes.", scenes.n_scenes);
    write_two(text, "voxeld_scene_bytes", "gauge", "Device memory of scenes.", of_budget,
              scenes.n_bytes, scenes.limit_bytes);
    vxd_metrics_write_uint(text, "voxeld_scene_collections_total", "counter",
                           "Collections of scenes.", scenes.n_collections);
    vxd_metrics_write_uint(text, "voxeld_scene_collected_bytes_total", "counter",
                           "Device memory that they gave back.", scenes.collected_bytes);
    vxd_metrics_write_uint(text, "voxeld_watchers", "gauge",
                           "Watches that wait for a change, or hold a connection for it.",
                           vxd_watch_count(server->watch));
}

static void write_process(const struct vxd_server *server, struct vxd_text *text)
{
    struct vxd_process_usage usage;
    uint64_t used_bytes;
    uint64_t free_bytes;

    vxd_process_get_usage(&usage);
    vxd_process_get_heap(&used_bytes, &free_bytes);
    vxd_metrics_write_real(text, "process_cpu_seconds_total", "counter",
                           "User and system CPU time.", usage.cpu_seconds);
    vxd_metrics_write_uint(text, "process_resident_memory_bytes", "gauge",
                           "Resident memory.", usage.resident_bytes);
    vxd_metrics_write_uint(text, "process_virtual_memory_bytes", "gauge",
                           "Virtual memory.", usage.virtual_bytes);
    vxd_metrics_describe(text, "voxeld_heap_bytes", "gauge",
                         "Memory of malloc: handed out, and free but held.");
    vxd_text_printf(text,
                    "voxeld_heap_bytes{use=\"used\"} %" PRIu64
                    "\nvoxeld_heap_bytes{use=\"free\"} %" PRIu64 "\n",
                    used_bytes, free_bytes);
    vxd_metrics_write_uint(text, "process_open_fds", "gauge", "Open file descriptors.",
                           usage.n_open_fds);
    vxd_metrics_write_real(text, "process_start_time_seconds", "gauge",
                           "Start, Unix time.", (double)server->started_unix_ns / 1e9);
}

static void write_counters(const struct vxd_server *server, struct vxd_text *text)
{
    const char *methods[VXD_METRICS_MAX_METHODS];
    struct vxd_metrics_names names = {.methods = methods,
                                      .n_methods = server->methods->n_methods,
                                      .code_name = vxd_status_name};

    for (size_t i = 0; i < names.n_methods; i++) {
        methods[i] = server->methods->methods[i].name;
    }
    vxd_metrics_write_counters(server->metrics, &names, text);
}

static void write_journal(const struct vxd_server *server, struct vxd_text *text)
{
    struct vxd_journal *journal = vxd_registry_get_journal(server->registry);
    struct vxd_journal_stats stats = {.is_available = true};

    if (journal != NULL) {
        vxd_journal_get_stats(journal, &stats);
    }
    vxd_metrics_write_uint(text, "voxeld_journal_available", "gauge",
                           "1 while the disk takes changes, 0 while they are refused.",
                           stats.is_available ? 1 : 0);
    vxd_metrics_write_uint(
        text, "voxeld_journal_lost_total", "counter",
        "Acknowledged changes that the start found missing in the journal.",
        stats.n_lost);
    vxd_metrics_write_uint(text, "voxeld_audit_lost_total", "counter",
                           "Lines that the audit log's file did not take.",
                           vxd_audit_n_lost());
    vxd_metrics_write_uint(text, "voxeld_journal_failed_total", "counter",
                           "Transactions that were not written.", stats.n_failed);
}

static void write_archive(const struct vxd_server *server, struct vxd_text *text)
{
    struct vxd_archive *archive = vxd_registry_get_archive(server->registry);
    struct vxd_archive_stats stats;

    if (archive == NULL) {
        return;
    }
    vxd_archive_get_stats(archive, &stats);
    vxd_metrics_write_uint(text, "voxeld_archive_available", "gauge",
                           "1 while archive_dir takes changes, 0 while they wait.",
                           stats.is_available ? 1 : 0);
    vxd_metrics_write_uint(text, "voxeld_archive_waiting_bytes", "gauge",
                           "Of changes that are not archived yet.",
                           stats.n_waiting_bytes);
    vxd_metrics_write_uint(text, "voxeld_archive_changes_total", "counter",
                           "Transactions that were archived.", stats.n_transactions);
    vxd_metrics_write_uint(text, "voxeld_archive_segments_total", "counter",
                           "Files that they were archived in.", stats.n_segments);
    vxd_metrics_write_uint(text, "voxeld_archive_failed_total", "counter",
                           "Attempts that the archive's disk did not take.",
                           stats.n_failed);
    vxd_metrics_write_uint(text, "voxeld_archive_breaks_total", "counter",
                           "Times that what waited for the archive was given up.",
                           stats.n_breaks);
}

/* How long the last start took, and what the disk of the data has left. */
static void write_disk(const struct vxd_server *server, struct vxd_text *text)
{
    int64_t ready_ns = atomic_load(&server->ready_ns);
    struct statvfs disk;

    vxd_metrics_write_real(text, "voxeld_recovery_seconds", "gauge",
                           "From the start until the data were back.",
                           ready_ns > 0 ? (double)(ready_ns - server->started_ns) / 1e9
                                        : 0);
    if (server->config.data_dir[0] == '\0' ||
        statvfs(server->config.data_dir, &disk) != 0) {
        return;
    }
    vxd_metrics_describe(text, "voxeld_data_disk_bytes", "gauge",
                         "Of the file system of the data directory.");
    vxd_text_printf(text,
                    "voxeld_data_disk_bytes{use=\"free\"} %" PRIu64
                    "\nvoxeld_data_disk_bytes{use=\"size\"} %" PRIu64 "\n",
                    (uint64_t)disk.f_bavail * disk.f_frsize,
                    (uint64_t)disk.f_blocks * disk.f_frsize);
}

static void write_tls(const struct vxd_server *server, struct vxd_text *text)
{
    if (server->tls == NULL) {
        return;
    }
    vxd_metrics_write_uint(text, "voxeld_tls_failed_total", "counter",
                           "TLS handshakes that were refused, or did not end.",
                           vxd_tls_n_failed(server->tls));
    vxd_metrics_write_real(text, "voxeld_tls_expires_time_seconds", "gauge",
                           "When the daemon's certificate ends, Unix time.",
                           (double)vxd_tls_expires_unix_s(server->tls));
}

/* Of each name's senders. Labels are bounded: the names that came first have their own, all others
 * are one. */
static void write_tokens(const struct vxd_server *server, struct vxd_text *text)
{
    struct vxd_account_usage *usage = calloc(MAX_TOKENS, sizeof *usage);
    size_t n = usage != NULL
                   ? vxd_accounts_list(vxd_auth_accounts(server->auth), usage, MAX_TOKENS)
                   : 0;

    vxd_metrics_describe(text, "voxeld_token_requests_total", "counter",
                         "Requests of a token, or of a user without one, that its scopes "
                         "and methods allow.");
    for (size_t i = 0; i < n; i++) {
        vxd_text_printf(text, "voxeld_token_requests_total{token=\"%s\"} %" PRIu64 "\n",
                        usage[i].name, usage[i].n_requests);
    }
    vxd_metrics_describe(
        text, "voxeld_token_refusals_total", "counter",
        "Refused by a scope, a rule or a quota, or for want of a place in "
        "the queue.");
    for (size_t i = 0; i < n; i++) {
        for (int why = 0; why < VXD_N_REFUSALS; why++) {
            if (usage[i].n_refused[why] > 0) {
                vxd_text_printf(text,
                                "voxeld_token_refusals_total{token=\"%s\",reason=\"%s\"} "
                                "%" PRIu64 "\n",
                                usage[i].name, vxd_refusal_name((enum vxd_refusal)why),
                                usage[i].n_refused[why]);
            }
        }
    }
    vxd_metrics_describe(text, "voxeld_token_lane_seconds_total", "counter",
                         "Time that lanes worked for a token.");
    for (size_t i = 0; i < n; i++) {
        vxd_text_printf(text, "voxeld_token_lane_seconds_total{token=\"%s\"} %.9g\n",
                        usage[i].name, (double)usage[i].lane_ns / 1e9);
    }
    vxd_metrics_describe(text, "voxeld_token_bytes", "gauge",
                         "Memory of what a token has made, of all kinds together.");
    for (size_t i = 0; i < n; i++) {
        vxd_text_printf(text, "voxeld_token_bytes{token=\"%s\"} %" PRIu64 "\n",
                        usage[i].name, usage[i].n_bytes);
    }
    free(usage);
}

void vxd_metrics_write(struct vxd_server *server, struct vxd_text *text)
{
    struct vxd_scheduler_load load;
    struct vxd_memory_usage memory;
    char backend[32];

    vxd_scheduler_get_load(server->scheduler, &load);
    vxd_context_get_memory(server->context, &memory);
    vxd_server_backend_name(server, backend, sizeof backend);
    write_counters(server, text);
    write_tokens(server, text);
    vxd_metrics_write_uint(text, "voxeld_queue_depth", "gauge", "Requests waiting.",
                           load.n_queued);
    vxd_metrics_write_uint(text, "voxeld_running", "gauge",
                           "Requests begun and not finished.", load.n_running);
    vxd_metrics_write_uint(text, "voxeld_shared_bytes", "gauge",
                           "Bytes of memory that clients of this machine share with the "
                           "daemon.",
                           atomic_load(&server->shared_bytes));
    vxd_metrics_write_uint(text, "voxeld_inflight_bytes", "gauge",
                           "Bytes of requests received and not answered.",
                           atomic_load(&server->inflight_bytes));
    vxd_metrics_write_memory(text, "voxeld_device_memory_bytes",
                             "Engine memory on the device.", memory.device_bytes,
                             memory.device_peak_bytes, memory.device_budget_bytes,
                             memory.device_kept_bytes);
    vxd_metrics_write_memory(
        text, "voxeld_host_memory_bytes", "Engine memory on the host.", memory.host_bytes,
        memory.host_peak_bytes, memory.host_budget_bytes, memory.host_kept_bytes);
    write_named(server->maps, &of_maps, text);
    write_replays(server, text);
    write_named(server->volumes, &of_volumes, text);
    write_named(server->posegraphs, &of_posegraphs, text);
    write_odometries(server, text);
    write_networks(server, text);
    write_scenes(server, text);
    write_journal(server, text);
    write_archive(server, text);
    write_disk(server, text);
    write_tls(server, text);
    vxd_metrics_describe(text, "voxeld_build_info", "gauge", "Always 1.");
    vxd_text_printf(text,
                    "voxeld_build_info{version=\"" VXD_VERSION "\",backend=\"%s\"} 1\n",
                    backend);
    write_process(server, text);
}
