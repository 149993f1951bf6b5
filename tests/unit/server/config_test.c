// SPDX-License-Identifier: Apache-2.0
/* Configuration, flags, and the log. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <unistd.h>

#include "server/config/config.h"
#include "server/observe/log/log.h"

static enum vxd_status parse(const char *text, struct vxd_config *config,
                             struct vxd_err *err)
{
    memset(err, 0, sizeof *err);
    vxd_config_default(config);
    return vxd_config_parse("test.json", text, strlen(text), config, err);
}

static void test_config_shipped_file_is_valid(void)
{
    struct vxd_config config;
    struct vxd_err err = {0};

    vxd_config_default(&config);
    CHECK_INT(vxd_config_read(VOXELD_SOURCE_DIR "/configs/voxeld.json", &config, &err),
              VXD_OK);
    CHECK_STR(err.message, "");
    CHECK_INT(vxd_config_check(&config, &err), VXD_OK);
}

static void test_config_every_key_is_in_the_manual_and_the_shipped_file(void)
{
    static const char *const files[] = {VOXELD_SOURCE_DIR "/configs/README.md",
                                        VOXELD_SOURCE_DIR "/configs/voxeld.json"};

    for (int f = 0; f < 2; f++) {
        char *text = calloc(1, 1 << 20);
        FILE *file = fopen(files[f], "rb");
        const char *key;

        REQUIRE(text != NULL && file != NULL);
        CHECK(fread(text, 1, (1 << 20) - 1, file) > 0);
        for (size_t i = 0; (key = vxd_config_key(i)) != NULL; i++) {
            const char *dot = strrchr(key, '.');
            char expected[128];

            (void)snprintf(expected, sizeof expected, f == 0 ? "`%s`" : "\"%s\":",
                           f == 1 && dot != NULL ? dot + 1 : key);
            if (strstr(text, expected) == NULL) {
                (void)fprintf(stderr, "%s lacks %s\n", files[f], expected);
                CHECK(!"the key is documented");
            }
        }
        (void)fclose(file);
        free(text);
    }
}

static void test_config_values_are_read_into_place(void)
{
    struct vxd_config config;
    struct vxd_err err;

    REQUIRE(parse("{\"listen\": {\"rpc\": [\"tcp://127.0.0.1:1\", \"ipc:///tmp/x\"],"
                  "\"ipc_mode\": \"0600\", \"http\": \"\", \"allow_insecure\": true},"
                  "\"data_dir\": \"/var/lib/v\","
                  "\"engine\": {\"backend\": \"cuda:1\", \"threads\": 3,"
                  "\"device_bytes\": 4611686018427387904},"
                  "\"limits\": {\"queue\": 7, \"message_bytes\": 65536},"
                  "\"auth\": {\"ipc_uids\": [1000, 0]},"
                  "\"http\": {\"allowed_origins\": [\"http://a\", \"http://b\"]},"
                  "\"log\": {\"level\": \"warning\"}}",
                  &config, &err) == VXD_OK);
    CHECK_INT(config.n_rpc, 2);
    CHECK_STR(config.rpc[1], "ipc:///tmp/x");
    CHECK_INT(config.ipc_mode, 0600);
    CHECK_STR(config.http, "");
    CHECK(config.allow_insecure);
    CHECK_STR(config.data_dir, "/var/lib/v");
    CHECK_STR(config.backend, "cuda:1");
    CHECK_INT(config.n_threads, 3);
    CHECK(config.device_bytes == UINT64_C(1) << 62);
    CHECK_INT(config.queue_limit, 7);
    CHECK_INT(config.max_message_bytes, 65536);
    CHECK_INT(config.n_ipc_uids, 2);
    CHECK_INT(config.ipc_uids[0], 1000);
    CHECK_INT(config.n_allowed_origins, 2);
    CHECK_STR(config.allowed_origins[1], "http://b");
    CHECK_STR(config.log_level, "warning");
}

static void test_config_errors_name_the_key_and_the_reason(void)
{
    static const struct {
        const char *text;
        const char *field;
        const char *message; /* a part of it */
    } cases[] = {
        {"", "", "test.json:1:"},
        {"{\n\"log\": {,}}", "", "test.json:2:"},
        {"[]", "", "must be one object, not an array"},
        {"{} x", "", "end of file expected"},
        {"{\"data_dir\": \"a\", \"data_dir\": \"b\"}", "", "duplicate"},
        {"{\"datadir\": \"a\"}", "datadir", "no key"},
        {"{\"limits\": {\"queue_limit\": 1}}", "limits.queue_limit", "no key"},
        {"{\"limits\": {\"queue\": {}}}", "limits.queue", "must be a whole number"},
        {"{\"limits\": 3}", "limits", "must be an object, not a number"},
        {"{\"limits.queue\": 3}", "limits.queue", "no key"},
        {"{\"limits\": {\"queue\": 0}}", "limits.queue", "is 0, it must be 1 to 4096"},
        {"{\"limits\": {\"queue\": -1}}", "limits.queue", "is -1"},
        {"{\"limits\": {\"queue\": 1.5}}", "limits.queue", "whole number, not a number"},
        {"{\"limits\": {\"queue\": \"9\"}}", "limits.queue", "not a string"},
        {"{\"limits\": {\"queue\": null}}", "limits.queue", "not null"},
        {"{\"limits\": {\"queue\": 99999999999999999999}}", "", "too big"},
        {"{\"engine\": {\"read_lanes\": 17}}", "engine.read_lanes", "0 to 16"},
        {"{\"engine\": {\"backend\": \"\"}}", "engine.backend", "has 0 bytes"},
        {"{\"listen\": {\"rpc\": \"tcp://\"}}", "listen.rpc", "must be an array"},
        {"{\"listen\": {\"rpc\": [1]}}", "listen.rpc[0]", "must be a string"},
        {"{\"listen\": {\"rpc\": [\"\"]}}", "listen.rpc[0]", "has 0 bytes"},
        {"{\"listen\": {\"rpc\": "
         "[\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\"]}}",
         "listen.rpc", "has 9 items, at most 8"},
        {"{\"listen\": {\"ipc_mode\": 660}}", "listen.ipc_mode", "octal string"},
        {"{\"listen\": {\"ipc_mode\": \"0888\"}}", "listen.ipc_mode", "octal digits"},
        {"{\"listen\": {\"ipc_mode\": \"7777\"}}", "listen.ipc_mode", "0 to 0777"},
        {"{\"listen\": {\"allow_insecure\": 1}}", "listen.allow_insecure",
         "true or false"},
        {"{\"auth\": {\"ipc_uids\": [-1]}}", "auth.ipc_uids[0]", "is -1"},
        {"{\"log\": {\"level\": \"warn\"}}", "log.level",
         "one of: debug info warning error"},
        {"{\"log\": {\"level\": 1}}", "log.level", "must be a string"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct vxd_config config;
        struct vxd_config before;
        struct vxd_err err;
        enum vxd_status status = parse(cases[i].text, &config, &err);

        vxd_config_default(&before);
        CHECK_INT(status, VXD_INVALID_ARGUMENT);
        CHECK_STR(err.field, cases[i].field);
        if (strstr(err.message, cases[i].message) == NULL) {
            CHECK_STR(err.message, cases[i].message);
        }
        CHECK(memcmp(&config, &before, sizeof config) == 0);
    }
}

