// SPDX-License-Identifier: Apache-2.0
/* Records of durable volumes: equal changes are equal bytes and come back as they were; damaged
 * bytes are refused, whatever they are, and so is each value outside of its range. */
#include "tests/support/test.h"

#include <math.h>

#include "proto/base/bytes.h"
#include "server/durable/record/record.h"

enum {
    N_BLOCKS = 5,
    N_VOXELS = 8,
    N_POINTS = 7,
    N_RECORDS = 12
};

/* What records point to. */
struct inputs {
    int32_t entries[N_BLOCKS];
    int32_t keys[3 * N_BLOCKS];
    uint64_t stamps[N_BLOCKS];
    float distances[N_BLOCKS * N_VOXELS];
    uint8_t weights[N_BLOCKS * N_VOXELS];
    uint16_t depth[12];
    uint8_t colour[36];
    float points[3 * N_POINTS];
    float features[5 * N_POINTS];
    uint8_t labels[N_POINTS];
    double elevations[3];
};

static void fill(struct inputs *in, int seed)
{
    for (int i = 0; i < N_BLOCKS; i++) {
        in->entries[i] = seed + 3 * i;
        in->stamps[i] = (uint64_t)1795312032000000000 + (uint64_t)(7 * i * seed);
        for (int c = 0; c < 3; c++) {
            in->keys[3 * i + c] = (i - 2) * (c + 1) * (seed + 1);
        }
    }
    for (int i = 0; i < N_BLOCKS * N_VOXELS; i++) {
        in->distances[i] = (float)((i * 37 + seed) % 64 - 32) / 32;
        in->weights[i] = (uint8_t)(i % 5);
    }
    for (int i = 0; i < 12; i++) {
        in->depth[i] = (uint16_t)(1000 + 13 * i + seed);
    }
    for (int i = 0; i < 36; i++) {
        in->colour[i] = (uint8_t)(i * 7 + seed);
    }
    for (int i = 0; i < 5 * N_POINTS; i++) {
        /* In millimetres, with a NaN; in 1/4096 m; in nothing. */
        in->points[i % (3 * N_POINTS)] = seed == 0   ? (float)((1250 - 77 * i) / 1000.0)
                                         : seed == 1 ? (float)(i - 9) / 4096
                                                     : 12.5f - 0.01f * (float)i;
        in->features[i] = (float)i / 35;
        in->labels[i % N_POINTS] = (uint8_t)(i % 3);
    }
    in->points[4] = seed == 0 ? NAN : in->points[4];
    for (int i = 0; i < 3; i++) {
        in->elevations[i] = 2.0 - 10.5 * i;
    }
}

static void set_blocks(struct vxd_record_blocks *blocks, const struct inputs *in,
                       int seed)
{
    blocks->version = 1795312032000000009;
    blocks->removed_version = seed % 2 == 0 ? 0 : 1795312032000000008;
    blocks->n_images = (uint64_t)seed;
    blocks->has_all_keys = seed % 2 == 1;
    blocks->all_keys = in->keys;
    blocks->n_all_keys = seed % 2 == 1 ? 3 : 0;
    blocks->n = seed == 2 ? 0 : N_BLOCKS;
    blocks->entries = in->entries;
    blocks->keys = in->keys;
    blocks->stamps = in->stamps;
    blocks->n_layers = 2;
    (void)snprintf(blocks->layers[0].name, sizeof blocks->layers[0].name, "distance");
    blocks->layers[0].dtype = VXD_FLOAT32;
    blocks->layers[0].n_elements = N_VOXELS;
    blocks->layers[0].rows = in->distances;
    (void)snprintf(blocks->layers[1].name, sizeof blocks->layers[1].name, "weight");
    blocks->layers[1].dtype = VXD_UINT8;
    blocks->layers[1].n_elements = N_VOXELS;
    blocks->layers[1].rows = in->weights;
}

