// SPDX-License-Identifier: Apache-2.0
/* Requests over HTTP into the server: JSON, protobuf and files as bodies, views, all that the
 * headers can say, from the socket to the engine on the CPU and back. How a message is
 * framed (the ends of lines, Content-Length) is left right: that is microhttpd's. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.pb-c.h"
#include "proto/wire/wire.h"
#include "server/transport/http/http.h"
#include "tests/fuzz/server/daemon.h"
#include "tests/fuzz/server/http_peer.h"
#include "tests/fuzz/server/mutate.h"

enum {
    GOOD_EVERY = 256,        /* inputs between two looks at the good request */
    MAX_TARGET_BYTES = 2000, /* microhttpd's own answer to longer ones is another's */
    MAX_HEADERS = 24,
    MAX_VALUE_BYTES = 1000
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
    struct vxd_http *http;
    struct fuzz_peer peer;
    uint64_t n_inputs;
    uint8_t *good_reply;
    size_t good_bytes;
} target = {.peer = {.fd = -1}};

static const char *const verbs[] = {"POST", "GET", "HEAD", "OPTIONS", "PUT", "DELETE"};

static const char *const header_names[] = {
    "Accept",
    "Authorization",
    "Content-Type",
    "Expect",
    "Host",
    "Idempotency-Key",
    "Origin",
    "X-Request-Id",
    "X-Voxeld-Client-Id",
    "X-Voxeld-Keep-Last",
    "X-Voxeld-Max-Age-Ms",
    "X-Voxeld-Stream",
    "X-Voxeld-Timeout-Ms",
};

static void start(void)
{
    struct vxd_err err = {0};
    const char *colon;

    target.server = fuzz_server_start("127.0.0.1:0");
    FUZZ_EXPECT(vxd_http_start(target.server, -1, &target.http, &err) == VXD_OK, "%s",
                err.message);
    colon = strrchr(target.server->http_bound, ':');
    target.peer.port = (uint16_t)strtoul(colon + 1, NULL, 10);
}

static void stop(void)
{
    fuzz_peer_close(&target.peer);
    vxd_http_stop(target.http);
    fuzz_server_stop(target.server);
    target.server = NULL;
}

/* What a line of the head may hold: no ends of lines, no NUL. */
static void append_line_text(struct vxd_text *text, const char *value, size_t limit,
                             bool is_target)
{
    for (size_t i = 0; value[i] != '\0' && i < limit; i++) {
        unsigned char c = (unsigned char)value[i];
        bool is_bad = c < 0x20 || c == 0x7f || (is_target && c == ' ');

        vxd_text_append(text, is_bad ? "+" : value + i, 1);
    }
}

/* The method's own message of an envelope, and its name; NULL where none is set. */
static const ProtobufCMessage *method_of(const Voxeld__V1__Request *request,
                                         const char **name)
{
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(
        request->base.descriptor, (unsigned)request->method_case);
    void *message;

    if (field == NULL) {
        return NULL;
    }
    memcpy(&message, (const uint8_t *)request + field->offset, sizeof message);
    *name = field->name;
    return message;
}

/* The body of a step and what it is. */
static void write_body(const Vxdfuzz__HttpStep *step, struct vxd_text *body,
                       const char **name, const char **type)
{
    const ProtobufCMessage *message;
    struct vxd_err err = {0};
    uint8_t *bytes;
    size_t n_bytes;

    *name = "voxelize";
    *type = "application/json";
    switch (step->body_case) {
    case VXDFUZZ__HTTP_STEP__BODY_FILE:
        *type = "application/octet-stream";
        vxd_text_append(body, (const char *)step->file.data, step->file.len);
        break;
    case VXDFUZZ__HTTP_STEP__BODY_TEXT:
        vxd_text_append(body, step->text, strlen(step->text));
        break;
    case VXDFUZZ__HTTP_STEP__BODY_JSON:
        fuzz_limit_time(step->json);
        message = method_of(step->json, name);
        FUZZ_EXPECT(message == NULL || vxd_json_write(message, body, &err) == VXD_OK,
                    "%s", err.message);
        break;
    case VXDFUZZ__HTTP_STEP__BODY_PROTOBUF:
        *type = "application/x-protobuf";
        fuzz_limit_time(step->protobuf);
        message = method_of(step->protobuf, name);
        n_bytes = message != NULL ? protobuf_c_message_get_packed_size(message) : 0;
        bytes = malloc(n_bytes + 1);
        FUZZ_EXPECT(bytes != NULL, "no memory");
        if (message != NULL) {
            (void)protobuf_c_message_pack(message, bytes);
        }
        vxd_text_append(body, (const char *)bytes, n_bytes);
        free(bytes);
        break;
    default:
        break;
    }
}

