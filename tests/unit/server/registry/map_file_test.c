// SPDX-License-Identifier: Apache-2.0
/* Saved maps: the golden file, every byte of it damaged in turn, every length; and the sums. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/xxh64.h"
#include "server/registry/maps/maps.h"

#define GOLDEN VOXELD_SOURCE_DIR "/tests/data/map_v1.vxm"

static const struct vxd_context_options cpu = {.backend = VXD_BACKEND_CPU,
                                               .n_threads = 1,
                                               .device_bytes = 64 << 20,
                                               .host_bytes = 64 << 20};

/* What was synced and renamed, in order: the functions below take the place of libc's. */
static char steps[512];

static void note(const char *what, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t n = strlen(steps);

    (void)snprintf(steps + n, sizeof steps - n, "%s %s;", what,
                   slash != NULL ? slash + 1 : path);
}

int fsync(int fd)
{
    char link[64];
    char path[256];
    ssize_t n;

    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    note("sync", path);
    return 0;
}

int rename(const char *from, const char *to)
{
    note("rename", to);
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

static void test_sum_is_xxh64(void)
{
    static uint8_t bytes[1000];
    struct vxd_sum sum;

    CHECK(vxd_sum_of("", 0) == UINT64_C(0xef46db3751d8e999));
    CHECK(vxd_sum_of("a", 1) == UINT64_C(0xd24ec4f1a98c6e5b));
    CHECK(vxd_sum_of("abc", 3) == UINT64_C(0x44bc2cf5ad770999));
    CHECK(vxd_sum_of("Nobody inspects the spammish repetition", 39) ==
          UINT64_C(0xfbcea83c8a378bf1));
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(i * 37);
    }
    for (size_t step = 1; step < 100; step++) { /* in pieces as well */
        vxd_sum_begin(&sum);
        for (size_t at = 0; at < sizeof bytes; at += step) {
            vxd_sum_add(&sum, bytes + at,
                        at + step < sizeof bytes ? step : sizeof bytes - at);
        }
        CHECK(vxd_sum_end(&sum) == vxd_sum_of(bytes, sizeof bytes));
    }
}

/* The map of the golden file: a lattice, two arrays, holes among its numbers. */
static struct vxd_map_spec golden_spec(void)
{
    struct vxd_map_spec spec = {.has_lattice = true,
                                .size_m = {0.1, 0.2, 0.4},
                                .origin_m = {100, -50, 1.5},
                                .frame_id = "map",
                                .array_names = {"count", "mean"}};

    spec.engine.key_dtype = VXD_INT32;
    spec.engine.n_components = 3;
    spec.engine.n_values = 2;
    spec.engine.capacity = 16;
    spec.engine.values[0] = (struct vxd_hashmap_array){VXD_UINT64, 1};
    spec.engine.values[1] = (struct vxd_hashmap_array){VXD_FLOAT32, 3};
    return spec;
}

static enum vxd_status golden_image(struct vxd_context *context,
                                    struct vxd_hashmap_image *image)
{
    static const int32_t numbers[5] = {0, 1, 3, 7, 12};
    struct vxd_map_spec spec = golden_spec();
    enum vxd_status status =
        vxd_hashmap_image_alloc(context, &spec.engine, 5, image, NULL);

    if (status != VXD_OK) {
        return status;
    }
    image->erase_epoch = 4;
    memcpy(image->indices.ptr, numbers, sizeof numbers);
    for (int i = 0; i < 15; i++) {
        ((int32_t *)image->keys.ptr)[i] = (i - 7) * 1001;
        ((float *)image->values[1].ptr)[i] = (float)i / 4;
    }
    for (int i = 0; i < 5; i++) {
        ((uint64_t *)image->values[0].ptr)[i] = UINT64_C(1) << (12 * i);
    }
    return VXD_OK;
}

static uint8_t *read_bytes(const char *path, size_t *n_bytes)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(1 << 20);

    *n_bytes = 0;
    if (file != NULL && bytes != NULL) {
        *n_bytes = fread(bytes, 1, 1 << 20, file);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return bytes;
}

static enum vxd_status parse(struct vxd_context *context, uint8_t *bytes, size_t n_bytes,
                             struct vxd_map_file_info *info, struct vxd_err *err)
{
    FILE *file = fmemopen(bytes, n_bytes, "rb");
    struct vxd_hashmap_image image = {0};
    struct vxd_map_spec spec;
    enum vxd_status status;

