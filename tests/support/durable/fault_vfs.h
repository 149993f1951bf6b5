// SPDX-License-Identifier: Apache-2.0
/* A disk in memory below server/durable's file calls and below SQLite, that knows what was synced.
 *
 * Power can be lost at any sync: what was not synced by then is dropped, kept, torn into sectors
 * of 512 bytes or reordered, by a seed; so are names that were made, moved or removed without a
 * sync of their directory, but for the two of one move, which go together. Single syncs can be left out (they say that all is well), and single
 * calls can fail. */
#ifndef VXD_TESTS_SUPPORT_DURABLE_FAULT_VFS_H
#define VXD_TESTS_SUPPORT_DURABLE_FAULT_VFS_H

#include "server/durable/data_dir/data_dir.h"

enum {
    FAULT_MAX_SYNCS = 4096,
    FAULT_NEVER = -1
};

/* What becomes of what was not synced. */
enum fault_loss {
    FAULT_DROP_ALL = 0,
    FAULT_KEEP_ALL = 1,
    FAULT_KEEP_SOME_WRITES = 2,
    FAULT_KEEP_SOME_SECTORS = 3,
    FAULT_KEEP_DATA_DROP_NAMES = 4,
    FAULT_DROP_DATA_KEEP_NAMES = 5,
    FAULT_DROP_EARLY_KEEP_LATE = 6, /* the last writes of each file alone */
    FAULT_KEEP_EARLY_DROP_LATE = 7,
    FAULT_N_LOSSES = 8
};

enum fault_kind {
    FAULT_EIO = 0,
    FAULT_ENOSPC = 1,
    FAULT_SHORT = 2 /* a write of half the bytes; other calls EIO */
};

struct fault_disk;

/* Set between runs; numbers count from 0 since then. */
struct fault_plan {
    int crash_at_sync; /* power goes before this sync does anything */
    int suppress_sync; /* this one does nothing */
    int fail_at_call;  /* this call of any kind fails */
    int crash_at_call; /* power goes before this one does anything */
    enum fault_kind fail_kind;
    int64_t
        capacity_bytes; /* of files in all; writes beyond fail with ENOSPC. FAULT_NEVER = any */
};

extern const struct fault_plan fault_none;

/* NULL = no memory. */
struct fault_disk *fault_disk_create(void);
void fault_disk_destroy(struct fault_disk *disk);

const struct vxd_file_ops *fault_disk_ops(struct fault_disk *disk);
void fault_disk_plan(struct fault_disk *disk, const struct fault_plan *plan);

bool fault_disk_is_dead(struct fault_disk *disk);
int fault_disk_n_syncs(struct fault_disk *disk);
int fault_disk_n_calls(struct fault_disk *disk);
/* A sync of the first 32 bytes of a WAL that is begun anew. */
#define FAULT_WAL_HEAD "head of the WAL"

/* What sync number i was of; NULL where it had nothing to do. */
const char *fault_disk_sync_of(struct fault_disk *disk, int i);

/* The power goes now: nothing changes any more. */
void fault_disk_cut(struct fault_disk *disk);

/* Takes the power away, if it has not gone, and gives it back: what is there then. Nobody may
 * hold a file. */
void fault_disk_lose_power(struct fault_disk *disk, enum fault_loss loss, uint64_t seed);

/* Everybody's files are closed, nothing is lost: as after a kill. */
void fault_disk_kill(struct fault_disk *disk);

bool fault_disk_exists(struct fault_disk *disk, const char *path);
/* A file's bytes, to look at or to damage; NULL where there is none. */
uint8_t *fault_disk_bytes(struct fault_disk *disk, const char *path, size_t *n_bytes);
/* Cuts or makes longer, with zeros. */
void fault_disk_resize(struct fault_disk *disk, const char *path, size_t n_bytes);
/* Of all files, as capacity_bytes counts them. */
int64_t fault_disk_n_bytes(struct fault_disk *disk);
/* A sum of all names and bytes. */
uint32_t fault_disk_sum(struct fault_disk *disk);

#endif
