// SPDX-License-Identifier: Apache-2.0
#include "proto/base/clock.h"

#include <time.h>

static int64_t read_ns(clockid_t clock)
{
    struct timespec now = {0};

    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t vxd_clock_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

int64_t vxd_clock_unix_ns(void)
{
    return read_ns(CLOCK_REALTIME);
}

bool vxd_clock_init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    bool ok;

    if (pthread_condattr_init(&attributes) != 0) {
        return false;
    }
    ok = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
         pthread_cond_init(condition, &attributes) == 0;
    (void)pthread_condattr_destroy(&attributes);
    return ok;
}
