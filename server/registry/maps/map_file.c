// SPDX-License-Identifier: Apache-2.0
/* A saved map, little-endian:
 *
 *      0   8  "VXDMAP\r\n"
 *      8   4  version of this layout, 1
 *     12   4  version of the rules by which entries got their numbers, 1
 *     16   8  bytes of the whole file
 *     24   8  n, entries
 *     32   8  capacity, at least n
 *     40   8  erase epoch
 *     48   8  n again, where the digest begins
 *     56   4  dtype of the keys (3 int16, 5 int32, 9 int64)
 *     60   4  components a key, 1 to 8
 *     64   4  v, value arrays, 0 to 16
 *     68   4  1 = there is a lattice, 0 = none and zeros follow
 *     72  24  edges of a voxel, 3 float64, metres
 *     96  24  origin, 3 float64, metres
 *    120 256  frame, UTF-8, zeros behind it
 *    376  72v an array each: 64 bytes of name with zeros behind it, dtype (4), elements (4)
 *    ...   8  XXH64 of all before
 *    then the sections, each followed by 8 bytes, its XXH64:
 *         4n  numbers, int32, ascending, below the capacity
 *             keys, rows of components
 *             the rows of each array, in order
 *    last  8  the digest: XXH64 of the bytes from 48 to the end of the arrays' descriptions
 *             and of the sections' sums, in order */
#include "server/registry/maps/map_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/name.h"
#include "proto/base/xxh64.h"

enum {
    LAYOUT_VERSION = 1,
    RULES_VERSION = 1,
    DIGEST_BEGIN = 48,
    HEAD_BYTES = 376, /* before the arrays */
    ARRAY_BYTES = 72,
    SUM_BYTES = 8,
    MAX_HEAD_BYTES = HEAD_BYTES + VXD_HASHMAP_MAX_VALUES * ARRAY_BYTES + SUM_BYTES,
    MAX_SECTIONS = 2 + VXD_HASHMAP_MAX_VALUES,
    PATH_BYTES = 2 * VXD_PATH_BYTES
};

static const char magic[] = "VXDMAP\r\n"; /* shows when something changed the line ends */

/* A section of the file, which a sum follows. */
struct section {
    const char *what;
    size_t row_bytes;
    struct vxd_buffer *buffer;
};

static void put(uint8_t *head, size_t at, const void *value, size_t n_bytes)
{
    memcpy(head + at, value, n_bytes);
}

static void put32(uint8_t *head, size_t at, uint32_t value)
{
    put(head, at, &value, sizeof value);
}

static void put64(uint8_t *head, size_t at, uint64_t value)
{
    put(head, at, &value, sizeof value);
}

static uint32_t get32(const uint8_t *head, size_t at)
{
    uint32_t value;

    memcpy(&value, head + at, sizeof value);
    return value;
}

static uint64_t get64(const uint8_t *head, size_t at)
{
    uint64_t value;

    memcpy(&value, head + at, sizeof value);
    return value;
}

static size_t head_bytes(int n_values)
{
    return HEAD_BYTES + (size_t)n_values * ARRAY_BYTES + SUM_BYTES;
}

static int list_sections(const struct vxd_map_spec *spec, struct vxd_hashmap_image *image,
                         struct section sections[MAX_SECTIONS])
{
    int n = 0;

    sections[n++] = (struct section){"numbers", sizeof(int32_t), &image->indices};
    sections[n++] =
        (struct section){"keys", vxd_map_key_bytes(&spec->engine), &image->keys};
    for (int i = 0; i < spec->engine.n_values; i++) {
        sections[n++] = (struct section){
            spec->array_names[i], vxd_map_row_bytes(&spec->engine, i), &image->values[i]};
    }
    return n;
}

