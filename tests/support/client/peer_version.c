// SPDX-License-Identifier: Apache-2.0
/* The peer's answers about versions of scenes. */
#include <stdbool.h>
#include <stdlib.h>

#include "tests/support/client/peer.h"

enum {
    N_VERSIONS = 3
};

/* Memory of one answer. */
struct version_answer {
    Voxeld__V1__Response response;
    Voxeld__V1__ResponseHeader header;
    union {
        Voxeld__V1__SceneLogResponse log;
        Voxeld__V1__SceneUndoResponse undo;
        Voxeld__V1__SceneRedoResponse redo;
        Voxeld__V1__SceneSnapshotResponse snapshot;
        Voxeld__V1__SceneBranchResponse branch;
        Voxeld__V1__SceneDiffResponse diff;
        Voxeld__V1__SceneVerifyResponse verify;
        Voxeld__V1__SceneCollectResponse collect;
    } u;
    Voxeld__V1__SceneVersion versions[N_VERSIONS];
    Voxeld__V1__SceneVersion *version_list[N_VERSIONS];
    Voxeld__V1__SceneSnapshot snapshot;
    Voxeld__V1__SceneSnapshot *snapshot_list[1];
    Voxeld__V1__SceneChange change;
    Voxeld__V1__SceneInfo info;
    Voxeld__V1__SceneSpec spec;
    Voxeld__V1__Vec3 origin;
    Voxeld__V1__Tensor cells;
    Voxeld__V1__Tensor changes;
    int64_t shape_cells[2];
    int64_t shape_changes[1];
    int32_t cell_data[3 * PEER_SCENE_CELLS];
    uint8_t change_data[PEER_SCENE_CELLS];
};

static void fill_snapshot(struct version_answer *a, char *name, uint64_t version)
{
    voxeld__v1__scene_snapshot__init(&a->snapshot);
    a->snapshot.name = name;
    a->snapshot.version = version;
    a->snapshot.version_ns = INT64_C(1000000000);
    a->snapshot.taken_ns = INT64_C(2000000000);
    a->snapshot.by = "robot";
}

static void answer_log(struct version_answer *a, const Voxeld__V1__Request *request,
                       enum peer_version_flaw flaw)
{
    uint64_t limit = request->scene_log->limit;

    voxeld__v1__scene_log_response__init(&a->u.log);
    for (size_t i = 0; i < N_VERSIONS; i++) {
        voxeld__v1__scene_version__init(&a->versions[i]);
        a->versions[i].version = 9 - i;
        a->versions[i].kind = VOXELD__V1__SCENE_VERSION_KIND__SCENE_EDITED;
        a->versions[i].stamp_ns = INT64_C(86400000000000);
        a->versions[i].by = "robot";
        a->versions[i].client_id = request->header->client_id;
        a->versions[i].n_added = 1000 + i;
        a->version_list[i] = &a->versions[i];
    }
    a->versions[0].kind = VOXELD__V1__SCENE_VERSION_KIND__SCENE_UNDONE;
    a->versions[0].of_version = 8;
    a->versions[1].undone_by = 9;
    a->versions[1].client_id = "other";
    if (flaw == VERSION_FLAW_LOG_ORDER) {
        a->versions[2].version = 8;
    }
    fill_snapshot(a, "monday", 3);
    a->snapshot_list[0] = &a->snapshot;
    a->u.log.versions = a->version_list;
    a->u.log.n_versions = limit > 0 && limit < N_VERSIONS ? (size_t)limit : N_VERSIONS;
    a->u.log.snapshots = a->snapshot_list;
    a->u.log.n_snapshots = 1;
    a->u.log.version = 9;
    a->u.log.generation = 2;
    a->u.log.oldest = 7;
    a->u.log.n_sharing = 2;
    a->response.scene_log = &a->u.log;
}

