// SPDX-License-Identifier: Apache-2.0
/* The steps before and after the joint ones, an item each: the voxel set, images, visibility, new
 * volumes. As in refine_steps.h, every item writes its own rows. */
#ifndef VXD_GPU_REFINE_REFINE_SETUP_H
#define VXD_GPU_REFINE_REFINE_SETUP_H

#include "gpu/refine/refine_steps.h"
#include "gpu/volume/volume_math.h"

#define VXD_REFINE_MIN_COSINE 0.2f
#define VXD_REFINE_RIM 2.0f /* pixels of an image's rim that count as not seen */

/* ---- The voxel set (setup 7) ---- */

struct vxd_refine_set_call {
    struct vxd_volume_view volume;
    const int32_t *entries; /* blocks */
    uint32_t *counts;       /* voxels of each block; after the scan, of those before it */
    float band;             /* voxels */
    float min_weight;
    float unit;    /* voxels of a distance of 1 */
    int32_t *keys; /* out */
    int64_t *rows; /* out: places of the voxels in the volume's arrays */
    int64_t *rows_read;
    int32_t *extents; /* out: least keys and greatest ones, 6 a part */
    uint64_t version; /* of blocks that are written */
};

#define VXD_REFINE_EXTENT_PARTS 4096

/* Whether a voxel is known, and its distance in voxels. */
VXD_HD int vxd_refine_known(const struct vxd_refine_set_call *call, size_t row, float *d)
{
    float weight = vxd_volume_weight(&call->volume, row);

    *d = vxd_volume_distance(&call->volume, row) * call->unit;
    return weight > 0 && weight >= call->min_weight;
}

VXD_HD int vxd_refine_is_in_set(const struct vxd_refine_set_call *call, size_t row)
{
    float d;

    return vxd_refine_known(call, row, &d) && d < call->band && d > -call->band;
}

VXD_HD void vxd_refine_count_item(const struct vxd_refine_set_call *call, size_t b)
{
    uint32_t n_voxels = (uint32_t)vxd_volume_block_voxels(&call->volume);
    uint32_t n = 0;

    for (uint32_t v = 0; v < n_voxels; v++) {
        n += vxd_refine_is_in_set(call, vxd_voxel_row(&call->volume, call->entries[b], v))
                 ? 1
                 : 0;
    }
    call->counts[b] = n;
}

VXD_HD void vxd_refine_list_item(const struct vxd_refine_set_call *call, size_t b)
{
    const struct vxd_volume_view *volume = &call->volume;
    const int32_t *key = volume->keys + 3 * (size_t)call->entries[b];
    uint32_t n_voxels = (uint32_t)vxd_volume_block_voxels(volume);
    size_t at = call->counts[b];

    for (uint32_t v = 0; v < n_voxels; v++) {
        size_t row = vxd_voxel_row(volume, call->entries[b], v);

        if (vxd_refine_is_in_set(call, row)) {
            uint32_t mask = (uint32_t)volume->edge - 1;

            call->keys[3 * at] = key[0] * volume->edge + (int32_t)(v & mask);
            call->keys[3 * at + 1] =
                key[1] * volume->edge + (int32_t)(v >> volume->shift & mask);
            call->keys[3 * at + 2] =
                key[2] * volume->edge + (int32_t)(v >> (2 * volume->shift));
            call->rows[at] = (int64_t)row;
            at++;
        }
    }
}

/* The extent of the keys of one of VXD_REFINE_EXTENT_PARTS ranges of voxels. */
VXD_HD void vxd_refine_extent_item(const struct vxd_refine_view *view, int32_t *extents,
                                   size_t part)
{
    int32_t low[3] = {INT32_MAX, INT32_MAX, INT32_MAX};
    int32_t high[3] = {INT32_MIN, INT32_MIN, INT32_MIN};
    size_t n = (view->n + VXD_REFINE_EXTENT_PARTS - 1) / VXD_REFINE_EXTENT_PARTS;

    for (size_t i = part * n; i < (part + 1) * n && i < view->n; i++) {
        for (size_t k = 0; k < 3; k++) {
            int32_t key = view->keys[3 * i + k];

            low[k] = key < low[k] ? key : low[k];
            high[k] = key > high[k] ? key : high[k];
        }
    }
    for (size_t k = 0; k < 3; k++) {
        extents[6 * part + k] = low[k];
        extents[6 * part + 3 + k] = high[k];
    }
}

