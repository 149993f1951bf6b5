// SPDX-License-Identifier: Apache-2.0
/* The dashboard's files (server/web), which are part of the program. They are the same for
 * everybody: what is behind them asks for a token. */
#include <string.h>

#include "server/transport/http/http_internal.h"
#include "server/web/web.h"

/* The pages load nothing but these files, run nothing that stands in a page, and talk to nobody
 * but this server. */
#define POLICY                                                                           \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "    \
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

static const char *type_of(const char *path)
{
    static const struct {
        const char *ending;
        const char *type;
    } types[] = {{".js", "text/javascript; charset=utf-8"},
                 {".css", "text/css; charset=utf-8"},
                 {".svg", "image/svg+xml"},
                 {".html", "text/html; charset=utf-8"}};
    size_t n_path = strlen(path);

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        size_t n = strlen(types[i].ending);

        if (n_path > n && strcmp(path + n_path - n, types[i].ending) == 0) {
            return types[i].type;
        }
    }
    return "application/octet-stream";
}

static const struct vxd_web_file *find(const char *path)
{
    path = strcmp(path, "/") == 0 ? "/index.html" : path;
    for (size_t i = 0; i < vxd_n_web_files; i++) {
        if (strcmp(path, vxd_web_files[i].path) == 0) {
            return &vxd_web_files[i];
        }
    }
    return NULL;
}

bool vxd_http_is_static(const char *path)
{
    return find(path) != NULL;
}

void vxd_http_write_static(struct vxd_http_exchange *exchange)
{
    const struct vxd_web_file *file = find(exchange->url);

    vxd_http_set_static(exchange, MHD_HTTP_OK, type_of(file->path), file->bytes,
                        *file->n_bytes);
    vxd_http_add_header(exchange, "Content-Security-Policy", POLICY);
    vxd_http_add_header(exchange, "Referrer-Policy", "no-referrer");
    vxd_http_add_header(exchange, "Cross-Origin-Opener-Policy", "same-origin");
    vxd_http_add_header(exchange, "Cross-Origin-Resource-Policy", "same-origin");
}
