// SPDX-License-Identifier: Apache-2.0
/* Records of scans by the ends of their rays: golden bytes, there and back, and damage. */
#include "tests/support/test.h"

#include "server/durable/record/record.h"

#define GOLDEN VOXELD_SOURCE_DIR "/tests/data/cast_record_v1.bin"

enum {
    N_RAYS = 700,
    N_HITS = 500,
    N_SCANS = 2
};

struct sample {
    int32_t ends[3 * N_RAYS];
    int32_t origins[3 * N_RAYS];
    uint16_t values[N_HITS];
    struct vxd_record_scan scans[N_SCANS];
    struct vxd_record record;
};

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* Ends as a scan has them: mostly near the one before, some far away, at both bounds too. */
static void make_sample(struct sample *sample)
{
    uint64_t state = 4;

    for (size_t i = 0; i < N_RAYS; i++) {
        for (size_t a = 0; a < 3; a++) {
            int32_t last = i > 0 ? sample->ends[3 * (i - 1) + a] : 0;
            int32_t step = (int32_t)(next_random(&state) % 256) - 100;

            sample->ends[3 * i + a] =
                i % 50 == 9 ? (int32_t)(next_random(&state) % (1u << 23)) - (1 << 22)
                            : last + (last > 4000000 || last < -4000000 ? -last : step);
            sample->origins[3 * i + a] = (int32_t)i * (int32_t)(a + 1) - 90;
        }
    }
    sample->ends[0] = -(1 << 22);
    sample->ends[3 * N_RAYS - 1] = (1 << 22) - 1;
    for (size_t i = 0; i < N_HITS; i++) {
        sample->values[i] = (uint16_t)(i % 7 == 0 ? 65535 : i % 3);
    }
    sample->scans[0] = (struct vxd_record_scan){.base = {5, -(INT64_C(1) << 40), 0},
                                                .origin = {0.25, -1e300, 0.1},
                                                .ends = sample->ends,
                                                .origins = sample->origins,
                                                .n = N_RAYS,
                                                .n_hits = N_HITS,
                                                .values = sample->values,
                                                .value = 3,
                                                .fills = true};
    sample->scans[1] = (struct vxd_record_scan){
        .base = {1, 2, 3}, .ends = sample->ends + 30, .n = 1, .n_hits = 0};
    sample->record = (struct vxd_record){.kind = VXD_RECORD_CAST_FUSE,
                                         .head = "yard",
                                         .author = "fleet",
                                         .client = "robot-1",
                                         .unix_ns = 77,
                                         .version = {1, 9},
                                         .scans = sample->scans,
                                         .n_scans = N_SCANS,
                                         .forgets = true};
}

static void compare_golden(const struct vxd_record_bytes *bytes)
{
    static uint8_t golden[1 << 16];
    size_t n = 0;
    FILE *file;

    if (getenv("VOXELD_WRITE_GOLDEN") != NULL) {
        file = fopen(GOLDEN, "wb");
        REQUIRE(file != NULL);
        CHECK(fwrite(bytes->bytes, 1, bytes->n_bytes, file) == bytes->n_bytes);
        (void)fclose(file);
    }
    file = fopen(GOLDEN, "rb");
    REQUIRE(file != NULL);
    n = fread(golden, 1, sizeof golden, file);
    (void)fclose(file);
    CHECK_INT(n, bytes->n_bytes);
    CHECK(n == bytes->n_bytes && memcmp(golden, bytes->bytes, n) == 0);
}

static bool is_same(const struct vxd_record_scan *a, const struct vxd_record_scan *b)
{
    const size_t n_bytes = a->n * 3 * sizeof *a->ends;
    const size_t n_values = vxd_record_count_values(a);

    return a->n == b->n && a->n_hits == b->n_hits && a->fills == b->fills &&
           a->value == b->value && memcmp(a->base, b->base, sizeof a->base) == 0 &&
           memcmp(a->origin, b->origin, sizeof a->origin) == 0 &&
           memcmp(a->ends, b->ends, n_bytes) == 0 &&
           (a->origins == NULL) == (b->origins == NULL) &&
           (a->origins == NULL || memcmp(a->origins, b->origins, n_bytes) == 0) &&
           (a->values == NULL) == (b->values == NULL) &&
           (a->values == NULL ||
            memcmp(a->values, b->values, n_values * sizeof *a->values) == 0);
}

