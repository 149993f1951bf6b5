// SPDX-License-Identifier: Apache-2.0
/* Every file call of server/durable, so that tests can put a disk that fails, lies or loses
 * power in their place. SQLite goes through the VFS of the same table. */
#ifndef VXD_SERVER_DURABLE_DATA_DIR_FILE_OPS_H
#define VXD_SERVER_DURABLE_DATA_DIR_FILE_OPS_H

#include "proto/base/base.h"

enum {
    VXD_DURABLE_PATH_BYTES = 640, /* of a file in a data directory */
    VXD_BOOT_ID_BYTES = 40
};

/* All functions give what the system call of that name does, or -errno. Files are numbers from
 * 0. Thread-safe. */
struct vxd_file_ops {
    void *user;
    const char *sqlite_vfs; /* its registered name; NULL = the system's */
    int (*open)(void *user, const char *path, int flags, unsigned mode);
    int (*close)(void *user, int file);
    int64_t (*read)(void *user, int file, void *to, size_t n_bytes, uint64_t at);
    int64_t (*write)(void *user, int file, const void *from, size_t n_bytes, uint64_t at);
    int (*truncate)(void *user, int file, uint64_t n_bytes);
    int64_t (*size)(void *user, int file);
    int (*sync)(void *user, int file);
    int (*sync_data)(void *user, int file); /* of a file whose size has not changed */
    int (*lock)(void *user, int file); /* exclusive, -EWOULDBLOCK where another has it */
    int (*sync_directory)(void *user, const char *path);
    int (*make_directory)(void *user, const char *path, unsigned mode);
    int (*remove_directory)(void *user, const char *path);
    int (*rename)(void *user, const char *from, const char *to);
    int (*link)(void *user, const char *from, const char *to);
    int (*unlink)(void *user, const char *path);
    /* Calls `entry` for each name in a directory but "." and "..", in no order. */
    int (*list)(void *user, const char *path, void (*entry)(void *arg, const char *name),
                void *arg);
    /* What names this run of the system: as long as it is the same, nothing that was written
     * is lost, synced or not. */
    int (*boot_id)(void *user, char out[VXD_BOOT_ID_BYTES]);
};

const struct vxd_file_ops *vxd_file_ops_system(void);

/* Turns -errno into a status: RESOURCE_EXHAUSTED where the disk is full, NOT_FOUND where there
 * is no such file, else UNAVAILABLE. Always a failure. */
enum vxd_status vxd_file_fail(struct vxd_err *err, int64_t negative_errno,
                              const char *what, const char *path);

/* All of it, in as many calls as it takes.
 * errors  as vxd_file_fail; DATA_LOSS where the file ends before */
enum vxd_status vxd_file_write_all(const struct vxd_file_ops *ops, int file,
                                   const void *from, size_t n_bytes, uint64_t at,
                                   const char *path, struct vxd_err *err);
enum vxd_status vxd_file_read_all(const struct vxd_file_ops *ops, int file, void *to,
                                  size_t n_bytes, uint64_t at, const char *path,
                                  struct vxd_err *err);

/* A directory's entries on the disk.
 * errors  as vxd_file_fail */
enum vxd_status vxd_file_sync_directory(const struct vxd_file_ops *ops, const char *path,
                                        struct vxd_err *err);

#endif
