// SPDX-License-Identifier: Apache-2.0
#include "server/config/config_keys.h"

#include <limits.h>
#include <string.h>

#define AT(member) offsetof(struct vxd_config, member)
#define SIZE_OF(member) sizeof(((struct vxd_config *)0)->member)

/* A day is more than any request needs. */
#define DAY_MS UINT64_C(86400000)
/* Bytes are kept below 2^62, so that sums of two never overflow. */
#define MAX_BYTES (UINT64_C(1) << 62)
#define KIB UINT64_C(1024)

const struct vxd_config_entry vxd_config_entries[] = {
    {"listen.rpc", VXD_CONFIG_STRINGS, 1, VXD_PATH_BYTES - 1, AT(rpc), AT(n_rpc), 0,
     VXD_CONFIG_MAX_LISTEN, NULL},
    {"listen.ipc_mode", VXD_CONFIG_MODE, 0, 0777, AT(ipc_mode), 0, 0, 0, NULL},
    {"listen.http", VXD_CONFIG_STRING, 0, VXD_PATH_BYTES - 1, AT(http), 0, SIZE_OF(http),
     0, NULL},
    {"listen.foxglove", VXD_CONFIG_STRING, 0, VXD_PATH_BYTES - 1, AT(foxglove), 0,
     SIZE_OF(foxglove), 0, NULL},
    {"listen.allow_insecure", VXD_CONFIG_BOOL, 0, 1, AT(allow_insecure), 0, 0, 0, NULL},
    {"data_dir", VXD_CONFIG_STRING, 0, VXD_PATH_BYTES - 1, AT(data_dir), 0,
     SIZE_OF(data_dir), 0, NULL},
    {"archive_dir", VXD_CONFIG_STRING, 0, VXD_PATH_BYTES - 1, AT(archive_dir), 0,
     SIZE_OF(archive_dir), 0, NULL},
    {"archive_seconds", VXD_CONFIG_UINT32, 1, 86400, AT(archive_seconds), 0, 0, 0, NULL},
    {"networks_dir", VXD_CONFIG_STRING, 0, VXD_PATH_BYTES - 1, AT(networks_dir), 0,
     SIZE_OF(networks_dir), 0, NULL},
    {"networks", VXD_CONFIG_STRINGS, 1, 80, AT(networks), AT(n_networks), 0,
     VXD_CONFIG_MAX_NETWORKS, NULL},
    {"engine.backend", VXD_CONFIG_STRING, 3, 15, AT(backend), 0, SIZE_OF(backend), 0,
     NULL},
    {"engine.threads", VXD_CONFIG_UINT32, 0, 256, AT(n_threads), 0, 0, 0, NULL},
    {"engine.device_bytes", VXD_CONFIG_UINT64, 0, MAX_BYTES, AT(device_bytes), 0, 0, 0,
     NULL},
    {"engine.host_bytes", VXD_CONFIG_UINT64, 0, MAX_BYTES, AT(host_bytes), 0, 0, 0, NULL},
    {"engine.read_lanes", VXD_CONFIG_UINT32, 0, 16, AT(n_read_lanes), 0, 0, 0, NULL},
    {"engine.batch_delay_ms", VXD_CONFIG_UINT32, 0, 1000, AT(batch_delay_ms), 0, 0, 0,
     NULL},
    {"engine.max_batch", VXD_CONFIG_UINT32, 0, 256, AT(max_batch), 0, 0, 0, NULL},
    {"limits.message_bytes", VXD_CONFIG_UINT64, 64 * KIB, 2048 * KIB *KIB - 1,
     AT(max_message_bytes), 0, 0, 0, NULL},
    {"limits.inflight_bytes", VXD_CONFIG_UINT64, 1024 * KIB, MAX_BYTES,
     AT(inflight_bytes), 0, 0, 0, NULL},
    {"limits.shared_bytes", VXD_CONFIG_UINT64, 0, MAX_BYTES, AT(shared_bytes), 0, 0, 0,
     NULL},
    {"limits.queue", VXD_CONFIG_UINT32, 1, 4096, AT(queue_limit), 0, 0, 0, NULL},
    {"limits.connections", VXD_CONFIG_UINT32, 1, 65535, AT(max_connections), 0, 0, 0,
     NULL},
    {"limits.failed_logins", VXD_CONFIG_UINT32, 0, 1000000, AT(failed_logins), 0, 0, 0,
     NULL},
    {"limits.timeout_ms", VXD_CONFIG_UINT32, 1, DAY_MS, AT(default_timeout_ms), 0, 0, 0,
     NULL},
    {"limits.max_timeout_ms", VXD_CONFIG_UINT32, 1, DAY_MS, AT(max_timeout_ms), 0, 0, 0,
     NULL},
    {"limits.bulk_points", VXD_CONFIG_UINT32, 1, INT_MAX, AT(bulk_points), 0, 0, 0, NULL},
    {"limits.replay_bytes", VXD_CONFIG_UINT64, 1024 * KIB, MAX_BYTES, AT(replay_bytes), 0,
     0, 0, NULL},
    {"limits.replay_clients", VXD_CONFIG_UINT32, 1, 1000000, AT(replay_clients), 0, 0, 0,
     NULL},
    {"limits.replay_seconds", VXD_CONFIG_UINT32, 0, 3600, AT(replay_seconds), 0, 0, 0,
     NULL},
    {"limits.map_bytes", VXD_CONFIG_UINT64, 0, MAX_BYTES, AT(map_bytes), 0, 0, 0, NULL},
    {"limits.map_bytes_per_token", VXD_CONFIG_UINT64, 0, MAX_BYTES, AT(token_map_bytes),
     0, 0, 0, NULL},
    {"limits.volume_bytes", VXD_CONFIG_UINT64, 0, MAX_BYTES, AT(volume_bytes), 0, 0, 0,
     NULL},
    {"limits.volume_bytes_per_token", VXD_CONFIG_UINT64, 0, MAX_BYTES,
     AT(token_volume_bytes), 0, 0, 0, NULL},
    {"limits.posegraph_bytes", VXD_CONFIG_UINT64, 0, MAX_BYTES, AT(posegraph_bytes), 0, 0,
     0, NULL},
    {"limits.network_bytes", VXD_CONFIG_UINT64, 0, MAX_BYTES, AT(network_bytes), 0, 0, 0,
     NULL},
    {"limits.scene_bytes", VXD_CONFIG_UINT64, 0, MAX_BYTES, AT(scene_bytes), 0, 0, 0,
     NULL},
    {"limits.scene_bytes_per_token", VXD_CONFIG_UINT64, 0, MAX_BYTES,
     AT(token_scene_bytes), 0, 0, 0, NULL},
    {"limits.archive_bytes", VXD_CONFIG_UINT64, 1024 * KIB, MAX_BYTES, AT(archive_bytes),
     0, 0, 0, NULL},
    {"limits.saved_bytes", VXD_CONFIG_UINT64, 0, MAX_BYTES, AT(saved_bytes), 0, 0, 0,
     NULL},
    {"limits.scenes", VXD_CONFIG_UINT32, 1, 65536, AT(n_scenes), 0, 0, 0, NULL},
    {"limits.scene_edit_regions", VXD_CONFIG_UINT64, 65536, INT64_MAX,
     AT(scene_edit_regions), 0, 0, 0, NULL},
    {"limits.watchers", VXD_CONFIG_UINT32, 1, 4096, AT(n_watchers), 0, 0, 0, NULL},
    {"limits.watchers_per_client", VXD_CONFIG_UINT32, 1, 4096, AT(n_client_watchers), 0,
     0, 0, NULL},
    {"limits.scene_collect_growth", VXD_CONFIG_UINT32, 0, 10000, AT(scene_collect_growth),
     0, 0, 0, NULL},
    {"scenes.store", VXD_CONFIG_CHOICE, 0, 0, AT(scene_store), 0, SIZE_OF(scene_store), 0,
     "arena atomic64 ticket accel32 accel8"},
    {"auth.tokens_file", VXD_CONFIG_STRING, 0, VXD_PATH_BYTES - 1, AT(tokens_file), 0,
     SIZE_OF(tokens_file), 0, NULL},
    {"auth.ipc_uids", VXD_CONFIG_UINT32_LIST, 0, UINT32_MAX, AT(ipc_uids), AT(n_ipc_uids),
     0, VXD_CONFIG_MAX_UIDS, NULL},
    {"audit.file", VXD_CONFIG_STRING, 0, VXD_PATH_BYTES - 1, AT(audit_file), 0,
     SIZE_OF(audit_file), 0, NULL},
    {"tls.certificate", VXD_CONFIG_STRING, 0, VXD_PATH_BYTES - 1, AT(tls_certificate), 0,
     SIZE_OF(tls_certificate), 0, NULL},
    {"tls.key", VXD_CONFIG_STRING, 0, VXD_PATH_BYTES - 1, AT(tls_key), 0,
     SIZE_OF(tls_key), 0, NULL},
    {"tls.client_ca", VXD_CONFIG_STRING, 0, VXD_PATH_BYTES - 1, AT(tls_client_ca), 0,
     SIZE_OF(tls_client_ca), 0, NULL},
    {"tls.client_required", VXD_CONFIG_BOOL, 0, 1, AT(tls_client_required), 0, 0, 0,
     NULL},
    {"tls.client_names", VXD_CONFIG_STRINGS, 3, VXD_PATH_BYTES - 1, AT(tls_client_names),
     AT(n_tls_client_names), 0, VXD_CONFIG_MAX_CLIENT_NAMES, NULL},
    {"http.allowed_hosts", VXD_CONFIG_STRINGS, 1, VXD_PATH_BYTES - 1, AT(allowed_hosts),
     AT(n_allowed_hosts), 0, VXD_CONFIG_MAX_ORIGINS, NULL},
    {"http.allowed_origins", VXD_CONFIG_STRINGS, 1, VXD_PATH_BYTES - 1,
     AT(allowed_origins), AT(n_allowed_origins), 0, VXD_CONFIG_MAX_ORIGINS, NULL},
    {"http.require_token", VXD_CONFIG_BOOL, 0, 1, AT(http_require_token), 0, 0, 0, NULL},
    {"http.threads", VXD_CONFIG_UINT32, 0, 64, AT(http_threads), 0, 0, 0, NULL},
    {"log.level", VXD_CONFIG_CHOICE, 0, 0, AT(log_level), 0, SIZE_OF(log_level), 0,
     "debug info warning error"},
    {"drain.grace_ms", VXD_CONFIG_UINT32, 0, DAY_MS, AT(drain_grace_ms), 0, 0, 0, NULL},
    {"drain.timeout_ms", VXD_CONFIG_UINT32, 0, DAY_MS, AT(drain_timeout_ms), 0, 0, 0,
     NULL},
};
const size_t vxd_config_n_entries =
    sizeof vxd_config_entries / sizeof vxd_config_entries[0];

