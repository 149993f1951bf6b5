// SPDX-License-Identifier: Apache-2.0
#include "server/idle.h"

#include <malloc.h>

#include "gpu/core/core.h"
#include "proto/base/clock.h"
#include "server/schedule/schedule.h"

/* Less is not worth the page faults of the next request. */
#define MUCH_BYTES ((size_t)64 << 20)
/* A daemon that is never idle would keep the most that it ever needed at once, of every size of block. */
#define BUSY_NS (INT64_C(60) * 1000000000)

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
#if defined(__GLIBC__)
    {
        /* Bytes that were given back are still counted as free, so only growth says that there is
         * something to give. */
        size_t free_bytes = mallinfo2().fordblks;

        if (free_bytes < idle->free_bytes) {
            idle->free_bytes = free_bytes;
        } else if (free_bytes - idle->free_bytes > MUCH_BYTES) {
            (void)malloc_trim(0);
            idle->free_bytes = free_bytes;
        }
    }
#endif
}
