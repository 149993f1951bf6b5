// SPDX-License-Identifier: Apache-2.0
/* Records of decays and pins: they come back as they were, and damaged ones are refused. */
#include "tests/support/test.h"

#include "server/durable/record/record.h"

static struct vxd_record decay_record(void)
{
    return (struct vxd_record){.kind = VXD_RECORD_DECAY,
                               .head = "yard",
                               .author = "robot",
                               .unix_ns = 5,
                               .version = {1, 9},
                               .forgets = true,
                               .decayed_ns = -7,
                               .decay = {.factor = 32768,
                                         .step = 255,
                                         .low = {0, 3, 1 << 21},
                                         .high = {1, 1 << 21, 1 << 21},
                                         .keeps = true,
                                         .centre = {-5, 0, (1 << 30) - 1},
                                         .radius = (int64_t)1 << 31}};
}

static bool is_equal(const struct vxd_record *a, const struct vxd_record *b)
{
    const struct vxd_occupancy_decay *x = &a->decay;
    const struct vxd_occupancy_decay *y = &b->decay;

    return a->forgets == b->forgets && a->decayed_ns == b->decayed_ns &&
           x->factor == y->factor && x->step == y->step && x->keeps == y->keeps &&
           x->radius == y->radius && memcmp(x->low, y->low, sizeof x->low) == 0 &&
           memcmp(x->high, y->high, sizeof x->high) == 0 &&
           memcmp(x->centre, y->centre, sizeof x->centre) == 0;
}

/* Whatever is cut off or changed of a record, it comes back as one in its ranges or not. */
static void check_damage(const struct vxd_record_bytes *bytes)
{
    uint8_t *copy = malloc(bytes->n_bytes);
    struct vxd_record_decoded decoded = {0};

    REQUIRE(copy != NULL);
    for (size_t n = 0; n < bytes->n_bytes; n++) {
        CHECK_INT(
            vxd_record_decode(bytes->bytes, n, VXD_RULES_VERSION, 0, &decoded, NULL),
            VXD_DATA_LOSS);
    }
    for (size_t i = 0; i < 256 * bytes->n_bytes; i++) {
        struct vxd_record_bytes again = {0};

        memcpy(copy, bytes->bytes, bytes->n_bytes);
        copy[i / 256] = (uint8_t)i;
        if (vxd_record_decode(copy, bytes->n_bytes, VXD_RULES_VERSION, 0, &decoded,
                              NULL) == VXD_OK) {
            CHECK_INT(vxd_record_encode(&decoded.record, &again, NULL), VXD_OK);
            vxd_record_bytes_free(&again);
            vxd_record_decoded_free(&decoded);
        }
    }
    free(copy);
}

static void test_decays_come_back_and_damaged_ones_do_not(void)
{
    for (int keeps = 0; keeps < 2; keeps++) {
        struct vxd_record record = decay_record();
        struct vxd_record_bytes bytes = {0};
        struct vxd_record_decoded decoded = {0};

        record.decay.keeps = keeps == 1;
        if (!record.decay.keeps) {
            memset(record.decay.centre, 0, sizeof record.decay.centre);
            record.decay.radius = 0;
        }
        REQUIRE(vxd_record_encode(&record, &bytes, NULL) == VXD_OK);
        REQUIRE(vxd_record_decode(bytes.bytes, bytes.n_bytes, VXD_RULES_VERSION, 0,
                                  &decoded, NULL) == VXD_OK);
        CHECK(is_equal(&decoded.record, &record));
        vxd_record_decoded_free(&decoded);
        check_damage(&bytes);
        vxd_record_bytes_free(&bytes);
    }
}

static void test_decay_out_of_its_ranges_is_refused(void)
{
    for (int k = 0; k < 6; k++) {
        struct vxd_record record = decay_record();
        struct vxd_record_bytes bytes = {0};
        struct vxd_err err = {0};

        record.decay.factor = k == 0 ? VXD_OCCUPANCY_DECAY_ONE + 1 : 5;
        record.decay.step = k == 1 ? 256 : k == 2 ? -1 : 5;
        record.decay.low[1] = k == 3 ? -1 : 0;
        record.decay.centre[0] = k == 4 ? 1 << 30 : 0;
        record.decay.radius = k == 5 ? -1 : 0;
        CHECK_INT(vxd_record_encode(&record, &bytes, &err), VXD_INVALID_ARGUMENT);
        CHECK_STR(err.field, "decay");
    }
}

static void test_pins_come_back_behind_the_edits(void)
{
    static const uint64_t codes[1] = {4};
    static const uint64_t masks[1] = {6};
    const struct vxd_svdag_op ops[3] = {
        {.shape = {.kind = VXD_SVDAG_BOX, .high = {256, 256, 256}}, .value = 3},
        {.shape = {.kind = VXD_SVDAG_BALL, .r = 256}},
        {.shape = {.kind = VXD_SVDAG_VOXELS,
                   .voxels = {.codes = codes, .masks = masks, .n = 1}},
         .action = VXD_SVDAG_ERASE}};
    struct vxd_record record = {.kind = VXD_RECORD_PIN,
                                .head = "yard",
                                .version = {1, 4},
                                .ops = ops,
                                .n_ops = 3,
                                .n_pin_ops = 2};
    struct vxd_record_bytes bytes = {0};
    struct vxd_record_decoded decoded = {0};
    struct vxd_err err = {0};

    REQUIRE(vxd_record_encode(&record, &bytes, NULL) == VXD_OK);
    REQUIRE(vxd_record_decode(bytes.bytes, bytes.n_bytes, VXD_RULES_VERSION, 0, &decoded,
                              NULL) == VXD_OK);
    CHECK_INT(decoded.record.n_pin_ops, 2);
    REQUIRE(decoded.record.n_ops == 3);
    CHECK_INT(decoded.record.ops[0].value, 3);
    CHECK_INT(decoded.record.ops[1].shape.kind, VXD_SVDAG_BALL);
    CHECK_INT(decoded.record.ops[2].action, VXD_SVDAG_ERASE);
    vxd_record_decoded_free(&decoded);
    check_damage(&bytes);
    vxd_record_bytes_free(&bytes);
    record.n_pin_ops = 4;
    CHECK_INT(vxd_record_encode(&record, &bytes, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "n_pin_ops");
}

/* An older program knows neither, and says that a newer one wrote them. */
static void test_records_of_decays_and_pins_need_the_newest_rules(void)
{
    CHECK_INT(vxd_record_least_rules(VXD_RECORD_DECAY), 3);
    CHECK_INT(vxd_record_least_rules(VXD_RECORD_PIN), 3);
    CHECK_INT(vxd_record_least_rules(VXD_RECORD_FUSE), 2);
    CHECK_INT(vxd_record_least_rules(VXD_RECORD_EDIT), 1);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_decays_come_back_and_damaged_ones_do_not),
    VXD_TEST(test_decay_out_of_its_ranges_is_refused),
    VXD_TEST(test_pins_come_back_behind_the_edits),
    VXD_TEST(test_records_of_decays_and_pins_need_the_newest_rules),
};

VXD_TEST_MAIN(tests)
