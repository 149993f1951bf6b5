// SPDX-License-Identifier: Apache-2.0
/* Running voxelctl as its users do. */
#ifndef VXD_TESTS_SUPPORT_CLIENT_RUN_VOXELCTL_H
#define VXD_TESTS_SUPPORT_CLIENT_RUN_VOXELCTL_H

#include <sys/wait.h>

#include "tests/support/test.h"

/* A command line, what it ends with, and a part of what it says. */
struct usage {
    const char *words;
    int exit;
    const char *says;
};

/* Runs voxelctl (VOXELCTL, as the build says) with these words, behind what is piped into it
 * ("" or "... | "); both outputs go to text. Returns what it ended with, -1 where it could not
 * be started. */
static inline int ctl_piped(const char *voxelctl, const char *before, const char *words,
                            char *text, size_t n_text)
{
    char command[8192];
    FILE *pipe;
    size_t n = 0;
    int status;

    (void)snprintf(command, sizeof command, "%s%s %s 2>&1", before, voxelctl, words);
    pipe = popen(command, "r");
    if (pipe == NULL) {
        return -1;
    }
    n = fread(text, 1, n_text - 1, pipe);
    text[n] = '\0';
    status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static inline void check_says(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        (void)fprintf(stderr, "\"%s\" lacks \"%s\"\n", text, part);
        CHECK(strstr(text, part) != NULL);
    }
}

#endif
