// SPDX-License-Identifier: Apache-2.0
/* What the files behind named.h share. */
#ifndef VXD_SERVER_REGISTRY_NAMED_NAMED_INTERNAL_H
#define VXD_SERVER_REGISTRY_NAMED_NAMED_INTERNAL_H

#include <pthread.h>

#include "server/registry/named/named.h"

enum {
    VXD_NAMES_GONE = 64 /* names that are gone and remembered, for watchers */
};

struct vxd_names {
    const struct vxd_noun_calls *calls;
    void *own; /* the noun's */
    uint64_t limit_bytes;
    uint64_t token_limit_bytes;
    _Atomic uint64_t n_made; /* generations are counted by it */
    bool is_recovering;
    _Atomic size_t n; /* findable */
    _Atomic size_t n_durable;
    _Atomic uint64_t n_bytes; /* of all that exist, with a name or without */
    _Atomic int64_t next_reap_ns;
    struct vxd_queue *queue; /* the journal's work, and frees what is left at the end */
    /* Guards the lists, references, sizes and times of use. The write lane reads without it what it alone
     * writes: all of it of nouns that it alone uses. */
    pthread_mutex_t mutex;
    struct vxd_named *first;       /* by name */
    struct vxd_named *unnamed;     /* not yet published, or removed and still held */
    struct vxd_registry *registry; /* borrowed; has the journal */
    struct vxd_auth *auth;         /* borrowed; has the quotas */
    /* For watchers; guarded by the mutex, but for the listener, which is there before requests are. */
    vxd_names_changed_fn listener;
    void *listener_context;
    uint64_t last_change;
    struct vxd_named_head gone[VXD_NAMES_GONE]; /* a ring */
    uint64_t n_gone;
};

/* named_heads.c. Returns the version of a thing; 0 where its noun has none. The mutex is not held. */
uint64_t vxd_named_version(const struct vxd_named *named);

/* named_heads.c. Numbers a change of a thing that has a name, or has just lost it. The mutex is held. */
void vxd_named_number_change(struct vxd_named *named);

/* named_heads.c. Calls the listener. The mutex is not held. */
void vxd_named_notify(const struct vxd_named *named);

/* named_save.c. A description and a content of a noun, zeroed. */
struct vxd_named_workspace {
    struct vxd_described *described;
    void *content;
};

/* errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_named_workspace_new(const struct vxd_names *names,
                                        struct vxd_named_workspace *out,
                                        struct vxd_err *err);
void vxd_named_workspace_free(struct vxd_named_workspace *workspace);

/* named_save.c. Makes a content as the disk has it up to a sequence number, from the newest valid
 * snapshot of at most that and the records after it. It only reads, beside the journal's writer.
 * Blocking. After an error there is none.
 * errors  those of vxd_registry_rebuild */
enum vxd_status vxd_named_rebuild(const struct vxd_names *names, struct vxd_queue *queue,
                                  uint32_t family, uint64_t sequence,
                                  const struct vxd_described *described, void *content,
                                  struct vxd_err *err);

/* named_recover.c. Fills in what the journal's row says of a thing. */
void vxd_named_describe(const struct vxd_named *named, struct vxd_described *out);

/* named_journal.c. Fills in a family's row, whose spec is the caller's to free.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_named_make_row(const struct vxd_named *named,
                                   struct vxd_journal_family *row, struct vxd_err *err);

static inline void vxd_names_wait(const struct vxd_names *names)
{
    if (names->queue != NULL) {
        (void)vxd_queue_wait(names->queue, NULL);
    }
}

#endif
