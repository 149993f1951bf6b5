// SPDX-License-Identifier: Apache-2.0
/* Rules of tokens, issued tokens, quotas, and the names in messages. */
#include "tests/support/test.h"

#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "server/access/access.h"
#include "voxeld/v1/rpc.pb-c.h"

#define HASH                                                                             \
    "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b" /* secret */
#define LINE "robot read,write " HASH

static const char *const method_names[] = {"map_get", "map_drop", "scene_get"};
static const struct vxd_method_names methods = {method_names, 3};

static enum vxd_status parse(const char *text, struct vxd_token_list *out,
                             struct vxd_err *err)
{
    memset(err, 0, sizeof *err);
    return vxd_token_file_parse("tokens", text, strlen(text), &methods, out, err);
}

/* The rules of one line, which the caller drops. */
static struct vxd_rules *rules_of(const char *text)
{
    struct vxd_token_list list;
    struct vxd_err err;
    char line[1024];
    struct vxd_rules *rules = NULL;

    (void)snprintf(line, sizeof line, LINE " %s", text);
    if (parse(line, &list, &err) == VXD_OK) {
        rules = vxd_rules_hold(list.tokens[0].rules);
    } else {
        (void)fprintf(stderr, "%s\n", err.message);
    }
    vxd_token_list_clear(&list);
    return rules;
}

static void test_old_line_limits_nothing(void)
{
    struct vxd_token_list list;
    struct vxd_err err;

    REQUIRE(parse("# ours\r\n" LINE "\r\n", &list, &err) == VXD_OK);
    CHECK_INT(list.n, 1);
    CHECK(list.tokens[0].rules == NULL);
    CHECK(vxd_rules_allow_name(NULL, VXD_NOUN_SCENE, "anything"));
    CHECK(vxd_rules_allow_method(NULL, "map_drop"));
    CHECK_INT(vxd_rules_weight(NULL), 1);
    CHECK_INT(vxd_rules_quota(NULL)->in_flight, 0);
    vxd_token_list_clear(&list);
}

static void test_names_are_prefixes_of_all_nouns_or_of_one(void)
{
    struct vxd_rules *rules = rules_of("names=yard,team-a- networks=* files=-");

    REQUIRE(rules != NULL);
    CHECK(vxd_rules_allow_name(rules, VXD_NOUN_SCENE, "yard"));
    CHECK(vxd_rules_allow_name(rules, VXD_NOUN_SCENE, "yard2"));
    CHECK(vxd_rules_allow_name(rules, VXD_NOUN_MAP, "team-a-x"));
    CHECK(!vxd_rules_allow_name(rules, VXD_NOUN_MAP, "team-b"));
    CHECK(!vxd_rules_allow_name(rules, VXD_NOUN_MAP, "yar"));
    CHECK(!vxd_rules_allow_name(rules, VXD_NOUN_VOLUME, "a-yard"));
    CHECK(!vxd_rules_allow_name(rules, VXD_NOUN_BACKUP, "monday"));
    CHECK(vxd_rules_allow_name(rules, VXD_NOUN_NETWORK, "minkunet42"));
    CHECK(!vxd_rules_allow_name(rules, VXD_NOUN_FILE, "yard"));
    CHECK(vxd_rules_allow_prefix(rules, "yard-"));
    CHECK(vxd_rules_allow_prefix(rules, "minkunet")); /* of networks */
    CHECK_STR(vxd_rules_names_list(rules, VXD_NOUN_SCENE, "street"), "yard,team-a-");
    vxd_rules_drop(rules);
}

static void test_methods_are_allowed_and_denied_by_pattern(void)
{
    struct vxd_rules *rules = rules_of("methods=map_*,scene_get deny=map_drop");

    REQUIRE(rules != NULL);
    CHECK(vxd_rules_allow_method(rules, "map_get"));
    CHECK(!vxd_rules_allow_method(rules, "map_drop"));
    CHECK(vxd_rules_allow_method(rules, "scene_get"));
    CHECK(!vxd_rules_allow_method(rules, "scene_get2"));
    CHECK(!vxd_rules_allow_method(rules, "scene_drop"));
    vxd_rules_drop(rules);
}