static void set_image(struct vxd_volume_record *record, const struct inputs *in, int seed)
{
    struct vxd_volume_frame *frame = &record->frame;

    frame->camera = (struct vxd_volume_camera){.width = 4,
                                               .height = 3,
                                               .fx = 5,
                                               .fy = 5.5,
                                               .cx = 2,
                                               .cy = 1,
                                               .distortion = {0.1}};
    frame->T_map_camera =
        (struct vxd_volume_pose){{1, 0, 0, 0, 0, -1, 0, 1, 0}, {0.5, seed, -2}};
    frame->dtype = VXD_UINT16;
    frame->depth_scale = 1000;
    frame->depth_max_m = 3;
    frame->weight = 2;
    frame->weighting = VXD_VOLUME_WEIGHT_INV_Z2;
    record->depth = (struct vxd_record_image){
        seed % 2 == 0 ? VXD_RECORD_PIXELS_RAW : VXD_RECORD_PIXELS_PNG,
        (const uint8_t *)in->depth, sizeof in->depth};
    if (seed > 0) {
        frame->has_colour_camera = seed == 2;
        frame->colour_camera = frame->camera;
        frame->T_depth_colour = frame->T_map_camera;
        record->colour = (struct vxd_record_image){VXD_RECORD_PIXELS_RAW, in->colour,
                                                   sizeof in->colour};
        record->forgotten = in->keys;
        record->n_forgotten = 2;
    }
}

static void set_removal(struct vxd_volume_record *record, int seed)
{
    record->decays = seed % 2 == 1;
    record->decay = (struct vxd_volume_decay){.region = {.is_ball = seed == 2,
                                                         .low = {-1, -2, -3},
                                                         .high = {1, 2, 3},
                                                         .centre = {4, 5, 6},
                                                         .radius = 7},
                                              .factor = 0.5,
                                              .min_weight = 1};
}

static void set_scan(struct vxd_volume_record *record, const struct inputs *in, int seed)
{
    struct vxd_volume_scan *scan = &record->scan;

    *scan = (struct vxd_volume_scan){
        .points = in->points,
        .n_points = N_POINTS,
        .features = seed > 0 ? in->features : NULL,
        .n_features = seed > 0 ? 5 : 0,
        .time_column = seed > 0 ? 0 : -1,
        .normal_column = seed > 0 ? 1 : -1,
        .label_column = seed > 0 ? 4 : -1,
        .labels = seed == 0 ? in->labels : NULL,
        .T_map_sensor = {{1, 0, 0, 0, 0, -1, 0, 1, 0}, {0.5, seed, -2}},
        .T_map_sensor_end = {{1, 0, 0, 0, 1, 0, 0, 0, 1}, {0.75, seed, -2}},
        .range_min_m = 0.5,
        .range_max_m = 80,
        .carve_m = 10.0 * seed,
        .weight = 1,
        .by_angle = seed == 1};
    if (seed > 0) {
        scan->method = VXD_LIDAR_RANGE_IMAGE;
        scan->lidar = (struct vxd_volume_lidar){.rows = 3,
                                                .columns = 100,
                                                .top_deg = 3,
                                                .bottom_deg = -20,
                                                .azimuth_span_deg = 360};
        scan->lidar.elevations_deg = seed == 2 ? in->elevations : NULL;
        record->forgotten = in->keys;
        record->n_forgotten = 2;
    }
}

/* Record i of N_RECORDS: of all kinds in turn, those of scans last. */
static int kind_of(int i)
{
    return i < 9 ? VXD_VOLUME_RECORD_BLOCKS + i % 3 : VXD_VOLUME_RECORD_SCAN;
}

static int seed_of(int i)
{
    return i < 9 ? i / 3 : i - 9;
}

static struct vxd_volume_record make(struct inputs *in, int kind, int seed)
{
    struct vxd_volume_record record = {.kind = (enum vxd_volume_record_kind)kind,
                                       .unix_ns = 1795312032000000000 + seed,
                                       .author = "ada",
                                       .client = "robot"};

    fill(in, seed);
    if (kind == VXD_VOLUME_RECORD_BLOCKS) {
        set_blocks(&record.blocks, in, seed);
    } else if (kind == VXD_VOLUME_RECORD_IMAGE) {
        set_image(&record, in, seed);
    } else if (kind == VXD_VOLUME_RECORD_SCAN) {
        set_scan(&record, in, seed);
    } else {
        set_removal(&record, seed);
    }
    return record;
}