static void test_config_file_missing_is_not_found(void)
{
    struct vxd_config config;
    struct vxd_err err = {0};

    CHECK_INT(vxd_config_read("/nowhere/voxeld.json", &config, &err), VXD_NOT_FOUND);
    CHECK(strstr(err.message, "/nowhere/voxeld.json") != NULL);
}

static void test_config_check_refuses_reach_without_tokens(void)
{
    static const struct {
        const char *rpc;
        const char *http;
        enum vxd_status status;
        const char *field;
    } cases[] = {
        {"ipc:///tmp/a", "127.0.0.1:1", VXD_OK, ""},
        {"tcp://127.9.9.9:1", "[::1]:1", VXD_OK, ""},
        {"tcp://localhost:0", "localhost:0", VXD_OK, ""},
        {"tcp://0.0.0.0:1", "", VXD_INVALID_ARGUMENT, "listen.rpc[0]"},
        {"tcp://[::]:1", "", VXD_INVALID_ARGUMENT, "listen.rpc[0]"},
        {"tcp://host:1", "", VXD_INVALID_ARGUMENT, "listen.rpc[0]"},
        {"tcp://127.0.0.1", "", VXD_INVALID_ARGUMENT, "listen.rpc[0]"},
        {"tcp://127.0.0.1:x", "", VXD_INVALID_ARGUMENT, "listen.rpc[0]"},
        {"tcp://127.0.0.1:65536", "", VXD_INVALID_ARGUMENT, "listen.rpc[0]"},
        {"ws://127.0.0.1:1", "", VXD_INVALID_ARGUMENT, "listen.rpc[0]"},
        {"ipc://relative", "", VXD_INVALID_ARGUMENT, "listen.rpc[0]"},
        {"ipc:///tmp/a", "0.0.0.0:8420", VXD_INVALID_ARGUMENT, "listen.http"},
        {"ipc:///tmp/a", "127.0.0.1", VXD_INVALID_ARGUMENT, "listen.http"},
        {"ipc:///tmp/a", "::1:80", VXD_INVALID_ARGUMENT, "listen.http"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct vxd_config config;
        struct vxd_err err = {0};

        vxd_config_default(&config);
        (void)snprintf(config.rpc[0], sizeof config.rpc[0], "%s", cases[i].rpc);
        (void)snprintf(config.http, sizeof config.http, "%s", cases[i].http);
        CHECK_INT(vxd_config_check(&config, &err), cases[i].status);
        CHECK_STR(err.field, cases[i].field);
    }
}

static void test_config_check_refuses_a_single_lane(void)
{
    struct vxd_config config;
    struct vxd_err err = {0};

    vxd_config_default(&config);
    CHECK_INT(config.n_read_lanes, 0); /* by the machine */
    config.n_read_lanes = 1;
    CHECK_INT(vxd_config_check(&config, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "engine.read_lanes");
    CHECK(strstr(err.message, "2 to 16, or 0") != NULL);
}

static void test_config_check_allows_reach_with_tokens_or_insecure(void)
{
    struct vxd_config config;
    struct vxd_err err = {0};

    vxd_config_default(&config);
    (void)snprintf(config.http, sizeof config.http, "0.0.0.0:8420");
    config.allow_insecure = true;
    CHECK_INT(vxd_config_check(&config, &err), VXD_OK);
    config.allow_insecure = false;
    (void)snprintf(config.tokens_file, sizeof config.tokens_file, "/etc/tokens");
    CHECK_INT(vxd_config_check(&config, &err), VXD_OK);
}

/* The parser knows the papers' stores in every build, so that it can say what is missing. */
static void test_config_check_of_a_store_that_the_build_leaves_out_says_so(void)
{
    static const char *const stores[] = {"arena", "atomic64", "ticket", "accel32",
                                         "accel8"};

    for (size_t i = 0; i < sizeof stores / sizeof stores[0]; i++) {
        struct vxd_config config;
        struct vxd_err err = {0};
        char text[64];
        char message[160];

        (void)snprintf(text, sizeof text, "{\"scenes\": {\"store\": \"%s\"}}", stores[i]);
        CHECK_INT(parse(text, &config, &err), VXD_OK);
#if defined(VXD_WITH_PAPER)
        CHECK_INT(vxd_config_check(&config, &err), VXD_OK);
        (void)message;
#else
        CHECK_INT(vxd_config_check(&config, &err), i == 0 ? VXD_OK : VXD_UNIMPLEMENTED);
        CHECK_STR(err.field, i == 0 ? "" : "scenes.store");
        (void)snprintf(
            message, sizeof message,
            "store \"%s\" is one of the papers' stores, which this build leaves "
            "out (VOXELD_PAPER=OFF); known here: arena",
            stores[i]);
        CHECK_STR(err.message, i == 0 ? "" : message);
#endif
    }
}

static void test_config_check_holds_limits_against_each_other(void)
{
    struct vxd_config config;
    struct vxd_err err = {0};

    vxd_config_default(&config);
    config.default_timeout_ms = config.max_timeout_ms + 1;
    CHECK_INT(vxd_config_check(&config, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "limits.timeout_ms");
    vxd_config_default(&config);
    config.inflight_bytes = config.max_message_bytes;
    CHECK_INT(vxd_config_check(&config, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "limits.inflight_bytes");
    vxd_config_default(&config);
    config.n_rpc = 0;
    config.http[0] = '\0';
    CHECK_INT(vxd_config_check(&config, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "listen");
    vxd_config_default(&config);
    (void)snprintf(config.backend, sizeof config.backend, "cuda:x");
    CHECK_INT(vxd_config_check(&config, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "engine.backend");
}

static void test_options_win_over_the_file(void)
{
    char *argv[] = {"voxeld",
                    "--backend",
                    "cpu",
                    "--rpc",
                    "ipc:///tmp/a",
                    "--rpc",
                    "tcp://127.0.0.1:0",
                    "--http=127.0.0.1:0",
                    "--threads",
                    "2",
                    "--log-level",
                    "debug",
                    "--data-dir",
                    "/tmp/d",
                    NULL};
    struct vxd_options options;
    struct vxd_config config;
    struct vxd_err err = {0};

    REQUIRE(vxd_options_parse(14, argv, &options, &err) == VXD_OK);
    REQUIRE(vxd_options_load(&options, &config, &err) == VXD_OK);
    CHECK_STR(config.backend, "cpu");
    CHECK_INT(config.n_rpc, 2);
    CHECK_STR(config.rpc[0], "ipc:///tmp/a");
    CHECK_STR(config.http, "127.0.0.1:0");
    CHECK_INT(config.n_threads, 2);
    CHECK_STR(config.log_level, "debug");
    CHECK_STR(config.data_dir, "/tmp/d");
}

static void test_options_wrong_are_refused_by_name(void)
{
    static const struct {
        const char *flag;
        const char *value;
        const char *message;
    } cases[] = {
        {"--nope", NULL, "unknown flag --nope"},
        {"--config", NULL, "--config needs a value"},
        {"stray", NULL, "\"stray\" is no flag"},
        {"--json", NULL, "--json goes with --check-config"},
    };
    struct vxd_options options;
    struct vxd_config config;
    struct vxd_err err;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char flag[32];
        char *argv[] = {"voxeld", flag, NULL};

        memset(&err, 0, sizeof err);
        (void)snprintf(flag, sizeof flag, "%s", cases[i].flag);
        CHECK_INT(vxd_options_parse(2, argv, &options, &err), VXD_INVALID_ARGUMENT);
        CHECK(strstr(err.message, cases[i].message) != NULL);
    }
    memset(&options, 0, sizeof options);
    options.threads = "2x";
    CHECK_INT(vxd_options_load(&options, &config, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "--threads");
}

/* What vxd_log writes to standard error, read back through a pipe. */
static void capture_log(const char *key, const char *value, char *out, size_t n_out)
{
    int fds[2];
    int saved = dup(STDERR_FILENO);
    ssize_t n;

    if (saved < 0 || pipe(fds) != 0) {
        abort();
    }
    (void)dup2(fds[1], STDERR_FILENO);
    vxd_log(VXD_LOG_ERROR, "m", key, value);
    (void)dup2(saved, STDERR_FILENO);
    (void)close(saved);
    (void)close(fds[1]);
    n = read(fds[0], out, n_out - 1);
    out[n > 0 ? n : 0] = '\0';
    (void)close(fds[0]);
}

static void test_log_line_escapes_whatever_it_is_given(void)
{
    struct vxd_log_number number;
    char line[8192];
    char huge[6000];

    capture_log("k", "a\"b\\c\nd\x01\xc3\xa9", line, sizeof line);
    CHECK(strstr(line, "\"k\":\"a\\\"b\\\\c\\u000ad\\u0001\\u00c3\\u00a9\"}\n") != NULL);
    capture_log("k", vxd_log_int(&number, -42), line, sizeof line);
    CHECK(strstr(line, "\"k\":-42}\n") != NULL);
    capture_log("k", vxd_log_real(&number, 0.5), line, sizeof line);
    CHECK(strstr(line, "\"k\":0.5}\n") != NULL);
    /* A stranger's string that begins with the mark of numbers stays a string. */
    capture_log("k", "\x01,\"admin\":1", line, sizeof line);
    CHECK(strstr(line, "\"k\":\"\\u0001,\\\"admin\\\":1\"}\n") != NULL);
    memset(huge, '"', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    capture_log("k", huge, line, sizeof line);
    CHECK(strlen(line) <= 4096 && strlen(line) > 4000);
    CHECK_STR(line + strlen(line) - 5, "\\\"\"}\n");
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_config_shipped_file_is_valid),
    VXD_TEST(test_config_every_key_is_in_the_manual_and_the_shipped_file),
    VXD_TEST(test_config_values_are_read_into_place),
    VXD_TEST(test_config_errors_name_the_key_and_the_reason),
    VXD_TEST(test_config_file_missing_is_not_found),
    VXD_TEST(test_config_check_refuses_reach_without_tokens),
    VXD_TEST(test_config_check_refuses_a_single_lane),
    VXD_TEST(test_config_check_allows_reach_with_tokens_or_insecure),
    VXD_TEST(test_config_check_of_a_store_that_the_build_leaves_out_says_so),
    VXD_TEST(test_config_check_holds_limits_against_each_other),
    VXD_TEST(test_options_win_over_the_file),
    VXD_TEST(test_options_wrong_are_refused_by_name),
    VXD_TEST(test_log_line_escapes_whatever_it_is_given),
};

VXD_TEST_MAIN(tests)
