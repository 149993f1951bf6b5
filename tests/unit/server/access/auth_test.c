// SPDX-License-Identifier: Apache-2.0
#include "tests/support/test.h"

#include <sys/stat.h>
#include <unistd.h>

#include "server/access/access.h"
#include "server/access/login_guard.h"

/* printf %s TOKEN | sha256sum */
#define HASH_SECRET "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
#define HASH_OTHER "d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa"

static char path[] = "/tmp/voxeld-tokens-XXXXXX";

static void write_tokens(const char *text)
{
    FILE *file = fopen(path, "w");

    if (file == NULL || fputs(text, file) < 0) {
        abort();
    }
    (void)fclose(file);
}

static struct vxd_auth *make(const char *text, struct vxd_err *err)
{
    static struct vxd_config config;
    struct vxd_auth *auth = NULL;

    memset(&config, 0, sizeof config);
    memset(err, 0, sizeof *err);
    config.ipc_uids[0] = 4242;
    config.n_ipc_uids = 1;
    if (text != NULL) {
        int fd;

        (void)snprintf(path, sizeof path, "/tmp/voxeld-tokens-XXXXXX");
        fd = mkstemp(path);
        if (fd < 0) {
            abort();
        }
        (void)close(fd);
        write_tokens(text);
        (void)snprintf(config.tokens_file, sizeof config.tokens_file, "%s", path);
    }
    if (vxd_auth_create(&config, NULL, &auth, err) != VXD_OK && text != NULL) {
        (void)unlink(path);
    }
    return auth;
}

static void finish(struct vxd_auth *auth)
{
    vxd_auth_destroy(auth);
    (void)unlink(path);
}

static void test_token_known_gives_its_name_and_scopes(void)
{
    struct vxd_principal who;
    struct vxd_err err;
    struct vxd_auth *auth = make("# comment\n\nrobot read,write " HASH_SECRET
                                 " # trailing\nchief admin " HASH_OTHER "\n",
                                 &err);

    REQUIRE(auth != NULL);
    CHECK_INT(vxd_auth_identify(auth, "secret", "test", -1, &who, &err), VXD_OK);
    CHECK_STR(who.name, "robot");
    CHECK_INT(who.scopes, VXD_SCOPE_READ | VXD_SCOPE_WRITE);
    CHECK_INT(vxd_auth_require(&who, VXD_SCOPE_WRITE, &err), VXD_OK);
    CHECK_INT(vxd_auth_require(&who, VXD_SCOPE_ADMIN, &err), VXD_PERMISSION_DENIED);
    CHECK(strstr(err.message, "admin") != NULL);
    CHECK_INT(vxd_auth_identify(auth, "other", "test", -1, &who, &err), VXD_OK);
    CHECK_STR(who.name, "chief");
    finish(auth);
}

static void test_token_wrong_or_missing_is_unauthenticated(void)
{
    struct vxd_principal who;
    struct vxd_err err;
    struct vxd_auth *auth = make("robot read " HASH_SECRET "\n", &err);

    REQUIRE(auth != NULL);
    CHECK_INT(vxd_auth_identify(auth, "Secret", "test", -1, &who, &err),
              VXD_UNAUTHENTICATED);
    CHECK(strstr(err.message, "Secret") == NULL);
    CHECK_INT(vxd_auth_identify(auth, "", "test", -1, &who, &err), VXD_UNAUTHENTICATED);
    CHECK_INT(vxd_auth_identify(auth, NULL, "test", 99, &who, &err), VXD_UNAUTHENTICATED);
    /* A wrong token is wrong for a trusted peer too. */
    CHECK_INT(vxd_auth_identify(auth, "no", "test", 0, &who, &err), VXD_UNAUTHENTICATED);
    finish(auth);
}

