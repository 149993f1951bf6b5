// SPDX-License-Identifier: Apache-2.0
/* The daemon's configuration file and its command line options. */
#ifndef VXD_SERVER_CONFIG_CONFIG_H
#define VXD_SERVER_CONFIG_CONFIG_H

#include "server/config/daemon_config.h"
#include "server/config/options.h"
#include "server/config/secret_file.h"

#endif
