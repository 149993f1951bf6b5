// SPDX-License-Identifier: Apache-2.0
/* What a record of the journal says: one change of one head (a named scene) of a family, with its
 * inputs as the engine takes them, so that the same rules give the same scene again. The bytes
 * are described in scene_record.c, those of lists of voxels in record_voxels.c. Equal changes,
 * equal bytes. */
#ifndef VXD_SERVER_DURABLE_RECORD_SCENE_RECORD_H
#define VXD_SERVER_DURABLE_RECORD_SCENE_RECORD_H

#include "gpu/occupancy/occupancy.h"
#include "gpu/svdag/scan/scan.h"

enum {
    /* By which rules the engine turns operations into voxels. Raised when an old record would
     * give another scene; older ones stay replayable. What needs no newer rules is written
     * with the older ones, so that an older program reads it.
     *   2  scenes that fuse scans by log-odds: FUSE, and what is of such scenes
     *   3  their decays and pins: DECAY and PIN, and snapshots that have any
     *   4  scans by the cells that their rays end in, which are cast again: CAST and CAST_FUSE */
    VXD_LAST_WORD_RULES = 1,
    VXD_LOG_ODDS_RULES = 2,
    VXD_DECAY_RULES = 3,
    VXD_CAST_RULES = 4,
    VXD_RULES_VERSION = 4,
    VXD_RECORD_NAME_BYTES = 64 /* with the zero */
};

enum vxd_record_kind {
    VXD_RECORD_EDIT = 1,      /* operations, applied to the head */
    VXD_RECORD_UNDO = 2,      /* of_version taken back where it still holds */
    VXD_RECORD_REDO = 3,      /* of_version, an undo, taken back likewise */
    VXD_RECORD_CREATE = 4,    /* the head, empty; spec is the owner's */
    VXD_RECORD_BRANCH = 5,    /* the head, from `from` at of_version */
    VXD_RECORD_DROP = 6,      /* the head */
    VXD_RECORD_INTEGRATE = 7, /* as EDIT; of a scan */
    /* A scan into a head that fuses by log-odds: what its rays passed as operations that set
     * lists of voxels free, what its points hit as operations that fill such lists */
    VXD_RECORD_FUSE = 8,
    VXD_RECORD_DECAY = 12, /* log-odds fade, and what is forgotten becomes unknown */
    VXD_RECORD_PIN = 13,   /* as EDIT; then what its last operations say is pinned */
    /* As INTEGRATE and FUSE, with the ends of the scan's rays instead of its lists */
    VXD_RECORD_CAST = 26,
    VXD_RECORD_CAST_FUSE = 27
};

/* Whether a record fuses a scan by log-odds, and whether it has the ends of rays. */
static inline bool vxd_record_fuses(enum vxd_record_kind kind)
{
    return kind == VXD_RECORD_FUSE || kind == VXD_RECORD_CAST_FUSE;
}

static inline bool vxd_record_casts(enum vxd_record_kind kind)
{
    return kind == VXD_RECORD_CAST || kind == VXD_RECORD_CAST_FUSE;
}

/* The rules that records of a kind need at least. */
static inline uint32_t vxd_record_least_rules(enum vxd_record_kind kind)
{
    return vxd_record_casts(kind)                               ? VXD_CAST_RULES
           : kind == VXD_RECORD_DECAY || kind == VXD_RECORD_PIN ? VXD_DECAY_RULES
           : kind == VXD_RECORD_FUSE                            ? VXD_LOG_ODDS_RULES
                                                                : VXD_LAST_WORD_RULES;
}

struct vxd_version {
    uint64_t epoch;
    uint64_t n;
};

/* The rays of a scan, as in vxd_svdag_ray_ends, in host memory. */
struct vxd_record_scan {
    int64_t base[3];
    double origin[3];
    const int32_t *ends;    /* n x 3 */
    const int32_t *origins; /* n x 3; NULL: all start at `origin` */
    size_t n;               /* not 0 */
    size_t n_hits;
    /* One for each hit voxel, in the order of the ends; NULL: all have `value`. */
    const uint16_t *values;
    bool
        has_values; /* set while it is made: the scan's points have values of their own */
    uint32_t value;
    bool
        fills; /* what its points hit; otherwise only what its rays pass is of interest */
};

