// SPDX-License-Identifier: Apache-2.0
/* Times the journal: clients that each commit one edit and wait, with the fsync of this disk as the
 * floor; requests of 100 operations; and how many bytes a drive of lidar scans takes.
 * usage: bench_journal [--dir DIRECTORY] [--clients N] [--seconds S] [--fsync always|everysec|off]
 *                      [--archive FOLDER] [--size METRES] [--range METRES] [SCAN.bin...] */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/svdag/scan/scan.h"
#include "server/durable/archive/archive.h"
#include "server/durable/journal/journal.h"
#include "server/durable/record/record.h"
#include "tests/bench/support/bench_cloud.h"
#include "tests/bench/support/bench_device.h"

enum {
    MAX_CLIENTS = 256,
    N_TIMES = 20, /* that a record is packed */
    DEPTH = 17
};

struct bench {
    const char *directory;
    const char *archived; /* to this folder; NULL = there is no archive */
    int n_clients;
    double seconds;
    enum vxd_fsync fsync;
    double size_m;
    double range_m;
    struct vxd_data_dir dir;
    struct vxd_journal *journal;
    struct vxd_archive *archive;
    uint32_t family;
    int n_ops; /* a request */
    pthread_mutex_t lock;
    uint64_t next; /* sequence number */
    double end_s;
};

struct client {
    struct bench *bench;
    int number;
    uint64_t n_done;
    pthread_t thread;
};

static bool say(enum vxd_status status, const struct vxd_err *err)
{
    if (status != VXD_OK) {
        (void)fprintf(stderr, "%s\n", err->message);
    }
    return status == VXD_OK;
}

/* Measures the floors: a write of 4 KiB and its sync, one after the other, to a file
 * that grows (fsync) or over existing bytes (fdatasync), as a WAL does when it is new
 * and later. */
static double time_sync(const char *directory, bool grows)
{
    char path[600];
    char page[4096] = {0};
    double begin;
    int file, n;

    (void)snprintf(path, sizeof path, "%s/fsync.tmp", directory);
    file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 ||
        (!grows && (pwrite(file, page, sizeof page, 0) < 0 || fsync(file) != 0))) {
        return 0;
    }
    begin = bench_now_s();
    for (n = 0; bench_now_s() - begin < 1; n++) {
        off_t at = grows ? (off_t)n * 4096 : 0;

        if (pwrite(file, page, sizeof page, at) != (ssize_t)sizeof page ||
            (grows ? fsync(file) : fdatasync(file)) != 0) {
            break;
        }
    }
    (void)close(file);
    (void)unlink(path);
    return n > 0 ? (bench_now_s() - begin) / n : 0;
}

static enum vxd_status make_record(const struct bench *bench, uint64_t n,
                                   struct vxd_record_bytes *out, struct vxd_err *err)
{
    struct vxd_svdag_op ops[100];
    struct vxd_record record = {.kind = VXD_RECORD_EDIT,
                                .head = "yard",
                                .author = "bench",
                                .unix_ns = (int64_t)n,
                                .version = {1, n},
                                .ops = ops,
                                .n_ops = (size_t)bench->n_ops};

    memset(ops, 0, sizeof ops);
    for (int i = 0; i < bench->n_ops; i++) {
        ops[i].shape.kind = VXD_SVDAG_BALL;
        ops[i].shape.a[0] = (int64_t)(n * 977 % 100000) * 256;
        ops[i].shape.a[1] = (int64_t)i * 5000;
        ops[i].shape.r = 32 * 256;
    }
    return vxd_record_encode(&record, out, err);
}

/* Commits one edit with its outcome, as a server does; numbers are drawn and handed
 * over in order. */
struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool is_done;
    enum vxd_status status;
};

static void wake(void *user, enum vxd_status status, const struct vxd_err *err)
{
    struct waiter *waiter = user;

    (void)err;
    (void)pthread_mutex_lock(&waiter->lock);
    waiter->is_done = true;
    waiter->status = status;
    (void)pthread_cond_signal(&waiter->wake);
    (void)pthread_mutex_unlock(&waiter->lock);
}