static enum vxd_status decode(const struct vxd_record_bytes *bytes, size_t n_bytes,
                              struct vxd_volume_record_decoded *out)
{
    struct vxd_err err = {0};
    enum vxd_status status = vxd_volume_record_decode(
        bytes->bytes, n_bytes, VXD_VOLUME_RULES_VERSION, 0, out, &err);

    CHECK(status == VXD_OK || err.message[0] != '\0');
    return status;
}

/* --- round trips ---------------------------------------------------------------------------- */

static void check_contents(const struct vxd_volume_record *record,
                           const struct inputs *in)
{
    if (record->kind == VXD_VOLUME_RECORD_BLOCKS && record->blocks.n > 0) {
        CHECK(memcmp(record->blocks.entries, in->entries, sizeof in->entries) == 0);
        CHECK(memcmp(record->blocks.keys, in->keys, sizeof in->keys) == 0);
        CHECK(memcmp(record->blocks.stamps, in->stamps, sizeof in->stamps) == 0);
        CHECK_STR(record->blocks.layers[1].name, "weight");
        CHECK(memcmp(record->blocks.layers[0].rows, in->distances,
                     sizeof in->distances) == 0);
        CHECK(memcmp(record->blocks.layers[1].rows, in->weights, sizeof in->weights) ==
              0);
    } else if (record->kind == VXD_VOLUME_RECORD_IMAGE) {
        CHECK_INT(record->depth.n_bytes, sizeof in->depth);
        CHECK(memcmp(record->depth.bytes, in->depth, sizeof in->depth) == 0);
        CHECK(record->frame.camera.fy == 5.5 && record->frame.depth_max_m == 3);
        CHECK(record->frame.T_map_camera.rotation[5] == -1);
    } else if (record->kind == VXD_VOLUME_RECORD_SCAN) {
        const struct vxd_volume_scan *scan = &record->scan;

        CHECK_INT(scan->n_points, N_POINTS);
        CHECK(memcmp(scan->points, in->points, sizeof in->points) == 0);
        CHECK(scan->n_features == 0 ||
              memcmp(scan->features, in->features, sizeof in->features) == 0);
        CHECK(scan->labels == NULL ||
              memcmp(scan->labels, in->labels, sizeof in->labels) == 0);
        CHECK((scan->labels == NULL) == (scan->n_features > 0));
        CHECK_INT(scan->label_column, scan->n_features > 0 ? 4 : -1);
        CHECK(scan->T_map_sensor_end.translation[0] == 0.75);
        CHECK(scan->range_max_m == 80 && scan->range_min_m == 0.5);
        CHECK(scan->lidar.elevations_deg == NULL ||
              memcmp(scan->lidar.elevations_deg, in->elevations, sizeof in->elevations) ==
                  0);
    } else if (record->kind == VXD_VOLUME_RECORD_REMOVE) {
        CHECK(record->decay.region.is_ball ? record->decay.region.radius == 7
                                           : record->decay.region.high[2] == 3);
    }
}

static void test_records_come_back_as_they_were(void)
{
    static struct inputs inputs;

    for (int i = 0; i < N_RECORDS; i++) {
        struct vxd_volume_record record = make(&inputs, kind_of(i), seed_of(i));
        struct vxd_volume_record_decoded decoded;
        struct vxd_record_bytes bytes = {0};
        struct vxd_record_bytes again = {0};

        REQUIRE(vxd_volume_record_encode(&record, &bytes, NULL) == VXD_OK);
        REQUIRE(decode(&bytes, bytes.n_bytes, &decoded) == VXD_OK);
        CHECK_INT(decoded.record.kind, record.kind);
        CHECK_INT(decoded.record.unix_ns, record.unix_ns);
        CHECK_STR(decoded.record.author, "ada");
        check_contents(&decoded.record, &inputs);
        REQUIRE(vxd_volume_record_encode(&decoded.record, &again, NULL) == VXD_OK);
        CHECK(again.n_bytes == bytes.n_bytes &&
              memcmp(again.bytes, bytes.bytes, bytes.n_bytes) == 0);
        vxd_volume_record_decoded_free(&decoded);
        vxd_record_bytes_free(&again);
        vxd_record_bytes_free(&bytes);
    }
}

