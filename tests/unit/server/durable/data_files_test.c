// SPDX-License-Identifier: Apache-2.0
/* Records and snapshot files: golden bytes, every way there and back, every byte damaged; and
 * what verify finds. */
#include "tests/support/test.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "proto/base/crc32c.h"
#include "server/durable/maintenance/maintenance.h"
#include "server/observe/log/log.h"
#include "tests/support/durable/fault_vfs.h"
#include "tests/support/durable/durable_workload.h"

#define GOLDEN_RECORD VOXELD_SOURCE_DIR "/tests/data/record_v1.bin"
#define GOLDEN_SNAPSHOT VOXELD_SOURCE_DIR "/tests/data/snapshot_v1.vxs"
#define SNAPSHOT "/data/snapshots/00000003.0000000000000009.vxs"

static void test_crc_is_castagnoli_by_all_means(void)
{
    static uint8_t bytes[5000];

    CHECK(vxd_crc32c(0, "123456789", 9) == 0xe3069283u);
    CHECK(vxd_crc32c_table(0, "123456789", 9) == 0xe3069283u);
    CHECK(vxd_crc32c(0, bytes, 32) == 0x8a9136aau);
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(i * 31 + i / 256);
    }
    for (size_t n = 0; n < 200; n++) {
        uint32_t crc = vxd_crc32c(0, bytes + n, sizeof bytes - 2 * n);

        CHECK(crc == vxd_crc32c_table(0, bytes + n, sizeof bytes - 2 * n));
        CHECK(crc == vxd_crc32c(vxd_crc32c(0, bytes + n, n), bytes + 2 * n,
                                sizeof bytes - 3 * n));
    }
}

/* Records ---------------------------------------------------------------------------------- */

enum {
    N_LEAVES = 300,
    N_OPS = 10
};

/* Every shape and action, and lists that are long enough for codes of their own. */
struct sample {
    struct vxd_svdag_op ops[N_OPS];
    uint64_t codes[N_LEAVES];
    uint64_t masks[N_LEAVES];
    uint32_t first[N_LEAVES];
    uint16_t values[N_LEAVES * 64];
    int64_t heights[12];
    struct vxd_record record;
};

static void make_lists(struct sample *sample)
{
    uint32_t n_values = 0;

    for (size_t i = 0; i < N_LEAVES; i++) {
        uint64_t mix = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);

        sample->codes[i] = i < N_LEAVES / 2 ? i : 400 * i + i % 3;
        sample->masks[i] = i % 5 == 0   ? UINT64_MAX
                           : i % 5 == 1 ? UINT64_C(1) << i % 64
                                        : (mix & mix >> 17) | 1;
        sample->first[i] = n_values;
        for (int k = __builtin_popcountll(sample->masks[i]); k > 0; k--) {
            sample->values[n_values] = (uint16_t)(i / 7);
            n_values++;
        }
    }
    sample->codes[N_LEAVES - 1] = ((uint64_t)1 << 57) - 1;
    for (int i = 0; i < 12; i++) {
        sample->heights[i] = (int64_t)i * i * 100 - 500;
    }
}

