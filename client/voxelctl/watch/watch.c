// SPDX-License-Identifier: Apache-2.0
/* voxelctl watch: one long poll after the other, and what each replies. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "client/voxelctl/generated/watch_args.h"

enum {
    /* A poll waits so long, and may take somewhat longer. */
    WAIT_MS = 20000,
    CALL_MS = 25000,
    N_DIFFERENCES = 5
};

static const char *const kinds[] = {"unchanged", "cells",   "resync",
                                    "dropped",   "created", "heads"};
static const char *const differences[N_DIFFERENCES] = {"added", "removed", "changed",
                                                       "freed", "unfreed"};

/* Cells of a reply with each difference. */
static void count_differences(const struct voxeld_watched *w, uint64_t out[N_DIFFERENCES])
{
    for (size_t k = 0; k < N_DIFFERENCES; k++) {
        out[k] = 0;
        for (size_t i = 0; i < w->n; i++) {
            out[k] += (uint64_t)w->changes[i] >> k & 1U;
        }
    }
}

static void print_head(const struct ctl_globals *globals, const char *name,
                       const char *kind, uint64_t generation, uint64_t version)
{
    if (!globals->json) {
        (void)printf("%s: %s", name, kind);
        (void)(version > 0 ? printf(", version %" PRIu64 "\n", version) : printf("\n"));
        return;
    }
    (void)fputc('{', stdout);
    ctl_json_member_string(stdout, true, "name", name);
    ctl_json_member_string(stdout, false, "kind", kind);
    ctl_json_member_count(stdout, false, "generation", generation);
    ctl_json_member_count(stdout, false, "version", version);
    (void)fputs("}\n", stdout);
}

static void print_cells(const struct ctl_globals *globals, const char *name,
                        const struct voxeld_watched *w)
{
    uint64_t counts[N_DIFFERENCES];
    char text[32];

    count_differences(w, counts);
    if (!globals->json) {
        (void)printf("%s: version %" PRIu64 ", %s cells:", name, w->to_version,
                     ctl_thousands(w->n, text));
        for (size_t k = 0; k < N_DIFFERENCES; k++) {
            (void)printf("%s %s %s", k > 0 ? "," : "", ctl_thousands(counts[k], text),
                         differences[k]);
        }
        (void)fputc('\n', stdout);
        return;
    }
    (void)fputc('{', stdout);
    ctl_json_member_string(stdout, true, "name", name);
    ctl_json_member_string(stdout, false, "kind", "cells");
    ctl_json_member_count(stdout, false, "generation", w->next.generation);
    ctl_json_member_count(stdout, false, "version", w->to_version);
    ctl_json_member_count(stdout, false, "from_version", w->from_version);
    ctl_json_member_count(stdout, false, "n_cells", w->n_cells);
    (void)fputs(",\"cells\":[", stdout);
    for (size_t i = 0; i < 3 * w->n; i++) {
        (void)printf("%s%" PRId32 "%s", i % 3 == 0 ? (i > 0 ? ",[" : "[") : ",",
                     w->cells[i], i % 3 == 2 ? "]" : "");
    }
    (void)fputs("],\"changes\":[", stdout);
    for (size_t i = 0; i < w->n; i++) {
        (void)printf("%s%u", i > 0 ? "," : "", w->changes[i]);
    }
    (void)fputs("]}\n", stdout);
}

static void print(const struct ctl_globals *globals, const char *name,
                  const struct voxeld_watched *w)
{
    if (w->kind == VOXELD_WATCH_CELLS) {
        print_cells(globals, name, w);
    } else if (w->kind == VOXELD_WATCH_HEADS) {
        for (size_t i = 0; i < w->n_heads; i++) {
            print_head(globals, w->heads[i].name, "head", w->heads[i].generation,
                       w->heads[i].version);
        }
        for (size_t i = 0; i < w->n_dropped; i++) {
            print_head(globals, w->dropped[i], "dropped", 0, 0);
        }
    } else {
        print_head(globals, name, kinds[w->kind], w->next.generation, w->next.version);
    }
}

int ctl_run_watch(struct voxeld_client *client, const struct ctl_globals *globals,
                  const struct ctl_watch_args *args)
{
    const char *name = args->n_words > 0 ? args->words[0] : "";
    const struct timespec pause = {.tv_sec = 1};
    struct voxeld_watch_request request = {.scene = name,
                                           .level = args->level,
                                           .timeout_ms = WAIT_MS,
                                           .call = {.timeout_ms = CALL_MS}};
    uint32_t n_told = 0;
    int result = CTL_OK;

    while (result == CTL_OK && (args->count == 0 || n_told < args->count)) {
        struct voxeld_watched *w = NULL;
        struct voxeld_error error;
        enum voxeld_status status = voxeld_scene_watch(client, &request, &w, &error);

        /* The server restarts, say: what has happened meanwhile is told afterwards. */
        if (n_told > 0 &&
            (status == VOXELD_UNAVAILABLE || status == VOXELD_DEADLINE_EXCEEDED)) {
            (void)nanosleep(&pause, NULL);
            continue;
        }
        if (status != VOXELD_OK) {
            return ctl_failed(name[0] != '\0' ? name : "watch", &error);
        }
        if (w->kind != VOXELD_WATCH_UNCHANGED) {
            print(globals, name, w);
            n_told++;
            result = ctl_flush();
        }
        request.has_after = w->has_next;
        request.after = w->next;
        voxeld_watched_free(w);
    }
    return result;
}