/* Header lines; true where the name was among them. */
static bool write_headers(const Vxdfuzz__HttpStep *step, Vxdfuzz__HttpHeader__Name name,
                          struct vxd_text *out)
{
    bool found = false;

    for (size_t i = 0; i < step->n_headers && i < MAX_HEADERS; i++) {
        const Vxdfuzz__HttpHeader *header = step->headers[i];
        bool is_known =
            (size_t)header->name < sizeof header_names / sizeof header_names[0];

        if (!is_known || header->name != name) {
            continue;
        }
        found = true;
        vxd_text_printf(out, "%s: ", header_names[header->name]);
        append_line_text(out, header->value, MAX_VALUE_BYTES, false);
        vxd_text_append(out, "\r\n", 2);
    }
    return found;
}

static const char *verb_of(const Vxdfuzz__HttpStep *step)
{
    size_t verb = (size_t)step->verb;

    return verbs[verb < sizeof verbs / sizeof verbs[0] ? verb : 0];
}

/* One request as bytes. */
static void write_request(const Vxdfuzz__HttpStep *step, struct vxd_text *out)
{
    struct vxd_text body = {0};
    const char *name;
    const char *type;

    write_body(step, &body, &name, &type);
    vxd_text_printf(out, "%s /", verb_of(step));
    if (step->target[0] != '\0') {
        append_line_text(out, step->target, MAX_TARGET_BYTES, true);
    } else {
        vxd_text_printf(out, "v1/%s", name);
    }
    vxd_text_printf(out, " HTTP/1.1\r\n");
    for (size_t i = 0; i < sizeof header_names / sizeof header_names[0]; i++) {
        bool written = write_headers(step, (Vxdfuzz__HttpHeader__Name)i, out);

        if (!written && i == VXDFUZZ__HTTP_HEADER__NAME__HOST) {
            vxd_text_printf(out, "Host: 127.0.0.1:%u\r\n", target.peer.port);
        } else if (!written && i == VXDFUZZ__HTTP_HEADER__NAME__CONTENT_TYPE) {
            vxd_text_printf(out, "Content-Type: %s\r\n", type);
        }
    }
    vxd_text_printf(out, "Content-Length: %zu\r\n\r\n", body.n_bytes);
    if (body.n_bytes > 0) {
        vxd_text_append(out, body.bytes, body.n_bytes);
    }
    FUZZ_EXPECT(!out->failed && !body.failed, "no memory");
    free(body.bytes);
}

static void expect_error(const struct fuzz_response *response)
{
    static const char *const members[] = {"code", "message", "request_id"};
    json_error_t why;
    json_t *root = json_loadb((const char *)response->body, response->n_bytes,
                              JSON_REJECT_DUPLICATES, &why);

    FUZZ_EXPECT(root != NULL, "%d with %s", response->status, response->body);
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        const char *value = json_string_value(json_object_get(root, members[i]));

        FUZZ_EXPECT(value != NULL && value[0] != '\0', "%d has no %s: %s",
                    response->status, members[i], response->body);
    }
    FUZZ_EXPECT(json_is_string(json_object_get(root, "field")), "%d with %s",
                response->status, response->body);
    json_decref(root);
}

static void expect_safetensors(const struct fuzz_response *response)
{
    uint64_t n_header = 0;
    json_t *root;

    FUZZ_EXPECT(response->n_bytes >= 8, "%zu bytes", response->n_bytes);
    memcpy(&n_header, response->body, sizeof n_header);
    FUZZ_EXPECT(n_header <= response->n_bytes - 8, "%zu bytes", response->n_bytes);
    root = json_loadb((const char *)response->body + 8, (size_t)n_header, 0, NULL);
    FUZZ_EXPECT(json_is_object(root), "the header of %zu bytes", response->n_bytes);
    json_decref(root);
}

static void expect_output(const struct fuzz_response *response)
{
    json_t *root;

    if (strcmp(response->content_type, "application/json") == 0) {
        root = json_loadb((const char *)response->body, response->n_bytes,
                          JSON_REJECT_DUPLICATES, NULL);
        FUZZ_EXPECT(json_is_object(root), "%s", response->body);
        json_decref(root);
    } else if (strcmp(response->content_type, "application/x-safetensors") == 0) {
        expect_safetensors(response);
    }
}

