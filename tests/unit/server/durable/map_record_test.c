// SPDX-License-Identifier: Apache-2.0
/* Records and descriptions of durable maps: what is packed comes back, damage is refused, and the
 * files of the first release stay readable: tests/data/map_record_v1.bin (records, each behind
 * its length) and map_snapshot_v1.vxs. */
#include "tests/support/test.h"

#include <unistd.h>

#include "gpu/core/core.h"
#include "proto/base/name.h"
#include "server/durable/data_dir/data_dir.h"
#include "server/durable/record/record.h"
#include "server/registry/maps/maps_internal.h"
#include "tests/support/durable/fault_vfs.h"
#include "tests/support/server/server_checks.h"

VXD_TEST_HELPERS

enum {
    N = 300
};

static const enum vxd_dtype key_dtypes[] = {VXD_INT16, VXD_INT32, VXD_INT64};

static uint64_t next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 20;
}

/* Arrays of a record, with room for any. */
struct inputs {
    uint8_t keys[N * VXD_HASHMAP_MAX_COMPONENTS * 8];
    int32_t numbers[N];
    uint8_t rows[2][N * 24];
};

/* The kind-th record of n entries. */
static struct vxd_map_record make(struct inputs *inputs, int kind, size_t n,
                                  uint64_t seed)
{
    struct vxd_map_record record = {.kind = (enum vxd_map_record_kind)kind,
                                    .unix_ns = 1000000007 - (int64_t)seed,
                                    .author = "uid-0",
                                    .client = "robot",
                                    .n = kind == VXD_MAP_RECORD_CLEAR ? 0 : n,
                                    .keys = inputs->keys,
                                    .key_dtype = key_dtypes[seed % 3],
                                    .n_components = 1 + (int)(seed % 8)};
    uint64_t state = seed;

    for (size_t i = 0; i < sizeof inputs->keys; i++) {
        inputs->keys[i] = (uint8_t)next(&state);
    }
    for (size_t i = 0; i < N; i++) {
        inputs->numbers[i] = (int32_t)(next(&state) % 100000);
    }
    for (size_t i = 0; i < sizeof inputs->rows; i++) {
        inputs->rows[i / sizeof inputs->rows[0]][i % sizeof inputs->rows[0]] =
            (uint8_t)next(&state);
    }
    if (kind == VXD_MAP_RECORD_UPDATE && seed % 2 == 0) {
        record.numbers = inputs->numbers;
    }
    record.inserts = kind == VXD_MAP_RECORD_UPDATE && seed % 4 == 1;
    if (kind == VXD_MAP_RECORD_UPDATE) {
        record.combine = (enum vxd_hash_combine)(seed % 4);
    }
    if (kind == VXD_MAP_RECORD_UPDATE || kind == VXD_MAP_RECORD_INSERT) {
        record.rows[1] = (struct vxd_map_record_rows){inputs->rows[0], VXD_FLOAT32, 3};
        record.rows[15] = (struct vxd_map_record_rows){inputs->rows[1], VXD_UINT64, 1};
    }
    return record;
}

static void check_equal(const struct vxd_map_record *a, const struct vxd_map_record *b)
{
    CHECK_INT(a->kind, b->kind);
    CHECK_INT(a->unix_ns, b->unix_ns);
    CHECK_STR(a->author, b->author);
    CHECK_STR(a->client, b->client);
    CHECK_INT(a->n, b->n);
    CHECK_INT(a->inserts, b->inserts);
    CHECK_INT(a->combine, b->combine);
    CHECK_INT(a->numbers != NULL, b->numbers != NULL);
    if (a->numbers != NULL && b->numbers != NULL) {
        CHECK(memcmp(a->numbers, b->numbers, a->n * sizeof(int32_t)) == 0);
    } else if (a->kind != VXD_MAP_RECORD_CLEAR) {
        CHECK_INT(a->key_dtype, b->key_dtype);
        CHECK_INT(a->n_components, b->n_components);
        CHECK(memcmp(a->keys, b->keys,
                     a->n * (size_t)a->n_components * vxd_dtype_bytes(a->key_dtype)) ==
              0);
    }
    for (int i = 0; i < VXD_HASHMAP_MAX_VALUES; i++) {
        CHECK_INT(a->rows[i].rows != NULL, b->rows[i].rows != NULL);
        if (a->rows[i].rows != NULL && b->rows[i].rows != NULL) {
            CHECK_INT(a->rows[i].dtype, b->rows[i].dtype);
            CHECK_INT(a->rows[i].n_elements, b->rows[i].n_elements);
            CHECK(memcmp(a->rows[i].rows, b->rows[i].rows,
                         a->n * a->rows[i].n_elements *
                             vxd_dtype_bytes(a->rows[i].dtype)) == 0);
        }
    }
}

