// SPDX-License-Identifier: Apache-2.0
/* What the files of scene_render share. A request goes through these steps, in stages: it finds
 * what is occupied where the message leaves the camera to us, makes a plan, draws part by part,
 * copies the pixels, puts volumes into them one by one, each cast on the write lane, and, for PNG,
 * encodes them band by band; finish makes the reply. */
#ifndef VXD_SERVER_SERVICE_RENDER_SCENE_RENDER_H
#define VXD_SERVER_SERVICE_RENDER_SCENE_RENDER_H

#include "client/files/image/files_image.h"
#include "gpu/render/render.h"
#include "gpu/svdag/diff/diff.h"
#include "server/service/scene/scene.h"
#include "server/service/volume/service_volume.h"
#include "voxeld/v1/render.pb-c.h"

enum vxd_render_step {
    VXD_RENDER_OPEN,
    VXD_RENDER_BOUND, /* cells of the box were exported */
    VXD_RENDER_DRAW,
    VXD_RENDER_MERGE,   /* several scenes */
    VXD_RENDER_CAST,    /* rows of a volume, on the write lane */
    VXD_RENDER_COMPOSE, /* bands of it become part of the picture */
    VXD_RENDER_ENCODE,  /* bands of a PNG */
    VXD_RENDER_DONE
};

enum {
    VXD_RENDER_MOST_OTHERS = 7, /* scenes beside the first one */
    VXD_RENDER_MOST_VOLUMES = 7,
    /* Of one volume, which is forgotten before the next one is cast: depths, places, normals, colours
     * and labels here and there. */
    VXD_RENDER_VOLUME_BYTES = 2 * 36
};

struct vxd_render_other; /* render_others.c */

/* What is drawn of one scene. */
struct vxd_render_layer {
    struct vxd_render_plan *plan;
    struct vxd_scene_output pixels;
    struct vxd_render_plan *depth_plan; /* NULL: no depths, or the pixels are */
    struct vxd_scene_output depths;
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

    struct vxd_render_layer layer;
    struct vxd_render_other *others; /* n_others further scenes */
    size_t n_others;
    size_t n_layers_drawn;
    struct vxd_named_volume **volumes; /* n_volumes; held */
    size_t n_volumes;
    size_t n_composed;             /* volumes that are in the picture */
    struct vxd_volume_sight view;  /* of the next one */
    struct vxd_render_plan *light; /* of it; NULL: it is not open */
    uint32_t n_rows;               /* of it that are in the picture */
    struct vxd_volume_commit read;
    uint64_t n_rays;
    uint32_t x, y; /* the next part's corner */
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

/* Sets the picture's clip box to the voxels of a scene in a message's; NULL: none. False: there are
 * none. */
bool vxd_render_find_clip(const struct vxd_scene_spec *spec,
                          const Voxeld__V1__RenderBox *box,
                          struct vxd_render_picture *picture);

/* --- render_others.c --------------------------------------------------------------------- */

/* errors  INVALID_ARGUMENT */
enum vxd_status vxd_render_check_others(const Voxeld__V1__SceneRenderRequest *input,
                                        struct vxd_err *err);
/* Opens the other scenes and makes their plans, once that of the first one is made.
 * errors  NOT_FOUND, INVALID_ARGUMENT (the camera is too far from one), RESOURCE_EXHAUSTED */
enum vxd_status vxd_render_open_others(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err);
/* The layer of scene i, 0 = the first one, and the version that is drawn. */
struct vxd_render_layer *vxd_render_layer_of(struct vxd_render_job *job, size_t i,
                                             const struct vxd_scene_state **state);
/* Puts the nearest scene of each pixel into the first one's pixels, when all were fetched. */
void vxd_render_merge_others(struct vxd_render_job *job);
void vxd_render_release_others(struct vxd_request *request, struct vxd_queue *queue);
/* The depths of a layer whose pixels were fetched. */
float *vxd_render_depths_of(const struct vxd_render_layer *layer);

/* --- render_volumes.c -------------------------------------------------------------------- */

/* errors  INVALID_ARGUMENT */
enum vxd_status vxd_render_check_volumes(const Voxeld__V1__SceneRenderRequest *input,
                                         const struct vxd_render_picture *picture,
                                         struct vxd_err *err);
/* Finds and holds the volumes.
 * errors  NOT_FOUND, FAILED_PRECONDITION (without labels), RESOURCE_EXHAUSTED */
enum vxd_status vxd_render_hold_volumes(struct vxd_request *request, struct vxd_err *err);
/* Goes on to the next volume's casting, or to what follows where there is none; the first time, of
 * normals, brings those of faces to their scale. */
void vxd_render_next_volume(struct vxd_request *request, enum vxd_render_step then);
/* A stage of VXD_RENDER_CAST and of VXD_RENDER_COMPOSE; *is_done: the volume is in the picture.
 * errors  UNAVAILABLE, ABORTED, INVALID_ARGUMENT, RESOURCE_EXHAUSTED */
enum vxd_status vxd_render_cast_volume(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err);
bool vxd_render_compose_volume(struct vxd_request *request, struct vxd_queue *queue);
void vxd_render_release_volumes(struct vxd_request *request, struct vxd_queue *queue);

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
