// SPDX-License-Identifier: Apache-2.0
/* Digests of outputs per operation and seed, compared with tests/data/digests.json: a
 * CPU run and an H200 run must agree on them, and they must not change by accident.
 * `test_gpu_digests --write FILE` writes the file from a CPU run. */
#include "gpu/core/core.h"
#include "tests/support/gpu/voxelize_cases.h"
#include "tests/support/hash/hash_digest.h"
#include "tests/support/test.h"

#define DIGESTS_FILE VOXELD_SOURCE_DIR "/tests/data/digests.json"

enum {
    MAX_DIGESTS = 512,
    NAME_BYTES = 112
};

struct digests {
    int n;
    struct {
        char name[NAME_BYTES];
        uint64_t value;
    } items[MAX_DIGESTS];
};

static void add(struct digests *digests, const char *name, uint64_t value)
{
    if (digests->n < MAX_DIGESTS) {
        (void)snprintf(digests->items[digests->n].name, NAME_BYTES, "%s", name);
        digests->items[digests->n].value = value;
        digests->n++;
    }
}

static uint64_t digest_floats(const struct gpu_voxels *voxels,
                              const struct vxd_voxelize_args *args)
{
    size_t n_bytes = voxels->n_voxels * (size_t)args->n_channels * sizeof(float);
    uint64_t digest = gpu_digest(GPU_FNV_START, voxels->mean, n_bytes);

    digest = gpu_digest(digest, voxels->sum, n_bytes);
    digest = gpu_digest(digest, voxels->min, n_bytes);
    digest = gpu_digest(digest, voxels->max, n_bytes);
    return gpu_digest(digest, voxels->first, n_bytes);
}

static void add_voxelize(struct gpu_env *env, struct digests *digests,
                         enum gpu_cloud_kind kind, size_t n, int config)
{
    struct gpu_case item;
    struct gpu_voxels voxels;
    char name[NAME_BYTES];

    gpu_case_make(&item, kind, n, config);
    gpu_voxelize(env, &item.args, &voxels);
    add(digests, item.name, gpu_voxels_digest(&voxels, &item.args));
    (void)snprintf(name, sizeof name, "%s/floats", item.name);
    add(digests, name, digest_floats(&voxels, &item.args));
    gpu_voxels_free(&voxels);
    gpu_case_free(&item);
}

static void add_sort(struct gpu_env *env, struct digests *digests, size_t n)
{
    uint64_t *keys = gpu_alloc(n * sizeof *keys);
    uint32_t *values = gpu_alloc(n * sizeof *values);
    size_t scratch_bytes = vxd_sort_pairs_scratch_bytes(env->queue, n);
    struct vxd_buffer b[5];
    uint64_t seed = n;
    char name[NAME_BYTES];

    for (size_t i = 0; i < n; i++) {
        keys[i] = gpu_random(&seed) & 0x3fff00ffffULL;
        values[i] = (uint32_t)i;
    }
    b[0] = gpu_to_device(env, keys, n * sizeof *keys);
    b[1] = gpu_to_device(env, values, n * sizeof *values);
    b[2] = gpu_to_device(env, NULL, n * sizeof *keys);
    b[3] = gpu_to_device(env, NULL, n * sizeof *values);
    b[4] = gpu_to_device(env, NULL, scratch_bytes);
    CHECK_INT(vxd_sort_pairs(env->queue, b[0].ptr, b[1].ptr, b[2].ptr, b[3].ptr, n, 4, 38,
                             b[4].ptr, scratch_bytes, NULL),
              VXD_OK);
    gpu_wait(env);
    free(keys);
    free(values);
    keys = gpu_to_host(env, &b[0]);
    values = gpu_to_host(env, &b[1]);
    (void)snprintf(name, sizeof name, "sort/%zu", n);
    add(digests, name,
        gpu_digest(gpu_digest(GPU_FNV_START, keys, n * sizeof *keys), values,
                   n * sizeof *values));
    for (int i = 0; i < 5; i++) {
        vxd_device_free(env->queue, &b[i]);
    }
    free(keys);
    free(values);
}

