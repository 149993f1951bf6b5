// SPDX-License-Identifier: Apache-2.0
/* The files of a networks directory: read whole, written so that at any moment a whole file is
 * there, listed. Names come checked: no separator is in them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/model/model_internal.h"

enum {
    MAX_NAMES = 65536
};

static enum vxd_status open_in(const char *directory, const char *file, int flags,
                               int *out, struct vxd_err *err)
{
    int dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0) {
        return vxd_fail(err, VXD_NOT_FOUND, NULL, "cannot open the directory %.100s: %s",
                        directory, strerror(errno));
    }
    /* O_NONBLOCK: a pipe is refused below, not waited for. */
    *out = openat(dir, file, flags | O_CLOEXEC | O_NONBLOCK, 0644);
    if (*out < 0) {
        enum vxd_status code = (flags & O_ACCMODE) == O_RDONLY ? VXD_NOT_FOUND
                               : errno == EEXIST               ? VXD_ALREADY_EXISTS
                                                               : VXD_UNAVAILABLE;

        (void)vxd_fail(err, code, NULL, "cannot open %.70s in %.100s: %s", file,
                       directory, strerror(errno));
        (void)close(dir);
        return code;
    }
    (void)close(dir);
    return VXD_OK;
}

/* Reads the whole file. One byte more than its size is asked for, so that growth is
 * noticed. */
static enum vxd_status read_whole(int fd, const char *file, uint8_t *bytes, size_t n_size,
                                  struct vxd_err *err)
{
    size_t n = 0;

    for (;;) {
        ssize_t got = read(fd, bytes + n, n_size + 1 - n);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return vxd_fail(err, VXD_NOT_FOUND, NULL, "cannot read %.70s: %s", file,
                            strerror(errno));
        }
        n += (size_t)got;
        if (got == 0 || n > n_size) {
            break;
        }
    }
    return n == n_size ? VXD_OK
                       : vxd_fail(err, VXD_INVALID_ARGUMENT, NULL,
                                  "%.70s changed while it was read", file);
}

enum vxd_status vxd_model_load_file(const char *directory, const char *file, size_t n_max,
                                    uint8_t **bytes, size_t *n_bytes, struct vxd_err *err)
{
    struct stat info;
    uint8_t *block = NULL;
    int fd = -1;
    enum vxd_status status;

    VXD_TRY(open_in(directory, file, O_RDONLY, &fd, err));
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        VXD_TRY(vxd_fail(err, VXD_NOT_FOUND, NULL, "%.70s in %.100s is no regular file",
                         file, directory));
    }
    if (info.st_size < 0 || (uint64_t)info.st_size > n_max) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                         "%.70s has %lld bytes, at most %zu are read", file,
                         (long long)info.st_size, n_max));
    }
    block = malloc((size_t)info.st_size + 1);
    if (block == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                         "no memory for the %lld bytes of %.70s", (long long)info.st_size,
                         file));
    }
    VXD_TRY(read_whole(fd, file, block, (size_t)info.st_size, err));
    *bytes = block;
    *n_bytes = (size_t)info.st_size;
    block = NULL;
out:
    free(block);
    if (fd >= 0) {
        (void)close(fd);
    }
    return status;
}

static bool write_whole(int fd, const uint8_t *bytes, size_t n_bytes)
{
    while (n_bytes > 0) {
        ssize_t n = write(fd, bytes, n_bytes);

        if (n < 0 && errno != EINTR) {
            return false;
        }
        if (n > 0) {
            bytes += n;
            n_bytes -= (size_t)n;
        }
    }
    return fsync(fd) == 0;
}

enum vxd_status vxd_model_store_file(const char *directory, const char *file,
                                     const uint8_t *bytes, size_t n_bytes, bool replace,
                                     struct vxd_err *err)
{
    char beside[2 * VXD_MODEL_NAME_BYTES + 32];
    int dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = -1;
    enum vxd_status status;

    if (dir < 0) {
        return vxd_fail(err, VXD_NOT_FOUND, NULL, "cannot open the directory %.100s: %s",
                        directory, strerror(errno));
    }
    (void)snprintf(beside, sizeof beside, ".%s.%ld", file, (long)getpid());
    VXD_TRY(open_in(directory, beside, O_WRONLY | O_CREAT | O_EXCL, &fd, err));
    if (!write_whole(fd, bytes, n_bytes)) {
        status = vxd_fail(err, VXD_UNAVAILABLE, NULL, "cannot write %.70s: %s", file,
                          strerror(errno));
    } else if (replace ? renameat(dir, beside, dir, file) != 0
                       : linkat(dir, beside, dir, file, 0) != 0) {
        /* A link, unlike a rename, replaces nothing. */
        status =
            vxd_fail(err, errno == EEXIST ? VXD_ALREADY_EXISTS : VXD_UNAVAILABLE, NULL,
                     "cannot make %.70s in %.100s: %s", file, directory, strerror(errno));
    } else if (fsync(dir) != 0) {
        status = vxd_fail(err, VXD_UNAVAILABLE, NULL, "cannot sync %.100s: %s", directory,
                          strerror(errno));
    }
    (void)unlinkat(dir, beside, 0);
out:
    if (fd >= 0) {
        (void)close(fd);
    }
    (void)close(dir);
    return status;
}

bool vxd_model_name_ok(const char *name)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    static const char rest[] = "abcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t n = strlen(name);

    return n >= 1 && n < VXD_MODEL_NAME_BYTES && strspn(name, first) >= 1 &&
           strspn(name, rest) == n;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds the name without ".json" to the list, where the file is a config. */
static enum vxd_status take_name(const char *file, char ***names, size_t *n,
                                 size_t *n_capacity, struct vxd_err *err)
{
    char name[VXD_MODEL_NAME_BYTES];
    size_t n_file = strlen(file);
    char *copy;

    if (n_file < 6 || n_file - 5 >= sizeof name ||
        strcmp(file + n_file - 5, ".json") != 0) {
        return VXD_OK;
    }
    memcpy(name, file, n_file - 5);
    name[n_file - 5] = '\0';
    if (!vxd_model_name_ok(name) || *n == MAX_NAMES) {
        return VXD_OK;
    }
    if (*n == *n_capacity) {
        size_t capacity = *n_capacity > 0 ? 2 * *n_capacity : 16;
        char **more = realloc(*names, capacity * sizeof **names);

        if (more == NULL) {
            return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for names");
        }
        *names = more;
        *n_capacity = capacity;
    }
    copy = malloc(n_file - 4);
    if (copy == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for names");
    }
    memcpy(copy, name, n_file - 4);
    (*names)[(*n)++] = copy;
    return VXD_OK;
}

enum vxd_status vxd_model_names(const char *directory, char ***names, size_t *n,
                                struct vxd_err *err)
{
    DIR *dir = opendir(directory);
    const struct dirent *entry;
    enum vxd_status status = VXD_OK;
    size_t n_capacity = 0;

    *names = NULL;
    *n = 0;
    if (dir == NULL) {
        return vxd_fail(err, VXD_NOT_FOUND, NULL, "cannot open the directory %.100s: %s",
                        directory, strerror(errno));
    }
    while ((entry = readdir(dir)) != NULL) {
        VXD_TRY(take_name(entry->d_name, names, n, &n_capacity, err));
    }
    if (*n > 0) {
        qsort(*names, *n, sizeof **names, by_text);
    }
out:
    (void)closedir(dir);
    if (status != VXD_OK) {
        vxd_model_names_free(*names, *n);
        *names = NULL;
        *n = 0;
    }
    return status;
}

void vxd_model_names_free(char **names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(names[i]);
    }
    free(names);
}
