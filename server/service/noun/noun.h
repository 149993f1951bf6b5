// SPDX-License-Identifier: Apache-2.0
/* What the methods on named things as wholes share (server/registry/named): list, get and drop are the
 * same functions for every noun, which finds itself by `noun` of the method's row; create is for those that
 * hand in a maker, and has helpers for others.
 * List and get are stages of a lane, or, of nouns that all lanes use, answered without one.
 * Fields of messages are found by their names, which are the same for all nouns: `name` and `missing_ok`
 * of requests, `existed` of replies. */
#ifndef VXD_SERVER_SERVICE_NOUN_NOUN_H
#define VXD_SERVER_SERVICE_NOUN_NOUN_H

#include "server/registry/named/named.h"
#include "server/request/request.h"
#include "server/service/existing/existing.h"

/* The job of a create, and the first member of a noun's own: request->state is both. */
struct vxd_noun_create {
    struct vxd_named_terms terms; /* what the request wishes */
    struct vxd_named *named;      /* one that exists; held */
    struct vxd_named *made;       /* a new one, not findable before finish; held */
    struct vxd_named_commit commit;
};

/* What create is of a noun. */
struct vxd_noun_maker {
    const char *one;    /* "map" */
    size_t entry_bytes; /* of the noun's own entry for the journal; 0: it has none */
    /* Notes in what one that exists differs from what the request wishes, beyond its terms. NULL: in
     * nothing. */
    void (*compare)(const struct vxd_request *request, const struct vxd_named *has,
                    struct vxd_differing *differing);
    /* Makes a new one, held and not findable yet.
     * errors  RESOURCE_EXHAUSTED, and others of the noun's */
    enum vxd_status (*make)(struct vxd_request *request, struct vxd_queue *queue,
                            struct vxd_named **out, struct vxd_err *err);
};

/* What a noun's rows in the method table point to. */
struct vxd_noun_service {
    struct vxd_names *(*names)(const struct vxd_server *server);
    /* Of one info message with all that it may have; 0: list is answered without a lane. */
    size_t max_info_bytes;
    /* The reply's fields: the list of infos, and the one info. */
    const char *list_field;
    const char *info_field;
    /* Makes the info of a thing.
     * errors  RESOURCE_EXHAUSTED */
    enum vxd_status (*new_info)(struct vxd_request *request, struct vxd_decoder *arena,
                                const struct vxd_named *named, ProtobufCMessage **out,
                                struct vxd_err *err);
    /* Adds what get alone says; queue NULL: without a lane. NULL: nothing. */
    enum vxd_status (*add_details)(struct vxd_request *request, struct vxd_queue *queue,
                                   const struct vxd_named *named, ProtobufCMessage *info,
                                   struct vxd_err *err);
    /* Adds what list says beside the things. NULL: nothing. */
    enum vxd_status (*add_to_list)(struct vxd_request *request, ProtobufCMessage *reply,
                                   struct vxd_err *err);
    /* A thing that is not durable has lost its name by drop. NULL: nothing follows from it. */
    void (*dropped)(const struct vxd_request *request, const struct vxd_named *named);
    /* Of create; NULL of nouns that make things in another way. */
    const struct vxd_noun_maker *maker;
    /* Fails with NOT_FOUND, and says what there is. */
    enum vxd_status (*missing)(struct vxd_request *request, const char *field,
                               const char *name, struct vxd_err *err);
};

/* --- rows of the method table --------------------------------------------------------------------- */

enum vxd_status vxd_noun_named_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_noun_list_check(struct vxd_request *request, struct vxd_err *err);

/* Of create, whose check is the noun's own: it makes the job, and fills in the terms. Makes the thing, or finds
 * one that is equal.
 * errors  ALREADY_EXISTS  says which parameters of the one that exists are others; as `make` of the noun */
enum vxd_status vxd_noun_create_submit(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_noun_create_finish(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err);
void vxd_noun_create_release(struct vxd_request *request, struct vxd_queue *queue);

enum vxd_status vxd_noun_drop_submit(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err);
enum vxd_status vxd_noun_drop_finish(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err);
enum vxd_status vxd_noun_list_submit(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err);
enum vxd_status vxd_noun_get_submit(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err);
/* Check of list and get without a lane, which is all of them. */
enum vxd_status vxd_noun_list_now_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_noun_get_now_check(struct vxd_request *request, struct vxd_err *err);

/* Of list and get: what was read has to be on the disk before it is answered. */
enum vxd_status vxd_noun_read_finish(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err);
void vxd_noun_release(struct vxd_request *request, struct vxd_queue *queue);

/* For methods that always change something. */
bool vxd_noun_changes(const struct vxd_request *request);

/* Finish of methods whose reply submit has made. */
enum vxd_status vxd_noun_done(struct vxd_request *request, struct vxd_queue *queue,
                              struct vxd_err *err);

/* --- create and all others ------------------------------------------------------------------------- */

/* errors  INVALID_ARGUMENT  names the field */
enum vxd_status vxd_noun_check_name(const char *name, const char *field,
                                    struct vxd_err *err);

/* Checks the name and makes request->state, n_bytes zeroed.
 * errors  INVALID_ARGUMENT, RESOURCE_EXHAUSTED */
enum vxd_status vxd_noun_begin_check(struct vxd_request *request, size_t n_bytes,
                                     const char *name, struct vxd_err *err);

/* What a request wishes of a thing that is to be made. */
struct vxd_noun_durability {
    const char *one; /* "map" */
    bool durable;
    int fsync;
    uint64_t journal_max_bytes;
};

/* Fills in the terms, whose ttl is set.
 * errors  INVALID_ARGUMENT; FAILED_PRECONDITION  nothing is durable on this server */
enum vxd_status vxd_noun_read_durability(const struct vxd_request *request,
                                         const struct vxd_noun_durability *wished,
                                         struct vxd_named_terms *terms,
                                         struct vxd_err *err);

/* Notes the terms in which a thing that exists differs from what is wished. */
void vxd_noun_compare_terms(const struct vxd_named_terms *has,
                            const struct vxd_named_terms *wished,
                            struct vxd_differing *differing);

#endif