static void test_rules_that_are_based_on_others_only_narrow(void)
{
    struct vxd_rules *base = rules_of("names=yard deny=map_drop weight=3 in_flight=2");
    struct vxd_rules *rules;

    REQUIRE(base != NULL);
    rules = vxd_rules_create(base);
    REQUIRE(rules != NULL);
    CHECK_INT(vxd_rules_read(rules, "names=yard-a,street", NULL, NULL), VXD_OK);
    CHECK(vxd_rules_allow_name(rules, VXD_NOUN_MAP, "yard-a1"));
    CHECK(!vxd_rules_allow_name(rules, VXD_NOUN_MAP, "yard-b"));
    CHECK(!vxd_rules_allow_name(rules, VXD_NOUN_MAP, "street"));
    CHECK(!vxd_rules_allow_method(rules, "map_drop"));
    CHECK_INT(vxd_rules_weight(rules), 3);
    CHECK_INT(vxd_rules_quota(rules)->in_flight, 2);
    vxd_rules_drop(rules);
}

static void test_hostile_token_files_are_refused_with_their_line(void)
{
    static const struct {
        const char *rest;
        const char *message;
    } cases[] = {
        {"names", "tokens:1: behind the hash stand rules"},
        {"=yard", "tokens:1: behind the hash stand rules"},
        {"names=", "names= is a comma list"},
        {"names=a,,b", "names= is a comma list"},
        {"names=Yard", "names= is a comma list"},
        {"names=*,a", "names= is a comma list"},
        {"names=.hidden", "names= is a comma list"},
        {"names=a names=b", "names= is there twice"},
        {"scenes=a/b", "scenes= is a comma list"},
        {"methods=map_fly", "there is no such method"},
        {"methods=", "methods= is a comma list"},
        {"deny=map_get,*drop", "deny= is a comma list"},
        {"deny=map_get,fly_*", "there is no such method"},
        {"in_flight=0", "in_flight= is a whole number, 1 to"},
        {"in_flight=-1", "in_flight= is a whole number"},
        {"in_flight=1e3", "in_flight= is a whole number"},
        {"in_flight= 3", "in_flight= is a whole number"},
        {"requests_per_s=99999999999999999999", "requests_per_s= is a whole number"},
        {"max_bytes=9223372036854775807", "max_bytes= is a whole number"},
        {"weight=101", "weight= is a whole number, 1 to 100"},
        {"speed=3", "there is no rule speed="},
    };
    struct vxd_token_list list;
    struct vxd_err err;
    static char longest[5000];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[512];

        (void)snprintf(line, sizeof line, LINE " %s\n", cases[i].rest);
        CHECK_INT(parse(line, &list, &err), VXD_INVALID_ARGUMENT);
        CHECK_STR(err.field, "auth.tokens_file");
        if (strstr(err.message, cases[i].message) == NULL) {
            CHECK_STR(err.message, cases[i].message);
        }
        CHECK_INT(list.n, 0);
    }
    memset(longest, 'a', sizeof longest - 1);
    CHECK_INT(parse(longest, &list, &err), VXD_INVALID_ARGUMENT);
    CHECK(strstr(err.message, "more than 4095 bytes") != NULL);
    CHECK_INT(
        vxd_token_file_parse("tokens", LINE "\0\n", sizeof LINE + 1, NULL, &list, &err),
        VXD_INVALID_ARGUMENT);
}

/* --- issued tokens ------------------------------------------------------------------------ */

struct issuing {
    struct vxd_auth *auth;
    char folder[64];
    char tokens[96];
};

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0 ||
        chmod(path, 0600) != 0) {
        abort();
    }
}

static void begin(struct issuing *t, const char *tokens)
{
    struct vxd_config *config = calloc(1, sizeof *config);
    struct vxd_err err = {0};

    memset(t, 0, sizeof *t);
    (void)snprintf(t->folder, sizeof t->folder, "/tmp/voxeld-walls-XXXXXX");
    if (config == NULL || mkdtemp(t->folder) == NULL) {
        abort();
    }
    (void)snprintf(t->tokens, sizeof t->tokens, "%s/tokens", t->folder);
    (void)snprintf(config->data_dir, sizeof config->data_dir, "%s", t->folder);
    if (tokens != NULL) {
        write_text(t->tokens, tokens);
        (void)snprintf(config->tokens_file, sizeof config->tokens_file, "%s", t->tokens);
    }
    if (vxd_auth_create(config, &methods, &t->auth, &err) != VXD_OK) {
        (void)fprintf(stderr, "%s\n", err.message);
    }
    free(config);
}