/* The row of a voxel anywhere in the volume, or -1. */
VXD_HD int64_t vxd_refine_find_row(const struct vxd_volume_view *volume,
                                   const int32_t key[3])
{
    int32_t entry =
        vxd_volume_find_block(volume, vxd_block_tag(vxd_block_of_voxel(volume, key[0]),
                                                    vxd_block_of_voxel(volume, key[1]),
                                                    vxd_block_of_voxel(volume, key[2])));

    return entry < 0
               ? -1
               : (int64_t)vxd_voxel_row(volume, entry,
                                        vxd_voxel_index(volume, key[0], key[1], key[2]));
}

/* The distance at first. A volume's is along the camera's axis, and so longer than that to the
 * surface by the length of its gradient, which equation 17 takes as 1. */
VXD_HD void vxd_refine_start_item(const struct vxd_refine_view *view,
                                  const struct vxd_refine_set_call *call, size_t i)
{
    float squares = 0;
    float length;
    float d;

    (void)vxd_refine_known(call, (size_t)call->rows_read[i], &d);
    for (int axis = 0; axis < 3; axis++) {
        int32_t key[3] = {view->keys[3 * i], view->keys[3 * i + 1],
                          view->keys[3 * i + 2]};
        float ends[2] = {d, d};
        int n = 0;

        for (int side = 0; side < 2; side++) {
            int64_t row;
            float other;

            key[axis] += side == 0 ? -1 : 2;
            row = vxd_refine_find_row(&call->volume, key);
            if (row >= 0 && vxd_refine_known(call, (size_t)row, &other)) {
                ends[side] = other;
                n++;
            }
        }
        if (n > 0) {
            float slope = (ends[1] - ends[0]) / (float)n;

            squares += slope * slope;
        }
    }
    length = sqrtf(squares);
    length = length < 0.5f ? 1.0f : length > 3.0f ? 3.0f : length;
    view->state[i] = (vxd_refine_real)(d / length);
    view->start[i] = view->state[i];
}

VXD_HD void vxd_refine_ring_item(const struct vxd_refine_view *view, uint8_t *ring,
                                 size_t i)
{
    int has_all = 1;

    for (int k = 0; k < 6; k++) {
        has_all = has_all && view->near6[6 * i + (size_t)k] >= 0;
    }
    ring[i] = (uint8_t)has_all;
}

/* Setup 8: the upper neighbours of voxels that have all six, and whether those have them too, which
 * `found` says of the keys that were asked for. */
VXD_HD void vxd_refine_ask_item(const struct vxd_refine_view *view, int32_t *asked,
                                size_t item)
{
    size_t i = item / 3;

    for (size_t k = 0; k < 3; k++) {
        asked[3 * item + k] = view->keys[3 * i + k] + (item % 3 == k ? 1 : 0);
    }
}

VXD_HD void vxd_refine_link_item(const struct vxd_refine_view *view, int32_t *links,
                                 const uint8_t *found, size_t item)
{
    size_t i = item / 3;

    links[item] = view->ring[i] != 0 && found[item] != 0
                      ? view->near6[6 * i + 2 * (item % 3) + 1]
                      : -1;
}

/* Keys of voxels that have all six neighbours: flags, which a scan makes places. */
VXD_HD void vxd_refine_flag_item(const struct vxd_refine_view *view, uint32_t *flags,
                                 size_t i)
{
    flags[i] = view->ring[i];
}

VXD_HD void vxd_refine_ring_key_item(const struct vxd_refine_view *view,
                                     const uint32_t *places, int32_t *keys, size_t i)
{
    for (size_t k = 0; view->ring[i] != 0 && k < 3; k++) {
        keys[3 * (size_t)places[i] + k] = view->keys[3 * i + k];
    }
}

/* ---- Images ---- */

struct vxd_refine_image_call {
    struct vxd_camera_form camera; /* of the image as it came */
    const uint8_t *from;
    int factor; /* pixels of an edge that are averaged */
    int width;  /* of the result */
    int height;
    float *grey;
    uint8_t *rgb8;
};

