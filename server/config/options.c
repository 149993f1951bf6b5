// SPDX-License-Identifier: Apache-2.0
#include "server/config/options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum {
    FLAG_CONFIG = 256, /* above all characters: there are no short flags but -h and -V */
    FLAG_CHECK_CONFIG,
    FLAG_CHECK_NETWORK,
    FLAG_INIT_NETWORK,
    FLAG_CHECK_DATA,
    FLAG_REPAIR_DATA,
    FLAG_SEED,
    FLAG_REPLACE,
    FLAG_JSON,
    FLAG_BACKEND,
    FLAG_RPC,
    FLAG_HTTP,
    FLAG_RESTORE_DATA,
    FLAG_ARCHIVE,
    FLAG_UNTIL,
    FLAG_TO,
    FLAG_DATA_DIR,
    FLAG_THREADS,
    FLAG_LOG_LEVEL,
    FLAG_ALLOW_INSECURE
};

static const struct option flags[] = {
    {"config", required_argument, NULL, FLAG_CONFIG},
    {"check-config", required_argument, NULL, FLAG_CHECK_CONFIG},
    {"check-network", required_argument, NULL, FLAG_CHECK_NETWORK},
    {"init-network", required_argument, NULL, FLAG_INIT_NETWORK},
    {"check-data", required_argument, NULL, FLAG_CHECK_DATA},
    {"repair-data", required_argument, NULL, FLAG_REPAIR_DATA},
    {"restore-data", required_argument, NULL, FLAG_RESTORE_DATA},
    {"archive", required_argument, NULL, FLAG_ARCHIVE},
    {"until", required_argument, NULL, FLAG_UNTIL},
    {"to", required_argument, NULL, FLAG_TO},
    {"seed", required_argument, NULL, FLAG_SEED},
    {"replace", no_argument, NULL, FLAG_REPLACE},
    {"json", no_argument, NULL, FLAG_JSON},
    {"backend", required_argument, NULL, FLAG_BACKEND},
    {"rpc", required_argument, NULL, FLAG_RPC},
    {"http", required_argument, NULL, FLAG_HTTP},
    {"data-dir", required_argument, NULL, FLAG_DATA_DIR},
    {"threads", required_argument, NULL, FLAG_THREADS},
    {"log-level", required_argument, NULL, FLAG_LOG_LEVEL},
    {"allow-insecure", no_argument, NULL, FLAG_ALLOW_INSECURE},
    {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char help_text[] =
    "NAME\n"
    "    voxeld - networked voxel service\n"
    "\n"
    "SYNOPSIS\n"
    "    voxeld [--config FILE] [flags]\n"
    "    voxeld --check-config FILE\n"
    "    voxeld --check-network NAME.json\n"
    "    voxeld --init-network NAME.json [--seed N] [--replace]\n"
    "    voxeld --check-data DIR\n"
    "    voxeld --repair-data DIR\n"
    "    voxeld --restore-data BACKUP --archive DIR --until WHEN --to DIR\n"
    "\n"
    "DESCRIPTION\n"
    "    Voxelizes point clouds sent to it as protobuf over nng or as JSON, protobuf or\n"
    "    scan files over HTTP, on a CUDA GPU or the CPU. Runs in the foreground and "
    "logs\n"
    "    one JSON object a line on standard error. Without a configuration file it\n"
    "    listens on ipc://$XDG_RUNTIME_DIR/voxeld/voxeld.sock (or /run/voxeld/...) and "
    "on\n"
    "    http://127.0.0.1:8420, both for this machine only.\n"
    "\n"
    "FLAGS\n"
    "    They win over the configuration file.\n"
    "\n"
    "    --config FILE        Read FILE (JSON; configs/README.md documents every key).\n"
    "    --check-config FILE  Check FILE and exit: 0 and \"ok\", or 2 and the key's "
    "path\n"
    "                         with the reason. Files and folders that FILE names must\n"
    "                         exist and be usable by whoever runs this.\n"
    "    --check-network FILE Check a network's config and weights and exit: 0 and what "
    "it\n"
    "                         is, or 2 and the layer with the reason.\n"
    "    --init-network FILE  Write random weights for a network's config and exit; "
    "--seed N\n"
    "                         (default 1) says which, --replace overwrites a file.\n"
    "    --check-data DIR     Look at a data directory that no daemon uses, change "
    "nothing,\n"
    "                         and exit: 0, or 1 where a start would lose something, "
    "with\n"
    "                         what is wrong and what a start would do.\n"
    "    --repair-data DIR    Mend one that no daemon uses: what is damaged is set "
    "aside,\n"
    "                         nothing is deleted, and a start goes on from what is "
    "whole.\n"
    "                         Exit: 0, or 1 where something is lost.\n"
    "    --restore-data BACKUP --archive DIR --until WHEN --to DIR\n"
    "                         Make the data directory of --to, which must not exist, "
    "from a\n"
    "                         backup and what the archive (archive_dir) has after it, "
    "until\n"
    "                         WHEN: a time as 2026-11-27T10:15:00Z, SCENE@VERSION, or\n"
    "                         end. Exit: 0, or 2 and how far it can be restored.\n"
    "    --json               With one of those above: print JSON, errors too.\n"
    "    --backend NAME       auto (a GPU if one answers, else the CPU), cpu, cuda, "
    "cuda:N.\n"
    "    --rpc URL            Listen for protobuf over nng on ipc:///PATH, "
    "tcp://HOST:PORT "
    "or\n"
    "                         tls+tcp://HOST:PORT; may be given up to 8 times, and then\n"
    "                         replaces the file's list. Port 0 takes any free port.\n"
    "    --http HOST:PORT     Listen for HTTP there, or https://HOST:PORT for HTTP over "
    "TLS;\n"
    "                         \"\" for no HTTP.\n"
    "    --data-dir DIR       Keep data in DIR, which is locked against other daemons.\n"
    "    --threads N          CPU threads of the engine; 0 = all cores.\n"
    "    --log-level LEVEL    debug, info, warning or error.\n"
    "    --allow-insecure     Allow addresses that other machines can reach although no\n"
    "                         tokens are configured.\n"
    "    --version, -V        Print the version and exit.\n"
    "    --help, -h           Print this and exit.\n"
    "\n"
    "SIGNALS\n"
    "    SIGTERM, SIGINT      Drain: report not ready, go on answering for\n"
    "                         drain.grace_ms, refuse new requests, finish the others, "
    "exit.\n"
    "                         A second one exits at once.\n"
    "    SIGHUP               Read the configuration file, the tokens and the "
    "certificates\n"
    "                         again; log level, tokens, timeouts and the queue's limit\n"
    "                         change at once, certificates for new connections. A "
    "faulty\n"
    "                         file changes nothing.\n"
    "\n"
    "EXIT STATUS\n"
    "    0   stopped in order\n"
    "    1   could not start, or a second signal cut the drain short\n"
    "    2   wrong flags or configuration\n"
    "    70  the GPU failed for good; a supervisor should start the daemon again\n"
    "\n"
    "ENVIRONMENT\n"
    "    XDG_RUNTIME_DIR      Where the default ipc socket lies.\n"
    "    NOTIFY_SOCKET        systemd's socket, which gets READY=1 and STOPPING=1, and,\n"
    "                         where WATCHDOG_USEC is set, WATCHDOG=1.\n"
    "    LISTEN_FDS           How many sockets systemd passes. The first is HTTP's,\n"
    "                         before --http and listen.http, and outlives the daemon.\n"
    "\n"
    "EXAMPLES\n"
    "    voxeld\n"
    "    voxeld --backend cpu --rpc tcp://127.0.0.1:8421\n"
    "    voxeld --config /etc/voxeld/voxeld.json\n"
    "    curl --data-binary @scan.pcd \\\n"
    "         'http://127.0.0.1:8420/v1/voxelize?format=pcd&size=0.1'\n";

const char *vxd_options_help(void)
{
    return help_text;
}

static enum vxd_status take_seed(const char *text, uint64_t *out, struct vxd_err *err)
{
    size_t n = strlen(text);

    if (n < 1 || n > 18 || strspn(text, "0123456789") != n) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "--seed",
                        "--seed is \"%.40s\", it must be a number of at most 18 digits",
                        text);
    }
    *out = strtoull(text, NULL, 10);
    return VXD_OK;
}

