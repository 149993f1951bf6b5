// SPDX-License-Identifier: Apache-2.0
/* Commands that are other programs: voxelctl becomes them. */
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "client/voxelctl/cli/cli.h"

enum {
    MESSAGE_BYTES = 2 * PATH_MAX
};

bool ctl_own_folder(const char *who, char *path, size_t n_path)
{
    ssize_t n = readlink("/proc/self/exe", path, n_path);
    char *slash;

    if (n < 0 || (size_t)n >= n_path) {
        char message[256];

        (void)snprintf(message, sizeof message, "cannot find out where voxelctl lies: %s",
                       n < 0 ? strerror(errno) : "its path is too long");
        (void)ctl_error_of(who, message, "");
        return false;
    }
    path[n] = '\0';
    slash = strrchr(path, '/');
    if (slash != NULL) {
        slash[1] = '\0';
    }
    return slash != NULL;
}

int ctl_become(const char *who, const char *const *places, size_t n_places, char **words,
               const char *help)
{
    char folder[PATH_MAX];
    char path[PATH_MAX + 64];
    char message[MESSAGE_BYTES] = "the program for it is not installed:";
    size_t n = strlen(message);

    if (!ctl_own_folder(who, folder, sizeof folder)) {
        return CTL_FAILED;
    }
    for (size_t i = 0; i < n_places; i++) {
        if (snprintf(path, sizeof path, "%s%s", folder, places[i]) < (int)sizeof path) {
            (void)execv(path, words);
            if (errno != ENOENT && errno != ENOTDIR) {
                (void)snprintf(message, sizeof message, "%s: %s", path, strerror(errno));
                return ctl_error_of(who, message, "");
            }
        }
    }
    for (size_t i = 0; i < n_places && n < sizeof message; i++) {
        n += (size_t)snprintf(message + n, sizeof message - n, "%s %s%s",
                              i > 0 ? " and no" : " there is no", folder, places[i]);
    }
    return ctl_error_of(who, message, help);
}

/* execv does not write to the words; its type is from before const. */
int ctl_become_daemon(const struct ctl_globals *globals, const char *who,
                      const char *const *words, size_t n_words)
{
    static const char *const places[] = {"voxeld"};
    char *all[CTL_DAEMON_WORDS + 3] = {(char *)"voxeld"};
    size_t n = 1;

    if (globals->json) {
        all[n++] = (char *)"--json";
    }
    for (size_t i = 0; i < n_words && i < CTL_DAEMON_WORDS; i++) {
        all[n++] = (char *)(uintptr_t)words[i];
    }
    return ctl_become(who, places, 1, all,
                      "It is the daemon's, voxeld, which lies beside voxelctl where both "
                      "are installed.");
}
