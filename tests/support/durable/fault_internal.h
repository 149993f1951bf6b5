// SPDX-License-Identifier: Apache-2.0
/* What the disk in memory and the VFS on it share. */
#ifndef VXD_TESTS_SUPPORT_DURABLE_FAULT_INTERNAL_H
#define VXD_TESTS_SUPPORT_DURABLE_FAULT_INTERNAL_H

#include <pthread.h>
#include <sqlite3.h>

#include "tests/support/durable/fault_vfs.h"

enum {
    MAX_ENTRIES = 256,
    MAX_FILES = 64,
    PATH_BYTES = 200,
    SECTOR = 512,
    WAL_HEAD_BYTES = 32
};

/* A write, or a change of size (bytes NULL, at = the size), since the last sync. */
struct pending {
    uint64_t at;
    size_t n;
    uint8_t *bytes;
};

struct inode {
    int n_references; /* names, now or on the disk, and open files */
    bool is_directory;
    bool is_locked;
    uint8_t *now, *synced;
    size_t n_now, n_synced;
    struct pending *pending;
    size_t n_pending, pending_capacity;
};

/* A name: what it is now and what it is on the disk. */
struct entry {
    char path[PATH_BYTES];
    struct inode *now, *synced;
    int move; /* the last one that it is of, since the last sync; 0 = none */
};

struct fault_disk {
    pthread_mutex_t lock;
    struct vxd_file_ops ops;
    sqlite3_vfs vfs;
    char vfs_name[40];
    struct fault_plan plan;
    struct entry entries[MAX_ENTRIES];
    size_t n_entries;
    struct inode *files[MAX_FILES]; /* open, by number */
    bool is_dead;
    int n_calls, n_syncs, n_boots, n_moves;
    char sync_of[FAULT_MAX_SYNCS][32]; /* "" = nothing to do */
};

/* Counts a call; -errno where it is to fail. With the lock, as the others. */
int fault_begin_call(struct fault_disk *disk, bool *is_short);
int fault_sync_inode(struct fault_disk *disk, struct inode *inode, const char *of);
struct entry *fault_find_now(struct fault_disk *disk, const char *path);

#define ENTER(disk, is_short)                                                            \
    int result;                                                                          \
    (void)pthread_mutex_lock(&(disk)->lock);                                             \
    result = fault_begin_call(disk, is_short)

static inline int leave(struct fault_disk *disk, int result)
{
    (void)pthread_mutex_unlock(&disk->lock);
    return result;
}

/* Puts an inode, or none, in a place that counts as a reference. */
void fault_assign(struct inode **place, struct inode *inode);
void fault_resize(uint8_t **bytes, size_t *n, size_t n_new);
int64_t fault_bytes_of_all(const struct fault_disk *disk);
void fault_forget_pending(struct inode *inode);
bool fault_has_parent(struct fault_disk *disk, const char *path);

void fault_vfs_register(struct fault_disk *disk);
void fault_vfs_unregister(struct fault_disk *disk);

#endif
