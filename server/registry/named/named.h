// SPDX-License-Identifier: Apache-2.0
/* Tables of named things, one for each noun: maps, volumes, pose graphs, odometries, networks. What they
 * have in common stands here once: names, references, memory and its limits, times to live, and, where they
 * are durable, how they are journalled. A noun hands in what is its own as a struct vxd_noun_calls.
 *
 * All functions belong to the write lane unless they say "any thread". A request finds a thing by name
 * when its turn has come; one that a request holds lives on when its name is dropped. Networks are used on
 * all lanes and on none, so they are found, held, made and dropped by functions for any thread alone; they
 * have no times to live.
 *
 * Memory: a thing may grow up to its own max_bytes and to what the limits of all things of its noun and
 * of those of one token leave. The copies that growing needs for a moment count. */
#ifndef VXD_SERVER_REGISTRY_NAMED_NAMED_H
#define VXD_SERVER_REGISTRY_NAMED_NAMED_H

#include "proto/base/bytes.h"
#include "proto/base/name.h"
#include "server/access/access.h"
#include "server/durable/record/record.h"
#include "server/registry/registry.h"
#include "server/request/request.h"

/* The default of journal_max_bytes. */
#define VXD_NAMED_JOURNAL_BYTES ((uint64_t)256 << 20)

struct vxd_names; /* the table of one noun */

/* How long a thing is kept, and how large it may be. */
struct vxd_named_terms {
    char name[VXD_NAME_BYTES];
    char owner[VXD_NAME_BYTES];
    uint64_t max_bytes; /* 0 = the limits' */
    int64_t ttl_ns;     /* 0 = never dropped */
    /* What needs more than max_bytes, which is not 0 then, removes the farthest parts; of volumes
     * alone. */
    bool forgets;
    bool durable; /* it is in the journal; then ttl_ns is 0 */
    enum vxd_fsync fsync;
    uint64_t
        journal_max_bytes; /* a snapshot is written when its records have so many bytes */
};

/* How a durable thing stands in the journal. Sequence numbers are those of its family there. */
struct vxd_named_durable {
    uint32_t journal_id; /* 0: it is not durable */
    uint64_t sequence;   /* of the last record that was handed over */
    uint64_t decided;    /* of the last one on disk */
    size_t n_waiting;    /* changes that were handed over and are not decided */
    bool is_leaving;     /* it is being dropped */
    bool is_gone;        /* it was dropped, or could not be made: its name is free */
    /* Memory has changes that the disk lacks: one failed, and others were built on it. Nobody sees
     * the thing until it is brought back. */
    bool is_broken;
};

/* The first member of what a noun keeps of each thing. */
struct vxd_named {
    struct vxd_names *names; /* the table that it belongs to */
    struct vxd_named_terms terms;
    uint64_t
        generation; /* from the clock, so that other starts of the server make others */
    int64_t created_unix_ns;
    int64_t used_ns; /* monotonic */
    struct vxd_named_durable durable;
    /* These belong to the table. */
    size_t n_bytes; /* as accounted */
    int references;
    bool is_named;
    uint64_t version; /* as accounted; 0 of nouns without versions */
    uint64_t changed; /* the number of its last change; see struct vxd_named_head */
    int64_t changed_unix_ns;
    struct vxd_named *next; /* by name */
};

struct vxd_durable_calls; /* below */

/* What a noun hands in. */
struct vxd_noun_calls {
    const char *one;  /* "pose graph", of error texts */
    const char *many; /* "pose graphs" */
    size_t max;       /* so many there may be */
    size_t n_bytes;   /* of the noun's struct */
    bool uses_device; /* things are made, changed and freed on a queue */
    /* The tokens file limits how many of this noun a token may have. */
    bool has_quota;
    enum vxd_noun quota;
    const char *bytes_key; /* "limits.map_bytes" */
    const char
        *token_bytes_key; /* "limits.map_bytes_per_token"; NULL: there is no such limit */
    /* Any thread. What is logged of a thing. Messages and keys are the noun's own, so that each log
     * line stands literally in the source. NULL of nouns without times to live that are not durable. */
    void (*log)(enum vxd_registry_event event, const char *name, const char *text);
    /* Counts the bytes that a thing has now. */
    size_t (*count_bytes)(const struct vxd_named *named);
    /* Returns the version of a thing, not 0, which is another one after each change; for watchers. NULL:
     * the noun's things cannot be watched. */
    uint64_t (*version)(const struct vxd_named *named);
    /* Frees what a thing has, before the thing itself is freed; on the thread that drops it. */
    void (*clear)(struct vxd_named *named, struct vxd_queue *queue);
    /* Its name was taken away. NULL: that concerns nobody. */
    void (*unnamed)(struct vxd_named *named);
    /* Frees what the noun keeps beside the table. NULL: nothing. */
    void (*free_own)(void *own);
    const struct vxd_durable_calls *durable; /* NULL: none is durable */
};