const char *vxd_config_key(size_t index)
{
    return index < vxd_config_n_entries ? vxd_config_entries[index].path : NULL;
}

/* Whether a text goes on here with the rest of a longer key. */
static bool goes_on(char c)
{
    return (c >= 'a' && c <= 'z') || c == '_';
}

const char *vxd_config_key_in(const char *text)
{
    for (size_t i = 0; i < vxd_config_n_entries; i++) {
        const char *key = vxd_config_entries[i].path;
        const char *at = strchr(key, '.') != NULL ? strstr(text, key) : NULL;

        if (at != NULL && !goes_on(at[strlen(key)])) {
            return key;
        }
    }
    return NULL;
}

bool vxd_config_number(const struct vxd_config *config, const char *key, uint64_t *out)
{
    for (size_t i = 0; i < vxd_config_n_entries; i++) {
        const struct vxd_config_entry *entry = &vxd_config_entries[i];
        const uint8_t *at = (const uint8_t *)config + entry->offset;

        if (strcmp(entry->path, key) != 0) {
            continue;
        }
        if (entry->kind == VXD_CONFIG_UINT32) {
            *out = *(const uint32_t *)(const void *)at;
            return true;
        }
        if (entry->kind == VXD_CONFIG_UINT64) {
            *out = *(const uint64_t *)(const void *)at;
            return true;
        }
        return false;
    }
    return false;
}