/* Computes the bytes of the whole file; false on overflow. */
bool vxd_map_file_size(const struct vxd_map_spec *spec, uint64_t n_entries, uint64_t *out)
{
    struct vxd_hashmap_image none = {0};
    struct section sections[MAX_SECTIONS];
    int n_sections = list_sections(spec, &none, sections);
    size_t total = head_bytes(spec->engine.n_values) + SUM_BYTES;

    for (int i = 0; i < n_sections; i++) {
        size_t n_bytes;

        if (!vxd_size_mul(n_entries, sections[i].row_bytes, &n_bytes) ||
            !vxd_size_add(total, n_bytes, &total) ||
            !vxd_size_add(total, SUM_BYTES, &total)) {
            return false;
        }
    }
    *out = total;
    return true;
}

/* --- writing --------------------------------------------------------------------------- */

static size_t make_head(const struct vxd_map_spec *spec,
                        const struct vxd_hashmap_image *image, uint64_t n_bytes,
                        uint8_t head[MAX_HEAD_BYTES])
{
    size_t at = HEAD_BYTES;

    memset(head, 0, MAX_HEAD_BYTES);
    put(head, 0, magic, sizeof magic - 1);
    put32(head, 8, LAYOUT_VERSION);
    put32(head, 12, RULES_VERSION);
    put64(head, 16, n_bytes);
    put64(head, 24, image->n_entries);
    put64(head, 32, image->spec.capacity);
    put64(head, 40, image->erase_epoch);
    put64(head, DIGEST_BEGIN, image->n_entries);
    put32(head, 56, (uint32_t)spec->engine.key_dtype);
    put32(head, 60, (uint32_t)spec->engine.n_components);
    put32(head, 64, (uint32_t)spec->engine.n_values);
    put32(head, 68, spec->has_lattice ? 1 : 0);
    put(head, 72, spec->size_m, sizeof spec->size_m);
    put(head, 96, spec->origin_m, sizeof spec->origin_m);
    put(head, 120, spec->frame_id, strlen(spec->frame_id));
    for (int i = 0; i < spec->engine.n_values; i++, at += ARRAY_BYTES) {
        put(head, at, spec->array_names[i], strlen(spec->array_names[i]));
        put32(head, at + VXD_NAME_BYTES, (uint32_t)spec->engine.values[i].dtype);
        put32(head, at + VXD_NAME_BYTES + 4, spec->engine.values[i].n_elements);
    }
    put64(head, at, vxd_sum_of(head, at));
    return at + SUM_BYTES;
}

static enum vxd_status fail_errno(struct vxd_err *err, const char *what, const char *path)
{
    bool is_full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;

    return vxd_fail(err, is_full ? VXD_RESOURCE_EXHAUSTED : VXD_UNAVAILABLE, "file",
                    "cannot %s %.140s: %s", what, path, strerror(errno));
}

static enum vxd_status write_all(int fd, const void *bytes, size_t n_bytes,
                                 const char *path, struct vxd_err *err)
{
    const uint8_t *at = bytes;

    while (n_bytes > 0) {
        ssize_t n = write(fd, at, n_bytes);

        if (n < 0 && errno != EINTR) {
            return fail_errno(err, "write", path);
        }
        if (n > 0) {
            at += n;
            n_bytes -= (size_t)n;
        }
    }
    return VXD_OK;
}

static enum vxd_status write_file(int fd, const char *path,
                                  const struct vxd_map_spec *spec,
                                  const struct vxd_hashmap_image *image,
                                  struct vxd_map_file_info *out, struct vxd_err *err)
{
    struct vxd_hashmap_image contents = *image;
    struct section sections[MAX_SECTIONS];
    int n_sections = list_sections(spec, &contents, sections);
    uint8_t head[MAX_HEAD_BYTES];
    struct vxd_sum digest;
    size_t n_head;
    enum vxd_status status;