/* What a table is made with. */
struct vxd_names_options {
    const struct vxd_noun_calls *calls;
    uint64_t limit_bytes;       /* of all things that exist, with a name or without */
    uint64_t token_limit_bytes; /* of those of one token; 0 = limit_bytes */
    void *take_own; /* what the noun keeps beside the table; freed by free_own */
};

/* Makes a table, and adds the noun to the registry of durable things, if it is one.
 * errors  RESOURCE_EXHAUSTED; take_own is freed */
enum vxd_status vxd_names_create(struct vxd_server *server,
                                 const struct vxd_names_options *options,
                                 struct vxd_names **out, struct vxd_err *err);

/* No request may run. NULL is fine. */
void vxd_names_destroy(struct vxd_names *names);

/* Returns what the noun keeps beside the table. */
void *vxd_names_own(const struct vxd_names *names);

/* Returns the table's own queue, for work of the write lane between requests; borrowed. NULL where the
 * noun uses no device. */
struct vxd_queue *vxd_names_queue(const struct vxd_names *names);

uint64_t vxd_names_limit_bytes(const struct vxd_names *names);

/* Whether a start brings things back: limits do not count then, so that all on the disk comes back. */
bool vxd_names_is_recovering(const struct vxd_names *names);

/* --- finding, making, dropping ---------------------------------------------------------------- */

/* Finds a thing, which counts as a use of it; NULL where there is none. */
struct vxd_named *vxd_names_find(struct vxd_names *names, const char *name);

/* Finds a thing without using it. */
struct vxd_named *vxd_names_peek(const struct vxd_names *names, const char *name);

/* Returns the next thing in order of names; the first one for NULL. */
struct vxd_named *vxd_names_next(const struct vxd_names *names,
                                 const struct vxd_named *named);

/* Any thread. Calls `look` with the thing of that name, which stays where it is meanwhile; false where
 * there is none. */
bool vxd_names_look(struct vxd_names *names, const char *name,
                    void (*look)(const struct vxd_named *named, void *user), void *user);

/* Any thread. The same with each thing in order of names. */
void vxd_names_look_at_all(struct vxd_names *names,
                           void (*look)(const struct vxd_named *named, void *user),
                           void *user);

/* Any thread. Finds a thing and holds it, until vxd_named_let_go or vxd_named_drop; NULL where there is
 * none. */
struct vxd_named *vxd_names_hold(struct vxd_names *names, const char *name);

/* Any thread. Holds all things; *out, in order of names, is the caller's to free.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_names_hold_all(struct vxd_names *names, struct vxd_named ***out,
                                   size_t *n, struct vxd_err *err);

/* Any thread. Begins a thing: checks whether there may be one more, and makes the noun's struct, zeroed but for
 * its terms, generation and times. vxd_named_enlist follows, or free where it could not be filled.
 * errors  RESOURCE_EXHAUSTED  too many, or no memory */
enum vxd_status vxd_named_begin(struct vxd_names *names,
                                const struct vxd_named_terms *terms,
                                struct vxd_named **out, struct vxd_err *err);

/* Any thread. Lists a thing that is filled now and that nobody can find yet, with one reference, and
 * accounts for its memory. It cannot fail. */
void vxd_named_enlist(struct vxd_named *named);

/* Gives the thing its name, which is free, and takes a reference. It cannot fail. */
void vxd_named_publish(struct vxd_named *named);

/* Any thread. Gives the thing its name and takes a reference, unless it has the name; returns whether
 * another one lost it. It cannot fail. */
bool vxd_named_replace(struct vxd_named *named, struct vxd_queue *queue);

/* Any thread. Takes the name away, if the thing still has it; the caller holds it, or is the write lane.
 * The thing is freed with its last reference. */
void vxd_named_remove(struct vxd_named *named, struct vxd_queue *queue);

