// SPDX-License-Identifier: Apache-2.0
/* What a record of a durable volume says: one change. Where the engine gives the same values again
 * for the same inputs, bit for bit on every backend, it has the inputs: an image or a scan with its
 * pose, or what is removed. Else it has the blocks that changed, packed, with all layers that the volume
 * has, by name. volume_record.c describes the bytes. Equal changes, equal bytes. */
#ifndef VXD_SERVER_DURABLE_RECORD_VOLUME_RECORD_H
#define VXD_SERVER_DURABLE_RECORD_VOLUME_RECORD_H

#include "gpu/volume/scan/volume_scan.h"
#include "server/durable/record/scene_record.h"

enum {
    /* By which rules volumes' records are applied; raised when an old record would give another
     * volume. They count apart from those of scenes and maps, above this. */
    VXD_VOLUME_RULES_BASE = 2 << 16,
    VXD_VOLUME_RULES_VERSION = VXD_VOLUME_RULES_BASE + 2,
    /* From these on decays take votes for labels with them. */
    VXD_VOLUME_RULES_VOTES_DECAY = VXD_VOLUME_RULES_BASE + 2,
    VXD_RECORD_LAYER_BYTES = 32 /* of a layer's name, with the zero */
};

/* Kinds of the journal's rows: no kind of the other records. */
enum vxd_volume_record_kind {
    VXD_VOLUME_RECORD_BLOCKS = 9,  /* blocks that changed */
    VXD_VOLUME_RECORD_IMAGE = 10,  /* a depth image that was integrated */
    VXD_VOLUME_RECORD_REMOVE = 11, /* a removal or a decay */
    VXD_VOLUME_RECORD_SCAN = 22    /* a lidar scan that was integrated */
};

/* What the bytes of an image are. */
enum vxd_record_pixels {
    VXD_RECORD_PIXELS_NONE = 0,
    VXD_RECORD_PIXELS_RAW =
        1, /* as the frame's dtype says; of colours: red, green, blue */
    VXD_RECORD_PIXELS_PNG = 2 /* a file, which gives the same pixels whoever decodes it */
};

struct vxd_record_image {
    enum vxd_record_pixels form;
    const uint8_t *bytes;
    size_t n_bytes;
};

/* BLOCKS. One change may be several records, each with some of its blocks. */
struct vxd_record_blocks {
    uint64_t version; /* the volume's, afterwards */
    uint64_t removed_version;
    uint64_t n_images;
    bool has_all_keys;       /* blocks were removed: only those of these keys stay */
    const int32_t *all_keys; /* n_all_keys, 3 each */
    size_t n_all_keys;
    struct {
        char name[VXD_RECORD_LAYER_BYTES];
        enum vxd_dtype dtype;
        uint32_t n_elements;
        const void *rows; /* n of them */
    } layers[VXD_VOLUME_MAX_LAYERS];
    int n_layers;
    size_t n;
    const int32_t *entries; /* ascending */
    const int32_t *keys;
    const uint64_t *stamps;
};

struct vxd_volume_record {
    enum vxd_volume_record_kind kind;
    int64_t unix_ns;
    /* Who asked: the token's name and the client_id; may be "". */
    char author[VXD_RECORD_NAME_BYTES];
    char client[VXD_RECORD_NAME_BYTES];
    struct vxd_record_blocks blocks; /* BLOCKS */
    /* IMAGE: but for depth, mask (there is none) and colour */
    struct vxd_volume_frame frame;
    struct vxd_record_image depth;
    struct vxd_record_image colour;
    struct vxd_volume_scan scan; /* SCAN; its arrays are in host memory */
    /* IMAGE, SCAN: keys of blocks that were removed before it */
    const int32_t *forgotten;
    size_t n_forgotten;
    bool decays; /* REMOVE: decay, else its region alone is removed */
    struct vxd_volume_decay decay;
};

/* Packs a record; the caller has checked what is in it. *out is the caller's to free
 * (vxd_record_bytes_free).
 * errors  RESOURCE_EXHAUSTED  no memory, or more than the journal takes at once */
enum vxd_status vxd_volume_record_encode(const struct vxd_volume_record *record,
                                         struct vxd_record_bytes *out,
                                         struct vxd_err *err);

/* Its pointers lead into `memory` and nowhere else. */
struct vxd_volume_record_decoded {
    struct vxd_volume_record record;
    struct vxd_record_block *memory;
};

/* Unpacks a record. Whatever the bytes, arrays are as long as their numbers say and no more than
 * max_bytes of memory is taken; whether it fits a certain volume, and its numbers the engine's
 * ranges, is left to who applies it. *out is the caller's to free
 * (vxd_volume_record_decoded_free).
 *
 * in      rules_version  the record's
 * errors  as vxd_record_decode */
enum vxd_status vxd_volume_record_decode(const void *bytes, size_t n_bytes,
                                         uint32_t rules_version, size_t max_bytes,
                                         struct vxd_volume_record_decoded *out,
                                         struct vxd_err *err);

void vxd_volume_record_decoded_free(struct vxd_volume_record_decoded *decoded);

#endif
