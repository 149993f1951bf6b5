// SPDX-License-Identifier: Apache-2.0
/* Requests, mutated by their descriptors, into the server over rpc: its own transport,
 * reached through nng over an ipc socket, its scheduler and the engine on the CPU. An input is a
 * sequence of requests, one after the other or all at once. */
#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.pb-c.h"
#include "proto/base/name.h"
#include "proto/wire/wire.h"
#include "server/method_table.h"
#include "server/request/request.h"
#include "server/transport/nng/nng.h"
#include "tests/fuzz/server/daemon.h"
#include "tests/fuzz/server/mutate.h"

#define ID_MARK 0x80000000u /* of the id that ends nng's header */

enum {
    RAW_ONE_IN = 12,  /* mutations of bytes, not of fields */
    GOOD_EVERY = 256, /* inputs between two looks at the good request */
    RECEIVE_BUFFER = 2 * FUZZ_MAX_STEPS
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_bytes, const uint8_t *b,
                                 size_t b_bytes, uint8_t *out, size_t max_size,
                                 unsigned seed);

/* Lives as long as the process: libFuzzer passes nothing along. */
static struct {
    struct vxd_server *server;
    struct vxd_rpc *rpc;
    nng_socket socket; /* raw REQ: sees every reply, wanted or not */
    uint64_t n_inputs;
    uint8_t *good_reply;
    size_t good_bytes;
} target;

/* What is sent and expected for one step. */
struct exchange {
    uint8_t *bytes;
    size_t n_bytes;
    uint32_t tag; /* of the method; 0 where the envelope is no good */
    char request_id[VXD_NAME_BYTES];
    bool answered;
    bool changed; /* succeeded, and what it changed may stay */
};

static void start(void)
{
    struct vxd_err err = {0};

    target.server = fuzz_server_start("");
    FUZZ_EXPECT(vxd_rpc_start(target.server, &target.rpc, &err) == VXD_OK, "%s",
                err.message);
    FUZZ_EXPECT(
        nng_req0_open_raw(&target.socket) == 0 &&
            nng_socket_set_ms(target.socket, NNG_OPT_RECVTIMEO, FUZZ_REPLY_WAIT_MS) ==
                0 &&
            nng_socket_set_int(target.socket, NNG_OPT_RECVBUF, RECEIVE_BUFFER) == 0 &&
            nng_dial(target.socket, fuzz_url(), NULL, 0) == 0,
        "no socket");
}

static void stop(void)
{
    (void)nng_close(target.socket);
    vxd_rpc_stop(target.rpc);
    fuzz_server_stop(target.server);
    target.server = NULL;
}

static void send_bytes(const uint8_t *bytes, size_t n_bytes, uint32_t id)
{
    nng_msg *msg = NULL;

    FUZZ_EXPECT(nng_msg_alloc(&msg, 0) == 0 && nng_msg_append(msg, bytes, n_bytes) == 0 &&
                    nng_msg_header_append_u32(msg, id | ID_MARK) == 0 &&
                    nng_sendmsg(target.socket, msg, 0) == 0,
                "cannot send");
}

static nng_msg *receive(uint32_t *id)
{
    nng_msg *msg = NULL;
    int result = nng_recvmsg(target.socket, &msg, 0);

    FUZZ_EXPECT(result == 0, "no reply: %s", nng_strerror(result));
    FUZZ_EXPECT(nng_msg_header_trim_u32(msg, id) == 0, "a reply to nothing");
    *id &= ~ID_MARK;
    return msg;
}

static void expect_silence(void)
{
    nng_msg *msg = NULL;

    FUZZ_EXPECT(nng_recvmsg(target.socket, &msg, NNG_FLAG_NONBLOCK) == NNG_EAGAIN,
                "a reply too many, of %zu bytes", nng_msg_len(msg));
}

