// SPDX-License-Identifier: Apache-2.0
/* libvoxeld's calls on versions of scenes, against a scripted peer. */
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "tests/support/client/client_requests.h"

/* Takes the last request that arrived; checks that it has, or has not, a number. */
static Voxeld__V1__Request *arrived_at(struct peer *peer, bool numbered)
{
    Voxeld__V1__Request *request = peer_last(peer);

    CHECK(request != NULL && (request->header->sequence > 0) == numbered);
    return request;
}

static void test_create_asks_for_retention_and_durability(void)
{
    struct voxeld_scene_create_request create = {.scene = "yard",
                                                 .voxel_size_m = 0.25,
                                                 .keep_versions = 12,
                                                 .keep_seconds = 3600,
                                                 .durable = true,
                                                 .fsync = VOXELD_FSYNC_EVERYSEC,
                                                 .journal_max_bytes = 5000};
    const struct voxeld_scene_info *scene;
    struct voxeld_scenes *scenes;
    Voxeld__V1__Request *arrived;
    struct pair pair;

    REQUIRE(pair_start(&pair));
    REQUIRE(voxeld_scene_create(pair.client, &create, &scenes, NULL) == VOXELD_OK);
    scene = &scenes->scenes[0];
    CHECK(scene->keep_versions == 12 && scene->keep_seconds == 3600);
    CHECK(scene->oldest_version == 2 && scene->n_snapshots == 1);
    CHECK(scene->n_sharing == 3 && scene->durable);
    CHECK(scene->fsync == VOXELD_FSYNC_EVERYSEC && scene->journal_max_bytes == 5000);
    voxeld_scenes_free(scenes);
    arrived = arrived_at(&pair.peer, true);
    REQUIRE(arrived != NULL);
    CHECK_INT(arrived->scene_create->retention->versions, 12);
    CHECK_INT(arrived->scene_create->retention->seconds, 3600);
    CHECK_INT(arrived->scene_create->durability->fsync,
              VOXELD__V1__SCENE_FSYNC__SCENE_FSYNC_EVERYSEC);
    CHECK_INT(arrived->scene_create->durability->journal_max_bytes, 5000);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    create.durable = false;
    CHECK_INT(voxeld_scene_create(pair.client, &create, NULL, NULL), VOXELD_OK);
    arrived = arrived_at(&pair.peer, true);
    REQUIRE(arrived != NULL);
    CHECK(arrived->scene_create->durability == NULL);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    pair_stop(&pair);
}

static void test_name_with_version_is_split(void)
{
    static const struct {
        const char *scene;
        const char *name;
        bool has_at;
        uint64_t version;
        const char *snapshot;
    } cases[] = {
        {"yard", "yard", false, 0, ""},
        {"yard@7", "yard", true, 7, ""},
        {"yard@18446744073709551615", "yard", true, UINT64_MAX, ""},
        {"yard@monday", "yard", true, 0, "monday"},
        {"yard@7a", "yard", true, 0, "7a"},
        {"yard@a@b", "yard", true, 0, "a@b"}, /* the server refuses it */
        {"@7", "", true, 7, ""},
    };
    static const char *const wrong[] = {"yard@", "yard@0", "yard@18446744073709551616"};
    static const double place[3];
    const struct voxeld_array row = {
        .dtype = VOXELD_FLOAT64, .data = place, .n = 1, .n_elements = 3};
    struct voxeld_scene_export_request export = {.format = VOXELD_SCENE_CELLS};
    struct voxeld_scenes *scenes;
    struct voxeld_scene_cells *cells;
    struct voxeld_scene_found *found;
    struct voxeld_error error;
    Voxeld__V1__Request *arrived;
    struct pair pair;
    int n_sent;

    REQUIRE(pair_start(&pair));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const Voxeld__V1__SceneAt *at;

        REQUIRE(voxeld_scene_get(pair.client, NULL, cases[i].scene, &scenes, NULL) ==
                VOXELD_OK);
        voxeld_scenes_free(scenes);
        arrived = arrived_at(&pair.peer, false);
        REQUIRE(arrived != NULL);
        CHECK_STR(arrived->scene_get->name, cases[i].name);
        at = arrived->scene_get->at;
        CHECK((at != NULL) == cases[i].has_at);
        CHECK(at == NULL || at->version == cases[i].version);
        CHECK_STR(at != NULL ? at->snapshot : "", cases[i].snapshot);
        voxeld__v1__request__free_unpacked(arrived, NULL);
    }
    export.scene = "yard@3";
    REQUIRE(voxeld_scene_export(pair.client, &export, &cells, NULL) == VOXELD_OK);
    voxeld_scene_cells_free(cells);
    arrived = arrived_at(&pair.peer, false);
    REQUIRE(arrived != NULL);
    CHECK_INT(arrived->scene_export->at->version, 3);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    REQUIRE(voxeld_scene_values(pair.client, NULL, "yard@3", &row, &found, NULL) ==
            VOXELD_OK);
    voxeld_scene_found_free(found);
    arrived = arrived_at(&pair.peer, false);
    REQUIRE(arrived != NULL);
    CHECK_INT(arrived->scene_values->at->version, 3);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    n_sent = atomic_load(&pair.peer.n_voxelize);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_INT(voxeld_scene_get(pair.client, NULL, wrong[i], &scenes, &error),
                  VOXELD_INVALID_ARGUMENT);
        CHECK_STR(error.field, "at");
    }
    CHECK_INT(atomic_load(&pair.peer.n_voxelize), n_sent);
    pair_stop(&pair);
}

