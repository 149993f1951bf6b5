// SPDX-License-Identifier: Apache-2.0
/* Issues tokens: what the schema says in the terms of server/access, which decides. */
#include <inttypes.h>

#include "server/instance/instance.h"
#include "server/observe/log/log.h"
#include "server/service/service.h"
#include "voxeld/v1/token.pb-c.h"

enum {
    MAX_PREFIXES = 64
};

static enum vxd_status read_scopes(const Voxeld__V1__TokenIssueRequest *input,
                                   uint32_t *out, struct vxd_err *err)
{
    *out = 0;
    for (size_t i = 0; i < input->n_scopes; i++) {
        uint32_t scope;

        if (strchr(input->scopes[i], ',') != NULL ||
            !vxd_scopes_read(input->scopes[i], &scope)) {
            char field[32];

            (void)snprintf(field, sizeof field, "scopes[%zu]", i);
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                            "is '%.40s', it must be read, write or admin",
                            input->scopes[i]);
        }
        *out |= scope;
    }
    return VXD_OK;
}

static enum vxd_status write_scopes(struct vxd_decoder *decoder, uint32_t scopes,
                                    Voxeld__V1__TokenIssueResponse *reply,
                                    struct vxd_err *err)
{
    reply->scopes = vxd_message_pointers(decoder, 3, err);
    if (reply->scopes == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (uint32_t scope = 1; scope <= VXD_SCOPE_ADMIN; scope *= 2) {
        char name[32];

        if ((scopes & scope) == 0) {
            continue;
        }
        vxd_scopes_write(scope, name, sizeof name);
        reply->scopes[reply->n_scopes] =
            vxd_message_text(decoder, name, strlen(name), err);
        if (reply->scopes[reply->n_scopes] == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        reply->n_scopes++;
    }
    return VXD_OK;
}

enum vxd_status vxd_token_issue_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__TokenIssueRequest *input =
        (const Voxeld__V1__TokenIssueRequest *)request->input;
    struct vxd_decoder *decoder = request->decoder;
    Voxeld__V1__TokenIssueResponse *reply =
        vxd_message_new(decoder, &voxeld__v1__token_issue_response__descriptor, err);
    struct vxd_token_terms terms = {.prefixes = (const char *const *)input->prefixes,
                                    .n_prefixes = input->n_prefixes,
                                    .ttl_s = input->ttl_s};
    char text[VXD_SIGNED_TOKEN_BYTES];
    int64_t expires_s;
    uint32_t scopes;
    enum vxd_status status = reply != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;

    if (status != VXD_OK) {
        return status;
    }
    if (input->n_prefixes > MAX_PREFIXES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "prefixes",
                        "are %zu, at most %d are possible", input->n_prefixes,
                        MAX_PREFIXES);
    }
    VXD_TRY(read_scopes(input, &terms.scopes, err));
    VXD_TRY(vxd_auth_issue(request->server->auth, &request->principal, &terms, text,
                           &expires_s, &scopes, err));
    reply->token = vxd_message_text(decoder, text, strlen(text), err);
    reply->name = vxd_message_text(decoder, request->principal.name,
                                   strlen(request->principal.name), err);
    if (reply->token == NULL || reply->name == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(write_scopes(decoder, scopes, reply, err));
    reply->expires_ns = expires_s * INT64_C(1000000000);
    vxd_log(VXD_LOG_INFO, "token issued", "by", request->principal.name, "request_id",
            request->id);
    request->output = &reply->base;
out:
    return status;
}
