// SPDX-License-Identifier: Apache-2.0
/* A table of named things that all threads use: names that pass from one thing to another, holders, bytes
 * within a limit; and the same by several threads at once, where what was made is what is freed. */
#include "tests/support/test.h"

#include <pthread.h>
#include <stdatomic.h>

#include "server/instance/instance.h"
#include "server/registry/named/named.h"

enum {
    MAX_THINGS = 8,
    LIMIT_BYTES = 100,
    N_THREADS = 4,
    N_ROUNDS = 2000,
    N_NAMES = 3
};

static _Atomic size_t n_cleared;

static size_t count_bytes(const struct vxd_named *named)
{
    return named->n_bytes;
}

static void clear(struct vxd_named *named, struct vxd_queue *queue)
{
    (void)named;
    (void)queue;
    atomic_fetch_add(&n_cleared, 1);
}

static const struct vxd_noun_calls calls = {.one = "thing",
                                            .many = "things",
                                            .max = MAX_THINGS,
                                            .n_bytes = sizeof(struct vxd_named),
                                            .bytes_key = "limits.thing_bytes",
                                            .count_bytes = count_bytes,
                                            .clear = clear};

static struct vxd_names *begin(void)
{
    static struct vxd_server server; /* without a journal, tokens and an engine */
    const struct vxd_names_options options = {.calls = &calls,
                                              .limit_bytes = LIMIT_BYTES};
    struct vxd_names *names = NULL;

    atomic_store(&n_cleared, 0);
    CHECK_INT(vxd_names_create(&server, &options, &names, NULL), VXD_OK);
    return names;
}

/* One that is listed and held, without its name. */
static struct vxd_named *make(struct vxd_names *names, const char *name,
                              struct vxd_err *err)
{
    struct vxd_named_terms terms = {.durable = false};
    struct vxd_named *named = NULL;

    (void)snprintf(terms.name, sizeof terms.name, "%s", name);
    if (vxd_named_begin(names, &terms, &named, err) == VXD_OK) {
        vxd_named_enlist(named);
    }
    return named;
}

static struct vxd_names_usage usage_of(const struct vxd_names *names)
{
    struct vxd_names_usage usage;

    vxd_names_get_usage(names, &usage);
    return usage;
}

static void test_thing_that_lost_its_name_lives_as_long_as_it_is_held(void)
{
    struct vxd_names *names = begin();
    struct vxd_named *old = make(names, "a", NULL);
    struct vxd_named *new = make(names, "a", NULL);

    REQUIRE(old != NULL && new != NULL && old->generation != new->generation);
    CHECK(vxd_names_hold(names, "a") == NULL); /* neither has it yet */
    CHECK(!vxd_named_replace(old, NULL));
    CHECK(!vxd_named_replace(old, NULL)); /* it has the name */
    CHECK(vxd_names_hold(names, "a") == old);
    vxd_named_let_go(old, NULL);
    CHECK(vxd_named_replace(new, NULL));
    CHECK_INT(n_cleared, 0);
    CHECK_INT(usage_of(names).n, 1);
    vxd_named_remove(old, NULL); /* the name is another's now */
    CHECK(vxd_names_peek(names, "a") == new);
    vxd_named_drop(old, NULL);
    CHECK_INT(n_cleared, 1);
    vxd_named_remove(new, NULL);
    CHECK_INT(usage_of(names).n, 0);
    CHECK_INT(n_cleared, 1);
    vxd_named_drop(new, NULL);
    CHECK_INT(n_cleared, 2);
    vxd_names_destroy(names);
}

static void test_bytes_are_taken_as_far_as_the_limit_goes(void)
{
    struct vxd_names *names = begin();
    struct vxd_named *first = make(names, "a", NULL);
    struct vxd_named *second = make(names, "b", NULL);
    uint64_t used;

    REQUIRE(first != NULL && second != NULL);
    CHECK(vxd_named_take_bytes(first, 60, &used));
    CHECK(!vxd_named_take_bytes(second, 41, &used));
    CHECK_INT(used, 60);
    CHECK(vxd_named_take_bytes(second, 40, &used));
    CHECK_INT(usage_of(names).n_bytes, 100);
    vxd_named_drop(first, NULL);
    CHECK_INT(usage_of(names).n_bytes, 40);
    vxd_named_drop(second, NULL);
    vxd_names_destroy(names);
    CHECK_INT(n_cleared, 2);
}