static void test_certificate_is_its_token_with_all_rules(void)
{
    struct vxd_principal who;
    struct vxd_principal sent;
    struct vxd_err err;
    struct vxd_auth *auth =
        make("robot read,write " HASH_SECRET " names=yard deny=scene_drop in_flight=1\n",
             &err);

    REQUIRE(auth != NULL);
    CHECK_INT(vxd_auth_identify_certified(auth, "robot", &who, &err), VXD_OK);
    CHECK_INT(vxd_auth_identify(auth, "secret", "test", -1, &sent, &err), VXD_OK);
    CHECK_STR(who.name, sent.name);
    CHECK_INT(who.scopes, sent.scopes);
    CHECK(who.rules == sent.rules);
    CHECK(who.account == sent.account);
    CHECK(who.is_known);
    CHECK_INT(vxd_auth_require_name(&who, VXD_NOUN_MAP, "yard-1", "name", &err), VXD_OK);
    CHECK_INT(vxd_auth_require_name(&who, VXD_NOUN_MAP, "street", "name", &err),
              VXD_PERMISSION_DENIED);
    CHECK_INT(vxd_auth_require_method(&who, "scene_drop", &err), VXD_PERMISSION_DENIED);
    vxd_principal_clear(&who);
    vxd_principal_clear(&sent);
    CHECK_INT(vxd_auth_identify_certified(auth, "nobody", &who, &err),
              VXD_UNAUTHENTICATED);
    CHECK_INT(who.scopes, 0);
    CHECK(who.rules == NULL);
    finish(auth);
}

static void test_ipc_peer_trusted_needs_no_token(void)
{
    struct vxd_principal who;
    struct vxd_err err;
    struct vxd_auth *auth = make("robot read " HASH_SECRET "\n", &err);
    const int64_t uids[] = {0, (int64_t)geteuid(), 4242};

    REQUIRE(auth != NULL);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(vxd_auth_identify(auth, NULL, "test", uids[i], &who, &err), VXD_OK);
        CHECK_INT(who.scopes, VXD_ALL_SCOPES);
    }
    CHECK_STR(who.name, "uid-4242");
    finish(auth);
}

static void test_no_tokens_configured_lets_everybody_in(void)
{
    struct vxd_principal who;
    struct vxd_err err;
    struct vxd_auth *auth = make(NULL, &err);

    REQUIRE(auth != NULL);
    CHECK_INT(vxd_auth_identify(auth, "whatever", "test", -1, &who, &err), VXD_OK);
    CHECK_INT(who.scopes, VXD_ALL_SCOPES);
    CHECK_STR(who.name, "anonymous");
    vxd_auth_destroy(auth);
}

static void test_tokens_file_faulty_is_refused_with_its_line(void)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"robot read\n", ":1: a line is NAME SCOPES SHA256HEX"},
        {"\nrobot read " HASH_SECRET " more\n", ":2: behind the hash stand rules"},
        {"Robot read " HASH_SECRET "\n", ":1: a name is"},
        {"-robot read " HASH_SECRET "\n", ":1: a name is"},
        {"robot reed " HASH_SECRET "\n", ":1: scopes are"},
        {"robot read, " HASH_SECRET "\n", ":1: scopes are"},
        {"robot read secret\n", ":1: the hash must be 64"},
        {"robot read " HASH_SECRET "0\n", ":1: the hash must be 64"},
        {"uid-7 read " HASH_SECRET "\n", ":1: anonymous, unknown and uid-..."},
        {"anonymous read " HASH_SECRET "\n", ":1: anonymous, unknown and uid-..."},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct vxd_err err;
        struct vxd_auth *auth = make(cases[i].text, &err);

        CHECK(auth == NULL);
        CHECK_INT(err.code, VXD_INVALID_ARGUMENT);
        CHECK_STR(err.field, "auth.tokens_file");
        CHECK(strstr(err.message, cases[i].message) != NULL);
        vxd_auth_destroy(auth);
    }
}

static void test_reload_swaps_tokens_and_a_bad_file_keeps_them(void)
{
    struct vxd_principal who;
    struct vxd_err err;
    struct vxd_auth *auth = make("robot read " HASH_SECRET "\n", &err);

    REQUIRE(auth != NULL);
    write_tokens("robot read nonsense\n");
    CHECK_INT(vxd_auth_reload(auth, &err), VXD_INVALID_ARGUMENT);
    CHECK_INT(vxd_auth_identify(auth, "secret", "test", -1, &who, &err), VXD_OK);
    write_tokens("chief admin " HASH_OTHER "\n");
    CHECK_INT(vxd_auth_reload(auth, &err), VXD_OK);
    CHECK_INT(vxd_auth_identify(auth, "secret", "test", -1, &who, &err),
              VXD_UNAUTHENTICATED);
    CHECK_INT(vxd_auth_identify(auth, "other", "test", -1, &who, &err), VXD_OK);
    (void)unlink(path);
    CHECK_INT(vxd_auth_reload(auth, &err), VXD_NOT_FOUND);
    CHECK_INT(vxd_auth_identify(auth, "other", "test", -1, &who, &err), VXD_OK);
    vxd_auth_destroy(auth);
}

