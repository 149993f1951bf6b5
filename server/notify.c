// SPDX-License-Identifier: Apache-2.0
#include "server/notify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/observe/log/log.h"

void vxd_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t n_bytes = path != NULL ? strlen(path) : 0;
    int fd;

    if (n_bytes == 0) {
        return;
    }
    if (n_bytes >= sizeof address.sun_path) {
        vxd_log(VXD_LOG_WARNING, "NOTIFY_SOCKET is too long", "path", path);
        return;
    }
    memcpy(address.sun_path, path, n_bytes);
    if (path[0] == '@') {
        address.sun_path[0] = '\0'; /* Linux's abstract names */
    }
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 ||
        sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n_bytes)) < 0) {
        vxd_log(VXD_LOG_WARNING, "telling the supervisor failed", "error",
                strerror(errno));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}