/* --- damage --------------------------------------------------------------------------------- */

static void test_damaged_records_are_refused_or_say_something_else(void)
{
    static struct inputs inputs;

    for (int i = 0; i < N_RECORDS; i++) {
        struct vxd_volume_record record = make(&inputs, kind_of(i), seed_of(i));
        struct vxd_volume_record_decoded decoded;
        struct vxd_record_bytes bytes = {0};

        REQUIRE(vxd_volume_record_encode(&record, &bytes, NULL) == VXD_OK);
        for (size_t n = 0; n < bytes.n_bytes; n++) {
            CHECK_INT(decode(&bytes, n, &decoded), VXD_DATA_LOSS);
        }
        for (size_t at = 0; at < bytes.n_bytes; at++) {
            for (unsigned bit = 1; bit < 256; bit *= 2) {
                bytes.bytes[at] ^= (uint8_t)bit;
                if (decode(&bytes, bytes.n_bytes, &decoded) == VXD_OK) {
                    vxd_volume_record_decoded_free(&decoded);
                }
                bytes.bytes[at] ^= (uint8_t)bit;
            }
        }
        vxd_record_bytes_free(&bytes);
    }
}

/* --- ranges --------------------------------------------------------------------------------- */

/* Changes a record so that one value is the last that is permitted, or the first that is not. Gives
 * why the reader refuses it; NULL where it does not. Blocks and points are left out where a wrong
 * number of their bytes would be written. */
static const char *spoil_blocks(struct vxd_volume_record *record, int i)
{
    static const char bad[] = "not a layer";
    const uint32_t most = VXD_HASHMAP_MAX_ROW_BYTES / sizeof(float);

    record->blocks.n = 0;
    switch (i) {
    case 0:
        record->blocks.layers[0].n_elements = most;
        return NULL;
    case 1:
        record->blocks.layers[0].n_elements = most + 1;
        return bad;
    case 2:
        record->blocks.layers[1].n_elements = VXD_HASHMAP_MAX_ROW_BYTES;
        return NULL;
    case 3:
        record->blocks.layers[1].n_elements = VXD_HASHMAP_MAX_ROW_BYTES + 1;
        return bad;
    case 4:
        record->blocks.layers[1].n_elements = 0;
        return bad;
    case 5:
        record->blocks.layers[0].dtype = (enum vxd_dtype)200;
        return bad;
    case 6:
        memset(record->blocks.layers[1].name, 'x', VXD_RECORD_LAYER_BYTES - 1);
        return NULL;
    default:
        record->blocks.n_layers = 0;
        return NULL;
    }
}

static const char *spoil_image(struct vxd_volume_record *record, int i)
{
    static const int sides[] = {1, 16384, 0, 16385, -1};
    static const char bad[] = "not the sides of an image";
    struct vxd_volume_frame *frame = &record->frame;

    if (i < 5) {
        frame->camera.width = sides[i];
        return i < 2 ? NULL : bad;
    }
    if (i < 10) {
        frame->camera.height = sides[i - 5];
        return i < 7 ? NULL : bad;
    }
    if (i < 15) {
        frame->has_colour_camera = true;
        frame->colour_camera = frame->camera;
        frame->colour_camera.height = sides[i - 10];
        return i < 12 ? NULL : bad;
    }
    switch (i) {
    case 15:
        frame->dtype = VXD_FLOAT32;
        return NULL;
    case 16:
        frame->dtype = VXD_FLOAT64;
        return "no type of depths";
    case 17:
        frame->weighting = (enum vxd_volume_weighting)(VXD_VOLUME_WEIGHT_INV_Z2 + 1);
        return "no weighting";
    case 18:
        record->depth.form = VXD_RECORD_PIXELS_NONE;
        return "an image without depths";
    case 19:
        record->depth.form = (enum vxd_record_pixels)(VXD_RECORD_PIXELS_PNG + 1);
        return "no form of an image";
    case 20:
        record->colour.form = VXD_RECORD_PIXELS_PNG;
        record->colour.n_bytes = 0;
        return NULL;
    default:
        record->depth.n_bytes = 0;
        return NULL;
    }
}

