// SPDX-License-Identifier: Apache-2.0
/* Scenes for tests of gpu/field, and their distance fields by a loop over all pairs of voxels in
 * reach. It uses nothing of the engine's field headers but the contract. */
#ifndef VXD_TESTS_SUPPORT_FIELD_FIELD_MODEL_H
#define VXD_TESTS_SUPPORT_FIELD_FIELD_MODEL_H

#include "gpu/field/field.h"
#include "tests/support/gpu/gpu_helpers.h"
#include "tests/support/svdag/svdag_scene.h"

/* Codes of a scene's voxels (svdag_scene.h), side^3, row-major by x, malloc'ed. `kind`:
 * 0 empty, 1 full, 2 one voxel, 3 scattered voxels in free and unknown space, 4 walls and rooms,
 * 5 mostly obstacles. */
enum {
    FIELD_MODEL_KINDS = 6
};
uint32_t *field_model_codes(const struct vxd_svdag_format *format, int kind,
                            uint64_t seed);

/* What a field is to hold, of the box of a spec; arrays malloc'ed. */
struct field_model {
    struct vxd_field_spec spec;
    int32_t size[3];
    size_t n;
    uint8_t *obstacles;
    uint8_t *unknown; /* and ignored */
    int32_t *squares;
    int32_t *nearest;
};

void field_model_make(const struct vxd_svdag_format *format, const uint32_t *codes,
                      const struct vxd_field_spec *spec, struct field_model *out);
void field_model_free(struct field_model *model);

/* Row-major index of a voxel of the scene in the box. */
size_t field_model_index(const struct field_model *model, int x, int y, int z);

/* Builds one or two scenes of codes in one store. */
void field_model_scene(struct gpu_env *env, const struct vxd_svdag_format *format,
                       const uint32_t *codes, const uint32_t *other,
                       struct gpu_svdag_scene *out);

/* Updates a field as a whole; failures end the program. */
void field_model_update(struct gpu_env *env, struct vxd_field *field,
                        const struct gpu_svdag_scene *scene, uint32_t root);

/* Checks all arrays of a field; returns how many voxels are not as the model says. */
size_t field_model_compare(struct gpu_env *env, const struct vxd_field *field,
                           const struct field_model *model);

#endif