static void end(struct issuing *t)
{
    char key[96];

    vxd_auth_destroy(t->auth);
    (void)snprintf(key, sizeof key, "%s/token.key", t->folder);
    (void)unlink(key);
    (void)unlink(t->tokens);
    (void)rmdir(t->folder);
}

static enum vxd_status log_in(struct issuing *t, const char *token,
                              struct vxd_principal *out, struct vxd_err *err)
{
    memset(err, 0, sizeof *err);
    return vxd_auth_identify(t->auth, token, "tcp 10.0.0.1:1", -1, out, err);
}

static void test_issued_token_can_do_less_and_never_more(void)
{
    static const char *const prefixes[] = {"yard-a"};
    static const char *const foreign[] = {"street"};
    struct vxd_token_terms terms = {
        .scopes = VXD_SCOPE_READ, .prefixes = prefixes, .n_prefixes = 1, .ttl_s = 60};
    struct vxd_principal who = {0};
    struct vxd_principal issued = {0};
    struct issuing t;
    char token[VXD_SIGNED_TOKEN_BYTES];
    char again[VXD_SIGNED_TOKEN_BYTES];
    int64_t expires_s;
    int64_t later_s;
    uint32_t scopes;
    struct vxd_err err;

    begin(&t, LINE " names=yard in_flight=3\n");
    REQUIRE(t.auth != NULL);
    REQUIRE(log_in(&t, "secret", &who, &err) == VXD_OK);
    REQUIRE(vxd_auth_issue(t.auth, &who, &terms, token, &expires_s, &scopes, &err) ==
            VXD_OK);
    CHECK_INT(scopes, VXD_SCOPE_READ);
    REQUIRE(log_in(&t, token, &issued, &err) == VXD_OK);
    CHECK_STR(issued.name, "robot");
    CHECK_INT(issued.scopes, VXD_SCOPE_READ);
    CHECK(issued.account == who.account);
    CHECK_INT(vxd_rules_quota(issued.rules)->in_flight, 3);
    CHECK_INT(vxd_auth_require_name(&issued, VXD_NOUN_MAP, "yard-a1", "name", &err),
              VXD_OK);
    CHECK_INT(vxd_auth_require_name(&issued, VXD_NOUN_MAP, "yard-b", "name", &err),
              VXD_PERMISSION_DENIED);
    CHECK_STR(err.field, "name");
    CHECK(strstr(err.message, "robot may not use the map yard-b") != NULL);
    CHECK(strstr(err.message, "begin with yard-a") != NULL);

    /* More than the issuer has. */
    terms.scopes = VXD_SCOPE_ADMIN;
    CHECK_INT(vxd_auth_issue(t.auth, &who, &terms, again, &later_s, &scopes, &err),
              VXD_PERMISSION_DENIED);
    terms.scopes = VXD_SCOPE_WRITE;
    CHECK_INT(vxd_auth_issue(t.auth, &issued, &terms, again, &later_s, &scopes, &err),
              VXD_PERMISSION_DENIED);
    terms = (struct vxd_token_terms){.prefixes = foreign, .n_prefixes = 1};
    CHECK_INT(vxd_auth_issue(t.auth, &who, &terms, again, &later_s, &scopes, &err),
              VXD_PERMISSION_DENIED);
    CHECK_STR(err.field, "prefixes[0]");

    /* One that is issued by an issued one has its prefixes and its end. */
    terms = (struct vxd_token_terms){.ttl_s = 3600};
    REQUIRE(vxd_auth_issue(t.auth, &issued, &terms, again, &later_s, &scopes, &err) ==
            VXD_OK);
    CHECK_INT(later_s, expires_s);
    CHECK_INT(scopes, VXD_SCOPE_READ);
    vxd_principal_clear(&issued);
    REQUIRE(log_in(&t, again, &issued, &err) == VXD_OK);
    CHECK_INT(vxd_auth_require_name(&issued, VXD_NOUN_MAP, "yard-b", "name", &err),
              VXD_PERMISSION_DENIED);
    vxd_principal_clear(&issued);
    vxd_principal_clear(&who);
    end(&t);
}

