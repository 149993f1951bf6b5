// SPDX-License-Identifier: Apache-2.0
/* Tables of what gives voxels colours of their own: roots of versions, textures, palettes of
 * regions. They are words, of which colours are floats, in this order: roots, texture_of, textures,
 * texels, regions, colours of regions. */
#include <math.h>
#include <string.h>

#include "gpu/render/render_backends.h"

static bool has_textures(const struct vxd_render_picture *picture)
{
    return picture->mode == VXD_RENDER_COLOUR || picture->mode == VXD_RENDER_LABEL ||
           picture->mode == VXD_RENDER_PATH;
}

static enum vxd_status check_textures(const struct vxd_render_picture *picture,
                                      struct vxd_err *err)
{
    size_t n_texels = 0;

    if (picture->n_textures > VXD_RENDER_MAX_TEXTURES ||
        (picture->n_textures > 0 && picture->textures == NULL)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "textures",
                        "are %u, there may be at most %u", picture->n_textures,
                        VXD_RENDER_MAX_TEXTURES);
    }
    for (uint32_t i = 0; i < picture->n_textures; i++) {
        const struct vxd_render_texture *texture = &picture->textures[i];

        if (texture->material > UINT16_MAX || texture->width < 1 || texture->height < 1 ||
            texture->texel_voxels < 1 || texture->texels == NULL ||
            texture->width > VXD_RENDER_MAX_SIDE ||
            texture->height > VXD_RENDER_MAX_SIDE) {
            return vxd_fail(
                err, VXD_INVALID_ARGUMENT, "textures",
                "number %u is of material %u with %u x %u texels of %u voxels; "
                "it must be of a material below 65536 and have 1 to %u texels "
                "a side, of at least 1 voxel",
                i, texture->material, texture->width, texture->height,
                texture->texel_voxels, VXD_RENDER_MAX_SIDE);
        }
        n_texels += (size_t)texture->width * texture->height;
    }
    return n_texels <= VXD_RENDER_MAX_TEXELS
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, "textures",
                          "have %zu texels together, at most %zu are possible", n_texels,
                          VXD_RENDER_MAX_TEXELS);
}

static enum vxd_status check_box(const uint32_t low[3], const uint32_t high[3],
                                 const char *field, struct vxd_err *err)
{
    for (int axis = 0; axis < 3; axis++) {
        if (low[axis] >= high[axis] || high[axis] > (uint32_t)1 << VXD_SVDAG_MAX_DEPTH) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                            "is a box from %u to %u voxels on an axis, it must be above "
                            "and end by 2^%d",
                            low[axis], high[axis], VXD_SVDAG_MAX_DEPTH);
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_render_materials_check(const struct vxd_render_picture *picture,
                                           struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (picture->mode == VXD_RENDER_AGE &&
        (picture->n_roots < 1 || picture->n_roots > VXD_RENDER_MAX_ROOTS ||
         picture->roots == NULL)) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "roots",
                         "are %u, they must be 1 to %u", picture->n_roots,
                         VXD_RENDER_MAX_ROOTS));
    }
    if (has_textures(picture)) {
        VXD_TRY(check_textures(picture, err));
        if (picture->n_regions > VXD_RENDER_MAX_REGIONS ||
            (picture->n_regions > 0 && picture->regions == NULL)) {
            VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "regions",
                             "are %u, there may be at most %u", picture->n_regions,
                             VXD_RENDER_MAX_REGIONS));
        }
        for (uint32_t i = 0; i < picture->n_regions; i++) {
            const struct vxd_render_region *region = &picture->regions[i];

            VXD_TRY(check_box(region->low, region->high, "regions", err));
            if (region->n_palette > 65536 ||
                (region->n_palette > 0 && region->palette == NULL)) {
                VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "regions",
                                 "number %u has %u colours, at most 65536 are possible",
                                 i, region->n_palette));
            }
        }
    }
    if (picture->has_clip) {
        status = check_box(picture->clip_low, picture->clip_high, "clip", err);
    }
out:
    return status;
}

/* Sizes of the tables, in words. */
struct sizes {
    size_t roots, texture_of, textures, texels, regions, colours;
};

static struct sizes sizes_of(const struct vxd_render_picture *picture)
{
    struct sizes sizes = {0};