/* The good request answers as it did the first time. */
static void check_good_request(void)
{
    uint8_t *bytes;
    size_t n_bytes = fuzz_good_request(&bytes);
    uint8_t *reply;
    size_t n_reply;
    uint32_t id;
    nng_msg *msg;

    fuzz_server_set_patience(target.server, true);
    send_bytes(bytes, n_bytes, 0);
    msg = receive(&id);
    n_reply = fuzz_good_reply(nng_msg_body(msg), nng_msg_len(msg), &reply);
    nng_msg_free(msg);
    free(bytes);
    (void)fuzz_server_settle(target.server, false);
    fuzz_server_set_patience(target.server, false);
    if (target.good_reply == NULL) {
        target.good_reply = reply;
        target.good_bytes = n_reply;
        return;
    }
    FUZZ_EXPECT(n_reply == target.good_bytes &&
                    memcmp(reply, target.good_reply, n_reply) == 0,
                "the good request is answered otherwise");
    free(reply);
}

/* Packs the step; scanning the envelope shows which reply must come. */
static void prepare(const Vxdfuzz__Step *step, struct exchange *out)
{
    struct vxd_envelope envelope = {0};
    Voxeld__V1__Request *request = NULL;

    if (step->form_case == VXDFUZZ__STEP__FORM_REQUEST) {
        request = step->request;
        fuzz_limit_time(request);
        out->n_bytes = voxeld__v1__request__get_packed_size(request);
    } else if (step->form_case == VXDFUZZ__STEP__FORM_RAW) {
        out->n_bytes = step->raw.len;
    }
    out->bytes = malloc(out->n_bytes + 1);
    FUZZ_EXPECT(out->bytes != NULL, "no memory");
    if (request != NULL) {
        (void)voxeld__v1__request__pack(request, out->bytes);
    } else if (out->n_bytes > 0) {
        memcpy(out->bytes, step->raw.data, out->n_bytes);
    }
    if (request != NULL && request->header != NULL) {
        (void)snprintf(out->request_id, sizeof out->request_id, "%s",
                       request->header->request_id);
    }
    if (vxd_envelope_scan(out->bytes, out->n_bytes, &envelope, NULL) == VXD_OK) {
        out->tag = envelope.method_tag;
    }
}

static void check_reply(struct exchange *exchange, const uint8_t *bytes, size_t n_bytes)
{
    Voxeld__V1__Response *reply = voxeld__v1__response__unpack(NULL, n_bytes, bytes);
    const Voxeld__V1__ResponseHeader *header;
    const struct vxd_method *method =
        vxd_method_by_tag(vxd_method_table(), exchange->tag);

    FUZZ_EXPECT(reply != NULL && reply->header != NULL, "no reply in %zu bytes", n_bytes);
    header = reply->header;
    fuzz_expect_code((int)header->code);
    fuzz_expect_sound(&reply->base);
    FUZZ_EXPECT(header->request_id[0] != '\0', "no id");
    if (header->code == VOXELD__V1__CODE__OK) {
        FUZZ_EXPECT(exchange->tag != 0 && (uint32_t)reply->method_case == exchange->tag,
                    "method %u is answered as %d", (unsigned)exchange->tag,
                    (int)reply->method_case);
        FUZZ_EXPECT(exchange->request_id[0] == '\0' ||
                        strcmp(exchange->request_id, header->request_id) == 0,
                    "%s is answered as %s", exchange->request_id, header->request_id);
        FUZZ_EXPECT(header->message[0] == '\0' && header->field[0] == '\0', "%s: %s",
                    header->field, header->message);
        exchange->changed = method != NULL && method->lane == VXD_LANE_WRITE;
    } else {
        FUZZ_EXPECT(header->message[0] != '\0', "code %d says nothing",
                    (int)header->code);
        FUZZ_EXPECT(reply->method_case == VOXELD__V1__RESPONSE__METHOD__NOT_SET,
                    "code %d comes with an answer", (int)header->code);
    }
    voxeld__v1__response__free_unpacked(reply, NULL);
}

