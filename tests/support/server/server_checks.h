// SPDX-License-Identifier: Apache-2.0
/* How server_helpers.c reports failures to the test that called it: test.h counts per file,
 * so every test file of the server defines this one function by VXD_TEST_HELPERS. */
#ifndef VXD_TESTS_SUPPORT_SERVER_SERVER_CHECKS_H
#define VXD_TESTS_SUPPORT_SERVER_SERVER_CHECKS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void vxd_test_note_failure(const char *where, const char *what);

#define VXD_TEST_HELPERS                                                                 \
    void vxd_test_note_failure(const char *where, const char *what)                      \
    {                                                                                    \
        vxd_test_n_failed_checks++;                                                      \
        (void)fprintf(stderr, "%s: %s\n", where, what);                                  \
    }

/* A check of what several tests use. */
#define EXPECT(condition)                                                                \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            vxd_test_note_failure(__func__, #condition);                                 \
        }                                                                                \
    } while (0)

#endif
