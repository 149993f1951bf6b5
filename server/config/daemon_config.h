// SPDX-License-Identifier: Apache-2.0
/* The daemon's configuration: a strict JSON file, then flags over it. Every key is
 * documented in configs/README.md; unknown keys, wrong types and values out of range are
 * errors that name the key's path. */
#ifndef VXD_SERVER_CONFIG_DAEMON_CONFIG_H
#define VXD_SERVER_CONFIG_DAEMON_CONFIG_H

#include "proto/base/base.h"

#define VXD_CONFIG_MAX_LISTEN 8
#define VXD_CONFIG_MAX_ORIGINS 32
#define VXD_CONFIG_MAX_UIDS 32
#define VXD_CONFIG_MAX_NETWORKS 64
#define VXD_CONFIG_MAX_CLIENT_NAMES 64
#define VXD_PATH_BYTES 512

struct vxd_config {
    /* listen: rpc URLs (ipc:///path, tcp://host:port, tls+tcp://host:port; port 0 = any free
     * one) and the HTTP address host:port, https://host:port or unix:/path ("" = no HTTP).
     * Default: ipc in the runtime directory and 127.0.0.1:8420. */
    char rpc[VXD_CONFIG_MAX_LISTEN][VXD_PATH_BYTES];
    size_t n_rpc;
    uint32_t ipc_mode; /* permission bits of ipc sockets, 0660 */
    char http[VXD_PATH_BYTES];
    char foxglove[VXD_PATH_BYTES]; /* host:port for Foxglove viewers alone; "" = none */
    bool allow_insecure;           /* non-loopback without tokens */

    char data_dir[VXD_PATH_BYTES]; /* "" = keeps nothing, takes no lock */

    char archive_dir[VXD_PATH_BYTES]; /* of the journal as it grows; "" = no archive */
    uint32_t archive_seconds;         /* that a change waits for it at most */

    char networks_dir[VXD_PATH_BYTES]; /* "" = no networks, "auto" = those installed */
    /* Loaded at the start: "NAME" or "NAME:fp16". */
    char networks[VXD_CONFIG_MAX_NETWORKS][VXD_PATH_BYTES];
    size_t n_networks;

    char backend[16]; /* "auto", "cpu", "cuda:N" */
    uint32_t n_threads;
    uint64_t device_bytes; /* 0 = the engine's default */
    uint64_t host_bytes;
    uint32_t
        n_read_lanes; /* at least 2: one takes small requests only; 0 = by the machine */
    uint32_t batch_delay_ms; /* how long an inference waits for others to form a batch */
    uint32_t max_batch;      /* items in a batch; 0 = 8 on a GPU, 1 on the CPU */

    uint64_t max_message_bytes;
    uint64_t inflight_bytes;
    uint64_t shared_bytes; /* that clients may share with the daemon; 0 = none */
    uint32_t queue_limit;
    uint32_t max_connections;
    uint32_t failed_logins; /* of an address in a minute; 0 = any number */
    uint32_t default_timeout_ms;
    uint32_t max_timeout_ms;
    uint32_t bulk_points;    /* requests of more points run on bulk lanes only */
    uint64_t replay_bytes;   /* of remembered outcomes of a token (exactly_once.h) */
    uint32_t replay_clients; /* of a token, whose outcomes are remembered */
    uint32_t replay_seconds; /* for which they are at least */
    uint64_t map_bytes;      /* device memory of all named maps; 0 = half of the budget */
    uint64_t scene_edit_regions; /* that one edit may look at */
    uint64_t token_map_bytes;    /* of those of one token; 0 = as map_bytes */
    uint64_t volume_bytes;       /* of all named volumes; 0 = half of the budget */
    uint64_t token_volume_bytes; /* of those of one token; 0 = as volume_bytes */
    uint64_t posegraph_bytes; /* host memory of all pose graphs; 0 = half of the budget */
    uint64_t network_bytes;   /* of all networks' weights; 0 = a quarter of the budget */
    uint64_t scene_bytes;     /* of all scenes; 0 = half of the budget */
    uint64_t token_scene_bytes; /* of those that one token made; 0 = as scene_bytes */
    uint64_t archive_bytes;     /* that wait for an archive that takes nothing */
    uint64_t saved_bytes;       /* of all files of saved maps; 0 = any number */
    uint32_t n_scenes;          /* at most */
    uint32_t n_watchers;        /* that wait, at most */
    uint32_t n_client_watchers; /* of one token at one address */
    /* A scene is collected when it has grown by so many per cent since its last
     * collection; 0 = never by itself. */
    uint32_t scene_collect_growth;