static void make_sample(struct sample *sample)
{
    struct vxd_svdag_op *op = sample->ops;
    const int64_t most = VXD_SVDAG_MAX_COORDINATE;

    memset(sample, 0, sizeof *sample);
    make_lists(sample);
    op[0] = (struct vxd_svdag_op){
        .shape = {.kind = VXD_SVDAG_BOX, .low = {-most, 0, 5}, .high = {most, 1, -5}},
        .action = VXD_SVDAG_REPLACE,
        .value = 65535,
        .from = 3};
    op[1] = (struct vxd_svdag_op){
        .shape = {.kind = VXD_SVDAG_BALL, .a = {1, -2, 3}, .r = most},
        .action = VXD_SVDAG_ERODE,
        .threshold = 6};
    op[2] = (struct vxd_svdag_op){.shape = {.kind = VXD_SVDAG_CAPSULE,
                                            .a = {most, 0, 0},
                                            .b = {-most, 0, 9},
                                            .r = 0},
                                  .action = VXD_SVDAG_ERASE};
    op[3] = (struct vxd_svdag_op){.shape = {.kind = VXD_SVDAG_HALF_SPACE,
                                            .n = {INT32_MIN, 0, INT32_MAX},
                                            .d = -((int64_t)1 << 62)},
                                  .action = VXD_SVDAG_SET_FREE};
    op[4] = (struct vxd_svdag_op){.shape = {.kind = VXD_SVDAG_NOISE_BALL,
                                            .a = {7, 7, 7},
                                            .r = 1000,
                                            .seed = UINT32_MAX,
                                            .amplitude = 99,
                                            .cell_bits = 16},
                                  .action = VXD_SVDAG_PAINT,
                                  .value = 1};
    op[5] = (struct vxd_svdag_op){.shape = {.kind = VXD_SVDAG_BOX,
                                            .low = {256, 512, 0},
                                            .high = {1024, 1024, 1024}},
                                  .action = VXD_SVDAG_COPY,
                                  .from_voxel = {-1, 2, most},
                                  .matrix = {{0, -1, 0}, {1, 0, 0}, {0, 0, 1}},
                                  .copy_empty = true};
    op[6].shape.kind = VXD_SVDAG_VOXELS;
    op[6].shape.voxels = (struct vxd_svdag_voxels){
        .codes = sample->codes, .masks = sample->masks, .n = N_LEAVES};
    op[7] = op[6];
    op[7].shape.voxels.first_value = sample->first;
    op[7].shape.voxels.values = sample->values;
    op[8].shape.kind = VXD_SVDAG_HEIGHTFIELD;
    op[8].shape.low[2] = -77;
    op[8].shape.field = (struct vxd_svdag_heights){
        .heights = sample->heights, .n_x = 3, .n_y = 4, .cell = 2, .x = -5, .y = 6};
    op[9].shape.kind = VXD_SVDAG_VOXELS; /* none */
    sample->record = (struct vxd_record){.kind = VXD_RECORD_EDIT,
                                         .head = "yard",
                                         .author = "fleet",
                                         .client = "robot-1",
                                         .unix_ns = INT64_C(1700000000000000000),
                                         .version = {3, 1234},
                                         .ops = op,
                                         .n_ops = N_OPS};
}

static bool is_same_list(const struct vxd_svdag_voxels *a,
                         const struct vxd_svdag_voxels *b)
{
    if (a->n != b->n || (a->values != NULL) != (b->values != NULL)) {
        return false;
    }
    for (size_t i = 0; i < a->n; i++) {
        if (a->codes[i] != b->codes[i] || a->masks[i] != b->masks[i]) {
            return false;
        }
        for (int k = 0; a->values != NULL && k < __builtin_popcountll(a->masks[i]); k++) {
            if (a->values[a->first_value[i] + (uint32_t)k] !=
                b->values[b->first_value[i] + (uint32_t)k]) {
                return false;
            }
        }
    }
    return true;
}

static uint8_t *read_file(const char *path, size_t *n_bytes)
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

/* Set, the golden files are written instead: look at what changed, and raise the version. */
static void compare_golden(const char *path, const uint8_t *bytes, size_t n_bytes)
{
    size_t n_golden;
    uint8_t *golden;

    if (getenv("VOXELD_WRITE_GOLDEN") != NULL) {
        FILE *file = fopen(path, "wb");

        REQUIRE(file != NULL);
        CHECK(fwrite(bytes, 1, n_bytes, file) == n_bytes);
        (void)fclose(file);
    }
    golden = read_file(path, &n_golden);
    CHECK_INT(n_bytes, n_golden);
    CHECK(golden != NULL && n_bytes == n_golden && memcmp(bytes, golden, n_bytes) == 0);
    free(golden);
}

