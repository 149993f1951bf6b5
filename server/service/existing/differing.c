// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "server/service/existing/existing.h"

/* Adds a parameter to the text, where it still fits whole. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
note(struct vxd_differing *differing, const char *format, ...)
{
    char entry[sizeof differing->text];
    size_t n_used = strlen(differing->text);
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(entry, sizeof entry, format, args);
    va_end(args);
    differing->n++;
    if (n > 0 && (size_t)n < sizeof entry &&
        n_used + (size_t)n + 2 < sizeof differing->text) {
        if (n_used > 0) {
            memcpy(differing->text + n_used, "; ", 2);
            n_used += 2;
        }
        memcpy(differing->text + n_used, entry, (size_t)n + 1);
        differing->n_shown++;
    }
}

void vxd_differing_number(struct vxd_differing *differing, const char *key, double has,
                          double wished)
{
    if (has != wished) {
        note(differing, "%s is %.9g, not %.9g", key, has, wished);
    }
}

void vxd_differing_flag(struct vxd_differing *differing, const char *key, bool has,
                        bool wished)
{
    if (has != wished) {
        note(differing, "%s is %s", key, has ? "set" : "not set");
    }
}

void vxd_differing_text(struct vxd_differing *differing, const char *key, const char *has,
                        const char *wished)
{
    if (strcmp(has, wished) != 0) {
        note(differing, "%s is \"%.24s\", not \"%.24s\"", key, has, wished);
    }
}

void vxd_differing_other(struct vxd_differing *differing, const char *key, bool differs)
{
    if (differs) {
        note(differing, "%s differs", key);
    }
}

enum vxd_status vxd_differing_check(const struct vxd_differing *differing,
                                    const char *what, const char *name,
                                    struct vxd_err *err)
{
    char more[32] = "";

    if (differing->n == 0) {
        return VXD_OK;
    }
    if (differing->n > differing->n_shown) {
        (void)snprintf(more, sizeof more, "%s%zu more",
                       differing->n_shown > 0 ? "; " : "",
                       differing->n - differing->n_shown);
    }
    return vxd_fail(err, VXD_ALREADY_EXISTS, "name", "the %s \"%s\" exists: %s%s", what,
                    name, differing->text, more);
}
