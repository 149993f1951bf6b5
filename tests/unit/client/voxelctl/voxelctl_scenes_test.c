// SPDX-License-Identifier: Apache-2.0
/* voxelctl scene against the peer: its requests, its output, its exit status. */
#include <stdint.h>
#include <unistd.h>

#include "tests/support/client/run_voxelctl.h"
#include "tests/support/client/peer.h"

#define KITTI VOXELD_SOURCE_DIR "/tests/data/files/kitti.bin"

/* Runs voxelctl with these words, --url of the peer (NULL: none) before them, and input on
 * standard input. */
static int ctl(const struct peer *peer, const char *words, const char *input, char *text,
               size_t n_text)
{
    char before[2048];
    char all[2048];

    (void)snprintf(before, sizeof before, "printf '%%s' '%s' | ", input);
    (void)snprintf(all, sizeof all, "%s%s %s", peer != NULL ? "--url " : "",
                   peer != NULL ? peer->url : "", words);
    return ctl_piped(VOXELCTL, before, all, text, n_text);
}

static void test_scene_command_line_wrong_ends_with_2_and_says_what(void)
{
    static const struct usage cases[] = {
        {"scene", 2, "no subcommand"},
        {"scene paint", 2, "no subcommand \"paint\""},
        {"scene --help", 0, "integrate FILE ..."},
        {"scene create yard", 2, "no --size"},
        {"scene create yard --size 0", 2, "metres > 0"},
        {"scene create yard --size 1 --depth 22", 2, "4 to 21"},
        {"scene create yard --size 1 --material-bits 5", 2, "0, 4, 8 or 16"},
        {"scene create yard --size 1 --palette grass:0ff", 2, "NAME:RRGGBB"},
        {"scene create yard --size 1 --palette grass:00ff0g", 2, "NAME:RRGGBB"},
        {"scene edit yard", 2, "no shape"},
        {"scene edit yard --fill 3", 2, "after a shape"},
        {"scene edit yard --erase", 2, "--erase: goes after a shape"},
        {"scene edit yard --ball 1,2,3", 2, "x,y,z,radius"},
        {"scene edit yard --box 1,2,3,4,5,6 --noise 1,2,3", 2, "after --ball"},
        {"scene edit yard --box 1,2,3,4,5,6 --turn 1,0,0,0,1,0,0,0,1", 2, "--copy-from"},
        {"scene edit yard --box 1,2,3,4,5,6 --copy-from 1,2,3 --turn 2,0,0,0,1,0,0,0,1",
         2, "nine of 0, 1, -1"},
        {"scene edit yard --box 1,2,3,4,5,6 --replace 1,70000", 2, "two materials"},
        {"scene edit yard --box 1,2,3,4,5,6 --erode 7", 2, "1 to 6"},
        {"scene integrate a.bin", 2, "no --scene"},
        {"scene integrate a.bin --scene s --depth 9", 2, "go with --size"},
        {"scene integrate a.bin --scene s --no-carve --erase", 2, "of carving"},
        {"scene integrate a.bin --scene s --rule rainbow", 2, "colour, ramp"},
        {"scene integrate a.bin --scene s --labels 1=2", 2, "goes with --network"},
        {"scene integrate a.bin --scene s --network n --rule label", 2, "labels say"},
        {"scene edit yard --grid 0,0,1,0", 2, "after --heightfield"},
        {"scene edit yard --heightfield a.npy --grid 0,0,0,0", 2, "x,y,cell,low z"},
        {"scene edit yard --box 1,2,3,4,5,6 --point-materials m.npy", 2,
         "after --points"},
        {"scene query yard", 2, "words"},
        {"scene query yard smell 1,2,3", 2, "values, ray, nearest or overlap"},
        {"scene query yard ray 1,2,3", 2, "origins and directions"},
        {"scene query yard nearest 1,2,3", 2, "--radius"},
        {"scene query yard values 1,2,3 --out x.txt", 2, "--out x.txt"},
        {"scene export yard x.txt", 2, ".ply, .npz or .npy"},
        {"scene export yard x.npy --dense", 2, "--box"},
        {"scene export yard x.npy --counts", 2, ".npz"},
        {"scene export yard x.ply --materials", 2, "--dense"},
        {"scene edit --help", 0, "--half-space"},
    };
    char text[8192];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_INT(ctl(NULL, cases[i].words, "", text, sizeof text), cases[i].exit);
        check_says(text, cases[i].says);
    }
}

