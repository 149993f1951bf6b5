// SPDX-License-Identifier: Apache-2.0
/* What the transports read themselves of what browsers and viewers send: ids of events, cookies,
 * handshakes of WebSockets, and messages of Foxglove viewers. */
#include "tests/support/test.h"

#include "server/transport/foxglove/foxglove_internal.h"
#include "server/transport/http/http_events_internal.h"
#include "server/transport/http/http_internal.h"
#include "server/transport/websocket/websocket.h"

static void test_ids_of_events_come_back_as_they_were_written(void)
{
    static const uint64_t points[][4] = {
        {7, 3, 0, 0},
        {7, 3, 5, 1000},
        {0, 0, 0, 0},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}};

    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        Voxeld__V1__WatchPoint point = VOXELD__V1__WATCH_POINT__INIT;
        Voxeld__V1__WatchPoint back = VOXELD__V1__WATCH_POINT__INIT;
        struct vxd_text text = {0};

        point.generation = points[i][0];
        point.version = points[i][1];
        point.to_version = points[i][2];
        point.first = points[i][3];
        vxd_http_events_write_id(&text, &point);
        vxd_text_append(&text, "", 1);
        REQUIRE(!text.failed);
        CHECK(vxd_http_events_read_id(text.bytes, &back));
        CHECK(back.generation == point.generation && back.version == point.version);
        CHECK(back.to_version == point.to_version && back.first == point.first);
        free(text.bytes);
    }
}

static void test_texts_that_are_no_ids_of_events_are_refused(void)
{
    static const char *const texts[] = {"",
                                        "7",
                                        "7-",
                                        "-7-3",
                                        "7-3-5",
                                        "7-3-5-1-2",
                                        "7-3-",
                                        "7 -3",
                                        " 7-3",
                                        "7--3",
                                        "+7-3",
                                        "0x7-3",
                                        "7-3\n",
                                        "18446744073709551616-1",
                                        "7-99999999999999999999999999"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        Voxeld__V1__WatchPoint point = VOXELD__V1__WATCH_POINT__INIT;

        CHECK(!vxd_http_events_read_id(texts[i], &point));
    }
}

static void test_cookies_are_tokens_in_hexadecimal(void)
{
    char token[8];

    CHECK(vxd_http_cookie_decode("616263", token, sizeof token));
    CHECK_STR(token, "abc");
    CHECK(vxd_http_cookie_decode("c3a4ff01", token, sizeof token));
    CHECK_STR(token, "\xc3\xa4\xff\x01");
    CHECK(vxd_http_cookie_decode("61626364656667", token, sizeof token)); /* seven */
    CHECK_STR(token, "abcdefg");
    CHECK(!vxd_http_cookie_decode("6162636465666768", token, sizeof token)); /* eight */
    CHECK(!vxd_http_cookie_decode("", token, sizeof token));
    CHECK(!vxd_http_cookie_decode("616", token, sizeof token));
    CHECK(!vxd_http_cookie_decode("6z", token, sizeof token));
    CHECK(!vxd_http_cookie_decode("6A", token, sizeof token)); /* of another case */
    CHECK(
        !vxd_http_cookie_decode("6100", token, sizeof token)); /* an end in the middle */
}

