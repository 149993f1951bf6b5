// SPDX-License-Identifier: Apache-2.0
/* What the steps of an integrated scan share: which material a point takes, by a rule of its
 * fields or by a network's label. */
#ifndef VXD_SERVER_SERVICE_INTEGRATE_INTEGRATE_H
#define VXD_SERVER_SERVICE_INTEGRATE_INTEGRATE_H

#include "server/model/model.h"
#include "server/registry/scenes/scenes.h"
#include "server/request/request.h"
#include "voxeld/v1/scene.pb-c.h"

/* --- scene_rule.c: materials of points --------------------------------------------------- */

enum {
    VXD_SCENE_RULE_CHANNELS = 3
};

/* What a rule reads: one to three columns of the decoded features. */
struct vxd_scene_rule {
    const Voxeld__V1__SceneMaterialRule *message; /* NULL = CONSTANT, material 0 */
    int n_channels;
};

/* Makes the cloud that the engine reads: x, y, z, and the fields of the rule under names
 * of ours; the data stays where it is. The cloud was checked.
 * errors  INVALID_ARGUMENT    "rule.kind", "rule.field"; a field is missing
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_rule_bind(struct vxd_request *request,
                                    const Voxeld__V1__SceneMaterialRule *message,
                                    const Voxeld__V1__Cloud *cloud,
                                    struct vxd_scene_rule *rule, Voxeld__V1__Cloud **out,
                                    struct vxd_err *err);
/* Names of the columns. */
extern const char *const vxd_scene_rule_channels[VXD_SCENE_RULE_CHANNELS];

/* Whether the scene has what the rule needs.
 * errors  INVALID_ARGUMENT, FAILED_PRECONDITION  "rule.material", "rule.kind" */
enum vxd_status vxd_scene_rule_check(const struct vxd_scene_rule *rule,
                                     const struct vxd_scene *scene, struct vxd_err *err);

/* Computes the materials of n points from their rows of features; those of HEIGHT from
 * their positions, n x 3 voxels from base_z.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_rule_apply(const struct vxd_scene_rule *rule,
                                     const struct vxd_scene_spec *spec, const float *rows,
                                     double base_z, size_t n, uint16_t *out,
                                     struct vxd_err *err);

/* --- scene_labels.c, scene_network.c: materials of a network's labels ---------------------- */

enum {
    VXD_SCENE_MAX_LABELS = 4096, /* of a network, and entries of a request */
    VXD_SCENE_NO_MATERIAL = -1
};

struct vxd_scene_label {
    int32_t label;
    int32_t material;       /* or VXD_SCENE_NO_MATERIAL */
    const char *label_name; /* "" = the numbers are given */
    const char *material_name;
};

/* What a request says about the network, and later the network's answer. */
struct vxd_scene_network {
    const Voxeld__V1__SceneIntegrateRequest *message; /* NULL: without a network */
    struct vxd_scene_label *entries;                  /* of label_to_material */
    size_t n_entries;
    /* Known once the network is. */
    int32_t n_labels;
    int32_t fill_label; /* of points without one */
    /* Once it has run. */
    struct vxd_buffer labels; /* host, int32 of every point */
    char *digest;
    Voxeld__V1__NetworkTimings *timings;
};

/* A scan's points in device memory, split into those with a material of their own and
 * those that hit nothing; both in the cloud's order, source by source. */
struct vxd_scene_split {
    const float *positions;
    const float *origins; /* where their rays start; NULL: all at one place */
    const uint16_t *values;
    const float *dropped;
    const float *dropped_origins;
    size_t *n_kept; /* of each source; NULL: all */
};

/* Which points are kept, and which dropped, in the cloud's order; values of the kept ones. */
struct vxd_scene_rows {
    int32_t *kept;
    uint16_t *values; /* NULL: all have one material */
    int32_t *dropped;
    size_t n_kept;
    size_t n_dropped;
};

/* Copies positions and origins of a split, which has all n_points of them, as the rows say.
 * Memory is the request's. errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_split_rows(struct vxd_request *request, struct vxd_queue *queue,
                                     size_t n_points, const struct vxd_scene_rows *rows,
                                     struct vxd_scene_split *split, struct vxd_err *err);

/* Reads label_to_material as far as it can be without network and scene.
 * errors  INVALID_ARGUMENT  "label_to_material[2].material", ...; RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_labels_check(struct vxd_request *request,
                                       struct vxd_scene_network *network,
                                       struct vxd_err *err);
/* Finds its labels among the network's: entries get numbers.
 * errors  INVALID_ARGUMENT  no such label, one twice, too many labels */