static void test_record_comes_back_as_it_was(void)
{
    static struct sample sample;
    struct vxd_record_bytes bytes = {0};
    struct vxd_record_bytes again = {0};
    struct vxd_record_decoded decoded = {0};
    struct vxd_err err = {0};

    make_sample(&sample);
    REQUIRE(vxd_record_encode(&sample.record, &bytes, &err) == VXD_OK);
    compare_golden(GOLDEN_RECORD, bytes.bytes, bytes.n_bytes);
    REQUIRE(vxd_record_decode(bytes.bytes, bytes.n_bytes, 1, 0, &decoded, &err) ==
            VXD_OK);
    REQUIRE(decoded.record.n_ops == N_OPS);
    CHECK_STR(decoded.record.author, "fleet");
    CHECK_STR(decoded.record.client, "robot-1");
    for (int i = 6; i < 8; i++) {
        CHECK(is_same_list(&sample.ops[i].shape.voxels,
                           &decoded.record.ops[i].shape.voxels));
    }
    CHECK(memcmp(decoded.record.ops[8].shape.field.heights, sample.heights,
                 sizeof sample.heights) == 0);
    CHECK(vxd_record_encode(&decoded.record, &again, NULL) == VXD_OK);
    CHECK(again.n_bytes == bytes.n_bytes &&
          memcmp(again.bytes, bytes.bytes, bytes.n_bytes) == 0);
    vxd_record_bytes_free(&again);
    vxd_record_decoded_free(&decoded);
    CHECK(vxd_record_decode(bytes.bytes, bytes.n_bytes, VXD_RULES_VERSION + 1, 0,
                            &decoded, &err) == VXD_FAILED_PRECONDITION);
    CHECK(vxd_record_decode(bytes.bytes, bytes.n_bytes, 1, 1000, &decoded, &err) ==
          VXD_RESOURCE_EXHAUSTED);
    vxd_record_bytes_free(&bytes);
}

static void test_damaged_record_is_refused_or_is_another(void)
{
    size_t n_bytes;
    uint8_t *bytes = read_file(GOLDEN_RECORD, &n_bytes);
    struct vxd_record_decoded decoded;
    struct vxd_record_bytes again;

    REQUIRE(bytes != NULL && n_bytes > 100);
    for (size_t n = 0; n < n_bytes; n += n < 500 ? 1 : 13) {
        uint8_t *exact = malloc(n > 0 ? n : 1);

        REQUIRE(exact != NULL);
        memcpy(exact, bytes, n);
        CHECK(vxd_record_decode(exact, n, 1, 1 << 24, &decoded, NULL) != VXD_OK);
        free(exact);
    }
    for (size_t i = 0; i < n_bytes; i += i < 500 ? 1 : 3) {
        uint8_t bit = (uint8_t)(1u << (i * 5 + i / 8) % 8);

        bytes[i] ^= bit;
        if (vxd_record_decode(bytes, n_bytes, 1, 1 << 24, &decoded, NULL) == VXD_OK) {
            CHECK(vxd_record_encode(&decoded.record, &again, NULL) == VXD_OK);
            vxd_record_bytes_free(&again);
            vxd_record_decoded_free(&decoded);
        }
        bytes[i] ^= bit;
    }
    free(bytes);
}

static void test_record_that_the_engine_would_not_take_is_refused(void)
{
    static struct sample sample;
    struct vxd_record_bytes bytes;
    struct vxd_err err = {0};

    make_sample(&sample);
    sample.codes[5] = sample.codes[4];
    CHECK(vxd_record_encode(&sample.record, &bytes, &err) == VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "ops[6]");
    make_sample(&sample);
    sample.masks[0] = 0;
    CHECK(vxd_record_encode(&sample.record, &bytes, &err) == VXD_INVALID_ARGUMENT);
    make_sample(&sample);
    sample.ops[5].matrix[0][0] = 1;
    CHECK(vxd_record_encode(&sample.record, &bytes, &err) == VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "ops[5]");
}