static enum vxd_status edit(struct client *client, uint64_t n, struct vxd_err *err)
{
    struct bench *bench = client->bench;
    struct waiter waiter = {.lock = PTHREAD_MUTEX_INITIALIZER,
                            .wake = PTHREAD_COND_INITIALIZER};
    struct vxd_journal_txn *txn = NULL;
    struct vxd_record_bytes bytes = {0};
    char reply_bytes[100] = {0};
    struct vxd_journal_reply reply = {.client = &client->number,
                                      .n_client_bytes = sizeof client->number,
                                      .sequence = n,
                                      .bytes = reply_bytes,
                                      .n_bytes = sizeof reply_bytes};
    struct vxd_journal_record record = {
        .family = bench->family, .rules_version = VXD_RULES_VERSION, .kind = 1};
    enum vxd_status status;

    VXD_TRY(make_record(bench, n, &bytes, err));
    record.bytes = bytes.bytes;
    record.n_bytes = bytes.n_bytes;
    VXD_TRY(vxd_journal_begin(bench->journal, &txn, err));
    VXD_TRY(vxd_journal_put_reply(txn, &reply, err));
    VXD_TRY(vxd_journal_forget_reply(txn, &client->number, sizeof client->number,
                                     n > 64 ? n - 64 : 0, err));
    (void)pthread_mutex_lock(&bench->lock);
    record.sequence = ++bench->next;
    status = vxd_journal_add_record(txn, &record, err);
    if (status == VXD_OK) {
        status = vxd_journal_commit(txn, wake, &waiter, err);
        txn = NULL;
    }
    (void)pthread_mutex_unlock(&bench->lock);
    if (status == VXD_OK) {
        (void)pthread_mutex_lock(&waiter.lock);
        while (!waiter.is_done) {
            (void)pthread_cond_wait(&waiter.wake, &waiter.lock);
        }
        (void)pthread_mutex_unlock(&waiter.lock);
        status = waiter.status;
    }
out:
    vxd_journal_abandon(txn);
    vxd_record_bytes_free(&bytes);
    return status;
}

static void *run_client(void *args)
{
    struct client *client = args;
    struct vxd_err err = {0};

    while (bench_now_s() < client->bench->end_s) {
        if (!say(edit(client, client->n_done + 1, &err), &err)) {
            break;
        }
        client->n_done++;
    }
    return NULL;
}

static void time_edits(struct bench *bench, int n_clients, int n_ops)
{
    struct client *clients = calloc((size_t)n_clients, sizeof *clients);
    struct vxd_journal_stats before, after;
    double begin = bench_now_s();
    uint64_t n_done = 0;

    if (clients == NULL) {
        return;
    }
    bench->n_ops = n_ops;
    bench->end_s = begin + bench->seconds;
    vxd_journal_get_stats(bench->journal, &before);
    for (int i = 0; i < n_clients; i++) {
        clients[i].bench = bench;
        clients[i].number = i + 1000 * n_ops;
        (void)pthread_create(&clients[i].thread, NULL, run_client, &clients[i]);
    }
    for (int i = 0; i < n_clients; i++) {
        (void)pthread_join(clients[i].thread, NULL);
        n_done += clients[i].n_done;
    }
    begin = bench_now_s() - begin;
    vxd_journal_get_stats(bench->journal, &after);
    (void)printf("| %7d | %8d | %10.0f | %12.0f | %9.1f | %11.2f |\n", n_clients, n_ops,
                 (double)n_done / begin, (double)n_done * n_ops / begin,
                 (double)n_done / (double)(after.n_groups - before.n_groups),
                 (double)after.longest_group_us / 1e3);
    free(clients);
}

static enum vxd_status open_journal(struct bench *bench, struct vxd_err *err)
{
    const struct vxd_journal_options options = {.archives = bench->archived != NULL,
                                                .max_archive_bytes = (uint64_t)1 << 30};
    const struct vxd_archive_options archive = {.folder = bench->archived, .seconds = 1};
    struct vxd_journal_family family = {
        .name = "yard", .fsync = bench->fsync, .epoch = 1};
    struct vxd_journal_found found;
    struct vxd_journal_txn *txn;
    enum vxd_status status;

    VXD_TRY(vxd_data_dir_open(NULL, bench->directory, &bench->dir, err));
    VXD_TRY(vxd_journal_open(&bench->dir, &options, &bench->journal, &found, err));
    if (bench->archived != NULL) {
        VXD_TRY(vxd_archive_start(vxd_file_ops_system(), bench->journal, &archive,
                                  &bench->archive, err));
    }
    family.id = vxd_journal_new_family(bench->journal);
    (void)snprintf(family.name, sizeof family.name, "yard-%u", family.id);
    bench->family = family.id;
    VXD_TRY(vxd_journal_begin(bench->journal, &txn, err));
    VXD_TRY(vxd_journal_put_family(txn, &family, err));
    VXD_TRY(vxd_journal_commit_wait(txn, err));
out:
    return status;
}