enum vxd_status vxd_scene_labels_bind(struct vxd_scene_network *network,
                                      const struct vxd_model_output *output,
                                      struct vxd_err *err);
/* Whether a scene has the materials, before the network runs. Quick: with very many names it looks at
 * none, and the table finds what is wrong.
 * errors  INVALID_ARGUMENT  as vxd_scene_labels_table */
enum vxd_status vxd_scene_labels_check_materials(const struct vxd_scene_network *network,
                                                 const struct vxd_scene_spec *spec,
                                                 struct vxd_err *err);
/* Makes a table of the materials of labels 0 to n_labels - 1 and, behind them, of
 * fill_label, in the request's memory.
 * errors  INVALID_ARGUMENT  the scene has no such material, or fewer than labels
 *         RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_labels_table(struct vxd_request *request,
                                       const struct vxd_scene_network *network,
                                       const struct vxd_scene_spec *spec,
                                       const int32_t **out, struct vxd_err *err);

/* The part of a request that names a network; message NULL where it names none.
 * errors  INVALID_ARGUMENT, RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_network_check(struct vxd_request *request,
                                        const Voxeld__V1__SceneIntegrateRequest *message,
                                        struct vxd_scene_network *network,
                                        struct vxd_err *err);
/* Sends the cloud through the network, as the request's prerequisite (request_prerequisite.h).
 * errors  as Infer's; INVALID_ARGUMENT of labels; as vxd_request_submit_prerequisite's */
enum vxd_status vxd_scene_network_run(struct vxd_request *request,
                                      struct vxd_scene_network *network,
                                      struct vxd_err *err);
/* Keeps Infer's reply.
 * errors  RESOURCE_EXHAUSTED  also where the network reports it
 *         FAILED_PRECONDITION  its activations overflow */
enum vxd_status vxd_scene_network_take(struct vxd_request *request,
                                       const ProtobufCMessage *answer, size_t n_points,
                                       struct vxd_scene_network *network,
                                       struct vxd_err *err);
/* Splits n_points, which come from sources of n_of_source points each, by their labels.
 * out->origins are all points' before. Memory is the request's. errors  as vxd_scene_labels_table */
enum vxd_status vxd_scene_network_split(struct vxd_request *request,
                                        struct vxd_queue *queue,
                                        const struct vxd_scene_network *network,
                                        const struct vxd_scene_spec *spec,
                                        const float *positions, size_t n_points,
                                        const size_t *n_of_source, size_t n_sources,
                                        struct vxd_scene_split *out, struct vxd_err *err);
void vxd_scene_network_free(struct vxd_request *request,
                            struct vxd_scene_network *network);

/* --- scene_filter.c: points that hit nothing ----------------------------------------------- */

/* A scan's points on the host. */
struct vxd_scene_filtering {
    const struct vxd_scene_spec *spec;
    const float *points; /* n x 3, voxels from base_voxel */
    size_t n;
    const double *base_voxel; /* from the scene's low corner */
    const double *sensor;     /* voxels from base_voxel */
};

/* errors  INVALID_ARGUMENT  "filter", "filter.ground_angle", ... */
enum vxd_status vxd_scene_filter_check(const Voxeld__V1__SceneIntegrateRequest *message,
                                       struct vxd_err *err);
/* Writes 1 for each point that the filter drops, else 0, and counts them.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_filter_points(struct vxd_request *request,
                                        const Voxeld__V1__SceneFilter *filter,
                                        const struct vxd_scene_filtering *in,
                                        uint8_t *dropped, uint64_t *n_ground,
                                        uint64_t *n_sparse, struct vxd_err *err);

/* scene_colour.c: finds the palette's nearest entries to n colours, r g b 0 to 255 each,
 * in CIELAB (D65); of equally near ones the first. Colours that are not finite take
 * `other`.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_nearest_colours(const struct vxd_scene_spec *spec,
                                          const float *colours, size_t n, uint16_t other,
                                          uint16_t *out, struct vxd_err *err);

/* --- scene_keep.c ------------------------------------------------------------------------- */

/* Describes n scans by their rays, where the journal of a durable scene is to get those: then
 * entry->scans are the first of `records`, in host memory; else it is as it was. Base, origin,
 * fills, value and has_values of each record are set. Waits.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_scene_keep_scans(struct vxd_request *request, struct vxd_queue *queue,
                                     const struct vxd_svdag_scan_result *scans,
                                     struct vxd_record_scan *records, size_t n,
                                     struct vxd_scene_entry *entry, struct vxd_err *err);

#endif