static const char *spoil_scan(struct vxd_volume_record *record, int i)
{
    static const char bad_lidar[] = "not the rows and columns of a lidar";
    static const char bad_column[] = "no column of the features";
    struct vxd_volume_scan *scan = &record->scan;

    scan->n_points = 0;
    scan->lidar.elevations_deg = NULL;
    switch (i) {
    case 0:
        scan->lidar.rows = VXD_LIDAR_MAX_ROWS;
        scan->lidar.columns = VXD_LIDAR_MAX_COLUMNS;
        return NULL;
    case 1:
        scan->lidar.rows = VXD_LIDAR_MAX_ROWS + 1;
        return bad_lidar;
    case 2:
        scan->lidar.columns = VXD_LIDAR_MAX_COLUMNS + 1;
        return bad_lidar;
    case 3:
        scan->method = (enum vxd_volume_scan_method)(VXD_LIDAR_RANGE_IMAGE + 1);
        return "no method of a scan";
    case 4:
        scan->weighting = (enum vxd_volume_weighting)(VXD_VOLUME_WEIGHT_INV_Z2 + 1);
        return "no weighting";
    case 5:
        scan->n_features = 6;
        return "not a number of points, or of their features";
    case 6:
        scan->time_column = scan->n_features - 1;
        return NULL;
    case 7:
        scan->time_column = scan->n_features;
        return bad_column;
    case 8:
        scan->normal_column = scan->n_features - 3;
        return NULL;
    case 9:
        scan->normal_column = scan->n_features - 2;
        return bad_column;
    case 10:
        scan->label_column = scan->n_features;
        return bad_column;
    case 11:
        scan->n_features = 0;
        scan->time_column = scan->normal_column = scan->label_column = -1;
        return NULL;
    default:
        scan->weighting = VXD_VOLUME_WEIGHT_INV_Z2;
        return NULL;
    }
}

static const char *spoil_kind(struct vxd_volume_record *record, int i)
{
    static const int kinds[] = {VXD_VOLUME_RECORD_BLOCKS - 1,
                                VXD_VOLUME_RECORD_REMOVE + 1, VXD_VOLUME_RECORD_SCAN - 1,
                                VXD_VOLUME_RECORD_SCAN + 1};

    record->kind = (enum vxd_volume_record_kind)kinds[i];
    return "no kind of record";
}

static void test_record_is_read_up_to_the_ends_of_its_ranges(void)
{
    static const struct {
        int kind;
        int n;
        const char *(*spoil)(struct vxd_volume_record *record, int i);
    } groups[] = {{VXD_VOLUME_RECORD_BLOCKS, 8, spoil_blocks},
                  {VXD_VOLUME_RECORD_IMAGE, 22, spoil_image},
                  {VXD_VOLUME_RECORD_SCAN, 13, spoil_scan},
                  {VXD_VOLUME_RECORD_REMOVE, 4, spoil_kind}};
    static struct inputs inputs;

    for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++) {
        for (int i = 0; i < groups[g].n; i++) {
            struct vxd_volume_record record = make(&inputs, groups[g].kind, 1);
            const char *why = groups[g].spoil(&record, i);
            struct vxd_volume_record_decoded decoded = {0};
            struct vxd_record_bytes bytes = {0};
            struct vxd_err err = {0};

            REQUIRE(vxd_volume_record_encode(&record, &bytes, NULL) == VXD_OK);
            CHECK_INT(vxd_volume_record_decode(bytes.bytes, bytes.n_bytes,
                                               VXD_VOLUME_RULES_VERSION, 0, &decoded,
                                               &err),
                      why == NULL ? VXD_OK : VXD_DATA_LOSS);
            CHECK(why == NULL || strstr(err.message, why) != NULL);
            vxd_volume_record_decoded_free(&decoded);
            vxd_record_bytes_free(&bytes);
        }
    }
}

