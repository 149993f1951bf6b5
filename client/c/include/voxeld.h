// SPDX-License-Identifier: Apache-2.0
/* libvoxeld: the client of the voxeld service.
 *
 *   struct voxeld_client *client;
 *   struct voxeld_error error;
 *   if (voxeld_connect(NULL, &client, &error) != VOXELD_OK) { ... error.message ... }
 *   struct voxeld_cloud *scan;
 *   voxeld_cloud_read_file("scan.pcd", NULL, &scan, &error);
 *   struct voxeld_voxelize_request request = {
 *       .clouds = scan, .n_clouds = 1, .size_m = {0.1, 0.1, 0.1}};
 *   struct voxeld_voxels *voxels;
 *   voxeld_voxelize(client, &request, &voxels, &error);
 *   ... voxels->n_voxels, voxels->coords ...
 *   voxeld_voxels_free(voxels);
 *   voxeld_cloud_free(scan);
 *   voxeld_close(client);
 *
 * Conventions. Every struct that goes in may be zeroed: zero is the default of each member.
 * Functions that can fail return a status and fill *error, which may be NULL; *error is
 * untouched on success, and on failure every *out is NULL. Positions are metres, frames
 * right-handed, quaternions (x, y, z, w), arrays little-endian and row-major. Strings are
 * UTF-8.
 *
 * Threads. A client may be used by any number of threads at once; only voxeld_close must
 * have it alone. Results belong to whoever received them.
 *
 * Failing calls never wait: without a connection a call is VOXELD_UNAVAILABLE at once, with
 * too many in flight VOXELD_RESOURCE_EXHAUSTED at once, and no call takes longer than its
 * timeout. Requests are never sent twice behind the caller's back.
 *
 * C11 and C++17; needs a little-endian machine. */
#ifndef VOXELD_H
#define VOXELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef VOXELD_API
#define VOXELD_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define VOXELD_VERSION_MAJOR 0
#define VOXELD_VERSION_MINOR 3
#define VOXELD_VERSION_PATCH 0

/* Version of the library that runs, "0.3.0". Static. */
VOXELD_API const char *voxeld_version(void);

/* Errors ------------------------------------------------------------------------------ */

/* The numbers are gRPC's. */
enum voxeld_status {
    VOXELD_OK = 0,
    VOXELD_CANCELLED = 1,
    VOXELD_UNKNOWN = 2,
    VOXELD_INVALID_ARGUMENT = 3,
    VOXELD_DEADLINE_EXCEEDED = 4,
    VOXELD_NOT_FOUND = 5,
    VOXELD_ALREADY_EXISTS = 6,
    VOXELD_PERMISSION_DENIED = 7,
    VOXELD_RESOURCE_EXHAUSTED = 8,
    VOXELD_FAILED_PRECONDITION = 9,
    VOXELD_ABORTED = 10,
    VOXELD_OUT_OF_RANGE = 11,
    VOXELD_UNIMPLEMENTED = 12,
    VOXELD_INTERNAL = 13,
    VOXELD_UNAVAILABLE = 14,
    VOXELD_DATA_LOSS = 15,
    VOXELD_UNAUTHENTICATED = 16
};

/* The code's name, "INVALID_ARGUMENT"; "UNKNOWN" for a number that is no code. Static. */
VOXELD_API const char *voxeld_status_name(enum voxeld_status status);

struct voxeld_error {
    enum voxeld_status code;
    char field[96];      /* the wrong member, "clouds[0].fields[2].offset"; may be "" */
    char message[240];   /* what was wrong and what would be right */
    char request_id[64]; /* as in the server's log; "" where the request was never sent */
    uint64_t sequence;   /* to repeat a call that changes something; 0: none */
};

/* Connection -------------------------------------------------------------------------- */

struct voxeld_client;

/* A value of wait_ms: voxeld_connect returns the client at once and connects in the
 * background. */
#define VOXELD_NO_WAIT (-1)

/* A value of shared_bytes: no memory is shared. */
#define VOXELD_SHARES_NOTHING SIZE_MAX

