// SPDX-License-Identifier: Apache-2.0
/* voxelctl volume render and view: pictures as files. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/files/image/files_image.h"
#include "client/voxelctl/volume/volume_commands.h"

#define PNG_LEVEL 6

struct png {
    uint8_t *bytes;
    size_t n_bytes;
};

static enum vxd_status write_bytes(FILE *file, void *context, struct vxd_err *err)
{
    const struct png *png = context;

    return fwrite(png->bytes, 1, png->n_bytes, file) == png->n_bytes
               ? VXD_OK
               : vxd_fail(err, VXD_UNAVAILABLE, "out", "%s", strerror(errno));
}

/* Where the camera looks in the map: the third column of its rotation. */
static void forward_of(const struct voxeld_pose *pose, double out[3])
{
    const double *q = pose->rotation;
    bool is_identity = q[0] == 0 && q[1] == 0 && q[2] == 0;

    out[0] = is_identity ? 0 : 2 * (q[0] * q[2] + q[1] * q[3]);
    out[1] = is_identity ? 0 : 2 * (q[1] * q[2] - q[0] * q[3]);
    out[2] = is_identity ? 1 : 1 - 2 * (q[0] * q[0] + q[1] * q[1]);
}

/* Grey by how much a surface faces the camera; black where there is none. */
static void shade(const struct voxeld_volume_picture *picture, const double forward[3],
                  uint8_t *rgb)
{
    const char *normals = picture->normals.data;

    for (size_t i = 0; i < picture->n; i++) {
        float n[3];
        double facing;

        memcpy(n, normals + i * sizeof n, sizeof n);
        facing = fabs(n[0] * forward[0] + n[1] * forward[1] + n[2] * forward[2]);
        memset(rgb + 3 * i, facing > 0 ? (int)(40 + 215 * fmin(facing, 1)) : 0, 3);
    }
}

static int encode(const struct voxeld_volume_picture *picture, bool has_colour,
                  const struct voxeld_pose *pose, struct png *png)
{
    uint8_t *rgb = malloc(3 * picture->n + 1);
    struct vxd_image image = {.width = picture->width,
                              .height = picture->height,
                              .n_channels = 3,
                              .sample_bytes = 1,
                              .data = rgb};
    struct vxd_err err;
    double forward[3];
    enum vxd_status status;

    if (rgb == NULL) {
        (void)ctl_error("no memory");
        return CTL_FAILED;
    }
    if (has_colour) {
        memcpy(rgb, picture->colours.data, 3 * picture->n);
    } else {
        forward_of(pose, forward);
        shade(picture, forward, rgb);
    }
    status = vxd_png_encode(&image, PNG_LEVEL, &png->bytes, &png->n_bytes, &err);
    free(rgb);
    if (status != VXD_OK) {
        (void)ctl_error("%s", err.message);
        return CTL_FAILED;
    }
    return CTL_OK;
}

/* Whether the volume keeps colours; CTL_FAILED after a message. */
static int ask_colour(struct voxeld_client *client, const char *name, bool *has_colour)
{
    struct voxeld_volumes *volumes;
    struct voxeld_error error;

    if (voxeld_volume_get(client, NULL, name, &volumes, &error) != VOXELD_OK) {
        return ctl_failed(name, &error);
    }
    *has_colour = volumes->volumes[0].colour;
    voxeld_volumes_free(volumes);
    return CTL_OK;
}

static int read_request(const struct ctl_volume_args *args,
                        struct voxeld_volume_cast_rays_request *request)
{
    int result;

    ctl_volume_render_request(args, request);
    result = ctl_volume_read_camera(args->intrinsics, &request->camera);
    request->has_camera = true;
    request->camera.width = 640;
    request->camera.height = 480;
    if ((args->width != NULL &&
         !ctl_parse_u32(args->width, 1, 16384, &request->camera.width)) ||
        (args->height != NULL &&
         !ctl_parse_u32(args->height, 1, 16384, &request->camera.height))) {
        return ctl_usage("volume render", "--width and --height are 1 to 16384");
    }
    if (result == CTL_OK && args->pose != NULL) {
        result = ctl_read_pose(args->pose, &request->T_map_camera);
    }
    return result;
}