/* Any thread. */
void vxd_named_hold(struct vxd_named *named);
/* Any thread. Drops a reference. It ends a use, so the time to live begins anew. */
void vxd_named_drop(struct vxd_named *named, struct vxd_queue *queue);
/* Any thread. Drops a reference that was no use of the thing. */
void vxd_named_let_go(struct vxd_named *named, struct vxd_queue *queue);

/* --- memory and times to live ------------------------------------------------------------------ */

/* Returns the bytes that a thing of these terms may take now, including those it has; 0, no limit, at a
 * start alone. named NULL: one that is to be made. */
size_t vxd_names_allowance(const struct vxd_names *names,
                           const struct vxd_named_terms *terms,
                           const struct vxd_named *named);

/* Completes the engine's error where it refused what is above the allowance: names the limit, unless it
 * is the thing's own. */
void vxd_names_explain(const struct vxd_names *names, const struct vxd_named_terms *terms,
                       const struct vxd_named *named, struct vxd_err *err);

/* Refuses a copy of so many bytes that the limits do not leave.
 * errors  RESOURCE_EXHAUSTED  names the limit */
enum vxd_status vxd_names_check_copy(const struct vxd_names *names,
                                     const struct vxd_named_terms *terms,
                                     uint64_t n_bytes, struct vxd_err *err);

/* Whether a thing may come to take n_more bytes, as far as max_bytes of its owner's token goes.
 *
 * in      what  is to take them, for the error
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_named_check_bytes(const struct vxd_named *named, uint64_t n_more,
                                      const char *what, struct vxd_err *err);

/* Any thread. Whether the limit of all things leaves a listed thing so many bytes more, which are its own
 * then; *used is what all have. For nouns whose count_bytes says what was accounted. */
bool vxd_named_take_bytes(struct vxd_named *named, uint64_t n_bytes, uint64_t *used);

/* Accounts for the thing's memory after it may have grown, and for its version, which watchers see. */
void vxd_named_account(struct vxd_named *named);

/* Drops things that nobody used for their ttl at the time `now_ns`. */
void vxd_names_reap(struct vxd_names *names, struct vxd_queue *queue, int64_t now_ns);

/* Any thread. Returns when the next thing's time is over, unless it is used before; INT64_MAX = never. */
int64_t vxd_names_next_reap_ns(const struct vxd_names *names);

struct vxd_names_usage {
    size_t n;
    uint64_t n_bytes;
    uint64_t limit_bytes;
    size_t n_durable;
    uint64_t n_snapshots; /* files of durable things written, and failed */
    uint64_t n_failed_snapshots;
};

/* Any thread. */
void vxd_names_get_usage(const struct vxd_names *names, struct vxd_names_usage *out);

/* --- what watchers see: named_heads.c ----------------------------------------------------------- */

/* The newest version of a thing that has a name; or a name that is gone. */
struct vxd_named_head {
    char name[VXD_NAME_BYTES];
    uint64_t generation;
    uint64_t version; /* 0: the name is gone */
    int64_t changed_unix_ns;
    uint64_t
        changed; /* changes of all things are numbered from 1 in a run of the server */
};

/* Is called on the thread of a change, without a lock: a thing that has a name has another version, or
 * the name was given or taken away. It must not block. */
typedef void (*vxd_names_changed_fn)(void *context, const char *name);

/* To be called before the first change. */
void vxd_names_set_listener(struct vxd_names *names, vxd_names_changed_fn changed,
                            void *context);

/* Any thread. False where there is no thing of this name. */
bool vxd_names_get_head(struct vxd_names *names, const char *name,
                        struct vxd_named_head *out);

/* Any thread. The number of the last change. */
uint64_t vxd_names_last_change(struct vxd_names *names);

/* Any thread. Copies the things and gone names whose last change is after this one, in the order of these;
 * *out is the caller's to free. *is_complete says that all things are there and no gone names:
 * after 0, or where more names are gone since than are remembered.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_names_copy_heads(struct vxd_names *names, uint64_t after,
                                     struct vxd_named_head **out, size_t *n,
                                     bool *is_complete, uint64_t *last,
                                     struct vxd_err *err);

/* --- durable things: named_journal.c, named_commit.c -------------------------------------------- */

enum vxd_named_change {
    VXD_NAMED_CHANGED = 0,
    VXD_NAMED_MADE = 1,
    VXD_NAMED_DROPPED = 2,
    VXD_NAMED_READ =
        3 /* nothing changes, but all that was read has to be decided first */
};