struct voxeld_options {
    /* "ipc:///run/voxeld/voxeld.sock", "tcp://host:port", "tls+tcp://...". NULL: the
     * environment's VOXELD_URL, else ipc://$XDG_RUNTIME_DIR/voxeld/voxeld.sock where that
     * socket exists, else ipc:///run/voxeld/voxeld.sock. */
    const char *url;
    /* NULL: the environment's VOXELD_TOKEN, else none. */
    const char *token;
    /* Names the sender, for fairness and for calls that change something (see
     * voxeld_call): [a-z0-9][a-z0-9._-]{0,62}, used by one client at a time. NULL: a
     * random one, "c-...". */
    const char *client_id;
    /* The timeout of every call that names none; 0 = as long as the server allows (its
     * limits.max_timeout_ms, which the first such call asks for), at most a minute. */
    uint32_t timeout_ms;
    /* How long voxeld_connect waits for the first connection. 0 = 1000, except that a
     * Unix socket that does not exist fails at once; > 0 waits for the daemon to
     * start; or VOXELD_NO_WAIT. */
    int32_t wait_ms;
    /* Most calls in flight at once, 0 = 16, at most 1024. */
    uint32_t max_in_flight;
    /* Largest reply that is accepted, 0 = 1 GiB. */
    size_t max_reply_bytes;
    /* For tls+tcp: PEM files with the authorities that may have signed the server's
     * certificate, which must be for the URL's host, and with our own certificate and its key
     * (NULL: none); see also tls_key_file. */
    const char *tls_ca_file;
    const char *tls_cert_key_file;
    /* Over ipc: memory of so many bytes is shared with the daemon, and large requests and
     * replies of synchronous calls go through it instead of through the socket. It holds all
     * calls in flight and all results that were not freed, which beyond it use the socket, as
     * do all where the daemon does not share. 0 = as much as two calls need, 8 to 256 MiB, from the
     * second call on that has 256 KiB and four seconds; VOXELD_SHARES_NOTHING = none. */
    size_t shared_bytes;
    /* The key, where it is not in tls_cert_key_file. */
    const char *tls_key_file;
    /* To show that a call takes long: synchronous calls that wait for more than a second call it
     * about four times a second, on their thread, with the time waited and allowed, and once with
     * waited_ms 0 when they wait no more. It must make no calls. NULL: none. */
    void (*waiting)(void *user, uint32_t waited_ms, uint32_t timeout_ms);
    void *waiting_user;
};

/* Connects, and reconnects by itself from then on. options may be NULL; its strings are
 * copied.
 *
 * errors  UNAVAILABLE         nobody answers there
 *         INVALID_ARGUMENT    a malformed URL, client_id or option
 *         RESOURCE_EXHAUSTED  no memory, threads or file descriptors */
VOXELD_API enum voxeld_status voxeld_connect(const struct voxeld_options *options,
                                             struct voxeld_client **out,
                                             struct voxeld_error *error);

/* Ends the connection. Calls in flight are given up; callbacks that have not been
 * called yet are called from here, with CANCELLED or their result. This takes at most
 * about a second. NULL is fine. Must not be called from a callback. */
VOXELD_API void voxeld_close(struct voxeld_client *client);

/* Whether a connection stands at this moment. */
VOXELD_API bool voxeld_is_connected(struct voxeld_client *client);

/* Where the time of a call went in the server, in milliseconds; 0 for a stage that it did not
 * reach. What the caller waited beyond total_ms is the way to the server and back. */
struct voxeld_timings {
    double receive_ms; /* from the first byte of the request to its last */
    double decode_ms;  /* unpacking and checking it */
    double wait_ms;    /* in the queue, until the engine took it */
    double engine_ms;
    double commit_ms; /* a durable change's wait for the journal */
    double total_ms;  /* from arrival to reply */
};

/* Fills *out for the last call of this client that succeeded, of whichever thread. False, and
 * zeros, before the first one and with a server older than 0.2.0, which does not say it. */
VOXELD_API bool voxeld_last_timings(struct voxeld_client *client,
                                    struct voxeld_timings *out);

