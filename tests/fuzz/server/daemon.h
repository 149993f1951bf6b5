// SPDX-License-Identifier: Apache-2.0
/* A real server on the CPU within the fuzzer's process, small in every limit, and what must
 * hold of it whatever it was asked. A broken promise ends the process: libFuzzer keeps the
 * input. Every line it logs is looked at instead of printed. */
#ifndef VXD_TESTS_FUZZ_SERVER_DAEMON_H
#define VXD_TESTS_FUZZ_SERVER_DAEMON_H

#include <protobuf-c/protobuf-c.h>

#include "server/instance/instance.h"
#include "voxeld/v1/rpc.pb-c.h"

enum {
    FUZZ_MAX_STEPS = 8, /* of one input */
    FUZZ_REPLY_WAIT_MS = 60000
};

/* Fails loudly unless the condition holds; the rest is a printf of what was seen. */
#define FUZZ_EXPECT(condition, ...)                                                      \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            fuzz_fail(#condition, __VA_ARGS__);                                          \
        }                                                                                \
    } while (0)

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3), noreturn))
#endif
void fuzz_fail(const char *condition, const char *format, ...);

/* Where a target's rpc listens, if it does: an ipc socket of this process. */
#define FUZZ_URL_PREFIX "ipc://"
const char *fuzz_url(void);

/* Starts the server; `http` is filled into its configuration. Transports are the target's to
 * start and stop. */
struct vxd_server *fuzz_server_start(const char *http);

/* All transports of it have stopped. */
void fuzz_server_stop(struct vxd_server *take_server);

/* Waits until every request is answered and let go of; no byte may be in flight then.
 * Returns whether the engine's memory is as it was at the start; where not, `may_keep`
 * says that a request which changes things succeeded. The target then begins with a new
 * server, so that every input finds the same one. */
bool fuzz_server_settle(struct vxd_server *server, bool may_keep);

/* For a request that must succeed on however busy a machine: no deadlines, for a while. */
void fuzz_server_set_patience(struct vxd_server *server, bool patient);

/* The one method whose time its sender chooses would take all of it. What is shorter than
 * its timeout, and envelopes of bytes, still reach the deadline. */
void fuzz_limit_time(Voxeld__V1__Request *request);

/* A code that a stranger may be answered with: known, and none that blames the server. */
void fuzz_expect_code(int code);

/* What holds of every reply's message: text is UTF-8, tensors have as many bytes as their
 * shapes say, voxelized points add up. */
void fuzz_expect_sound(const ProtobufCMessage *output);

/* Bytes of a Request that asks for a voxelization, and its reply, less what a clock says,
 * in one fixed form: *out is malloc's. */
size_t fuzz_good_request(uint8_t **out);
size_t fuzz_good_reply(const uint8_t *response, size_t n_bytes, uint8_t **out);

#endif
