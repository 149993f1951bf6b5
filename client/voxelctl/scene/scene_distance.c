// SPDX-License-Identifier: Apache-2.0
/* voxelctl scene distance, and scene collide: what planners ask of distance fields. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/c/include/voxeld_field.h"
#include "client/voxelctl/scene/scene_commands.h"

/* The place of a word in a list, -1 where it is not in it. */
static int find_word(const char *word, const char *const *words, int n)
{
    for (int i = 0; i < n; i++) {
        if (strcmp(words[i], word) == 0) {
            return i;
        }
    }
    return -1;
}

static const char *const policies[3] = {"free", "occupied", "ignored"};
static const char *const kinds[4] = {"spheres", "boxes", "capsules", "poses"};
static const char *const modes[3] = {"centre", "trilinear", "surface"};

/* Takes the place apart, which has been checked; whether it says a version. */
static bool take_place(const struct ctl_scene_args *args, struct ctl_place *place,
                       struct voxeld_field_at *at)
{
    (void)ctl_parse_place(args->words[0], place);
    *at = (struct voxeld_field_at){.version = place->at.version,
                                   .snapshot = place->at.snapshot};
    return place->has_at;
}

enum {
    MAX_OUT = 3
};

/* --- distance --------------------------------------------------------------------------- */

int ctl_scene_check_distance(const struct ctl_scene_args *args)
{
    for (size_t i = 2; i < args->n_words; i++) {
        if (find_word(args->words[i], modes, 3) < 0 &&
            find_word(args->words[i], policies, 3) < 0) {
            return ctl_usage("scene distance",
                             "%s: centre, trilinear, surface, free, occupied or ignored",
                             args->words[i]);
        }
    }
    return ctl_check_place("scene distance", args->words[0]);
}

static void print_distances(const struct ctl_globals *globals,
                            const struct voxeld_field_result *r, bool to_file)
{
    size_t n = ctl_rows_printed(r->n, to_file);
    const float *distances = r->distances.data;
    const float *gradients = r->gradients.data;

    if (globals->json) {
        (void)fputc('{', stdout);
        ctl_json_member_count(stdout, true, "version", r->seen.version);
        ctl_json_member_count(stdout, false, "n", r->n);
        ctl_json_member_number(stdout, false, "max_distance_m", r->max_distance_m);
        ctl_json_member_number(stdout, false, "engine_ms", r->seen.engine_ms);
        (void)fputs(", \"rows\": [", stdout);
    }
    for (size_t k = 0; k < n; k++) {
        const float *g = gradients + 3 * k;
        const int32_t *v = r->voxels + 3 * k;

        if (globals->json) {
            (void)fputs(k > 0 ? ", {" : "{", stdout);
            ctl_json_member_number(stdout, true, "distance_m", (double)distances[k]);
            (void)printf(", \"voxel\": [%" PRId32 ", %" PRId32 ", %" PRId32 "]}", v[0],
                         v[1], v[2]);
        } else if (isnan(distances[k])) {
            (void)puts("unknown");
        } else if (v[0] == INT32_MIN) {
            (void)printf("%g m or more\n", (double)distances[k]);
        } else {
            (void)printf("%g m, away along %.3f,%.3f,%.3f, voxel %" PRId32 ",%" PRId32
                         ",%" PRId32 "\n",
                         (double)distances[k], (double)g[0], (double)g[1], (double)g[2],
                         v[0], v[1], v[2]);
        }
    }
    if (globals->json) {
        (void)fputs("]}\n", stdout);
    } else if (r->n > 1) {
        (void)printf("%zu points, %" PRIu64 " outside of the scene; version %" PRIu64
                     ", %.2f ms in the engine\n",
                     r->n, r->n_outside, r->seen.version, r->seen.engine_ms);
    }
}

int ctl_scene_distance(struct voxeld_client *client, const struct ctl_globals *globals,
                       const struct ctl_scene_args *args)
{
    struct ctl_place place = {.name = ""};
    struct ctl_rows points = {.numbers = {0}};
    struct voxeld_scene_distance_request request = {.scene = place.name,
                                                    .max_distance_m = args->max_range};
    struct voxeld_field_result *found = NULL;
    struct voxeld_error error;
    int result = ctl_rows_read(args->words[1], false, &points);

    request.has_at = take_place(args, &place, &request.at);
    request.points = points.array;
    for (size_t i = 2; i < args->n_words; i++) {
        int mode = find_word(args->words[i], modes, 3);
        int policy = find_word(args->words[i], policies, 3);

        request.interpolation =
            mode == 1 ? VOXELD_FIELD_TRILINEAR : request.interpolation;
        request.to = mode == 2 ? VOXELD_FIELD_TO_SURFACE : request.to;
        request.unknown =
            policy >= 0 ? (enum voxeld_field_unknown)policy : request.unknown;
    }
    if (result == CTL_OK &&
        voxeld_scene_distance(client, &request, &found, &error) != VOXELD_OK) {
        result = ctl_failed(args->words[0], &error);
    }
    if (result == CTL_OK && args->out != NULL) {
        const struct voxeld_array all[MAX_OUT] = {
            {"distances", VOXELD_FLOAT32, found->distances.data, found->n, 1},
            {"gradients", VOXELD_FLOAT32, found->gradients.data, found->n, 3},
            {"voxels", VOXELD_INT32, found->voxels, found->n, 3}};

        result = ctl_write_arrays(args->out, all, MAX_OUT);
    }
    if (result == CTL_OK) {
        print_distances(globals, found, args->out != NULL);
        result = ctl_flush();
    }
    voxeld_field_result_free(found);
    ctl_rows_clear(&points);
    return result;
}