static void test_issued_token_ends_with_its_issuer_and_follows_its_rules(void)
{
    struct vxd_token_terms terms = {.ttl_s = 60};
    struct vxd_principal who = {0};
    struct issuing t;
    char token[VXD_SIGNED_TOKEN_BYTES];
    int64_t expires_s;
    uint32_t scopes;
    struct vxd_err err;

    begin(&t, LINE "\n");
    REQUIRE(t.auth != NULL);
    REQUIRE(log_in(&t, "secret", &who, &err) == VXD_OK);
    REQUIRE(vxd_auth_issue(t.auth, &who, &terms, token, &expires_s, &scopes, &err) ==
            VXD_OK);
    vxd_principal_clear(&who);
    write_text(t.tokens, "robot read " HASH " names=yard\n");
    REQUIRE(vxd_auth_reload(t.auth, &err) == VXD_OK);
    REQUIRE(log_in(&t, token, &who, &err) == VXD_OK);
    CHECK_INT(who.scopes, VXD_SCOPE_READ);
    CHECK(!vxd_rules_allow_name(who.rules, VXD_NOUN_MAP, "street"));
    vxd_principal_clear(&who);
    write_text(t.tokens, "other read " HASH "\n");
    REQUIRE(vxd_auth_reload(t.auth, &err) == VXD_OK);
    CHECK_INT(log_in(&t, token, &who, &err), VXD_UNAUTHENTICATED);
    CHECK(strstr(err.message, "robot, who issued the token") != NULL);
    end(&t);
}

static void test_signed_token_that_was_changed_or_is_over_is_none(void)
{
    struct vxd_token_key key = {{7}};
    struct vxd_token_key other = {{8}};
    struct vxd_signed_token token = {.issuer = "robot",
                                     .scopes = 3,
                                     .expires_unix_s = 1234567890,
                                     .id = 42,
                                     .prefixes = "yard,street"};
    struct vxd_signed_token back = {0};
    char text[VXD_SIGNED_TOKEN_BYTES];
    struct vxd_err err = {0};
    size_t n;

    REQUIRE(vxd_signed_token_write(&key, &token, text, &err) == VXD_OK);
    REQUIRE(vxd_signed_token_read(&key, text, &back));
    CHECK_STR(back.issuer, "robot");
    CHECK_STR(back.prefixes, "yard,street");
    CHECK_INT(back.scopes, 3);
    CHECK_INT(back.expires_unix_s, 1234567890);
    CHECK_INT(back.id, 42);
    CHECK(!vxd_signed_token_read(&other, text, &back));
    n = strlen(text);
    for (size_t i = 0; i < n; i++) { /* any bit of any character, and any length */
        for (int bit = 0; bit < 7; bit++) {
            text[i] = (char)(text[i] ^ (1 << bit));
            CHECK(text[i] == '\0' || !vxd_signed_token_read(&key, text, &back));
            text[i] = (char)(text[i] ^ (1 << bit));
        }
    }
    for (size_t i = 0; i < n; i++) {
        char c = text[i];

        text[i] = '\0';
        CHECK(!vxd_signed_token_read(&key, text, &back));
        text[i] = c;
    }
    memset(token.prefixes, 'a', sizeof token.prefixes - 1);
    CHECK_INT(vxd_signed_token_write(&key, &token, text, &err), VXD_OK);
    CHECK(vxd_signed_token_read(&key, text, &back));
}

static void test_expired_token_says_so(void)
{
    struct vxd_signed_token token = {
        .issuer = "robot", .scopes = 1, .expires_unix_s = 1234567890, .id = 42};
    struct vxd_principal who = {0};
    struct vxd_token_key key;
    struct issuing t;
    char text[VXD_SIGNED_TOKEN_BYTES];
    struct vxd_err err = {0};

    begin(&t, LINE "\n");
    REQUIRE(t.auth != NULL);
    REQUIRE(vxd_token_key_open(t.folder, &key, &err) == VXD_OK); /* the server's */
    REQUIRE(vxd_signed_token_write(&key, &token, text, &err) == VXD_OK);
    CHECK_INT(log_in(&t, text, &who, &err), VXD_UNAUTHENTICATED);
    CHECK(strstr(err.message, "issued by robot, expired") != NULL);
    CHECK(who.rules == NULL);
    end(&t);
}