static void test_scans_come_back_with_operations_without_lists(void)
{
    static struct sample sample;
    struct vxd_record_bytes bytes = {0};
    struct vxd_record_decoded decoded = {0};
    const struct vxd_record *back = &decoded.record;

    make_sample(&sample);
    REQUIRE(vxd_record_encode(&sample.record, &bytes, NULL) == VXD_OK);
    compare_golden(&bytes);
    REQUIRE(vxd_record_decode(bytes.bytes, bytes.n_bytes, VXD_RULES_VERSION, 0, &decoded,
                              NULL) == VXD_OK);
    REQUIRE(back->n_scans == N_SCANS && back->n_ops == N_SCANS + 1);
    CHECK(is_same(&sample.scans[0], &back->scans[0]));
    CHECK(is_same(&sample.scans[1], &back->scans[1]));
    CHECK(back->forgets && !back->erases);
    CHECK_INT(back->ops[0].action, VXD_SVDAG_SET_FREE);
    CHECK_INT(back->ops[1].action, VXD_SVDAG_SET_FREE);
    CHECK_INT(back->ops[2].action, VXD_SVDAG_FILL);
    for (size_t i = 0; i < back->n_ops; i++) {
        CHECK(back->ops[i].shape.kind == VXD_SVDAG_VOXELS &&
              back->ops[i].shape.voxels.n == 0);
    }
    vxd_record_decoded_free(&decoded);
    vxd_record_bytes_free(&bytes);
    sample.record.kind = VXD_RECORD_CAST;
    sample.record.forgets = false;
    sample.record.erases = true;
    REQUIRE(vxd_record_encode(&sample.record, &bytes, NULL) == VXD_OK);
    REQUIRE(vxd_record_decode(bytes.bytes, bytes.n_bytes, VXD_RULES_VERSION, 0, &decoded,
                              NULL) == VXD_OK);
    CHECK(back->erases && back->ops[0].action == VXD_SVDAG_ERASE);
    vxd_record_decoded_free(&decoded);
    vxd_record_bytes_free(&bytes);
}

/* Whatever is cut off or changed of a record, it comes back as one in its ranges or not. */
static void test_damaged_scan_is_refused_or_is_another(void)
{
    static struct sample sample;
    struct vxd_record_bytes bytes = {0};
    struct vxd_record_decoded decoded = {0};
    uint8_t *copy;

    make_sample(&sample);
    REQUIRE(vxd_record_encode(&sample.record, &bytes, NULL) == VXD_OK);
    for (size_t n = 0; n < bytes.n_bytes; n++) {
        CHECK_INT(vxd_record_decode(bytes.bytes, n, VXD_RULES_VERSION, 0, &decoded, NULL),
                  VXD_DATA_LOSS);
    }
    copy = malloc(bytes.n_bytes);
    REQUIRE(copy != NULL);
    for (size_t i = 0; i < 8 * bytes.n_bytes; i++) {
        struct vxd_record_bytes again = {0};

        memcpy(copy, bytes.bytes, bytes.n_bytes);
        copy[i / 8] ^= (uint8_t)(1 << i % 8);
        if (vxd_record_decode(copy, bytes.n_bytes, VXD_RULES_VERSION, 0, &decoded,
                              NULL) == VXD_OK) {
            CHECK_INT(vxd_record_encode(&decoded.record, &again, NULL), VXD_OK);
            vxd_record_bytes_free(&again);
            vxd_record_decoded_free(&decoded);
        }
    }
    CHECK_INT(vxd_record_decode(bytes.bytes, bytes.n_bytes, VXD_RULES_VERSION, 4096,
                                &decoded, NULL),
              VXD_RESOURCE_EXHAUSTED);
    free(copy);
    vxd_record_bytes_free(&bytes);
}

static void test_scan_out_of_its_ranges_is_refused(void)
{
    static struct sample sample;

    for (int k = 0; k < 8; k++) {
        struct vxd_record_bytes bytes = {0};
        struct vxd_err err = {0};
        struct vxd_record_scan *scan = &sample.scans[0];

        make_sample(&sample);
        scan->ends = sample.ends;
        sample.ends[7] = k == 0 ? 1 << 22 : k == 1 ? -(1 << 22) - 1 : 0;
        sample.origins[4] = k == 2 ? INT32_MIN : 0;
        scan->base[0] = k == 3 ? (INT64_C(1) << 40) + 1 : 0;
        scan->origin[1] = k == 4 ? 1.0 / 0.0 : 0;
        scan->n = k == 5 ? 0 : N_RAYS;
        scan->n_hits = k == 6 ? N_RAYS + 1 : k == 5 ? 0 : 1;
        scan->value = k == 7 ? 65536 : 0;
        CHECK_INT(vxd_record_encode(&sample.record, &bytes, &err), VXD_INVALID_ARGUMENT);
        CHECK_STR(err.field, "scans");
    }
}

/* An older program knows neither, and says that a newer one wrote them. */
static void test_records_of_rays_need_the_newest_rules(void)
{
    CHECK_INT(vxd_record_least_rules(VXD_RECORD_CAST), 4);
    CHECK_INT(vxd_record_least_rules(VXD_RECORD_CAST_FUSE), 4);
    CHECK_INT(vxd_record_least_rules(VXD_RECORD_INTEGRATE), 1);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_scans_come_back_with_operations_without_lists),
    VXD_TEST(test_damaged_scan_is_refused_or_is_another),
    VXD_TEST(test_scan_out_of_its_ranges_is_refused),
    VXD_TEST(test_records_of_rays_need_the_newest_rules),
};

VXD_TEST_MAIN(tests)