VXD_HD float vxd_refine_pixel(const struct vxd_refine_image_call *call, float u, float v,
                              int c)
{
    int width = call->camera.width;
    int height = call->camera.height;
    const uint8_t *at;
    float most_u = (float)(width - 1);
    float most_v = (float)(height - 1);
    float top;
    float bottom;
    int x;
    int y;

    u = u > 0 ? (u < most_u ? u : most_u) : 0;
    v = v > 0 ? (v < most_v ? v : most_v) : 0;
    x = (int)u < width - 2 ? (int)u : width - 2;
    y = (int)v < height - 2 ? (int)v : height - 2;
    u -= (float)x;
    v -= (float)y;
    at = call->from + 3 * ((size_t)y * (size_t)width + (size_t)x) + c;
    top = (float)at[0] + ((float)at[3] - (float)at[0]) * u;
    at += 3 * (size_t)width;
    bottom = (float)at[0] + ((float)at[3] - (float)at[0]) * u;
    return top + (bottom - top) * v;
}

/* A pixel of a keyframe without distortion, averaged over factor^2 pixels of the camera's. */
VXD_HD void vxd_refine_image_item(const struct vxd_refine_image_call *call, size_t item)
{
    const struct vxd_camera_form *camera = &call->camera;
    int u = (int)(item % (size_t)call->width) * call->factor;
    int v = (int)(item / (size_t)call->width) * call->factor;
    float sums[3] = {0, 0, 0};

    for (int dv = 0; dv < call->factor; dv++) {
        for (int du = 0; du < call->factor; du++) {
            float x = (float)(u + du);
            float y = (float)(v + dv);

            if (camera->is_distorted) {
                float along_x = (x - camera->cx) / camera->fx;
                float along_y = (y - camera->cy) / camera->fy;

                vxd_camera_distort(camera, along_x, along_y, &along_x, &along_y);
                x = along_x * camera->fx + camera->cx;
                y = along_y * camera->fy + camera->cy;
            }
            for (int c = 0; c < 3; c++) {
                sums[c] += vxd_refine_pixel(call, x, y, c);
            }
        }
    }
    for (int c = 0; c < 3; c++) {
        sums[c] /= (float)(call->factor * call->factor);
        call->rgb8[3 * item + (size_t)c] = (uint8_t)(sums[c] + 0.5f);
    }
    call->grey[item] = (0.299f * sums[0] + 0.587f * sums[1] + 0.114f * sums[2]) / 255.0f;
}

/* ---- Visibility ---- */

struct vxd_refine_see_call {
    size_t keyframe;
    const float *depth; /* of a ray cast from the keyframe, metres; 0 = nothing */
    int width;
    int height;
    float scale; /* pixels of the cast a pixel of the keyframe's image */
    float voxel_size;
    float tolerance;        /* voxels */
    vxd_refine_real eye[3]; /* where the camera is */
};

