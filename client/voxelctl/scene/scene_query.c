// SPDX-License-Identifier: Apache-2.0
/* voxelctl scene query: values, ray, nearest, overlap. */
#include <inttypes.h>
#include <string.h>

#include "client/voxelctl/scene/scene_commands.h"

enum {
    MAX_OUT = 7
};

/* Prints "occupied", or for a set "occupied+free"; text has at least 32 bytes. */
static const char *state_name(uint8_t states, char *text)
{
    (void)snprintf(text, 32, "%s%s%s%s%s",
                   (states & VOXELD_VOXEL_OCCUPIED) != 0 ? "occupied" : "",
                   (states & VOXELD_VOXEL_OCCUPIED) != 0 && (states & 5) != 0 ? "+" : "",
                   (states & VOXELD_VOXEL_FREE) != 0 ? "free" : "",
                   (states & VOXELD_VOXEL_FREE) != 0 && (states & 1) != 0 ? "+" : "",
                   (states & VOXELD_VOXEL_UNKNOWN) != 0 ? "unknown" : "");
    return text;
}

/* The middle of the voxel that a row has found; false where it found none, or nothing is known of the
 * scene. */
static bool centre_of(const struct voxeld_scene_found *f, size_t k,
                      const struct voxeld_scene_info *scene, double centre[3])
{
    if (scene == NULL || f->distances == NULL || f->distances[k] < 0) {
        return false;
    }
    for (size_t axis = 0; axis < 3; axis++) {
        centre[axis] = scene->origin_m[axis] +
                       ((double)f->voxels[3 * k + axis] + 0.5) * scene->voxel_size_m;
    }
    return true;
}

/* The material's name in the palette; "" where it has none. */
static const char *material_name(const struct voxeld_scene_info *scene, uint16_t material)
{
    return scene != NULL && material < scene->n_palette ? scene->palette[material].name
                                                        : "";
}

static void print_row_text(const struct voxeld_scene_found *f, size_t k,
                           const struct voxeld_scene_info *scene)
{
    double centre[3];
    char text[32];

    if (f->states != NULL) {
        (void)fputs(state_name(f->states[k], text), stdout);
    }
    if (f->distances != NULL && f->distances[k] < 0) {
        (void)fputs("nothing", stdout);
    } else if (f->distances != NULL) {
        (void)printf("%g m", (double)f->distances[k]);
        if (centre_of(f, k, scene, centre)) {
            (void)printf(", at %.9g, %.9g, %.9g m", centre[0], centre[1], centre[2]);
        }
        (void)printf(", voxel %" PRId32 ",%" PRId32 ",%" PRId32, f->voxels[3 * k],
                     f->voxels[3 * k + 1], f->voxels[3 * k + 2]);
        if (f->normals != NULL) {
            (void)printf(", normal %d,%d,%d", f->normals[3 * k], f->normals[3 * k + 1],
                         f->normals[3 * k + 2]);
        }
    }
    if (f->materials != NULL && (f->distances == NULL || f->distances[k] >= 0)) {
        const char *name = material_name(scene, f->materials[k]);

        (void)printf(", material %u%s%s", f->materials[k], name[0] != '\0' ? " " : "",
                     name);
    }
    if (f->n_occupied != NULL) {
        (void)printf(", %" PRIu64 " occupied, %" PRIu64 " free", f->n_occupied[k],
                     f->n_free[k]);
    }
    (void)fputc('\n', stdout);
}

static void print_row_json(const struct voxeld_scene_found *f, size_t k,
                           const struct voxeld_scene_info *scene)
{
    double centre[3];
    char text[32];

    (void)fputs(k > 0 ? ", {" : "{", stdout);
    if (f->states != NULL) {
        ctl_json_member_string(stdout, true, "state", state_name(f->states[k], text));
    }
    if (f->distances != NULL) {
        const int32_t *v = f->voxels + 3 * k;

        ctl_json_member_number(stdout, true, "distance_m", (double)f->distances[k]);
        (void)printf(", \"voxel\": [%" PRId32 ", %" PRId32 ", %" PRId32 "]", v[0], v[1],
                     v[2]);
    }
    if (f->normals != NULL) {
        const int8_t *n = f->normals + 3 * k;

        (void)printf(", \"normal\": [%d, %d, %d]", n[0], n[1], n[2]);
    }
    if (f->materials != NULL) {
        ctl_json_member_count(stdout, false, "material", f->materials[k]);
        ctl_json_member_string(stdout, false, "material_name",
                               material_name(scene, f->materials[k]));
    }
    if (centre_of(f, k, scene, centre)) {
        ctl_json_member_vec3(stdout, false, "centre_m", centre);
    }
    if (f->n_occupied != NULL) {
        ctl_json_member_count(stdout, false, "n_occupied", f->n_occupied[k]);
        ctl_json_member_count(stdout, false, "n_free", f->n_free[k]);
    }
    (void)fputc('}', stdout);
}

