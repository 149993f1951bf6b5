// SPDX-License-Identifier: Apache-2.0
/* voxelctl scene diff. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/voxelctl/scene/scene_commands.h"

enum {
    N_KINDS = 5
};

static const struct {
    const char *member; /* in JSON */
    const char *text;
} kinds[N_KINDS] = {{"n_added", "added"},
                    {"n_removed", "removed"},
                    {"n_changed", "of another material"},
                    {"n_freed", "freed"},
                    {"n_unfreed", "free no more"}};

/* The cells of all replies so far. */
struct gathered {
    int32_t *cells;
    uint8_t *changes;
    size_t n;
    uint64_t counts[N_KINDS]; /* cells with a voxel of each difference */
    uint64_t from_version;
    uint64_t to_version;
};

/* Appends the cells of a reply; false without memory. */
static bool gather(struct gathered *g, const struct voxeld_scene_diff *part)
{
    void *cells = g->cells;
    void *changes = g->changes;
    size_t n = g->n + part->n;
    bool has_grown = ctl_scene_grow(&cells, n, 3 * sizeof *g->cells) &&
                     ctl_scene_grow(&changes, n, sizeof *g->changes);

    g->cells = cells;
    g->changes = changes;
    if (!has_grown) {
        return false;
    }
    memcpy(g->cells + 3 * g->n, part->cells, 3 * part->n * sizeof *g->cells);
    memcpy(g->changes + g->n, part->changes, part->n);
    for (size_t i = 0; i < part->n; i++) {
        for (size_t k = 0; k < N_KINDS; k++) {
            g->counts[k] += (uint64_t)part->changes[i] >> k & 1U;
        }
    }
    g->n = n;
    return true;
}

/* Fetches all cells, in as many replies as it takes; the first one says of which
 * versions. */
static int fetch_all(struct voxeld_client *client,
                     struct voxeld_scene_diff_request *request, struct gathered *g)
{
    struct voxeld_error error;
    uint64_t n_cells = 0;
    int result = CTL_OK;

    do {
        struct voxeld_scene_diff *part = NULL;
        size_t before = g->n;

        request->first = g->n;
        if (voxeld_scene_get_diff(client, request, &part, &error) != VOXELD_OK) {
            return ctl_failed(request->scene, &error);
        }
        n_cells = part->n_cells;
        g->from_version = part->from_version;
        g->to_version = part->to_version;
        request->from = (struct voxeld_scene_at){.version = part->from_version};
        request->to = (struct voxeld_scene_at){.version = part->to_version};
        if (!gather(g, part)) {
            (void)ctl_error("no memory");
            result = CTL_FAILED;
        } else if (g->n == before && g->n < n_cells) {
            (void)ctl_error("%s: a reply without the next cells", request->scene);
            result = CTL_FAILED;
        }
        voxeld_scene_diff_free(part);
    } while (result == CTL_OK && g->n < n_cells);
    return result;
}

static void print_json(const struct gathered *g, const char *path)
{
    (void)fputc('{', stdout);
    ctl_json_member_count(stdout, true, "from_version", g->from_version);
    ctl_json_member_count(stdout, false, "to_version", g->to_version);
    ctl_json_member_count(stdout, false, "n_cells", g->n);
    for (size_t k = 0; k < N_KINDS; k++) {
        ctl_json_member_count(stdout, false, kinds[k].member, g->counts[k]);
    }
    if (path != NULL) {
        ctl_json_member_string(stdout, false, "file", path);
    }
    (void)fputs("}\n", stdout);
}

static void print_text(const struct gathered *g, const struct ctl_scene_args *args)
{
    const char *scene = args->words[0];
    char text[32];

    (void)printf("%s: %s cells differ between version %" PRIu64 " and %s%s%" PRIu64,
                 scene, ctl_thousands(g->n, text), g->from_version,
                 args->to_scene != NULL ? args->to_scene : "",
                 args->to_scene != NULL ? "@" : "", g->to_version);
    for (size_t k = 0; k < N_KINDS; k++) {
        (void)printf("%s %s %s", k > 0 ? "," : ":", ctl_thousands(g->counts[k], text),
                     kinds[k].text);
    }
    (void)fputc('\n', stdout);
}

int ctl_scene_diff(struct voxeld_client *client, const struct ctl_globals *globals,
                   const struct ctl_scene_args *args)
{
    struct voxeld_scene_diff_request request = {0};
    struct gathered g = {0};
    int result;

    ctl_scene_diff_request(args, &request);
    result = fetch_all(client, &request, &g);

    if (result == CTL_OK && args->out != NULL) {
        const struct voxeld_array arrays[] = {
            {"cells", VOXELD_INT32, g.cells, g.n, 3},
            {"changes", VOXELD_UINT8, g.changes, g.n, 1},
        };

        result = ctl_write_arrays(args->out, arrays,
                                  ctl_has_ending(args->out, ".npy") ? 1 : 2);
    }
    if (result == CTL_OK) {
        if (globals->json) {
            print_json(&g, args->out);
        } else {
            print_text(&g, args);
        }
        result = ctl_flush();
    }
    free(g.cells);
    free(g.changes);
    return result;
}
