// SPDX-License-Identifier: Apache-2.0
/* The program itself against the peer: its output and its exit status. */
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/files/files.h"
#include "tests/support/client/run_voxelctl.h"
#include "tests/support/client/peer.h"

#define KITTI VOXELD_SOURCE_DIR "/tests/data/files/kitti.bin"
#define PCD VOXELD_SOURCE_DIR "/tests/data/files/binary.pcd"

static int ctl(const char *words, char *text, size_t n_text)
{
    return ctl_piped(VOXELCTL, "", words, text, n_text);
}

static void test_command_line_wrong_ends_with_2_and_says_what(void)
{
    static const struct usage cases[] = {
        {"", 2, "no command"},
        {"fly", 2, "fly"},
        {"--wings", 2, "wings"},
        {"voxelize", 2, "usage: voxelctl voxelize FILE"},
        {"voxelize a.pcd", 2, "--size"},
        {"voxelize a.pcd --size 0", 2, "--size 0"},
        {"voxelize a.pcd --size 0.1,0.1", 2, "--size"},
        {"voxelize a.pcd --size nan", 2, "--size"},
        {"voxelize a.pcd --size 1 --range 1,0", 2, "--range"},
        {"voxelize a.pcd --size 1 --rule x", 2, "spconv, minkowski or double"},
        {"voxelize a.pcd --size 1 --reduce mean,median", 2, "--reduce"},
        {"voxelize a.pcd --size 1 --max-points -1", 2, "--max-points"},
        {"voxelize a.pcd --size 1 --features x,,y", 2, "--features"},
        {"voxelize a.pcd --size 1 --out a.txt", 2, ".ply or .npy"},
        {"voxelize a.pcd --size 1 --out a.npy --tensor b", 2, "--tensor"},
        {"voxelize a.pcd b.pcd --size 1 --out a.npy", 2, "one file"},
        {"convert a.pcd", 2, "not 1"},
        {"convert a.pcd b.bin", 2, "--out-format"},
        {"convert a.pcd b.pcd --out-format pcb", 2, "--out-format pcb"},
        {"convert nothing.pcd b.ply", 1, "the local file nothing.pcd"},
        {"convert " KITTI " b.ply", 1, "(format)"},
        {"convert " PCD " /nowhere/b.las", 1, "/nowhere/b.las"},
        {"convert --help", 0, "pcd-compressed"},
        {"--timeout 0 info", 2, "--timeout"},
        {"info more", 2, "words"},
        {"log-level", 2, "words"},
        {"self-test --points 0", 2, "--points"},
        {"--help", 0, "exit status"},
        {"--version", 0, "voxelctl 0."},
        {"voxelize --help", 0, "--max-voxels"},
        {"help voxelize", 0, "--max-voxels"},
        {"help bench", 0, "bench_load"},
        {"info --help", 0, "usage"},
        {"--url ipc:///tmp/voxeld-nobody.sock info", 1, "UNAVAILABLE (url)"},
        {"--token-file /nowhere/token info", 1, "/nowhere/token"},
    };
    char text[8192];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_INT(ctl(cases[i].words, text, sizeof text), cases[i].exit);
        check_says(text, cases[i].says);
    }
}

static void test_voxelize_prints_counts_as_text_and_json(void)
{
    struct peer peer;
    char words[1024];
    char text[8192];

    REQUIRE(peer_start(&peer, NULL) == 0);
    (void)snprintf(words, sizeof words,
                   "--url %s voxelize " KITTI " --format kitti --size 0.1", peer.url);
    CHECK_INT(ctl(words, text, sizeof text), 0);
    check_says(text, "5 voxels from 5 points: 1.50 ms in the engine");
    (void)snprintf(
        words, sizeof words,
        "voxelize --json --url %s --size 0.1,0.2,0.3 --range -8,-8,-8,8,8,8 " PCD,
        peer.url);
    CHECK_INT(ctl(words, text, sizeof text), 0);
    check_says(text, "\"n_voxels\": 5, ");
    check_says(text, "\"size_m\": [0.1, 0.2, 0.3]");
    check_says(text, "\"features\": [\"x\", \"y\", \"z\"], \"engine_ms\": 1.5");
    (void)snprintf(words, sizeof words,
                   "--url %s voxelize --size 1 " PCD " - --format pcd < " PCD, peer.url);
    CHECK_INT(ctl(words, text, sizeof text), 0);
    check_says(text, "\n-: 5 voxels from 5 points");
    peer_stop(&peer);
}

