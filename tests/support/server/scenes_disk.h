// SPDX-License-Identifier: Apache-2.0
/* A server with durable scenes on a disk in memory that fails, its requests, and a gate before
 * that disk. */
#ifndef VXD_TESTS_SUPPORT_SERVER_SCENES_DISK_H
#define VXD_TESTS_SUPPORT_SERVER_SCENES_DISK_H

#include "server/durable/snapshot/snapshot.h"
#include "server/registry/scenes/scenes.h"
#include "tests/support/durable/fault_vfs.h"
#include "tests/support/server/server_helpers.h"

#define WORLD_DIR "/data"

enum {
    WORLD_DIGEST_BYTES = 33
};

/* A server whose data lies on that disk. */
struct world {
    struct fault_disk *disk;
    struct vxd_data_dir dir;
    struct vxd_server *server;
    uint32_t replay_clients; /* from the next start on; 0 = as it is */
};

/* On an empty disk; with it. */
void world_begin(struct world *world);
void world_end(struct world *world);

/* In order, the disk stays. */
void world_stop(struct world *world);
void world_start(struct world *world);
void world_restart(struct world *world);

enum {
    WORLD_PATIENT = 12000 /* tries, of 5 ms */
};

/* Has the saver write a snapshot file of a family, and waits until so many are there, or for so
 * many tries; how many there are. */
size_t world_save(struct world *world, uint32_t family, size_t n_files, int n_tries);
/* The newest one; false: there is none. The server may be stopped, and in the second must be. */
bool world_find_file(const struct world *world, uint32_t family,
                     char path[VXD_DURABLE_PATH_BYTES]);
void world_damage_file(struct world *world, uint32_t family);

/* With this client sequence, 0 = none; call_finish is the caller's. */
void world_send(struct world *world, struct call *call, const char *method,
                uint64_t sequence, const char *json);
/* Waits and finishes. */
enum vxd_status world_receive(struct call *call);
enum vxd_status world_ask(struct world *world, const char *method, uint64_t sequence,
                          const char *json);
/* Asks until the disk takes it, at most 10 s. */
enum vxd_status world_insist(struct world *world, const char *method, uint64_t sequence,
                             const char *json);

/* More fields of a scene that is durable. */
extern const char world_durable[];

/* Makes a scene; `more` is further fields, each behind a comma. */
void world_make(struct world *world, const char *name, const char *more);
/* The i-th of edits that are all different, its parameter. */
const char *world_edit_json(const char *name, int i, char json[300]);
enum vxd_status world_edit(struct world *world, const char *name, int i);
/* The version that an edit of this sequence made, asked again; 0 = it is not OK. */
uint64_t world_version_of(struct world *world, uint64_t sequence, const char *json);

/* What everybody sees of a scene. */
struct seen {
    enum vxd_status status;
    uint64_t version;
    uint64_t generation;
    uint32_t n_snapshots;
    char digest[WORLD_DIGEST_BYTES];
};

struct seen world_look(struct world *world, const char *name, const char *snapshot);

/* Who reads the journal keeps its writer waiting: so long every change waits. */
struct gate {
    struct vxd_journal *journal;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_closed;
    bool may_open;
};

/* There must be a durable scene. */
void gate_close(struct gate *gate, const struct world *world);
void gate_open(struct gate *gate);

/* Waits until so many changes wait for the journal, at most 5 s. */
void world_wait_for_changes(const struct world *world, size_t n_changes);

#endif
