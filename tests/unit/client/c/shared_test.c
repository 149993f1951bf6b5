// SPDX-License-Identifier: Apache-2.0
/* When calls of libvoxeld register shared memory, at a daemon whose answers are chosen here. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/c/call/client_internal.h"
#include "tests/support/test.h"

enum {
    PATIENT_MS = 20000,
    MAX_KEPT = 8
};

#define MIB ((size_t)1 << 20)

/* Registers regions up to a size, once it is let. */
struct registrar {
    char path[64];
    char url[80];
    int listener;
    pthread_t thread;
    atomic_size_t most_bytes;
    atomic_bool holds; /* answers wait */
    atomic_int n_asked;
    int kept[MAX_KEPT];
    int n_kept;
};

static void *serve(void *arg)
{
    struct registrar *registrar = arg;
    struct vxd_shared_hello hello;
    int fd;

    while ((fd = accept(registrar->listener, NULL, NULL)) >= 0) {
        struct vxd_shared_answer answer = {.code = VXD_OK};

        CHECK_INT(recv(fd, &hello, sizeof hello, 0), sizeof hello);
        if (hello.n_bytes > atomic_load(&registrar->most_bytes)) {
            answer.code = VXD_RESOURCE_EXHAUSTED;
        }
        atomic_fetch_add(&registrar->n_asked, 1);
        while (atomic_load(&registrar->holds)) {
            nng_msleep(1);
        }
        (void)send(fd, &answer, sizeof answer, MSG_NOSIGNAL);
        if (answer.code == VXD_OK && registrar->n_kept < MAX_KEPT) {
            registrar->kept[registrar->n_kept++] = fd;
        } else {
            (void)close(fd);
        }
    }
    return NULL;
}

static bool start(struct registrar *registrar, size_t most_bytes,
                  struct voxeld_client *client)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    memset(registrar, 0, sizeof *registrar);
    (void)snprintf(registrar->url, sizeof registrar->url, "ipc:///tmp/vxd-shared-%d",
                   (int)getpid());
    (void)snprintf(registrar->path, sizeof registrar->path, "/tmp/vxd-shared-%d%s",
                   (int)getpid(), VXD_SHARED_SUFFIX);
    memcpy(address.sun_path, registrar->path, sizeof registrar->path);
    atomic_init(&registrar->most_bytes, most_bytes);
    memset(client, 0, sizeof *client);
    client->url = registrar->url;
    client->token = registrar->path + strlen(registrar->path); /* none */
    vxd_client_set_shared(client, 0);
    registrar->listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    return client->shared.is_automatic && registrar->listener >= 0 &&
           pthread_mutex_init(&client->shared.mutex, NULL) == 0 &&
           bind(registrar->listener, (const struct sockaddr *)&address, sizeof address) ==
               0 &&
           listen(registrar->listener, 16) == 0 &&
           pthread_create(&registrar->thread, NULL, serve, registrar) == 0;
}

static void stop(struct registrar *registrar, struct voxeld_client *client)
{
    vxd_client_drop_shared(client, NULL, false);
    (void)pthread_mutex_destroy(&client->shared.mutex);
    (void)shutdown(registrar->listener, SHUT_RDWR);
    (void)pthread_join(registrar->thread, NULL);
    for (int i = 0; i < registrar->n_kept; i++) {
        (void)close(registrar->kept[i]);
    }
    (void)close(registrar->listener);
    (void)unlink(registrar->path);
}

static struct vxd_shared_slot *take(struct voxeld_client *client, size_t n_bytes,
                                    uint32_t timeout_ms)
{
    return vxd_client_take_slot(client, VOXELD__V1__REQUEST__METHOD_VOXELIZE, n_bytes,
                                timeout_ms);
}

/* Takes a place of a call and gives it back; whether there was one. */
static bool takes(struct voxeld_client *client, size_t n_bytes, uint32_t timeout_ms)
{
    struct vxd_shared_slot *slot = take(client, n_bytes, timeout_ms);

    vxd_shared_slot_give(slot);
    return slot != NULL;
}

static void test_region_stays_where_a_larger_one_is_refused(void)
{
    struct registrar registrar;
    struct voxeld_client client;
    struct vxd_shared_memory *memory;

    REQUIRE(start(&registrar, 8 * MIB, &client));
    CHECK(!takes(&client, MIB, PATIENT_MS)); /* the first large call */
    CHECK(!takes(&client, MIB, 1000));       /* too short */
    CHECK_INT(atomic_load(&registrar.n_asked), 0);
    CHECK(takes(&client, MIB, PATIENT_MS));
    memory = client.shared.memory;
    CHECK(!takes(&client, 9 * MIB, PATIENT_MS));
    CHECK_INT(atomic_load(&registrar.n_asked), 2);
    CHECK(client.shared.memory == memory);
    CHECK_INT(client.shared.n_bytes, 8 * MIB);
    CHECK(takes(&client, MIB, PATIENT_MS) && takes(&client, MIB, 1000));
    CHECK(!takes(&client, 9 * MIB, PATIENT_MS)); /* and does not ask again at once */
    CHECK_INT(atomic_load(&registrar.n_asked), 2);
    stop(&registrar, &client);
}

static void test_refused_region_does_not_decide_the_next_size(void)
{
    struct registrar registrar;
    struct voxeld_client client;

    REQUIRE(start(&registrar, 8 * MIB, &client));
    CHECK(!takes(&client, 9 * MIB, PATIENT_MS));
    CHECK(!takes(&client, 9 * MIB, PATIENT_MS));
    CHECK_INT(atomic_load(&registrar.n_asked), 1);
    client.shared.retry_at = 0; /* a minute later */
    CHECK(takes(&client, MIB, PATIENT_MS));
    CHECK_INT(client.shared.n_bytes, 8 * MIB);
    stop(&registrar, &client);
}

static void *take_large(void *arg)
{
    (void)takes(arg, 9 * MIB, PATIENT_MS);
    return NULL;
}

static void test_calls_go_on_while_one_registers_a_region(void)
{
    struct registrar registrar;
    struct voxeld_client client;
    struct vxd_shared_memory *memory;
    struct vxd_shared_slot *slot;
    pthread_t thread;

    REQUIRE(start(&registrar, 256 * MIB, &client));
    CHECK(!takes(&client, MIB, PATIENT_MS));
    CHECK(takes(&client, MIB, PATIENT_MS));
    memory = client.shared.memory;
    REQUIRE(memory != NULL);
    atomic_store(&registrar.holds, true);
    REQUIRE(pthread_create(&thread, NULL, take_large, &client) == 0);
    while (atomic_load(&registrar.n_asked) < 2) {
        nng_msleep(1);
    }
    slot = take(&client, MIB, PATIENT_MS);
    CHECK(slot != NULL && slot->memory == memory);
    atomic_store(&registrar.holds, false);
    CHECK_INT(pthread_join(thread, NULL), 0);
    vxd_shared_slot_give(slot);
    CHECK(!client.shared.is_opening);
    stop(&registrar, &client);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_region_stays_where_a_larger_one_is_refused),
    VXD_TEST(test_refused_region_does_not_decide_the_next_size),
    VXD_TEST(test_calls_go_on_while_one_registers_a_region),
};

VXD_TEST_MAIN(tests)