static void test_record_with_a_byte_behind_it_is_refused(void)
{
    static struct inputs inputs;

    for (int i = 0; i < N_RECORDS; i++) {
        struct vxd_volume_record record = make(&inputs, kind_of(i), seed_of(i));
        struct vxd_volume_record_decoded decoded;
        struct vxd_record_bytes bytes = {0};
        struct vxd_bytes_out longer = {0};

        REQUIRE(vxd_volume_record_encode(&record, &bytes, NULL) == VXD_OK);
        vxd_bytes_put(&longer, bytes.bytes, bytes.n_bytes);
        vxd_bytes_put8(&longer, 0);
        CHECK_INT(vxd_volume_record_decode(longer.bytes, longer.n,
                                           VXD_VOLUME_RULES_VERSION, 0, &decoded, NULL),
                  VXD_DATA_LOSS);
        vxd_record_bytes_free(&bytes);
        free(longer.bytes);
    }
}

static void test_records_of_other_rules_are_a_newer_servers(void)
{
    static struct inputs inputs;
    struct vxd_volume_record record = make(&inputs, VXD_VOLUME_RECORD_REMOVE, 0);
    struct vxd_volume_record_decoded decoded;
    struct vxd_record_bytes bytes = {0};

    REQUIRE(vxd_volume_record_encode(&record, &bytes, NULL) == VXD_OK);
    CHECK_INT(vxd_volume_record_decode(bytes.bytes, bytes.n_bytes,
                                       VXD_VOLUME_RULES_VERSION + 1, 0, &decoded, NULL),
              VXD_FAILED_PRECONDITION);
    CHECK_INT(vxd_volume_record_decode(bytes.bytes, bytes.n_bytes, VXD_MAP_RULES_VERSION,
                                       0, &decoded, NULL),
              VXD_FAILED_PRECONDITION);
    CHECK_STR(vxd_record_find_owner(VXD_VOLUME_RULES_VERSION)->prefix, "volume:");
    vxd_record_bytes_free(&bytes);
}

/* The records, each behind 4 bytes of its length. With VOXELD_WRITE_GOLDEN they are written
 * anew. */
static void test_records_are_the_golden_ones(void)
{
    static const char path[] = VOXELD_SOURCE_DIR "/tests/data/volume_record_v1.bin";
    static struct inputs inputs;
    static uint8_t golden[1 << 16];
    struct vxd_bytes_out all = {0};
    size_t n_bytes;
    FILE *file;

    for (int i = 0; i < N_RECORDS; i++) {
        struct vxd_volume_record record = make(&inputs, kind_of(i), seed_of(i));
        struct vxd_record_bytes bytes = {0};
        uint32_t n;

        REQUIRE(vxd_volume_record_encode(&record, &bytes, NULL) == VXD_OK);
        n = (uint32_t)bytes.n_bytes;
        vxd_bytes_put(&all, &n, sizeof n);
        vxd_bytes_put(&all, bytes.bytes, bytes.n_bytes);
        vxd_record_bytes_free(&bytes);
    }
    if (getenv("VOXELD_WRITE_GOLDEN") != NULL) {
        file = fopen(path, "wb");
        REQUIRE(file != NULL && fwrite(all.bytes, 1, all.n, file) == all.n);
        (void)fclose(file);
    }
    file = fopen(path, "rb");
    REQUIRE(file != NULL);
    n_bytes = fread(golden, 1, sizeof golden, file);
    (void)fclose(file);
    CHECK(n_bytes == all.n && memcmp(golden, all.bytes, n_bytes) == 0);
    free(all.bytes);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_records_come_back_as_they_were),
    VXD_TEST(test_damaged_records_are_refused_or_say_something_else),
    VXD_TEST(test_record_is_read_up_to_the_ends_of_its_ranges),
    VXD_TEST(test_record_with_a_byte_behind_it_is_refused),
    VXD_TEST(test_records_of_other_rules_are_a_newer_servers),
    VXD_TEST(test_records_are_the_golden_ones),
};

VXD_TEST_MAIN(tests)
