// SPDX-License-Identifier: Apache-2.0
/* What a picture shows beside the palette, and of which part of the scene: textures, regions, a clip
 * box, and the versions of AGE. */
#include "server/instance/instance.h"
#include "server/service/render/scene_render.h"
#include "server/service/service.h"

enum {
    MAX_AGE_ROOTS =
        256, /* versions that AGE shows apart: more of them are drawn in groups */
    TEXEL_BYTES = 3
};

static const Voxeld__V1__SceneRenderRequest *input_of(const struct vxd_request *request)
{
    return (const Voxeld__V1__SceneRenderRequest *)request->input;
}

/* The same box as scenes have it. */
static Voxeld__V1__SceneBox scene_box(const Voxeld__V1__RenderBox *box)
{
    Voxeld__V1__SceneBox same = VOXELD__V1__SCENE_BOX__INIT;

    same.low = box->low;
    same.high = box->high;
    return same;
}

static enum vxd_status check_box(const Voxeld__V1__RenderBox *box, const char *field,
                                 struct vxd_err *err)
{
    Voxeld__V1__SceneBox same;
    enum vxd_status status;

    if (box == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "is required");
    }
    same = scene_box(box);
    VXD_TRY(vxd_scene_check_box(&same, field, err));
    if (!(box->low->x < box->high->x && box->low->y < box->high->y &&
          box->low->z < box->high->z)) {
        VXD_TRY(
            vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                     "has a high corner that is not above the low one on every axis"));
    }
out:
    return status;
}

static enum vxd_status check_texture(const Voxeld__V1__RenderTexture *texture, size_t i,
                                     struct vxd_err *err)
{
    uint64_t n_bytes = (uint64_t)texture->width * texture->height * TEXEL_BYTES;

    if (texture->width < 1 || texture->width > VXD_RENDER_MAX_SIDE ||
        texture->height < 1 || texture->height > VXD_RENDER_MAX_SIDE) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "textures",
                        "number %zu is %u x %u texels, it must be 1 to %u a side", i,
                        texture->width, texture->height, VXD_RENDER_MAX_SIDE);
    }
    if (texture->material > UINT16_MAX) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "textures",
                        "number %zu is of material %u, it must be at most %d", i,
                        texture->material, UINT16_MAX);
    }
    return texture->texels.len == n_bytes
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, "textures",
                          "number %zu has %zu bytes, %u x %u texels have %llu", i,
                          texture->texels.len, texture->width, texture->height,
                          (unsigned long long)n_bytes);
}

enum vxd_status vxd_render_check_materials(const Voxeld__V1__SceneRenderRequest *input,
                                           struct vxd_err *err)
{
    size_t n_texels = 0;
    enum vxd_status status = VXD_OK;

    if (input->clip != NULL) {
        VXD_TRY(check_box(input->clip, "clip", err));
    }
    if (input->n_textures > VXD_RENDER_MAX_TEXTURES) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "textures",
                         "are %zu, there may be at most %u", input->n_textures,
                         VXD_RENDER_MAX_TEXTURES));
    }
    for (size_t i = 0; i < input->n_textures; i++) {
        VXD_TRY(check_texture(input->textures[i], i, err));
        n_texels += input->textures[i]->texels.len / TEXEL_BYTES;
    }
    if (n_texels > VXD_RENDER_MAX_TEXELS) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "textures",
                         "have %zu texels together, at most %zu are possible", n_texels,
                         VXD_RENDER_MAX_TEXELS));
    }
    if (input->n_regions > VXD_RENDER_MAX_REGIONS) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "regions",
                         "are %zu, there may be at most %u", input->n_regions,
                         VXD_RENDER_MAX_REGIONS));
    }
    for (size_t i = 0; i < input->n_regions; i++) {
        VXD_TRY(check_box(input->regions[i]->box, "regions.box", err));
        if (input->regions[i]->colours.len % TEXEL_BYTES != 0 ||
            input->regions[i]->colours.len > (size_t)TEXEL_BYTES << 16) {
            VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "regions.colours",
                             "has %zu bytes, it must have three a material, of at most "
                             "65536",
                             input->regions[i]->colours.len));
        }
    }
out:
    return status;
}

/* Voxels of the scene whose centres are in a box; false: there are none. */
static bool find_voxels(const struct vxd_scene_spec *spec,
                        const Voxeld__V1__RenderBox *box, uint32_t low[3],
                        uint32_t high[3])
{
    const int64_t side = (int64_t)1 << spec->format.depth;
    int64_t from[3], to[3];
    Voxeld__V1__SceneBox same = scene_box(box);
    bool is_empty = false;

    vxd_scene_voxels_in(spec, false, &same, from, to);
    for (int i = 0; i < 3; i++) {
        from[i] = from[i] > 0 ? from[i] : 0;
        to[i] = to[i] < side ? to[i] : side;
        is_empty = is_empty || from[i] >= to[i];
        low[i] = is_empty ? 0 : (uint32_t)from[i];
        high[i] = is_empty ? 0 : (uint32_t)to[i];
    }
    return !is_empty;
}