/* Each number of a shape may be what the engine takes, from the least to the most. */
static void test_record_of_a_shape_beyond_the_engines_limits_is_refused(void)
{
    static struct sample sample;
    const int64_t most = VXD_SVDAG_MAX_COORDINATE;
    const struct {
        int64_t *number; /* of sample, which is made anew each time */
        int op;
        int64_t low, high;
    } cases[] = {
        {&sample.ops[0].shape.low[0], 0, -most, most},
        {&sample.ops[0].shape.low[1], 0, -most, most},
        {&sample.ops[0].shape.high[2], 0, -most, most},
        {&sample.ops[1].shape.a[0], 1, -most, most},
        {&sample.ops[1].shape.a[1], 1, -most, most},
        {&sample.ops[1].shape.a[2], 1, -most, most},
        {&sample.ops[1].shape.r, 1, 0, most},
        {&sample.ops[2].shape.b[0], 2, -most, most},
        {&sample.ops[2].shape.b[2], 2, -most, most},
        {&sample.ops[3].shape.d, 3, -((int64_t)1 << 62), (int64_t)1 << 62},
        {&sample.ops[4].shape.amplitude, 4, 0, most - 1000},
        {&sample.ops[5].from_voxel[1], 5, -most, most},
        {&sample.ops[8].shape.low[2], 8, -most, most},
        {&sample.ops[8].shape.field.x, 8, -most, most},
        {&sample.ops[8].shape.field.y, 8, -most, most},
        {&sample.heights[0], 8, -most, most},
        {&sample.heights[11], 8, -most, most},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int beyond = 0; beyond < 4; beyond++) {
            struct vxd_record_bytes bytes = {0};
            struct vxd_err err = {0};
            char field[16];

            make_sample(&sample);
            *cases[i].number =
                beyond < 2 ? cases[i].low - beyond : cases[i].high + beyond - 2;
            CHECK_INT(vxd_record_encode(&sample.record, &bytes, &err),
                      beyond % 2 == 0 ? VXD_OK : VXD_INVALID_ARGUMENT);
            (void)snprintf(field, sizeof field, "ops[%d]", cases[i].op);
            CHECK_STR(err.field, beyond % 2 == 0 ? "" : field);
            vxd_record_bytes_free(&bytes);
        }
    }
}

static void test_record_with_a_name_of_no_length_or_no_end_is_refused(void)
{
    static const char *const fields[] = {"head", "head", "author", "client"};

    for (int i = 0; i < 4; i++) {
        struct vxd_record record = {
            .kind = VXD_RECORD_UNDO, .head = "yard", .version = {1, 1}};
        char *names[] = {record.head, record.head, record.author, record.client};
        struct vxd_record_bytes bytes = {0};
        struct vxd_err err = {0};

        memset(names[i], i == 0 ? 0 : 'x', sizeof record.head);
        CHECK_INT(vxd_record_encode(&record, &bytes, &err), VXD_INVALID_ARGUMENT);
        CHECK_STR(err.field, fields[i]);
        vxd_record_bytes_free(&bytes);
    }
}

static void test_record_of_no_kind_is_refused(void)
{
    static const int kinds[] = {VXD_RECORD_EDIT - 1, VXD_RECORD_FUSE + 1};

    for (int i = 0; i < 2; i++) {
        const struct vxd_record record = {
            .kind = (enum vxd_record_kind)kinds[i], .head = "yard", .version = {1, 1}};
        struct vxd_record_bytes bytes = {0};
        struct vxd_err err = {0};

        CHECK_INT(vxd_record_encode(&record, &bytes, &err), VXD_INVALID_ARGUMENT);
        CHECK_STR(err.field, "kind");
        vxd_record_bytes_free(&bytes);
    }
}

static void test_other_kinds_of_records_come_back(void)
{
    for (int kind = VXD_RECORD_UNDO; kind <= VXD_RECORD_FUSE; kind++) {
        const struct vxd_record record = {.kind = (enum vxd_record_kind)kind,
                                          .head = "yard",
                                          .unix_ns = -5,
                                          .version = {1, UINT64_MAX},
                                          .of_version = {2, 7},
                                          .from = "main",
                                          .spec = (const uint8_t *)"spec",
                                          .n_spec_bytes = 4};
        struct vxd_record_bytes bytes = {0};
        struct vxd_record_decoded decoded = {0};

        REQUIRE(vxd_record_encode(&record, &bytes, NULL) == VXD_OK);
        REQUIRE(vxd_record_decode(bytes.bytes, bytes.n_bytes, 1, 0, &decoded, NULL) ==
                VXD_OK);
        CHECK_INT(decoded.record.kind, kind);
        CHECK(decoded.record.version.n == UINT64_MAX && decoded.record.unix_ns == -5);
        CHECK((kind == VXD_RECORD_BRANCH) == (decoded.record.from[0] == 'm'));
        CHECK((kind == VXD_RECORD_CREATE) == (decoded.record.n_spec_bytes == 4));
        vxd_record_decoded_free(&decoded);
        vxd_record_bytes_free(&bytes);
    }
}