    if (!vxd_map_file_size(spec, image->n_entries, &out->n_bytes)) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no file is so large");
    }
    n_head = make_head(spec, image, out->n_bytes, head);
    vxd_sum_begin(&digest);
    vxd_sum_add(&digest, head + DIGEST_BEGIN, n_head - SUM_BYTES - DIGEST_BEGIN);
    VXD_TRY(write_all(fd, head, n_head, path, err));
    for (int i = 0; i < n_sections; i++) {
        size_t n_bytes = image->n_entries * sections[i].row_bytes;
        uint64_t sum = vxd_sum_of(sections[i].buffer->ptr, n_bytes);

        vxd_sum_add(&digest, &sum, sizeof sum);
        VXD_TRY(write_all(fd, sections[i].buffer->ptr, n_bytes, path, err));
        VXD_TRY(write_all(fd, &sum, sizeof sum, path, err));
    }
    out->digest = vxd_sum_end(&digest);
    VXD_TRY(write_all(fd, &out->digest, sizeof out->digest, path, err));
    if (fsync(fd) != 0) {
        status = fail_errno(err, "sync", path);
    }
out:
    return status;
}

static enum vxd_status sync_directory(const char *path, struct vxd_err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum vxd_status status = VXD_OK;

    if (fd < 0) {
        return fail_errno(err, "open", path);
    }
    if (fsync(fd) != 0) {
        status = fail_errno(err, "sync", path);
    }
    (void)close(fd);
    return status;
}

/* Syncs the directory's own entry even where the directory exists, since the process that
 * made it may have been killed before it did so. */
static enum vxd_status make_directory(const char *directory, const char *path,
                                      struct vxd_err *err)
{
    if (mkdir(path, 0750) != 0 && errno != EEXIST) {
        return fail_errno(err, "make", path);
    }
    return sync_directory(directory, err);
}

enum vxd_status vxd_map_file_write(const char *directory, const char *name,
                                   const struct vxd_map_spec *spec,
                                   const struct vxd_hashmap_image *image,
                                   struct vxd_map_file_info *out, struct vxd_err *err)
{
    char folder[PATH_BYTES];
    char path[PATH_BYTES];
    char beside[PATH_BYTES];
    enum vxd_status status;
    int fd = -1;

    (void)snprintf(folder, sizeof folder, "%s/maps", directory);
    (void)snprintf(path, sizeof path, "%s/maps/%s.vxm", directory, name);
    (void)snprintf(beside, sizeof beside, "%s/maps/.%s.vxm.new", directory, name);
    VXD_TRY(make_directory(directory, folder, err));
    fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    if (fd < 0) {
        VXD_TRY(fail_errno(err, "make", beside));
    }
    status = write_file(fd, beside, spec, image, out, err);
    if (close(fd) != 0 && status == VXD_OK) {
        status = fail_errno(err, "close", beside);
    }
    if (status == VXD_OK && rename(beside, path) != 0) {
        status = fail_errno(err, "replace", path);
    }
    if (status != VXD_OK) {
        (void)unlink(beside);
        goto out;
    }
    status = sync_directory(folder, err);
out:
    return status;
}

void vxd_map_file_sweep(const char *directory)
{
    char folder[PATH_BYTES];
    DIR *entries;
    const struct dirent *entry;

    (void)snprintf(folder, sizeof folder, "%s/maps", directory);
    entries = opendir(folder);
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        static const char end[] = ".vxm.new";
        size_t n = strlen(entry->d_name);

        if (entry->d_name[0] == '.' && n > sizeof end &&
            strcmp(entry->d_name + n - (sizeof end - 1), end) == 0) {
            (void)unlinkat(dirfd(entries), entry->d_name, 0);
        }
    }
    if (entries != NULL) {
        (void)closedir(entries);
    }
}

/* --- reading --------------------------------------------------------------------------- */

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static enum vxd_status
fail_at(struct vxd_err *err, uint64_t at, const char *format, ...)
{
    char message[160];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return vxd_fail(err, VXD_DATA_LOSS, "file", "damaged at byte %" PRIu64 ": %s", at,
                    message);
}

