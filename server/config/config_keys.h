// SPDX-License-Identifier: Apache-2.0
/* The table of the configuration file's keys. config.c reads by it, and a test compares
 * the manual, configs/README.md, with it. */
#ifndef VXD_SERVER_CONFIG_CONFIG_KEYS_H
#define VXD_SERVER_CONFIG_CONFIG_KEYS_H

#include "server/config/daemon_config.h"

enum vxd_config_kind {
    VXD_CONFIG_BOOL = 0,
    VXD_CONFIG_UINT32 = 1,
    VXD_CONFIG_UINT64 = 2,
    VXD_CONFIG_MODE = 3,        /* permission bits as an octal string */
    VXD_CONFIG_STRING = 4,      /* low..high bytes */
    VXD_CONFIG_STRINGS = 5,     /* at most max_items, each VXD_PATH_BYTES wide */
    VXD_CONFIG_UINT32_LIST = 6, /* at most max_items */
    VXD_CONFIG_CHOICE = 7       /* one of `choices`, separated by spaces */
};

struct vxd_config_entry {
    const char *path; /* "section.name", or "name" at the top level */
    enum vxd_config_kind kind;
    uint64_t low;
    uint64_t high;
    size_t offset;   /* of the destination in struct vxd_config */
    size_t n_offset; /* of the count, for lists */
    size_t n_bytes;  /* capacity of a string */
    size_t max_items;
    const char *choices;
};

extern const struct vxd_config_entry vxd_config_entries[];
extern const size_t vxd_config_n_entries;

#endif