    if (file == NULL) {
        return VXD_UNKNOWN;
    }
    status = vxd_map_file_parse(context, file, &spec, &image, info, err);
    if (status == VXD_OK) {
        vxd_hashmap_image_free(&image);
    }
    (void)fclose(file);
    return status;
}

static void test_golden_file_is_read_and_written_byte_by_byte(void)
{
    char directory[] = "/tmp/vxd-map-XXXXXX";
    char path[64];
    struct vxd_context *context = NULL;
    struct vxd_map_spec expected = golden_spec();
    struct vxd_map_spec spec;
    struct vxd_hashmap_image image = {0};
    struct vxd_hashmap_image read = {0};
    struct vxd_map_file_info written = {0};
    struct vxd_map_file_info info = {0};
    struct vxd_queue *queue = NULL;
    struct vxd_hashmap *map = NULL;
    size_t n_golden, n_written;
    uint8_t *golden;
    uint8_t *bytes;
    FILE *file;

    REQUIRE(mkdtemp(directory) != NULL);
    REQUIRE(vxd_context_create(&cpu, &context, NULL) == VXD_OK);
    REQUIRE(vxd_queue_create(context, &queue, NULL) == VXD_OK);
    REQUIRE(golden_image(context, &image) == VXD_OK);
    CHECK_INT(vxd_map_file_write(directory, "m", &expected, &image, &written, NULL),
              VXD_OK);
    (void)snprintf(path, sizeof path, "%s/maps/m.vxm", directory);
    bytes = read_bytes(path, &n_written);
    golden = read_bytes(GOLDEN, &n_golden);
    CHECK_INT(n_written, written.n_bytes);
    CHECK_INT(n_golden, n_written);
    CHECK(n_golden == n_written && memcmp(golden, bytes, n_golden) == 0);
    file = fopen(GOLDEN, "rb");
    REQUIRE(file != NULL);
    CHECK_INT(vxd_map_file_parse(context, file, &spec, &read, &info, NULL), VXD_OK);
    (void)fclose(file);
    CHECK(vxd_map_spec_equal(&spec, &expected));
    CHECK_INT(read.n_entries, 5);
    CHECK_INT(read.erase_epoch, 4);
    CHECK(info.digest == written.digest);
    /* And it is a map. */
    CHECK_INT(vxd_hashmap_import(queue, &read, &map, NULL), VXD_OK);
    vxd_hashmap_destroy(queue, map);
    vxd_hashmap_image_free(&read);
    /* Neither room nor epoch is content. */
    image.spec.capacity = 1000;
    image.erase_epoch = 9;
    CHECK_INT(vxd_map_file_write(directory, "m", &expected, &image, &info, NULL), VXD_OK);
    CHECK(info.digest == written.digest);
    ((float *)image.values[1].ptr)[0] = 7;
    CHECK_INT(vxd_map_file_write(directory, "m", &expected, &image, &info, NULL), VXD_OK);
    CHECK(info.digest != written.digest);
    vxd_hashmap_image_free(&image);
    vxd_queue_destroy(queue);
    vxd_context_destroy(context);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/maps", directory);
    (void)rmdir(path);
    (void)rmdir(directory);
    free(bytes);
    free(golden);
}

static void test_file_damaged_anywhere_is_data_loss(void)
{
    struct vxd_context *context = NULL;
    struct vxd_map_file_info info;
    size_t n_bytes;
    uint8_t *bytes = read_bytes(GOLDEN, &n_bytes);

    REQUIRE(n_bytes > 376);
    REQUIRE(vxd_context_create(&cpu, &context, NULL) == VXD_OK);
    CHECK_INT(parse(context, bytes, n_bytes, &info, NULL), VXD_OK);
    for (size_t i = 0; i < n_bytes; i++) {
        struct vxd_err err = {0};
        enum vxd_status status;

        bytes[i] ^= 0x10;
        status = parse(context, bytes, n_bytes, &info, &err);
        CHECK(status == VXD_DATA_LOSS ||
              (status == VXD_FAILED_PRECONDITION && i >= 8 && i < 16));
        CHECK(err.code == status && err.message[0] != '\0');
        bytes[i] ^= 0x10;
    }
    for (size_t n = 1; n < n_bytes; n++) {
        CHECK_INT(parse(context, bytes, n, &info, NULL), VXD_DATA_LOSS);
    }
    vxd_context_destroy(context);
    free(bytes);
}

/* The file before its name, the name before the reply; and the folder's own entry, though
 * another process made the folder and may have been killed before it could sync that. */