static enum vxd_status read_all(FILE *file, void *to, size_t n_bytes, uint64_t at,
                                struct vxd_err *err)
{
    size_t n = n_bytes > 0 ? fread(to, 1, n_bytes, file) : 0;

    if (n == n_bytes) {
        return VXD_OK;
    }
    if (ferror(file) != 0) {
        return fail_errno(err, "read", "it");
    }
    return fail_at(err, at + n, "the file ends");
}

/* Whether it is text that at least one zero follows up to the end. */
static bool get_text(const uint8_t *at, size_t n_bytes, char *out)
{
    size_t n = 0;

    while (n < n_bytes && at[n] != 0) {
        n++;
    }
    for (size_t i = n; i < n_bytes; i++) {
        if (at[i] != 0) {
            return false;
        }
    }
    memcpy(out, at, n_bytes);
    return n < n_bytes;
}

static enum vxd_status read_lattice(const uint8_t *head, struct vxd_map_spec *spec,
                                    struct vxd_err *err)
{
    static const uint8_t zeros[304];
    uint32_t flag = get32(head, 68);

    if (flag > 1) {
        return fail_at(err, 68, "%u is no flag of a lattice", (unsigned)flag);
    }
    spec->has_lattice = flag == 1;
    if (!spec->has_lattice) {
        return memcmp(head + 72, zeros, sizeof zeros) == 0
                   ? VXD_OK
                   : fail_at(err, 72, "there is no lattice, but numbers of one");
    }
    memcpy(spec->size_m, head + 72, sizeof spec->size_m);
    memcpy(spec->origin_m, head + 96, sizeof spec->origin_m);
    for (size_t i = 0; i < 3; i++) {
        if (!(spec->size_m[i] > 0) || !isfinite(spec->size_m[i])) {
            return fail_at(err, 72 + 8 * i, "%g is no edge of a voxel", spec->size_m[i]);
        }
        if (!isfinite(spec->origin_m[i])) {
            return fail_at(err, 96 + 8 * i, "the origin is not finite");
        }
    }
    if (!get_text(head + 120, VXD_MAP_FRAME_BYTES, spec->frame_id)) {
        return fail_at(err, 120, "the frame is no text");
    }
    return spec->engine.n_components == 3
               ? VXD_OK
               : fail_at(err, 60, "a lattice needs keys of 3 components");
}

static enum vxd_status read_array(const uint8_t *head, int i, struct vxd_map_spec *spec,
                                  struct vxd_err *err)
{
    size_t at = HEAD_BYTES + (size_t)i * ARRAY_BYTES;
    struct vxd_hashmap_array *array = &spec->engine.values[i];
    size_t n_bytes;

    if (!get_text(head + at, VXD_NAME_BYTES, spec->array_names[i]) ||
        !vxd_is_name(spec->array_names[i])) {
        return fail_at(err, at, "array %d has no proper name", i);
    }
    for (int k = 0; k < i; k++) {
        if (strcmp(spec->array_names[k], spec->array_names[i]) == 0) {
            return fail_at(err, at, "two arrays are called \"%.63s\"",
                           spec->array_names[i]);
        }
    }
    array->dtype = (enum vxd_dtype)get32(head, at + VXD_NAME_BYTES);
    array->n_elements = get32(head, at + VXD_NAME_BYTES + 4);
    n_bytes = vxd_dtype_bytes(array->dtype);
    if (n_bytes == 0 || array->n_elements < 1 ||
        array->n_elements > VXD_HASHMAP_MAX_ROW_BYTES / n_bytes) {
        return fail_at(err, at + VXD_NAME_BYTES, "array %d has %u elements of dtype %u",
                       i, array->n_elements, (unsigned)array->dtype);
    }
    return VXD_OK;
}

/* Reads what the head says, once its sum is right. */
static enum vxd_status read_spec(const uint8_t *head, struct vxd_map_spec *spec,
                                 struct vxd_hashmap_image *image, struct vxd_err *err)
{
    uint64_t n_entries = get64(head, 24);
    uint64_t capacity = get64(head, 32);
    enum vxd_status status = VXD_OK;

