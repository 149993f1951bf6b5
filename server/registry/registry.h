// SPDX-License-Identifier: Apache-2.0
/* Named things on disk. Every kind of durable thing (maps, scenes) registers itself here
 * with a few functions. What all kinds need stands here once: the journal, the start, how
 * changes get to the disk and are decided, and the thread that writes snapshot files.
 *
 *   start     a family of a kind that nobody registered refuses the start. Otherwise each kind
 *             brings its own families back, in the order of registration, and then the outcomes
 *             of earlier requests come back (exactly_once.h)
 *   change    a record and the request's reply are one transaction; when it is decided, the
 *             request's lane goes on (commit.h)
 *   snapshot  when a family's journal has grown to its max_bytes, a thread of its own has the
 *             kind write a file; no request waits for it. A clean stop writes one of each family
 *             that has many records */
#ifndef VXD_SERVER_REGISTRY_REGISTRY_H
#define VXD_SERVER_REGISTRY_REGISTRY_H

#include "gpu/hash/hash.h"
#include "server/durable/archive/archive.h"
#include "server/durable/data_dir/data_dir.h"
#include "server/durable/journal/journal.h"
#include "server/durable/recovery/recovery.h"
#include "server/durable/snapshot/snapshot.h"
#include "server/request/request.h"

enum {
    VXD_REGISTRY_MAX_KINDS = 8
};

struct vxd_registry;
struct vxd_registry_start; /* the start of one kind, while its `recover` runs */

/* A snapshot file that is to be written. */
struct vxd_registry_save {
    struct vxd_registry *registry;
    const struct vxd_journal_family *row; /* the family's, as the journal has it */
    struct vxd_queue *queue;              /* of the server's context, this thread's own */
    /* Filled in from the row; the kind sets sequence and rules_version, and corrects the rest. */
    struct vxd_snapshot_head head;
    bool
        is_empty; /* the kind has nothing of the family: no file is written, none is missed */
};

/* What is logged of a kind, each with the name of a thing and a text. A kind logs what it has. */
enum vxd_registry_event {
    VXD_REGISTRY_RECOVERING = 0, /* how far it is, once a second */
    VXD_REGISTRY_RECOVERED = 1,  /* how much came back; no name */
    VXD_REGISTRY_SAVED = 2,      /* the seconds that a snapshot file took */
    VXD_REGISTRY_NOT_SAVED = 3,  /* why no snapshot file was written */
    /* These are of the tables of named things (server/registry/named). */
    VXD_REGISTRY_MADE = 4,     /* the owner of a durable thing that was made */
    VXD_REGISTRY_EXPIRED = 5,  /* the owner of one that nobody used for its ttl */
    VXD_REGISTRY_BACK = 6,     /* it was brought back after a failed change; no text */
    VXD_REGISTRY_NOT_BACK = 7, /* why not */
    VXD_REGISTRY_NOT_RECOVERED =
        8,                         /* why a start cannot bring it back; a family's name */
    VXD_REGISTRY_LOSSY = 9,        /* why a start brought back less than there was */
    VXD_REGISTRY_BAD_SNAPSHOT = 10 /* why a snapshot file is no good */
};

/* A kind of durable thing. A new one needs these, and a call of vxd_registry_add. */
struct vxd_durable_kind {
    const char *noun; /* "map" */
    /* What the names of its families begin with in the journal, "map:". Names of things have no
     * ':', so a kind may also have "". */
    const char *prefix;
    /* Any thread. Messages and keys are the kind's own, so that each log line stands literally in
     * the source. */
    void (*log)(enum vxd_registry_event event, const char *name, const char *text);
    /* Brings back all its families: calls vxd_registry_recover once, with what it does for each.
     * `found` is what the last run left behind.
     * errors  those of recovery.h; RESOURCE_EXHAUSTED */
    enum vxd_status (*recover)(void *owner, struct vxd_registry_start *start,
                               const struct vxd_journal_found *found,
                               struct vxd_err *err);
    /* Writes a family's snapshot with vxd_registry_write_snapshot, or says that there is nothing.
     * On the saver's thread; blocking. After an error it is tried again later. */
    enum vxd_status (*save)(void *owner, struct vxd_registry_save *save,
                            struct vxd_err *err);
};

/* errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_registry_create(struct vxd_context *context,
                                    struct vxd_registry **out, struct vxd_err *err);

/* Its journal must be closed. NULL is fine. */
void vxd_registry_destroy(struct vxd_registry *registry);

