// SPDX-License-Identifier: Apache-2.0
/* voxelctl on versions of scenes, and backup, against the peer: its requests, its
 * output, its exit status. */
#include <stdint.h>
#include <unistd.h>

#include "tests/support/client/run_voxelctl.h"
#include "tests/support/client/peer.h"

/* Runs voxelctl with these words, --url of the peer (NULL: none) before them. */
static int ctl(const struct peer *peer, const char *words, char *text, size_t n_text)
{
    char all[2048];

    (void)snprintf(all, sizeof all, "%s%s %s", peer != NULL ? "--url " : "",
                   peer != NULL ? peer->url : "", words);
    return ctl_piped(VOXELCTL, "", all, text, n_text);
}

static void check_cases(const struct peer *peer, const struct usage *cases, size_t n)
{
    char text[8192];

    for (size_t i = 0; i < n; i++) {
        CHECK_INT(ctl(peer, cases[i].words, text, sizeof text), cases[i].exit);
        check_says(text, cases[i].says);
    }
}

static void test_version_command_line_wrong_ends_with_2_and_says_what(void)
{
    static const struct usage cases[] = {
        {"scene create yard --size 1 --keep 0", 2, "1 to 4096"},
        {"scene create yard --size 1 --durable yes", 2, "always, everysec or off"},
        {"scene create yard --size 1 --journal-max-bytes 9", 2, "goes with --durable"},
        {"scene integrate a.bin --scene s --keep 3", 2, "go with --size"},
        {"scene log", 2, "words"},
        {"scene log yard --limit 10001", 2, "1 to 10000"},
        {"scene undo yard --of 0", 2, "a version"},
        {"scene undo yard --of x", 2, "a version"},
        {"scene snapshot yard", 2, "1 words"},
        {"scene snapshot yard s --at 0", 2, "a version or a snapshot"},
        {"scene snapshot yard s --drop --replace", 2, "goes without"},
        {"scene snapshot yard s --drop --at 3", 2, "goes without"},
        {"scene branch yard", 2, "1 words"},
        {"scene diff yard --from 18446744073709551616", 2, "a version or a snapshot"},
        {"scene diff yard --out x.ply", 2, "--out x.ply"},
        {"scene repair", 2, "0 words"},
        {"scene repair --dry-run", 2, "0 words"},
        {"backup", 2, "backup"},
        {"scene undo --help", 0, "--of N"},
        {"scene --help", 0, "NAME@SNAPSHOT"},
        {"backup --help", 0, "backups/NAME"},
    };

    check_cases(NULL, cases, sizeof cases / sizeof cases[0]);
}

static void test_version_subcommands_print_what_the_server_says(void)
{
    static const struct usage cases[] = {
        {"scene info yard@7", 0,
         "kept        versions from 2 on, 1 snapshots; the newest 12 of the last 3600 s"},
        {"scene info yard", 0, "shared      with 2 other scenes"},
        {"scene info yard", 0, "durable     fsync everysec; a snapshot file every 5,000"},
        {"scene info yard", 0, "free space, durable; "},
        {"scene list --json", 0, "\"keep_versions\": 12, \"keep_seconds\": 3600"},
        {"scene info yard --json", 0, "\"durable\": \"everysec\""},
        {"scene log yard", 0,
         "      9  1970-01-02T00:00:00Z  undone 8             1,000        0 "},
        {"scene log yard", 0, "edited, undone by 9  1,001"},
        {"scene log yard", 0, "monday          3  1970-01-01T00:00:01Z\n"},
        {"scene log yard", 0, "yard: version 9; kept from 7 on\n"},
        {"scene log yard --limit 1 --json", 0,
         "{\"versions\": [{\"version\": 9, \"kind\": \"undone\", \"of_version\": 8"},
        {"scene log yard --json", 0, "\"snapshots\": [{\"name\": \"monday\""},
        {"scene undo yard --of 8", 0, "yard: undid 8 by version 10; voxels: 0 added"},
        {"scene undo yard --of 8 --json", 0, "\"of_version\": 8, \"engine_ms\": 0.5"},
        {"scene redo yard --of 9", 0, "yard: redid 9 by version 10"},
        {"scene undo yard", 0, "yard: undid 7 by version 10"},
        {"scene redo yard", 0, "yard: redid 9 by version 10"},
        {"scene snapshot yard tuesday --at 4", 0, "yard@tuesday is version 4\n"},
        {"scene snapshot yard tuesday --json", 0, "\"version\": 9"},
        {"scene snapshot yard tuesday --drop", 0, "dropped yard@tuesday\n"},
        {"scene snapshot yard tuesday --drop --json", 0, "{\"dropped\": \"tuesday\"}"},
        {"scene branch yard copy --at monday", 0, "of yard@3: copy: version 1, 32^3"},
        {"scene branch yard copy --json", 0, "{\"of_version\": 9, \"scene\": {\"name\""},
        {"scene diff yard", 0,
         "yard: 5 cells differ between version 8 and 9: 1 added, 1 removed, 1 of another "
         "material, 1 freed, 1 free no more\n"},
        {"scene diff yard --to-scene copy --from 3", 0, "between version 3 and copy@9"},
        {"scene diff yard --json", 0, "\"n_cells\": 5, \"n_added\": 1"},
        {"scene verify yard", 0, "yard: sound; 3 versions, 4 different roots, 5,000"},
        {"scene verify yard --json", 0, "\"n_nodes\": 5000, \"digest\": \"001122"},
        {"scene collect yard", 0, "yard: 1,000 bytes of 2,000 are left, 10 nodes of 20"},
        {"scene collect yard --json", 0, "\"n_slices\": 3, \"longest_slice_ms\": 1.5"},
        {"backup monday", 0,
         "monday: a database of 4,096 bytes, 2 snapshot files of 1,000 (1 of them "
         "links)"},
        {"backup monday --json", 0, "{\"path\": \"monday\", \"n_database_bytes\": 4096"},
    };
    struct peer peer;

    REQUIRE(peer_start(&peer, NULL) == 0);
    check_cases(&peer, cases, sizeof cases / sizeof cases[0]);
    peer_stop(&peer);
}