/* What a request hands over to the journal. Zero-initialised it is nothing. */
struct vxd_named_entry {
    enum vxd_named_change kind;
    /* CHANGED, of nouns that pack one record a change before they make it: */
    uint32_t record_kind;
    struct vxd_record_bytes record; /* vxd_named_end_commit frees it */
    int64_t unix_ns;                /* when it was handed over */
    uint64_t sequence;              /* the number that its last record got */
    bool is_handed_over;
};

/* Checks that requests may see the thing, and brings it back where it is broken. Things that are not
 * durable always pass.
 * errors  UNAVAILABLE  the disk lacks a change that the thing has, or it is being dropped */
enum vxd_status vxd_named_check_visible(struct vxd_named *named, struct vxd_err *err);

/* Checks that a change of so many bytes can be handed over now. Things that are not durable always
 * pass.
 * errors  UNAVAILABLE  the disk does not take it, or too much waits for it */
enum vxd_status vxd_named_check_journal(const struct vxd_named *named, size_t n_bytes,
                                        struct vxd_err *err);

/* Gives a thing of durable terms its number in the journal, and checks that the journal takes it;
 * nothing of others. To be called before it is published.
 * errors  UNAVAILABLE */
enum vxd_status vxd_named_enter_journal(struct vxd_named *named, struct vxd_err *err);

/* Makes a transaction wait for all changes of the thing that were handed over.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_named_need(const struct vxd_named *named, struct vxd_journal_txn *txn,
                               struct vxd_err *err);

/* Hands a change over with the request's outcome (its output is complete); vxd_commit_decide follows.
 * in      named  NULL for READ: all things
 * errors  UNAVAILABLE, RESOURCE_EXHAUSTED; then it does not follow */
enum vxd_status vxd_named_hand_over(struct vxd_names *names, struct vxd_named *named,
                                    struct vxd_request *request,
                                    struct vxd_named_entry *entry, struct vxd_err *err);

/* Ends a change once it is decided, or could not be handed over. Changes end in the order in which they
 * were made. */
void vxd_named_end_change(struct vxd_named *named, struct vxd_named_entry *entry,
                          bool committed);

/* Says that the thing has a change in memory that will never be handed over. */
void vxd_named_mark_broken(struct vxd_named *named);

/* Whether a read of the thing, or of all things where it is NULL, sees changes that are not decided. */
bool vxd_named_is_waiting(const struct vxd_names *names, const struct vxd_named *named);

/* The commit of a request. Zero-initialised it is none. */
struct vxd_named_commit {
    struct vxd_commit base; /* first: request->commit is both */
    struct vxd_names *names;
    struct vxd_named *named; /* held by the job; NULL: all things were listed */
    struct vxd_named_entry entry;
    struct vxd_named_entry
        *more;        /* the first member of a noun's larger entry; NULL: `entry` */
    bool has_changed; /* memory has the change */
    bool is_ended;
};

/* What vxd_named_commit's base calls, for nouns that do more there. */
enum vxd_status vxd_named_commit_begin(struct vxd_request *request, struct vxd_err *err);
void vxd_named_commit_end(struct vxd_request *request, bool committed);

/* Makes it the request's commit: whatever the lane finds at the end of finish is handed over. */
void vxd_named_set_commit(struct vxd_request *request, struct vxd_named_commit *commit,
                          struct vxd_names *names, struct vxd_named *named,
                          enum vxd_named_change kind);

/* Ends a request, at the end of finish, when its reply is complete: of a durable thing the reply is
 * given once the change, or what was read, is on the disk.
 * in      named  NULL: all things were read */
void vxd_named_conclude(struct vxd_request *request, struct vxd_named_commit *commit,
                        struct vxd_names *names, struct vxd_named *named,
                        enum vxd_named_change kind);

/* Ends a commit in release, while the thing is still held, and frees the packed record. A change that
 * never got to the journal marks the thing as broken. */
void vxd_named_end_commit(struct vxd_named_commit *commit);

/* --- what a noun hands in to be durable: named_recover.c, named_save.c --------------------------- */

/* What a description says of every thing: the first member of a noun's own. */
struct vxd_described {
    struct vxd_named_terms terms;
    uint64_t generation;
    int64_t created_unix_ns;
};