static void test_record_of_a_fused_scan_comes_back_with_its_lists_alone(void)
{
    static const uint64_t codes[2] = {3, 9};
    static const uint64_t masks[2] = {UINT64_MAX, 6};
    struct vxd_svdag_op ops[2] = {
        {.shape = {.kind = VXD_SVDAG_VOXELS, .voxels = {codes, masks, NULL, NULL, 2}},
         .action = VXD_SVDAG_SET_FREE},
        {.shape = {.kind = VXD_SVDAG_VOXELS, .voxels = {codes, masks, NULL, NULL, 1}},
         .action = VXD_SVDAG_FILL,
         .value = 65535}};

    for (int forgets = 0; forgets < 2; forgets++) {
        const struct vxd_record record = {.kind = VXD_RECORD_FUSE,
                                          .head = "yard",
                                          .version = {1, 4},
                                          .ops = ops,
                                          .n_ops = 2,
                                          .forgets = forgets == 1};
        struct vxd_record_bytes bytes = {0};
        struct vxd_record_decoded decoded = {0};

        REQUIRE(vxd_record_encode(&record, &bytes, NULL) == VXD_OK);
        REQUIRE(vxd_record_decode(bytes.bytes, bytes.n_bytes, VXD_RULES_VERSION, 0,
                                  &decoded, NULL) == VXD_OK);
        CHECK_INT(decoded.record.forgets, forgets);
        REQUIRE(decoded.record.n_ops == 2);
        CHECK_INT(decoded.record.ops[0].action, VXD_SVDAG_SET_FREE);
        CHECK_INT(decoded.record.ops[0].shape.voxels.n, 2);
        CHECK_INT(decoded.record.ops[1].action, VXD_SVDAG_FILL);
        CHECK_INT(decoded.record.ops[1].value, 65535);
        CHECK(decoded.record.ops[1].shape.voxels.masks[0] == UINT64_MAX);
        vxd_record_decoded_free(&decoded);
        vxd_record_bytes_free(&bytes);
    }
}

