// SPDX-License-Identifier: Apache-2.0
#include "gpu/core/machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 4096
#define UNKNOWN_BYTES ((size_t)1 << 30)

static size_t physical_bytes(void)
{
    long n_pages = sysconf(_SC_PHYS_PAGES);
    long page_bytes = sysconf(_SC_PAGESIZE);
    size_t n_bytes;

    if (n_pages <= 0 || page_bytes <= 0 ||
        !vxd_size_mul((size_t)n_pages, (size_t)page_bytes, &n_bytes)) {
        return SIZE_MAX;
    }
    return n_bytes;
}

/* Version 2's line is "0::/path"; the lines of version 1 have other numbers. */
static bool read_group(const char *membership, char group[PATH_BYTES])
{
    FILE *file = fopen(membership, "re");
    bool found = false;

    if (file == NULL) {
        return false;
    }
    while (!found && fgets(group, PATH_BYTES, file) != NULL) {
        found = strncmp(group, "0::/", 4) == 0;
    }
    (void)fclose(file);
    if (found) {
        group[strcspn(group, "\n")] = '\0';
        memmove(group, group + 3, strlen(group + 3) + 1);
    }
    return found;
}

/* The root group has no such file; "max", no number, is no limit. */
static size_t read_limit(const char *mount, const char *group)
{
    char text[2 * PATH_BYTES];
    unsigned long long limit = 0;
    char *end = text;
    FILE *file;
    int n = snprintf(text, sizeof text, "%s%s/memory.max", mount, group);

    if (n < 0 || (size_t)n >= sizeof text) {
        return SIZE_MAX;
    }
    file = fopen(text, "re");
    if (file == NULL) {
        return SIZE_MAX;
    }
    errno = 0;
    if (fgets(text, sizeof text, file) != NULL) {
        limit = strtoull(text, &end, 10);
    }
    (void)fclose(file);
    return end == text || errno != 0 || limit > SIZE_MAX ? SIZE_MAX : (size_t)limit;
}

size_t vxd_cgroup_limit_bytes(const char *membership, const char *mount)
{
    char group[PATH_BYTES];
    size_t least = SIZE_MAX;
    char *slash = group;

    if (!read_group(membership, group)) {
        return SIZE_MAX;
    }
    while (slash != NULL) {
        size_t limit = read_limit(mount, group);

        least = limit < least ? limit : least;
        slash = strrchr(group, '/');
        if (slash != NULL) {
            *slash = '\0';
        }
    }
    return least;
}

size_t vxd_machine_bytes(void)
{
    size_t physical = physical_bytes();
    size_t limit = vxd_cgroup_limit_bytes("/proc/self/cgroup", "/sys/fs/cgroup");
    size_t least = limit < physical ? limit : physical;

    return least != SIZE_MAX ? least : UNKNOWN_BYTES;
}