static void answer_undo(struct version_answer *a, const Voxeld__V1__Request *request,
                        enum peer_version_flaw flaw)
{
    bool redo = request->method_case == VOXELD__V1__REQUEST__METHOD_SCENE_REDO;
    Voxeld__V1__SceneChange *change =
        flaw == VERSION_FLAW_CHANGE_MISSING ? NULL : &a->change;

    voxeld__v1__scene_change__init(&a->change);
    a->change.version = 10;
    a->change.n_removed = 1000;
    if (redo) {
        voxeld__v1__scene_redo_response__init(&a->u.redo);
        a->u.redo.change = change;
        a->u.redo.of_version = request->scene_redo->of_version;
        a->u.redo.engine_ms = 0.75;
        a->response.scene_redo = &a->u.redo;
    } else {
        voxeld__v1__scene_undo_response__init(&a->u.undo);
        a->u.undo.change = change;
        a->u.undo.of_version = request->scene_undo->of_version;
        a->u.undo.engine_ms = 0.5;
        a->response.scene_undo = &a->u.undo;
    }
}

static void answer_branch(struct version_answer *a, const Voxeld__V1__Request *request,
                          enum peer_version_flaw flaw)
{
    const Voxeld__V1__SceneAt *at = request->scene_branch->at;

    voxeld__v1__scene_branch_response__init(&a->u.branch);
    voxeld__v1__scene_info__init(&a->info);
    voxeld__v1__scene_spec__init(&a->spec);
    a->spec.depth = 5;
    a->spec.voxel_size_m = 0.5;
    a->info.spec = &a->spec;
    a->info.name = request->scene_branch->new_name;
    a->info.version = 1;
    a->info.n_sharing = 2;
    a->u.branch.scene = flaw == VERSION_FLAW_SCENE_MISSING ? NULL : &a->info;
    a->u.branch.of_version = at == NULL ? 9 : at->version > 0 ? at->version : 3;
    a->response.scene_branch = &a->u.branch;
}

static void spoil(struct version_answer *a, enum peer_version_flaw flaw)
{
    switch (flaw) {
    case VERSION_FLAW_CELLS_MISSING:
        a->u.diff.cells = NULL;
        break;
    case VERSION_FLAW_CELLS_AXES:
        a->cells.n_shape = 1;
        break;
    case VERSION_FLAW_CELLS_WIDTH:
        a->shape_cells[1] = 2;
        break;
    case VERSION_FLAW_CELLS_NEGATIVE:
        a->shape_cells[0] = -1;
        break;
    case VERSION_FLAW_CELLS_MANY:
        a->u.diff.n_cells = 1;
        break;
    case VERSION_FLAW_CHANGES_MISSING:
        a->u.diff.changes = NULL;
        break;
    case VERSION_FLAW_CHANGES_SHORT:
        a->changes.data.len--;
        break;
    case VERSION_FLAW_CHANGES_DTYPE:
        a->changes.dtype = VOXELD__V1__DTYPE__INT8;
        break;
    default:
        break;
    }
}

static void answer_diff(struct version_answer *a,
                        const Voxeld__V1__SceneDiffRequest *request,
                        enum peer_version_flaw flaw)
{
    size_t first =
        request->first < PEER_SCENE_CELLS ? (size_t)request->first : PEER_SCENE_CELLS;
    size_t n = PEER_SCENE_CELLS - first;