static enum vxd_status take_flag(struct vxd_options *out, int flag, const char *word,
                                 struct vxd_err *err)
{
    switch (flag) {
    case FLAG_CONFIG:
        out->config = optarg;
        return VXD_OK;
    case FLAG_CHECK_CONFIG:
        out->check_config = optarg;
        return VXD_OK;
    case FLAG_CHECK_NETWORK:
        out->check_network = optarg;
        return VXD_OK;
    case FLAG_INIT_NETWORK:
        out->init_network = optarg;
        return VXD_OK;
    case FLAG_CHECK_DATA:
        out->check_data = optarg;
        return VXD_OK;
    case FLAG_REPAIR_DATA:
        out->repair_data = optarg;
        return VXD_OK;
    case FLAG_RESTORE_DATA:
        out->restore_data = optarg;
        return VXD_OK;
    case FLAG_ARCHIVE:
        out->archive = optarg;
        return VXD_OK;
    case FLAG_UNTIL:
        out->until = optarg;
        return VXD_OK;
    case FLAG_TO:
        out->to = optarg;
        return VXD_OK;
    case FLAG_SEED:
        return take_seed(optarg, &out->seed, err);
    case FLAG_REPLACE:
        out->replace = true;
        return VXD_OK;
    case FLAG_JSON:
        out->json = true;
        return VXD_OK;
    case FLAG_BACKEND:
        out->backend = optarg;
        return VXD_OK;
    case FLAG_RPC:
        if (out->n_rpc == VXD_CONFIG_MAX_LISTEN) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "--rpc",
                            "--rpc may be given %d times at most", VXD_CONFIG_MAX_LISTEN);
        }
        out->rpc[out->n_rpc++] = optarg;
        return VXD_OK;
    case FLAG_HTTP:
        out->http = optarg;
        return VXD_OK;
    case FLAG_DATA_DIR:
        out->data_dir = optarg;
        return VXD_OK;
    case FLAG_THREADS:
        out->threads = optarg;
        return VXD_OK;
    case FLAG_LOG_LEVEL:
        out->log_level = optarg;
        return VXD_OK;
    case FLAG_ALLOW_INSECURE:
        out->allow_insecure = true;
        return VXD_OK;
    case 'V':
        out->version = true;
        return VXD_OK;
    case 'h':
        out->help = true;
        return VXD_OK;
    case ':':
        return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL, "%s needs a value", word);
    default:
        return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL,
                        "unknown flag %s; voxeld --help lists them", word);
    }
}

