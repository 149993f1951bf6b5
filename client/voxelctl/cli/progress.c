// SPDX-License-Identifier: Apache-2.0
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

void ctl_progress_clear(size_t total)
{
    if (is_drawn(total)) {
        (void)fputs("\r\033[K", stderr);
        (void)fflush(stderr);
    }
}