static void test_record_of_any_kind_comes_back(void)
{
    static const size_t sizes[] = {0, 1, 2, 159, 160, N};
    static struct inputs inputs;

    for (uint64_t seed = 0; seed < 48; seed++) {
        for (int kind = VXD_MAP_RECORD_INSERT; kind <= VXD_MAP_RECORD_CLEAR; kind++) {
            struct vxd_map_record record = make(&inputs, kind, sizes[seed % 6], seed);
            struct vxd_map_record_decoded decoded;
            struct vxd_record_bytes bytes = {0};

            CHECK_INT(vxd_map_record_encode(&record, &bytes, NULL), VXD_OK);
            CHECK_INT(vxd_map_record_decode(bytes.bytes, bytes.n_bytes,
                                            VXD_MAP_RULES_VERSION, 0, &decoded, NULL),
                      VXD_OK);
            check_equal(&record, &decoded.record);
            vxd_map_record_decoded_free(&decoded);
            vxd_record_bytes_free(&bytes);
        }
    }
}

static void test_neighbouring_keys_take_few_bytes(void)
{
    static int32_t keys[3 * 20000];
    struct vxd_map_record record = {.kind = VXD_MAP_RECORD_ERASE,
                                    .n = 20000,
                                    .keys = keys,
                                    .key_dtype = VXD_INT32,
                                    .n_components = 3};
    struct vxd_record_bytes bytes = {0};
    uint64_t state = 1;

    for (size_t i = 3; i < 60000; i++) {
        keys[i] = keys[i - 3] + (int32_t)(next(&state) % 5) - 2;
    }
    CHECK_INT(vxd_map_record_encode(&record, &bytes, NULL), VXD_OK);
    CHECK(bytes.n_bytes < sizeof keys / 6);
    vxd_record_bytes_free(&bytes);
}

static void test_damaged_records_are_refused_or_whole(void)
{
    static struct inputs inputs;
    uint64_t state = 7;

    for (int kind = VXD_MAP_RECORD_INSERT; kind <= VXD_MAP_RECORD_CLEAR; kind++) {
        struct vxd_map_record record = make(&inputs, kind, 200, 5);
        struct vxd_map_record_decoded decoded;
        struct vxd_record_bytes bytes = {0};
        struct vxd_err err = {0};

        REQUIRE(vxd_map_record_encode(&record, &bytes, NULL) == VXD_OK);
        for (size_t n = 0; n < bytes.n_bytes; n++) {
            CHECK_INT(vxd_map_record_decode(bytes.bytes, n, VXD_MAP_RULES_VERSION, 0,
                                            &decoded, &err),
                      VXD_DATA_LOSS);
            CHECK(strstr(err.message, "damaged at byte") != NULL);
        }
        for (int i = 0; i < 2000; i++) {
            size_t at = (size_t)(next(&state) % bytes.n_bytes);
            uint8_t before = bytes.bytes[at];

            bytes.bytes[at] = (uint8_t)next(&state);
            if (vxd_map_record_decode(bytes.bytes, bytes.n_bytes, VXD_MAP_RULES_VERSION,
                                      1 << 22, &decoded, &err) == VXD_OK) {
                vxd_map_record_decoded_free(&decoded);
            } else {
                CHECK(err.code == VXD_DATA_LOSS || err.code == VXD_RESOURCE_EXHAUSTED);
            }
            bytes.bytes[at] = before;
        }
        CHECK_INT(vxd_map_record_decode(bytes.bytes, bytes.n_bytes,
                                        VXD_MAP_RULES_VERSION + 1, 0, &decoded, &err),
                  VXD_FAILED_PRECONDITION);
        CHECK_INT(vxd_map_record_decode(bytes.bytes, bytes.n_bytes, 1, 0, &decoded, &err),
                  VXD_FAILED_PRECONDITION);
        vxd_record_bytes_free(&bytes);
    }
}

