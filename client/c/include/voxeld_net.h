// SPDX-License-Identifier: Apache-2.0
/* libvoxeld: sparse convolution networks. Part of voxeld.h, whose conventions hold here.
 *
 *   struct voxeld_infer_request request = {.network = "svtnet", .clouds = scan, .n_clouds = 1};
 *   struct voxeld_inference *place;
 *   if (voxeld_infer(client, &request, &place, &error) == VOXELD_OK) {
 *       if (place->items[0].code == VOXELD_OK) {
 *           const float *descriptor = place->outputs[0].values;
 *           ...
 *       }
 *       voxeld_inference_free(place);
 *   }
 *
 * Networks lie in the server's networks_dir; loading makes one ready for everybody. Names are
 * [a-z0-9][a-z0-9._-]{0,62}. */
#ifndef VOXELD_NET_H
#define VOXELD_NET_H

#include "voxeld.h"

#ifdef __cplusplus
extern "C" {
#endif

enum voxeld_precision {
    VOXELD_PRECISION_UNSPECIFIED = 0, /* what the network's config recommends */
    VOXELD_FP32 = 1,
    VOXELD_TF32 = 2,
    VOXELD_FP16 = 3,
    VOXELD_BF16 = 4,
    VOXELD_PRECISION_AUTO = 5 /* fp16 on a GPU, fp32 on a CPU */
};

enum voxeld_output_kind {
    VOXELD_KIND_VOXELS = 1, /* a row a voxel of some layer, with coordinates */
    VOXELD_KIND_POINTS = 2, /* a row a point sent */
    VOXELD_KIND_DENSE = 3,  /* a bird's-eye view: items x channels x y x x */
    VOXELD_KIND_VECTOR = 4  /* a row an item */
};

/* Inference ----------------------------------------------------------------------------- */

struct voxeld_infer_request {
    const char *network;
    /* Clouds, one a batch item, 1 to 256, with their sweeps; all have the fields that
     * the network reads. A cloud without points is fine: its item's code says so. */
    const struct voxeld_cloud *clouds;
    size_t n_clouds;
    const char *const
        *outputs; /* names; "*" = all. None = the small ones: vectors, labels */
    size_t n_outputs;
    enum voxeld_dtype dtype; /* of values: FLOAT32 (0 as well) or FLOAT16 */
    const char
        *expect_digest; /* FAILED_PRECONDITION unless the network's digest begins with it;
                         * NULL: any */
    bool apply_pose; /* applies T_map_sensor, minus origin_m; else the sensor's frame */
    double origin_m[3];
    bool no_coords;
    struct voxeld_call call;
};

/* The outcome of one cloud. */
struct voxeld_infer_item {
    /* OK, or why its rows mean nothing (the rows exist all the same):
     * INVALID_ARGUMENT, no points; OUT_OF_RANGE, none within the network's range;
     * RESOURCE_EXHAUSTED, more voxels than the network allows. */
    enum voxeld_status code;
    const char *message;
    int64_t stamp_ns;
    const char *frame_id;
    uint64_t n_points; /* = used + the six below */
    uint64_t n_used;
    uint64_t n_non_finite;
    uint64_t n_out_of_range;
    uint64_t n_over_max_voxels;
    uint64_t n_over_max_points;
    uint64_t n_not_picked; /* dropped by the network's normalization */
    uint64_t n_voxels;
    size_t first_point; /* rows of points outputs: first_point .. + n_points - 1 */
};

/* One output: rows of all items, item by item. */
struct voxeld_infer_output {
    const char *name;
    enum voxeld_output_kind kind;
    enum voxeld_dtype dtype; /* of values */
    size_t shape[4];         /* of values; [0] is the rows */
    size_t n_axes;
    const void *values;
    const int32_t *labels; /* one a row, where values are their scores; else NULL */
    const int32_t *coords; /* VOXELS: rows x 4: item, x, y, z; else, or no_coords, NULL */
    const uint64_t
        *first_rows;   /* VOXELS: of each item, and the rows: n_items + 1; else NULL */
    int32_t stride[3]; /* cells of the network's input that one of these spans */
};

/* All pointers live until the struct is freed. */
struct voxeld_inference {
    const char *network;
    const char *digest; /* of config and weights, 64 hexadecimal digits */
    enum voxeld_precision precision;
    const struct voxeld_infer_item *items; /* one a cloud */
    size_t n_items;
    const struct voxeld_infer_output *outputs;
    size_t n_outputs;
    /* The low corner of input cell (x, y, z) is origin_m + low_m + (x, y, z) * size_m; all zero
     * where the network normalizes its points. */
    double size_m[3];
    double origin_m[3];
    double low_m[3];
    uint32_t n_run_items; /* clouds that shared the run */
    struct voxeld_network_timings timings;
    double engine_ms;
    double queue_ms;
    double total_ms;
    const char *request_id;
};

/* errors  NOT_FOUND            no such network is loaded
 *         FAILED_PRECONDITION  it has another digest
 *         INVALID_ARGUMENT     an unknown output, a cloud without a field; error.field
 *         RESOURCE_EXHAUSTED   larger than the server's memory or limits */
VOXELD_API enum voxeld_status voxeld_infer(struct voxeld_client *client,
                                           const struct voxeld_infer_request *request,
                                           struct voxeld_inference **out,
                                           struct voxeld_error *error);
VOXELD_API void voxeld_inference_free(struct voxeld_inference *inference);

/* error is NULL when done is not, which is the callback's to free; error lives until it returns. It
 * may start new calls and must not close the client. */
typedef void (*voxeld_inference_callback)(void *context, struct voxeld_inference *done,
                                          const struct voxeld_error *error);

/* Starts the same and returns at once, so that the next one goes out while the server works on this
 * one. When the result is OK, the callback is called exactly once, from voxeld_dispatch (or
 * voxeld_close); otherwise never. What *request points to is needed until then. */
VOXELD_API enum voxeld_status voxeld_infer_async(
    struct voxeld_client *client, const struct voxeld_infer_request *request,
    voxeld_inference_callback callback, void *context, struct voxeld_error *error);

/* Returns the output of that name, or NULL where there is none. */
VOXELD_API const struct voxeld_infer_output *
voxeld_inference_output(const struct voxeld_inference *inference, const char *name);

/* Networks ------------------------------------------------------------------------------ */

struct voxeld_network_feature {
    const char *name; /* of a cloud's field; "1": a constant */
    double scale;
    double bias;
};

struct voxeld_network_output {
    const char *name;
    enum voxeld_output_kind kind;
    bool argmax; /* a label and a score a row */
    uint32_t n_channels;
    int32_t stride[3];
    const char *const *labels; /* names of the channels */
    size_t n_labels;
    bool by_default; /* sent when a request names no outputs */
};

struct voxeld_network_layer {
    const char *name;
    const char *op;
    uint32_t n_in;
    uint32_t n_out;
    uint64_t n_parameters;
};

struct voxeld_network_info {
    const char *name;
    const char *digest;
    enum voxeld_precision precision;
    uint64_t n_parameters;
    uint64_t n_bytes; /* of device memory */
    uint32_t n_sets;  /* different coordinate sets, kernel maps */
    uint32_t n_maps;
    const struct voxeld_network_feature *features;
    size_t n_features;
    const struct voxeld_network_output *outputs;
    size_t n_outputs;
    double size_m[3];
    bool has_range;
    double range_low_m[3];
    double range_high_m[3];
    enum voxeld_rule rule;
    uint32_t max_points;
    uint32_t max_voxels;
    bool normalizes; /* coordinates are not metres */
    int64_t loaded_ns;
    uint64_t n_requests; /* answered */
    struct voxeld_network_timings last;
    const struct voxeld_network_layer *layers; /* from voxeld_network_get only */
    size_t n_layers;
};

/* All pointers live until the struct is freed. */
struct voxeld_networks {
    const struct voxeld_network_info *networks; /* by name; of load and get: the one */
    size_t n_networks;
    bool existed;                 /* load: this same network was loaded already, nothing
                                   * was done */
    bool was_replaced;            /* load: another network of that name was loaded */
    uint64_t n_bytes;             /* list: of all weights ... */
    uint64_t limit_bytes;         /* ... and their limit */
    const char *const *available; /* list: names in the server's networks_dir */
    size_t n_available;
    bool replayed; /* the outcome of an earlier call with this sequence */
};

/* Loads a network, or loads it again; if anything is wrong with its files the old one
 * stays (INVALID_ARGUMENT says which layer). This may take seconds. out may be NULL. */
VOXELD_API enum voxeld_status
voxeld_network_load(struct voxeld_client *client, const struct voxeld_call *call,
                    const char *network, enum voxeld_precision precision,
                    struct voxeld_networks **out, struct voxeld_error *error);

/* With missing_ok a network that does not exist is no error. existed may be NULL. */
VOXELD_API enum voxeld_status voxeld_network_unload(struct voxeld_client *client,
                                                    const struct voxeld_call *call,
                                                    const char *network, bool missing_ok,
                                                    bool *existed,
                                                    struct voxeld_error *error);

VOXELD_API enum voxeld_status voxeld_network_get(struct voxeld_client *client,
                                                 const struct voxeld_call *call,
                                                 const char *network,
                                                 struct voxeld_networks **out,
                                                 struct voxeld_error *error);
VOXELD_API enum voxeld_status voxeld_network_list(struct voxeld_client *client,
                                                  const struct voxeld_call *call,
                                                  struct voxeld_networks **out,
                                                  struct voxeld_error *error);
VOXELD_API void voxeld_networks_free(struct voxeld_networks *networks);

#ifdef __cplusplus
}
#endif

#endif