static void receive_one(struct exchange *exchanges, size_t n)
{
    uint32_t id;
    nng_msg *msg = receive(&id);

    FUZZ_EXPECT(id < n && !exchanges[id].answered, "an unexpected reply, to %u",
                (unsigned)id);
    exchanges[id].answered = true;
    check_reply(&exchanges[id], nng_msg_body(msg), nng_msg_len(msg));
    nng_msg_free(msg);
}

static void run(const Vxdfuzz__Sequence *sequence)
{
    struct exchange exchanges[FUZZ_MAX_STEPS] = {{0}};
    size_t n = sequence->n_steps < FUZZ_MAX_STEPS ? sequence->n_steps : FUZZ_MAX_STEPS;
    bool changed = false;

    for (size_t i = 0; i < n; i++) {
        prepare(sequence->steps[i], &exchanges[i]);
        send_bytes(exchanges[i].bytes, exchanges[i].n_bytes, (uint32_t)i);
        if (!sequence->at_once) {
            receive_one(exchanges, n);
        }
    }
    for (size_t i = 0; i < n && sequence->at_once; i++) {
        receive_one(exchanges, n);
    }
    for (size_t i = 0; i < n; i++) {
        changed = changed || exchanges[i].changed;
        free(exchanges[i].bytes);
    }
    if (!fuzz_server_settle(target.server, changed)) {
        stop();
        start();
    }
    expect_silence();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Vxdfuzz__Sequence *sequence = vxdfuzz__sequence__unpack(NULL, size, data);

    if (sequence == NULL) {
        return 0;
    }
    if (target.server == NULL) {
        start();
    }
    if (target.n_inputs++ % GOOD_EVERY == 0) {
        check_good_request();
    }
    run(sequence);
    vxdfuzz__sequence__free_unpacked(sequence, NULL);
    return 0;
}

/* Turns one request into bytes and changes these: what no field can say. */
static size_t mutate_bytes(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    enum {
        ROOM_BYTES = 64
    };
    struct fuzz_random random = {seed};
    Vxdfuzz__Sequence *sequence = vxdfuzz__sequence__unpack(NULL, size, data);
    Vxdfuzz__Step *step;
    struct exchange packed = {0};

    if (sequence == NULL || sequence->n_steps == 0) {
        if (sequence != NULL) {
            vxdfuzz__sequence__free_unpacked(sequence, NULL);
        }
        return fuzz_mutate(&vxdfuzz__sequence__descriptor, data, size, max_size, seed);
    }
    step = sequence->steps[fuzz_random_below(&random, sequence->n_steps)];
    prepare(step, &packed);
    packed.bytes = realloc(packed.bytes, packed.n_bytes + ROOM_BYTES);
    FUZZ_EXPECT(packed.bytes != NULL, "no memory");
    packed.n_bytes =
        LLVMFuzzerMutate(packed.bytes, packed.n_bytes, packed.n_bytes + ROOM_BYTES);
    if (step->form_case == VXDFUZZ__STEP__FORM_REQUEST) {
        voxeld__v1__request__free_unpacked(step->request, NULL);
    } else {
        free(step->raw.data);
    }
    step->form_case = VXDFUZZ__STEP__FORM_RAW;
    step->raw.data = packed.bytes;
    step->raw.len = packed.n_bytes;
    if (vxdfuzz__sequence__get_packed_size(sequence) <= max_size) {
        size = vxdfuzz__sequence__pack(sequence, data);
    }
    vxdfuzz__sequence__free_unpacked(sequence, NULL);
    return size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    if (seed % RAW_ONE_IN == 0) {
        return mutate_bytes(data, size, max_size, seed);
    }
    return fuzz_mutate(&vxdfuzz__sequence__descriptor, data, size, max_size, seed);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_bytes, const uint8_t *b,
                                 size_t b_bytes, uint8_t *out, size_t max_size,
                                 unsigned seed)
{
    return fuzz_cross(&vxdfuzz__sequence__descriptor, a, a_bytes, b, b_bytes, out,
                      max_size, seed);
}