/* The last bytes of a record with one row of one array: the array's number, its type, how many
 * elements a row has, and the row. */
static void test_record_of_an_array_that_cannot_be_is_refused(void)
{
    static const struct {
        size_t from_end;
        uint8_t byte;
    } lies[] = {{4, VXD_HASHMAP_MAX_VALUES}, {4, 255}, {3, 0}, {3, 13}, {2, 0}};
    const uint8_t row = 9;
    const int32_t key = 5;
    struct vxd_map_record record = {.kind = VXD_MAP_RECORD_INSERT,
                                    .author = "uid-0",
                                    .client = "robot",
                                    .n = 1,
                                    .keys = &key,
                                    .key_dtype = VXD_INT32,
                                    .n_components = 1};
    struct vxd_map_record_decoded decoded;
    struct vxd_record_bytes bytes = {0};
    const uint8_t *end;

    record.rows[VXD_HASHMAP_MAX_VALUES - 1] =
        (struct vxd_map_record_rows){&row, VXD_UINT8, 1};
    REQUIRE(vxd_map_record_encode(&record, &bytes, NULL) == VXD_OK);
    end = bytes.bytes + bytes.n_bytes;
    CHECK(end[-4] == VXD_HASHMAP_MAX_VALUES - 1 && end[-3] == VXD_UINT8 && end[-2] == 1 &&
          end[-1] == row);
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        uint8_t *lie = &bytes.bytes[bytes.n_bytes - lies[i].from_end];
        uint8_t before = *lie;

        *lie = lies[i].byte;
        CHECK_INT(vxd_map_record_decode(bytes.bytes, bytes.n_bytes, VXD_MAP_RULES_VERSION,
                                        0, &decoded, NULL),
                  VXD_DATA_LOSS);
        *lie = before;
    }
    CHECK_INT(vxd_map_record_decode(bytes.bytes, bytes.n_bytes, VXD_MAP_RULES_VERSION, 0,
                                    &decoded, NULL),
              VXD_OK);
    check_equal(&record, &decoded.record);
    vxd_map_record_decoded_free(&decoded);
    vxd_record_bytes_free(&bytes);
}

static struct vxd_map_described description(void)
{
    struct vxd_map_described map = {
        .base = {.terms = {.name = "yard",
                           .owner = "uid-0",
                           .max_bytes = 1 << 20,
                           .durable = true,
                           .fsync = VXD_FSYNC_EVERYSEC,
                           .journal_max_bytes = 12345},
                 .generation = UINT64_C(1795312032571326981),
                 .created_unix_ns = INT64_C(1795312032571326981)},
        .spec = {.engine = {.key_dtype = VXD_INT32,
                            .n_components = 3,
                            .n_values = 2,
                            .values = {{VXD_UINT64, 1}, {VXD_FLOAT32, 3}}},
                 .array_names = {"count", "mean"},
                 .has_lattice = true,
                 .size_m = {0.1, 0.2, 0.3},
                 .origin_m = {-1, 0, 7},
                 .frame_id = "hall"},
        .first_epoch = UINT64_C(1795312032571330)};

    return map;
}

static void test_damaged_descriptions_are_refused(void)
{
    struct vxd_map_described map = description();
    struct vxd_map_described read;
    struct vxd_bytes_out bytes = {0};
    struct vxd_err err = {0};

    vxd_map_describe(&bytes, &map);
    REQUIRE(!bytes.is_out_of_memory);
    CHECK_INT(vxd_map_read_description(bytes.bytes, bytes.n, &read, &err), VXD_OK);
    CHECK_STR(read.base.terms.name, "yard");
    CHECK(vxd_map_spec_equal(&read.spec, &map.spec));
    CHECK(read.first_epoch == map.first_epoch &&
          read.base.generation == map.base.generation);
    CHECK_INT(read.base.terms.fsync, VXD_FSYNC_EVERYSEC);
    for (size_t n = 0; n < bytes.n; n++) {
        CHECK_INT(vxd_map_read_description(bytes.bytes, n, &read, &err), VXD_DATA_LOSS);
    }
    for (size_t i = 0; i < bytes.n; i++) {
        bytes.bytes[i] ^= 0xff;
        (void)vxd_map_read_description(bytes.bytes, bytes.n, &read, &err);
        bytes.bytes[i] ^= 0xff;
    }
    free(bytes.bytes);
}