/* What a scan takes ------------------------------------------------------------------------- */

static enum vxd_status cast(const struct bench *bench, struct bench_device *device,
                            const struct bench_cloud *cloud,
                            struct vxd_svdag_scan_result *out, struct vxd_err *err)
{
    const struct vxd_svdag_format format = {.depth = DEPTH, .tracks_free = true};
    const int64_t centre = (int64_t)1 << (DEPTH - 1);
    struct vxd_buffer points = {0};
    struct vxd_svdag_scan scan = {.n = cloud->n_points,
                                  .base = {centre, centre, centre},
                                  .max_range = bench->range_m / bench->size_m,
                                  .carve = true,
                                  .wants_ends = true};
    float *to;
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(device->queue, cloud->n_points * 3 * sizeof(float), &points,
                             err));
    to = points.ptr; /* memory of the CPU backend */
    for (size_t i = 0; i < cloud->n_points; i++) {
        for (size_t a = 0; a < 3; a++) {
            to[3 * i + a] =
                (float)(cloud->rows[(size_t)cloud->n_columns * i + a] / bench->size_m);
        }
    }
    scan.points = points.ptr;
    VXD_TRY(vxd_svdag_scan_voxels(device->queue, &format, &scan, out, err));
    VXD_TRY(vxd_queue_wait(device->queue, err));
out:
    vxd_device_free(device->queue, &points);
    return status;
}

/* Packs and unpacks a record a few times; prints a row of the shortest times. */
static enum vxd_status measure_record(const char *what, const struct vxd_record *record,
                                      size_t n_items, size_t n_raw, struct vxd_err *err)
{
    struct vxd_record_bytes bytes = {0};
    struct vxd_record_decoded decoded = {0};
    double least[2] = {1e9, 1e9};
    double at[3];
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < N_TIMES; i++) {
        vxd_record_decoded_free(&decoded);
        vxd_record_bytes_free(&bytes);
        at[0] = bench_now_s();
        VXD_TRY(vxd_record_encode(record, &bytes, err));
        at[1] = bench_now_s();
        VXD_TRY(vxd_record_decode(bytes.bytes, bytes.n_bytes, VXD_RULES_VERSION, 0,
                                  &decoded, err));
        at[2] = bench_now_s();
        for (int k = 0; k < 2; k++) {
            least[k] = at[k + 1] - at[k] < least[k] ? at[k + 1] - at[k] : least[k];
        }
    }
    (void)printf("| %s | %zu | %zu | %.1f %% | %.2f | %.2f |\n", what, n_items,
                 bytes.n_bytes, 100.0 * (double)bytes.n_bytes / (double)n_raw,
                 least[0] * 1e3, least[1] * 1e3);
out:
    vxd_record_decoded_free(&decoded);
    vxd_record_bytes_free(&bytes);
    return status;
}

static enum vxd_status measure_scan(const struct bench *bench,
                                    struct bench_device *device, const char *path,
                                    struct vxd_err *err)
{
    const int64_t centre = (int64_t)1 << (DEPTH - 1);
    struct bench_cloud cloud = {0};
    struct vxd_svdag_scan_result lists = {0};
    struct vxd_svdag_op ops[2] = {
        {.shape = {.kind = VXD_SVDAG_VOXELS}, .action = VXD_SVDAG_SET_FREE},
        {.shape = {.kind = VXD_SVDAG_VOXELS}, .action = VXD_SVDAG_FILL}};
    struct vxd_record record = {
        .kind = VXD_RECORD_INTEGRATE, .head = "yard", .ops = ops, .n_ops = 2};
    struct vxd_record_scan scan = {.base = {centre, centre, centre}, .fills = true};
    const struct vxd_record cast_record = {
        .kind = VXD_RECORD_CAST, .head = "yard", .scans = &scan, .n_scans = 1};
    double at;
    size_t n_raw;
    enum vxd_status status;