static void test_record_of_a_fused_scan_without_a_list_is_refused(void)
{
    const struct vxd_svdag_op op = {
        .shape = {.kind = VXD_SVDAG_BOX, .high = {256, 256, 256}},
        .action = VXD_SVDAG_FILL};
    struct vxd_record record = {.kind = VXD_RECORD_FUSE,
                                .head = "yard",
                                .version = {1, 4},
                                .ops = &op,
                                .n_ops = 1};
    struct vxd_record_bytes bytes = {0};
    struct vxd_record_decoded decoded = {0};
    struct vxd_err err = {0};

    CHECK_INT(vxd_record_encode(&record, &bytes, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "ops");
    record.kind = VXD_RECORD_INTEGRATE;
    REQUIRE(vxd_record_encode(&record, &bytes, &err) == VXD_OK);
    bytes.bytes[0] = VXD_RECORD_FUSE; /* without the byte that says whether it forgets */
    CHECK_INT(vxd_record_decode(bytes.bytes, bytes.n_bytes, VXD_RULES_VERSION, 0,
                                &decoded, &err),
              VXD_DATA_LOSS);
    vxd_record_bytes_free(&bytes);
}

/* Snapshots --------------------------------------------------------------------------------- */

static enum vxd_status write_snapshot(const struct vxd_data_dir *dir, size_t n_words)
{
    const struct vxd_snapshot_head head = {.family = 3,
                                           .name = "yard",
                                           .epoch = 2,
                                           .sequence = 9,
                                           .rules_version = 1,
                                           .unix_ns = 1234567890};
    struct vxd_snapshot_writer *writer;
    uint64_t keep_from;
    enum vxd_status status;

    VXD_TRY(vxd_snapshot_begin(dir, &head, &writer, NULL));
    VXD_TRY(vxd_snapshot_write(writer, VXD_SNAPSHOT_CATALOGUE, "two heads", 9, NULL));
    for (uint64_t i = 0; i < n_words && status == VXD_OK; i++) {
        status = vxd_snapshot_write(writer, VXD_SNAPSHOT_IMAGE, &i, sizeof i, NULL);
    }
    if (status != VXD_OK) {
        vxd_snapshot_abandon(writer);
        return status;
    }
    CHECK(vxd_snapshot_write(writer, VXD_SNAPSHOT_CATALOGUE, "x", 1, NULL) ==
          VXD_INVALID_ARGUMENT);
    status = vxd_snapshot_finish(writer, NULL, &keep_from, NULL);
out:
    return status;
}

/* Reads in pieces of n; true where all is as it was written. */
static enum vxd_status read_snapshot(const struct vxd_data_dir *dir, size_t n_words,
                                     size_t piece, struct vxd_err *err)
{
    struct vxd_snapshot_reader *reader = NULL;
    uint8_t *bytes = malloc(piece);
    uint64_t n_total = 0;
    size_t n;
    enum vxd_status status;

    VXD_TRY(vxd_snapshot_open(dir, 3, 9, &reader, err));
    VXD_TRY(vxd_snapshot_read(reader, VXD_SNAPSHOT_CATALOGUE, bytes,
                              piece < 9 ? piece : 9, &n, err));
    CHECK(memcmp(bytes, "two heads", n) == 0);
    while (n > 0) {
        VXD_TRY(vxd_snapshot_read(reader, VXD_SNAPSHOT_CATALOGUE, bytes, piece, &n, err));
    }
    do {
        VXD_TRY(vxd_snapshot_read(reader, VXD_SNAPSHOT_IMAGE, bytes, piece, &n, err));
        for (size_t i = 0; i < n; i++, n_total++) {
            uint64_t word = n_total / 8;

            if (bytes[i] != (uint8_t)(word >> 8 * (n_total % 8))) {
                VXD_TRY(VXD_INTERNAL);
            }
        }
    } while (n > 0);
    VXD_TRY(vxd_snapshot_read_end(reader, err));
    status = n_total == 8 * n_words ? VXD_OK : VXD_INTERNAL;
out:
    vxd_snapshot_close(reader);
    free(bytes);
    return status;
}

static void test_snapshot_comes_back_in_any_pieces(void)
{
    static const size_t pieces[] = {7, 4096, 1 << 20, 3 << 20};
    struct fault_disk *disk = fault_disk_create();
    struct vxd_data_dir dir = {.lock = -1};
    const uint8_t *bytes;
    size_t n_bytes;

    REQUIRE(disk != NULL);
    CHECK(vxd_data_dir_open(fault_disk_ops(disk), "/data", &dir, NULL) == VXD_OK);
    CHECK(write_snapshot(&dir, 400000) == VXD_OK); /* more than three chunks */
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        CHECK_INT(read_snapshot(&dir, 400000, pieces[i], NULL), VXD_OK);
    }
    CHECK(write_snapshot(&dir, 20) == VXD_OK);
    CHECK_INT(read_snapshot(&dir, 20, 100, NULL), VXD_OK);
    bytes = fault_disk_bytes(disk, SNAPSHOT, &n_bytes);
    compare_golden(GOLDEN_SNAPSHOT, bytes, n_bytes);
    vxd_data_dir_close(&dir);
    fault_disk_destroy(disk);
}