static void test_key_that_others_may_read_is_refused(void)
{
    struct vxd_token_key key;
    struct issuing t;
    char path[96];
    struct vxd_err err = {0};

    begin(&t, NULL);
    REQUIRE(t.auth != NULL);
    (void)snprintf(path, sizeof path, "%s/token.key", t.folder);
    (void)chmod(path, 0644);
    CHECK_INT(vxd_token_key_open(t.folder, &key, &err), VXD_INVALID_ARGUMENT);
    CHECK(strstr(err.message, "chmod 600") != NULL);
    (void)chmod(path, 0600);
    write_text(path, "short");
    CHECK_INT(vxd_token_key_open(t.folder, &key, &err), VXD_INVALID_ARGUMENT);
    CHECK(strstr(err.message, "not a key of 32 bytes") != NULL);
    end(&t);
}

/* --- quotas ------------------------------------------------------------------------------- */

#define MS INT64_C(1000000)

static void test_quota_of_requests_names_figure_limit_and_key(void)
{
    const struct vxd_quota rate = {.requests_per_s = 10};
    const struct vxd_quota flight = {.in_flight = 2};
    const struct vxd_quota lanes = {.lane_s_per_minute = 6};
    struct vxd_accounts *accounts = NULL;
    struct vxd_account_usage usage[4];
    struct vxd_account *a;
    struct vxd_account *b;
    struct vxd_err err = {0};
    int64_t now = 1000 * MS;

    REQUIRE(vxd_accounts_create(&accounts, NULL) == VXD_OK);
    a = vxd_accounts_find(accounts, "a");
    b = vxd_accounts_find(accounts, "b");
    CHECK(a == vxd_accounts_find(accounts, "a"));
    for (int i = 0; i < 10; i++) { /* those of a second at once */
        CHECK_INT(vxd_account_begin(a, &rate, now, &err), VXD_OK);
        vxd_account_end(a);
    }
    CHECK_INT(vxd_account_begin(a, &rate, now, &err), VXD_RESOURCE_EXHAUSTED);
    CHECK(strstr(err.message, "a has 10 requests in the last second, requests_per_s of "
                              "it is 10") != NULL);
    CHECK_INT(vxd_account_begin(b, &rate, now, &err), VXD_OK);
    vxd_account_end(b);
    CHECK_INT(vxd_account_begin(a, &rate, now + 101 * MS, &err), VXD_OK);
    vxd_account_end(a);
    CHECK_INT(vxd_account_begin(a, &rate, now + 102 * MS, &err), VXD_RESOURCE_EXHAUSTED);

    CHECK_INT(vxd_account_begin(b, &flight, now, &err), VXD_OK);
    CHECK_INT(vxd_account_begin(b, &flight, now, &err), VXD_OK);
    CHECK_INT(vxd_account_begin(b, &flight, now, &err), VXD_RESOURCE_EXHAUSTED);
    CHECK(strstr(err.message, "b has 2 requests in flight, in_flight of it is 2") !=
          NULL);
    vxd_account_end(b);
    CHECK_INT(vxd_account_begin(b, &flight, now, &err), VXD_OK);
    vxd_account_end(b);
    vxd_account_end(b);

    vxd_account_charge(b, &lanes, 7000 * MS,
                       now); /* one second too much, of six a minute */
    CHECK_INT(vxd_account_begin(b, &lanes, now, &err), VXD_RESOURCE_EXHAUSTED);
    CHECK(strstr(err.message, "b has 7 seconds of lanes in the last minute") != NULL);
    CHECK_INT(vxd_account_begin(b, &lanes, now + 9000 * MS, &err),
              VXD_RESOURCE_EXHAUSTED);
    CHECK_INT(vxd_account_begin(b, &lanes, now + 10100 * MS, &err), VXD_OK);
    vxd_account_end(b);

    REQUIRE(vxd_accounts_list(accounts, usage, 4) == 2);
    CHECK_STR(usage[0].name, "a");
    CHECK_INT(usage[0].n_requests, 13);
    CHECK_INT(usage[0].n_refused[VXD_REFUSED_RATE], 2);
    CHECK_INT(usage[1].n_refused[VXD_REFUSED_IN_FLIGHT], 1);
    CHECK_INT(usage[1].n_refused[VXD_REFUSED_LANE_TIME], 2);
    CHECK_INT(usage[1].n_in_flight, 0);
    CHECK_INT(usage[1].lane_ns, 7000 * MS);
    vxd_accounts_destroy(accounts);
}

/* --- names in messages -------------------------------------------------------------------- */

