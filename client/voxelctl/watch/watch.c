// SPDX-License-Identifier: Apache-2.0
/* voxelctl watch: one long poll after the other, and what each replies. */
#include "client/voxelctl/watch/voxelctl_watch.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "client/c/include/voxeld_watch.h"

enum {
    CTL_WATCH_LEVEL = CTL_OPT_FIRST_OWN,
    CTL_WATCH_COUNT,
    /* A poll waits so long, and may take somewhat longer. */
    WAIT_MS = 20000,
    CALL_MS = 25000,
    N_DIFFERENCES = 5
};

struct watch_args {
    uint32_t level;
    uint32_t count; /* 0: for ever */
};

static const struct ctl_own_option known[] = {
    {"level", "a level, 0 to 21", false},
    {"count", "a number, 1 or more", false},
};

static const char *const kinds[] = {"unchanged", "cells",   "resync",
                                    "dropped",   "created", "heads"};
static const char *const differences[N_DIFFERENCES] = {"added", "removed", "changed",
                                                       "freed", "unfreed"};

static bool take(void *args, int id, const char *value)
{
    struct watch_args *out = args;

    return id == CTL_WATCH_LEVEL ? ctl_parse_u32(value, 0, 21, &out->level)
                                 : ctl_parse_u32(value, 1, UINT32_MAX, &out->count);
}

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

static int watch(struct voxeld_client *client, const struct ctl_globals *globals,
                 const char *name, const struct watch_args *args)
{
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

static int run(struct ctl_globals *globals, int argc, char **argv)
{
    struct watch_args args = {0};
    const struct ctl_own_options own = {
        .known = known,
        .n_known = sizeof known / sizeof known[0],
        .taken = 3,
        .n_min = 0,
        .n_max = 1,
        .take = take,
        .args = &args,
    };
    struct voxeld_client *client;
    int result;

    if (ctl_take_own_options(globals, &ctl_watch, &own, argc, argv, &result)) {
        return result;
    }
    client = ctl_connect(globals);
    if (client == NULL) {
        return CTL_FAILED;
    }
    result = watch(client, globals, optind < argc ? argv[optind] : "", &args);
    voxeld_close(client);
    return result;
}

const struct ctl_command ctl_watch = {
    .name = "watch",
    .summary = "what changes in scenes, as it happens",
    .help =
        "voxelctl watch - what changes in scenes, as it happens\n"
        "\n"
        "usage: voxelctl watch [NAME] [OPTIONS]\n"
        "\n"
        "Prints a line for the scene as it is, and then one for each change; without\n"
        "NAME, of all scenes, their versions alone. Where the scene was dropped it says\n"
        "so and waits until the name is given again; RESYNC is where what was before is\n"
        "not kept any more, so the scene has to be read anew. It ends with Ctrl-C.\n"
        "\n"
        "  --level N   cells of 2^N voxels a side; default 0\n"
        "  --count N   ends after so many replies\n"
        "\n"
        "With --json each line is an object, with the cells (voxel indices >> level) "
        "and\n"
        "what became of each: sums of 1 added, 2 removed, 4 of another material, 8\n"
        "freed, 16 free no more. The shared options: voxelctl --help.\n"
        "\n"
        "examples\n"
        "  voxelctl watch\n"
        "  voxelctl watch yard --level 3 --json\n",
    .run = run,
};