static void test_any_damage_of_a_snapshot_is_found(void)
{
    struct fault_disk *disk = fault_disk_create();
    struct vxd_data_dir dir = {.lock = -1};
    struct vxd_err err = {0};
    uint8_t *bytes;
    size_t n_bytes;

    REQUIRE(disk != NULL);
    CHECK(vxd_data_dir_open(fault_disk_ops(disk), "/data", &dir, NULL) == VXD_OK);
    CHECK(write_snapshot(&dir, 20) == VXD_OK);
    bytes = fault_disk_bytes(disk, SNAPSHOT, &n_bytes);
    for (size_t i = 0; i < n_bytes; i++) { /* head, catalogue, image, end */
        bytes[i] ^= 0x10;
        CHECK(read_snapshot(&dir, 20, 100, &err) == VXD_DATA_LOSS);
        CHECK(strstr(err.message, "damaged at byte") != NULL);
        bytes[i] ^= 0x10;
    }
    for (size_t n = n_bytes; n-- > 0;) {
        fault_disk_resize(disk, SNAPSHOT, n);
        CHECK(read_snapshot(&dir, 20, 100, NULL) == VXD_DATA_LOSS);
    }
    CHECK(write_snapshot(&dir, 20) == VXD_OK);
    fault_disk_resize(disk, SNAPSHOT, n_bytes + 1);
    CHECK(read_snapshot(&dir, 20, 100, NULL) == VXD_DATA_LOSS);
    vxd_data_dir_close(&dir);
    fault_disk_destroy(disk);
}

/* Directories ------------------------------------------------------------------------------- */

static void count_problem(void *user, const struct vxd_problem *problem)
{
    if (problem->weight == VXD_PROBLEM_LOSS && getenv("DURABLE_LIST") != NULL) {
        (void)printf("%s: %s\n", problem->where, problem->message);
    }
    CHECK(problem->where[0] != '\0' && problem->message[0] != '\0');
    (*(int *)user)++;
}

/* The workload's directory after a kill. */
static struct fault_disk *make_data(struct work *work)
{
    struct fault_disk *disk = fault_disk_create();

    *work = (struct work){0};
    if (disk == NULL || !work_run(work, fault_disk_ops(disk))) {
        return disk;
    }
    fault_disk_cut(disk);
    (void)vxd_journal_close(work->journal, NULL);
    vxd_data_dir_close(&work->dir);
    work->journal = NULL;
    work->was_closed = false;
    fault_disk_kill(disk);
    return disk;
}

static void test_verify_changes_nothing_and_finds_damage(void)
{
    struct work work;
    struct fault_disk *disk = make_data(&work);
    struct vxd_verify_result result;
    char path[100];
    uint32_t sum;
    uint8_t *bytes;
    size_t n_bytes;
    int n = 0;

    REQUIRE(disk != NULL);
    sum = fault_disk_sum(disk);
    CHECK_INT(vxd_verify_data_dir(fault_disk_ops(disk), "/data", count_problem, &n,
                                  &result, NULL),
              VXD_OK);
    CHECK(result.n_losses == 0 && result.n_spares == 0);
    CHECK(result.n_notes == 1 && n == 1); /* it was killed */
    CHECK(result.n_families == 2 && result.n_snapshots >= 3 && result.n_records > 5);
    CHECK(fault_disk_sum(disk) == sum);
    (void)snprintf(path, sizeof path, "/data/snapshots/%08x.%016llx.vxs",
                   work.families[0].id,
                   (unsigned long long)work.families[0].snapshot_promised);
    bytes = fault_disk_bytes(disk, path, &n_bytes);
    REQUIRE(bytes != NULL);
    bytes[n_bytes / 2] ^= 1;
    CHECK(vxd_verify_data_dir(fault_disk_ops(disk), "/data", count_problem, &n, &result,
                              NULL) == VXD_OK);
    CHECK(result.n_losses == 0 && result.n_spares == 1);
    work.families[0].snapshot_promised =
        0; /* the start takes the older one, and loses nothing */
    work.families[0].taken_promised = 0;
    CHECK(work_check(&work) == NULL);
    CHECK(vxd_verify_data_dir(fault_disk_ops(disk), "/none", count_problem, &n, &result,
                              NULL) == VXD_NOT_FOUND);
    fault_disk_destroy(disk);
}

/* One changed byte of a record, and a record that is missing: the replay ends before it, what
 * follows is kept aside, and the owner hears of it. work_check calls that a loss. */
