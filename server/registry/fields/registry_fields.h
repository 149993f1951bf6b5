// SPDX-License-Identifier: Apache-2.0
/* Distance fields of scenes and volumes that are kept between requests. A field belongs to one of
 * them, a scene in what follows (its generation) and follows its versions: a request that wants another version has it updated,
 * which is exact in either direction. Fields are a cache: none has a name or is durable, and the
 * least recently used ones go where memory is short. A request claims one field and gives it back;
 * while it has it for an update nobody else does, and any number read it at once. Where others have
 * a field for another version, a second one is made.
 *
 * Memory: all fields together take at most a quarter of the context's device memory, within its
 * budget. All functions may be called from any thread. */
#ifndef VXD_SERVER_REGISTRY_FIELDS_REGISTRY_FIELDS_H
#define VXD_SERVER_REGISTRY_FIELDS_REGISTRY_FIELDS_H

#include "gpu/field/field.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vxd_fields;
struct vxd_kept_field;

/* errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_fields_create(struct vxd_context *context, struct vxd_fields **out,
                                  struct vxd_err *err);
/* No field is claimed any more. NULL is fine. */
void vxd_fields_destroy(struct vxd_fields *fields);

/* What a request needs: a field of a scene's version that covers the box of the spec, with its
 * max_distance and policy. */
struct vxd_field_want {
    uint64_t generation; /* of the scene */
    uint64_t version;
    struct vxd_field_spec spec;
};

enum vxd_field_claim {
    VXD_FIELD_READY = 0, /* claimed, and it is of that version */
    VXD_FIELD_STALE = 1, /* claimed for this request alone, which has to update it */
    VXD_FIELD_BUSY = 2   /* not claimed: others have what is needed; to be tried again */
};

/* Claims a field. Where one covers a part of the box, a new one covers both if that is not much
 * more than both. Never waits.
 * errors  RESOURCE_EXHAUSTED  the field is larger than all may be, or there is no memory;
 *                             err.field is `field` */
enum vxd_status vxd_fields_claim(struct vxd_fields *fields, struct vxd_queue *queue,
                                 const struct vxd_field_want *want, const char *field,
                                 struct vxd_kept_field **out, enum vxd_field_claim *claim,
                                 struct vxd_err *err);

struct vxd_field *vxd_fields_get(struct vxd_kept_field *kept);

/* A claimed field is that of the wanted version now, whose update has run: others may read it. */
void vxd_fields_set_ready(struct vxd_fields *fields, struct vxd_kept_field *kept,
                          uint64_t version);

/* Gives a field back; nothing queued uses it. One that is claimed for an update which did not end
 * is made anew by the next. NULL is fine. */
void vxd_fields_release(struct vxd_fields *fields, struct vxd_queue *queue,
                        struct vxd_kept_field *kept);

struct vxd_fields_usage {
    size_t n_fields;
    uint64_t n_bytes;
};
void vxd_fields_get_usage(struct vxd_fields *fields, struct vxd_fields_usage *out);

/* Frees fields that nobody has, those that were not used for longest first, until n_bytes are
 * free or none is left. Returns the bytes; they are free once the queue has run. */
uint64_t vxd_fields_trim(struct vxd_fields *fields, struct vxd_queue *queue,
                         uint64_t n_bytes);

/* Frees the fields of a scene that is dropped: at once, or when they are given back. A queue of
 * NULL, on the write lane, means the cache's own, which is waited for. */
void vxd_fields_drop_scene(struct vxd_fields *fields, struct vxd_queue *queue,
                           uint64_t generation);

#ifdef __cplusplus
}
#endif
#endif