static void test_scene_subcommands_print_what_the_server_says(void)
{
    static const struct usage cases[] = {
        {"scene create yard --size 0.25 --palette :000000 --palette grass:00ff7f", 0,
         "there already: yard: version 7, 4096^3 voxels of 0.25 m, 4 bits of material, "
         "free"},
        {"scene create yard --size 0.25 --json", 0, "\"existed\": true, \"scene\": {"},
        {"scene list", 0, "1 scenes take 1,000 of 0 bytes"},
        {"scene info yard", 0, "occupied    1,234,567 voxels"},
        {"scene info yard", 0, "material    1: #00ff7f grass"},
        {"scene info yard --json", 0, "\"n_occupied\": 1234567"},
        {"scene info yard --json", 0, "{\"name\": \"grass\", \"rgb\": \"00ff7f\"}"},
        {"scene drop yard --missing-ok", 0, "dropped yard"},
        {"scene edit yard --box 0,0,0,1,1,1 --if-version 8", 0,
         "yard: version 9; voxels: 1,000 added, 20 removed, 3 of another material, 4 "
         "freed"},
        {"scene edit yard --ball 0,0,0,1 --json", 0, "\"n_added\": 1000"},
        {"scene integrate --scene yard --format kitti " KITTI " " KITTI, 0,
         "10 of 10 points of 2 files; voxels: 2,000 added"},
        {"scene integrate --scene yard --size 1 --json --format kitti " KITTI, 0,
         "\"n_files\": 1, \"n_points\": 5"},
        {"scene integrate --scene yard --network n --format kitti " KITTI, 0,
         "(the network 1.2, decoding"},
        {"scene integrate --scene yard --network n --labels road=a,3=-1 --json --format "
         "kitti " KITTI,
         0,
         "\"n_dropped\": 2, \"n_near\": 0, \"n_own\": 0, \"n_relabelled\": 3, "
         "\"n_lost\": 0, \"network_ms\": 1.25"},
        {"scene integrate --scene yard --network n --labels =1 --format kitti " KITTI, 2,
         "LABEL=MATERIAL"},
        {"scene integrate --scene yard --network n --labels 1= --format kitti " KITTI, 2,
         "LABEL=MATERIAL"},
        {"scene integrate --scene yard --network n --labels no-file --format "
         "kitti " KITTI,
         1, "no-file: No such file"},
        {"scene integrate --scene yard nothing.ply", 1, "the local file nothing.ply"},
        {"scene query yard values 1,2,3", 0, "occupied, material 0\n"},
        {"scene query yard values 1.5,2,3 --in-voxels", 1, "whole numbers"},
        {"scene query yard values 1,2,3 --json", 0, "\"state\": \"occupied\""},
        {"scene query yard ray 0,0,1 1,0,0", 0,
         "0 m, at 0.125, -2.375, 0.125 m, voxel 0,0,0, normal -1,0,0"},
        {"scene query yard ray --json 0,0,1 1,0,0", 0,
         "\"distance_m\": 0, \"voxel\": [0, 0, 0], \"normal\": [-1, 0, 0], \"material\": "
         "0"},
        {"scene query yard nearest --radius 2 -- -1,0,0", 0,
         "0 m, at 0.125, -2.375, 0.125 m, voxel 0,0,0\n"},
        {"scene query yard overlap --counts 0,0,0,1,1,1", 0, "10 occupied, 10 free"},
    };
    struct peer peer;
    char text[8192];

    REQUIRE(peer_start(&peer, NULL) == 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_INT(ctl(&peer, cases[i].words, "", text, sizeof text), cases[i].exit);
        check_says(text, cases[i].says);
    }
    CHECK_INT(
        ctl(&peer, "scene query yard values -", "1 2 3\n4 5 6\n", text, sizeof text), 0);
    check_says(text,
               "occupied, material 0\noccupied, material 1 grass\n2 rows; version 0");
    peer_stop(&peer);
}