static void test_parts_of_a_file_are_of_the_first_ones_version(void)
{
    struct voxeld_scene_export_request request = {.scene = "yard"};
    char path[64];
    Voxeld__V1__Request *arrived;
    struct pair pair;

    (void)snprintf(path, sizeof path, "/tmp/voxeld-versions-%ld.ply", (long)getpid());
    REQUIRE(pair_start(&pair));
    atomic_store(&pair.peer.scene_version, 6);
    CHECK_INT(voxeld_scene_export_file(pair.client, &request, path, NULL, NULL),
              VOXELD_OK);
    (void)remove(path);
    arrived = arrived_at(&pair.peer, false);
    REQUIRE(arrived != NULL && arrived->scene_export->at != NULL);
    CHECK_INT(arrived->scene_export->at->version, 6);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    pair_stop(&pair);
}

static void test_log_hands_out_versions_and_snapshots(void)
{
    struct voxeld_scene_log *log;
    Voxeld__V1__Request *arrived;
    struct pair pair;

    REQUIRE(pair_start(&pair));
    REQUIRE(voxeld_scene_get_log(pair.client, NULL, "yard", 10, 50, &log, NULL) ==
            VOXELD_OK);
    CHECK(log->n_versions == 3 && log->version == 9 && log->oldest == 7);
    CHECK(log->generation == 2 && log->n_sharing == 2);
    CHECK_INT(log->versions[0].kind, VOXELD_VERSION_UNDONE);
    CHECK(log->versions[0].of_version == 8 && log->versions[1].undone_by == 9);
    CHECK_INT(log->versions[2].n_added, 1002);
    CHECK_STR(log->versions[1].client_id, "other");
    CHECK_STR(log->versions[1].by, "robot");
    REQUIRE(log->n_snapshots == 1);
    CHECK_STR(log->snapshots[0].name, "monday");
    CHECK(log->snapshots[0].version == 3 && log->snapshots[0].taken_ns == 2000000000);
    voxeld_scene_log_free(log);
    voxeld_scene_log_free(NULL);
    arrived = arrived_at(&pair.peer, false);
    REQUIRE(arrived != NULL);
    CHECK(arrived->scene_log->below == 10 && arrived->scene_log->limit == 50);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    pair_stop(&pair);
}

static void test_undo_and_redo_are_numbered_and_say_what_they_did(void)
{
    struct voxeld_scene_undo_request request = {
        .scene = "yard", .of_version = 7, .if_version = 9};
    struct voxeld_scene_undone done;
    Voxeld__V1__Request *arrived;
    struct pair pair;

    REQUIRE(pair_start(&pair));
    REQUIRE(voxeld_scene_undo(pair.client, &request, &done, NULL) == VOXELD_OK);
    CHECK(done.of_version == 7 && done.change.version == 10 && !done.replayed);
    CHECK(done.change.n_removed == 1000 && done.engine_ms == 0.5);
    arrived = arrived_at(&pair.peer, true);
    REQUIRE(arrived != NULL);
    CHECK(arrived->scene_undo->of_version == 7 && arrived->scene_undo->if_version == 9);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    atomic_store(&pair.peer.replays, 1);
    request.of_version = 9;
    REQUIRE(voxeld_scene_redo(pair.client, &request, &done, NULL) == VOXELD_OK);
    CHECK(done.of_version == 9 && done.engine_ms == 0.75 && done.replayed);
    arrived = arrived_at(&pair.peer, true);
    REQUIRE(arrived != NULL);
    CHECK(arrived->scene_redo->of_version == 9 && arrived->scene_redo->if_version == 9);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    CHECK_INT(voxeld_scene_undo(pair.client, &request, NULL, NULL), VOXELD_OK);
    pair_stop(&pair);
}

