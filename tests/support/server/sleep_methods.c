// SPDX-License-Identifier: Apache-2.0
#include "tests/support/server/sleep_methods.h"

#include <stdio.h>
#include <string.h>

#include "proto/base/name.h"
#include "voxeld/v1/admin.pb-c.h"

struct sleep_record seen = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void forget_seen(void)
{
    (void)pthread_mutex_lock(&seen.mutex);
    seen.n_starts = 0;
    seen.n_released = 0;
    (void)pthread_mutex_unlock(&seen.mutex);
}

int n_starts(void)
{
    int n;

    (void)pthread_mutex_lock(&seen.mutex);
    n = seen.n_starts;
    (void)pthread_mutex_unlock(&seen.mutex);
    return n;
}

int n_released(void)
{
    int n;

    (void)pthread_mutex_lock(&seen.mutex);
    n = seen.n_released;
    (void)pthread_mutex_unlock(&seen.mutex);
    return n;
}

static enum vxd_status sleep_check(struct vxd_request *request, struct vxd_err *err)
{
    uint32_t *n_stages = vxd_decoder_alloc(request->decoder, sizeof *n_stages, err);

    if (n_stages == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    *n_stages = ((const Voxeld__V1__SelfTestRequest *)request->input)->n_points;
    request->state = n_stages;
    return VXD_OK;
}

static enum vxd_status bulk_check(struct vxd_request *request, struct vxd_err *err)
{
    request->bulk = true;
    return sleep_check(request, err);
}

/* Most of a server of 16 MiB. */
static enum vxd_status large_check(struct vxd_request *request, struct vxd_err *err)
{
    request->cost_bytes = 10 << 20;
    return sleep_check(request, err);
}

/* A body that takes 60 ms to decode. */
static enum vxd_status slow_check(struct vxd_request *request, struct vxd_err *err)
{
    wait_ms(60);
    return sleep_check(request, err);
}

static enum vxd_status sleep_submit(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    const Voxeld__V1__SelfTestRequest *input =
        (const Voxeld__V1__SelfTestRequest *)request->input;
    uint32_t *left = request->state;

    (void)pthread_mutex_lock(&seen.mutex);
    if (seen.n_starts < MAX_STARTS) {
        memcpy(seen.clients[seen.n_starts++], request->client_id, VXD_NAME_BYTES);
    }
    (void)pthread_mutex_unlock(&seen.mutex);
    if (*left > 0) {
        --*left;
    }
    request->more = *left > 0;
    return push_sleep(queue, input->duration_ms, err);
}

/* Needs what another request makes: that is there when one was released. */
static enum vxd_status waiting_submit(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err)
{
    enum vxd_status status = sleep_submit(request, queue, err);

    request->is_waiting = n_released() == 0;
    request->more = request->is_waiting;
    return status;
}

static enum vxd_status sleep_finish(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err)
{
    static const Voxeld__V1__SelfTestResponse reply =
        VOXELD__V1__SELF_TEST_RESPONSE__INIT;
    void *copy = vxd_decoder_alloc(request->decoder, sizeof reply, err);

    (void)queue;
    if (copy == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    memcpy(copy, &reply, sizeof reply);
    request->output = copy;
    return VXD_OK;
}

static void sleep_release(struct vxd_request *request, struct vxd_queue *queue)
{
    (void)request;
    (void)queue;
    (void)pthread_mutex_lock(&seen.mutex);
    seen.n_released++;
    (void)pthread_mutex_unlock(&seen.mutex);
}

static enum vxd_status lose_submit(struct vxd_request *request, struct vxd_queue *queue,
                                   struct vxd_err *err)
{
    (void)request;
    vxd_context_mark_lost(vxd_queue_context(queue));
    return vxd_fail(err, VXD_INTERNAL, NULL, "as if CUDA had failed for good");
}

static bool always(const struct vxd_request *request)
{
    (void)request;
    return true;
}

#define SLEEP_METHOD(lane_kind, check_fn, submit_fn)                                     \
    {                                                                                    \
        .name = "sleep", .tag = 1000, .summary = "", .scope = VXD_SCOPE_READ,            \
        .lane = lane_kind, .input = &voxeld__v1__self_test_request__descriptor,          \
        .output = &voxeld__v1__self_test_response__descriptor, .check = check_fn,        \
        .submit = submit_fn, .finish = sleep_finish, .release = sleep_release            \
    }
const struct vxd_method small_method =
    SLEEP_METHOD(VXD_LANE_READ, sleep_check, sleep_submit);
const struct vxd_method bulk_method =
    SLEEP_METHOD(VXD_LANE_READ, bulk_check, sleep_submit);
const struct vxd_method large_method =
    SLEEP_METHOD(VXD_LANE_READ, large_check, sleep_submit);
const struct vxd_method waiting_method =
    SLEEP_METHOD(VXD_LANE_READ, sleep_check, waiting_submit);
const struct vxd_method slow_method =
    SLEEP_METHOD(VXD_LANE_READ, slow_check, sleep_submit);
const struct vxd_method write_method =
    SLEEP_METHOD(VXD_LANE_WRITE, sleep_check, sleep_submit);
const struct vxd_method change_method = {
    .name = "change",
    .tag = 1001,
    .summary = "",
    .scope = VXD_SCOPE_WRITE,
    .lane = VXD_LANE_WRITE,
    .input = &voxeld__v1__self_test_request__descriptor,
    .output = &voxeld__v1__self_test_response__descriptor,
    .changes = always,
    .check = sleep_check,
    .submit = sleep_submit,
    .finish = sleep_finish,
    .release = sleep_release};
const struct vxd_method lose_method =
    SLEEP_METHOD(VXD_LANE_READ, sleep_check, lose_submit);
