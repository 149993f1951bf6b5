// SPDX-License-Identifier: Apache-2.0
/* libvoxeld's calls on maps, and calls that take effect exactly once, against a
 * scripted peer. */
#include <fcntl.h>
#include <nng/nng.h>
#include <nng/supplemental/util/platform.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "proto/wire/wire.h"
#include "tests/support/client/client_requests.h"

enum {
    N_KEYS = 4,
    N_MANY = 20000,
    N_THREADS = 6,
    CALLS_PER_THREAD = 40
};

static const int32_t some_keys[3 * N_KEYS] = {1, 2, 3, 4, 5, 6};
static const int32_t many_keys[3 * N_MANY];
static const float some_values[2 * N_KEYS];

static struct voxeld_array keys_of(const int32_t *keys, size_t n)
{
    return (struct voxeld_array){
        .dtype = VOXELD_INT32, .data = keys, .n = n, .n_elements = 3};
}

static void test_map_calls_hand_out_what_the_server_says(void)
{
    static const struct voxeld_map_array arrays[] = {{"v", VOXELD_FLOAT32, 2}};
    struct voxeld_map_create_request create = {
        .map = "seen", .n_components = 3, .arrays = arrays, .n_arrays = 1};
    struct voxeld_map_load_request load = {.map = "seen"};
    struct voxeld_map_saved saved;
    struct voxeld_maps *maps;
    struct pair pair;
    bool existed = false;

    REQUIRE(pair_start(&pair));
    CHECK_INT(voxeld_map_create(pair.client, &create, &maps, NULL), VOXELD_OK);
    CHECK(maps->existed && maps->n_maps == 1 && maps->maps[0].n_entries == 12);
    CHECK_STR(maps->maps[0].name, "seen");
    CHECK_STR(maps->maps[0].arrays[0].name, "v");
    CHECK_INT(maps->maps[0].arrays[0].n_elements, 2);
    CHECK(maps->maps[0].has_lattice && maps->maps[0].lattice.size_m[1] == 0.5);
    CHECK_STR(maps->maps[0].lattice.frame_id, "map");
    voxeld_maps_free(maps);
    CHECK_INT(voxeld_map_create(pair.client, &create, NULL, NULL), VOXELD_OK);
    CHECK_INT(voxeld_map_get(pair.client, NULL, "seen", &maps, NULL), VOXELD_OK);
    CHECK(!maps->maps[0].unavailable);
    voxeld_maps_free(maps);
    CHECK_INT(voxeld_map_list(pair.client, NULL, &maps, NULL), VOXELD_OK);
    CHECK(maps->n_maps == 1 && maps->n_bytes == 1000);
    CHECK(maps->maps[0].unavailable);
    voxeld_maps_free(maps);
    CHECK_INT(voxeld_map_load(pair.client, &load, &maps, NULL), VOXELD_OK);
    voxeld_maps_free(maps);
    CHECK_INT(voxeld_map_save(pair.client, NULL, "seen", "f", &saved, NULL), VOXELD_OK);
    CHECK_STR(saved.file, "f");
    CHECK(saved.digest == UINT64_C(0x8000000000000001));
    CHECK_INT(voxeld_map_save(pair.client, NULL, "seen", NULL, NULL, NULL), VOXELD_OK);
    CHECK_INT(voxeld_map_drop(pair.client, NULL, "seen", true, &existed, NULL),
              VOXELD_OK);
    CHECK(existed);
    CHECK_INT(voxeld_map_drop(pair.client, NULL, "seen", true, NULL, NULL), VOXELD_OK);
    pair_stop(&pair);
}

