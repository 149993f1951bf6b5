// SPDX-License-Identifier: Apache-2.0
#include "gpu/core/machine_limits.h"

#include <errno.h>
#include <limits.h>
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

/* Whether a line of the membership file, "4:cpu,cpuacct:/path", belongs to the
 * hierarchy with this controller. Version 2 has number 0 and no controller,
 * "0::/path". */
static bool names_controller(const char *line, const char *controller)
{
    const char *list = strchr(line, ':');
    size_t n_controller = strlen(controller);

    if (n_controller == 0 || list == NULL) {
        return n_controller == 0 && strncmp(line, "0::/", 4) == 0;
    }
    for (const char *at = list + 1; *at != ':' && *at != '\0';) {
        size_t n = strcspn(at, ",:");

        if (n == n_controller && memcmp(at, controller, n) == 0) {
            return true;
        }
        at += n + (at[n] == ',' ? 1 : 0);
    }
    return false;
}

static bool read_group(const char *membership, const char *controller,
                       char group[PATH_BYTES])
{
    FILE *file = fopen(membership, "re");
    bool found = false;

    if (file == NULL) {
        return false;
    }
    while (!found && fgets(group, PATH_BYTES, file) != NULL) {
        found = names_controller(group, controller) && strstr(group, ":/") != NULL;
    }
    (void)fclose(file);
    if (found) {
        const char *path = strstr(group, ":/") + 1;

        group[strcspn(group, "\n")] = '\0';
        memmove(group, path, strlen(path) + 1);
    }
    return found;
}

/* Reads up to two numbers from a group's file and returns how many there are. "max" is
 * not a number, and the root group has no such files. */
static int read_numbers(const char *mount, const char *group, const char *name,
                        unsigned long long out[2])
{
    char text[2 * PATH_BYTES];
    char *at = text;
    char *end;
    FILE *file;
    int n_found = 0;
    int n = snprintf(text, sizeof text, "%s%s/%s", mount, group, name);

    if (n < 0 || (size_t)n >= sizeof text) {
        return 0;
    }
    file = fopen(text, "re");
    if (file == NULL) {
        return 0;
    }
    if (fgets(text, sizeof text, file) == NULL) {
        text[0] = '\0';
    }
    (void)fclose(file);
    for (; n_found < 2; n_found++, at = end) {
        errno = 0;
        out[n_found] = strtoull(at, &end, 10);
        if (end == at || errno != 0) {
            break;
        }
    }
    return n_found;
}

/* Cuts the last component off; false when that was the root. */
static bool go_up(char *group)
{
    char *slash = strrchr(group, '/');

    if (slash == NULL) {
        return false;
    }
    *slash = '\0';
    return true;
}

size_t vxd_cgroup_limit_bytes(const char *membership, const char *mount)
{
    char group[PATH_BYTES];
    size_t least = SIZE_MAX;

    if (!read_group(membership, "", group)) {
        return SIZE_MAX;
    }
    do {
        unsigned long long limit[2];

        if (read_numbers(mount, group, "memory.max", limit) > 0 && limit[0] < least) {
            least = (size_t)limit[0];
        }
    } while (go_up(group));
    return least;
}

/* CPUs of the quota, rounded up; INT_MAX without a quota. Version 1 writes -1 for
 * none, which strtoull turns into a huge number. */
static int quota_cpus(unsigned long long quota_us, unsigned long long period_us)
{
    unsigned long long n;

    if (quota_us == 0 || quota_us > INT64_MAX || period_us == 0) {
        return INT_MAX;
    }
    n = quota_us / period_us + (quota_us % period_us != 0 ? 1 : 0);
    return n < INT_MAX ? (int)n : INT_MAX;
}

int vxd_cgroup_limit_cpus(const char *membership, const char *mount)
{
    char group[PATH_BYTES];
    char cpu_mount[PATH_BYTES];
    int least = INT_MAX;
    int n = snprintf(cpu_mount, sizeof cpu_mount, "%s/cpu", mount);

    if (read_group(membership, "", group)) {
        do {
            unsigned long long limit[2];
            int cpus = read_numbers(mount, group, "cpu.max", limit) == 2
                           ? quota_cpus(limit[0], limit[1])
                           : INT_MAX;

            least = cpus < least ? cpus : least;
        } while (go_up(group));
    }
    if (n > 0 && (size_t)n < sizeof cpu_mount && read_group(membership, "cpu", group)) {
        do {
            unsigned long long quota[2];
            unsigned long long period[2];
            int cpus =
                read_numbers(cpu_mount, group, "cpu.cfs_quota_us", quota) > 0 &&
                        read_numbers(cpu_mount, group, "cpu.cfs_period_us", period) > 0
                    ? quota_cpus(quota[0], period[0])
                    : INT_MAX;

            least = cpus < least ? cpus : least;
        } while (go_up(group));
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

int vxd_machine_cpus(void)
{
    long n_online = sysconf(_SC_NPROCESSORS_ONLN);
    int limit = vxd_cgroup_limit_cpus("/proc/self/cgroup", "/sys/fs/cgroup");

    return n_online < 1 ? 1 : n_online < limit ? (int)n_online : limit;
}
