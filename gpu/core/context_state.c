// SPDX-License-Identifier: Apache-2.0
/* What an existing context reports about itself, and whether its device is lost. These
 * functions call no other file of this folder, so the files that context.c uses may
 * call them. */
#include "gpu/core/context.h"

#include "gpu/core/core_cpu.h"

enum vxd_backend vxd_context_backend(const struct vxd_context *context)
{
    return context->backend;
}

void vxd_context_get_info(const struct vxd_context *context, struct vxd_context_info *out)
{
    *out = context->info;
}

void vxd_context_get_memory(const struct vxd_context *context,
                            struct vxd_memory_usage *out)
{
    /* Callers see the context as constant; locking its mutex changes nothing that they
     * see. */
    pthread_mutex_t *mutex = (pthread_mutex_t *)&context->mutex;

    (void)pthread_mutex_lock(mutex);
    *out = context->usage;
    (void)pthread_mutex_unlock(mutex);
}

bool vxd_context_is_lost(const struct vxd_context *context)
{
    pthread_mutex_t *mutex = (pthread_mutex_t *)&context->mutex;
    bool lost;

    (void)pthread_mutex_lock(mutex);
    lost = context->lost;
    (void)pthread_mutex_unlock(mutex);
    return lost;
}

void vxd_context_mark_lost(struct vxd_context *context)
{
    (void)pthread_mutex_lock(&context->mutex);
    context->lost = true;
    (void)pthread_mutex_unlock(&context->mutex);
}

struct vxd_pool *vxd_context_pool(struct vxd_context *context)
{
    return context->pool;
}
