// SPDX-License-Identifier: Apache-2.0
#include "server/data_tools.h"

#include <inttypes.h>
#include <stdio.h>

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
