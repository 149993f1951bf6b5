// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/durable/snapshot/snapshot.h"

struct found {
    uint32_t family;
    uint64_t *sequences;
    size_t n;
    size_t capacity;
    bool is_out_of_memory;
};

void vxd_snapshot_path(const struct vxd_data_dir *dir, uint32_t family, uint64_t sequence,
                       const char *end, char out[VXD_DURABLE_PATH_BYTES])
{
    (void)snprintf(out, VXD_DURABLE_PATH_BYTES, "%s/snapshots/%08x.%016llx.vxs%s",
                   dir->path, family, (unsigned long long)sequence, end);
}

/* n hexadecimal digits, lower case. */
static bool parse_hex(const char *text, int n, uint64_t *out)
{
    uint64_t value = 0;

    for (int i = 0; i < n; i++) {
        char c = text[i];

        if (c >= '0' && c <= '9') {
            value = value << 4 | (uint64_t)(c - '0');
        } else if (c >= 'a' && c <= 'f') {
            value = value << 4 | (uint64_t)(c - 'a' + 10);
        } else {
            return false;
        }
    }
    *out = value;
    return true;
}

bool vxd_snapshot_parse_name(const char *name, uint32_t *family, uint64_t *sequence)
{
    uint64_t number;

    if (strlen(name) != 29 || name[8] != '.' || strcmp(name + 25, ".vxs") != 0 ||
        !parse_hex(name, 8, &number) || !parse_hex(name + 9, 16, sequence)) {
        return false;
    }
    *family = (uint32_t)number;
    return true;
}

static void take_entry(void *arg, const char *name)
{
    struct found *found = arg;
    uint32_t family;
    uint64_t sequence;

    if (!vxd_snapshot_parse_name(name, &family, &sequence) || family != found->family) {
        return;
    }
    if (found->n == found->capacity) {
        size_t capacity = found->capacity + 16;
        uint64_t *sequences = realloc(found->sequences, capacity * sizeof *sequences);

        if (sequences == NULL) {
            found->is_out_of_memory = true;
            return;
        }
        found->sequences = sequences;
        found->capacity = capacity;
    }
    found->sequences[found->n++] = sequence;
}

static int compare_descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? 1 : -(x > y);
}

enum vxd_status vxd_snapshot_list(const struct vxd_data_dir *dir, uint32_t family,
                                  uint64_t **sequences, size_t *n, struct vxd_err *err)
{
    struct found found = {.family = family};
    char folder[VXD_DURABLE_PATH_BYTES];
    int result;

    (void)snprintf(folder, sizeof folder, "%s/snapshots", dir->path);
    result = dir->ops->list(dir->ops->user, folder, take_entry, &found);
    if (result != 0 || found.is_out_of_memory) {
        free(found.sequences);
        return result != 0 ? vxd_file_fail(err, result, "read", folder)
                           : vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                                      "no memory for the list of snapshots");
    }
    if (found.n > 1) {
        qsort(found.sequences, found.n, sizeof *found.sequences, compare_descending);
    }
    *sequences = found.sequences;
    *n = found.n;
    return VXD_OK;
}

enum vxd_status vxd_snapshot_remove_all(const struct vxd_data_dir *dir, uint32_t family,
                                        struct vxd_err *err)
{
    uint64_t *sequences = NULL;
    size_t n = 0;
    enum vxd_status status;

    VXD_TRY(vxd_snapshot_list(dir, family, &sequences, &n, err));
    for (size_t i = 0; i < n; i++) {
        char path[VXD_DURABLE_PATH_BYTES];
        int result;

        vxd_snapshot_path(dir, family, sequences[i], "", path);
        result = dir->ops->unlink(dir->ops->user, path);
        if (result != 0 && result != -ENOENT) {
            status = vxd_file_fail(err, result, "remove", path);
        }
    }
out:
    free(sequences);
    return status;
}