static void test_table_that_is_full_refuses_one_more(void)
{
    struct vxd_names *names = begin();
    struct vxd_named **held;
    struct vxd_err err = {0};
    size_t n;

    for (int i = MAX_THINGS - 1; i >= 0; i--) {
        const char name[2] = {(char)('a' + i), '\0'};
        struct vxd_named *named = make(names, name, NULL);

        REQUIRE(named != NULL);
        CHECK(!vxd_named_replace(named, NULL));
        vxd_named_drop(named, NULL); /* the table holds it */
    }
    CHECK(make(names, "z", &err) == NULL);
    CHECK_INT(err.code, VXD_RESOURCE_EXHAUSTED);
    CHECK(strcmp(err.message, "there are 8 things already") == 0);
    REQUIRE(vxd_names_hold_all(names, &held, &n, NULL) == VXD_OK);
    CHECK_INT(n, MAX_THINGS);
    for (size_t i = 0; i < n; i++) {
        CHECK_INT(held[i]->terms.name[0], 'a' + (int)i); /* in order of their names */
        vxd_named_let_go(held[i], NULL);
    }
    free(held);
    vxd_names_destroy(names);
    CHECK_INT(n_cleared, MAX_THINGS);
}

/* --- several threads ------------------------------------------------------------------------------ */

struct user {
    pthread_t thread;
    struct vxd_names *names;
    unsigned seed;
    size_t n_made;
    bool is_good; /* all that it saw was in order */
};

static void look(struct user *user)
{
    struct vxd_named **held;
    size_t n;

    if (vxd_names_hold_all(user->names, &held, &n, NULL) != VXD_OK) {
        user->is_good = false;
        return;
    }
    user->is_good = user->is_good && n <= N_NAMES;
    for (size_t i = 0; i < n; i++) {
        user->is_good = user->is_good && (i == 0 || strcmp(held[i - 1]->terms.name,
                                                           held[i]->terms.name) < 0);
    }
    for (size_t i = 0; i < n; i++) {
        vxd_named_let_go(held[i], NULL);
    }
    free(held);
}

static void *use(void *argument)
{
    struct user *user = argument;

    for (int i = 0; i < N_ROUNDS; i++) {
        const char name[2] = {(char)('a' + rand_r(&user->seed) % N_NAMES), '\0'};
        struct vxd_named *named;
        uint64_t used;

        switch (rand_r(&user->seed) % 4) {
        case 0:
            named = make(user->names, name, NULL);
            user->n_made += named != NULL ? 1 : 0;
            if (named != NULL && vxd_named_take_bytes(named, 7, &used)) {
                (void)vxd_named_replace(named, NULL);
            }
            break;
        case 1:
            named = vxd_names_hold(user->names, name);
            if (named != NULL) {
                vxd_named_remove(named, NULL);
            }
            break;
        case 2:
            named = vxd_names_hold(user->names, name);
            user->is_good =
                user->is_good && (named == NULL || strcmp(named->terms.name, name) == 0);
            break;
        default:
            named = NULL;
            look(user);
        }
        if (named != NULL) {
            vxd_named_drop(named, NULL);
        }
    }
    return NULL;
}

static void test_what_threads_make_at_once_is_freed_once(void)
{
    struct vxd_names *names = begin();
    struct user users[N_THREADS];
    size_t n_made = 0;

    for (unsigned i = 0; i < N_THREADS; i++) {
        users[i] = (struct user){.names = names, .seed = i, .is_good = true};
        REQUIRE(pthread_create(&users[i].thread, NULL, use, &users[i]) == 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        CHECK_INT(pthread_join(users[i].thread, NULL), 0);
        CHECK(users[i].is_good);
        n_made += users[i].n_made;
    }
    CHECK(n_made > 100);
    CHECK_INT(usage_of(names).n_bytes, 7 * usage_of(names).n);
    CHECK_INT(n_cleared + usage_of(names).n, n_made);
    vxd_names_destroy(names);
    CHECK_INT(n_cleared, n_made);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_thing_that_lost_its_name_lives_as_long_as_it_is_held),
    VXD_TEST(test_bytes_are_taken_as_far_as_the_limit_goes),
    VXD_TEST(test_table_that_is_full_refuses_one_more),
    VXD_TEST(test_what_threads_make_at_once_is_freed_once),
};

VXD_TEST_MAIN(tests)
