// SPDX-License-Identifier: Apache-2.0
/* A scripted voxeld: an nng REP socket in this process, answering with several
 * contexts, one thread each, so that the client can be shown what no real daemon sends. */
#ifndef VXD_TESTS_SUPPORT_CLIENT_PEER_H
#define VXD_TESTS_SUPPORT_CLIENT_PEER_H

#include <nng/nng.h>
#include <pthread.h>
#include <stdatomic.h>

#include "voxeld/v1/rpc.pb-c.h"

enum {
    PEER_THREADS = 8
};

enum peer_mode {
    PEER_ANSWER,      /* as a daemon would; every point its own voxel */
    PEER_HOLD,        /* not before peer_release */
    PEER_GARBAGE,     /* bytes that are no message */
    PEER_EMPTY,       /* no bytes: a Response without a header */
    PEER_WRONG_REPLY, /* the reply of another method */
    PEER_FAIL         /* INVALID_ARGUMENT at clouds[0].fields[2].offset */
};

/* What is wrong with an answer to Voxelize; none at 0. */
enum peer_flaw {
    FLAW_NONE,
    FLAW_COORDS_MISSING,
    FLAW_COORDS_SHORT,
    FLAW_COORDS_DTYPE,
    FLAW_COORDS_AXES,
    FLAW_COORDS_NEGATIVE,
    FLAW_COUNTS_SHAPE,
    FLAW_INVERSE_INDEX,
    FLAW_INVERSE_LENGTH,
    FLAW_MEAN_CHANNELS,
    FLAW_ITEMS_MISSING,
    FLAW_ITEM_VOXELS,
    FLAW_ITEM_POINTS,
    FLAW_N_VOXELS,
    FLAW_GRID,
    N_FLAWS
};

/* What is wrong with answers about maps; none at 0. */
enum peer_map_flaw {
    MAP_FLAW_NONE,
    MAP_FLAW_INDICES_MISSING,
    MAP_FLAW_INDICES_SHORT,
    MAP_FLAW_INDICES_BELOW,
    MAP_FLAW_MASK_DTYPE,
    MAP_FLAW_MASK_SHAPE,
    MAP_FLAW_VALUES_COUNT,
    MAP_FLAW_ROWS_MISSING,
    MAP_FLAW_ROWS_DTYPE,
    MAP_FLAW_ROWS_AXES,
    MAP_FLAW_ROWS_SHORT,
    MAP_FLAW_ROWS_NEGATIVE,
    MAP_FLAW_NEIGHBOURS_WIDTH,
    MAP_FLAW_KEYS_MISSING,
    MAP_FLAW_SPEC_MISSING,
    MAP_FLAW_PLY_EMPTY,
    MAP_FLAW_EXPORT_SHAPE,
    N_MAP_FLAWS
};

/* What is wrong with answers about scenes; none at 0. */
enum peer_scene_flaw {
    SCENE_FLAW_NONE,
    SCENE_FLAW_SPEC_MISSING,
    SCENE_FLAW_CHANGE_MISSING,
    SCENE_FLAW_SEEN_MISSING,
    SCENE_FLAW_STATES_MISSING,
    SCENE_FLAW_STATES_SHORT,
    SCENE_FLAW_STATES_DTYPE,
    SCENE_FLAW_MATERIALS_SHAPE,
    SCENE_FLAW_DISTANCES_SHORT,
    SCENE_FLAW_VOXELS_WIDTH,
    SCENE_FLAW_NORMALS_DTYPE,
    SCENE_FLAW_HITS_MANY,
    SCENE_FLAW_COUNTS_MISSING,
    SCENE_FLAW_CELLS_AXES,
    SCENE_FLAW_CELLS_NEGATIVE,
    SCENE_FLAW_CELLS_MANY,
    SCENE_FLAW_DENSE_AXES,
    SCENE_FLAW_DENSE_NEGATIVE,
    SCENE_FLAW_LOW_CELL_SHORT,
    SCENE_FLAW_PLY_EMPTY,
    SCENE_FLAW_PLY_NO_HEADER,
    SCENE_FLAW_PLY_MANY,
    SCENE_FLAW_PLY_LENGTH,
    SCENE_FLAW_PLY_STALLS,
    N_SCENE_FLAWS
};