static void test_snapshots_and_branches_name_versions(void)
{
    struct voxeld_scene_snapshot_request request = {
        .scene = "yard", .snapshot = "tuesday", .at = {.version = 4}, .replace = true};
    struct voxeld_scene_branch_request branch = {
        .scene = "yard", .new_scene = "copy", .at = {.snapshot = "monday"}};
    struct voxeld_scene_snapshot_taken taken;
    struct voxeld_scenes *scenes;
    Voxeld__V1__Request *arrived;
    uint64_t of_version = 0;
    struct pair pair;

    REQUIRE(pair_start(&pair));
    REQUIRE(voxeld_scene_take_snapshot(pair.client, &request, &taken, NULL) == VOXELD_OK);
    CHECK(taken.version == 4 && taken.version_ns == 1000000000 && !taken.replayed);
    arrived = arrived_at(&pair.peer, true);
    REQUIRE(arrived != NULL);
    CHECK(arrived->scene_snapshot->replace && !arrived->scene_snapshot->drop);
    CHECK_STR(arrived->scene_snapshot->snapshot, "tuesday");
    voxeld__v1__request__free_unpacked(arrived, NULL);
    request.at.version = 0;
    CHECK_INT(voxeld_scene_take_snapshot(pair.client, &request, NULL, NULL), VOXELD_OK);
    CHECK_INT(voxeld_scene_drop_snapshot(pair.client, NULL, "yard", "tuesday", NULL),
              VOXELD_OK);
    arrived = arrived_at(&pair.peer, true);
    REQUIRE(arrived != NULL);
    CHECK(arrived->scene_snapshot->drop && arrived->scene_snapshot->at == NULL);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    REQUIRE(voxeld_scene_branch(pair.client, &branch, &scenes, &of_version, NULL) ==
            VOXELD_OK);
    CHECK(of_version == 3 && scenes->n_scenes == 1);
    CHECK_STR(scenes->scenes[0].name, "copy");
    CHECK(scenes->scenes[0].n_sharing == 2 && !scenes->scenes[0].durable);
    voxeld_scenes_free(scenes);
    arrived = arrived_at(&pair.peer, true);
    REQUIRE(arrived != NULL);
    CHECK_STR(arrived->scene_branch->at->snapshot, "monday");
    voxeld__v1__request__free_unpacked(arrived, NULL);
    CHECK_INT(voxeld_scene_branch(pair.client, &branch, NULL, NULL, NULL), VOXELD_OK);
    pair_stop(&pair);
}

static void test_diff_hands_out_checked_arrays(void)
{
    struct voxeld_scene_diff_request request = {.scene = "yard",
                                                .from = {.version = 3},
                                                .to_scene = "copy",
                                                .level = 2,
                                                .has_box = true,
                                                .box = {.high = {7, 8, 9}},
                                                .in_voxels = true,
                                                .first = 1,
                                                .limit = 2};
    struct voxeld_scene_diff *diff;
    Voxeld__V1__Request *arrived;
    struct pair pair;

    REQUIRE(pair_start(&pair));
    REQUIRE(voxeld_scene_get_diff(pair.client, &request, &diff, NULL) == VOXELD_OK);
    CHECK(diff->n == 2 && diff->n_cells == PEER_SCENE_CELLS);
    CHECK(diff->cells[2] == 1 && diff->cells[5] == 2);
    CHECK(diff->changes[0] == VOXELD_DIFF_REMOVED && diff->changes[1] == 4);
    CHECK(diff->from_version == 3 && diff->to_version == 9 && diff->generation == 2);
    CHECK(diff->origin_m[1] == -2.5 && diff->cell_size_m == 0.5);
    CHECK_STR(diff->frame_id, "map");
    voxeld_scene_diff_free(diff);
    arrived = arrived_at(&pair.peer, false);
    REQUIRE(arrived != NULL);
    CHECK(arrived->scene_diff->from->version == 3 && arrived->scene_diff->to == NULL);
    CHECK_STR(arrived->scene_diff->to_name, "copy");
    CHECK(arrived->scene_diff->level == 2 && arrived->scene_diff->in_voxels);
    CHECK(arrived->scene_diff->box->high->z == 9 && arrived->scene_diff->limit == 2);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    pair_stop(&pair);
}