/* Options of a single call; all may be left out.
 *
 * Exactly once. A call that changes something on the server takes effect once a
 * client_id and sequence, however often it is repeated. The library numbers such calls
 * by itself. When one ends with DEADLINE_EXCEEDED or UNAVAILABLE nobody knows whether
 * it took effect: repeat it, with everything else as it was, and error.sequence as its
 * sequence. It then takes effect unless it did, and gives the first one's result
 * (result->replayed; large results have lost their arrays, which arrays_dropped says).
 * A DEADLINE_EXCEEDED whose field is header.timeout_ms is the server's: it has given the call
 * up, and one that is repeated begins anew, so it needs a longer timeout.
 * After any other error nothing has changed.
 *
 *   struct voxeld_retry retry = {.total_ms = 10000};
 *   do {
 *       status = voxeld_map_insert(client, &request, &result, &error);
 *   } while (voxeld_retry(&retry, &request.call, status, &error));
 *
 * The server remembers the last 64 such calls of a client_id, until it restarts (those
 * of durable scenes and maps beyond that). So keep fewer than 64 in flight, and repeat
 * soon. */
struct voxeld_call {
    uint32_t timeout_ms;    /* 0: the client's */
    const char *request_id; /* at most 63 printable ASCII characters; NULL: one is made */
    const char *client_id;  /* NULL: the client's */
    /* With both, at most keep_last requests of this client and stream wait at the server;
     * an older one ends with ABORTED. */
    const char *stream;
    uint32_t keep_last;
    uint32_t
        max_age_ms;    /* a request that has waited longer does not start: ABORTED. 0: no
                        * limit */
    uint64_t sequence; /* 0: the next one of this client */
    /* W3C Trace Context, "00-TRACEID-PARENTID-FLAGS": the trace that the call is part of, for the
     * server's log. NULL: none. */
    const char *traceparent;
};

/* Repeats for at most total_ms, counted from the end of the first call; the caller
 * zeroes the rest. */
struct voxeld_retry {
    uint32_t total_ms;
    uint32_t wait_ms; /* private */
    int64_t until_ns; /* private */
};

/* Whether to repeat a call that changes something, which ended with this status: true
 * after DEADLINE_EXCEEDED and UNAVAILABLE while there is time, unless the server has given
 * the call up. Then call->sequence is
 * the number to repeat, and after UNAVAILABLE the function has waited for 10 to 500
 * ms, longer each time; the last repetition may end its own timeout after total_ms.
 * Otherwise *retry is as new and call->sequence 0, ready for the next call. error is
 * what the call filled. */
VOXELD_API bool voxeld_retry(struct voxeld_retry *retry, struct voxeld_call *call,
                             enum voxeld_status status, const struct voxeld_error *error);

/* Asking the daemon ------------------------------------------------------------------- */

/* All pointers live until the struct is freed. */
struct voxeld_server_info {
    const char *version;
    const char *backend; /* "cpu", "cuda:0" */
    const char *device;
    const char *const *methods;
    size_t n_methods;
    uint64_t max_message_bytes;
    uint64_t max_json_bytes;
    uint64_t default_timeout_ms;
    uint64_t max_timeout_ms;
    const char *instance_id; /* a new one after every restart */
    int64_t started_ns;
    /* Where HTTP and the dashboard are: "http://127.0.0.1:8420", "unix:/PATH"; "": nowhere */
    const char *http;
};

/* call may be NULL, in this and all functions. Free with voxeld_server_info_free. */
VOXELD_API enum voxeld_status voxeld_get_server_info(struct voxeld_client *client,
                                                     const struct voxeld_call *call,
                                                     struct voxeld_server_info **out,
                                                     struct voxeld_error *error);
VOXELD_API void voxeld_server_info_free(struct voxeld_server_info *info);

struct voxeld_method_status {
    const char *name;
    uint64_t n_ok;
    uint64_t n_failed;
    double mean_ms;
};

struct voxeld_slow_request {
    const char *request_id;
    const char *method;
    const char *client_id;
    enum voxeld_status code;
    double queue_ms;
    double total_ms;
    int64_t finished_ns;
};

/* A request that waits or runs. Of a server older than 0.3.0 the last three are "" and 0. */
struct voxeld_current_request {
    const char *request_id;
    const char *method;
    const char *client_id;
    const char *by; /* the token's name */
    bool is_running;
    double total_ms;  /* since it came, */
    double engine_ms; /* and of that on the engine */
    const char
        *stage; /* "waits" for its turn, "runs", or "commits": it waits for the disk */
    double wait_ms; /* of total_ms, until its turn came; all of it while it waits */
    double left_ms; /* until its deadline; at 0 it is answered */
};

