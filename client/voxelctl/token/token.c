// SPDX-License-Identifier: Apache-2.0
/* voxelctl token: short-lived tokens. */
#include <inttypes.h>
#include <string.h>

#include "client/voxelctl/generated/token_args.h"

enum {
    URL_BYTES = 2048
};

/* The host of tcp://HOST:PORT, with brackets where it has some; false for ipc. */
static bool host_of(const char *url, const char **host, int *n)
{
    const char *colon;

    if (url == NULL || strncmp(url, "ipc:", 4) == 0 || strstr(url, "://") == NULL) {
        return false;
    }
    *host = strstr(url, "://") + 3;
    colon = strrchr(*host, ':');
    *n = colon != NULL ? (int)(colon - *host) : (int)strlen(*host);
    return *n > 0;
}

/* Writes the address that a browser of this machine reaches the dashboard by: a daemon that listens on
 * all of its addresses does not say which. */
static void write_address(const char *http, const char *url, char out[URL_BYTES])
{
    static const char *const any[] = {"://0.0.0.0:", "://[::]:"};
    const char *host = "localhost";
    int n = (int)strlen(host);

    for (size_t i = 0; i < sizeof any / sizeof any[0]; i++) {
        const char *at = strstr(http, any[i]);

        if (at != NULL) {
            (void)host_of(url, &host, &n);
            (void)snprintf(out, URL_BYTES, "%.*s://%.*s:%s", (int)(at - http), http, n,
                           host, at + strlen(any[i]));
            return;
        }
    }
    (void)snprintf(out, URL_BYTES, "%s", http);
}

/* A token of ours is "vxd1." and base64url, which means itself in a URL. */
int ctl_token_login(struct voxeld_client *client, const struct ctl_globals *globals,
                    const struct ctl_token_args *args)
{
    struct voxeld_token_issue_request request = {0};
    struct voxeld_server_info *info = NULL;
    struct voxeld_token *token = NULL;
    struct voxeld_error error;
    char address[URL_BYTES];

    if (voxeld_get_server_info(client, NULL, &info, &error) != VOXELD_OK) {
        return ctl_failed("token login", &error);
    }
    write_address(info->http, globals->options.url, address);
    voxeld_server_info_free(info);
    if (strncmp(address, "http", 4) != 0) {
        return ctl_error_of("voxelctl token login",
                            address[0] == '\0'
                                ? "the daemon has no HTTP, so no dashboard"
                                : "the daemon's HTTP is a unix socket, which no browser "
                                  "reaches",
                            "listen.http says where it is");
    }
    ctl_token_issue_request(args, &request);
    if (voxeld_token_issue(client, &request, &token, &error) != VOXELD_OK) {
        return ctl_failed("token login", &error);
    }
    if (globals->json) {
        (void)printf("{\"url\": \"%s/#token=%s\", \"expires_ns\": %" PRId64 "}\n",
                     address, token->token, token->expires_ns);
    } else {
        (void)printf("%s/#token=%s\n", address, token->token);
    }
    voxeld_token_free(token);
    return ctl_flush();
}
