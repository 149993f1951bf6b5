// SPDX-License-Identifier: Apache-2.0
/* voxelctl scene render: a picture as a PNG, JPEG or npy file. */
#include <inttypes.h>
#include <string.h>

#include "client/voxelctl/render/render_job.h"
#include "client/voxelctl/render/voxelctl_render.h"

static enum vxd_status write_image(FILE *file, void *context, struct vxd_err *err)
{
    const struct voxeld_picture *picture = context;

    return fwrite(picture->image, 1, picture->n_image_bytes, file) ==
                   picture->n_image_bytes
               ? VXD_OK
               : vxd_fail(err, VXD_UNAVAILABLE, NULL, "cannot be written");
}

/* Which file it becomes, by its ending; false: none that is known. */
static bool take_ending(const char *path, enum voxeld_render_encode *out)
{
    static const struct {
        const char *ending;
        enum voxeld_render_encode encode;
    } endings[] = {{".png", VOXELD_RENDER_PNG},
                   {".jpg", VOXELD_RENDER_JPEG},
                   {".jpeg", VOXELD_RENDER_JPEG},
                   {".npy", VOXELD_RENDER_TENSOR}};

    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        if (ctl_has_ending(path, endings[i].ending)) {
            *out = endings[i].encode;
            return true;
        }
    }
    return false;
}

static void print_picture(const struct ctl_globals *globals, const char *path,
                          const struct voxeld_picture *picture)
{
    const struct voxeld_render_view *view = &picture->view;

    if (globals->json) {
        (void)fputc('{', stdout);
        ctl_json_member_string(stdout, true, "file", path);
        ctl_json_member_count(stdout, false, "version", picture->version);
        ctl_json_member_count(stdout, false, "width", picture->width);
        ctl_json_member_count(stdout, false, "height", picture->height);
        ctl_json_member_vec3(stdout, false, "eye", view->eye);
        ctl_json_member_vec3(stdout, false, "look", view->target);
        ctl_json_member_count(stdout, false, "n_rays", picture->n_rays);
        ctl_json_member_number(stdout, false, "engine_ms", picture->engine_ms);
        (void)fputs("}\n", stdout);
        return;
    }
    (void)printf("%s: %" PRIu32 " x %" PRIu32 " pixels of version %" PRIu64
                 ", --eye %.6g,%.6g,%.6g --look %.6g,%.6g,%.6g, %.1f ms\n",
                 path, picture->width, picture->height, picture->version, view->eye[0],
                 view->eye[1], view->eye[2], view->target[0], view->target[1],
                 view->target[2], picture->engine_ms);
}

int ctl_render_run(struct ctl_globals *globals, int argc, char **argv)
{
    struct ctl_render_job job = {.manual = &ctl_render_render_manual};
    struct voxeld_picture *picture = NULL;
    const char *path;
    int result;

    if (ctl_render_take(globals, argc, argv, &job, &result)) {
        return result;
    }
    path = job.args.words[1];
    if (!take_ending(path, &job.request.encode)) {
        return ctl_usage("scene render", "%s: must end in .png, .jpg or .npy", path);
    }
    result = ctl_render_call(globals, &job, &picture);
    if (result == CTL_OK) {
        result = job.request.encode == VOXELD_RENDER_TENSOR
                     ? ctl_write_arrays(path, &picture->pixels, 1)
                     : ctl_write_file(path, write_image, picture);
    }
    if (result == CTL_OK) {
        print_picture(globals, path, picture);
        result = ctl_flush();
    }
    voxeld_picture_free(picture);
    return result;
}