    if (!bench_cloud_read(path, 4, &cloud)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "cloud", "%s cannot be read", path);
    }
    n_raw = cloud.n_points * (size_t)cloud.n_columns * sizeof(float);
    at = bench_now_s();
    VXD_TRY(cast(bench, device, &cloud, &lists, err));
    (void)printf("| cast, %.1f ms: the points' bytes | %zu | %zu | | | |\n",
                 (bench_now_s() - at) * 1e3, cloud.n_points, n_raw);
    ops[0].shape.voxels = lists.passed.voxels;
    ops[1].shape.voxels = lists.hits.voxels;
    scan.ends = lists.ends.ends;
    scan.n = lists.ends.n;
    scan.n_hits = lists.ends.n_hits;
    VXD_TRY(measure_record("lists: leaves", &record,
                           lists.passed.voxels.n + lists.hits.voxels.n, n_raw, err));
    status = measure_record("ends: rays", &cast_record, scan.n, n_raw, err);
out:
    vxd_svdag_ray_ends_free(device->queue, &lists.ends);
    vxd_svdag_voxel_list_free(device->queue, &lists.passed);
    vxd_svdag_voxel_list_free(device->queue, &lists.hits);
    bench_cloud_free(&cloud);
    return status;
}

static enum vxd_status measure_scans(const struct bench *bench, char **paths, int n,
                                     struct vxd_err *err)
{
    struct bench_device device = {0};
    enum vxd_status status;

    VXD_TRY(bench_device_create(VXD_BACKEND_CPU, 0, &device, err));
    (void)printf("scans at %g m, rays up to %g m\n"
                 "| | n | record bytes | of raw | encode ms | decode ms |\n",
                 bench->size_m, bench->range_m);
    for (int i = 0; i < n; i++) {
        VXD_TRY(measure_scan(bench, &device, paths[i], err));
    }
out:
    bench_device_destroy(&device);
    return status;
}

static int read_options(struct bench *bench, int argc, char **argv)
{
    static const char *const policies[] = {"always", "everysec", "off"};
    int i = 1;

    for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
        const char *value = argv[i + 1];

        if (strcmp(argv[i], "--dir") == 0) {
            bench->directory = value;
        } else if (strcmp(argv[i], "--archive") == 0) {
            bench->archived = value;
        } else if (strcmp(argv[i], "--clients") == 0) {
            bench->n_clients = (int)strtol(value, NULL, 10);
        } else if (strcmp(argv[i], "--seconds") == 0) {
            bench->seconds = strtod(value, NULL);
        } else if (strcmp(argv[i], "--size") == 0) {
            bench->size_m = strtod(value, NULL);
        } else if (strcmp(argv[i], "--range") == 0) {
            bench->range_m = strtod(value, NULL);
        } else if (strcmp(argv[i], "--fsync") == 0) {
            for (int k = 0; k < 3; k++) {
                if (strcmp(value, policies[k]) == 0) {
                    bench->fsync = (enum vxd_fsync)k;
                }
            }
        } else {
            return -1;
        }
    }
    return bench->n_clients >= 1 && bench->n_clients <= MAX_CLIENTS ? i : -1;
}

int main(int argc, char **argv)
{
    struct bench bench = {.directory = "bench-journal.tmp",
                          .n_clients = 32,
                          .seconds = 2,
                          .size_m = 0.1,
                          .range_m = 50,
                          .dir = {.lock = -1},
                          .lock = PTHREAD_MUTEX_INITIALIZER};
    struct vxd_err err = {0};
    int first = read_options(&bench, argc, argv);
    bool is_good;

    if (first < 0) {
        (void)fprintf(stderr, "usage: see the head of bench_journal.c\n");
        return 2;
    }
    is_good = say(open_journal(&bench, &err), &err);
    if (is_good) {
        (void)printf(
            "a write of 4 KiB and its sync: %.3f ms where the file grows, %.3f ms in "
            "place\n",
            time_sync(bench.directory, true) * 1e3,
            time_sync(bench.directory, false) * 1e3);
        (void)printf(
            "| clients | ops each | requests/s | operations/s | a commit | longest "
            "ms |\n");
        time_edits(&bench, 1, 1);
        time_edits(&bench, bench.n_clients, 1);
        time_edits(&bench, bench.n_clients, 100);
    }
    vxd_archive_stop(bench.archive);
    if (bench.journal != NULL) {
        is_good = say(vxd_journal_close(bench.journal, &err), &err) && is_good;
    }
    vxd_data_dir_close(&bench.dir);
    if (first < argc) {
        is_good =
            say(measure_scans(&bench, argv + first, argc - first, &err), &err) && is_good;
    }
    return is_good ? EXIT_SUCCESS : EXIT_FAILURE;
}