    if (picture->mode == VXD_RENDER_AGE) {
        sizes.roots = picture->n_roots;
    }
    for (uint32_t i = 0; has_textures(picture) && i < picture->n_textures; i++) {
        const struct vxd_render_texture *texture = &picture->textures[i];
        size_t n = (size_t)texture->material + 1;

        sizes.texture_of = n > sizes.texture_of ? n : sizes.texture_of;
        sizes.textures += VXD_RENDER_TEXTURE_WORDS;
        sizes.texels += 3 * (size_t)texture->width * texture->height;
    }
    for (uint32_t i = 0; has_textures(picture) && i < picture->n_regions; i++) {
        sizes.regions += VXD_RENDER_REGION_WORDS;
        sizes.colours += 3 * (size_t)picture->regions[i].n_palette;
    }
    return sizes;
}

size_t vxd_render_materials_words(const struct vxd_render_picture *picture)
{
    struct sizes sizes = sizes_of(picture);

    return sizes.roots + sizes.texture_of + sizes.textures + sizes.texels +
           sizes.regions + sizes.colours;
}

/* Light of stored colours' bytes, as words. */
static void write_colours(const uint32_t *rgb, size_t n, uint32_t *words)
{
    for (size_t i = 0; i < 3 * n; i++) {
        double stored = (rgb[i / 3] >> (16 - 8 * (i % 3)) & 0xffu) / 255.0;
        float linear = (float)(stored * stored);

        memcpy(&words[i], &linear, sizeof linear);
    }
}

void vxd_render_materials_write(const struct vxd_render_picture *picture, uint32_t *words)
{
    struct sizes sizes = sizes_of(picture);
    uint32_t *texture_of = words + sizes.roots;
    uint32_t *textures = texture_of + sizes.texture_of;
    uint32_t *texels = textures + sizes.textures;
    uint32_t *regions = texels + sizes.texels;
    uint32_t *colours = regions + sizes.regions;
    uint32_t first = 0;

    if (sizes.roots > 0) {
        memcpy(words, picture->roots, sizes.roots * sizeof *words);
    }
    if (sizes.texture_of > 0) {
        memset(texture_of, 0, sizes.texture_of * sizeof *texture_of);
    }
    for (uint32_t i = 0; sizes.textures > 0 && i < picture->n_textures; i++) {
        const struct vxd_render_texture *texture = &picture->textures[i];
        const uint32_t words_of[VXD_RENDER_TEXTURE_WORDS] = {
            first, texture->width, texture->height, texture->texel_voxels};
        size_t n = (size_t)texture->width * texture->height;

        texture_of[texture->material] = i + 1;
        memcpy(textures + VXD_RENDER_TEXTURE_WORDS * (size_t)i, words_of,
               sizeof words_of);
        write_colours(texture->texels, n, texels + 3 * (size_t)first);
        first += (uint32_t)n;
    }
    first = 0;
    for (uint32_t i = 0; sizes.regions > 0 && i < picture->n_regions; i++) {
        const struct vxd_render_region *region = &picture->regions[i];
        const uint32_t words_of[VXD_RENDER_REGION_WORDS] = {
            region->low[0],  region->low[1],  region->low[2], region->high[0],
            region->high[1], region->high[2], first,          region->n_palette};

        memcpy(regions + VXD_RENDER_REGION_WORDS * (size_t)i, words_of, sizeof words_of);
        write_colours(region->palette, region->n_palette, colours + 3 * (size_t)first);
        first += region->n_palette;
    }
}

void vxd_render_materials_place(const struct vxd_render_picture *picture,
                                const uint32_t *words, struct vxd_render_materials *out)
{
    struct sizes sizes = sizes_of(picture);

    out->roots = words;
    out->n_roots = (uint32_t)sizes.roots;
    out->texture_of = out->roots + sizes.roots;
    out->n_texture_of = (uint32_t)sizes.texture_of;
    out->textures = out->texture_of + sizes.texture_of;
    out->texels = (const float *)(const void *)(out->textures + sizes.textures);
    out->regions = (const uint32_t *)(const void *)(out->texels + sizes.texels);
    out->n_regions = (uint32_t)(sizes.regions / VXD_RENDER_REGION_WORDS);
    out->region_colours = (const float *)(const void *)(out->regions + sizes.regions);
}
