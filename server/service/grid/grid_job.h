// SPDX-License-Identifier: Apache-2.0
/* What grids and frontiers share: the box of a request, and the files that a grid becomes. Private
 * to this folder; service.h declares the methods. */
#ifndef VXD_SERVER_SERVICE_GRID_GRID_JOB_H
#define VXD_SERVER_SERVICE_GRID_GRID_JOB_H

#include "gpu/grid/grid.h"
#include "gpu/svdag/diff/diff.h"
#include "server/service/scene/scene.h"
#include "voxeld/v1/grid.pb-c.h"

/* --- grid_box.c: which columns, and which heights ------------------------------------------ */

/* A request's box and band, found in one stage, or in two where the scene must be looked at. */
struct vxd_grid_area {
    struct vxd_grid_box box;
    struct vxd_svdag_export coarse; /* all of the band, in large cells */
    struct vxd_scene_output states; /* of those */
    bool is_looking;                /* they are on their way */
    bool is_known;                  /* box is the answer */
};

/* What says it in a request. */
struct vxd_grid_place {
    const Voxeld__V1__SceneBox *box;
    bool in_voxels;
    double z_low;
    double z_high;
    bool is_layer; /* the layer of voxels that holds z_low */
};

/* errors  INVALID_ARGUMENT  numbers that are not finite; a box without a volume */
enum vxd_status vxd_grid_check_place(const struct vxd_grid_place *place,
                                     struct vxd_err *err);

/* Returns the cells of a checked place for the admission of its request: those of a box in voxels,
 * columns or, in space, voxels; `most`, if they are more or a box in metres or none leaves them to
 * the scene. */
uint64_t vxd_grid_count_most(const struct vxd_grid_place *place, bool in_space,
                             uint64_t most);

/* Finds the box in submit, once the scene is open. Where area->is_known is false afterwards the
 * stage ends here, and the next one calls this again.
 * errors  INVALID_ARGUMENT     no band; more cells than an engine takes
 *         FAILED_PRECONDITION  there is no box, and nothing is known in the band
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_grid_find_area(struct vxd_request *request, struct vxd_queue *queue,
                                   const struct vxd_grid_place *place,
                                   struct vxd_grid_area *area, struct vxd_err *err);

/* Returns about how many columns of a box a stage takes: fewer the more of the scene's height they
 * go through. At least 1. */
uint32_t vxd_grid_count_columns(const struct vxd_scene_spec *spec,
                                const struct vxd_grid_box *box);

/* --- grid_file.c: cells as files and messages ---------------------------------------------- */

/* A grid as its reply has it: costs or, for the other kinds, states of columns. */
struct vxd_grid_picture {
    const uint8_t *cells; /* n_y x n_x, the low y first */
    uint32_t n_x;
    uint32_t n_y;
    bool is_costs;
    enum vxd_grid_unknown unknown; /* of states */
    double origin_m[3];
    double cell_m;
    const char *frame_id;
    int64_t stamp_ns;
    const char *image; /* of YAML */
};

/* nav_msgs/OccupancyGrid's value of each value of a cell: 0 to 100, or -1. */
void vxd_grid_occupancy_table(const struct vxd_grid_picture *picture, int8_t table[256]);

/* Makes the file or message of a format other than TENSOR, in the request's memory.
 * errors  RESOURCE_EXHAUSTED, UNIMPLEMENTED (a build without PNG) */
enum vxd_status vxd_grid_write(struct vxd_request *request, Voxeld__V1__GridFormat format,
                               const struct vxd_grid_picture *picture, uint8_t **bytes,
                               size_t *n_bytes, struct vxd_err *err);

#endif
