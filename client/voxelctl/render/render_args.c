// SPDX-License-Identifier: Apache-2.0
#include "client/voxelctl/render/render_args.h"

#include <string.h>

enum render_option {
    EYE = CTL_OPT_FIRST_OWN,
    LOOK,
    UP,
    FOV,
    SIZE,
    CAMERA,
    VIEW_HEIGHT,
    MODE,
    SAMPLES,
    AO,
    BOUNCES,
    NO_SHADOWS,
    VARIATION,
    DETAIL,
    CLIP,
    END
};

#define BIT(option) (UINT64_C(1) << ((option)-CTL_OPT_FIRST_OWN))

enum {
    MAX_SIDE = 8192,
    MAX_SAMPLES = 256,
    MAX_BOUNCES = 16,
    MAX_DETAIL = 64
};

static const struct ctl_own_option known[] = {
    {"eye", "three numbers x,y,z", false},
    {"look", "three numbers x,y,z", false},
    {"up", "three numbers x,y,z", false},
    {"fov", "degrees, above 0 and below 180", false},
    {"size", "WIDTHxHEIGHT, each 1 to 8192", false},
    {"camera", "pinhole, orthographic or equirectangular", false},
    {"view-height", "metres > 0", false},
    {"mode", "colour, height, depth, normal, material, ao, path, age or label", false},
    {"samples", "1 to 256", false},
    {"ao", "1 to 256", false},
    {"bounces", "1 to 16", false},
    {"no-shadows", "", true},
    {"variation", "0 to 1", false},
    {"detail", "0 to 64", false},
    {"clip", "six numbers x,y,z,x,y,z", false},
};

_Static_assert((int)(sizeof known / sizeof known[0]) == END - CTL_OPT_FIRST_OWN,
               "by number");

static const struct ctl_relation relations[] = {
    {BIT(EYE), BIT(LOOK), 0}, {BIT(LOOK), BIT(EYE), 0}, {BIT(UP), BIT(EYE), 0}};

static bool parse_vector(const char *text, double out[3])
{
    double v[3];

    if (ctl_parse_doubles(text, v, 3) != 3) {
        return false;
    }
    memcpy(out, v, sizeof v);
    return true;
}

static bool parse_clip(const char *text, struct voxeld_render_box *out)
{
    double v[6];

    if (ctl_parse_doubles(text, v, 6) != 6) {
        return false;
    }
    memcpy(out->low, v, sizeof out->low);
    memcpy(out->high, v + 3, sizeof out->high);
    return true;
}

static bool parse_size(const char *text, struct voxeld_scene_render_request *out)
{
    char width[16];
    size_t n = strcspn(text, "x");

    if (n >= sizeof width || text[n] != 'x') {
        return false;
    }
    memcpy(width, text, n);
    width[n] = '\0';
    return ctl_parse_u32(width, 1, MAX_SIDE, &out->width) &&
           ctl_parse_u32(text + n + 1, 1, MAX_SIDE, &out->height);
}

static bool take_choice(struct voxeld_scene_render_request *request, int id,
                        const char *value)
{
    static const char *const cameras[] = {"pinhole", "orthographic", "equirectangular",
                                          NULL};
    static const char *const modes[] = {"colour", "height", "depth", "normal", "material",
                                        "ao",     "path",   "age",   "label",  NULL};
    int choice = ctl_parse_choice(value, id == MODE ? modes : cameras);

    if (id == MODE) {
        request->mode = (enum voxeld_render_mode)choice;
    } else {
        request->camera = (enum voxeld_render_camera)choice;
    }
    return choice >= 0;
}

static bool take(void *user, int id, const char *value)
{
    struct ctl_render_args *args = user;
    struct voxeld_scene_render_request *request = &args->request;

    args->given |= BIT(id);
    switch ((enum render_option)id) {
    case EYE:
        request->has_view = true;
        return parse_vector(value, request->view.eye);
    case LOOK:
        return parse_vector(value, request->view.target);
    case UP:
        return parse_vector(value, request->view.up);
    case FOV:
        return ctl_parse_between(value, 0, 180, &request->fov_y_deg) &&
               request->fov_y_deg > 0 && request->fov_y_deg < 180;
    case SIZE:
        return parse_size(value, request);
    case CAMERA:
    case MODE:
        return take_choice(request, id, value);
    case VIEW_HEIGHT:
        return ctl_parse_between(value, 0, 1e9, &request->view_height_m) &&
               request->view_height_m > 0;
    case SAMPLES:
        return ctl_parse_u32(value, 1, MAX_SAMPLES, &request->samples);
    case AO:
        return ctl_parse_u32(value, 1, MAX_SAMPLES, &request->ao_samples);
    case BOUNCES:
        return ctl_parse_u32(value, 1, MAX_BOUNCES, &request->bounces);
    case NO_SHADOWS:
        request->no_shadows = true;
        return true;
    case VARIATION:
        return ctl_parse_between(value, 0, 1, &request->variation);
    case DETAIL:
        return ctl_parse_between(value, 0, MAX_DETAIL, &request->detail);
    case CLIP:
        request->has_clip = true;
        return parse_clip(value, &request->clip);
    case END:
        break;
    }
    return false;
}

/* Takes NAME, NAME@VERSION or NAME@SNAPSHOT. */
static bool take_scene(struct ctl_render_args *args, const char *word)
{
    size_t n = strcspn(word, "@");
    const char *at = word[n] == '@' ? word + n + 1 : NULL;

    if (n >= sizeof args->scene || (at != NULL && at[0] == '\0')) {
        return false;
    }
    memcpy(args->scene, word, n);
    args->scene[n] = '\0';
    args->request.scene = args->scene;
    if (at != NULL && at[strspn(at, "0123456789")] == '\0') {
        return ctl_parse_u64(at, &args->request.version) && args->request.version > 0;
    }
    args->request.snapshot = at;
    return true;
}

bool ctl_render_parse(struct ctl_globals *globals, const struct ctl_command *command,
                      int argc, char **argv, int n_words, struct ctl_render_args *args,
                      int *result)
{
    const struct ctl_own_options own = {.known = known,
                                        .n_known = sizeof known / sizeof known[0],
                                        .relations = relations,
                                        .n_relations =
                                            sizeof relations / sizeof relations[0],
                                        .taken = BIT(END) - 1,
                                        .n_min = (size_t)n_words,
                                        .n_max = (size_t)n_words,
                                        .take = take,
                                        .args = args};

    if (ctl_take_own_options(globals, command, &own, argc, argv, result)) {
        return true;
    }
    if (!take_scene(args, argv[optind])) {
        *result = ctl_usage(command->name, "%s: no NAME, NAME@VERSION or NAME@SNAPSHOT",
                            argv[optind]);
        return true;
    }
    return false;
}

int ctl_render_call(const struct ctl_globals *globals, const struct ctl_render_args *args,
                    struct voxeld_picture **out)
{
    struct voxeld_client *client = ctl_connect(globals);
    struct voxeld_error error = {0};
    int result = CTL_OK;

    if (client == NULL) {
        return CTL_FAILED;
    }
    if (voxeld_scene_render(client, &args->request, out, &error) != VOXELD_OK) {
        result = ctl_failed(args->scene, &error);
    }
    voxeld_close(client);
    return result;
}
