// SPDX-License-Identifier: Apache-2.0
/* The surface of a volume in parts of some blocks, a message each. Blocks keep their order until some
 * are removed, so a part's number always stands for the same ones. A viewer that has the surface
 * gets the parts with blocks that have changed since; each part is asked for that first. */
#include <inttypes.h>

#include "proto/base/clock.h"
#include "server/transport/foxglove/viewer_internal.h"

enum {
    PART_BLOCKS = 512 /* where they are not too many bytes */
};

void vxd_fox_begin_mesh(struct vxd_fox_subscription *s, struct vxd_fox_job *job)
{
    s->began_ns = vxd_clock_ns();
    job->kind = VXD_FOX_MESH;
    job->part_blocks = s->part_blocks > 0 ? s->part_blocks : PART_BLOCKS;
    job->since = s->generation == job->generation ? s->stamp : 0;
    job->is_check = job->since > 0;
    job->stamp = 0;
}

void vxd_fox_ask_mesh(const struct vxd_fox_job *job, char *body, size_t capacity)
{
    (void)snprintf(body, capacity,
                   "{\"name\":\"%s\",\"limit\":\"%" PRIu32 "\",\"first\":\"%" PRIu64
                   "\",\"since\":\"%" PRIu64 "\"}",
                   job->name, job->part_blocks, job->first,
                   job->is_check ? job->since : 0);
}

/* All parts anew, of so many blocks. */
static void restart_mesh(struct vxd_fox_job *job, uint32_t part_blocks)
{
    job->goes_on = true;
    job->is_check = false;
    job->part = 0;
    job->part_blocks = part_blocks;
    job->first = 0;
    job->since = 0;
}

/* Appends a part to the message; one of too many bytes makes the parts smaller. */
static enum vxd_status append_part(struct vxd_fox_job *job,
                                   struct vxd_fox_subscription *s,
                                   const Voxeld__V1__VolumeExtractResponse *output,
                                   size_t max_bytes, struct vxd_text *text,
                                   struct vxd_err *err)
{
    bool is_last = output->next == 0;
    uint32_t n_parts = job->part + 1;
    size_t n_before = text->n_bytes;
    enum vxd_status status;

    VXD_TRY(
        vxd_fox_mesh_message(output, job->name, job->part,
                             is_last && s->n_parts > n_parts ? s->n_parts - n_parts : 0,
                             vxd_clock_unix_ns(), text, err));
    if (text->n_bytes - n_before <= max_bytes) {
        goto out;
    }
    if (job->part_blocks == 1) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "max_bytes",
                         "%zu bytes are too few for the surface of a block, of %zu",
                         max_bytes, text->n_bytes - n_before));
    }
    text->n_bytes = n_before;
    s->part_blocks = job->part_blocks / 2;
    restart_mesh(job, s->part_blocks);
out:
    return status;
}

enum vxd_status vxd_fox_take_mesh(struct vxd_fox_job *job, struct vxd_fox_subscription *s,
                                  const Voxeld__V1__VolumeExtractResponse *output,
                                  size_t max_bytes, struct vxd_text *text,
                                  struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    job->goes_on = false;
    job->stamp = job->stamp > 0 ? job->stamp : output->stamp;
    if (job->is_check && output->is_whole) { /* blocks were removed */
        restart_mesh(job, job->part_blocks);
        return VXD_OK;
    }
    if (job->is_check && output->n_blocks > 0) {
        job->is_check = false;
        job->goes_on = true;
        return VXD_OK;
    }
    if (!job->is_check) {
        VXD_TRY(append_part(job, s, output, max_bytes, text, err));
        if (job->goes_on) {
            return VXD_OK;
        }
    }
    s->n_parts = s->n_parts > job->part ? s->n_parts : job->part + 1;
    if (output->next > 0) {
        job->goes_on = true;
        job->is_check = job->since > 0;
        job->first = output->next;
        job->part++;
        return VXD_OK;
    }
    s->n_parts = job->part + 1;
    s->stamp = job->stamp;
    s->rests_until_ns = 2 * vxd_clock_ns() - s->began_ns;
out:
    return status;
}