static void test_family_names_are_short_and_their_own(void)
{
    char a[VXD_JOURNAL_NAME_BYTES], b[VXD_JOURNAL_NAME_BYTES];
    char name[VXD_NAME_BYTES];
    struct vxd_journal_family family = {0};

    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    vxd_registry_family_name(&vxd_maps_kind, name, a);
    name[sizeof name - 2] = 'y';
    vxd_registry_family_name(&vxd_maps_kind, name, b);
    CHECK(strcmp(a, b) != 0 && strlen(a) < VXD_JOURNAL_NAME_BYTES);
    vxd_registry_family_name(&vxd_maps_kind, "yard", family.name);
    CHECK_STR(family.name, "map:yard");
    CHECK(vxd_registry_is_of_kind(&vxd_maps_kind, &family));
    (void)snprintf(family.name, sizeof family.name, "map");
    CHECK(!vxd_registry_is_of_kind(&vxd_maps_kind, &family));
}

/* --- golden files -------------------------------------------------------------------------- */

static uint8_t *read_file(const char *path, size_t *n_bytes)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = NULL;

    if (file != NULL) {
        bytes = malloc(1 << 20);
        *n_bytes = bytes != NULL ? fread(bytes, 1, 1 << 20, file) : 0;
        (void)fclose(file);
    }
    return bytes;
}

/* Records of every kind, each behind 4 bytes of its length. With VOXELD_WRITE_GOLDEN they are
 * written anew. */
static void test_records_are_the_golden_ones(void)
{
    static const char path[] = VOXELD_SOURCE_DIR "/tests/data/map_record_v1.bin";
    static struct inputs inputs;
    struct vxd_bytes_out all = {0};
    size_t n_bytes = 0;
    uint8_t *golden;

    for (uint64_t seed = 0; seed < 12; seed++) {
        int kind = VXD_MAP_RECORD_INSERT + (int)(seed % 4);
        struct vxd_map_record record = make(&inputs, kind, seed == 3 ? 0 : 40, seed);
        struct vxd_record_bytes bytes = {0};
        uint32_t n;

        REQUIRE(vxd_map_record_encode(&record, &bytes, NULL) == VXD_OK);
        n = (uint32_t)bytes.n_bytes;
        vxd_bytes_put(&all, &n, sizeof n);
        vxd_bytes_put(&all, bytes.bytes, bytes.n_bytes);
        vxd_record_bytes_free(&bytes);
    }
    if (getenv("VOXELD_WRITE_GOLDEN") != NULL) {
        FILE *file = fopen(path, "wb");

        REQUIRE(file != NULL && fwrite(all.bytes, 1, all.n, file) == all.n);
        (void)fclose(file);
    }
    golden = read_file(path, &n_bytes);
    REQUIRE(golden != NULL);
    CHECK(n_bytes == all.n && memcmp(golden, all.bytes, n_bytes) == 0);
    free(golden);
    free(all.bytes);
}

/* A map of a few entries with a hole among their numbers. */
static enum vxd_status make_entries(struct vxd_queue *queue, struct vxd_hashmap *hashmap)
{
    static const int32_t keys[] = {1, 2, 3, -1, -2, -3, 7, 7, 7, 1 << 20, 0, -(1 << 20)};
    static const uint64_t counts[] = {5, UINT64_MAX, 7, 8};
    static const float means[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12.5F};
    const void *const values[] = {counts, means};
    struct vxd_hashmap_insert_args args = {
        .keys = keys, .n = 4, .values = values, .order = VXD_HASH_FIRST};
    enum vxd_status status;

    VXD_TRY(vxd_hashmap_prepare(queue, hashmap, keys, 4, &args.max_new, NULL));
    VXD_TRY(vxd_hashmap_insert(queue, hashmap, &args, NULL));
    VXD_TRY(vxd_hashmap_erase(queue, hashmap, keys + 3, 1, VXD_HASH_FIRST, NULL, NULL));
    status = vxd_queue_wait(queue, NULL);
out:
    return status;
}

