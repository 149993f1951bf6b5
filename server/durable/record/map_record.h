// SPDX-License-Identifier: Apache-2.0
/* What a record of a durable map says: one change of its entries, with its inputs as the engine
 * takes them, so that the same rules give the same map again, numbers included. It contains
 * the types of its keys and rows. map_record.c describes the bytes. Equal changes, equal
 * bytes. */
#ifndef VXD_SERVER_DURABLE_RECORD_MAP_RECORD_H
#define VXD_SERVER_DURABLE_RECORD_MAP_RECORD_H

#include "gpu/hash/hash.h"
#include "server/durable/record/scene_record.h"

enum {
    /* By which rules maps' records are applied; raised when an old record would give another
     * map. Maps count apart from scenes, above this: a server that knows no durable maps refuses
     * to start on them instead of cutting them off. */
    VXD_MAP_RULES_BASE = 1 << 16,
    VXD_MAP_RULES_VERSION = VXD_MAP_RULES_BASE + 1
};

/* Kinds of the journal's rows: no kind of record.h. */
enum vxd_map_record_kind {
    VXD_MAP_RECORD_INSERT = 65, /* keys; rows of those that are new */
    VXD_MAP_RECORD_UPDATE = 66, /* keys or numbers, and rows to combine */
    VXD_MAP_RECORD_ERASE = 67,  /* keys */
    VXD_MAP_RECORD_CLEAR = 68   /* everything */
};

/* n rows of one value array. */
struct vxd_map_record_rows {
    const void *rows;     /* NULL = not given */
    enum vxd_dtype dtype; /* of these rows: the engine widens some */
    uint32_t n_elements;
};

struct vxd_map_record {
    enum vxd_map_record_kind kind;
    int64_t unix_ns;
    /* Who asked: the token's name and the client_id; may be "". */
    char author[VXD_RECORD_NAME_BYTES];
    char client[VXD_RECORD_NAME_BYTES];
    size_t n;               /* keys or numbers, at most 2^31 - 1; 0 of CLEAR */
    const void *keys;       /* n keys, */
    const int32_t *numbers; /* or numbers where this is not NULL */
    enum vxd_dtype key_dtype;
    int n_components;
    bool inserts; /* UPDATE: keys that are not there are inserted first, with zero rows */
    enum vxd_hash_combine combine;
    struct vxd_map_record_rows rows[VXD_HASHMAP_MAX_VALUES];
};

/* Packs a record; the caller has checked what is in it. *out is the caller's to free
 * (vxd_record_bytes_free).
 * errors  RESOURCE_EXHAUSTED  no memory, or more than the journal takes at once */
enum vxd_status vxd_map_record_encode(const struct vxd_map_record *record,
                                      struct vxd_record_bytes *out, struct vxd_err *err);

/* Its pointers lead into `memory` and nowhere else. */
struct vxd_map_record_decoded {
    struct vxd_map_record record;
    struct vxd_record_block *memory;
};

/* Unpacks a record. Whatever the bytes, fields are in the engine's ranges and no more than
 * max_bytes of memory is taken; whether it fits a certain map is left to who applies it. *out is
 * the caller's to free (vxd_map_record_decoded_free).
 *
 * in      rules_version  the record's
 * errors  as vxd_record_decode */
enum vxd_status vxd_map_record_decode(const void *bytes, size_t n_bytes,
                                      uint32_t rules_version, size_t max_bytes,
                                      struct vxd_map_record_decoded *out,
                                      struct vxd_err *err);

void vxd_map_record_decoded_free(struct vxd_map_record_decoded *decoded);

#endif