/* Kind and owner are borrowed until the journal is closed; the prefix is no other kind's. Before
 * vxd_registry_open_journal. */
void vxd_registry_add(struct vxd_registry *registry, const struct vxd_durable_kind *kind,
                      void *owner);

/* Where the journal is archived as it grows, how long a change waits for it at most while it works,
 * and how many bytes of changes while it does not. */
struct vxd_registry_archive {
    const char *folder; /* borrowed until the journal is closed */
    uint32_t seconds;
    uint64_t max_bytes;
};

/* Before vxd_registry_open_journal. */
void vxd_registry_set_archive(struct vxd_registry *registry,
                              const struct vxd_registry_archive *archive);

/* Returns the archive of a journal that is open, borrowed; NULL where there is none. */
struct vxd_archive *vxd_registry_get_archive(const struct vxd_registry *registry);

/* Opens the journal in a directory that is locked, which is borrowed, and brings back the durable
 * things and the exactly-once outcomes that are there. Once, before anything runs. Logs its
 * progress.
 * errors  FAILED_PRECONDITION  a family of an unknown kind: nothing was changed
 *         those of journal.h and recovery.h; no memory for what comes back */
enum vxd_status vxd_registry_open_journal(struct vxd_registry *registry,
                                          struct vxd_once *once,
                                          const struct vxd_data_dir *dir,
                                          struct vxd_err *err);

/* Before a clean stop: writes snapshots of families of which a start would have to replay much.
 * Blocks for a few seconds at most. Does nothing without a journal. */
void vxd_registry_save_grown(struct vxd_registry *registry);

/* Writes what waits and closes the journal. Nothing may run any more. Does nothing
 * without a journal. */
void vxd_registry_close_journal(struct vxd_registry *registry);

/* Returns the journal, borrowed; NULL where nothing is durable. */
struct vxd_journal *vxd_registry_get_journal(const struct vxd_registry *registry);

/* Returns the directory of a journal that is open, borrowed. */
const struct vxd_data_dir *vxd_registry_get_data_dir(const struct vxd_registry *registry);

/* --- names of families ------------------------------------------------------------------- */

/* Writes a family's name: the prefix and the thing's name. A long name is cut, and its
 * digest follows. */
void vxd_registry_family_name(const struct vxd_durable_kind *kind, const char *name,
                              char out[VXD_JOURNAL_NAME_BYTES]);
/* The same, or, where another family than `id` has it, one that says which: the thing that was the
 * first of that family was dropped, and others that came from it live on. */
void vxd_registry_free_family_name(const struct vxd_registry *registry,
                                   const struct vxd_durable_kind *kind, const char *name,
                                   uint32_t id, char out[VXD_JOURNAL_NAME_BYTES]);
bool vxd_registry_is_of_kind(const struct vxd_durable_kind *kind,
                             const struct vxd_journal_family *row);

/* --- the start --------------------------------------------------------------------------- */

/* vxd_recover for the kind's families. The visitor's is_ours is the kind's, its is_not_last is set
 * here.
 * errors  as vxd_recover */
enum vxd_status vxd_registry_recover(struct vxd_registry_start *start,
                                     const struct vxd_journal_found *found,
                                     const struct vxd_recovery_visitor *visitor,
                                     struct vxd_err *err);

/* What the visitor's `progress` calls: a log line a second. */
void vxd_registry_log_progress(struct vxd_registry_start *start,
                               const struct vxd_recovery_progress *at);

/* Replaces a family's row, and waits for the disk: its generation is another one now.
 * errors  as vxd_journal_put_family and vxd_journal_commit_wait */
enum vxd_status vxd_registry_rewrite_family(struct vxd_registry *registry,
                                            const struct vxd_journal_family *row,
                                            struct vxd_err *err);

/* --- changes, on the write lane ------------------------------------------------------------ */

/* Whether the disk takes changes; *stats is what the journal says of itself.
 * errors  UNAVAILABLE */
enum vxd_status vxd_registry_check_disk(const struct vxd_registry *registry,
                                        struct vxd_journal_stats *stats,
                                        struct vxd_err *err);

/* Something that is packed on a thread of its own while the lane goes on. Zero-initialised it is
 * nothing; `run` and `user` are set before it is begun. */
