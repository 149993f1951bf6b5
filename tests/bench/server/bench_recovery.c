// SPDX-License-Identifier: Apache-2.0
/* Times starts: how fast a snapshot file comes back, and how much faster than they were made
 * changes are replayed. The server runs in this process; clients ask it over ipc.
 * usage: bench_recovery snapshot|replay [--backend cpu|cuda] [--dir DIRECTORY] [--threads N]
 *                       [--mib SIZE] [--bits 0|4|8] [--edits N] [--clients N] [--repeat N]
 *                       [--fsync ALWAYS|EVERYSEC|OFF]
 *                       [--keep N] [SCAN.bin]
 *
 *   snapshot  makes a scene of this size (kept in the directory for the next time), has it
 *             written, and starts from it. Floor: the file read from the page cache and its CRC
 *   replay    clients change a durable scene, which keeps N versions (0 = as many as where nobody
 *             says), as fast as they are answered (brushes; every 50th change a scan, where one
 *             is given), and the start after that replays it all. In a directory that has the
 *             scene already only starts are timed */
#include "tests/bench/server/bench_recovery.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu/svdag/edit/edit.h"
#include "proto/base/crc32c.h"
#include "server/durable/snapshot/snapshot.h"
#include "server/registry/scenes/scenes_internal.h"
#include "server/registry/scenes/scenes_recover.h"
#include "tests/bench/support/bench_device.h"

enum {
    DEPTH = 17,
    RADIUS = 200,
    AMPLITUDE = 40,
    PART = 1 << 20
};

/* A scene's newest version, for comparison with what a start restores. */
static enum vxd_status summarize(struct bench_server *bench,
                                 struct vxd_svdag_summary *out, struct vxd_err *err)
{
    struct vxd_scenes *scenes = bench->server->scenes;
    struct vxd_scene *scene = vxd_scenes_find(scenes, "s");
    struct vxd_scene_state state;
    enum vxd_status status;

    memset(out, 0, sizeof *out);
    if (scene == NULL) {
        return vxd_fail(err, VXD_NOT_FOUND, NULL, "there is no scene");
    }
    vxd_scene_pin_last(scene, &state);
    status = vxd_svdag_verify(scenes->queue, state.svdag, state.root, out, err);
    vxd_scene_unpin(scenes, &state, scenes->queue);
    vxd_scene_drop(scene, scenes->queue);
    return status;
}

/* The size of the scene's store. */
static uint64_t count_nodes(const struct bench_server *bench)
{
    struct vxd_scenes *scenes = bench->server->scenes;
    struct vxd_scene *scene = vxd_scenes_find(scenes, "s");
    struct vxd_svdag_usage usage = {0};
    struct vxd_scene_state state;

    if (scene != NULL) {
        vxd_scene_pin_last(scene, &state);
        vxd_svdag_get_usage(state.svdag, &usage);
        vxd_scene_unpin(scenes, &state, scenes->queue);
        vxd_scene_drop(scene, scenes->queue);
    }
    return usage.n_leaves + usage.n_inner + usage.n_blocks;
}

/* Snapshots -------------------------------------------------------------------------------- */

/* Edits noisy balls until the store has so many bytes, without the journal, since the
 * file has it all. */
static enum vxd_status fill(struct bench_server *bench, struct vxd_err *err)
{
    const struct bench_options *options = bench->options;
    struct vxd_scenes *scenes = bench->server->scenes;
    struct vxd_scene *scene = vxd_scenes_find(scenes, "s");
    struct vxd_scene_version version = {.kind = VXD_SCENE_EDITED};
    struct vxd_svdag_usage usage = {0};
    struct vxd_svdag_op op = {.action = VXD_SVDAG_FILL};
    struct vxd_scene_state state;
    uint32_t random = 1;
    enum vxd_status status = VXD_OK;

