// SPDX-License-Identifier: Apache-2.0
/* How many files of saved maps there may be, and how much they may take. */
#include <dirent.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "server/registry/maps/map_file.h"

/* The files of a folder but one, which would be replaced. */
static uint64_t sum_others(const char *folder, const char *name, size_t *n_files)
{
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    uint64_t n_bytes = 0;

    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        struct stat info;

        if (entry->d_name[0] != '.' && strcmp(entry->d_name, name) != 0 &&
            fstatat(dirfd(entries), entry->d_name, &info, 0) == 0 &&
            S_ISREG(info.st_mode)) {
            n_bytes += (uint64_t)info.st_size;
            ++*n_files;
        }
    }
    if (entries != NULL) {
        (void)closedir(entries);
    }
    return n_bytes;
}

/* Whether a folder's entry is the file of a saved map that a token may use and that is not `name`. */
static bool is_other_of(const char *entry, const char *name,
                        const struct vxd_rules *rules)
{
    char base[VXD_NAME_BYTES];
    const char *end = strrchr(entry, '.');
    size_t n = end != NULL && strcmp(end, ".vxm") == 0 ? (size_t)(end - entry) : 0;

    if (n == 0 || n >= sizeof base) {
        return false;
    }
    memcpy(base, entry, n);
    base[n] = '\0';
    return strcmp(base, name) != 0 && vxd_rules_allow_name(rules, VXD_NOUN_FILE, base);
}

enum vxd_status vxd_map_file_check_count(const char *directory, const char *name,
                                         const struct vxd_principal *principal,
                                         struct vxd_err *err)
{
    uint32_t limit = vxd_rules_quota(principal->rules)->max_held[VXD_NOUN_FILE];
    char folder[VXD_PATH_BYTES + 8];
    const struct dirent *entry;
    size_t n = 0;
    DIR *entries;

    if (limit == 0) {
        return VXD_OK;
    }
    (void)snprintf(folder, sizeof folder, "%s/maps", directory);
    entries = opendir(folder);
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        n += is_other_of(entry->d_name, name, principal->rules) ? 1 : 0;
    }
    if (entries != NULL) {
        (void)closedir(entries);
    }
    if (n < limit) {
        return VXD_OK;
    }
    vxd_account_refuse(principal->account, VXD_REFUSED_HELD);
    return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "file",
                    "%s has %zu files, max_files of it is %u (tokens file)",
                    principal->name, n, limit);
}

enum vxd_status vxd_map_file_check_quota(const char *directory, const char *name,
                                         uint64_t n_bytes, uint64_t max_bytes,
                                         struct vxd_err *err)
{
    char folder[VXD_PATH_BYTES + 8];
    char file[VXD_NAME_BYTES + 8];
    size_t n_files = 0;
    uint64_t n_others;

    if (max_bytes == 0) {
        return VXD_OK;
    }
    (void)snprintf(folder, sizeof folder, "%s/maps", directory);
    (void)snprintf(file, sizeof file, "%s.vxm", name);
    n_others = sum_others(folder, file, &n_files);
    return n_bytes <= max_bytes && n_others <= max_bytes - n_bytes
               ? VXD_OK
               : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "file",
                          "%.63s has %" PRIu64
                          " bytes, beside %zu saved files of %" PRIu64
                          "; limits.saved_bytes is %" PRIu64,
                          file, n_bytes, n_files, n_others, max_bytes);
}
