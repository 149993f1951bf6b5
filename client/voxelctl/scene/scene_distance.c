// SPDX-License-Identifier: Apache-2.0
/* voxelctl scene distance, and scene collide: what planners ask of distance fields. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/c/include/voxeld_field.h"
#include "client/voxelctl/scene/scene_commands.h"

enum {
    /* So many rows are printed; --out takes more. */
    MAX_PRINTED = 100,
    MAX_LITERAL = 10,
    MAX_OUT = 3,
    NAME_BYTES = 66 /* more than a name has, so that a longer one stays wrong */
};

/* The rows of a file, or one row of the command line. */
struct rows {
    struct ctl_array file;
    double numbers[MAX_LITERAL];
    struct voxeld_array array;
};

/* CTL_FAILED after a message. The caller clears rows->file in either case. */
static int read_rows(const char *word, struct rows *rows)
{
    size_t n = ctl_parse_doubles(word, rows->numbers, MAX_LITERAL);
    int result;

    if (n >= 3) {
        rows->array = (struct voxeld_array){
            .dtype = VOXELD_FLOAT64, .data = rows->numbers, .n = 1, .n_elements = n};
        return CTL_OK;
    }
    result = ctl_array_read(word, VOXELD_FLOAT64, &rows->file);
    rows->array = ctl_array_view(&rows->file, NULL);
    return result;
}

/* A scene as a request names it: its name, and the version or snapshot behind an @. */
struct place {
    char name[NAME_BYTES];
    bool has_at;
    struct voxeld_field_at at;
};

static struct place place_of(const char *word)
{
    const char *sign = strchr(word, '@');
    size_t n = sign != NULL ? (size_t)(sign - word) : strlen(word);
    struct place place = {.has_at = sign != NULL};

    n = n < NAME_BYTES - 1 ? n : NAME_BYTES - 1;
    memcpy(place.name, word, n);
    if (sign != NULL && sign[1 + strspn(sign + 1, "0123456789")] == '\0') {
        place.at.version = strtoull(sign + 1, NULL, 10);
        /* No version is 0; the server refuses the sign as part of a name. */
        place.at.snapshot = place.at.version == 0 ? sign : NULL;
    } else if (sign != NULL) {
        place.at.snapshot = sign + 1;
    }
    return place;
}

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
    return CTL_OK;
}

static void print_distances(const struct ctl_globals *globals,
                            const struct voxeld_field_result *r, bool to_file)
{
    size_t n = to_file ? 0 : r->n < MAX_PRINTED ? r->n : MAX_PRINTED;
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
    struct place place = place_of(args->words[0]);
    struct rows points = {.numbers = {0}};
    struct voxeld_scene_distance_request request = {.scene = place.name,
                                                    .has_at = place.has_at,
                                                    .at = place.at,
                                                    .max_distance_m = args->max_range};
    struct voxeld_field_result *found = NULL;
    struct voxeld_error error;
    int result = read_rows(args->words[1], &points);

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
    ctl_array_clear(&points.file);
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
    return CTL_OK;
}

static void print_contacts(const struct ctl_globals *globals,
                           const struct voxeld_field_result *r)
{
    size_t n = r->n < MAX_PRINTED ? r->n : MAX_PRINTED;
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
                       const struct rows lists[2])
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
    struct place place = place_of(args->words[0]);
    struct rows lists[2] = {{.numbers = {0}}, {.numbers = {0}}};
    struct voxeld_scene_collide_request request = {.scene = place.name,
                                                   .has_at = place.has_at,
                                                   .at = place.at,
                                                   .max_distance_m = args->max_range};
    struct voxeld_field_result *found = NULL;
    struct voxeld_error error;
    int result = CTL_OK;

    for (size_t i = 0; i < n_lists && result == CTL_OK; i++) {
        result = read_rows(args->words[2 + i], &lists[i]);
    }
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
    ctl_array_clear(&lists[0].file);
    ctl_array_clear(&lists[1].file);
    return result;
}
