// SPDX-License-Identifier: Apache-2.0
/* voxelctl volume watch: one long poll after the other, and what each replies; as voxelctl watch of
 * scenes. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "client/voxelctl/volume/volume_commands.h"

enum {
    /* A poll waits so long, and may take somewhat longer. */
    WAIT_MS = 20000,
    CALL_MS = 25000,
    N_KINDS = 7
};

static const char *const kinds[N_KINDS] = {"unchanged", "cells", "resync", "dropped",
                                           "created",   "heads", "blocks"};

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

static void print_json(const char *name, bool has_points,
                       const struct voxeld_volume_watched *w)
{
    (void)fputc('{', stdout);
    ctl_json_member_string(stdout, true, "name", name);
    ctl_json_member_string(stdout, false, "kind", kinds[w->kind]);
    ctl_json_member_count(stdout, false, "generation", w->next.generation);
    ctl_json_member_count(stdout, false, "version", w->to_version);
    ctl_json_member_count(stdout, false, "from_version", w->from_version);
    ctl_json_member_count(stdout, false, "n_blocks", w->n_blocks);
    ctl_json_member_count(stdout, false, "n_vertices", w->n_vertices);
    ctl_json_member_count(stdout, false, "n_triangles", w->n_triangles);
    (void)printf(",\"is_last\":%s", w->next.to_version == 0 ? "true" : "false");
    (void)fputs(",\"blocks\":[", stdout);
    for (uint64_t i = 0; i < w->n_blocks; i++) {
        const int32_t *row = w->blocks + 4 * i;

        (void)printf("%s[%" PRId32 ",%" PRId32 ",%" PRId32 "]", i > 0 ? "," : "", row[0],
                     row[1], row[2]);
    }
    (void)printf("],\"%s\":[", has_points ? "points" : "triangles");
    for (uint64_t i = 0; i < w->n_blocks; i++) {
        int32_t begin = i > 0 ? w->blocks[4 * i - 1] : 0;

        (void)printf("%s%" PRId32, i > 0 ? "," : "", w->blocks[4 * i + 3] - begin);
    }
    (void)fputs("]}\n", stdout);
}

static void print_part(const struct ctl_globals *globals, const char *name,
                       bool has_points, const struct voxeld_volume_watched *w)
{
    bool begins = w->kind != VOXELD_WATCH_BLOCKS;
    char text[2][32];

    if (globals->json) {
        print_json(name, has_points, w);
        return;
    }
    (void)printf("%s: %s%sversion %" PRIu64 ", %s blocks, %s %s%s\n", name,
                 begins ? kinds[w->kind] : "", begins ? ", " : "", w->to_version,
                 ctl_thousands(w->n_blocks, text[0]),
                 ctl_thousands(has_points ? w->n_vertices : w->n_triangles, text[1]),
                 has_points ? "points" : "triangles",
                 w->next.to_version > 0 ? "; more follow" : "");
}

static void print(const struct ctl_globals *globals, const char *name, bool has_points,
                  const struct voxeld_volume_watched *w)
{
    if (w->to_version > 0) {
        print_part(globals, name, has_points, w);
        return;
    }
    if (w->kind != VOXELD_WATCH_HEADS) {
        print_head(globals, name, kinds[w->kind], w->next.generation, w->next.version);
        return;
    }
    for (size_t i = 0; i < w->n_heads; i++) {
        print_head(globals, w->heads[i].name, "head", w->heads[i].generation,
                   w->heads[i].version);
    }
    for (size_t i = 0; i < w->n_dropped; i++) {
        print_head(globals, w->dropped[i], "dropped", 0, 0);
    }
}

static struct voxeld_volume_watch_request request_of(const struct ctl_volume_args *args)
{
    struct voxeld_volume_watch_request request = {
        .volume = args->n_words > 0 ? args->words[0] : "",
        .has_box = ctl_volume_has(args, CTL_VOLUME_BOX),
        .min_weight = args->min_weight,
        .points = ctl_volume_has(args, CTL_VOLUME_POINTS),
        .albedo = ctl_volume_has(args, CTL_VOLUME_ALBEDO),
        .timeout_ms = WAIT_MS,
        .call = {.timeout_ms = CALL_MS}};

    memcpy(request.box.low, args->box, sizeof request.box.low);
    memcpy(request.box.high, args->box + 3, sizeof request.box.high);
    return request;
}

int ctl_volume_watch(struct voxeld_client *client, const struct ctl_globals *globals,
                     const struct ctl_volume_args *args)
{
    const struct timespec pause = {.tv_sec = 1};
    struct voxeld_volume_watch_request request = request_of(args);
    const char *name = request.volume;
    uint32_t n_shown = 0;
    int result = CTL_OK;

    while (result == CTL_OK && (args->count == 0 || n_shown < args->count)) {
        struct voxeld_volume_watched *w = NULL;
        struct voxeld_error error;
        enum voxeld_status status = voxeld_volume_watch(client, &request, &w, &error);

        /* The server restarts, say: what has happened meanwhile comes afterwards. */
        if (n_shown > 0 &&
            (status == VOXELD_UNAVAILABLE || status == VOXELD_DEADLINE_EXCEEDED)) {
            (void)nanosleep(&pause, NULL);
            continue;
        }
        if (status != VOXELD_OK) {
            return ctl_failed(name[0] != '\0' ? name : "volume watch", &error);
        }
        if (w->kind != VOXELD_WATCH_UNCHANGED && (size_t)w->kind < N_KINDS) {
            print(globals, name, request.points, w);
            n_shown++;
            result = ctl_flush();
        }
        request.has_after = w->has_next;
        request.after = w->next;
        voxeld_volume_watched_free(w);
    }
    return result;
}