/* --- collide ---------------------------------------------------------------------------- */

int ctl_scene_check_collide(const struct ctl_scene_args *args)
{
    int kind = find_word(args->words[1], kinds, 4);
    size_t n_lists = kind == 3 ? 2 : 1;

    if (kind < 0) {
        return ctl_usage("scene collide", "%s: spheres, boxes, capsules or poses",
                         args->words[1]);
    }
    if (args->n_words < 2 + n_lists || args->n_words > 3 + n_lists ||
        (args->n_words == 3 + n_lists &&
         find_word(args->words[2 + n_lists], policies, 3) < 0)) {
        return ctl_usage("scene collide", "%s takes %s, then free, occupied or ignored",
                         args->words[1],
                         kind == 3 ? "a list of poses and the robot's spheres"
                                   : "one list");
    }
    return ctl_check_place("scene collide", args->words[0]);
}

static void print_contacts(const struct ctl_globals *globals,
                           const struct voxeld_field_result *r)
{
    size_t n = ctl_rows_printed(r->n, false);
    const float *clearance = r->clearance.data;

    if (globals->json) {
        (void)fputc('{', stdout);
        ctl_json_member_count(stdout, true, "version", r->seen.version);
        ctl_json_member_count(stdout, false, "n", r->n);
        ctl_json_member_count(stdout, false, "n_hits", r->n_hits);
        ctl_json_member_number(stdout, false, "engine_ms", r->seen.engine_ms);
        (void)fputs(", \"rows\": [", stdout);
    }
    for (size_t k = 0; k < n; k++) {
        if (globals->json) {
            (void)printf("%s{\"hit\": %s", k > 0 ? ", " : "",
                         r->hits[k] != 0 ? "true" : "false");
            if (r->first != NULL) {
                (void)printf(", \"first\": %" PRId32, r->first[k]);
            }
            ctl_json_member_number(stdout, false, "clearance_m", (double)clearance[k]);
            (void)fputc('}', stdout);
            continue;
        }
        (void)fputs(r->hits[k] != 0 ? "contact" : "clear", stdout);
        if (r->first != NULL && r->first[k] >= 0) {
            (void)printf(" at pose %" PRId32, r->first[k]);
        }
        if (!isnan(clearance[k])) {
            (void)printf(", clearance %g m", (double)clearance[k]);
        }
        (void)fputc('\n', stdout);
    }
    if (globals->json) {
        (void)fputs("]}\n", stdout);
    } else if (r->n > 1) {
        (void)printf("%zu rows, %" PRIu64 " in contact; version %" PRIu64
                     ", %.2f ms in the engine\n",
                     r->n, r->n_hits, r->seen.version, r->seen.engine_ms);
    }
}

/* The arrays of a request; poses are one trajectory. */
static void set_shapes(struct voxeld_scene_collide_request *request, int kind,
                       const struct ctl_rows lists[2])
{
    struct voxeld_array *const all[4] = {&request->spheres, &request->boxes,
                                         &request->capsules, &request->poses};

    *all[kind] = lists[0].array;
    if (kind == 3) {
        request->robot = lists[1].array;
        request->n_steps =
            lists[0].array.n <= UINT32_MAX ? (uint32_t)lists[0].array.n : 0;
    }
}

int ctl_scene_collide(struct voxeld_client *client, const struct ctl_globals *globals,
                      const struct ctl_scene_args *args)
{
    int kind = find_word(args->words[1], kinds, 4);
    size_t n_lists = kind == 3 ? 2 : 1;
    struct ctl_place place = {.name = ""};
    struct ctl_rows lists[2] = {{.numbers = {0}}, {.numbers = {0}}};
    struct voxeld_scene_collide_request request = {.scene = place.name,
                                                   .max_distance_m = args->max_range};
    struct voxeld_field_result *found = NULL;
    struct voxeld_error error;
    int result = CTL_OK;

    for (size_t i = 0; i < n_lists && result == CTL_OK; i++) {
        result = ctl_rows_read(args->words[2 + i], false, &lists[i]);
    }
    request.has_at = take_place(args, &place, &request.at);
    set_shapes(&request, kind, lists);
    if (args->n_words == 3 + n_lists) {
        request.unknown =
            (enum voxeld_field_unknown)find_word(args->words[2 + n_lists], policies, 3);
    }
    if (result == CTL_OK &&
        voxeld_scene_collide(client, &request, &found, &error) != VOXELD_OK) {
        result = ctl_failed(args->words[0], &error);
    }
    if (result == CTL_OK) {
        print_contacts(globals, found);
        result = ctl_flush();
    }
    voxeld_field_result_free(found);
    ctl_rows_clear(&lists[0]);
    ctl_rows_clear(&lists[1]);
    return result;
}
