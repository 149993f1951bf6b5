// SPDX-License-Identifier: Apache-2.0
#include "server/data_tools.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "server/durable/maintenance/maintenance.h"

static void print(void *user, const struct vxd_problem *problem)
{
    static const char *const weights[] = {"", "note", "spare", "loss"};

    (void)user;
    (void)printf("%s: %s: %s\n", weights[problem->weight], problem->where,
                 problem->message);
}

static void print_command(FILE *out, const char *path)
{
    (void)fprintf(out,
                  "to mend it, after a copy of the directory: voxeld --repair-data %s\n",
                  path);
}

int vxd_data_tool_check(const char *path)
{
    struct vxd_verify_result result;
    struct vxd_err err = {0};

    if (vxd_verify_data_dir(NULL, path, print, NULL, &result, &err) != VXD_OK) {
        (void)fprintf(stderr, "%s: %s\n", path, err.message);
        if (err.code == VXD_DATA_LOSS) {
            print_command(stderr, path);
        }
        return 2;
    }
    (void)printf("%zu families, %" PRIu64
                 " records, %zu snapshots: %zu losses, %zu spares "
                 "damaged, %zu notes\n",
                 result.n_families, result.n_records, result.n_snapshots, result.n_losses,
                 result.n_spares, result.n_notes);
    if (result.n_losses > 0) {
        print_command(stdout, path);
    }
    return result.n_losses > 0 ? 1 : 0;
}

static void print_done(void *user, const struct vxd_problem *problem)
{
    static const char *const weights[] = {"", "mended", "set aside", "lost"};

    (void)user;
    (void)printf("%s: %s: %s\n", weights[problem->weight], problem->where,
                 problem->message);
}

int vxd_data_tool_repair(const char *path)
{
    struct vxd_repair_result result;
    struct vxd_err err = {0};

    if (vxd_repair_data_dir(NULL, path, print_done, NULL, &result, &err) != VXD_OK) {
        (void)fprintf(stderr, "%s: %s\n", path, err.message);
        return 2;
    }
    (void)printf("%zu mended, %zu set aside, %zu lost\n", result.n_mended,
                 result.n_set_aside, result.n_lost);
    return result.n_lost > 0 ? 1 : 0;
}

static void format_time(int64_t unix_ns, char *out, size_t n)
{
    time_t seconds = (time_t)(unix_ns / 1000000000);
    struct tm parts;
    size_t at = 0;

    if (unix_ns > 0 && gmtime_r(&seconds, &parts) != NULL) {
        at = strftime(out, n, "%Y-%m-%dT%H:%M:%S", &parts);
    }
    (void)snprintf(out + at, n - at, at > 0 ? ".%09dZ" : "an unknown time",
                   (int)(unix_ns % 1000000000));
}

int vxd_data_tool_restore(const char *backup, const char *archive, const char *until,
                          const char *to)
{
    struct vxd_restore_target target;
    struct vxd_restore_result result = {0};
    struct vxd_err err = {0};
    char last[48];
    enum vxd_status status = vxd_restore_parse(until, &target, &err);

    if (status != VXD_OK) {
        (void)fprintf(stderr, "--until: %s\n", err.message);
        return 2;
    }
    status = vxd_restore(NULL, backup, archive, to, &target, &result, &err);
    format_time(result.unix_ns, last, sizeof last);
    if (status != VXD_OK) {
        (void)fprintf(stderr, "%s: %s\n", to, err.message);
        if (result.unix_ns > 0) {
            (void)fprintf(
                stderr,
                "this backup and this archive can be restored until %s (%" PRIu64
                " changes after the backup)\n",
                last, result.n_transactions);
        }
        return 2;
    }
    (void)printf("%s: %" PRIu64
                 " changes after the backup, of %zu archived files; the last "
                 "one was made at %s\n"
                 "start the daemon with it as data_dir\n",
                 to, result.n_transactions, result.n_segments, last);
    return 0;
}
