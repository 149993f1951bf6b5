# SPDX-License-Identifier: Apache-2.0
"""libvoxeld's calls that do not wait: voxeld_METHOD_async, and what its outcome goes through."""

from __future__ import annotations

from clients.c_replies import CReplies
from clients.c_requests import CRequests
from model import Method

LATER = """/* What an asynchronous call needs at its end. */
struct {name}_later {{
    {callback} callback;
    void *context;
{kept}}};

static void {name}_ended(void *take_state, enum vxd_status status, struct vxd_reply *reply,
 struct vxd_err *err, const char *request_id, uint64_t sequence)
{{
    const struct {name}_later *later = take_state;
    struct {record} done = {{0}};
    struct voxeld_error error;
    bool is_open = status == VXD_OK;

    if (is_open) {{
        status = take_{name}(reply, &done, err);
        vxd_reply_close(reply);
    }}
    if (status != VXD_OK) {{
        (void)vxd_client_change_error(err, request_id, sequence, &error);
    }}
    later->callback(later->context, status == VXD_OK ? &done : NULL,
     status == VXD_OK ? NULL : &error);
    free(take_state);
}}

"""
LATER_RESULT = """/* What an asynchronous call needs at its end. */
struct {name}_later {{
    {callback} callback;
    void *context;
{kept}}};

static void {name}_ended(void *take_state, enum vxd_status status, struct vxd_reply *reply,
 struct vxd_err *err, const char *request_id, uint64_t sequence)
{{
    const struct {name}_later *later = take_state;
    struct {record} *done = NULL;
    struct vxd_exchange call = {{.err = *err}};
    struct voxeld_error error;

    if (status == VXD_OK) {{
        call.reply = *reply;
        status = open_{name}(&call, {arguments}&done);
        vxd_reply_close(&call.reply);
    }}
    if (status != VXD_OK) {{
        (void)vxd_client_change_error(&call.err, request_id, sequence, &error);
    }}
    later->callback(later->context, done, status == VXD_OK ? NULL : &error);
    free(take_state);
}}

"""
ASYNC = """enum voxeld_status voxeld_{name}_async(struct voxeld_client *client,
 const struct {request} *request, {callback} callback, void *context, struct voxeld_error *error)
{{
    struct {name}_later *later = calloc(1, sizeof *later);
    {message} body;
    struct vxd_exchange call;
    enum vxd_status status;

    {init}(&body);
    VXD_TRY(vxd_exchange_begin(&call, client, &request->call, {changes}));
    if (callback == NULL) {{
        VXD_TRY(vxd_fail(&call.err, VXD_INVALID_ARGUMENT, "callback", "is NULL"));
    }}
    if (later == NULL) {{
        VXD_TRY(vxd_fail(&call.err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a call"));
    }}
    later->callback = callback;
    later->context = context;
{keep}    VXD_TRY({builds}(&call, request, &body));
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_{upper};
    call.request.{name} = &body;
    VXD_TRY(vxd_exchange_send_async(&call, {name}_ended, later));
    later = NULL; /* the call's */
out:
    free(later);
    return vxd_exchange_end(&call, status, error);
}}
"""


class CLater(CRequests, CReplies):
    """Writes the functions that hand their outcome to a callback."""

    def emit_async(self, method: Method) -> None:
        """The same call without waiting; its outcome goes to a callback."""
        face = self.method_face(method)
        if "async" not in face:
            return
        kept = keep = arguments = ""
        if self.needs_request(method):
            kept = f"struct {face['request']} request; /* borrows what the caller's does */\n"
            keep = "    later->request = *request;\n"
            arguments = "&later->request, "
        self.add((LATER_RESULT if "result" in face else LATER).format(
            name=method.name,
            callback=face["async"],
            record=face.get("result") or face["record"],
            kept=kept,
            arguments=arguments,
        ) + ASYNC.format(
            name=method.name,
            upper=method.name.upper(),
            callback=face["async"],
            request=face["request"],
            message=method.request.c,
            init=method.request.c_init,
            changes=self.changes(method),
            builds=self.build_function(method),
            keep=keep,
        ))

    def needs_request(self, method: Method) -> bool:
        """Whether its result is opened by what was asked for."""
        face = self.method_face(method)
        text = "\n".join(self.open_statements_of(method)) if "result" in face else ""
        return "request->" in text or "(request" in text
