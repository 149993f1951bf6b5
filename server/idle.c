// SPDX-License-Identifier: Apache-2.0
#include "server/idle.h"

#include <malloc.h>

#include "gpu/core/core.h"
#include "server/schedule/schedule.h"

/* Less is not worth the page faults of the next request. */
#define MUCH_BYTES ((size_t)64 << 20)

void vxd_idle_tick(struct vxd_server *server, struct vxd_idle *idle)
{
    struct vxd_scheduler_load load;

    vxd_scheduler_get_load(server->scheduler, &load);
    if (load.n_queued > 0 || load.n_running > 0) {
        return;
    }
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