    spec->engine.key_dtype = (enum vxd_dtype)get32(head, 56);
    if (spec->engine.key_dtype != VXD_INT16 && spec->engine.key_dtype != VXD_INT32 &&
        spec->engine.key_dtype != VXD_INT64) {
        return fail_at(err, 56, "%u is no dtype of keys",
                       (unsigned)spec->engine.key_dtype);
    }
    if (get32(head, 60) < 1 || get32(head, 60) > VXD_HASHMAP_MAX_COMPONENTS) {
        return fail_at(err, 60, "keys of %u components", get32(head, 60));
    }
    spec->engine.n_components = (int)get32(head, 60);
    if (n_entries != get64(head, DIGEST_BEGIN) || n_entries > capacity ||
        capacity > VXD_HASHMAP_MAX_CAPACITY) {
        return fail_at(err, 24, "%" PRIu64 " entries and a capacity of %" PRIu64,
                       n_entries, capacity);
    }
    VXD_TRY(read_lattice(head, spec, err));
    for (int i = 0; i < spec->engine.n_values; i++) {
        VXD_TRY(read_array(head, i, spec, err));
    }
    spec->engine.capacity = (size_t)capacity;
    image->n_entries = (size_t)n_entries;
    image->erase_epoch = get64(head, 40);
out:
    return status;
}

/* Reads and checks the head. *n_head is its length. */
static enum vxd_status read_head(FILE *file, uint8_t head[MAX_HEAD_BYTES], size_t *n_head,
                                 struct vxd_map_spec *spec, struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(read_all(file, head, HEAD_BYTES, 0, err));
    if (memcmp(head, magic, sizeof magic - 1) != 0) {
        return fail_at(err, 0, "this is no saved map");
    }
    if (get32(head, 8) != LAYOUT_VERSION || get32(head, 12) != RULES_VERSION) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "file",
                        "has version %u.%u, this server reads %d.%d", get32(head, 8),
                        get32(head, 12), LAYOUT_VERSION, RULES_VERSION);
    }
    if (get32(head, 64) > VXD_HASHMAP_MAX_VALUES) {
        return fail_at(err, 64, "%u value arrays", get32(head, 64));
    }
    spec->engine.n_values = (int)get32(head, 64);
    *n_head = head_bytes(spec->engine.n_values);
    VXD_TRY(read_all(file, head + HEAD_BYTES, *n_head - HEAD_BYTES, HEAD_BYTES, err));
    if (get64(head, *n_head - SUM_BYTES) != vxd_sum_of(head, *n_head - SUM_BYTES)) {
        return fail_at(err, *n_head - SUM_BYTES, "the head's sum is wrong");
    }
out:
    return status;
}

static enum vxd_status check_numbers(const struct vxd_hashmap_image *image,
                                     size_t capacity, uint64_t at, struct vxd_err *err)
{
    const int32_t *numbers = image->indices.ptr;

    for (size_t i = 0; i < image->n_entries; i++) {
        if (numbers[i] < 0 || (size_t)numbers[i] >= capacity ||
            (i > 0 && numbers[i] <= numbers[i - 1])) {
            return fail_at(err, at + 4 * i, "%d is no number that may stand here",
                           numbers[i]);
        }
    }
    return VXD_OK;
}

static enum vxd_status read_sections(FILE *file, const uint8_t *head, size_t n_head,
                                     const struct vxd_map_spec *spec,
                                     struct vxd_hashmap_image *image,
                                     struct vxd_map_file_info *out, struct vxd_err *err)
{
    struct section sections[MAX_SECTIONS];
    int n_sections = list_sections(spec, image, sections);
    uint64_t at = n_head;
    struct vxd_sum digest;
    uint64_t sum;
    enum vxd_status status = VXD_OK;