static void test_edit_sends_flags_and_file_in_order(void)
{
    static const char words[] =
        "scene edit yard --in-voxels --ball 1,2,3,4 --noise 0.5,3,9 --paint 6 "
        "--capsule 0,0,0,1,0,0,2 --free --half-space 0,0,1,-3 --replace 2,5 "
        "--box=-1,-1,-1,1,1,1 --copy-from 8,8,8 --turn 0,1,0,-1,0,0,0,0,1 --copy-empty "
        "--operations -";
    static const char json[] =
        "{\"name\": \"x\", \"operations\": [ {\"ball\": {\"centre\": {\"x\": 1, \"z\": "
        "-2.5e0}, \"radius\": \"0.5\", \"noiseCellBits\": 3}, \"action\": "
        "\"SCENE_PAINT\", "
        "\"material\": 7}, {\"points\": {\"points\": {\"dtype\": \"INT32\", \"shape\": "
        "[2, \"3\"], \"values\": [1, 2, 3, 4, 5, \"-6\"]}}, \"fromMaterial\": 2},\n"
        "{\"heightfield\": {\"heights\": {\"dtype\": \"FLOAT32\", \"shape\": [1, 2], "
        "\"values\": [\"NaN\", 1]}, \"low_z\": 4}}, {\"box\": {}, \"action\": "
        "\"SCENE_COPY\", \"copy\": {\"from\": {\"y\": 3}, \"matrix\": [], \"copyEmpty\": "
        "true}} ] }";
    struct peer peer;
    Voxeld__V1__Request *arrived;
    Voxeld__V1__SceneOperation **ops;
    float heights[2];
    int32_t last = 0;
    char text[8192];

    REQUIRE(peer_start(&peer, NULL) == 0);
    CHECK_INT(ctl(&peer, words, json, text, sizeof text), 0);
    arrived = peer_last(&peer);
    REQUIRE(arrived != NULL && arrived->scene_edit->n_operations == 8);
    CHECK(arrived->scene_edit->in_voxels);
    CHECK_STR(arrived->scene_edit->name, "yard");
    ops = arrived->scene_edit->operations;
    CHECK(ops[0]->ball->radius == 4 && ops[0]->ball->noise_seed == 9);
    CHECK(ops[0]->action == VOXELD__V1__SCENE_ACTION__SCENE_PAINT &&
          ops[0]->material == 6);
    CHECK(ops[1]->capsule->b->x == 1);
    CHECK_INT(ops[1]->action, VOXELD__V1__SCENE_ACTION__SCENE_SET_FREE);
    CHECK(ops[2]->half_space->offset == -3 && ops[2]->from_material == 2);
    CHECK(ops[3]->copy->matrix[3] == -1 && ops[3]->copy->copy_empty);
    CHECK(ops[4]->ball->centre->z == -2.5 && ops[4]->ball->radius == 0.5);
    CHECK(ops[4]->ball->noise_cell_bits == 3 && ops[4]->material == 7);
    REQUIRE(ops[5]->points->points->data.len == 24);
    memcpy(&last, ops[5]->points->points->data.data + 20, sizeof last);
    CHECK(last == -6 && ops[5]->from_material == 2);
    REQUIRE(ops[6]->heightfield->heights->data.len == sizeof heights);
    memcpy(heights, ops[6]->heightfield->heights->data.data, sizeof heights);
    CHECK(heights[0] != heights[0] && heights[1] == 1);
    CHECK(ops[6]->heightfield->low_z == 4);
    CHECK(ops[7]->copy->from->y == 3 && ops[7]->copy->n_matrix == 0);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    peer_stop(&peer);
}

