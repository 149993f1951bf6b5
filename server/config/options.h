// SPDX-License-Identifier: Apache-2.0
/* The daemon's flags; they win over the configuration file. */
#ifndef VXD_SERVER_CONFIG_OPTIONS_H
#define VXD_SERVER_CONFIG_OPTIONS_H

#include "server/config/daemon_config.h"

/* Strings point into argv; NULL and 0 where a flag was not given. */
struct vxd_options {
    const char *config;
    const char *check_config;
    const char *check_network;
    const char *init_network;
    const char *check_data;
    const char *repair_data;
    const char *restore_data; /* a backup; with archive, until and to */
    const char *archive;
    const char *until;
    const char *to;
    uint64_t seed; /* of init_network */
    bool replace;
    bool json; /* of what is done instead of serving */
    const char *backend;
    const char *rpc[VXD_CONFIG_MAX_LISTEN];
    size_t n_rpc;
    const char *http;
    const char *data_dir;
    const char *threads;
    const char *log_level;
    bool allow_insecure;
    bool help;
    bool version;
};

/* errors  INVALID_ARGUMENT  an unknown flag, one without its value, a stray argument; the
 *                           message is ready to be shown */
enum vxd_status vxd_options_parse(int argc, char **argv, struct vxd_options *out,
                                  struct vxd_err *err);

/* Sets the values in *config that the flags give.
 * errors  INVALID_ARGUMENT  err.field is the flag */
enum vxd_status vxd_options_apply(const struct vxd_options *options,
                                  struct vxd_config *config, struct vxd_err *err);

/* Makes the configuration that the daemon runs with, at its start and again at SIGHUP:
 * the defaults, then the file, then the flags, then the checks of vxd_config_check. */
enum vxd_status vxd_options_load(const struct vxd_options *options,
                                 struct vxd_config *config, struct vxd_err *err);

/* Returns the manual page. */
const char *vxd_options_help(void);

#endif