static void write_golden(const struct vxd_data_dir *dir, struct vxd_queue *queue,
                         const struct vxd_map_described *map)
{
    const struct vxd_snapshot_head head = {.family = 1,
                                           .name = "map:yard",
                                           .epoch = map->base.generation,
                                           .sequence = 9,
                                           .rules_version = VXD_MAP_RULES_VERSION,
                                           .unix_ns = 1795312032};
    struct vxd_hashmap_spec spec = map->spec.engine;
    struct vxd_snapshot_writer *writer = NULL;
    struct vxd_hashmap *hashmap = NULL;
    uint64_t keep_from;

    spec.capacity = 16;
    REQUIRE(vxd_hashmap_create(queue, &spec, &hashmap, NULL) == VXD_OK);
    REQUIRE(make_entries(queue, hashmap) == VXD_OK);
    REQUIRE(vxd_snapshot_begin(dir, &head, &writer, NULL) == VXD_OK);
    CHECK_INT(vxd_map_write_snapshot(writer, map, queue, hashmap, NULL), VXD_OK);
    CHECK_INT(vxd_snapshot_finish(writer, NULL, &keep_from, NULL), VXD_OK);
    vxd_hashmap_destroy(queue, hashmap);
}

static void check_golden_map(struct vxd_queue *queue, struct vxd_hashmap *hashmap)
{
    struct vxd_hashmap_image image = {0};
    const int32_t *numbers;
    const uint64_t *counts;
    const float *means;

    REQUIRE(vxd_hashmap_export(queue, hashmap, &image, NULL) == VXD_OK);
    numbers = image.indices.ptr;
    counts = image.values[0].ptr;
    means = image.values[1].ptr;
    CHECK_INT(image.n_entries, 3);
    CHECK(numbers[0] == 0 && numbers[1] == 2 && numbers[2] == 3);
    CHECK(((const int32_t *)image.keys.ptr)[8] == -(1 << 20));
    CHECK(counts[0] == 5 && counts[1] == 7 && counts[2] == 8 && means[8] > 12.4F);
    CHECK_INT(image.erase_epoch, 1);
    vxd_hashmap_image_free(&image);
}

static void test_snapshot_file_is_the_golden_one(void)
{
    static const char golden_path[] = VOXELD_SOURCE_DIR "/tests/data/map_snapshot_v1.vxs";
    const struct vxd_context_options options = {.backend = VXD_BACKEND_CPU,
                                                .n_threads = 2};
    struct vxd_map_described map = description();
    char folder[] = "/tmp/vxd_map_golden_XXXXXX";
    struct vxd_snapshot_reader *reader = NULL;
    struct vxd_data_dir dir = {.lock = -1};
    struct vxd_context *context;
    struct vxd_queue *queue;
    struct vxd_hashmap *hashmap = NULL;
    uint8_t *made, *golden;
    size_t n_made = 0, n_golden = 0;
    char path[160];

    REQUIRE(mkdtemp(folder) != NULL);
    REQUIRE(vxd_data_dir_open(NULL, folder, &dir, NULL) == VXD_OK);
    REQUIRE(vxd_context_create(&options, &context, NULL) == VXD_OK);
    REQUIRE(vxd_queue_create(context, &queue, NULL) == VXD_OK);
    write_golden(&dir, queue, &map);
    (void)snprintf(path, sizeof path, "%s/snapshots/00000001.0000000000000009.vxs",
                   folder);
    made = read_file(path, &n_made);
    REQUIRE(made != NULL);
    if (getenv("VOXELD_WRITE_GOLDEN") != NULL) {
        FILE *file = fopen(golden_path, "wb");

        REQUIRE(file != NULL && fwrite(made, 1, n_made, file) == n_made);
        (void)fclose(file);
    }
    golden = read_file(golden_path, &n_golden);
    REQUIRE(golden != NULL);
    CHECK(n_made == n_golden && memcmp(made, golden, n_made) == 0);
    CHECK_INT(vxd_snapshot_open(&dir, 1, 9, &reader, NULL), VXD_OK);
    CHECK_INT(vxd_map_read_snapshot(reader, &map, queue, &hashmap, NULL), VXD_OK);
    CHECK_INT(vxd_snapshot_read_end(reader, NULL), VXD_OK);
    check_golden_map(queue, hashmap);
    vxd_snapshot_close(reader);
    /* Of a map with other arrays it is none. */
    map.spec.engine.values[0].n_elements = 2;
    REQUIRE(vxd_snapshot_open(&dir, 1, 9, &reader, NULL) == VXD_OK);
    vxd_hashmap_destroy(queue, hashmap);
    CHECK_INT(vxd_map_read_snapshot(reader, &map, queue, &hashmap, NULL), VXD_DATA_LOSS);
    vxd_snapshot_close(reader);
    free(made);
    free(golden);
    vxd_queue_destroy(queue);
    vxd_context_destroy(context);
    (void)vxd_snapshot_remove_all(&dir, 1, NULL);
    vxd_data_dir_close(&dir);
    (void)snprintf(path, sizeof path, "%s/snapshots", folder);
    (void)rmdir(path);
    (void)snprintf(path, sizeof path, "%s/lock", folder);
    (void)unlink(path);
    (void)rmdir(folder);
}

