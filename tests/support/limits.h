// SPDX-License-Identifier: Apache-2.0
/* The ranges of numbers in a structure that a function checks: both ends are taken, and the next
 * number beyond either end, and NaN, are refused with the name of the field. */
#ifndef VXD_TESTS_SUPPORT_LIMITS_H
#define VXD_TESTS_SUPPORT_LIMITS_H

#include <math.h>
#include <stddef.h>

#include "proto/base/base.h"
#include "tests/support/test.h"

struct test_limit {
    const char *field; /* as the error names it */
    size_t offset; /* in the structure, of an int, or of a double where is_real is set */
    double low;
    double high; /* both ends are in the range; INFINITY: large numbers are in it */
    bool is_real;
};

#define TEST_LIMIT_INT(type, member, field, low, high)                                   \
    {                                                                                    \
        field, offsetof(type, member), low, high, false                                  \
    }
#define TEST_LIMIT(type, member, field, low, high)                                       \
    {                                                                                    \
        field, offsetof(type, member), low, high, true                                   \
    }

/* What is checked: a good structure of n_bytes, which is changed and restored. */
struct test_limited {
    void *good;
    size_t n_bytes;
    enum vxd_status (*check)(void *user, void *structure, struct vxd_err *err);
    void *user;
};

static inline void test_limit_try(const struct test_limited *of,
                                  const struct test_limit *limit, double value,
                                  bool is_good)
{
    char *at = (char *)of->good + limit->offset;
    char before[sizeof(double)];
    size_t n_bytes = limit->is_real ? sizeof(double) : sizeof(int);
    int whole = (int)(limit->is_real ? 0 : value);
    struct vxd_err err = {0};
    enum vxd_status status;

    memcpy(before, at, n_bytes);
    memcpy(at, limit->is_real ? (void *)&value : (void *)&whole, n_bytes);
    status = of->check(of->user, of->good, &err);
    memcpy(at, before, n_bytes);
    if (status != (is_good ? VXD_OK : VXD_INVALID_ARGUMENT) ||
        (!is_good && strcmp(err.field, limit->field) != 0)) {
        (void)fprintf(stderr, "%s of %.17g: status %d of \"%s\": %s\n", limit->field,
                      value, (int)status, err.field, err.message);
        CHECK(false);
    }
}

static inline void test_limits(const struct test_limited *of,
                               const struct test_limit *limits, size_t n)
{
    struct vxd_err err = {0};

    CHECK_INT(of->check(of->user, of->good, &err), VXD_OK);
    for (size_t i = 0; i < n; i++) {
        const struct test_limit *limit = &limits[i];
        bool is_real = limit->is_real;

        test_limit_try(of, limit, limit->low, true);
        test_limit_try(of, limit,
                       is_real ? nextafter(limit->low, -INFINITY) : limit->low - 1,
                       false);
        test_limit_try(of, limit, isinf(limit->high) ? 1e300 : limit->high, true);
        test_limit_try(of, limit,
                       is_real ? nextafter(limit->high, INFINITY) : limit->high + 1,
                       false);
        if (is_real) {
            test_limit_try(of, limit, NAN, false);
        }
    }
}

#endif
