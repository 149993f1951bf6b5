// SPDX-License-Identifier: Apache-2.0
/* Methods that only sleep, for tests of the schedule. A SelfTestRequest is their parameter:
 * duration_ms a stage, n_points stages. */
#ifndef VXD_TESTS_SUPPORT_SERVER_SLEEP_METHODS_H
#define VXD_TESTS_SUPPORT_SERVER_SLEEP_METHODS_H

#include "proto/base/name.h"
#include "tests/support/server/server_helpers.h"

enum {
    MAX_STARTS = 64
};

/* The order in which clients' requests began, and how many were released. */
struct sleep_record {
    pthread_mutex_t mutex;
    char clients[MAX_STARTS][VXD_NAME_BYTES];
    int n_starts;
    int n_released;
};

extern struct sleep_record seen;

void forget_seen(void);
int n_starts(void);
int n_released(void);

extern const struct vxd_method small_method;
extern const struct vxd_method bulk_method;
extern const struct vxd_method large_method;   /* takes most of a server of 16 MiB */
extern const struct vxd_method waiting_method; /* until any other was released */
extern const struct vxd_method slow_method;    /* a body that takes 60 ms to decode */
extern const struct vxd_method write_method;
extern const struct vxd_method change_method; /* a write that changes something */
extern const struct vxd_method lose_method;   /* loses the device when it runs */

#endif