static void test_entry_calls_hand_out_checked_arrays(void)
{
    static const char *const star[] = {"*"};
    static const int32_t numbers[] = {3, 1};
    const struct voxeld_array rows = {"v", VOXELD_FLOAT32, some_values, N_KEYS, 2};
    struct voxeld_map_insert_request insert = {.map = "seen",
                                               .keys = keys_of(some_keys, N_KEYS),
                                               .values = &rows,
                                               .n_values = 1};
    struct voxeld_map_find_request find = {.map = "seen",
                                           .keys = keys_of(some_keys, N_KEYS),
                                           .arrays = star,
                                           .n_arrays = 1,
                                           .neighbours = 27};
    struct voxeld_map_find_request gather = {.map = "seen",
                                             .indices = numbers,
                                             .n_indices = 2,
                                             .erase_epoch = 3,
                                             .return_keys = true};
    struct voxeld_map_erase_request erase = {.map = "seen", .all = true};
    struct voxeld_map_update_request update = {.map = "seen",
                                               .indices = numbers,
                                               .n_indices = 2,
                                               .values = &rows,
                                               .n_values = 1};
    struct voxeld_map_result *r;
    Voxeld__V1__Request *arrived;
    struct pair pair;

    REQUIRE(pair_start(&pair));
    REQUIRE(voxeld_map_insert(pair.client, &insert, &r, NULL) == VOXELD_OK);
    CHECK(r->n == N_KEYS && r->n_new == N_KEYS && r->erase_epoch == 3 && !r->replayed);
    CHECK(r->indices[3] == 3 && r->is_new[0] == 1 && r->found == NULL);
    voxeld_map_result_free(r);
    arrived = peer_last(&pair.peer);
    REQUIRE(arrived != NULL);
    CHECK(arrived->header->sequence > 0 && arrived->header->client_id[0] == 'c');
    CHECK_INT(arrived->map_insert->keys->shape[1], 3);
    CHECK_STR(arrived->map_insert->values[0]->name, "v");
    CHECK_INT(arrived->map_insert->values[0]->rows->data.len, sizeof some_values);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    REQUIRE(voxeld_map_insert(pair.client, &insert, NULL, NULL) == VOXELD_OK);

    REQUIRE(voxeld_map_find(pair.client, &find, &r, NULL) == VOXELD_OK);
    CHECK(r->n_found == N_KEYS && r->found[2] == 1 && r->n_neighbours == 27);
    CHECK(r->n_values == 1 && r->values[0].n_elements == 2 && r->values[0].n == N_KEYS);
    CHECK(((const float *)r->values[0].data)[7] == 7 && r->keys.data == NULL);
    CHECK(r->neighbours[27 * N_KEYS - 1] == 0);
    voxeld_map_result_free(r);
    REQUIRE(voxeld_map_find(pair.client, &gather, &r, NULL) == VOXELD_OK);
    CHECK(r->n == 2 && r->n_values == 0 && r->neighbours == NULL);
    CHECK(r->keys.n_elements == 3 && ((const int32_t *)r->keys.data)[5] == 1);
    voxeld_map_result_free(r);

    REQUIRE(voxeld_map_erase(pair.client, &erase, &r, NULL) == VOXELD_OK);
    CHECK(r->n_erased == 7 && r->erased == NULL);
    voxeld_map_result_free(r);
    REQUIRE(voxeld_map_update(pair.client, &update, &r, NULL) == VOXELD_OK);
    CHECK(r->n_updated == 8 && r->n == 2 && r->updated[1] == 1);
    voxeld_map_result_free(r);
    pair_stop(&pair);
}

static void test_export_hands_out_arrays_or_a_file(void)
{
    struct voxeld_map_export_request request = {.map = "seen"};
    struct voxeld_map_result *r;
    struct voxeld_error error = {0};
    char path[] = "/tmp/voxeld-export-XXXXXX";
    char text[8] = "";
    uint64_t n_entries = 0;
    struct pair pair;
    int fd = mkstemp(path);

    REQUIRE(fd >= 0 && pair_start(&pair));
    REQUIRE(voxeld_map_export(pair.client, &request, &r, NULL) == VOXELD_OK);
    CHECK(r->n == PEER_MAP_ENTRIES && r->indices[4] == 4 && r->keys.n == r->n);
    CHECK(r->n_values == 1 && r->has_lattice && r->ply == NULL);
    voxeld_map_result_free(r);
    request.keys_only = true;
    REQUIRE(voxeld_map_export(pair.client, &request, &r, NULL) == VOXELD_OK);
    CHECK_INT(r->n_values, 0);
    voxeld_map_result_free(r);
    request.as_ply = true;
    REQUIRE(voxeld_map_export(pair.client, &request, &r, NULL) == VOXELD_OK);
    CHECK(r->n_ply_bytes == 4 && memcmp(r->ply, "ply\n", 4) == 0);
    voxeld_map_result_free(r);

    CHECK_INT(voxeld_map_export_file(pair.client, &request, path, &n_entries, NULL),
              VOXELD_OK);
    CHECK_INT(n_entries, PEER_MAP_ENTRIES);
    (void)close(fd);
    fd = open(path, O_RDONLY);
    CHECK(read(fd, text, sizeof text) == 4 && memcmp(text, "ply\n", 4) == 0);
    (void)close(fd);
    (void)unlink(path);
    CHECK_INT(
        voxeld_map_export_file(pair.client, &request, "/nowhere/x.ply", NULL, &error),
        VOXELD_UNAVAILABLE);
    CHECK_STR(error.field, "path");
    pair_stop(&pair);
}