    vxd_scene_pin_last(scene, &state);
    VXD_TRY(vxd_scene_reserve_version(scene, err));
    vxd_scene_allow(scene);
    version.root = state.root;
    op.shape.kind = VXD_SVDAG_NOISE_BALL;
    op.shape.amplitude = AMPLITUDE * VXD_SVDAG_UNIT;
    op.shape.cell_bits = 2;
    op.shape.r = RADIUS * VXD_SVDAG_UNIT;
    while (usage.node_bytes < options->n_bytes) {
        struct vxd_svdag_edit_result result;

        op.shape.seed = random;
        op.value = options->bits == 0 ? 0 : random % 15;
        for (int axis = 0; axis < 3; axis++) {
            random = random * 1664525u + 1013904223u;
            op.shape.a[axis] = (int64_t)(2000 + (random >> 16) % ((1u << DEPTH) - 4000)) *
                               VXD_SVDAG_UNIT;
        }
        VXD_TRY(vxd_svdag_edit_wait(scenes->queue, state.svdag, version.root, &op, 1,
                                    &result, err));
        version.root = result.root;
        vxd_svdag_get_usage(state.svdag, &usage);
    }
    vxd_scene_account(scene);
    (void)vxd_scene_add_version(scene, &version, false);
out:
    vxd_scene_unpin(scenes, &state, scenes->queue);
    vxd_scene_drop(scene, scenes->queue);
    return status;
}

/* Finds the newest file of family 1; 0 = there is none. */
static uint64_t find_file(const struct bench_server *bench,
                          char path[VXD_DURABLE_PATH_BYTES])
{
    uint64_t *sequences = NULL;
    uint64_t sequence = 0;
    size_t n = 0;

    if (vxd_snapshot_list(&bench->dir, 1, &sequences, &n, NULL) == VXD_OK && n > 0) {
        sequence = sequences[0];
        vxd_snapshot_path(&bench->dir, 1, sequence, "", path);
    }
    free(sequences);
    return sequence;
}

static enum vxd_status make(struct bench_server *bench, char path[VXD_DURABLE_PATH_BYTES],
                            struct vxd_err *err)
{
    const struct timespec step = {.tv_nsec = 2000000};
    double begin = bench_now_s();
    double filled;
    enum vxd_status status;

    VXD_TRY(bench_create_scene(bench, DEPTH, err));
    VXD_TRY(fill(bench, err));
    filled = bench_now_s();
    vxd_registry_ask_snapshot(bench->server->registry, 1);
    while (find_file(bench, path) == 0 && bench_now_s() - filled < 600) {
        (void)nanosleep(&step, NULL);
    }
    (void)printf("made in %.1f s, written in %.1f s\n", filled - begin,
                 bench_now_s() - filled);
out:
    return status;
}

struct floor {
    uint64_t n_bytes;
    double read_s;
    double both_s; /* with the CRC */
};

static enum vxd_status time_floor(const char *path, struct floor *out,
                                  struct vxd_err *err)
{
    static uint8_t part[PART];
    uint32_t crc = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC);

    if (file < 0) {
        return vxd_fail(err, VXD_NOT_FOUND, NULL, "%s cannot be read", path);
    }
    *out = (struct floor){.read_s = 1e9, .both_s = 1e9};
    for (int i = 0; i < 6; i++) {
        bool sums = i % 2 == 1;
        double begin = bench_now_s();
        double *best = sums ? &out->both_s : &out->read_s;
        double seconds;
        ssize_t n;

        out->n_bytes = 0;
        while ((n = pread(file, part, PART, (off_t)out->n_bytes)) > 0) {
            out->n_bytes += (uint64_t)n;
            crc = sums ? vxd_crc32c(crc, part, (size_t)n) : crc;
        }
        seconds = bench_now_s() - begin;
        *best = seconds < *best ? seconds : *best;
    }
    (void)close(file);
    return VXD_OK;
}

static enum vxd_status snapshot(struct bench_server *bench, struct vxd_err *err)
{
    struct vxd_svdag_summary before = {0};
    struct vxd_svdag_summary after = {0};
    char path[VXD_DURABLE_PATH_BYTES];
    struct floor floor;
    bool is_made = false;
    enum vxd_status status;