static void test_voxelize_failed_ends_with_1_and_names_the_field(void)
{
    struct peer peer;
    char words[1024];
    char text[8192];

    REQUIRE(peer_start(&peer, NULL) == 0);
    atomic_store(&peer.mode, PEER_FAIL);
    (void)snprintf(words, sizeof words, "--url %s voxelize " PCD " --size 1", peer.url);
    CHECK_INT(ctl(words, text, sizeof text), 1);
    check_says(text, "INVALID_ARGUMENT (clouds[0].fields[2].offset): 17; at most 12");
    atomic_store(&peer.mode, PEER_ANSWER);
    (void)snprintf(words, sizeof words, "--url %s voxelize " KITTI " --size 1", peer.url);
    CHECK_INT(ctl(words, text, sizeof text), 1);
    check_says(text, "(format)");
    /* With one bad file of two, the other is still done. */
    (void)snprintf(words, sizeof words, "--url %s voxelize nothing.ply " PCD " --size 1",
                   peer.url);
    CHECK_INT(ctl(words, text, sizeof text), 1);
    check_says(text, "the local file nothing.ply");
    check_says(text, "binary.pcd: 5 voxels");
    peer_stop(&peer);
}

static void test_voxelize_out_files_are_read_back(void)
{
    struct peer peer;
    char words[1024];
    char text[8192];
    char path[64];
    uint8_t bytes[4096];
    size_t n_bytes;
    struct vxd_cloud_file file;
    FILE *stream;
    double x[3];

    REQUIRE(peer_start(&peer, NULL) == 0);
    (void)snprintf(path, sizeof path, "/tmp/voxelctl-%ld.ply", (long)getpid());
    (void)snprintf(words, sizeof words, "--url %s voxelize " PCD " --size 2 --out %s",
                   peer.url, path);
    CHECK_INT(ctl(words, text, sizeof text), 0);
    stream = fopen(path, "rb");
    REQUIRE(stream != NULL);
    n_bytes = fread(bytes, 1, sizeof bytes, stream);
    (void)fclose(stream);
    REQUIRE(vxd_cloud_file_parse("ply", bytes, n_bytes, 0, &file, NULL) == VXD_OK);
    CHECK_INT(file.n_points, 5);
    CHECK_INT(file.n_fields, 7);
    CHECK_STR(file.fields[3].name, "count");
    CHECK_STR(file.fields[6].name, "mean_z");
    memcpy(x, file.data + 4 * file.point_step, sizeof x);
    CHECK(x[0] == 9 && x[1] == 17 && x[2] == 25); /* (4, 8, 12) + 1/2, times 2 m */
    CHECK_INT(unlink(path), 0);
    (void)snprintf(path, sizeof path, "/tmp/voxelctl-%ld.npy", (long)getpid());
    (void)snprintf(words, sizeof words,
                   "--url %s voxelize " PCD " --size 2 --out %s --tensor mean", peer.url,
                   path);
    CHECK_INT(ctl(words, text, sizeof text), 0);
    stream = fopen(path, "rb");
    REQUIRE(stream != NULL);
    n_bytes = fread(bytes, 1, sizeof bytes, stream);
    (void)fclose(stream);
    REQUIRE(vxd_cloud_file_parse("npy", bytes, n_bytes, 0, &file, NULL) == VXD_OK);
    CHECK_INT(file.n_points, 5);
    CHECK_INT(unlink(path), 0);
    (void)snprintf(words, sizeof words,
                   "--url %s voxelize " PCD " --size 2 --out /nowhere/a.ply", peer.url);
    CHECK_INT(ctl(words, text, sizeof text), 1);
    check_says(text, "/nowhere/a.ply");
    peer_stop(&peer);
}