static void test_create_sends_how_a_scene_is_kept(void)
{
    struct peer peer;
    Voxeld__V1__Request *arrived;
    char text[8192];

    REQUIRE(peer_start(&peer, NULL) == 0);
    CHECK_INT(ctl(&peer,
                  "scene create yard --size 1 --keep 5 --keep-seconds 60 --durable "
                  "everysec --journal-max-bytes 4000",
                  text, sizeof text),
              0);
    arrived = peer_last(&peer);
    REQUIRE(arrived != NULL && arrived->scene_create->durability != NULL);
    CHECK_INT(arrived->scene_create->retention->versions, 5);
    CHECK_INT(arrived->scene_create->retention->seconds, 60);
    CHECK_INT(arrived->scene_create->durability->fsync,
              VOXELD__V1__SCENE_FSYNC__SCENE_FSYNC_EVERYSEC);
    CHECK_INT(arrived->scene_create->durability->journal_max_bytes, 4000);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    peer_stop(&peer);
}

static void test_queries_and_exports_ask_for_the_named_version(void)
{
    char words[256];
    char path[64];
    char text[8192];
    struct peer peer;
    Voxeld__V1__Request *arrived;

    (void)snprintf(path, sizeof path, "/tmp/voxelctl-version-%ld.npy", (long)getpid());
    REQUIRE(peer_start(&peer, NULL) == 0);
    (void)snprintf(words, sizeof words,
                   "scene query yard@monday ray 0,0,1 1,0,0 --out %s", path);
    CHECK_INT(ctl(&peer, words, text, sizeof text), 0);
    arrived = peer_last(&peer);
    REQUIRE(arrived != NULL && arrived->scene_cast_rays->at != NULL);
    CHECK_STR(arrived->scene_cast_rays->name, "yard");
    CHECK_STR(arrived->scene_cast_rays->at->snapshot, "monday");
    voxeld__v1__request__free_unpacked(arrived, NULL);
    /* The replies after the first one are of its version. */
    atomic_store(&peer.scene_version, 6);
    (void)snprintf(words, sizeof words, "scene export yard %s", path);
    CHECK_INT(ctl(&peer, words, text, sizeof text), 0);
    arrived = peer_last(&peer);
    REQUIRE(arrived != NULL && arrived->scene_export->at != NULL);
    CHECK(arrived->scene_export->first > 0 && arrived->scene_export->at->version == 6);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    (void)unlink(path);
    peer_stop(&peer);
}

static void test_diff_fetches_all_parts_of_the_versions_it_began_with(void)
{
    char words[256];
    char path[64];
    char text[8192];
    struct peer peer;
    Voxeld__V1__Request *arrived;

    (void)snprintf(path, sizeof path, "/tmp/voxelctl-diff-%ld.npz", (long)getpid());
    REQUIRE(peer_start(&peer, NULL) == 0);
    (void)snprintf(words, sizeof words,
                   "scene diff yard --level 2 --box 0,0,0,1,2,3 --in-voxels --out %s",
                   path);
    CHECK_INT(ctl(&peer, words, text, sizeof text), 0);
    check_says(text, "5 cells");
    CHECK_INT(unlink(path), 0);
    arrived = peer_last(&peer);
    REQUIRE(arrived != NULL && arrived->scene_diff->to != NULL);
    CHECK(arrived->scene_diff->first == 4 && arrived->scene_diff->level == 2);
    CHECK(arrived->scene_diff->from->version == 8 && arrived->scene_diff->in_voxels);
    CHECK(arrived->scene_diff->box->high->z == 3);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    atomic_store(&peer.version_flaw, VERSION_FLAW_DIFF_STALLS);
    CHECK_INT(ctl(&peer, words, text, sizeof text), 1);
    check_says(text, "a reply without the next cells");
    CHECK(access(path, F_OK) != 0);
    peer_stop(&peer);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_version_command_line_wrong_ends_with_2_and_says_what),
    VXD_TEST(test_version_subcommands_print_what_the_server_says),
    VXD_TEST(test_create_sends_how_a_scene_is_kept),
    VXD_TEST(test_queries_and_exports_ask_for_the_named_version),
    VXD_TEST(test_diff_fetches_all_parts_of_the_versions_it_began_with),
};

VXD_TEST_MAIN(tests)