int ctl_volume_render(struct voxeld_client *client, const struct ctl_globals *globals,
                      const struct ctl_volume_args *args)
{
    const char *path = args->words[1];
    struct voxeld_volume_cast_rays_request request = {0};
    struct voxeld_volume_picture *picture;
    struct voxeld_error error;
    struct png png = {NULL, 0};
    uint64_t n_hits;
    char text[32];
    int result;

    if (!ctl_has_ending(path, ".png")) {
        return ctl_usage("volume render", "%s: FILE.png is right", path);
    }
    result = read_request(args, &request);
    if (result == CTL_OK && !ctl_volume_has(args, CTL_VOLUME_SHADE)) {
        result = ask_colour(client, request.volume, &request.colours);
    }
    if (result != CTL_OK) {
        return result;
    }
    request.normals = !request.colours;
    if (voxeld_volume_cast_rays(client, &request, &picture, &error) != VOXELD_OK) {
        return ctl_failed(request.volume, &error);
    }
    n_hits = picture->n_hits;
    result = encode(picture, request.colours, &request.T_map_camera, &png);
    voxeld_volume_picture_free(picture);
    if (result == CTL_OK) {
        result = ctl_write_file(path, write_bytes, &png);
    }
    free(png.bytes);
    if (result != CTL_OK) {
        return result;
    }
    if (globals->json) {
        (void)fputc('{', stdout);
        ctl_json_member_string(stdout, true, "file", path);
        ctl_json_member_count(stdout, false, "n_hits", n_hits);
        (void)fputs("}\n", stdout);
    } else {
        (void)printf("%s: %s of %u x %u pixels see a surface\n", path,
                     ctl_thousands(n_hits, text), request.camera.width,
                     request.camera.height);
    }
    return ctl_flush();
}

static int read_size(const struct ctl_volume_args *args,
                     struct voxeld_volume_render_request *request)
{
    if ((args->width != NULL && !ctl_parse_u32(args->width, 1, 8192, &request->width)) ||
        (args->height != NULL &&
         !ctl_parse_u32(args->height, 1, 8192, &request->height))) {
        return ctl_usage("volume view", "--width and --height are 1 to 8192");
    }
    return CTL_OK;
}

static enum vxd_status write_image(FILE *file, void *context, struct vxd_err *err)
{
    const struct voxeld_volume_image *image = context;

    return fwrite(image->image, 1, image->n_image_bytes, file) == image->n_image_bytes
               ? VXD_OK
               : vxd_fail(err, VXD_UNAVAILABLE, "out", "%s", strerror(errno));
}

int ctl_volume_view(struct voxeld_client *client, const struct ctl_globals *globals,
                    const struct ctl_volume_args *args)
{
    const char *path = args->words[1];
    struct voxeld_volume_render_request request = {0};
    struct voxeld_volume_image *image;
    struct voxeld_error error;
    char text[32];
    int result;

    request.as_jpeg = ctl_has_ending(path, ".jpg") || ctl_has_ending(path, ".jpeg");
    if (!request.as_jpeg && !ctl_has_ending(path, ".png")) {
        return ctl_usage("volume view", "%s: FILE.png or FILE.jpg is right", path);
    }
    ctl_volume_view_request(args, &request);
    result = read_size(args, &request);
    if (result != CTL_OK) {
        return result;
    }
    if (voxeld_volume_render(client, &request, &image, &error) != VOXELD_OK) {
        return ctl_failed(request.volume, &error);
    }
    result = ctl_write_file(path, write_image, image);
    if (result == CTL_OK && globals->json) {
        ctl_volume_view_json(image);
    } else if (result == CTL_OK) {
        (void)printf("%s: %s of %u x %u pixels see a surface, from (%g, %g, %g)\n", path,
                     ctl_thousands(image->n_hits, text), image->width, image->height,
                     image->eye[0], image->eye[1], image->eye[2]);
    }
    voxeld_volume_image_free(image);
    return result == CTL_OK ? ctl_flush() : result;
}