static void test_saved_file_and_both_directories_are_synced_in_order(void)
{
    char directory[] = "/tmp/vxd-map-XXXXXX";
    char folder[64];
    char path[80];
    char expected[256];
    struct vxd_context *context = NULL;
    struct vxd_map_spec spec = golden_spec();
    struct vxd_hashmap_image image = {0};
    struct vxd_map_file_info info = {0};

    REQUIRE(mkdtemp(directory) != NULL);
    REQUIRE(vxd_context_create(&cpu, &context, NULL) == VXD_OK);
    REQUIRE(golden_image(context, &image) == VXD_OK);
    (void)snprintf(folder, sizeof folder, "%s/maps", directory);
    (void)snprintf(path, sizeof path, "%s/m.vxm", folder);
    (void)snprintf(expected, sizeof expected,
                   "sync %s;sync .m.vxm.new;rename m.vxm;sync maps;",
                   strrchr(directory, '/') + 1);
    REQUIRE(mkdir(folder, 0750) == 0);
    for (int i = 0; i < 2; i++) {
        steps[0] = '\0';
        CHECK_INT(vxd_map_file_write(directory, "m", &spec, &image, &info, NULL), VXD_OK);
        CHECK(strcmp(steps, expected) == 0);
    }
    vxd_hashmap_image_free(&image);
    vxd_context_destroy(context);
    (void)unlink(path);
    (void)rmdir(folder);
    (void)rmdir(directory);
}

/* A limit on the size of files stands for a full disk. */
static void test_disk_full_is_resource_exhausted_and_leaves_the_older_file(void)
{
    char directory[] = "/tmp/vxd-map-XXXXXX";
    char path[80];
    struct rlimit before;
    struct rlimit little;
    struct vxd_context *context = NULL;
    struct vxd_map_spec spec = golden_spec();
    struct vxd_hashmap_image image = {0};
    struct vxd_map_file_info info = {0};
    size_t n_before, n_after;
    uint8_t *old;
    uint8_t *now;

    REQUIRE(mkdtemp(directory) != NULL);
    REQUIRE(vxd_context_create(&cpu, &context, NULL) == VXD_OK);
    REQUIRE(golden_image(context, &image) == VXD_OK);
    CHECK_INT(vxd_map_file_write(directory, "m", &spec, &image, &info, NULL), VXD_OK);
    (void)snprintf(path, sizeof path, "%s/maps/m.vxm", directory);
    old = read_bytes(path, &n_before);
    REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
    little = before;
    little.rlim_cur = 600;
    (void)signal(SIGXFSZ, SIG_IGN);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &little) == 0);
    ((float *)image.values[1].ptr)[0] = 7;
    CHECK_INT(vxd_map_file_write(directory, "m", &spec, &image, &info, NULL),
              VXD_RESOURCE_EXHAUSTED);
    (void)setrlimit(RLIMIT_FSIZE, &before);
    now = read_bytes(path, &n_after);
    CHECK(n_before > 600 && n_before == n_after && memcmp(old, now, n_before) == 0);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/maps", directory);
    CHECK(rmdir(path) == 0); /* nothing else was left in it */
    (void)rmdir(directory);
    vxd_hashmap_image_free(&image);
    vxd_context_destroy(context);
    free(old);
    free(now);
}

static void test_directory_missing_is_unavailable(void)
{
    struct vxd_context *context = NULL;
    struct vxd_map_spec spec = golden_spec();
    struct vxd_hashmap_image image = {0};
    struct vxd_map_file_info info;
    struct vxd_err err = {0};

    REQUIRE(vxd_context_create(&cpu, &context, NULL) == VXD_OK);
    REQUIRE(golden_image(context, &image) == VXD_OK);
    CHECK_INT(vxd_map_file_write("/nonexistent", "m", &spec, &image, &info, &err),
              VXD_UNAVAILABLE);
    CHECK(strstr(err.message, "/nonexistent/maps") != NULL);
    vxd_hashmap_image_free(&image);
    CHECK_INT(vxd_map_file_read(context, "/nonexistent", "m", &spec, &image, &info, &err),
              VXD_NOT_FOUND);
    vxd_context_destroy(context);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_sum_is_xxh64),
    VXD_TEST(test_golden_file_is_read_and_written_byte_by_byte),
    VXD_TEST(test_file_damaged_anywhere_is_data_loss),
    VXD_TEST(test_saved_file_and_both_directories_are_synced_in_order),
    VXD_TEST(test_disk_full_is_resource_exhausted_and_leaves_the_older_file),
    VXD_TEST(test_directory_missing_is_unavailable),
};

VXD_TEST_MAIN(tests)