static void test_flawed_map_answers_are_internal(void)
{
    static const char *const one[] = {"v"};
    struct voxeld_map_insert_request insert = {.keys = keys_of(some_keys, N_KEYS)};
    struct voxeld_map_find_request find = {.keys = keys_of(some_keys, N_KEYS),
                                           .arrays = one,
                                           .n_arrays = 1,
                                           .neighbours = 6,
                                           .return_keys = true};
    struct voxeld_map_export_request export = {0};
    struct voxeld_map_export_request ply = {.as_ply = true};
    struct pair pair;

    REQUIRE(pair_start(&pair));
    for (int flaw = 1; flaw < N_MAP_FLAWS; flaw++) {
        struct voxeld_map_result *r = NULL;
        struct voxeld_maps *maps = NULL;
        struct voxeld_error error = {0};
        int n_internal = 0;

        atomic_store(&pair.peer.map_flaw, flaw);
        n_internal += voxeld_map_insert(pair.client, &insert, &r, &error) != VOXELD_OK;
        voxeld_map_result_free(r);
        n_internal += voxeld_map_find(pair.client, &find, &r, &error) != VOXELD_OK;
        voxeld_map_result_free(r);
        n_internal += voxeld_map_export(pair.client, &export, &r, &error) != VOXELD_OK;
        voxeld_map_result_free(r);
        n_internal += voxeld_map_export(pair.client, &ply, &r, &error) != VOXELD_OK;
        voxeld_map_result_free(r);
        n_internal += voxeld_map_list(pair.client, NULL, &maps, &error) != VOXELD_OK;
        voxeld_maps_free(maps);
        CHECK(n_internal > 0);
        CHECK_INT(error.code, VOXELD_INTERNAL);
        CHECK(error.request_id[0] != '\0');
    }
    pair_stop(&pair);
}

static void test_impossible_map_requests_are_refused_unsent(void)
{
    const struct voxeld_array bad_rows = {"v", (enum voxeld_dtype)99, some_values, 1, 1};
    const struct {
        struct voxeld_array keys;
        const struct voxeld_array *values;
        size_t n_values;
        const char *field;
    } cases[] = {
        {{.dtype = VOXELD_INT32, .data = NULL, .n = 1}, NULL, 0, "keys"},
        {{.dtype = (enum voxeld_dtype)99, .data = some_keys, .n = 1}, NULL, 0, "keys"},
        {{.dtype = VOXELD_INT32, .data = some_keys, .n = SIZE_MAX / 2}, NULL, 0, "keys"},
        {{.dtype = VOXELD_INT32, .data = some_keys, .n = 1}, NULL, 1, "values"},
        {{.dtype = VOXELD_INT32, .data = some_keys, .n = 1},
         &bad_rows,
         1,
         "values[0].rows"},
    };
    struct voxeld_map_find_request find = {.n_indices = 2};
    struct voxeld_map_create_request create = {.n_arrays = 1};
    struct voxeld_map_result *r;
    struct voxeld_error error;
    struct pair pair;

    REQUIRE(pair_start(&pair));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct voxeld_map_insert_request insert = {.keys = cases[i].keys,
                                                   .values = cases[i].values,
                                                   .n_values = cases[i].n_values};

        CHECK_INT(voxeld_map_insert(pair.client, &insert, &r, &error),
                  VOXELD_INVALID_ARGUMENT);
        CHECK(r == NULL);
        CHECK_STR(error.field, cases[i].field);
    }
    CHECK_INT(voxeld_map_find(pair.client, &find, &r, &error), VOXELD_INVALID_ARGUMENT);
    CHECK_STR(error.field, "indices");
    CHECK_INT(voxeld_map_create(pair.client, &create, NULL, &error),
              VOXELD_INVALID_ARGUMENT);
    CHECK_STR(error.field, "arrays");
    CHECK_INT(atomic_load(&pair.peer.n_voxelize), 0);
    pair_stop(&pair);
}