static void test_operations_malformed_are_refused_with_line_and_member(void)
{
    static const struct {
        const char *json;
        const char *says;
    } cases[] = {
        {"", "line 1, column 0: '[' or '{' expected"},
        {"{", "line 1, column 1: string or '}' expected"},
        {"[\n[1,\n]]", "line 3, column 1: unexpected token"},
        {"[1 2]", "line 1, column 4: ']' expected near '2'"},
        {"{\"a\" 1}", "':' expected"},
        {"[] []", "line 1, column 4: '}' expected near '['"},
        {"[\"a]", "premature end of input"},
        {"[\"\\q\"]", "invalid escape"},
        {"[\"\\ud800x\"]", "invalid Unicode"},
        {"[-]", "invalid token near '-'"},
        {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "unexpected token near '}'"},
        {"{\"operation\": []}", "operation: SceneEditRequest has no such field"},
        {"{\"operations\": []}", "no list of operations"},
        {"[3]", "operations[0]: is 3; expected an object"},
        {"[{\"ball\": {}}, {\"cube\": {}}]",
         "operations[1].cube: SceneOperation has no such field"},
        {"[{\"ball\": {\"radius\": true}}]", "ball.radius: is true; expected a number"},
        {"[{\"ball\": {\"centre\": [1, 2, 3]}}]",
         "ball.centre: is an array; expected an object"},
        {"[{\"ball\": {\"noise_seed\": 1.5}}]",
         "ball.noise_seed: is 1.5; expected an integer"},
        {"[{\"ball\": {}, \"box\": {}}]", "box: given beside \"ball\""},
        {"[{\"ball\": {}, \"action\": \"FILL\"}]",
         "action: is \"FILL\"; expected one of SCENE_FILL"},
        {"[{\"copy\": {\"matrix\": [1]}}]", "operations[0]: matrix: 9 numbers"},
        {"[{\"copy\": {\"copy_empty\": 1}}]", "copy_empty: is 1; expected true or false"},
        {"[{\"points\": {\"points\": {\"dtype\": \"INT32\", \"shape\": [1, 3]}}}]",
         "points: values, or data, as many as the shape says"},
        {"[{\"points\": {\"points\": {\"dtype\": \"INT32\", \"shape\": [1, 3], "
         "\"values\": "
         "[1, 2]}}}]",
         "values, or data, as many as the shape says"},
        {"[{\"points\": {\"points\": {\"dtype\": \"INT32\", \"shape\": [1, 1], "
         "\"values\": "
         "[1.5]}}}]",
         "values: 1.5 is no number of the dtype"},
        {"[{\"points\": {\"points\": {\"data\": \"AAAA\"}}}]",
         "points: a shape of one or two is right"},
    };
    struct peer peer;
    char text[8192];

    REQUIRE(peer_start(&peer, NULL) == 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_INT(ctl(&peer, "scene edit yard --operations -", cases[i].json, text,
                      sizeof text),
                  1);
        check_says(text, cases[i].says);
    }
    CHECK_INT(atomic_load(&peer.n_voxelize), 0);
    peer_stop(&peer);
}

/* Returns how many bytes the file has, and deletes it. -1 where it does not exist. */
static long take_size(const char *path)
{
    FILE *stream = fopen(path, "rb");
    long n = -1;

    if (stream != NULL) {
        n = fseek(stream, 0, SEEK_END) == 0 ? ftell(stream) : -1;
        (void)fclose(stream);
        (void)unlink(path);
    }
    return n;
}

static void test_export_writes_files_of_all_parts(void)
{
    static const struct {
        const char *ending;
        const char *options;
        const char *says;
        long n_bytes; /* of an .npy: 128 and the elements */
    } cases[] = {
        {".npy", "", "5 cells of yard", 128 + 5 * 12},
        {".npz", "--counts", "5 cells of yard", 0},
        {".ply", "", "5 cells of yard", 0},
        {".npy", "--dense --box 0,0,0,2,3,4", "24 cells of yard", 128 + 24},
        {".npy", "--dense --materials --box 0,0,0,2,3,4", "24 cells", 128 + 48},
    };
    struct peer peer;
    char words[512];
    char path[64];
    char text[8192];

    REQUIRE(peer_start(&peer, NULL) == 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        long n_bytes;

        (void)snprintf(path, sizeof path, "/tmp/voxelctl-scene-%ld%s", (long)getpid(),
                       cases[i].ending);
        (void)snprintf(words, sizeof words, "scene export yard %s %s", path,
                       cases[i].options);
        CHECK_INT(ctl(&peer, words, "", text, sizeof text), 0);
        check_says(text, cases[i].says);
        n_bytes = take_size(path);
        CHECK(cases[i].n_bytes > 0 ? n_bytes == cases[i].n_bytes : n_bytes > 100);
    }
    atomic_store(&peer.scene_changes, 1);
    (void)snprintf(words, sizeof words, "scene export yard %s", path);
    CHECK_INT(ctl(&peer, words, "", text, sizeof text), 1);
    check_says(text, "changed while it was exported");
    CHECK_INT(take_size(path), -1);
    peer_stop(&peer);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_scene_command_line_wrong_ends_with_2_and_says_what),
    VXD_TEST(test_scene_subcommands_print_what_the_server_says),
    VXD_TEST(test_edit_sends_flags_and_file_in_order),
    VXD_TEST(test_operations_malformed_are_refused_with_line_and_member),
    VXD_TEST(test_export_writes_files_of_all_parts),
};

VXD_TEST_MAIN(tests)