/* What is wrong with answers about versions of scenes; none at 0. */
enum peer_version_flaw {
    VERSION_FLAW_NONE,
    VERSION_FLAW_LOG_ORDER,
    VERSION_FLAW_CHANGE_MISSING,
    VERSION_FLAW_SNAPSHOT_MISSING,
    VERSION_FLAW_SCENE_MISSING,
    VERSION_FLAW_CELLS_MISSING,
    VERSION_FLAW_CELLS_AXES,
    VERSION_FLAW_CELLS_WIDTH,
    VERSION_FLAW_CELLS_NEGATIVE,
    VERSION_FLAW_CELLS_MANY,
    VERSION_FLAW_CHANGES_MISSING,
    VERSION_FLAW_CHANGES_SHORT,
    VERSION_FLAW_CHANGES_DTYPE,
    VERSION_FLAW_DIGEST_LONG,
    N_VERSION_FLAWS,
    VERSION_FLAW_DIFF_STALLS /* nothing is wrong with a reply, but with all of them */
};

struct peer_worker {
    struct peer *peer;
    pthread_t thread;
    nng_ctx ctx;
    nng_aio *aio;
    int is_receiving; /* its aio; the peer's mutex is held */
};

struct peer {
    nng_socket socket;
    nng_listener listener;
    struct peer_worker workers[PEER_THREADS];
    int n_threads;
    atomic_int n_ended; /* of them */
    char url[128];

    atomic_int stopping;
    atomic_int mode;
    atomic_int flaw;
    atomic_int map_flaw;
    atomic_int scene_flaw;
    atomic_int version_flaw;
    atomic_int scene_version; /* that queries see; rises with each where scene_changes */
    atomic_int scene_changes;
    atomic_int replays; /* calls that change something, with their arrays dropped */
    atomic_int aligns;  /* big data in replies, as the daemon does */
    atomic_int
        n_voxelize; /* requests that arrived, to Voxelize or about maps or scenes */
    atomic_uint max_message_bytes;

    pthread_mutex_t mutex;
    pthread_cond_t released;
    int is_released;
    uint8_t *last; /* the last of them as it came, malloc'd */
    size_t n_last;
};

/* Listens at a fresh ipc address, or at `url`. 0, or -1. */
int peer_start(struct peer *peer, const char *url);

/* Lets held requests be answered. */
void peer_release(struct peer *peer);

void peer_stop(struct peer *peer);

/* The last request to Voxelize or about maps or scenes as it arrived; NULL where there was none.
 * Free with voxeld__v1__request__free_unpacked. */
Voxeld__V1__Request *peer_last(struct peer *peer);

/* As a stranger's server packs, or as ours does. */
nng_msg *peer_pack(const Voxeld__V1__Response *response, int is_aligned);

/* A tensor of n_axes extents, and the bytes that it has by them. */
void peer_fill_tensor(Voxeld__V1__Tensor *t, Voxeld__V1__DType dtype, int64_t *shape,
                      size_t n_axes, void *data);

/* Makes *header the response's, of the same method and number as the request. True, and marked as
 * replayed, where the peer replays what changes something. */
int peer_begin(struct peer *peer, const Voxeld__V1__Request *request,
               Voxeld__V1__Response *response, Voxeld__V1__ResponseHeader *header);

/* peer_map.c: the answer to any request about maps. Key i of a request is entry
 * i; there is one map, of int32 x 3 keys and one array "v" of float32 x 2, which holds 0, 1,
 * 2, ...; export gives PEER_MAP_ENTRIES entries. */
enum {
    PEER_MAP_ENTRIES = 5
};
nng_msg *peer_answer_map(struct peer *peer, const Voxeld__V1__Request *request);

/* peer_scene.c: the answer to any request about scenes. There is one, "yard", with
 * two materials. Rows of queries count up; PEER_SCENE_CELLS cells are exported, at most
 * PEER_SCENE_PART of them in a reply; a dense box has 2 x 3 x 4. */
enum {
    PEER_SCENE_CELLS = 5,
    PEER_SCENE_PART = 2
};
nng_msg *peer_answer_scene(struct peer *peer, const Voxeld__V1__Request *request);

/* peer_version.c: the answer to any request about versions of scenes. "yard" is at
 * version 9, which undid 8, an edit of another client; 7 is an edit of whoever asks. It has the
 * snapshot "monday", of version 3. PEER_SCENE_CELLS cells differ, which count up with what
 * became of them; at most PEER_SCENE_PART of them come in a reply. */
nng_msg *peer_answer_version(struct peer *peer, const Voxeld__V1__Request *request);

#endif