enum vxd_status vxd_options_parse(int argc, char **argv, struct vxd_options *out,
                                  struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    memset(out, 0, sizeof *out);
    out->seed = 1;
    optind = 1;
    for (;;) {
        int at = optind;
        int flag = getopt_long(argc, argv, ":hV", flags, NULL);

        if (flag == -1) {
            break;
        }
        VXD_TRY(take_flag(out, flag, argv[at], err));
    }
    if (optind < argc) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL,
                        "\"%s\" is no flag; voxeld --help lists them", argv[optind]);
    }
    if ((out->restore_data != NULL) != (out->archive != NULL) ||
        (out->restore_data != NULL) != (out->until != NULL) ||
        (out->restore_data != NULL) != (out->to != NULL)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL,
                        "--restore-data, --archive, --until and --to go together");
    }
    if (out->json && out->check_config == NULL && out->check_network == NULL &&
        out->init_network == NULL && out->check_data == NULL &&
        out->repair_data == NULL && out->restore_data == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "--json",
                        "--json goes with --check-config, --check-network, "
                        "--init-network, --check-data, --repair-data or --restore-data");
    }
out:
    return status;
}

static enum vxd_status copy(const char *flag, const char *value, char *to, size_t n_bytes,
                            struct vxd_err *err)
{
    size_t n = value != NULL ? strlen(value) : 0;

    if (value == NULL) {
        return VXD_OK;
    }
    if (n >= n_bytes) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, flag,
                        "the value of %s has %zu bytes, at most %zu are allowed", flag, n,
                        n_bytes - 1);
    }
    memcpy(to, value, n + 1);
    return VXD_OK;
}

static enum vxd_status copy_threads(const char *value, uint32_t *out, struct vxd_err *err)
{
    char *end;
    unsigned long n;

    if (value == NULL) {
        return VXD_OK;
    }
    n = strtoul(value, &end, 10);
    if (strspn(value, "0123456789") != strlen(value) || end == value || n > 256) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "--threads",
                        "--threads is \"%.40s\", it must be 0 to 256", value);
    }
    *out = (uint32_t)n;
    return VXD_OK;
}

enum vxd_status vxd_options_apply(const struct vxd_options *options,
                                  struct vxd_config *config, struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(copy("--backend", options->backend, config->backend, sizeof config->backend,
                 err));
    VXD_TRY(copy("--http", options->http, config->http, sizeof config->http, err));
    VXD_TRY(copy("--data-dir", options->data_dir, config->data_dir,
                 sizeof config->data_dir, err));
    VXD_TRY(copy("--log-level", options->log_level, config->log_level,
                 sizeof config->log_level, err));
    VXD_TRY(copy_threads(options->threads, &config->n_threads, err));
    for (size_t i = 0; i < options->n_rpc; i++) {
        VXD_TRY(
            copy("--rpc", options->rpc[i], config->rpc[i], sizeof config->rpc[i], err));
        config->n_rpc = options->n_rpc;
    }
    config->allow_insecure = config->allow_insecure || options->allow_insecure;
out:
    return status;
}

enum vxd_status vxd_options_load(const struct vxd_options *options,
                                 struct vxd_config *config, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    vxd_config_default(config);
    if (options->config != NULL) {
        VXD_TRY(vxd_config_read(options->config, config, err));
    }
    VXD_TRY(vxd_options_apply(options, config, err));
    vxd_config_find_networks(config);
    VXD_TRY(vxd_config_check(config, err));
out:
    return status;
}