static void spoil(const char *sql, size_t n_losses, const char *fault)
{
    struct work work;
    struct fault_disk *disk = make_data(&work);
    struct vxd_verify_result result;
    sqlite3 *db = NULL;
    const char *found;
    int n = 0;

    REQUIRE(disk != NULL);
    CHECK(sqlite3_open_v2("/data/voxeld.db", &db, SQLITE_OPEN_READWRITE,
                          fault_disk_ops(disk)->sqlite_vfs) == SQLITE_OK);
    CHECK(sqlite3_exec(db, "PRAGMA locking_mode = EXCLUSIVE", NULL, NULL, NULL) ==
          SQLITE_OK);
    CHECK(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
    CHECK(sqlite3_close(db) == SQLITE_OK);
    CHECK(vxd_verify_data_dir(fault_disk_ops(disk), "/data", count_problem, &n, &result,
                              NULL) == VXD_OK);
    CHECK_INT(result.n_losses, n_losses);
    found = work_check(&work);
    CHECK_STR(found != NULL ? found : "", fault);
    fault_disk_destroy(disk);
}

static void test_damaged_rows_are_found_and_end_the_replay(void)
{
    /* Record 36 of family 1, behind its snapshots. */
    spoil("UPDATE records SET bytes = CAST(substr(bytes, 1, 20) || 'x' AS BLOB)"
          " WHERE id = (SELECT max(id) FROM records WHERE id >> 40 = 1)",
          1, "an acknowledged record is lost");
    spoil("DELETE FROM records WHERE id ="
          " (SELECT max(id) - 1 FROM records WHERE id >> 40 = 1)",
          1, "an acknowledged record is lost");
    spoil(
        "DELETE FROM records WHERE id = (SELECT max(id) FROM records WHERE id >> 40 = 1)",
        1, "an acknowledged record is lost");
    spoil("UPDATE replies SET bytes = 'other' WHERE sequence = 1 AND client ="
          " CAST('always' AS BLOB)",
          0, "an outcome is missing");
    spoil("UPDATE items SET bytes = CAST('tail' AS BLOB)", 1, "the recovery failed");
    spoil("UPDATE families SET epoch = 99", 2, "the journal cannot be opened");
}

static void test_system_makes_and_removes_a_directory(void)
{
    const struct vxd_file_ops *ops = vxd_file_ops_system();
    char folder[] = "/tmp/voxeld-directory-XXXXXX";
    char path[64];

    REQUIRE(mkdtemp(folder) != NULL);
    (void)snprintf(path, sizeof path, "%s/made", folder);
    CHECK_INT(ops->make_directory(ops->user, path, 0700), 0);
    CHECK_INT(ops->make_directory(ops->user, path, 0700), -EEXIST);
    CHECK_INT(ops->remove_directory(ops->user, path), 0);
    CHECK_INT(ops->remove_directory(ops->user, path), -ENOENT);
    CHECK_INT(ops->remove_directory(ops->user, folder), 0);
}

int main(int argc, char **argv)
{
    static const struct vxd_test tests[] = {
        VXD_TEST(test_crc_is_castagnoli_by_all_means),
        VXD_TEST(test_record_comes_back_as_it_was),
        VXD_TEST(test_damaged_record_is_refused_or_is_another),
        VXD_TEST(test_record_that_the_engine_would_not_take_is_refused),
        VXD_TEST(test_record_of_a_shape_beyond_the_engines_limits_is_refused),
        VXD_TEST(test_record_with_a_name_of_no_length_or_no_end_is_refused),
        VXD_TEST(test_record_of_no_kind_is_refused),
        VXD_TEST(test_other_kinds_of_records_come_back),
        VXD_TEST(test_record_of_a_fused_scan_comes_back_with_its_lists_alone),
        VXD_TEST(test_record_of_a_fused_scan_without_a_list_is_refused),
        VXD_TEST(test_snapshot_comes_back_in_any_pieces),
        VXD_TEST(test_any_damage_of_a_snapshot_is_found),
        VXD_TEST(test_verify_changes_nothing_and_finds_damage),
        VXD_TEST(test_damaged_rows_are_found_and_end_the_replay),
        VXD_TEST(test_system_makes_and_removes_a_directory),
    };

    vxd_log_set_level((enum vxd_log_level)(VXD_LOG_ERROR + 1));
    return vxd_test_run_all(tests, sizeof tests / sizeof tests[0],
                            argc > 1 ? argv[1] : NULL);
}