/* Packed colours of bytes. */
static enum vxd_status pack(struct vxd_request *request, const ProtobufCBinaryData *bytes,
                            const uint32_t **out, struct vxd_err *err)
{
    size_t n = bytes->len / TEXEL_BYTES;
    void *block;
    uint32_t *colours;
    enum vxd_status status;

    VXD_TRY(vxd_scene_take_host(request, n, sizeof *colours, &block, err));
    colours = block;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *rgb = bytes->data + TEXEL_BYTES * i;

        colours[i] = (uint32_t)rgb[0] << 16 | (uint32_t)rgb[1] << 8 | rgb[2];
    }
    *out = colours;
out:
    return status;
}

static enum vxd_status set_textures(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SceneRenderRequest *input = input_of(request);
    struct vxd_render_job *job = request->state;
    struct vxd_render_texture *textures =
        vxd_message_array(request->decoder, input->n_textures, sizeof *textures, err);
    enum vxd_status status = textures != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;

    for (size_t i = 0; status == VXD_OK && i < input->n_textures; i++) {
        const Voxeld__V1__RenderTexture *texture = input->textures[i];

        textures[i] = (struct vxd_render_texture){
            .material = texture->material,
            .width = texture->width,
            .height = texture->height,
            .texel_voxels = texture->texel_voxels > 0 ? texture->texel_voxels : 1};
        status = pack(request, &texture->texels, &textures[i].texels, err);
    }
    job->picture.textures = textures;
    job->picture.n_textures = (uint32_t)input->n_textures;
    return status;
}

static enum vxd_status set_regions(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SceneRenderRequest *input = input_of(request);
    struct vxd_render_job *job = request->state;
    struct vxd_render_region *regions =
        vxd_message_array(request->decoder, input->n_regions, sizeof *regions, err);
    uint32_t n = 0;
    enum vxd_status status = regions != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;

    for (size_t i = 0; status == VXD_OK && i < input->n_regions; i++) {
        const Voxeld__V1__RenderRegion *region = input->regions[i];
        struct vxd_render_region *made = &regions[n];

        if (region->colours.len > 0 &&
            find_voxels(&job->base.scene->spec, region->box, made->low, made->high)) {
            made->n_palette = (uint32_t)(region->colours.len / TEXEL_BYTES);
            status = pack(request, &region->colours, &made->palette, err);
            n++;
        }
    }
    job->picture.regions = regions;
    job->picture.n_regions = n;
    return status;
}

bool vxd_render_find_clip(const struct vxd_scene_spec *spec,
                          const Voxeld__V1__RenderBox *box,
                          struct vxd_render_picture *picture)
{
    if (box == NULL) {
        return true;
    }
    picture->has_clip = find_voxels(spec, box, picture->clip_low, picture->clip_high);
    return picture->has_clip;
}

enum vxd_status vxd_render_set_materials(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SceneRenderRequest *input = input_of(request);
    struct vxd_render_job *job = request->state;
    struct vxd_render_picture *picture = &job->picture;
    enum vxd_status status = VXD_OK;

    if (!vxd_render_find_clip(&job->base.scene->spec, input->clip, picture)) {
        job->base.state.root = VXD_SVDAG_EMPTY;
    }
    if (input->n_textures > 0) {
        VXD_TRY(set_textures(request, err));
    }
    if (input->n_regions > 0) {
        VXD_TRY(set_regions(request, err));
    }
out:
    return status;
}

enum vxd_status vxd_render_open_versions(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err)
{
    struct vxd_render_job *job = request->state;
    struct vxd_scene_log_summary summary;
    struct vxd_scene_version *versions;
    struct vxd_scene_at at = {.version = job->base.state.version};
    uint32_t *roots;
    size_t n, n_roots;
    void *block;
    enum vxd_status status;

    roots = vxd_message_array(request->decoder, MAX_AGE_ROOTS, sizeof *roots, err);
    if (roots == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    vxd_scene_get_log_summary(job->base.scene, &summary);
    VXD_TRY(vxd_scene_take_host(request, summary.n_versions + 1, sizeof *versions, &block,
                                err));
    versions = block;
    vxd_scene_unpin(request->server->scenes, &job->base.state, queue);
    VXD_TRY(vxd_scene_pin_versions(job->base.scene, &at, &job->base.state, versions,
                                   summary.n_versions + 1, &n, err));
    n_roots = n < MAX_AGE_ROOTS ? n : MAX_AGE_ROOTS;
    for (size_t i = 0; i < n_roots; i++) {
        roots[i] = versions[n_roots > 1 ? i * (n - 1) / (n_roots - 1) : 0].root;
    }
    job->picture.roots = roots;
    job->picture.n_roots = (uint32_t)n_roots;
out:
    return status;
}