/* Copies the method's bytes of the last request; returns how many. */
static size_t body_of(struct peer *peer, uint8_t *out, size_t n_max)
{
    struct vxd_envelope envelope = {0};
    size_t n = 0;

    (void)pthread_mutex_lock(&peer->mutex);
    if (vxd_envelope_scan(peer->last, peer->n_last, &envelope, NULL) == VXD_OK &&
        envelope.body_bytes <= n_max) {
        n = envelope.body_bytes;
        memcpy(out, envelope.body, n);
    }
    (void)pthread_mutex_unlock(&peer->mutex);
    return n;
}

/* Big data are aligned by padding, which must not depend on the header. */
static void test_repeated_request_has_the_same_body_whatever_its_header(void)
{
    static uint8_t bodies[2][sizeof many_keys + 1024];
    static const char *const ids[] = {"a", "ab", "a-long-one-of-another-length",
                                      "0123456789-0123456789-0123456789-0123456789-0123"};
    struct voxeld_map_insert_request insert = {
        .map = "seen", .keys = keys_of(many_keys, N_MANY), .call = {.sequence = 77}};
    struct voxeld_map_result *r;
    Voxeld__V1__Request *arrived;
    size_t n_first = 0;
    struct pair pair;

    REQUIRE(pair_start(&pair));
    atomic_store(&pair.peer.aligns, 1);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        size_t n;

        insert.call.request_id = ids[i];
        insert.call.timeout_ms = i % 2 == 0 ? PATIENT_MS : 100000;
        REQUIRE(voxeld_map_insert(pair.client, &insert, &r, NULL) == VOXELD_OK);
        CHECK(r->indices[N_MANY - 1] == N_MANY - 1);
        voxeld_map_result_free(r);
        n = body_of(&pair.peer, bodies[i > 0], sizeof bodies[0]);
        n_first = i == 0 ? n : n_first;
        CHECK(n > sizeof many_keys && n == n_first);
        CHECK(i == 0 || memcmp(bodies[0], bodies[1], n) == 0);
    }
    arrived = peer_last(&pair.peer);
    REQUIRE(arrived != NULL);
    CHECK(arrived->header->sequence == 77);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    pair_stop(&pair);
}

static void test_deadline_is_repeated_by_its_sequence(void)
{
    struct voxeld_map_insert_request insert = {
        .map = "seen", .keys = keys_of(some_keys, N_KEYS), .call = {.timeout_ms = 60}};
    struct voxeld_map_result *r = NULL;
    struct voxeld_retry retry = {.total_ms = 2 * PATIENT_MS};
    struct voxeld_error error = {0};
    enum voxeld_status status;
    uint64_t first = 0;
    int n_calls = 0;
    struct pair pair;

    REQUIRE(pair_start(&pair));
    atomic_store(&pair.peer.mode, PEER_HOLD);
    do {
        status = voxeld_map_insert(pair.client, &insert, &r, &error);
        if (n_calls++ == 0) {
            CHECK_INT(status, VOXELD_DEADLINE_EXCEEDED);
            CHECK(error.sequence > 0 && r == NULL);
            first = error.sequence;
            atomic_store(&pair.peer.replays, 1);
            atomic_store(&pair.peer.mode, PEER_ANSWER);
            peer_release(&pair.peer);
            insert.call.timeout_ms = PATIENT_MS;
        }
    } while (voxeld_retry(&retry, &insert.call, status, &error));
    CHECK_INT(status, VOXELD_OK);
    CHECK_INT(n_calls, 2);
    CHECK(insert.call.sequence == 0 && retry.until_ns == 0);
    REQUIRE(r != NULL);
    CHECK(r->replayed && r->arrays_dropped && r->indices == NULL && r->n_new == N_KEYS);
    voxeld_map_result_free(r);
    atomic_store(&pair.peer.replays, 0);
    CHECK_INT(voxeld_map_insert(pair.client, &insert, NULL, &error), VOXELD_OK);
    {
        Voxeld__V1__Request *arrived = peer_last(&pair.peer);

        REQUIRE(arrived != NULL);
        CHECK(arrived->header->sequence > first);
        voxeld__v1__request__free_unpacked(arrived, NULL);
    }
    pair_stop(&pair);
}

