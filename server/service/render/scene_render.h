// SPDX-License-Identifier: Apache-2.0
/* What the files of scene_render share. A request goes through these steps, in stages: it finds
 * what is occupied where the message leaves the camera to us, makes a plan, draws part by part,
 * copies the pixels and, for PNG, encodes them band by band; finish makes the reply. */
#ifndef VXD_SERVER_SERVICE_RENDER_SCENE_RENDER_H
#define VXD_SERVER_SERVICE_RENDER_SCENE_RENDER_H

#include "client/files/image/files_image.h"
#include "gpu/render/render.h"
#include "gpu/svdag/diff/diff.h"
#include "server/service/scene/scene.h"
#include "voxeld/v1/render.pb-c.h"

enum vxd_render_step {
    VXD_RENDER_OPEN,
    VXD_RENDER_BOUND, /* cells of the box were exported */
    VXD_RENDER_DRAW,
    VXD_RENDER_ENCODE, /* bands of a PNG */
    VXD_RENDER_DONE
};

struct vxd_render_job {
    struct vxd_scene_job base; /* first: request->state is both */
    enum vxd_render_step step;
    struct vxd_render_picture
        picture; /* what check read; completed when the scene is known */
    uint32_t *palette;

    /* What is occupied lies in this box, voxels; of the whole scene before it is known. */
    struct vxd_svdag_export box;
    struct vxd_scene_output cells;
    struct vxd_scene_output n_cells;
    bool is_empty;

    struct vxd_render_plan *plan;
    uint64_t n_rays;
    uint32_t x, y; /* the next part's corner */
    struct vxd_scene_output pixels;
    struct vxd_png_writer *png;
    void *band;         /* host: samples of its next rows */
    uint32_t n_encoded; /* rows */
    uint8_t *file;      /* PNG or JPEG; malloc'ed */
    size_t n_file;
};

/* --- render_check.c ---------------------------------------------------------------------- */

/* Whether the camera or the colours depend on what is occupied. */
bool vxd_render_needs_bounds(const Voxeld__V1__SceneRenderRequest *input);

/* --- render_camera.c --------------------------------------------------------------------- */

/* The box that is exported first, and the next one after `cells` came; false: it is small enough
 * around what is occupied. */
void vxd_render_begin_bounds(struct vxd_render_job *job);
bool vxd_render_narrow_bounds(struct vxd_render_job *job);

/* Completes the picture: the camera and lengths in voxels, with what the message left to us. */
void vxd_render_set_camera(struct vxd_render_job *job,
                           const Voxeld__V1__SceneRenderRequest *input);

/* --- render_materials.c ------------------------------------------------------------------ */

/* Checks textures, regions and the clip box, as far as the message alone says.
 * errors  INVALID_ARGUMENT */
enum vxd_status vxd_render_check_materials(const Voxeld__V1__SceneRenderRequest *input,
                                           struct vxd_err *err);

/* Completes the picture with them, once the scene is open. A clip box without voxels makes it one of
 * an empty scene.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_render_set_materials(struct vxd_request *request,
                                         struct vxd_err *err);

/* For AGE: pins the open version together with those before it, whose roots become the picture's.
 * errors  NOT_FOUND, RESOURCE_EXHAUSTED */
enum vxd_status vxd_render_open_versions(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err);

/* --- render_reply.c ---------------------------------------------------------------------- */

/* Encodes the next rows of a PNG, about 20 ms of a core; the last ones make the file, and the step
 * DONE.
 * errors  RESOURCE_EXHAUSTED, of the codec */
enum vxd_status vxd_render_encode_band(struct vxd_request *request, struct vxd_err *err);

/* Makes the reply of drawn pixels.
 * errors  RESOURCE_EXHAUSTED, of the codecs */
enum vxd_status vxd_render_new_reply(struct vxd_request *request,
                                     Voxeld__V1__SceneRenderResponse **out,
                                     struct vxd_err *err);

#endif