static void test_convert_writes_what_is_read_back_and_says_what_it_left_out(void)
{
    char words[1024];
    char text[8192];
    char path[64];
    uint8_t bytes[4096];
    size_t n_bytes;
    struct vxd_cloud_file file;
    FILE *stream;

    (void)snprintf(path, sizeof path, "/tmp/voxelctl-%ld.LAS", (long)getpid());
    (void)snprintf(words, sizeof words, "convert " KITTI " %s --format kitti", path);
    CHECK_INT(ctl(words, text, sizeof text), 0);
    CHECK_STR(text, "5 points of x y z intensity as las\n");
    stream = fopen(path, "rb");
    REQUIRE(stream != NULL);
    n_bytes = fread(bytes, 1, sizeof bytes, stream);
    (void)fclose(stream);
    CHECK_INT(unlink(path), 0);
    REQUIRE(vxd_cloud_file_parse("las", bytes, n_bytes, 0, &file, NULL) == VXD_OK);
    CHECK_INT(file.n_points, 5);
    vxd_cloud_file_clear(&file);
    /* The points go from one pipe into the next, and the summary goes to standard
     * error. */
    CHECK_INT(ctl("convert - - --format pcd --out-format npz < " PCD
                  " 2>/dev/null | " VOXELCTL
                  " convert --json --format npz - - --out-format pcd-ascii",
                  text, sizeof text),
              0);
    check_says(text, "FIELDS x y z intensity ring\n");
    check_says(text, "\n1 1 -4 40 11\n");
    check_says(text, "\"out_format\": \"pcd-ascii\", \"n_points\": 5, \"n_left_out\": 0");
    check_says(text, "\"fields_left_out\": []");
}

/* A link stays a link, and so devices and pipes are safe, too. */
static void test_convert_to_a_link_writes_through_it(void)
{
    char words[1024];
    char text[8192];
    char path[64];
    char link_path[64];
    struct stat there;

    (void)snprintf(path, sizeof path, "/tmp/voxelctl-%ld.bin", (long)getpid());
    (void)snprintf(link_path, sizeof link_path, "/tmp/voxelctl-%ld.link", (long)getpid());
    REQUIRE(symlink(path, link_path) == 0);
    (void)snprintf(words, sizeof words, "convert --json " PCD " %s --out-format kitti",
                   link_path);
    CHECK_INT(ctl(words, text, sizeof text), 0);
    check_says(text, "\"fields\": [\"x\", \"y\", \"z\", \"intensity\"]");
    check_says(text, "\"fields_left_out\": [\"ring\"]");
    CHECK(lstat(link_path, &there) == 0 && S_ISLNK(there.st_mode));
    CHECK(stat(path, &there) == 0 && there.st_size == 80);
    CHECK_INT(unlink(link_path), 0);
    CHECK_INT(unlink(path), 0);
}

static void test_admin_commands_print_what_the_server_says(void)
{
    static const struct usage cases[] = {
        {"info", 0, "voxeld 9.9.9 on peer"},
        {"info --json", 0, "\"max_message_bytes\": 16777216"},
        {"status", 0, "serving for"},
        {"status", 0, "scenes                  2  3.0 MB  4.0 MB   75%"},
        {"status --json", 0, "\"n_scenes\": 2, \"scene_bytes\": 3000000"},
        {"status --json", 0, "\"code\": \"ABORTED\""},
        {"self-test --duration-ms 100", 0, "100 stages"},
        {"self-test --json", 0, "\"digest\": \"8000000000000001\""},
        {"log-level debug", 0, "log level debug"},
        {"log-level --json 'a\"b'", 0, "\"level\": \"a\\\"b\""},
    };
    struct peer peer;
    char words[512];
    char text[8192];

    REQUIRE(peer_start(&peer, NULL) == 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)snprintf(words, sizeof words, "--url %s %s", peer.url, cases[i].words);
        CHECK_INT(ctl(words, text, sizeof text), cases[i].exit);
        check_says(text, cases[i].says);
    }
    peer_stop(&peer);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_command_line_wrong_ends_with_2_and_says_what),
    VXD_TEST(test_voxelize_prints_counts_as_text_and_json),
    VXD_TEST(test_voxelize_failed_ends_with_1_and_names_the_field),
    VXD_TEST(test_voxelize_out_files_are_read_back),
    VXD_TEST(test_convert_writes_what_is_read_back_and_says_what_it_left_out),
    VXD_TEST(test_convert_to_a_link_writes_through_it),
    VXD_TEST(test_admin_commands_print_what_the_server_says),
};

VXD_TEST_MAIN(tests)