static void test_verify_collect_and_backup_say_what_they_found(void)
{
    struct voxeld_scene_verified verified;
    struct voxeld_scene_collected collected;
    struct voxeld_backup *backup;
    Voxeld__V1__Request *arrived;
    struct pair pair;

    REQUIRE(pair_start(&pair));
    REQUIRE(voxeld_scene_verify(pair.client, NULL, "yard", &verified, NULL) == VOXELD_OK);
    CHECK(verified.n_versions == 3 && verified.n_roots == 4 && verified.n_nodes == 5000);
    CHECK_STR(verified.digest, "00112233445566778899aabbccddeeff");
    CHECK_INT(voxeld_scene_verify(pair.client, NULL, "yard", NULL, NULL), VOXELD_OK);
    voxeld__v1__request__free_unpacked(arrived_at(&pair.peer, false), NULL);
    REQUIRE(voxeld_scene_collect(pair.client, NULL, "yard", &collected, NULL) ==
            VOXELD_OK);
    CHECK(collected.n_bytes_before == 2000 && collected.n_bytes_after == 1000);
    CHECK(collected.n_nodes_before == 20 && collected.n_nodes_after == 10);
    CHECK(collected.n_slices == 3 && collected.longest_slice_ms == 1.5);
    CHECK_INT(voxeld_scene_collect(pair.client, NULL, "yard", NULL, NULL), VOXELD_OK);
    arrived = arrived_at(&pair.peer, true);
    voxeld__v1__request__free_unpacked(arrived, NULL);
    REQUIRE(voxeld_make_backup(pair.client, NULL, "monday", &backup, NULL) == VOXELD_OK);
    CHECK_STR(backup->path, "monday");
    CHECK(backup->n_database_bytes == 4096 && backup->n_snapshot_bytes == 1000);
    CHECK(backup->n_snapshots == 2 && backup->n_linked == 1 && backup->elapsed_ms > 12);
    voxeld_backup_free(backup);
    voxeld_backup_free(NULL);
    pair_stop(&pair);
}

/* Calls every method once; returns how many were OK. The last failure is in *error. */
static int call_all(struct voxeld_client *client, struct voxeld_error *error)
{
    struct voxeld_scene_undo_request undo = {.scene = "yard"};
    struct voxeld_scene_snapshot_request snapshot = {.scene = "yard"};
    struct voxeld_scene_branch_request branch = {.scene = "yard"};
    struct voxeld_scene_diff_request request = {.scene = "yard"};
    struct voxeld_scene_log *log = NULL;
    struct voxeld_scene_diff *diff = NULL;
    struct voxeld_scenes *scenes = NULL;
    int n = 0;

    n += voxeld_scene_get_log(client, NULL, "yard", 0, 0, &log, error) == VOXELD_OK;
    voxeld_scene_log_free(log);
    n += voxeld_scene_undo(client, &undo, NULL, error) == VOXELD_OK;
    n += voxeld_scene_redo(client, &undo, NULL, error) == VOXELD_OK;
    n += voxeld_scene_take_snapshot(client, &snapshot, NULL, error) == VOXELD_OK;
    n += voxeld_scene_branch(client, &branch, &scenes, NULL, error) == VOXELD_OK;
    voxeld_scenes_free(scenes);
    n += voxeld_scene_get_diff(client, &request, &diff, error) == VOXELD_OK;
    voxeld_scene_diff_free(diff);
    n += voxeld_scene_verify(client, NULL, "yard", NULL, error) == VOXELD_OK;
    n += voxeld_scene_collect(client, NULL, "yard", NULL, error) == VOXELD_OK;
    return n;
}

static void test_flawed_answers_about_versions_are_internal(void)
{
    struct pair pair;

    REQUIRE(pair_start(&pair));
    for (int flaw = 0; flaw < N_VERSION_FLAWS; flaw++) {
        struct voxeld_error error = {0};
        int n_ok;

        atomic_store(&pair.peer.version_flaw, flaw);
        n_ok = call_all(pair.client, &error);
        if (flaw == VERSION_FLAW_NONE) {
            CHECK_INT(n_ok, 8);
            continue;
        }
        CHECK(n_ok < 8);
        CHECK_INT(error.code, VOXELD_INTERNAL);
        CHECK(error.request_id[0] != '\0');
    }
    pair_stop(&pair);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_create_asks_for_retention_and_durability),
    VXD_TEST(test_name_with_version_is_split),
    VXD_TEST(test_parts_of_a_file_are_of_the_first_ones_version),
    VXD_TEST(test_log_hands_out_versions_and_snapshots),
    VXD_TEST(test_undo_and_redo_are_numbered_and_say_what_they_did),
    VXD_TEST(test_snapshots_and_branches_name_versions),
    VXD_TEST(test_diff_hands_out_checked_arrays),
    VXD_TEST(test_verify_collect_and_backup_say_what_they_found),
    VXD_TEST(test_flawed_answers_about_versions_are_internal),
};

VXD_TEST_MAIN(tests)