    n = n < PEER_SCENE_PART ? n : PEER_SCENE_PART;
    n = flaw == VERSION_FLAW_DIFF_STALLS && first > 0 ? 0 : n;
    for (size_t i = 0; i < n; i++) {
        a->cell_data[3 * i + 2] = (int32_t)(first + i);
        a->change_data[i] = (uint8_t)(1U << (first + i));
    }
    a->shape_cells[0] = a->shape_changes[0] = (int64_t)n;
    a->shape_cells[1] = 3;
    peer_fill_tensor(&a->cells, VOXELD__V1__DTYPE__INT32, a->shape_cells, 2,
                     a->cell_data);
    peer_fill_tensor(&a->changes, VOXELD__V1__DTYPE__UINT8, a->shape_changes, 1,
                     a->change_data);
    voxeld__v1__scene_diff_response__init(&a->u.diff);
    voxeld__v1__vec3__init(&a->origin);
    a->origin.y = -2.5;
    a->u.diff.from_version = request->from != NULL ? request->from->version : 8;
    a->u.diff.to_version = request->to != NULL ? request->to->version : 9;
    a->u.diff.generation = 2;
    a->u.diff.cells = &a->cells;
    a->u.diff.changes = &a->changes;
    a->u.diff.n_cells = PEER_SCENE_CELLS;
    a->u.diff.engine_ms = 0.25;
    a->u.diff.origin = &a->origin;
    a->u.diff.cell_size_m = 0.5;
    a->u.diff.frame_id = "map";
    spoil(a, flaw);
    a->response.scene_diff = &a->u.diff;
}

static void answer_care(struct version_answer *a, const Voxeld__V1__Request *request,
                        enum peer_version_flaw flaw)
{
    if (request->method_case == VOXELD__V1__REQUEST__METHOD_SCENE_VERIFY) {
        voxeld__v1__scene_verify_response__init(&a->u.verify);
        a->u.verify.n_versions = 3;
        a->u.verify.n_roots = 4;
        a->u.verify.n_nodes = 5000;
        a->u.verify.digest = flaw == VERSION_FLAW_DIGEST_LONG
                                 ? "00112233445566778899aabbccddeeff0"
                                 : "00112233445566778899aabbccddeeff";
        a->response.scene_verify = &a->u.verify;
    } else {
        voxeld__v1__scene_collect_response__init(&a->u.collect);
        a->u.collect.n_bytes_before = 2000;
        a->u.collect.n_bytes_after = 1000;
        a->u.collect.n_nodes_before = 20;
        a->u.collect.n_nodes_after = 10;
        a->u.collect.n_slices = 3;
        a->u.collect.longest_slice_ms = 1.5;
        a->response.scene_collect = &a->u.collect;
    }
}

static void answer_snapshot(struct version_answer *a, const Voxeld__V1__Request *request,
                            enum peer_version_flaw flaw)
{
    const Voxeld__V1__SceneAt *at = request->scene_snapshot->at;

    voxeld__v1__scene_snapshot_response__init(&a->u.snapshot);
    fill_snapshot(a, request->scene_snapshot->snapshot, at != NULL ? at->version : 9);
    a->u.snapshot.snapshot = flaw == VERSION_FLAW_SNAPSHOT_MISSING ? NULL : &a->snapshot;
    a->response.scene_snapshot = &a->u.snapshot;
}

nng_msg *peer_answer_version(struct peer *peer, const Voxeld__V1__Request *request)
{
    struct version_answer *a = calloc(1, sizeof *a);
    enum peer_version_flaw flaw =
        (enum peer_version_flaw)atomic_load(&peer->version_flaw);
    nng_msg *message;

    if (a == NULL) {
        abort();
    }
    (void)peer_begin(peer, request, &a->response, &a->header);
    switch (request->method_case) {
    case VOXELD__V1__REQUEST__METHOD_SCENE_LOG:
        answer_log(a, request, flaw);
        break;
    case VOXELD__V1__REQUEST__METHOD_SCENE_UNDO:
    case VOXELD__V1__REQUEST__METHOD_SCENE_REDO:
        answer_undo(a, request, flaw);
        break;
    case VOXELD__V1__REQUEST__METHOD_SCENE_SNAPSHOT:
        answer_snapshot(a, request, flaw);
        break;
    case VOXELD__V1__REQUEST__METHOD_SCENE_BRANCH:
        answer_branch(a, request, flaw);
        break;
    case VOXELD__V1__REQUEST__METHOD_SCENE_DIFF:
        answer_diff(a, request->scene_diff, flaw);
        break;
    default:
        answer_care(a, request, flaw);
        break;
    }
    message = peer_pack(&a->response, atomic_load(&peer->aligns));
    free(a);
    return message;
}