struct voxeld_memory_owner {
    const char *name; /* "scenes", "volumes" */
    uint64_t n;       /* how many of them */
    uint64_t n_bytes;
    uint64_t limit_bytes; /* 0: none of its own */
    bool on_device;       /* the engine's, which on a CPU is the host's */
};

struct voxeld_server_status {
    const char *state; /* "serving", "draining", "lost" */
    double uptime_s;
    uint64_t queue_depth;
    uint64_t queue_limit;
    uint64_t running;
    uint64_t inflight_bytes;
    uint64_t inflight_limit_bytes;
    uint64_t device_bytes;
    uint64_t device_budget_bytes;
    uint64_t host_bytes;
    uint64_t host_budget_bytes;
    uint64_t resident_bytes;
    /* How many maps, networks (their weights) and scenes there are, their device
     * memory, and its limit. */
    uint64_t n_maps;
    uint64_t map_bytes;
    uint64_t map_limit_bytes;
    uint64_t n_networks;
    uint64_t network_bytes;
    uint64_t network_limit_bytes;
    uint64_t n_scenes;
    uint64_t scene_bytes;
    uint64_t scene_limit_bytes;
    const struct voxeld_method_status *methods;
    size_t n_methods;
    const struct voxeld_slow_request *slow; /* newest first */
    size_t n_slow;
    /* Who holds memory; "others" is the device memory that none of them has. None with a server
     * older than 0.2.0. */
    const struct voxeld_memory_owner *memory;
    size_t n_memory;
    /* Those that run, wait for the disk, or wait for their turn, at most 64; without the scope admin those
     * of the own token. */
    const struct voxeld_current_request *current;
    size_t n_current;
};

/* Free with voxeld_server_status_free. */
VOXELD_API enum voxeld_status voxeld_get_status(struct voxeld_client *client,
                                                const struct voxeld_call *call,
                                                struct voxeld_server_status **out,
                                                struct voxeld_error *error);
VOXELD_API void voxeld_server_status_free(struct voxeld_server_status *status);

struct voxeld_self_test {
    uint64_t n_stages;
    uint64_t digest; /* the same on every machine and backend */
    double elapsed_ms;
};

/* Loads the server for duration_ms (0: 1000, at most 60000) with n_points a stage (0:
 * 20000, at most 1000000) and compares every result. Needs the scope admin. Unless the
 * call names a timeout, its timeout is the duration plus the client's (5 s where it has none). */
VOXELD_API enum voxeld_status
voxeld_run_self_test(struct voxeld_client *client, const struct voxeld_call *call,
                     uint32_t duration_ms, uint32_t n_points,
                     struct voxeld_self_test *out, struct voxeld_error *error);

/* "debug", "info", "warning", "error". Needs the scope admin. The level before goes to
 * previous (may be NULL), cut to n_previous bytes. */
VOXELD_API enum voxeld_status voxeld_set_log_level(struct voxeld_client *client,
                                                   const struct voxeld_call *call,
                                                   const char *level, char *previous,
                                                   size_t n_previous,
                                                   struct voxeld_error *error);

struct voxeld_backup {
    const char *path; /* on the server */
    uint64_t n_database_bytes;
    uint64_t n_snapshot_bytes;
    uint64_t n_snapshots;
    uint64_t n_linked; /* how many of them are hard links to the same bytes */
    double elapsed_ms;
};

/* Copies the server's data directory while it is in use to backups/NAME in it: a data directory
 * itself, with all that was answered before. NAME: [a-z0-9][a-z0-9._-]{0,62}. Needs the scope
 * admin. Free with voxeld_backup_free.
 * errors  ALREADY_EXISTS       a backup of this name
 *         FAILED_PRECONDITION  the server has no data_dir, or makes another backup */
VOXELD_API enum voxeld_status voxeld_make_backup(struct voxeld_client *client,
                                                 const struct voxeld_call *call,
                                                 const char *name,
                                                 struct voxeld_backup **out,
                                                 struct voxeld_error *error);
VOXELD_API void voxeld_backup_free(struct voxeld_backup *backup);

/* Times of one run of a network in the engine, in milliseconds (voxeld_net.h,
 * voxeld_scene.h). */
struct voxeld_network_timings {
    double voxelize_ms;
    double sets_ms;   /* coordinate sets */
    double layers_ms; /* kernel maps and layers */
    double outputs_ms;
    uint32_t n_items; /* clouds of the run, of one or several requests */
    uint64_t n_voxels;
};