/* It is damaged, and no lack of memory, which would keep a start from happening. */
static void test_snapshot_file_of_more_entries_than_it_has_is_damaged(void)
{
    const struct vxd_context_options options = {
        .backend = VXD_BACKEND_CPU, .n_threads = 1, .host_bytes = 64 << 20};
    const struct vxd_snapshot_head head = {.family = 1,
                                           .name = "map:yard",
                                           .epoch = 1,
                                           .sequence = 9,
                                           .rules_version = VXD_MAP_RULES_VERSION};
    const uint64_t image[3] = {0, VXD_HASHMAP_MAX_CAPACITY, VXD_HASHMAP_MAX_CAPACITY};
    struct vxd_map_described map = description();
    struct fault_disk *disk = fault_disk_create();
    struct vxd_snapshot_reader *reader = NULL;
    struct vxd_snapshot_writer *writer = NULL;
    struct vxd_data_dir dir = {.lock = -1};
    struct vxd_hashmap *hashmap = NULL;
    struct vxd_bytes_out bytes = {0};
    struct vxd_context *context;
    struct vxd_queue *queue;
    uint64_t keep_from;

    REQUIRE(disk != NULL);
    REQUIRE(vxd_data_dir_open(fault_disk_ops(disk), "/d", &dir, NULL) == VXD_OK);
    REQUIRE(vxd_context_create(&options, &context, NULL) == VXD_OK);
    REQUIRE(vxd_queue_create(context, &queue, NULL) == VXD_OK);
    REQUIRE(vxd_snapshot_begin(&dir, &head, &writer, NULL) == VXD_OK);
    vxd_map_describe(&bytes, &map);
    CHECK_INT(
        vxd_snapshot_write(writer, VXD_SNAPSHOT_CATALOGUE, bytes.bytes, bytes.n, NULL),
        VXD_OK);
    CHECK_INT(vxd_snapshot_write(writer, VXD_SNAPSHOT_IMAGE, image, sizeof image, NULL),
              VXD_OK);
    CHECK_INT(vxd_snapshot_finish(writer, NULL, &keep_from, NULL), VXD_OK);
    REQUIRE(vxd_snapshot_open(&dir, 1, 9, &reader, NULL) == VXD_OK);
    CHECK_INT(vxd_map_read_snapshot(reader, &map, queue, &hashmap, NULL), VXD_DATA_LOSS);
    vxd_snapshot_close(reader);
    free(bytes.bytes);
    vxd_queue_destroy(queue);
    vxd_context_destroy(context);
    vxd_data_dir_close(&dir);
    fault_disk_destroy(disk);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_record_of_any_kind_comes_back),
    VXD_TEST(test_neighbouring_keys_take_few_bytes),
    VXD_TEST(test_damaged_records_are_refused_or_whole),
    VXD_TEST(test_record_of_an_array_that_cannot_be_is_refused),
    VXD_TEST(test_damaged_descriptions_are_refused),
    VXD_TEST(test_family_names_are_short_and_their_own),
    VXD_TEST(test_records_are_the_golden_ones),
    VXD_TEST(test_snapshot_file_is_the_golden_one),
    VXD_TEST(test_snapshot_file_of_more_entries_than_it_has_is_damaged),
};

VXD_TEST_MAIN(tests)