/* Reading and writing by the group is fine: root may own what the daemon reads. */
static void test_tokens_file_of_everybody_is_refused(void)
{
    static const struct {
        mode_t mode;
        enum vxd_status status;
    } cases[] = {
        {0644, VXD_PERMISSION_DENIED},
        {0602, VXD_PERMISSION_DENIED},
        {0666, VXD_PERMISSION_DENIED},
        {0640, VXD_OK},
        {0660, VXD_OK},
        {0601, VXD_OK},
    };
    struct vxd_principal who;
    struct vxd_err err;
    struct vxd_auth *auth = make("robot read " HASH_SECRET "\n", &err);

    REQUIRE(auth != NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        REQUIRE(chmod(path, cases[i].mode) == 0);
        CHECK_INT(vxd_auth_reload(auth, &err), cases[i].status);
        if (cases[i].status != VXD_OK) {
            CHECK_STR(err.field, "auth.tokens_file");
            CHECK(strstr(err.message, "by every user of this machine") != NULL);
            CHECK(strstr(err.message, "chmod 640") != NULL);
        }
        CHECK_INT(vxd_auth_identify(auth, "secret", "test", -1, &who, &err), VXD_OK);
        vxd_principal_clear(&who);
    }
    finish(auth);
}

/* Judges a token, of which only the number matters. */
static enum vxd_status judge(struct vxd_login_guard *guard, const char *peer,
                             uint64_t number, bool is_good, double at_s)
{
    struct vxd_err err = {0};
    uint8_t digest[8];

    memcpy(digest, &number, sizeof digest);
    return vxd_login_guard_judge(guard, peer, digest, is_good, (int64_t)(at_s * 1e9),
                                 &err);
}

static void test_address_that_guesses_learns_nothing_and_locks_out_nobody_known(void)
{
    struct vxd_login_guard *guard = NULL;
    double at_s = 1000;

    REQUIRE(vxd_login_guard_create(6, &guard, NULL) == VXD_OK);
    CHECK_INT(judge(guard, "http 10.0.0.1:1000", 7, true, at_s), VXD_OK);
    for (int i = 0; i < 6; i++) { /* those of a minute at once, by whatever transport */
        CHECK_INT(judge(guard, i % 2 == 0 ? "http 10.0.0.1:1" : "tcp 10.0.0.1:2", 100,
                        false, at_s),
                  VXD_UNAUTHENTICATED);
    }
    CHECK_INT(judge(guard, "tcp 10.0.0.1:9", 101, false, at_s), VXD_RESOURCE_EXHAUSTED);
    CHECK_INT(judge(guard, "tcp 10.0.0.1:9", 8, true, at_s), VXD_RESOURCE_EXHAUSTED);
    CHECK_INT(judge(guard, "tcp 10.0.0.1:9", 7, true, at_s), VXD_OK);
    CHECK_INT(judge(guard, "tcp 10.0.0.2:9", 8, true, at_s), VXD_OK);
    CHECK_INT(judge(guard, "tcp 10.0.0.2:9", 102, false, at_s), VXD_UNAUTHENTICATED);
    /* One more every ten seconds. */
    CHECK_INT(judge(guard, "tcp 10.0.0.1:9", 8, true, at_s + 9.9),
              VXD_RESOURCE_EXHAUSTED);
    CHECK_INT(judge(guard, "tcp 10.0.0.1:9", 103, false, at_s + 10.1),
              VXD_UNAUTHENTICATED);
    CHECK_INT(judge(guard, "tcp 10.0.0.1:9", 104, false, at_s + 10.2),
              VXD_RESOURCE_EXHAUSTED);
    CHECK_INT(judge(guard, "tcp 10.0.0.1:9", 8, true, at_s + 20.2), VXD_OK);
    CHECK_INT(judge(guard, "tcp 10.0.0.1:9", 104, false, at_s + 20.2),
              VXD_UNAUTHENTICATED);
    CHECK_INT(judge(guard, "tcp 10.0.0.1:9", 8, true, at_s + 20.3), VXD_OK);
    vxd_login_guard_destroy(guard);
}

