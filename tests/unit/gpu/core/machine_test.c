// SPDX-License-Identifier: Apache-2.0
/* The limits of control groups, read from a tree of files that the test makes. */
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu/core/core.h"
#include "tests/support/gpu/gpu_helpers.h"
#include "tests/support/test.h"

#define ROOT "/tmp/voxeld_cgroup_XXXXXX"

static char root[] = ROOT;
static const char *const directories[] = {"", "/a", "/a/b", "/a/b/c", "/cpu", "/cpu/v"};
static const char *const files[] = {"/membership",
                                    "/memory.max",
                                    "/a/memory.max",
                                    "/a/b/memory.max",
                                    "/a/b/c/memory.max",
                                    "/a/cpu.max",
                                    "/a/b/cpu.max",
                                    "/cpu/cpu.cfs_quota_us",
                                    "/cpu/cpu.cfs_period_us",
                                    "/cpu/v/cpu.cfs_quota_us",
                                    "/cpu/v/cpu.cfs_period_us"};

static void put(const char *name, const char *text)
{
    char path[128];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s%s", root, name);
    file = fopen(path, "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) {
        (void)fprintf(stderr, "cannot write %s\n", path);
        exit(EXIT_FAILURE);
    }
}

static size_t limit(void)
{
    char membership[128];

    (void)snprintf(membership, sizeof membership, "%s/membership", root);
    return vxd_cgroup_limit_bytes(membership, root);
}

static void make_tree(void)
{
    memcpy(root, ROOT, sizeof root);
    if (mkdtemp(root) == NULL) {
        (void)fprintf(stderr, "cannot make %s\n", root);
        exit(EXIT_FAILURE);
    }
    for (size_t i = 1; i < sizeof directories / sizeof directories[0]; i++) {
        char path[128];

        (void)snprintf(path, sizeof path, "%s%s", root, directories[i]);
        (void)mkdir(path, 0700);
    }
}

static void remove_tree(void)
{
    char path[128];

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        (void)snprintf(path, sizeof path, "%s%s", root, files[i]);
        (void)unlink(path);
    }
    for (size_t i = sizeof directories / sizeof directories[0]; i-- > 0;) {
        (void)snprintf(path, sizeof path, "%s%s", root, directories[i]);
        (void)rmdir(path);
    }
}

static void test_cgroup_limit_is_the_least_on_the_way_up(void)
{
    make_tree();
    CHECK(limit() == SIZE_MAX); /* no membership file */
    put("/membership", "4:memory:/a/b\n1:name=systemd:/\n");
    put("/a/b/memory.max", "3000000\n");
    CHECK(limit() == SIZE_MAX); /* version 1 only */
    put("/membership", "4:memory:/x\n0::/a/b/c\n");
    CHECK_INT(limit(), 3000000); /* limit of a parent; /a and /a/b/c have none */
    put("/a/b/c/memory.max", "max\n");
    CHECK_INT(limit(), 3000000);
    put("/a/memory.max", "2000000\n");
    CHECK_INT(limit(), 2000000);
    put("/a/b/c/memory.max", "1000000\n");
    CHECK_INT(limit(), 1000000);
    put("/a/b/c/memory.max", "99999999999999999999999\n"); /* overflows: no limit */
    CHECK_INT(limit(), 2000000);
    put("/a/memory.max", "");
    put("/a/b/memory.max", "max");
    CHECK(limit() == SIZE_MAX);
    put("/membership", "0::/\n"); /* as a container with its own namespace sees it */
    put("/memory.max", "4096\n");
    CHECK_INT(limit(), 4096);
    put("/membership", "0::/../elsewhere\n");
    CHECK_INT(limit(), 4096);
    remove_tree();
}

static int cpus(void)
{
    char membership[128];

    (void)snprintf(membership, sizeof membership, "%s/membership", root);
    return vxd_cgroup_limit_cpus(membership, root);
}

static void test_cgroup_cpus_are_the_least_quota_rounded_up(void)
{
    make_tree();
    CHECK_INT(cpus(), INT_MAX); /* no membership file */
    put("/membership", "0::/a/b\n");
    CHECK_INT(cpus(), INT_MAX);
    put("/a/b/cpu.max", "max 100000\n");
    CHECK_INT(cpus(), INT_MAX);
    put("/a/cpu.max", "250000 100000\n");
    CHECK_INT(cpus(), 3);
    put("/a/b/cpu.max", "50000 100000\n");
    CHECK_INT(cpus(), 1);
    put("/a/b/cpu.max", "200000\n"); /* no period: no limit */
    CHECK_INT(cpus(), 3);
    put("/a/cpu.max", "100000 0\n");
    CHECK_INT(cpus(), INT_MAX);
    put("/membership", "7:cpuset:/x\n4:cpuacct,cpu:/v\n0::/\n"); /* version 1 */
    put("/cpu/v/cpu.cfs_quota_us", "-1\n");
    put("/cpu/v/cpu.cfs_period_us", "100000\n");
    CHECK_INT(cpus(), INT_MAX);
    put("/cpu/cpu.cfs_quota_us", "400000\n");
    put("/cpu/cpu.cfs_period_us", "100000\n");
    CHECK_INT(cpus(), 4);
    put("/cpu/v/cpu.cfs_quota_us", "150000\n");
    CHECK_INT(cpus(), 2);
    put("/membership", "4:cpuset:/v\n");
    CHECK_INT(cpus(), INT_MAX);
    remove_tree();
}

static void test_context_has_budgets_within_the_machine(void)
{
    struct gpu_env env;
    struct vxd_memory_usage usage;
    struct vxd_context_info info;

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 0);
    vxd_context_get_info(env.context, &info);
    vxd_context_get_memory(env.context, &usage);
    CHECK(info.device_total_bytes == vxd_machine_bytes());
    CHECK(usage.device_budget_bytes == vxd_machine_bytes() / 2);
    CHECK(usage.host_budget_bytes == vxd_machine_bytes() / 4);
    CHECK(vxd_machine_cpus() >= 1);
    gpu_env_destroy(&env);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_cgroup_limit_is_the_least_on_the_way_up),
    VXD_TEST(test_cgroup_cpus_are_the_least_quota_rounded_up),
    VXD_TEST(test_context_has_budgets_within_the_machine),
};

VXD_TEST_MAIN(tests)
