// SPDX-License-Identifier: Apache-2.0
#include "server/data_tools.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "server/durable/maintenance/maintenance.h"
#include "server/tool_report.h"

/* What is found or done: printed as it comes, or kept for the object. */
struct findings {
    struct vxd_text *json; /* NULL: as text */
    size_t n;
    const char *const *weights; /* by enum vxd_problem_weight */
};

static void take_problem(void *user, const struct vxd_problem *problem)
{
    struct findings *findings = user;
    const char *weight = findings->weights[problem->weight];

    if (findings->json == NULL) {
        (void)printf("%s: %s: %s\n", weight, problem->where, problem->message);
        return;
    }
    vxd_text_printf(findings->json, "%s{", findings->n++ > 0 ? ", " : "");
    vxd_tool_member(findings->json, true, "what", weight);
    vxd_tool_member(findings->json, false, "where", problem->where);
    vxd_tool_member(findings->json, false, "message", problem->message);
    vxd_text_append(findings->json, "}", 1);
}

static void begin_list(struct findings *findings, const char *name)
{
    if (findings->json != NULL) {
        vxd_text_printf(findings->json, "{\"%s\": [", name);
    }
}

/* Before an error: what was found or done until then is printed, too. */
static void end_early(struct findings *findings)
{
    if (findings->n > 0) {
        vxd_text_append(findings->json, "]}\n", 3);
        (void)vxd_tool_print(findings->json, 0);
    } else if (findings->json != NULL) {
        free(findings->json->bytes);
    }
}

int vxd_data_tool_check(const char *path, bool json)
{
    static const char *const weights[] = {"", "note", "spare", "loss"};
    struct vxd_text text = {0};
    struct findings findings = {.json = json ? &text : NULL, .weights = weights};
    struct vxd_verify_result result;
    struct vxd_err err = {0};
    char help[VXD_DURABLE_PATH_BYTES + 96];

    (void)snprintf(help, sizeof help,
                   "to mend it, after a copy of the directory: voxeld --repair-data %s",
                   path);
    begin_list(&findings, "problems");
    if (vxd_verify_data_dir(NULL, path, take_problem, &findings, &result, &err) !=
        VXD_OK) {
        end_early(&findings);
        return vxd_tool_fail(json, path, &err, err.code == VXD_DATA_LOSS ? help : NULL);
    }
    if (json) {
        vxd_text_printf(&text,
                        "], \"n_families\": %zu, \"n_records\": %" PRIu64
                        ", \"n_snapshots\": %zu, \"n_losses\": %zu, \"n_spares\": %zu, "
                        "\"n_notes\": %zu",
                        result.n_families, result.n_records, result.n_snapshots,
                        result.n_losses, result.n_spares, result.n_notes);
        if (result.n_losses > 0) {
            vxd_tool_member(&text, false, "help", help);
        }
        vxd_text_append(&text, "}\n", 2);
        return vxd_tool_print(&text, result.n_losses > 0 ? 1 : 0);
    }
    (void)printf("%zu families, %" PRIu64
                 " records, %zu snapshots: %zu losses, %zu spares "
                 "damaged, %zu notes\n",
                 result.n_families, result.n_records, result.n_snapshots, result.n_losses,
                 result.n_spares, result.n_notes);
    if (result.n_losses > 0) {
        (void)puts(help);
    }
    return result.n_losses > 0 ? 1 : 0;
}

int vxd_data_tool_repair(const char *path, bool json)
{
    static const char *const weights[] = {"", "mended", "set aside", "lost"};
    struct vxd_text text = {0};
    struct findings findings = {.json = json ? &text : NULL, .weights = weights};
    struct vxd_repair_result result;
    struct vxd_err err = {0};

    begin_list(&findings, "done");
    if (vxd_repair_data_dir(NULL, path, take_problem, &findings, &result, &err) !=
        VXD_OK) {
        end_early(&findings);
        return vxd_tool_fail(json, path, &err, NULL);
    }
    if (json) {
        vxd_text_printf(&text,
                        "], \"n_mended\": %zu, \"n_set_aside\": %zu, \"n_lost\": %zu}\n",
                        result.n_mended, result.n_set_aside, result.n_lost);
        return vxd_tool_print(&text, result.n_lost > 0 ? 1 : 0);
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

static int print_restored(const struct vxd_restore_result *result, const char *to,
                          const char *last, bool json)
{
    struct vxd_text text = {0};

    if (!json) {
        (void)printf("%s: %" PRIu64
                     " changes after the backup, of %zu archived files; the last "
                     "one was made at %s\n"
                     "start the daemon with it as data_dir\n",
                     to, result->n_transactions, result->n_segments, last);
        return 0;
    }
    vxd_text_append(&text, "{", 1);
    vxd_tool_member(&text, true, "path", to);
    vxd_text_printf(&text, ", \"n_changes\": %" PRIu64 ", \"n_segments\": %zu",
                    result->n_transactions, result->n_segments);
    if (result->unix_ns > 0) {
        vxd_tool_member(&text, false, "last_change", last);
    }
    vxd_text_append(&text, "}\n", 2);
    return vxd_tool_print(&text, 0);
}

int vxd_data_tool_restore(const char *backup, const char *archive, const char *until,
                          const char *to, bool json)
{
    struct vxd_restore_target target;
    struct vxd_restore_result result = {0};
    struct vxd_err err = {0};
    char last[48];
    char help[160];
    enum vxd_status status = vxd_restore_parse(until, &target, &err);

    if (status != VXD_OK) {
        return vxd_tool_fail(json, "--until", &err, NULL);
    }
    status = vxd_restore(NULL, backup, archive, to, &target, &result, &err);
    format_time(result.unix_ns, last, sizeof last);
    if (status == VXD_OK) {
        return print_restored(&result, to, last, json);
    }
    (void)snprintf(help, sizeof help,
                   "this backup and this archive can be restored until %s (%" PRIu64
                   " changes after the backup)",
                   last, result.n_transactions);
    return vxd_tool_fail(json, to, &err, result.unix_ns > 0 ? help : NULL);
}