static void test_retry_ends_when_its_time_is_over(void)
{
    struct voxeld_options options = {.url = "ipc:///tmp/voxeld-nobody-here.sock",
                                     .wait_ms = VOXELD_NO_WAIT};
    struct voxeld_client *client;
    struct voxeld_retry retry = {.total_ms = 120}; /* longer when that is for two calls */
    struct voxeld_call call = {0};
    struct voxeld_error error;
    enum voxeld_status status;
    nng_time begin = nng_clock();
    int n_calls = 0;

    REQUIRE(voxeld_connect(&options, &client, NULL) == VOXELD_OK);
    for (int i = 0; i < 5 && n_calls <= 2; i++) {
        n_calls = 0;
        do {
            status = voxeld_map_drop(client, &call, "seen", true, NULL, &error);
            n_calls++;
        } while (voxeld_retry(&retry, &call, status, &error));
        CHECK_INT(status, VOXELD_UNAVAILABLE);
        CHECK(call.sequence == 0 && error.sequence > 0);
        retry.total_ms *= 3;
    }
    CHECK(n_calls > 2);
    CHECK(nng_clock() - begin < 60000);
    error.code = VOXELD_INVALID_ARGUMENT;
    CHECK(!voxeld_retry(&retry, &call, VOXELD_INVALID_ARGUMENT, &error));
    CHECK(!voxeld_retry(&retry, &call, VOXELD_OK, &error));
    /* The server has given it up, and would again; only of what goes on is there an outcome. */
    error.sequence = 7;
    (void)snprintf(error.field, sizeof error.field, "header.timeout_ms");
    CHECK(!voxeld_retry(&retry, &call, VOXELD_DEADLINE_EXCEEDED, &error));
    CHECK(call.sequence == 0);
    error.field[0] = '\0';
    CHECK(voxeld_retry(&retry, &call, VOXELD_DEADLINE_EXCEEDED, &error));
    CHECK(call.sequence == 7);
    /* A call that changes nothing has no number. */
    error.sequence = 0;
    CHECK(!voxeld_retry(&retry, &call, VOXELD_UNAVAILABLE, &error));
    voxeld_close(client);
}

static void keep_voxels(void *context, struct voxeld_voxels *voxels,
                        const struct voxeld_error *error)
{
    CHECK(error == NULL);
    *(struct voxeld_voxels **)context = voxels;
}