static void print_found(const struct ctl_globals *globals,
                        const struct voxeld_scene_found *f,
                        const struct voxeld_scene_info *scene, bool to_file)
{
    size_t n = ctl_rows_printed(f->n, to_file);
    char rows[32];
    char hits[32];

    if (globals->json) {
        (void)fputc('{', stdout);
        ctl_json_member_count(stdout, true, "version", f->version);
        ctl_json_member_count(stdout, false, "n", f->n);
        if (f->distances != NULL) {
            ctl_json_member_count(stdout, false, "n_hits", f->n_hits);
        }
        ctl_json_member_number(stdout, false, "engine_ms", f->engine_ms);
        (void)fputs(", \"rows\": [", stdout);
    }
    for (size_t k = 0; k < n; k++) {
        if (globals->json) {
            print_row_json(f, k, scene);
        } else {
            print_row_text(f, k, scene);
        }
    }
    if (globals->json) {
        (void)fputs("]}\n", stdout);
    } else if (f->n > n || f->n > 1) {
        (void)printf("%s rows", ctl_thousands(f->n, rows));
        if (f->distances != NULL) {
            (void)printf(", %s hits", ctl_thousands(f->n_hits, hits));
        }
        (void)printf("; version %" PRIu64 ", %.2f ms in the engine\n", f->version,
                     f->engine_ms);
    }
}

static int write_found(const char *path, const struct voxeld_scene_found *f)
{
    const struct voxeld_array all[MAX_OUT] = {
        {"states", VOXELD_UINT8, f->states, f->n, 1},
        {"distances", VOXELD_FLOAT32, f->distances, f->n, 1},
        {"voxels", VOXELD_INT32, f->voxels, f->n, 3},
        {"normals", VOXELD_INT8, f->normals, f->n, 3},
        {"materials", VOXELD_UINT16, f->materials, f->n, 1},
        {"n_occupied", VOXELD_UINT64, f->n_occupied, f->n, 1},
        {"n_free", VOXELD_UINT64, f->n_free, f->n, 1},
    };
    struct voxeld_array given[MAX_OUT];
    size_t n = 0;

    for (size_t i = 0; i < MAX_OUT; i++) {
        if (all[i].data != NULL) {
            given[n++] = all[i];
        }
    }
    return ctl_write_arrays(path, given, n);
}

enum what {
    WHAT_VALUES,
    WHAT_RAY,
    WHAT_NEAREST,
    WHAT_OVERLAP,
    N_WHATS
};

static enum what what_of(const struct ctl_scene_args *args)
{
    static const char *const names[N_WHATS] = {"values", "ray", "nearest", "overlap"};
    int what = 0;

    while (what < N_WHATS && strcmp(names[what], args->words[1]) != 0) {
        what++;
    }
    return (enum what)what;
}

int ctl_scene_check_query(const struct ctl_scene_args *args)
{
    enum what what = what_of(args);

    if (what == N_WHATS) {
        return ctl_usage("scene query", "%s: values, ray, nearest or overlap",
                         args->words[1]);
    }
    if ((args->n_words == 4) != (what == WHAT_RAY)) {
        return ctl_usage("scene query", "%s takes %s", args->words[1],
                         what == WHAT_RAY ? "origins and directions" : "one list");
    }
    if (what == WHAT_NEAREST && !ctl_scene_has(args, CTL_SCENE_RADIUS)) {
        return ctl_usage("scene query", "nearest needs a --radius");
    }
    return CTL_OK;
}

static enum voxeld_status ask(struct voxeld_client *client,
                              const struct ctl_scene_args *args,
                              const struct ctl_rows *in, struct voxeld_scene_found **out,
                              struct voxeld_error *error)
{
    const char *scene = args->words[0];

    switch (what_of(args)) {
    case WHAT_VALUES:
        return voxeld_scene_values(client, NULL, scene, &in[0].array, out, error);
    case WHAT_RAY:
        return voxeld_scene_cast_rays(client, NULL, scene, &in[0].array, &in[1].array,
                                      args->max_range, out, error);
    case WHAT_NEAREST:
        return voxeld_scene_nearest(client, NULL, scene, &in[0].array, args->radius, out,
                                    error);
    default:
        return voxeld_scene_overlap(client, NULL, scene, &in[0].array,
                                    ctl_scene_has(args, CTL_SCENE_COUNTS), out, error);
    }
}

int ctl_scene_query(struct voxeld_client *client, const struct ctl_globals *globals,
                    const struct ctl_scene_args *args)
{
    struct ctl_rows in[2] = {{.numbers = {0}}, {.numbers = {0}}};
    bool in_voxels = ctl_scene_has(args, CTL_SCENE_IN_VOXELS);
    struct voxeld_scene_found *found = NULL;
    struct voxeld_scenes *scenes = NULL;
    struct voxeld_error error;
    int result = CTL_OK;

    for (size_t i = 2; i < args->n_words && result == CTL_OK; i++) {
        result = ctl_rows_read(args->words[i], in_voxels, &in[i - 2]);
    }
    if (result == CTL_OK && ask(client, args, in, &found, &error) != VOXELD_OK) {
        result = ctl_failed(args->words[0], &error);
    }
    if (result == CTL_OK && args->out != NULL) {
        result = write_found(args->out, found);
    }
    if (result == CTL_OK) {
        /* What turns its voxels into metres and names; without it they are shown as they are. */
        if (args->out == NULL && (found->distances != NULL || found->materials != NULL)) {
            (void)voxeld_scene_describe(client, NULL, args->words[0], &scenes, NULL);
        }
        print_found(globals, found, scenes != NULL ? &scenes->scenes[0] : NULL,
                    args->out != NULL);
        result = ctl_flush();
    }
    voxeld_scenes_free(scenes);
    voxeld_scene_found_free(found);
    ctl_rows_clear(&in[0]);
    ctl_rows_clear(&in[1]);
    return result;
}
