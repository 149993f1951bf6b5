// SPDX-License-Identifier: Apache-2.0
/* The two clocks of the process, in nanoseconds, and conditions that wait by the
 * monotonic one. Any thread may call these functions. */
#ifndef VXD_PROTO_BASE_CLOCK_H
#define VXD_PROTO_BASE_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* The monotonic clock, by which all deadlines go: setting the date does not move it. */
int64_t vxd_clock_ns(void);

/* The wall clock: nanoseconds since 1970. */
int64_t vxd_clock_unix_ns(void);

/* Makes a condition whose timed waits go by the monotonic clock, so that setting the date
 * moves no deadline. False when there is no memory for it. */
bool vxd_clock_init_condition(pthread_cond_t *condition);

#endif
