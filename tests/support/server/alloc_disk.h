// SPDX-License-Identifier: Apache-2.0
/* A server whose data lies in a directory of the system's, and its requests, step by step: for tests
 * in which allocations of the server fail, and of nobody else (the disk in memory allocates too). */
#ifndef VXD_TESTS_SUPPORT_SERVER_ALLOC_DISK_H
#define VXD_TESTS_SUPPORT_SERVER_ALLOC_DISK_H

#include "tests/support/server/scenes_disk.h"

/* A new one, empty; all in it goes with the second. */
void alloc_folder_make(void);
void alloc_folder_remove(void);

/* A server without data; then its data of that folder, which may fail. world_stop ends both. */
void alloc_start(struct world *world);
enum vxd_status alloc_open(struct world *world);

/* A request, to its answer; then, when allocations are good again, its end. */
enum vxd_status alloc_send(struct world *world, struct call *call, const char *method,
                           uint64_t sequence, const char *json);
void alloc_finish(struct call *call);

#endif
