// SPDX-License-Identifier: Apache-2.0
/* Commands that are other programs: voxelctl becomes them. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "client/voxelctl/cli/cli.h"

bool ctl_own_folder(const char *who, char *path, size_t n_path)
{
    ssize_t n = readlink("/proc/self/exe", path, n_path);
    char *slash;

    if (n < 0 || (size_t)n >= n_path) {
        (void)fprintf(stderr, "%s: cannot find out where voxelctl lies: %s\n", who,
                      n < 0 ? strerror(errno) : "its path is too long");
        return false;
    }
    path[n] = '\0';
    slash = strrchr(path, '/');
    if (slash != NULL) {
        slash[1] = '\0';
    }
    return slash != NULL;
}

int ctl_become(const char *who, const char *const *places, size_t n_places, char **words)
{
    char folder[PATH_MAX];
    char path[PATH_MAX + 64];

    if (!ctl_own_folder(who, folder, sizeof folder)) {
        return CTL_FAILED;
    }
    for (size_t i = 0; i < n_places; i++) {
        if (snprintf(path, sizeof path, "%s%s", folder, places[i]) < (int)sizeof path) {
            (void)execv(path, words);
            if (errno != ENOENT && errno != ENOTDIR) {
                (void)fprintf(stderr, "%s: %s: %s\n", who, path, strerror(errno));
                return CTL_FAILED;
            }
        }
    }
    (void)fprintf(stderr, "%s: the program for it is not installed:", who);
    for (size_t i = 0; i < n_places; i++) {
        (void)fprintf(stderr, "%s %s%s", i > 0 ? " and no" : " there is no", folder,
                      places[i]);
    }
    (void)fputs(".\n", stderr);
    return CTL_OK;
}
