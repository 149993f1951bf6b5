// SPDX-License-Identifier: Apache-2.0
/* Saved maps. map_file.c describes the file byte by byte. */
#ifndef VXD_SERVER_REGISTRY_MAPS_MAP_FILE_H
#define VXD_SERVER_REGISTRY_MAPS_MAP_FILE_H

#include "server/registry/maps/named_maps.h"

struct vxd_map_file_info {
    uint64_t n_bytes;
    /* Over spec, names, lattice, numbers, keys and rows: equal maps have equal digests,
     * on every backend. Capacity and erase epoch do not count. */
    uint64_t digest;
};

/* Writes DIRECTORY/maps/NAME.vxm: beside it first, synced, then renamed over an older one, so
 * that at any moment a whole file is there. Makes DIRECTORY/maps where it is missing.
 * errors  RESOURCE_EXHAUSTED  no space is left; an older file stays
 *         UNAVAILABLE         the directory or the disk does not take it; likewise. (When only
 *                             the directory's own sync failed, the new one may be there) */
enum vxd_status vxd_map_file_write(const char *directory, const char *name,
                                   const struct vxd_map_spec *spec,
                                   const struct vxd_hashmap_image *image,
                                   struct vxd_map_file_info *out, struct vxd_err *err);

/* The size of the file that vxd_map_file_write would make; false where no file is so large. */
bool vxd_map_file_size(const struct vxd_map_spec *spec, uint64_t n_entries,
                       uint64_t *n_bytes);

/* Checks that the principal may save NAME.vxm as one more file, by max_files of its token: it counts the
 * saved files whose names the token may use. map_quota.c.
 * errors  RESOURCE_EXHAUSTED  says how many there are, the limit and its key */
enum vxd_status vxd_map_file_check_count(const char *directory, const char *name,
                                         const struct vxd_principal *principal,
                                         struct vxd_err *err);

/* Checks that a file of so many bytes may take the place of NAME.vxm, beside the others there.
 * map_quota.c.
 * errors  RESOURCE_EXHAUSTED  they would be above max_bytes (0 = any number): the message has its
 *                             size, theirs, the limit and its key */
enum vxd_status vxd_map_file_check_quota(const char *directory, const char *name,
                                         uint64_t n_bytes, uint64_t max_bytes,
                                         struct vxd_err *err);

/* Removes files that a server left half written when it was killed. Nobody may write
 * meanwhile. */
void vxd_map_file_sweep(const char *directory);

/* Reads DIRECTORY/maps/NAME.vxm; on success the caller frees *image. The file's size is
 * compared with its head before anything is allocated for what the head claims.
 * errors  NOT_FOUND
 *         DATA_LOSS            damaged; says what and at which byte
 *         FAILED_PRECONDITION  written by a newer server
 *         RESOURCE_EXHAUSTED   no memory for its entries
 *         UNAVAILABLE          cannot be read */
enum vxd_status vxd_map_file_read(struct vxd_context *context, const char *directory,
                                  const char *name, struct vxd_map_spec *spec,
                                  struct vxd_hashmap_image *image,
                                  struct vxd_map_file_info *out, struct vxd_err *err);

/* The same from an open file, for tests and fuzzing. */
enum vxd_status vxd_map_file_parse(struct vxd_context *context, FILE *file,
                                   struct vxd_map_spec *spec,
                                   struct vxd_hashmap_image *image,
                                   struct vxd_map_file_info *out, struct vxd_err *err);

#endif