/* The weight of a voxel's view: the square of the cosine, where nothing is between. */
VXD_HD void vxd_refine_see_item(const struct vxd_refine_view *view,
                                const struct vxd_refine_see_call *call, size_t i)
{
    const struct vxd_refine_eye *eye = &view->eyes[call->keyframe];
    const struct vxd_refine_node *node = &view->nodes[i];
    uint8_t *out = &view->views[call->keyframe * view->n + i];
    vxd_refine_real x[3];
    vxd_refine_real p[3];
    float along = 0;
    float squares = 0;
    float u;
    float v;
    float z;

    *out = 0;
    if (!(node->inverse > 0)) {
        return;
    }
    vxd_refine_point(view, i, x);
    vxd_refine_to_camera(eye, x, p);
    for (int k = 0; k < 3; k++) {
        float ray = (float)(call->eye[k] - x[k]);

        along += ray * (float)node->normal[k];
        squares += ray * ray;
    }
    if (!(p[2] > 1) || !(along > VXD_REFINE_MIN_COSINE * sqrtf(squares))) {
        return;
    }
    u = (float)(eye->fx * (p[0] / p[2]) + eye->cx);
    v = (float)(eye->fy * (p[1] / p[2]) + eye->cy);
    if (!(u >= VXD_REFINE_RIM && v >= VXD_REFINE_RIM &&
          u <= (float)(eye->width - 1) - VXD_REFINE_RIM &&
          v <= (float)(eye->height - 1) - VXD_REFINE_RIM)) {
        return;
    }
    z = (float)p[2] * call->voxel_size;
    for (int dv = -1; dv <= 1; dv++) {
        for (int du = -1; du <= 1; du++) {
            int cu = (int)((u + 0.5f) * call->scale) + du;
            int cv = (int)((v + 0.5f) * call->scale) + dv;
            float found;

            if (cu < 0 || cv < 0 || cu >= call->width || cv >= call->height) {
                continue;
            }
            found = call->depth[(size_t)cv * (size_t)call->width + (size_t)cu];
            if ((found > 0 && found < z - call->tolerance * call->voxel_size) ||
                (du == 0 && dv == 0 &&
                 !(found > 0 && found < z + call->tolerance * call->voxel_size))) {
                return; /* something is before it, or it is no surface that is seen */
            }
        }
    }
    *out = (uint8_t)(255.0f * (along * along / squares) + 0.5f);
}

/* The mean colour over the keyframes, and the mean intensity; -1 where none sees it. */
VXD_HD void vxd_refine_mean_item(const struct vxd_refine_view *view, size_t i)
{
    vxd_refine_real sums[4] = {0, 0, 0, 0};
    vxd_refine_real weights = 0;

    for (size_t j = 0; j < view->n_keyframes; j++) {
        const struct vxd_refine_eye *eye = &view->eyes[j];
        vxd_refine_real weight = (vxd_refine_real)view->views[j * view->n + i];
        vxd_refine_real x[3];
        vxd_refine_real p[3];
        vxd_refine_real by_x[3];
        vxd_refine_real intensity;
        const uint8_t *pixel;
        int u;
        int v;

        if (!(weight > 0)) {
            continue;
        }
        vxd_refine_point(view, i, x);
        if (!vxd_refine_look(eye, x, &intensity, by_x)) {
            continue;
        }
        vxd_refine_to_camera(eye, x, p);
        u = (int)(eye->fx * (p[0] / p[2]) + eye->cx + (vxd_refine_real)0.5);
        v = (int)(eye->fy * (p[1] / p[2]) + eye->cy + (vxd_refine_real)0.5);
        u = u > 0 ? (u < eye->width ? u : eye->width - 1) : 0;
        v = v > 0 ? (v < eye->height ? v : eye->height - 1) : 0;
        pixel = eye->rgb8 + 3 * ((size_t)v * (size_t)eye->width + (size_t)u);
        for (int c = 0; c < 3; c++) {
            sums[c] += weight * ((vxd_refine_real)pixel[c] / 255);
        }
        sums[3] += weight * intensity;
        weights += weight;
    }
    for (int c = 0; c < 4; c++) {
        view->mean[4 * i + (size_t)c] = weights > 0 ? sums[c] / weights : c < 3 ? 0 : -1;
    }
}

/* Weights of albedo differences; 0 where a colour is not known, and with it the albedo. */
VXD_HD void vxd_refine_chroma_item(const struct vxd_refine_view *view, size_t i)
{
    for (size_t axis = 0; axis < 3; axis++) {
        int32_t other = view->near6[6 * i + 2 * axis + 1];
        const vxd_refine_real *a = view->mean + 4 * i;
        const vxd_refine_real *b = other >= 0 ? view->mean + 4 * (size_t)other : a;

        view->chroma[3 * i + axis] =
            other < 0 || a[3] < 0 || b[3] < 0 ? 0 : vxd_refine_chroma_weight(a, b);
    }
}

/* ---- New volumes, and results in volumes ---- */

struct vxd_refine_make_call {
    struct vxd_volume_view from;
    struct vxd_volume_view to;
    const int32_t *entries; /* of `from`, or the new blocks */
    int doubling;           /* 0: the same voxels, 1: half of the edge */
    float rescale;          /* distances in units of the new truncation */
    uint32_t *flags;        /* of each child, then its place */
    uint64_t *codes;
};