    VXD_TRY(bench_server_open(bench, err));
    if (find_file(bench, path) == 0) {
        VXD_TRY(make(bench, path, err));
        VXD_TRY(summarize(bench, &before, err));
        is_made = true;
    }
    bench_server_close(bench);
    VXD_TRY(time_floor(path, &floor, err));
    (void)printf(
        "| MiB | nodes, M | threads | load, s | MB/s | processor, s | read, s | with "
        "CRC, s | "
        "ratio |\n");
    for (int i = 0; i < bench->options->n_repeat; i++) {
        VXD_TRY(bench_server_open(bench, err));
        VXD_TRY(i > 0 || !is_made ? VXD_OK : summarize(bench, &after, err));
        (void)printf("| %.0f | %.1f | %d | %.2f | %.0f | %.2f | %.2f | %.2f | %.1f |\n",
                     (double)floor.n_bytes / 1048576, 1e-6 * (double)count_nodes(bench),
                     bench->options->n_threads, bench->open_s,
                     (double)floor.n_bytes / 1e6 / bench->open_s, bench->open_cpu_s,
                     floor.read_s, floor.both_s, bench->open_s / floor.both_s);
        if (i + 1 < bench->options->n_repeat) {
            bench_server_close(bench);
        }
    }
    if (is_made && memcmp(&before, &after, sizeof before) != 0) {
        status = vxd_fail(err, VXD_DATA_LOSS, NULL, "the scene is another one");
    }
out:
    bench_server_close(bench);
    return status;
}

/* Replay ----------------------------------------------------------------------------------- */

struct replayed {
    struct vxd_record_decoded *records;
    size_t n;
    size_t capacity;
};

static enum vxd_status keep_record(void *user, const struct vxd_journal_record *bytes,
                                   struct vxd_err *err)
{
    struct replayed *all = user;

    if (all->n == all->capacity) {
        size_t capacity = 2 * all->capacity + 64;
        struct vxd_record_decoded *more =
            realloc(all->records, capacity * sizeof *all->records);

        if (more == NULL) {
            return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for records");
        }
        all->records = more;
        all->capacity = capacity;
    }
    memset(&all->records[all->n], 0, sizeof *all->records);
    return vxd_record_decode(bytes->bytes, bytes->n_bytes, bytes->rules_version, 0,
                             &all->records[all->n++], err);
}

/* Times the engine alone: it applies the edits of all records one after the other to a
 * store of its own. Not on a GPU, where that store would need the records' lists in
 * GPU memory: 0. */
static enum vxd_status time_engine(struct bench_server *bench, double *seconds,
                                   struct vxd_err *err)
{
    struct vxd_scenes *scenes = bench->server->scenes;
    struct vxd_scene *scene = vxd_scenes_find(scenes, "s");
    struct vxd_svdag_spec spec = {.format = scene->spec.format};
    struct replayed all = {0};
    struct vxd_svdag *svdag = NULL;
    uint32_t root = VXD_SVDAG_EMPTY;
    double begin;
    enum vxd_status status = VXD_OK;

    *seconds = 0;
    if (vxd_context_backend(bench->server->context) != VXD_BACKEND_CPU) {
        goto out;
    }
    VXD_TRY(vxd_journal_read_records(vxd_registry_get_journal(scenes->registry), 1, 1,
                                     VXD_JOURNAL_MAX_SEQUENCE, keep_record, &all, NULL,
                                     err));
    VXD_TRY(vxd_svdag_create(scenes->queue, &spec, &svdag, err));
    begin = bench_now_s();
    for (size_t i = 0; i < all.n; i++) {
        const struct vxd_record *record = &all.records[i].record;
        struct vxd_svdag_edit_result result;

        if (record->n_ops > 0) {
            VXD_TRY(vxd_svdag_edit_wait(scenes->queue, svdag, root, record->ops,
                                        record->n_ops, &result, err));
            root = result.root;
        }
    }
    *seconds = bench_now_s() - begin;
out:
    for (size_t i = 0; i < all.n; i++) {
        vxd_record_decoded_free(&all.records[i]);
    }
    free(all.records);
    vxd_svdag_destroy(scenes->queue, svdag);
    vxd_scene_drop(scene, scenes->queue);
    return status;
}

static bool has_scene(struct bench_server *bench)
{
    struct vxd_scenes *scenes = bench->server->scenes;
    struct vxd_scene *scene = vxd_scenes_find(scenes, "s");

    vxd_scene_drop(scene, scenes->queue);
    return scene != NULL;
}