    vxd_sum_begin(&digest);
    vxd_sum_add(&digest, head + DIGEST_BEGIN, n_head - SUM_BYTES - DIGEST_BEGIN);
    for (int i = 0; i < n_sections; i++) {
        size_t n_bytes = image->n_entries * sections[i].row_bytes;

        VXD_TRY(read_all(file, sections[i].buffer->ptr, n_bytes, at, err));
        VXD_TRY(read_all(file, &sum, sizeof sum, at + n_bytes, err));
        if (sum != vxd_sum_of(sections[i].buffer->ptr, n_bytes)) {
            VXD_TRY(fail_at(err, at, "the sum of the section \"%s\" is wrong",
                            sections[i].what));
        }
        vxd_sum_add(&digest, &sum, sizeof sum);
        if (i == 0) {
            VXD_TRY(check_numbers(image, spec->engine.capacity, at, err));
        }
        at += n_bytes + SUM_BYTES;
    }
    out->digest = vxd_sum_end(&digest);
    VXD_TRY(read_all(file, &sum, sizeof sum, at, err));
    if (sum != out->digest) {
        VXD_TRY(fail_at(err, at, "the digest is wrong"));
    }
out:
    return status;
}

/* Returns the size of the open file, which is at its start again afterwards. */
static enum vxd_status measure(FILE *file, uint64_t *out, struct vxd_err *err)
{
    off_t end;

    if (fseeko(file, 0, SEEK_END) != 0 || (end = ftello(file)) < 0 ||
        fseeko(file, 0, SEEK_SET) != 0) {
        return fail_errno(err, "measure", "it");
    }
    *out = (uint64_t)end;
    return VXD_OK;
}

enum vxd_status vxd_map_file_parse(struct vxd_context *context, FILE *file,
                                   struct vxd_map_spec *spec,
                                   struct vxd_hashmap_image *image,
                                   struct vxd_map_file_info *out, struct vxd_err *err)
{
    uint8_t head[MAX_HEAD_BYTES];
    struct vxd_hashmap_image described = {0};
    uint64_t n_bytes = 0;
    size_t n_head = 0;
    enum vxd_status status;

    memset(spec, 0, sizeof *spec);
    memset(image, 0, sizeof *image);
    VXD_TRY(measure(file, &out->n_bytes, err));
    VXD_TRY(read_head(file, head, &n_head, spec, err));
    VXD_TRY(read_spec(head, spec, &described, err));
    if (!vxd_map_file_size(spec, described.n_entries, &n_bytes) ||
        n_bytes != out->n_bytes || n_bytes != get64(head, 16)) {
        VXD_TRY(fail_at(err, 16,
                        "the file has %" PRIu64 " bytes, its head says %" PRIu64
                        " and %" PRIu64 " entries",
                        out->n_bytes, get64(head, 16), (uint64_t)described.n_entries));
    }
    VXD_TRY(
        vxd_hashmap_image_alloc(context, &spec->engine, described.n_entries, image, err));
    image->erase_epoch = described.erase_epoch;
    status = read_sections(file, head, n_head, spec, image, out, err);
    if (status != VXD_OK) {
        vxd_hashmap_image_free(image);
    }
out:
    return status;
}

enum vxd_status vxd_map_file_read(struct vxd_context *context, const char *directory,
                                  const char *name, struct vxd_map_spec *spec,
                                  struct vxd_hashmap_image *image,
                                  struct vxd_map_file_info *out, struct vxd_err *err)
{
    char path[PATH_BYTES];
    enum vxd_status status;
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/maps/%s.vxm", directory, name);
    file = fopen(path, "rb");
    if (file == NULL) {
        return errno == ENOENT ? vxd_fail(err, VXD_NOT_FOUND, "file",
                                          "there is no saved map \"%s\"", name)
                               : fail_errno(err, "open", path);
    }
    status = vxd_map_file_parse(context, file, spec, image, out, err);
    (void)fclose(file);
    return status;
}
