// SPDX-License-Identifier: Apache-2.0
#include "client/voxelctl/admin/voxelctl_admin.h"

#include "client/c/include/voxeld_why.h"

static void print_ahead(const struct voxeld_why *why)
{
    (void)fputs(",\"ahead\":[", stdout);
    for (size_t i = 0; i < why->n_ahead; i++) {
        const struct voxeld_why_ahead *ahead = &why->ahead[i];

        (void)fputs(i == 0 ? "{" : ",{", stdout);
        ctl_json_member_string(stdout, true, "method", ahead->method);
        ctl_json_member_string(stdout, false, "token", ahead->token);
        ctl_json_member_count(stdout, false, "n", ahead->n);
        (void)fprintf(stdout, ",\"is_running\":%s}",
                      ahead->is_running ? "true" : "false");
    }
    (void)fputc(']', stdout);
}

static void print(const struct voxeld_why *why, bool json)
{
    if (!json) {
        (void)printf("%s, %s of %s\n%s\n", why->request_id, why->method, why->token,
                     why->summary);
        return;
    }
    (void)fputc('{', stdout);
    ctl_json_member_string(stdout, true, "request_id", why->request_id);
    ctl_json_member_string(stdout, false, "method", why->method);
    ctl_json_member_string(stdout, false, "token", why->token);
    ctl_json_member_string(stdout, false, "state", why->state);
    ctl_json_member_string(stdout, false, "code", voxeld_status_name(why->code));
    ctl_json_member_string(stdout, false, "message", why->message);
    ctl_json_member_string(stdout, false, "field", why->field);
    ctl_json_member_string(stdout, false, "key", why->key);
    ctl_json_member_count(stdout, false, "limit", why->limit);
    ctl_json_member_count(stdout, false, "queue_position", why->queue_position);
    print_ahead(why);
    ctl_json_member_count(stdout, false, "n_others", why->n_others);
    ctl_json_member_number(stdout, false, "receive_ms", why->receive_ms);
    ctl_json_member_number(stdout, false, "decode_ms", why->decode_ms);
    ctl_json_member_number(stdout, false, "wait_ms", why->wait_ms);
    ctl_json_member_number(stdout, false, "engine_ms", why->engine_ms);
    ctl_json_member_number(stdout, false, "commit_ms", why->commit_ms);
    ctl_json_member_number(stdout, false, "total_ms", why->total_ms);
    ctl_json_member_string(stdout, false, "trace_id", why->trace_id);
    ctl_json_member_string(stdout, false, "summary", why->summary);
    (void)fputs("}\n", stdout);
}

static int run(struct ctl_globals *globals, int argc, char **argv)
{
    struct voxeld_why_request request = {0};
    struct voxeld_client *client;
    struct voxeld_why *why = NULL;
    struct voxeld_error error;
    int result = CTL_OK;

    if (ctl_plain_options(globals, &ctl_why, argc, argv, 1, 1, &result)) {
        return result;
    }
    request.request_id = argv[optind];
    client = ctl_connect(globals);
    if (client == NULL) {
        return CTL_FAILED;
    }
    if (voxeld_why(client, &request, &why, &error) != VOXELD_OK) {
        result = ctl_failed(request.request_id, &error);
    } else {
        print(why, globals->json);
        result = ctl_flush();
    }
    voxeld_why_free(why);
    voxeld_close(client);
    return result;
}

const struct ctl_command ctl_why = {
    .name = "why",
    .summary = "explains why a request was refused, or takes so long",
    .help =
        "voxelctl why - explains why a request was refused, or takes so long\n"
        "\n"
        "usage: voxelctl why REQUEST_ID [--json] [OPTIONS]\n"
        "\n"
        "REQUEST_ID is in every reply and error, in the daemon's log, and in what\n"
        "voxelctl prints when a request fails: \"[request c0ffee-12]\". Says what the\n"
        "request waits for or spent its time on, who was ahead of it in the queue,\n"
        "which limit refused it, and which key of the configuration sets that limit.\n"
        "The daemon remembers requests that failed or took at least 10 ms, the last\n"
        "few dozen of each token. Without the scope admin one sees those of one's own\n"
        "token.\n"
        "\n"
        "The shared options: voxelctl --help.\n"
        "\n"
        "examples\n"
        "  voxelctl why c0ffee-12\n"
        "  curl -d '{\"requestId\":\"c0ffee-12\"}' -H 'Content-Type: application/json'\n"
        "       http://127.0.0.1:8420/v1/why\n",
    .run = run,
};