/* Clouds ------------------------------------------------------------------------------ */

/* The first eight are the numbers of sensor_msgs/PointField. */
enum voxeld_dtype {
    VOXELD_DTYPE_UNSPECIFIED = 0,
    VOXELD_INT8 = 1,
    VOXELD_UINT8 = 2,
    VOXELD_INT16 = 3,
    VOXELD_UINT16 = 4,
    VOXELD_INT32 = 5,
    VOXELD_UINT32 = 6,
    VOXELD_FLOAT32 = 7,
    VOXELD_FLOAT64 = 8,
    VOXELD_INT64 = 9,
    VOXELD_UINT64 = 10,
    VOXELD_FLOAT16 = 11,
    VOXELD_BFLOAT16 = 12
};

/* A typed array: n rows of n_elements numbers, one after the other. An array that goes
 * in is borrowed for the call. */
struct voxeld_array {
    const char *name; /* the name of a value array of a map; other arrays need none */
    enum voxeld_dtype dtype;
    const void *data;
    size_t n;
    size_t n_elements; /* 0 counts as 1 */
};

/* One number of a point record; value = raw * scale + bias. */
struct voxeld_field {
    const char *name; /* "x", "y", "z" give the position; others are free */
    uint32_t offset;  /* bytes from the start of the record */
    enum voxeld_dtype dtype;
    double scale; /* 0 counts as 1 */
    double bias;
    uint32_t count; /* 0 counts as 1; fields of several numbers are carried unread */
};

/* p_parent = R(rotation) * p_child + translation_m. All zero: the identity. */
struct voxeld_pose {
    double translation_m[3];
    double rotation[4]; /* unit quaternion (x, y, z, w); all zero: none */
};

/* An earlier sweep of the same sensor; its points follow the cloud's. */
struct voxeld_sweep {
    const struct voxeld_field *fields; /* n_fields 0: the cloud's layout */
    size_t n_fields;
    uint32_t point_step;
    const void *data; /* n_points * point_step bytes */
    size_t n_points;
    struct voxeld_pose T_cloud_sweep;
    double dt_s; /* readable as the feature "dt" */
};

/* Points as a sensor has them. A ROS PointCloud2's fields, point_step and data go in
 * verbatim. */
/* The motion of a sensor during its scan, at constant velocity, from the cloud's
 * T_map_sensor. */
struct voxeld_deskew {
    struct voxeld_pose T_map_sensor_end;
    const char *time_field; /* with the points' times; NULL: "t" */
    double start;           /* of the scan, in the field's unit; both 0: the least and */
    double end;             /* the greatest time of the points */
};

/* low <= p < high, metres. */
struct voxeld_body_box {
    double low[3];
    double high[3];
};

/* The robot's own body, whose points are left out of a cloud and its sweeps before anything else
 * is done with them, where the sensor measured them. */
struct voxeld_body {
    double min_range_m;                  /* points nearer to the sensor; 0: none */
    const struct voxeld_body_box *boxes; /* points in any of them */
    size_t n_boxes;                      /* at most 32 */
    struct voxeld_pose
        T_base_sensor; /* boxes are in the base's frame; zeros: the sensor's */
};

struct voxeld_cloud {
    const struct voxeld_field *fields;
    size_t n_fields;
    uint32_t point_step; /* bytes a record, 1 to 65535 */
    const void *data;    /* n_points * point_step bytes */
    size_t n_points;
    int64_t stamp_ns;     /* echoed */
    const char *frame_id; /* echoed; NULL: none */
    struct voxeld_pose T_map_sensor;
    const struct voxeld_sweep *sweeps;
    size_t n_sweeps;
    const struct voxeld_deskew *deskew; /* NULL: the sensor stood; goes without sweeps */
    const struct voxeld_body *body;     /* NULL: the sensor sees nothing of the robot */
};

