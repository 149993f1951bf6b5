// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <unistd.h>

#include "client/voxelctl/cli/cli.h"

enum {
    BAR_CHARS = 24,
    NAME_CHARS = 40
};

static bool is_drawn(size_t total)
{
    return total > 1 && isatty(STDERR_FILENO) == 1;
}

void ctl_progress_show(size_t n_done, size_t total, const char *name)
{
    char bar[BAR_CHARS + 1];

    if (!is_drawn(total)) {
        return;
    }
    for (size_t i = 0; i < BAR_CHARS; i++) {
        bar[i] = i < BAR_CHARS * n_done / total ? '#' : ' ';
    }
    bar[BAR_CHARS] = '\0';
    (void)fprintf(stderr, "\r[%s] %zu/%zu %.*s\033[K", bar, n_done, total, NAME_CHARS,
                  name);
    (void)fflush(stderr);
}

void ctl_progress_waiting(void *user, uint32_t waited_ms, uint32_t timeout_ms)
{
    static const char *const wheel[] = {"|", "/", "-", "\\"};

    (void)user;
    if (isatty(STDERR_FILENO) != 1) {
        return;
    }
    if (waited_ms == 0) {
        (void)fputs("\r\033[K", stderr);
    } else {
        (void)fprintf(stderr,
                      "\r%s waiting for the daemon, %" PRIu32 " s of at most %" PRIu32
                      "\033[K",
                      wheel[waited_ms / 250 % 4], waited_ms / 1000, timeout_ms / 1000);
    }
    (void)fflush(stderr);
}

void ctl_progress_clear(size_t total)
{
    if (is_drawn(total)) {
        (void)fputs("\r\033[K", stderr);
        (void)fflush(stderr);
    }
}
