// SPDX-License-Identifier: Apache-2.0
#include "server/idle.h"

#include <malloc.h>

#include "gpu/core/core.h"
#include "proto/base/clock.h"
#include "server/observe/observe.h"
#include "server/schedule/schedule.h"

/* Less is not worth the page faults of the next request. */
#define MUCH_BYTES (UINT64_C(64) << 20)
/* A daemon that is never idle would keep the most that it ever needed at once, of every size of block. */
#define BUSY_NS (INT64_C(60) * 1000000000)

/* The least of a figure that went up and down, once it is known. */
static void lower(uint64_t *least, uint64_t now)
{
    if (*least == 0 || now < *least) {
        *least = now;
    }
}

/* malloc counts what it has given back as free all the same, so what is resident says that a second burst of
 * requests has left something, and growth of what is free that the engine has freed its blocks. */
static void give_back(struct vxd_idle *idle)
{
#if defined(__GLIBC__)
    uint64_t resident_bytes;
    uint64_t virtual_bytes;
    uint64_t used_bytes;
    uint64_t free_bytes;

    vxd_process_get_memory(&resident_bytes, &virtual_bytes);
    vxd_process_get_heap(&used_bytes, &free_bytes);
    lower(&idle->resident_bytes, resident_bytes);
    lower(&idle->free_bytes, free_bytes);
    if (free_bytes > MUCH_BYTES && (resident_bytes - idle->resident_bytes > MUCH_BYTES ||
                                    free_bytes - idle->free_bytes > MUCH_BYTES)) {
        (void)malloc_trim(0);
        vxd_process_get_memory(&idle->resident_bytes, &virtual_bytes);
        idle->free_bytes = free_bytes;
    }
#else
    (void)idle;
#endif
}

void vxd_idle_tick(struct vxd_server *server, struct vxd_idle *idle)
{
    struct vxd_scheduler_load load;
    int64_t now_ns = vxd_clock_ns();

    vxd_scheduler_get_load(server->scheduler, &load);
    if ((load.n_queued > 0 || load.n_running > 0) &&
        now_ns - idle->trimmed_ns < BUSY_NS) {
        return;
    }
    idle->trimmed_ns = now_ns;
    vxd_context_trim(server->context);
    give_back(idle);
}