/* Reads a point cloud file of at most 4 GiB: "pcd", "ply", "npy", "npz", "las" (1.2 to
 * 1.4, not LAZ; classification of point formats 0 to 5 has its three flags in the
 * upper bits), "kitti" (float32 x y z intensity), "nuscenes" (float32 x y z intensity
 * ring). path "-" is standard input. format NULL: by the name's ending; ".bin" can be
 * several formats, so it needs one. Free with voxeld_cloud_free.
 *
 * errors  NOT_FOUND, PERMISSION_DENIED, UNAVAILABLE  the file cannot be opened or read
 *         INVALID_ARGUMENT    no format, an unknown one, a malformed file: what and where
 *         RESOURCE_EXHAUSTED  too large, no memory */
VOXELD_API enum voxeld_status voxeld_cloud_read_file(const char *path, const char *format,
                                                     struct voxeld_cloud **out,
                                                     struct voxeld_error *error);

/* Frees what voxeld_cloud_read_file gave, and nothing else. NULL is fine. */
VOXELD_API void voxeld_cloud_free(struct voxeld_cloud *cloud);

/* Voxelize ---------------------------------------------------------------------------- */

enum voxeld_rule {
    VOXELD_RULE_UNSPECIFIED = 0, /* SPCONV when a range is given, else MINKOWSKI */
    VOXELD_RULE_SPCONV = 1,
    VOXELD_RULE_MINKOWSKI = 2,
    VOXELD_RULE_DOUBLE = 3 /* MINKOWSKI in float64: voxeld/v1/voxelize.proto */
};

enum voxeld_order {
    VOXELD_ORDER_MORTON = 0,
    VOXELD_ORDER_FIRST_POINT = 1
};

/* Bits of voxeld_voxelize_request.reduce. */
enum voxeld_reduce {
    VOXELD_REDUCE_MEAN = 1,
    VOXELD_REDUCE_SUM = 2,
    VOXELD_REDUCE_MIN = 4,
    VOXELD_REDUCE_MAX = 8,
    VOXELD_REDUCE_FIRST = 16
};

/* Bits of voxeld_voxelize_request.outputs. */
enum voxeld_output {
    VOXELD_OUTPUT_COORDS = 1,
    VOXELD_OUTPUT_COUNTS = 2,
    VOXELD_OUTPUT_INVERSE = 4,
    VOXELD_OUTPUT_POINTS = 8, /* needs max_points and max_voxels */
    VOXELD_OUTPUT_FIRST_INDEX = 16
};

/* Adds the voxels to a named map (voxeld_map.h) as well: its keys are their (x, y, z), its
 * array "count" (uint64) and, with features, "sum" (float64, an element a channel)
 * accumulate: a running map of a drive. Such a request changes something: see voxeld_call.
 * Goes with the MINKOWSKI rule, without max_points and max_voxels. */
struct voxeld_merge {
    const char *map; /* NULL: no map */
    bool create;     /* makes a missing map with this request's size, origin, channels;
                      * else NOT_FOUND. A map that differs in these: FAILED_PRECONDITION */
    double ttl_s; /* of a map that is made: dropped when unused for so long; 0 = never */
    uint64_t max_bytes; /* of a map that is made; 0: what the server's limits give */
};

struct voxeld_voxelize_request {
    const struct voxeld_cloud *clouds; /* one a batch item, 1 to 1024 */
    size_t n_clouds;
    double size_m[3]; /* voxel edge per axis; required */
    bool has_range;
    double range_low_m[3];
    double range_high_m[3];
    enum voxeld_rule rule;
    enum voxeld_order order;
    double origin_m[3];          /* map position of the lattice's zero */
    const char *const *features; /* n_features 0: x, y, z and all other fields */
    size_t n_features;
    bool no_features;    /* coordinates and counts only */
    uint32_t reduce;     /* 0: VOXELD_REDUCE_MEAN */
    uint32_t outputs;    /* 0: COORDS | COUNTS */
    uint32_t max_points; /* kept a voxel, 0 = all */
    uint32_t max_voxels; /* kept an item, 0 = all */
    struct voxeld_merge merge;
    struct voxeld_call call;
};

/* The outcome of one cloud. n_points = n_used + the four counts of dropped points. */
struct voxeld_item {
    int64_t stamp_ns;
    const char *frame_id;
    uint64_t n_points;
    uint64_t n_used;
    uint64_t n_non_finite;
    uint64_t n_out_of_range;
    uint64_t n_over_max_voxels;
    uint64_t n_over_max_points;
    size_t first_voxel; /* this item's voxels: n_voxels rows from here */
    size_t n_voxels;
    size_t first_point; /* this item's rows of inverse: n_points from here */
};

