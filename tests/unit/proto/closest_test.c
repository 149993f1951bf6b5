// SPDX-License-Identifier: Apache-2.0
/* Which word a misspelt one may have meant. */
#include <string.h>

#include "proto/base/closest.h"
#include "tests/support/test.h"

static const char *closest_of(const char *word, const char *const *words,
                              struct vxd_closest *search)
{
    *search = (struct vxd_closest){.word = word};
    for (size_t i = 0; words[i] != NULL; i++) {
        vxd_closest_offer(search, words[i]);
    }
    return search->found;
}

static const char *const words[] = {"voxelize", "volume", "scene", "status", "a", NULL};

static void test_closest_misspelt_word_is_found(void)
{
    struct vxd_closest search;

    CHECK_STR(closest_of("voxelise", words, &search), "voxelize");
    CHECK_STR(closest_of("scnee", words, &search), "scene"); /* two changed places */
    CHECK_INT(search.distance, 1);
    CHECK_STR(closest_of("statuss", words, &search), "status");
    CHECK_STR(closest_of("tatus", words, &search), "status");
}

static void test_closest_other_words_are_not_close(void)
{
    struct vxd_closest search;
    char text[96] = "x";

    CHECK_STR(closest_of("map", words, &search), "");
    CHECK_STR(closest_of("", words, &search), "");
    CHECK_STR(closest_of("b", words, &search), "");
    CHECK_STR(vxd_closest_text(&search, text, sizeof text), "");
}

static void test_closest_of_equally_close_ones_the_first_is_found(void)
{
    static const char *const twins[] = {"yard-a", "yard-b", NULL};
    struct vxd_closest search;

    CHECK_STR(closest_of("yard-c", twins, &search), "yard-a");
}

static void test_closest_long_words_are_left_out(void)
{
    char longest[VXD_CLOSEST_BYTES];
    char too_long[VXD_CLOSEST_BYTES + 1];
    const char *const both[] = {too_long, longest, NULL};
    struct vxd_closest search;
    char text[VXD_CLOSEST_BYTES + 24];

    memset(longest, 'y', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    memset(too_long, 'y', sizeof too_long - 1);
    too_long[sizeof too_long - 1] = '\0';
    CHECK_STR(closest_of(longest, both, &search), longest);
    CHECK_INT(search.distance, 0);
    CHECK(strstr(vxd_closest_text(&search, text, sizeof text), "Did you mean") != NULL);
    CHECK_STR(closest_of(too_long, both, &search), "");
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_closest_misspelt_word_is_found),
    VXD_TEST(test_closest_other_words_are_not_close),
    VXD_TEST(test_closest_of_equally_close_ones_the_first_is_found),
    VXD_TEST(test_closest_long_words_are_left_out),
};

VXD_TEST_MAIN(tests)
