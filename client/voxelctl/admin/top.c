// SPDX-License-Identifier: Apache-2.0
/* voxelctl top: the daemon's load, live. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/voxelctl/admin/status.h"
#include "client/voxelctl/generated/admin_args.h"

enum {
    N_METHODS = 10, /* that are shown, the busiest */
    N_CURRENT = 8,
    N_SLOW = 8,
    BAR_CHARS = 20
};

/* What a method did between two looks. */
struct method {
    const char *name;
    double ok_per_s;
    double failed_per_s;
    double mean_ms; /* since the start */
};

static int busier(const void *a, const void *b)
{
    const struct method *x = a;
    const struct method *y = b;
    double more = (y->ok_per_s + y->failed_per_s) - (x->ok_per_s + x->failed_per_s);

    return more > 0 ? 1 : more < 0 ? -1 : strcmp(x->name, y->name);
}

/* The daemon's methods keep their order; after a restart the counts begin anew. */
static size_t compare(const struct voxeld_server_status *before,
                      const struct voxeld_server_status *now, struct method *out)
{
    double seconds = now->uptime_s - before->uptime_s;
    size_t n = 0;

    for (size_t i = 0; i < now->n_methods && i < before->n_methods && seconds > 0; i++) {
        uint64_t n_ok = now->methods[i].n_ok - before->methods[i].n_ok;
        uint64_t n_failed = now->methods[i].n_failed - before->methods[i].n_failed;

        if (n_ok + n_failed > 0) {
            out[n++] =
                (struct method){now->methods[i].name, (double)n_ok / seconds,
                                (double)n_failed / seconds, now->methods[i].mean_ms};
        }
    }
    qsort(out, n, sizeof *out, busier);
    return n;
}

static void print_bar(const char *name, uint64_t n, uint64_t limit)
{
    double part = limit > 0 ? fmin((double)n / (double)limit, 1) : 0;
    int n_full = (int)(part * BAR_CHARS + 0.5);

    (void)printf("%-6s [%s%.*s%s%*s] %" PRIu64 " of %" PRIu64 "\n", name,
                 ctl_style(stdout, part > 0.8 ? CTL_RED : CTL_GREEN), n_full,
                 "####################", ctl_style(stdout, CTL_PLAIN), BAR_CHARS - n_full,
                 "", n, limit);
}

static void print_methods(const struct method *methods, size_t n)
{
    struct ctl_table table;

    ctl_table_begin(&table, "method|>ok/s|>failed/s|>mean ms");
    for (size_t i = 0; i < n && i < N_METHODS; i++) {
        ctl_table_cell(&table, "%s", methods[i].name);
        ctl_table_cell(&table, "%.1f", methods[i].ok_per_s);
        ctl_table_cell(&table, "%.1f", methods[i].failed_per_s);
        ctl_table_cell(&table, "%.2f", methods[i].mean_ms);
    }
    ctl_table_end(&table);
}

static int show(const struct ctl_globals *globals,
                const struct voxeld_server_status *before,
                const struct voxeld_server_status *now)
{
    struct method *methods;

    if (globals->json) {
        ctl_admin_status_json(now);
        return ctl_flush();
    }
    methods = calloc(now->n_methods + 1, sizeof *methods);
    if (methods == NULL) {
        return ctl_error("no memory");
    }
    if (isatty(STDOUT_FILENO) == 1) {
        (void)fputs("\033[H\033[2J", stdout);
    }
    ctl_status_print_head(now);
    print_bar("queue", now->queue_depth, now->queue_limit);
    (void)putchar('\n');
    ctl_status_print_memory(now);
    (void)putchar('\n');
    ctl_status_print_current(now, N_CURRENT);
    print_methods(methods, compare(before, now, methods));
    (void)putchar('\n');
    ctl_status_print_slow(now, N_SLOW);
    free(methods);
    return ctl_flush();
}

static void on_interrupt(int signal)
{
    (void)signal; /* it interrupts the sleep */
}

/* Sleeps; false when the user has interrupted it. */
static bool pause_for(double seconds)
{
    struct timespec wait;

    wait.tv_sec = (time_t)seconds;
    wait.tv_nsec = (long)((seconds - floor(seconds)) * 1e9);
    return nanosleep(&wait, NULL) == 0;
}

int ctl_run_top(struct voxeld_client *client, const struct ctl_globals *globals,
                const struct ctl_admin_args *args)
{
    const struct sigaction interrupt = {.sa_handler = on_interrupt};
    double interval_s = args->interval > 0 ? args->interval : 1;
    struct voxeld_server_status *before = NULL;
    struct voxeld_server_status *now = NULL;
    struct voxeld_error error;
    int result = CTL_OK;
    uint32_t n_shown = 0;

    (void)sigaction(SIGINT, &interrupt, NULL);
    if (voxeld_get_status(client, NULL, &before, &error) != VOXELD_OK) {
        return ctl_failed("top", &error);
    }
    while (result == CTL_OK && pause_for(interval_s)) {
        if (voxeld_get_status(client, NULL, &now, &error) != VOXELD_OK) {
            result = ctl_failed("top", &error);
            break;
        }
        result = show(globals, before, now);
        voxeld_server_status_free(before);
        before = now;
        if (++n_shown == args->times) {
            break;
        }
    }
    voxeld_server_status_free(before);
    return result;
}