struct vxd_record {
    enum vxd_record_kind kind;
    char head[VXD_RECORD_NAME_BYTES]; /* not empty */
    /* Who asked: the token's name and the client_id; may be "". */
    char author[VXD_RECORD_NAME_BYTES];
    char client[VXD_RECORD_NAME_BYTES];
    int64_t unix_ns;
    struct vxd_version version;       /* that the change made */
    struct vxd_version of_version;    /* UNDO, REDO, BRANCH */
    char from[VXD_RECORD_NAME_BYTES]; /* BRANCH: the head branched from */
    const struct vxd_svdag_op *
        ops; /* EDIT, INTEGRATE, FUSE, PIN: n_ops, 0 to VXD_SVDAG_MAX_OPS; lists in host */
    size_t n_ops; /* memory */
    /* CAST, CAST_FUSE: n_scans; the operations are what they make: of each scan in turn what its
     * rays pass, set free or (`erases`) erased, then of those that fill in turn what they hit. A
     * record that was unpacked has these operations without their lists; one that is packed needs
     * none. */
    const struct vxd_record_scan *scans;
    size_t n_scans;
    bool erases;
    /* PIN: the last so many are of the pins: they FILL what is pinned and ERASE what is not. */
    size_t n_pin_ops;
    /* FUSE, CAST_FUSE, DECAY: before it, all log-odds become the clamps of their states. */
    bool forgets;
    struct vxd_occupancy_decay decay; /* DECAY: its box within the scene */
    int64_t
        decayed_ns; /* DECAY: the time up to which the scene has decayed; 0 = it is not said */
    const uint8_t *spec; /* CREATE */
    size_t n_spec_bytes;
};

/* Bytes of a record, and the memory behind them. */
struct vxd_record_bytes {
    uint8_t *bytes;
    size_t n_bytes;
};

/* Packs a record. *out is the caller's to free (vxd_record_bytes_free).
 * errors  INVALID_ARGUMENT    a name or kind that is none, lists that do not ascend, values that
 *                             the engine would not take; err.field as the engine's
 *         RESOURCE_EXHAUSTED  no memory */
enum vxd_status vxd_record_encode(const struct vxd_record *record,
                                  struct vxd_record_bytes *out, struct vxd_err *err);

/* How many values a scan's hits have: one for each that is in another voxel than the one before. */
size_t vxd_record_count_values(const struct vxd_record_scan *scan);

void vxd_record_bytes_free(struct vxd_record_bytes *bytes);

/* A record that was unpacked: its pointers lead into `memory` and nowhere else. */
struct vxd_record_decoded {
    struct vxd_record record;
    struct vxd_record_block *memory;
    size_t n_bytes; /* of memory */
};

/* Unpacks a record. Whatever the bytes, every field is as the engine's ranges demand, lists
 * ascend, and no more than max_bytes of memory is taken. *out is the caller's to free
 * (vxd_record_decoded_free).
 *
 * in      rules_version  the record's
 * errors  FAILED_PRECONDITION  newer rules than this program's; says which
 *         DATA_LOSS            not a record, or not all of one, or more after it; says what and
 *                              at which byte
 *         RESOURCE_EXHAUSTED   more than max_bytes (0 = VXD_RECORD_MAX_BYTES), or no memory */
enum vxd_status vxd_record_decode(const void *bytes, size_t n_bytes,
                                  uint32_t rules_version, size_t max_bytes,
                                  struct vxd_record_decoded *out, struct vxd_err *err);

#define VXD_RECORD_MAX_BYTES ((size_t)4 << 30)

/* Reads what stands before a record's operations or spec, which *out has none of. Nothing is to be
 * freed; what follows may be damaged.
 * errors  FAILED_PRECONDITION, DATA_LOSS, as of vxd_record_decode */
enum vxd_status vxd_record_decode_head(const void *bytes, size_t n_bytes,
                                       uint32_t rules_version, struct vxd_record *out,
                                       struct vxd_err *err);

void vxd_record_decoded_free(struct vxd_record_decoded *decoded);

#endif
