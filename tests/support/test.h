// SPDX-License-Identifier: Apache-2.0
/* The whole unit test framework: needs nothing but a C compiler, so that the engine's
 * tests build on a bare machine. A test file lists its tests in a table and calls
 * VXD_TEST_MAIN; `./test_x NAME` runs one test, `./test_x` all. A test that cannot run
 * here calls SKIP with the reason. */
#ifndef VXD_TESTS_SUPPORT_TEST_H
#define VXD_TESTS_SUPPORT_TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int vxd_test_n_failed_checks;
static const char *vxd_test_skip_reason;

#define CHECK(condition)                                                                 \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            vxd_test_n_failed_checks++;                                                  \
            (void)fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__,       \
                          #condition);                                                   \
        }                                                                                \
    } while (0)

/* For a condition that the rest of the test relies on: returns from the test when it
 * fails. */
#define REQUIRE(condition)                                                               \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            vxd_test_n_failed_checks++;                                                  \
            (void)fprintf(stderr, "%s:%d: required: %s\n", __FILE__, __LINE__,           \
                          #condition);                                                   \
            return;                                                                      \
        }                                                                                \
    } while (0)

#define CHECK_INT(actual, expected)                                                      \
    do {                                                                                 \
        long long vxd_a = (long long)(actual);                                           \
        long long vxd_e = (long long)(expected);                                         \
        if (vxd_a != vxd_e) {                                                            \
            vxd_test_n_failed_checks++;                                                  \
            (void)fprintf(stderr, "%s:%d: %s is %lld, expected %lld\n", __FILE__,        \
                          __LINE__, #actual, vxd_a, vxd_e);                              \
        }                                                                                \
    } while (0)

#define CHECK_STR(actual, expected)                                                      \
    do {                                                                                 \
        const char *vxd_a = (actual);                                                    \
        const char *vxd_e = (expected);                                                  \
        if (strcmp(vxd_a, vxd_e) != 0) {                                                 \
            vxd_test_n_failed_checks++;                                                  \
            (void)fprintf(stderr, "%s:%d: %s is \"%s\", expected \"%s\"\n", __FILE__,    \
                          __LINE__, #actual, vxd_a, vxd_e);                              \
        }                                                                                \
    } while (0)

#define SKIP(reason)                                                                     \
    do {                                                                                 \
        vxd_test_skip_reason = (reason);                                                 \
        return;                                                                          \
    } while (0)

/* VOXELD_TEST_SLOW, 1 to 100: by which factor sanitizers, emulators and the like slow
 * a program down. It is 1, so that all of every test runs, where it is unset or
 * anything else. Tests that repeat similar faults run only every so many-th of them. */
static inline int vxd_test_slow(void)
{
    const char *text = getenv("VOXELD_TEST_SLOW");
    long slow = text != NULL ? strtol(text, NULL, 10) : 1;

    return slow >= 1 && slow <= 100 ? (int)slow : 1;
}

/* How many of `full` random cases are run: one in VOXELD_TEST_SLOW of them, at least
 * one. */
static inline int vxd_test_rounds(int full)
{
    int part = full / vxd_test_slow();

    return part > 1 ? part : 1;
}

struct vxd_test {
    const char *name;
    void (*run)(void);
};

static int vxd_test_run_all(const struct vxd_test *tests, size_t n, const char *only)
{
    int n_failed = 0;
    int n_skipped = 0;
    int n_run = 0;

    for (size_t i = 0; i < n; i++) {
        if (only != NULL && strcmp(only, tests[i].name) != 0) {
            continue;
        }
        vxd_test_n_failed_checks = 0;
        vxd_test_skip_reason = NULL;
        tests[i].run();
        n_run++;
        if (vxd_test_n_failed_checks > 0) {
            n_failed++;
            (void)printf("FAIL %s\n", tests[i].name);
        } else if (vxd_test_skip_reason != NULL) {
            n_skipped++;
            (void)printf("skip %s: %s\n", tests[i].name, vxd_test_skip_reason);
        } else {
            (void)printf("ok   %s\n", tests[i].name);
        }
        (void)fflush(stdout);
    }
    (void)printf("%d run, %d failed, %d skipped\n", n_run, n_failed, n_skipped);
    return n_failed > 0 || n_run == 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

#define VXD_TEST(name)                                                                   \
    {                                                                                    \
#name, name                                                                      \
    }

#define VXD_TEST_MAIN(tests)                                                             \
    int main(int argc, char **argv)                                                      \
    {                                                                                    \
        return vxd_test_run_all(tests, sizeof(tests) / sizeof((tests)[0]),               \
                                argc > 1 ? argv[1] : NULL);                              \
    }

#endif