/* A durable noun. `content` is what things are made of, and what snapshot files have: a struct of the
 * noun that may be moved. It is made, changed and freed on `queue`, which is NULL of a noun that uses no
 * device. Zeroed it is none. */
struct vxd_durable_calls {
    const struct vxd_durable_kind *kind; /* its owner is the table */
    uint32_t rules_version;
    size_t max_change_bytes; /* of a packed record; 0 = the journal's limits */
    size_t described_bytes;  /* of the noun's description */
    size_t content_bytes;

    /* Fills in what the description has beside a struct vxd_described. NULL: nothing. */
    void (*describe)(const struct vxd_named *named, struct vxd_described *out);
    /* Adds a description. A lack of memory shows at the end (vxd_bytes_out). */
    void (*put_description)(struct vxd_bytes_out *out,
                            const struct vxd_described *described);
    /* errors  DATA_LOSS; FAILED_PRECONDITION  it says what this program does not know */
    enum vxd_status (*read_description)(const void *bytes, size_t n_bytes,
                                        struct vxd_described *out, struct vxd_err *err);
    /* Reads the description from a snapshot file that was just opened.
     * errors  as above; RESOURCE_EXHAUSTED, UNAVAILABLE */
    enum vxd_status (*read_catalogue)(struct vxd_snapshot_reader *reader,
                                      struct vxd_described *out, struct vxd_err *err);

    /* Makes the empty thing of a description, with one reference and without a name.
     * errors  RESOURCE_EXHAUSTED, DATA_LOSS */
    enum vxd_status (*make)(struct vxd_names *names,
                            const struct vxd_described *described, struct vxd_named **out,
                            struct vxd_err *err);
    /* Returns a thing's content. */
    void *(*content)(struct vxd_named *named);
    /* Its content is complete, or another one now. NULL: nothing follows from it. */
    enum vxd_status (*settle)(struct vxd_named *named, struct vxd_err *err);
    /* Its generation is another one now. NULL: nothing follows from it. */
    void (*renew)(struct vxd_named *named, uint64_t now_unix_ns);
    /* Adds the records of a change, or of what was made, and counts them in entry->sequence. NULL: the
     * packed record of a change alone. */
    enum vxd_status (*put)(struct vxd_named *named, struct vxd_request *request,
                           struct vxd_named_entry *entry, struct vxd_journal_txn *txn,
                           struct vxd_err *err);

    /* Makes the empty content of a description; a small one with as little memory as possible. */
    enum vxd_status (*begin)(struct vxd_queue *queue,
                             const struct vxd_described *described, bool is_small,
                             void *content, struct vxd_err *err);
    /* Makes the content of a snapshot file. The caller checks the file's end. */
    enum vxd_status (*read)(struct vxd_snapshot_reader *reader, struct vxd_queue *queue,
                            const struct vxd_described *described, void *content,
                            struct vxd_err *err);
    /* Writes the description, and a content that nobody changes meanwhile; on a queue of the CPU. */
    enum vxd_status (*write)(struct vxd_snapshot_writer *writer, struct vxd_queue *queue,
                             const struct vxd_described *described, const void *content,
                             struct vxd_err *err);
    /* Applies a record to a content that only this queue uses, with the same result as at first.
     * errors  DATA_LOSS            damaged, or of another thing
     *         FAILED_PRECONDITION  of newer rules
     *         RESOURCE_EXHAUSTED   no memory: the content is to be thrown away */
    enum vxd_status (*apply)(struct vxd_queue *queue, void *content,
                             const struct vxd_journal_record *record,
                             struct vxd_err *err);
    /* All records are applied. NULL: nothing follows from it. */
    void (*end)(struct vxd_queue *queue, void *content);
    /* Frees a content, which may be none, and leaves none. */
    void (*clear)(struct vxd_queue *queue, void *content);
    /* Copies a content between two contexts, for snapshot files of what a GPU brings back. NULL: they
     * are made on the CPU alone. */
    enum vxd_status (*copy)(struct vxd_queue *queue, const void *content,
                            struct vxd_queue *to_queue, void *to, struct vxd_err *err);
};

/* `recover` and `save` of a noun's struct vxd_durable_kind. */
enum vxd_status vxd_names_recover(void *owner, struct vxd_registry_start *start,
                                  const struct vxd_journal_found *found,
                                  struct vxd_err *err);
enum vxd_status vxd_names_save(void *owner, struct vxd_registry_save *save,
                               struct vxd_err *err);

#endif