static enum vxd_status replay(struct bench_server *bench, struct vxd_err *err)
{
    const struct bench_options *options = bench->options;
    struct vxd_svdag_summary before;
    struct vxd_svdag_summary after;
    struct bench_run run = {0};
    double engine_s = 0;
    enum vxd_status status;

    VXD_TRY(bench_server_open(bench, err));
    if (!has_scene(bench)) {
        VXD_TRY(bench_create_scene(bench, 12, err));
        VXD_TRY(bench_run_clients(bench, &run, err));
    }
    VXD_TRY(summarize(bench, &before, err));
    bench_server_close(bench);
    (void)printf("| clients | changes | scans | original, s | processor, s | replay, s | "
                 "processor, s | times faster | engine alone, s |\n");
    for (int i = 0; i < options->n_repeat; i++) {
        VXD_TRY(bench_server_open(bench, err));
        if (i == 0) {
            VXD_TRY(summarize(bench, &after, err));
            VXD_TRY(time_engine(bench, &engine_s, err));
        }
        (void)printf("| %d | %d | %d | %.2f | %.2f | %.2f | %.2f | %.1f | %.2f |\n",
                     options->n_clients, options->n_edits, run.n_scans, run.seconds,
                     run.cpu_s, bench->open_s, bench->open_cpu_s,
                     run.seconds / bench->open_s, engine_s);
        bench_server_close(bench);
    }
    if (memcmp(&before, &after, sizeof before) != 0) {
        status = vxd_fail(err, VXD_DATA_LOSS, NULL, "the scene is another one");
    }
out:
    bench_server_close(bench);
    return status;
}

/* ------------------------------------------------------------------------------------------- */

static bool read_option(struct bench_options *options, const char *name,
                        const char *value)
{
    if (strcmp(name, "--backend") == 0) {
        options->backend = value;
    } else if (strcmp(name, "--dir") == 0) {
        options->directory = value;
    } else if (strcmp(name, "--threads") == 0) {
        options->n_threads = (int)strtol(value, NULL, 10);
    } else if (strcmp(name, "--mib") == 0) {
        options->n_bytes = strtoull(value, NULL, 10) << 20;
    } else if (strcmp(name, "--bits") == 0) {
        options->bits = (int)strtol(value, NULL, 10);
    } else if (strcmp(name, "--edits") == 0) {
        options->n_edits = (int)strtol(value, NULL, 10);
    } else if (strcmp(name, "--clients") == 0) {
        options->n_clients = (int)strtol(value, NULL, 10);
    } else if (strcmp(name, "--repeat") == 0) {
        options->n_repeat = (int)strtol(value, NULL, 10);
    } else if (strcmp(name, "--keep") == 0) {
        options->n_kept = (int)strtol(value, NULL, 10);
    } else if (strcmp(name, "--fsync") == 0) {
        options->fsync = value;
    } else {
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct bench_options options = {.backend = "cpu",
                                    .directory = "bench-recovery.tmp",
                                    .fsync = "ALWAYS",
                                    .n_threads = 2,
                                    .n_bytes = (uint64_t)1 << 30,
                                    .n_edits = 4000,
                                    .n_clients = 8,
                                    .n_repeat = 3};
    struct bench_server bench = {.options = &options, .dir = {.lock = -1}};
    struct vxd_err err = {0};
    bool is_replay = argc > 1 && strcmp(argv[1], "replay") == 0;
    bool is_good = argc > 1 && (is_replay || strcmp(argv[1], "snapshot") == 0);
    int i = 2;

    for (; is_good && i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
        is_good = read_option(&options, argv[i], argv[i + 1]);
    }
    options.scan = i < argc ? argv[i] : NULL;
    if (!is_good || options.n_clients < 1 || options.n_clients > BENCH_MAX_CLIENTS ||
        options.n_edits < 1 || options.n_repeat < 1) {
        (void)fprintf(stderr, "usage: see the head of bench_recovery.c\n");
        return 2;
    }
    if ((is_replay ? replay(&bench, &err) : snapshot(&bench, &err)) != VXD_OK) {
        (void)fprintf(stderr, "%s\n", err.message);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