/* The child's key. */
VXD_HD void vxd_refine_child_key(const struct vxd_refine_make_call *call, size_t item,
                                 int32_t key[3])
{
    size_t b = item >> (3 * call->doubling);
    int child = (int)(item & ((1U << (3 * call->doubling)) - 1));

    for (int k = 0; k < 3; k++) {
        key[k] = call->from.keys[3 * (size_t)call->entries[b] + (size_t)k];
        if (call->doubling) {
            key[k] = 2 * key[k] + (child >> (2 - k) & 1);
        }
    }
}

/* Whether the child has a voxel that is known within the new truncation. */
VXD_HD void vxd_refine_child_item(const struct vxd_refine_make_call *call, size_t item)
{
    const struct vxd_volume_view *from = &call->from;
    int32_t key[3];
    int span = from->edge >> call->doubling;
    int has = 0;

    vxd_refine_child_key(call, item, key);
    for (int v = 0; v < span * span * span && !has; v++) {
        int x = (int)((uint32_t)key[0] * (uint32_t)span) + v % span;
        int y = (int)((uint32_t)key[1] * (uint32_t)span) + v / span % span;
        int z = (int)((uint32_t)key[2] * (uint32_t)span) + v / span / span;
        size_t row = vxd_voxel_row(from, call->entries[item >> (3 * call->doubling)],
                                   vxd_voxel_index(from, x, y, z));
        float d = vxd_volume_distance(from, row) * call->rescale;

        has = vxd_volume_weight(from, row) > 0 && d < 1.5f && d > -1.5f;
    }
    call->flags[item] = has || (!call->doubling) ? 1 : 0;
}

VXD_HD void vxd_refine_code_item(const struct vxd_refine_make_call *call, size_t item)
{
    if (call->flags[item + 1] != call->flags[item]) {
        int32_t key[3];

        vxd_refine_child_key(call, item, key);
        call->codes[call->flags[item]] =
            vxd_block_morton(vxd_block_tag(key[0], key[1], key[2]));
    }
}

VXD_HD void vxd_refine_put_voxel(const struct vxd_volume_view *to, size_t row, float d,
                                 float weight)
{
    if (to->is_compact != 0) {
        ((uint16_t *)to->distances)[row] = vxd_half_of_float(d);
        ((uint8_t *)to->weights)[row] = (uint8_t)(weight + 0.5f);
    } else {
        ((float *)to->distances)[row] = d;
        ((float *)to->weights)[row] = weight;
    }
}

/* Four numbers of a colour as the nearest voxel has them. */
VXD_HD void vxd_refine_copy4(uint16_t *to, size_t to_row, const uint16_t *from,
                             size_t from_row)
{
    for (size_t c = 0; to != NULL && c < 4; c++) {
        to[4 * to_row + c] = from != NULL ? from[4 * from_row + c] : (uint16_t)0;
    }
}

/* A voxel of a new block: trilinear where all eight voxels around it are known, else the value of
 * the voxel that it lies in. */