static void test_names_in_requests_are_checked_wherever_they_stand(void)
{
    Voxeld__V1__SceneBranchRequest branch = VOXELD__V1__SCENE_BRANCH_REQUEST__INIT;
    Voxeld__V1__MapSaveRequest save = VOXELD__V1__MAP_SAVE_REQUEST__INIT;
    Voxeld__V1__VoxelizeRequest voxelize = VOXELD__V1__VOXELIZE_REQUEST__INIT;
    Voxeld__V1__VoxelizeMerge merge = VOXELD__V1__VOXELIZE_MERGE__INIT;
    struct vxd_principal who = {.name = "robot",
                                .rules = rules_of("names=yard files=store")};
    struct vxd_err err = {0};

    REQUIRE(who.rules != NULL);
    branch.name = (char *)(uintptr_t) "yard";
    branch.new_name = (char *)(uintptr_t) "yard2";
    CHECK_INT(vxd_objects_check(&who, &branch.base, &err), VXD_OK);
    branch.new_name = (char *)(uintptr_t) "street";
    CHECK_INT(vxd_objects_check(&who, &branch.base, &err), VXD_PERMISSION_DENIED);
    CHECK_STR(err.field, "new_name");
    save.name = (char *)(uintptr_t) "yard";
    CHECK_INT(vxd_objects_check(&who, &save.base, &err), VXD_PERMISSION_DENIED);
    CHECK_STR(err.field, "file"); /* which is the map's name where it is empty */
    save.file = (char *)(uintptr_t) "store-1";
    CHECK_INT(vxd_objects_check(&who, &save.base, &err), VXD_OK);
    CHECK_INT(vxd_objects_check(&who, &voxelize.base, &err), VXD_OK);
    voxelize.merge = &merge;
    merge.map = (char *)(uintptr_t) "street";
    CHECK_INT(vxd_objects_check(&who, &voxelize.base, &err), VXD_PERMISSION_DENIED);
    CHECK_STR(err.field, "merge.map");
    vxd_rules_drop(who.rules);
    who.rules = NULL;
    CHECK_INT(vxd_objects_check(&who, &voxelize.base, &err), VXD_OK);
}

static void test_lists_show_only_names_that_may_be_used(void)
{
    Voxeld__V1__MapListResponse list = VOXELD__V1__MAP_LIST_RESPONSE__INIT;
    Voxeld__V1__NetworkListResponse networks = VOXELD__V1__NETWORK_LIST_RESPONSE__INIT;
    Voxeld__V1__MapInfo infos[3];
    Voxeld__V1__MapInfo *maps[3];
    static const char *const names[] = {"street", "yard", "yard2"};
    char *available[3];
    struct vxd_principal who = {.name = "robot", .rules = rules_of("names=yard")};

    REQUIRE(who.rules != NULL);
    for (size_t i = 0; i < 3; i++) {
        voxeld__v1__map_info__init(&infos[i]);
        infos[i].name = (char *)(uintptr_t)names[i];
        maps[i] = &infos[i];
        available[i] = (char *)(uintptr_t)names[2 - i];
    }
    list.maps = maps;
    list.n_maps = 3;
    vxd_objects_filter(&who, &list.base);
    CHECK_INT(list.n_maps, 2);
    CHECK_STR(list.maps[0]->name, "yard");
    CHECK_STR(list.maps[1]->name, "yard2");
    networks.available = available;
    networks.n_available = 3;
    vxd_objects_filter(&who, &networks.base);
    CHECK_INT(networks.n_available, 2);
    CHECK_STR(networks.available[1], "yard");
    vxd_rules_drop(who.rules);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_old_line_limits_nothing),
    VXD_TEST(test_names_are_prefixes_of_all_nouns_or_of_one),
    VXD_TEST(test_methods_are_allowed_and_denied_by_pattern),
    VXD_TEST(test_rules_that_are_based_on_others_only_narrow),
    VXD_TEST(test_hostile_token_files_are_refused_with_their_line),
    VXD_TEST(test_issued_token_can_do_less_and_never_more),
    VXD_TEST(test_issued_token_ends_with_its_issuer_and_follows_its_rules),
    VXD_TEST(test_signed_token_that_was_changed_or_is_over_is_none),
    VXD_TEST(test_expired_token_says_so),
    VXD_TEST(test_key_that_others_may_read_is_refused),
    VXD_TEST(test_quota_of_requests_names_figure_limit_and_key),
    VXD_TEST(test_names_in_requests_are_checked_wherever_they_stand),
    VXD_TEST(test_lists_show_only_names_that_may_be_used),
};

VXD_TEST_MAIN(tests)