struct vxd_packing {
    void (*run)(void *user);
    void *user;
    bool is_begun; /* set and read by who begins and ends it */
    /* the registry's own */
    enum {
        VXD_PACKING_WAITS = 0,
        VXD_PACKING_RUNS,
        VXD_PACKING_DONE
    } state;
    struct vxd_packing *next;
};

/* Begins it; the journal is open. It stays where it is until vxd_registry_end_packing. */
void vxd_registry_begin_packing(struct vxd_registry *registry,
                                struct vxd_packing *packing);

/* Waits until it has run, or, where it has not begun, runs it here if it is still needed. Nothing
 * where it was not begun, or has ended. */
void vxd_registry_end_packing(struct vxd_registry *registry, struct vxd_packing *packing,
                              bool is_needed);

/* Adds the request's outcome (its output is complete) to the transaction and commits it;
 * vxd_commit_decide follows. The transaction is freed in any case.
 * errors  UNAVAILABLE, RESOURCE_EXHAUSTED; then it does not follow */
enum vxd_status vxd_registry_hand_over(struct vxd_journal_txn *take_txn,
                                       struct vxd_request *request, int64_t unix_ns,
                                       struct vxd_err *err);

/* --- snapshots, any thread ----------------------------------------------------------------- */

/* Asks for a family's snapshot. Where the family was dropped, its files are removed
 * instead. Never waits. */
void vxd_registry_ask_snapshot(struct vxd_registry *registry, uint32_t family);

/* Writes save->head and what `write` puts behind it as the family's newest file. Blocking.
 * errors  those of snapshot.h and of `write` */
enum vxd_status vxd_registry_write_snapshot(
    struct vxd_registry_save *save,
    enum vxd_status (*write)(void *user, struct vxd_snapshot_writer *writer,
                             struct vxd_err *err),
    void *user, struct vxd_err *err);

/* Counts the snapshot files of a kind that were written since the start, and the attempts
 * that failed. */
void vxd_registry_count_snapshots(const struct vxd_registry *registry,
                                  const struct vxd_durable_kind *kind,
                                  uint64_t *n_written, uint64_t *n_failed);

/* --- bringing a thing back, any thread ---------------------------------------------------- */

/* What makes a thing again, from a snapshot or from nothing, and from records. */
struct vxd_rebuilder {
    void *user;
    /* Begins from nothing, where no snapshot is good. */
    enum vxd_status (*begin)(void *user, struct vxd_err *err);
    /* Begins from a snapshot file, whose end is checked afterwards. */
    enum vxd_status (*load)(void *user, struct vxd_snapshot_reader *reader,
                            struct vxd_err *err);
    /* Drops what was loaded of a snapshot that is no good, if anything was, and logs why. */
    void (*discard)(void *user, const struct vxd_err *why);
    enum vxd_status (*apply)(void *user, const struct vxd_journal_record *record,
                             struct vxd_err *err);
};

/* Makes a family as the disk has it up to a sequence number, from its newest valid snapshot of at
 * most that and the records after it. It only reads, beside the journal's writer. Blocking. After a
 * failure the caller drops what there is.
 * errors  DATA_LOSS, NOT_FOUND, RESOURCE_EXHAUSTED, UNAVAILABLE, those of `apply` */
enum vxd_status vxd_registry_rebuild(struct vxd_journal *journal,
                                     const struct vxd_data_dir *dir, uint32_t family,
                                     uint64_t sequence,
                                     const struct vxd_rebuilder *rebuild,
                                     struct vxd_err *err);

/* --- hash maps in snapshot files (registry_image.c describes the bytes), any thread -------- */

/* Writes all entries of a map that nobody changes meanwhile, piece by piece, so that the memory it
 * takes does not grow with the rows; on a queue of the CPU. Blocking.
 * errors  RESOURCE_EXHAUSTED, UNAVAILABLE */
enum vxd_status vxd_registry_write_image(struct vxd_snapshot_writer *writer,
                                         struct vxd_queue *queue,
                                         struct vxd_hashmap *hashmap,
                                         struct vxd_err *err);

/* Makes the map of a snapshot file, on the queue's context. Keys and arrays are as the spec says.
 * The caller checks the file's end. Blocking.
 * errors  DATA_LOSS, RESOURCE_EXHAUSTED, UNAVAILABLE */
enum vxd_status vxd_registry_read_image(struct vxd_snapshot_reader *reader,
                                        const struct vxd_hashmap_spec *of,
                                        struct vxd_queue *queue, struct vxd_hashmap **out,
                                        struct vxd_err *err);

#endif