/* m voxels of all items, item by item. Arrays that were not asked for are NULL; so are all of
 * them, and perhaps items, where arrays_dropped says so. All pointers live until the struct
 * is freed. */
struct voxeld_voxels {
    size_t n_voxels;   /* m */
    size_t n_points;   /* n, over all items */
    size_t n_channels; /* C */
    size_t max_points; /* P, of points */
    const struct voxeld_item *items;
    size_t n_items;
    const int32_t *coords;       /* m x 4: item, x, y, z */
    const uint32_t *counts;      /* m */
    const int32_t *inverse;      /* n: voxel of each point, -1 = dropped */
    const float *mean;           /* m x C */
    const float *sum;            /* m x C */
    const float *min;            /* m x C */
    const float *max;            /* m x C */
    const float *first;          /* m x C */
    const float *points;         /* m x P x C, zero padded */
    const uint32_t *first_index; /* m */
    const char *const *features; /* C names */
    /* Low corner of voxel (x, y, z) in the map frame: origin_m + low_m + (x, y, z) * size_m. */
    double size_m[3];
    double origin_m[3];
    double low_m[3];
    enum voxeld_rule rule; /* the rule that was used */
    int32_t grid[3];       /* cells per axis; zero under MINKOWSKI */
    double engine_ms;      /* in the engine, copies included */
    double queue_ms;       /* waiting time at the server */
    double total_ms;       /* at the server, from arrival to reply */
    const char *request_id;
    uint64_t n_merged;      /* with merge: entries that the merge made ... */
    uint64_t n_map_entries; /* ... and that the map has now */
    bool replayed; /* the outcome of an earlier call with this sequence: voxeld_call */
    bool arrays_dropped; /* the server remembered only the counts of that earlier call */
};

/* Groups points by voxel. Sizes are checked against the server's limit before anything is
 * sent. Free with voxeld_voxels_free. */
VOXELD_API enum voxeld_status
voxeld_voxelize(struct voxeld_client *client,
                const struct voxeld_voxelize_request *request, struct voxeld_voxels **out,
                struct voxeld_error *error);
VOXELD_API void voxeld_voxels_free(struct voxeld_voxels *voxels);

/* Asynchronous calls ------------------------------------------------------------------ */

/* error is NULL when voxels is not. The callback owns voxels; error lives until it returns.
 * It may start new calls and must not close the client. */
typedef void (*voxeld_voxels_callback)(void *context, struct voxeld_voxels *voxels,
                                       const struct voxeld_error *error);

/* Starts and returns at once. When the result is OK, the callback is called exactly once,
 * from voxeld_dispatch (or voxeld_close); otherwise never. Everything *request points to
 * stays borrowed until then. With VOXELD_NO_WAIT, sizes are checked against the server's
 * limit only after a synchronous call has learned it. */
VOXELD_API enum voxeld_status voxeld_voxelize_async(
    struct voxeld_client *client, const struct voxeld_voxelize_request *request,
    voxeld_voxels_callback callback, void *context, struct voxeld_error *error);

/* A descriptor that becomes readable when voxeld_dispatch has work, for poll or epoll
 * (level-triggered). It belongs to the client: do not read or close it. */
VOXELD_API int voxeld_fd(struct voxeld_client *client);

/* Calls the callbacks of calls that have ended, on this thread. Waits up to timeout_ms
 * for the first one: 0 = not at all, < 0 = as long as calls are in flight. Returns how
 * many it called. */
VOXELD_API size_t voxeld_dispatch(struct voxeld_client *client, int timeout_ms);

#ifdef __cplusplus
}
#endif

/* Backups, distance fields, named hash maps, meshes, networks, pictures, pose graphs, scenes,
 * short-lived tokens, volumes, watching, and why requests were refused. */
#include "voxeld_backup.h"
#include "voxeld_field.h"
#include "voxeld_map.h"
#include "voxeld_mesh.h"
#include "voxeld_net.h"
#include "voxeld_odometry.h"
#include "voxeld_posegraph.h"
#include "voxeld_render.h"
#include "voxeld_scene.h"
#include "voxeld_slac.h"
#include "voxeld_token.h"
#include "voxeld_volume.h"
#include "voxeld_watch.h"
#include "voxeld_why.h"

#endif