static bool is_known_status(int status)
{
    static const int known[] = {200, 204, 400, 401, 403, 404, 405, 409, 411,
                                412, 413, 415, 429, 499, 501, 503, 504};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i] == status) {
            return true;
        }
    }
    return false;
}

/* Sends one step; true when what it changed may stay. */
static bool run_step(const Vxdfuzz__HttpStep *step)
{
    struct vxd_text request = {0};
    struct fuzz_response response;
    bool has_body = strcmp(verb_of(step), "HEAD") != 0;
    bool succeeded;

    write_request(step, &request);
    fuzz_peer_call(&target.peer, request.bytes, request.n_bytes, has_body, &response);
    FUZZ_EXPECT(is_known_status(response.status), "%d to %.200s", response.status,
                request.bytes);
    succeeded = response.status == 200;
    if (succeeded && has_body) {
        expect_output(&response);
    } else if (!succeeded && has_body && response.status != 204) {
        expect_error(&response);
    }
    free(response.body);
    free(request.bytes);
    return succeeded && strcmp(verb_of(step), "POST") == 0;
}

/* The good request answers as it did the first time. */
static void check_good_request(void)
{
    static const char head[] = "POST /v1/voxelize HTTP/1.1\r\nHost: localhost:%u\r\n"
                               "Content-Type: application/x-protobuf\r\n"
                               "Content-Length: %zu\r\n\r\n";
    struct fuzz_response response;
    struct vxd_text request = {0};
    Voxeld__V1__Request *envelope;
    Voxeld__V1__VoxelizeResponse *reply;
    uint8_t *bytes;
    size_t n_bytes = fuzz_good_request(&bytes);

    envelope = voxeld__v1__request__unpack(NULL, n_bytes, bytes);
    FUZZ_EXPECT(envelope != NULL, "no memory");
    n_bytes = voxeld__v1__voxelize_request__pack(envelope->voxelize, bytes);
    voxeld__v1__request__free_unpacked(envelope, NULL);
    vxd_text_printf(&request, head, target.peer.port, n_bytes);
    vxd_text_append(&request, (const char *)bytes, n_bytes);
    fuzz_server_set_patience(target.server, true);
    fuzz_peer_call(&target.peer, request.bytes, request.n_bytes, true, &response);
    (void)fuzz_server_settle(target.server, false);
    fuzz_server_set_patience(target.server, false);
    reply = voxeld__v1__voxelize_response__unpack(NULL, response.n_bytes, response.body);
    FUZZ_EXPECT(response.status == 200 && reply != NULL, "%d with %s", response.status,
                response.body);
    fuzz_expect_sound(&reply->base);
    reply->engine_ms = 0;
    n_bytes = voxeld__v1__voxelize_response__get_packed_size(reply);
    if (target.good_reply == NULL) {
        target.good_reply = malloc(n_bytes);
        FUZZ_EXPECT(target.good_reply != NULL, "no memory");
        target.good_bytes = voxeld__v1__voxelize_response__pack(reply, target.good_reply);
    }
    FUZZ_EXPECT(n_bytes == target.good_bytes && n_bytes <= response.n_bytes,
                "the good request is answered otherwise");
    (void)voxeld__v1__voxelize_response__pack(reply, response.body);
    FUZZ_EXPECT(memcmp(response.body, target.good_reply, n_bytes) == 0,
                "the good request is answered otherwise");
    voxeld__v1__voxelize_response__free_unpacked(reply, NULL);
    free(response.body);
    free(request.bytes);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Vxdfuzz__HttpSequence *sequence = vxdfuzz__http_sequence__unpack(NULL, size, data);
    bool changed = false;

    if (sequence == NULL) {
        return 0;
    }
    if (target.server == NULL) {
        start();
    }
    if (target.n_inputs++ % GOOD_EVERY == 0) {
        check_good_request();
    }
    for (size_t i = 0; i < sequence->n_steps && i < FUZZ_MAX_STEPS; i++) {
        changed = run_step(sequence->steps[i]) || changed;
    }
    vxdfuzz__http_sequence__free_unpacked(sequence, NULL);
    if (!fuzz_server_settle(target.server, changed)) {
        stop();
        start();
    }
    fuzz_peer_expect_silence(&target.peer);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return fuzz_mutate(&vxdfuzz__http_sequence__descriptor, data, size, max_size, seed);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_bytes, const uint8_t *b,
                                 size_t b_bytes, uint8_t *out, size_t max_size,
                                 unsigned seed)
{
    return fuzz_cross(&vxdfuzz__http_sequence__descriptor, a, a_bytes, b, b_bytes, out,
                      max_size, seed);
}