VXD_HD void vxd_refine_fill_item(const struct vxd_refine_make_call *call, size_t item)
{
    const struct vxd_volume_view *from = &call->from;
    const struct vxd_volume_view *to = &call->to;
    size_t n_voxels = (size_t)vxd_volume_block_voxels(to);
    int32_t entry = call->entries[item / n_voxels];
    uint32_t v = (uint32_t)(item % n_voxels);
    uint32_t mask = (uint32_t)to->edge - 1;
    size_t row = vxd_voxel_row(to, entry, v);
    int32_t key[3];
    int32_t home[3];
    int64_t at;
    float d;
    float weight;
    float sum = 0;
    float mean[3] = {0, 0, 0};
    float mean_weight = 0;
    int n_known = 0;

    for (int k = 0; k < 3; k++) {
        key[k] = (int32_t)((uint32_t)to->keys[3 * (size_t)entry + (size_t)k] *
                               (uint32_t)to->edge +
                           (v >> (k * to->shift) & mask));
        home[k] = key[k] >> call->doubling;
    }
    at = vxd_refine_find_row(from, home);
    if (at < 0 || !(vxd_volume_weight(from, (size_t)at) > 0)) {
        return;
    }
    d = vxd_volume_distance(from, (size_t)at);
    weight = vxd_volume_weight(from, (size_t)at);
    vxd_refine_copy4(to->colours, row, from->colours, (size_t)at);
    vxd_refine_copy4(to->labels, row, from->labels, (size_t)at);
    vxd_refine_copy4(to->albedo, row, from->albedo, (size_t)at);
    for (int c = 0; call->doubling && c < 8; c++) {
        float share = 1;
        int32_t other[3];
        int64_t other_row;

        for (int k = 0; k < 3; k++) { /* centres of halves are a quarter off */
            int is_far = c >> k & 1;

            other[k] = home[k] + (is_far ? ((key[k] & 1) != 0 ? 1 : -1) : 0);
            share *= is_far ? 0.25f : 0.75f;
        }
        other_row = vxd_refine_find_row(from, other);
        if (other_row >= 0 && vxd_volume_weight(from, (size_t)other_row) > 0) {
            n_known++;
            sum += share * vxd_volume_distance(from, (size_t)other_row);
            if (from->albedo != NULL && from->albedo[4 * (size_t)other_row + 3] > 0) {
                mean_weight += share;
                for (int k = 0; k < 3; k++) {
                    mean[k] +=
                        share * (float)from->albedo[4 * (size_t)other_row + (size_t)k];
                }
            }
        }
    }
    d = (n_known == 8 ? sum : d) * call->rescale;
    if (to->albedo != NULL && mean_weight > 0) {
        for (int k = 0; k < 3; k++) {
            to->albedo[4 * row + (size_t)k] = (uint16_t)(mean[k] / mean_weight + 0.5f);
        }
        to->albedo[4 * row + 3] = 1;
    }
    if (d >= -1) { /* farther behind a surface nothing is observed */
        vxd_refine_put_voxel(to, row, d < 1 ? d : 1, weight);
    }
}

/* Writes a voxel's distance, and its albedo: the mean colour at the albedo's brightness. */
VXD_HD void vxd_refine_apply_item(const struct vxd_refine_view *view,
                                  const struct vxd_refine_set_call *call, size_t i)
{
    const struct vxd_volume_view *to = &call->volume;
    size_t row = (size_t)call->rows_read[i];
    const vxd_refine_real *mean = view->mean + 4 * i;
    float d = (float)view->state[i] / call->unit;

    if (!view->keeps_distances) {
        d = d < -1 ? -1 : d > 1 ? 1 : d;
        vxd_refine_put_voxel(to, row, d, vxd_volume_weight(to, row));
    }
    if (to->albedo != NULL && mean[3] > (vxd_refine_real)1e-3) {
        for (int k = 0; k < 3; k++) {
            float value =
                65280.0f * (float)(mean[k] / mean[3] * view->state[view->n + i]);

            to->albedo[4 * row + (size_t)k] =
                (uint16_t)(value > 0 ? (value < 65535 ? value + 0.5f : 65535) : 0);
        }
        to->albedo[4 * row + 3] = 1;
    }
}

/* The albedo that a volume has already, of a coarser level. */
VXD_HD void vxd_refine_read_albedo_item(const struct vxd_refine_view *view,
                                        const struct vxd_refine_set_call *call,
                                        vxd_refine_real unseen, size_t i)
{
    const uint16_t *from = call->volume.albedo + 4 * (size_t)call->rows_read[i];

    view->state[view->n + i] = from[3] > 0 ? (vxd_refine_real)(0.299f * (float)from[0] +
                                                               0.587f * (float)from[1] +
                                                               0.114f * (float)from[2]) /
                                                 65280
                                           : unseen;
    if (view->state[view->n + i] < unseen / 100) {
        view->state[view->n + i] = unseen / 100;
    }
}

/* Stamps the blocks that have voxels of the set, or all where no counts are given. */
VXD_HD void vxd_refine_stamp_item(const struct vxd_refine_set_call *call, size_t b)
{
    if (call->counts == NULL || call->counts[b] != call->counts[b + 1]) {
        call->volume.stamps[call->entries[b]] = call->version;
    }
}

#endif