static void test_addresses_of_one_ipv6_network_are_one(void)
{
    struct vxd_login_guard *guard = NULL;

    REQUIRE(vxd_login_guard_create(1, &guard, NULL) == VXD_OK);
    CHECK_INT(judge(guard, "http 2001:db8:1:2::1:80", 1, false, 5), VXD_UNAUTHENTICATED);
    CHECK_INT(judge(guard, "tcp [2001:db8:1:2:ffff::9]:81", 1, false, 5),
              VXD_RESOURCE_EXHAUSTED);
    CHECK_INT(judge(guard, "tcp [2001:db8:1:3::1]:81", 1, false, 5), VXD_UNAUTHENTICATED);
    CHECK_INT(judge(guard, "ipc pid 1", 1, false, 5), VXD_UNAUTHENTICATED);
    vxd_login_guard_destroy(guard);
}

static void test_ipv4_hosts_on_an_ipv6_socket_are_apart(void)
{
    struct vxd_login_guard *guard = NULL;

    REQUIRE(vxd_login_guard_create(1, &guard, NULL) == VXD_OK);
    CHECK_INT(judge(guard, "tcp [::ffff:10.0.0.7]:4242", 1, false, 5),
              VXD_UNAUTHENTICATED);
    CHECK_INT(judge(guard, "tcp [::ffff:10.0.0.8]:4242", 1, false, 5),
              VXD_UNAUTHENTICATED);
    CHECK_INT(judge(guard, "http ::ffff:a00:9:80", 1, false, 5), VXD_UNAUTHENTICATED);
    /* Each is the host that it is over IPv4. */
    CHECK_INT(judge(guard, "tcp 10.0.0.7:1", 2, true, 5), VXD_RESOURCE_EXHAUSTED);
    CHECK_INT(judge(guard, "tcp 10.0.0.9:1", 2, true, 5), VXD_RESOURCE_EXHAUSTED);
    CHECK_INT(judge(guard, "tcp 10.0.0.6:1", 2, true, 5), VXD_OK);
    vxd_login_guard_destroy(guard);
}

static void test_whole_fleet_behind_one_address_stays_known(void)
{
    struct vxd_login_guard *guard = NULL;

    REQUIRE(vxd_login_guard_create(1, &guard, NULL) == VXD_OK);
    for (uint64_t i = 0; i < 70; i++) {
        CHECK_INT(judge(guard, "tcp 10.0.0.1:1", 1000 + i, true, 5), VXD_OK);
        CHECK_INT(judge(guard, "tcp 10.0.0.1:1", 1000, true, 5), VXD_OK);
    }
    CHECK_INT(judge(guard, "tcp 10.0.0.1:1", 1, false, 5), VXD_UNAUTHENTICATED);
    /* The first of them was never silent for long, the next six were. */
    for (uint64_t i = 0; i < 70; i++) {
        CHECK_INT(judge(guard, "tcp 10.0.0.1:1", 1000 + i, true, 5),
                  i >= 1 && i <= 6 ? VXD_RESOURCE_EXHAUSTED : VXD_OK);
    }
    vxd_login_guard_destroy(guard);
}

static void test_logins_without_a_limit_fail_as_often_as_they_like(void)
{
    struct vxd_login_guard *guard = NULL;

    REQUIRE(vxd_login_guard_create(0, &guard, NULL) == VXD_OK);
    for (int i = 0; i < 5000; i++) { /* from more addresses than are known at a time */
        char peer[40];

        (void)snprintf(peer, sizeof peer, "tcp 10.0.%d.%d:1", i % 100, i % 7);
        CHECK_INT(judge(guard, peer, 1, false, i), VXD_UNAUTHENTICATED);
        CHECK_INT(judge(guard, peer, 2, true, i), VXD_OK);
    }
    vxd_login_guard_destroy(guard);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_address_that_guesses_learns_nothing_and_locks_out_nobody_known),
    VXD_TEST(test_addresses_of_one_ipv6_network_are_one),
    VXD_TEST(test_ipv4_hosts_on_an_ipv6_socket_are_apart),
    VXD_TEST(test_whole_fleet_behind_one_address_stays_known),
    VXD_TEST(test_logins_without_a_limit_fail_as_often_as_they_like),
    VXD_TEST(test_token_known_gives_its_name_and_scopes),
    VXD_TEST(test_token_wrong_or_missing_is_unauthenticated),
    VXD_TEST(test_certificate_is_its_token_with_all_rules),
    VXD_TEST(test_ipc_peer_trusted_needs_no_token),
    VXD_TEST(test_no_tokens_configured_lets_everybody_in),
    VXD_TEST(test_tokens_file_faulty_is_refused_with_its_line),
    VXD_TEST(test_reload_swaps_tokens_and_a_bad_file_keeps_them),
    VXD_TEST(test_tokens_file_of_everybody_is_refused),
};

VXD_TEST_MAIN(tests)