static void test_voxelize_with_merge_is_numbered_and_says_what_it_did(void)
{
    struct voxeld_cloud cloud = some_cloud();
    struct voxeld_voxelize_request request = some_request(&cloud);
    struct voxeld_voxels *voxels = NULL;
    struct voxeld_error error = {0};
    Voxeld__V1__Request *arrived;
    struct pair pair;

    REQUIRE(pair_start(&pair));
    request.merge = (struct voxeld_merge){.map = "drive", .create = true, .ttl_s = 60};
    REQUIRE(voxeld_voxelize(pair.client, &request, &voxels, NULL) == VOXELD_OK);
    CHECK(voxels->n_merged == N_POINTS && voxels->n_map_entries == 2 * N_POINTS);
    voxeld_voxels_free(voxels);
    arrived = peer_last(&pair.peer);
    REQUIRE(arrived != NULL);
    CHECK(arrived->header->sequence > 0);
    CHECK_STR(arrived->voxelize->merge->map, "drive");
    CHECK(arrived->voxelize->merge->create && arrived->voxelize->merge->ttl_s == 60);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    REQUIRE(voxeld_voxelize_async(pair.client, &request, keep_voxels, &voxels, NULL) ==
            VOXELD_OK);
    CHECK_INT(voxeld_dispatch(pair.client, -1), 1);
    REQUIRE(voxels != NULL);
    CHECK(voxels->n_merged == N_POINTS);
    voxeld_voxels_free(voxels);
    atomic_store(&pair.peer.mode, PEER_FAIL);
    CHECK_INT(voxeld_voxelize(pair.client, &request, &voxels, &error),
              VOXELD_INVALID_ARGUMENT);
    CHECK(error.sequence > 0);
    request.merge.map = NULL;
    request.call.sequence = 5; /* changes nothing: not sent */
    CHECK_INT(voxeld_voxelize(pair.client, &request, &voxels, &error),
              VOXELD_INVALID_ARGUMENT);
    CHECK(error.sequence == 0);
    arrived = peer_last(&pair.peer);
    REQUIRE(arrived != NULL);
    CHECK(arrived->header->sequence == 0);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    pair_stop(&pair);
}

struct thread_work {
    struct voxeld_client *client;
    uint64_t sequences[CALLS_PER_THREAD];
    int n;
};

static void *insert_many(void *arg)
{
    struct thread_work *work = arg;
    struct voxeld_map_insert_request insert = {.map = "seen",
                                               .keys = keys_of(some_keys, N_KEYS)};

    for (work->n = 0; work->n < CALLS_PER_THREAD; work->n++) {
        struct voxeld_error error = {0};

        /* The call is refused after it got its number. */
        insert.n_values = 1;
        if (voxeld_map_insert(work->client, &insert, NULL, &error) == VOXELD_OK) {
            break;
        }
        work->sequences[work->n] = error.sequence;
        insert.n_values = 0;
        if (voxeld_map_insert(work->client, &insert, NULL, &error) != VOXELD_OK) {
            CHECK_STR(error.message, "");
            break;
        }
    }
    return NULL;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void test_many_threads_never_share_a_sequence(void)
{
    static struct thread_work work[N_THREADS];
    static uint64_t all[N_THREADS * CALLS_PER_THREAD];
    pthread_t threads[N_THREADS];
    struct pair pair;

    REQUIRE(pair_start(&pair));
    for (size_t i = 0; i < N_THREADS; i++) {
        work[i].client = pair.client;
        REQUIRE(pthread_create(&threads[i], NULL, insert_many, &work[i]) == 0);
    }
    for (size_t i = 0; i < N_THREADS; i++) {
        REQUIRE(pthread_join(threads[i], NULL) == 0);
        CHECK_INT(work[i].n, CALLS_PER_THREAD);
        memcpy(all + i * CALLS_PER_THREAD, work[i].sequences, sizeof work[i].sequences);
        for (int k = 1; k < work[i].n; k++) {
            CHECK(work[i].sequences[k] > work[i].sequences[k - 1]);
        }
    }
    qsort(all, N_THREADS * CALLS_PER_THREAD, sizeof all[0], compare);
    for (size_t i = 1; i < N_THREADS * CALLS_PER_THREAD; i++) {
        CHECK(all[i] != all[i - 1]);
    }
    pair_stop(&pair);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_map_calls_hand_out_what_the_server_says),
    VXD_TEST(test_entry_calls_hand_out_checked_arrays),
    VXD_TEST(test_export_hands_out_arrays_or_a_file),
    VXD_TEST(test_flawed_map_answers_are_internal),
    VXD_TEST(test_impossible_map_requests_are_refused_unsent),
    VXD_TEST(test_repeated_request_has_the_same_body_whatever_its_header),
    VXD_TEST(test_deadline_is_repeated_by_its_sequence),
    VXD_TEST(test_retry_ends_when_its_time_is_over),
    VXD_TEST(test_voxelize_with_merge_is_numbered_and_says_what_it_did),
    VXD_TEST(test_many_threads_never_share_a_sequence),
};

VXD_TEST_MAIN(tests)