static void test_handshakes_are_proved_as_the_standard_says(void)
{
    /* RFC 6455, 1.3. */
    struct vxd_websocket_offer offer = {"websocket", "Upgrade", "13",
                                        "dGhlIHNhbXBsZSBub25jZQ=="};
    char accept[VXD_WEBSOCKET_ACCEPT_BYTES];
    struct vxd_err err = {0};

    CHECK_INT(vxd_websocket_check(&offer, accept, &err), VXD_OK);
    CHECK_STR(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    offer.upgrade = "h2c, WebSocket";
    offer.connection = "keep-alive,\tUPGRADE";
    CHECK_INT(vxd_websocket_check(&offer, accept, &err), VXD_OK);
}

static void test_handshakes_that_are_none_are_refused_by_header(void)
{
    static const struct {
        struct vxd_websocket_offer offer;
        enum vxd_status status;
        const char *field;
    } cases[] = {
        {{NULL, "Upgrade", "13", "dGhlIHNhbXBsZSBub25jZQ=="},
         VXD_INVALID_ARGUMENT,
         "Upgrade"},
        {{"websockets", "Upgrade", "13", "dGhlIHNhbXBsZSBub25jZQ=="},
         VXD_INVALID_ARGUMENT,
         "Upgrade"},
        {{"websocket", NULL, "13", "dGhlIHNhbXBsZSBub25jZQ=="},
         VXD_INVALID_ARGUMENT,
         "Connection"},
        {{"websocket", "close", "13", "dGhlIHNhbXBsZSBub25jZQ=="},
         VXD_INVALID_ARGUMENT,
         "Connection"},
        {{"websocket", "Upgrade", "8", "dGhlIHNhbXBsZSBub25jZQ=="},
         VXD_UNIMPLEMENTED,
         "Sec-WebSocket-Version"},
        {{"websocket", "Upgrade", NULL, "dGhlIHNhbXBsZSBub25jZQ=="},
         VXD_UNIMPLEMENTED,
         "Sec-WebSocket-Version"},
        {{"websocket", "Upgrade", "13", NULL}, VXD_INVALID_ARGUMENT, "Sec-WebSocket-Key"},
        {{"websocket", "Upgrade", "13", "dGhlIHNhbXBsZSBub25jZQ="},
         VXD_INVALID_ARGUMENT,
         "Sec-WebSocket-Key"},
        {{"websocket", "Upgrade", "13", "dGhlIHNhbXBsZSBub25jZSE="},
         VXD_INVALID_ARGUMENT,
         "Sec-WebSocket-Key"},
        {{"websocket", "Upgrade", "13", "dGhl!HNhbXBsZSBub25jZQ=="},
         VXD_INVALID_ARGUMENT,
         "Sec-WebSocket-Key"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char accept[VXD_WEBSOCKET_ACCEPT_BYTES];
        struct vxd_err err = {0};

        CHECK_INT(vxd_websocket_check(&cases[i].offer, accept, &err), cases[i].status);
        CHECK_STR(err.field, cases[i].field);
    }
}

static enum vxd_status read_text(const char *text, struct vxd_foxglove_command *out,
                                 struct vxd_err *err)
{
    return vxd_foxglove_read((const uint8_t *)text, strlen(text), out, err);
}

static void test_viewers_subscribe_and_unsubscribe(void)
{
    static struct vxd_foxglove_command command;
    struct vxd_err err = {0};

    CHECK_INT(
        read_text("{\"op\":\"subscribe\",\"subscriptions\":[{\"id\":1,\"channelId\":7},"
                  "{\"id\":4294967295,\"channelId\":0}]}",
                  &command, &err),
        VXD_OK);
    CHECK_INT(command.op, VXD_FOXGLOVE_SUBSCRIBE);
    CHECK_INT(command.n, 2);
    CHECK(command.ids[1] == UINT32_MAX && command.channels[0] == 7);
    CHECK_INT(
        read_text("{\"op\":\"unsubscribe\",\"subscriptionIds\":[3]}", &command, &err),
        VXD_OK);
    CHECK_INT(command.op, VXD_FOXGLOVE_UNSUBSCRIBE);
    CHECK(command.n == 1 && command.ids[0] == 3);
}

static void test_messages_of_viewers_that_are_wrong_are_refused(void)
{
    static const struct {
        const char *text;
        enum vxd_status status;
    } cases[] = {
        {"", VXD_INVALID_ARGUMENT},
        {"[]", VXD_INVALID_ARGUMENT},
        {"{\"op\":5}", VXD_INVALID_ARGUMENT},
        {"{\"op\":\"subscribe\"}", VXD_INVALID_ARGUMENT},
        {"{\"op\":\"subscribe\",\"subscriptions\":{}}", VXD_INVALID_ARGUMENT},
        {"{\"op\":\"subscribe\",\"subscriptions\":[{\"id\":-1,\"channelId\":7}]}",
         VXD_INVALID_ARGUMENT},
        {"{\"op\":\"subscribe\",\"subscriptions\":[{\"id\":4294967296,\"channelId\":7}]}",
         VXD_INVALID_ARGUMENT},
        {"{\"op\":\"subscribe\",\"subscriptions\":[{\"id\":1.5,\"channelId\":7}]}",
         VXD_INVALID_ARGUMENT},
        {"{\"op\":\"unsubscribe\",\"subscriptionIds\":[\"3\"]}", VXD_INVALID_ARGUMENT},
        {"{\"op\":\"subscribe\",\"op\":\"subscribe\",\"subscriptions\":[]}",
         VXD_INVALID_ARGUMENT},
        {"{\"op\":\"getParameters\"}", VXD_UNIMPLEMENTED},
        {"{\"op\":\"advertise\"}", VXD_UNIMPLEMENTED},
        {"{\"op\":\"shutdown\"}", VXD_INVALID_ARGUMENT}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static struct vxd_foxglove_command command;
        struct vxd_err err = {0};

        CHECK_INT(read_text(cases[i].text, &command, &err), cases[i].status);
        CHECK(err.message[0] != '\0');
    }
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_ids_of_events_come_back_as_they_were_written),
    VXD_TEST(test_texts_that_are_no_ids_of_events_are_refused),
    VXD_TEST(test_cookies_are_tokens_in_hexadecimal),
    VXD_TEST(test_handshakes_are_proved_as_the_standard_says),
    VXD_TEST(test_handshakes_that_are_none_are_refused_by_header),
    VXD_TEST(test_viewers_subscribe_and_unsubscribe),
    VXD_TEST(test_messages_of_viewers_that_are_wrong_are_refused),
};

VXD_TEST_MAIN(tests)