    char scene_store[16]; /* of new scenes: "arena", or one of slabs */

    char tokens_file[VXD_PATH_BYTES]; /* "" = no tokens */
    /* Peer uids trusted with all scopes over ipc without a token; the daemon's own uid
     * and root always are. */
    uint32_t ipc_uids[VXD_CONFIG_MAX_UIDS];
    size_t n_ipc_uids;

    char audit_file[VXD_PATH_BYTES]; /* "" = no audit log */

    /* PEM files; "" = no TLS. */
    char tls_certificate[VXD_PATH_BYTES];
    char tls_key[VXD_PATH_BYTES];
    char tls_client_ca[VXD_PATH_BYTES]; /* "" = clients need no certificates */
    bool tls_client_required;           /* with tls_client_ca: they do */
    /* "NAME=TOKEN": who has a certificate of this name is as who sends that token. */
    char tls_client_names[VXD_CONFIG_MAX_CLIENT_NAMES][VXD_PATH_BYTES];
    size_t n_tls_client_names;

    char allowed_hosts[VXD_CONFIG_MAX_ORIGINS]
                      [VXD_PATH_BYTES]; /* Host values beside ours */
    size_t n_allowed_hosts;
    char allowed_origins[VXD_CONFIG_MAX_ORIGINS][VXD_PATH_BYTES];
    size_t n_allowed_origins;
    bool http_require_token; /* over HTTP everybody needs a token, tokens_file or not */
    uint32_t http_threads;   /* 0 = by the machine */

    char log_level[16];
    uint32_t drain_grace_ms;   /* between not-ready and refusing new work */
    uint32_t drain_timeout_ms; /* most it waits for running work */
};

/* Fills the defaults; the runtime directory is $XDG_RUNTIME_DIR/voxeld, else /run/voxeld. */
void vxd_config_default(struct vxd_config *config);

/* Puts the folder of networks that is installed with this program in the place of "auto"; "" where there is
 * none. */
void vxd_config_find_networks(struct vxd_config *config);

/* Reads a file over *config. errors  INVALID_ARGUMENT, NOT_FOUND; err.field is the key path
 * ("limits.queue"), the message gives file, line and reason. *config is unchanged then. */
enum vxd_status vxd_config_read(const char *path, struct vxd_config *config,
                                struct vxd_err *err);

/* Parses the configuration from text, for tests and fuzzing; `name` stands for the file
 * in messages. */
enum vxd_status vxd_config_parse(const char *name, const char *text, size_t n_bytes,
                                 struct vxd_config *config, struct vxd_err *err);

/* Whether an HTTP address asks for TLS, and the address without the scheme. */
#define VXD_CONFIG_HTTPS "https://"
bool vxd_config_http_is_tls(const char *http);
const char *vxd_config_http_address(const char *http);

/* Returns the path of the index-th key of the file ("limits.queue"), or NULL after the
 * last. A test compares the manual with the parser by it. */
const char *vxd_config_key(size_t index);

/* Returns the key that a text names, for example a message, or NULL. */
const char *vxd_config_key_in(const char *text);

/* Reads the value of a key; false where it is no number, or there is no such key. */
bool vxd_config_number(const struct vxd_config *config, const char *key, uint64_t *out);

/* Checks what concerns several keys, or the build: a non-loopback address needs tokens,
 * certificates of clients or allow_insecure; timeouts in order; at least one listener. Files are
 * not looked at.
 * errors  INVALID_ARGUMENT
 *         UNIMPLEMENTED     scenes.store is one that this build leaves out (VOXELD_PAPER=OFF) */
enum vxd_status vxd_config_check(const struct vxd_config *config, struct vxd_err *err);

#endif