static void add_decode(struct gpu_env *env, struct digests *digests, size_t n)
{
    enum {
        STEP = 27,
        N_CHANNELS = 12
    };
    unsigned char *bytes = gpu_alloc(n * STEP);
    uint64_t seed = n;
    struct vxd_buffer data;
    struct vxd_buffer positions = gpu_to_device(env, NULL, n * 12);
    struct vxd_buffer features = gpu_to_device(env, NULL, n * N_CHANNELS * 4);
    struct vxd_cloud cloud = {.n_points = n, .point_step = STEP};
    float *p;
    float *f;
    char name[NAME_BYTES];

    for (size_t i = 0; i < n * STEP; i++) {
        bytes[i] = (unsigned char)gpu_random(&seed);
    }
    data = gpu_to_device(env, bytes, n * STEP);
    cloud.data = data.ptr;
    for (uint32_t i = 0; i < 9; i++) {
        cloud.rotation[i] = 0.3 * i - 1.1;
        cloud.translation[i % 3] = 1e5 / (i + 1);
        cloud.position[i % 3] =
            (struct vxd_field){5 * (i % 3), VXD_INT16, 0.001, -0.25 * i};
    }
    cloud.n_channels = N_CHANNELS;
    for (uint32_t c = 0; c < N_CHANNELS; c++) {
        cloud.channels[c].field =
            (struct vxd_field){c + 3, (enum vxd_dtype)(c + 1), 0.37, 1.7};
    }
    CHECK_INT(vxd_cloud_decode(env->queue, &cloud, positions.ptr, features.ptr, NULL),
              VXD_OK);
    gpu_wait(env);
    p = gpu_to_host(env, &positions);
    f = gpu_to_host(env, &features);
    (void)snprintf(name, sizeof name, "decode/%zu", n);
    add(digests, name,
        gpu_digest(gpu_digest(GPU_FNV_START, p, n * 12), f, n * N_CHANNELS * 4));
    free(bytes);
    free(p);
    free(f);
    vxd_device_free(env->queue, &data);
    vxd_device_free(env->queue, &positions);
    vxd_device_free(env->queue, &features);
}

/* One name for both indexes: they must agree. */
static void add_hashmap(struct gpu_env *env, struct digests *digests, int hash_case)
{
    uint64_t open = gpu_hash_digest(env, hash_case, VXD_HASH_OPEN);

    CHECK(gpu_hash_digest(env, hash_case, GPU_OTHER_INDEX) == open);
    add(digests, gpu_hash_digest_name(hash_case), open);
}

static void compute(struct gpu_env *env, struct digests *digests)
{
    digests->n = 0;
    add_sort(env, digests, 1025);
    add_sort(env, digests, 100000);
    add_decode(env, digests, 1025);
    add_decode(env, digests, 30000);
    for (int kind = 0; kind < GPU_N_CLOUD_KINDS; kind++) {
        for (int config = 0; config < GPU_N_CONFIGS; config++) {
            add_voxelize(env, digests, (enum gpu_cloud_kind)kind, 5000, config);
        }
        add_voxelize(env, digests, (enum gpu_cloud_kind)kind, 100000, 1);
        add_voxelize(env, digests, (enum gpu_cloud_kind)kind, 100000, 6);
    }
    for (int i = 0; i < GPU_N_HASH_CASES; i++) {
        add_hashmap(env, digests, i);
    }
}

/* Lines of the form `"name": "hex",`; any other line is skipped. */
static bool read_digests(struct digests *digests)
{
    FILE *file = fopen(DIGESTS_FILE, "r");
    char line[256];

    digests->n = 0;
    if (file == NULL) {
        return false;
    }
    while (fgets(line, sizeof line, file) != NULL) {
        char *name = strchr(line, '"');
        char *name_end = name != NULL ? strchr(name + 1, '"') : NULL;
        char *value = name_end != NULL ? strchr(name_end + 1, '"') : NULL;

        if (value != NULL) {
            *name_end = '\0';
            add(digests, name + 1, strtoull(value + 1, NULL, 16));
        }
    }
    (void)fclose(file);
    return true;
}

static bool write_digests(const struct digests *digests, const char *path)
{
    FILE *file = fopen(path, "w");
    bool is_written;

    if (file == NULL) {
        return false;
    }
    (void)fprintf(file, "{\n");
    for (int i = 0; i < digests->n; i++) {
        (void)fprintf(file, "  \"%s\": \"%016llx\"%s\n", digests->items[i].name,
                      (unsigned long long)digests->items[i].value,
                      i + 1 < digests->n ? "," : "");
    }
    (void)fprintf(file, "}\n");
    is_written = ferror(file) == 0;
    return fclose(file) == 0 && is_written;
}

static void compare(struct gpu_env *env)
{
    static struct digests actual;
    static struct digests expected;

    REQUIRE(read_digests(&expected));
    compute(env, &actual);
    CHECK_INT(actual.n, expected.n);
    for (int i = 0; i < actual.n && i < expected.n; i++) {
        CHECK_STR(actual.items[i].name, expected.items[i].name);
        if (actual.items[i].value != expected.items[i].value) {
            (void)fprintf(stderr, "%s: digest of %s is %016llx, expected %016llx\n",
                          env->name, actual.items[i].name,
                          (unsigned long long)actual.items[i].value,
                          (unsigned long long)expected.items[i].value);
            CHECK(false && "digest as recorded");
        }
    }
}

static void test_digests_of_every_backend_are_as_recorded(void)
{
    gpu_each_backend(compare);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_digests_of_every_backend_are_as_recorded),
};

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--write") == 0) {
        static struct digests digests;
        struct gpu_env env;

        gpu_env_create(&env, VXD_BACKEND_CPU, 0, 0, 0);
        compute(&env, &digests);
        gpu_env_destroy(&env);
        return write_digests(&digests, argv[2]) ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    return vxd_test_run_all(tests, sizeof tests / sizeof tests[0],
                            argc > 1 ? argv[1] : NULL);
}
