// SPDX-License-Identifier: Apache-2.0
/* A viewer: what it knows of scenes and volumes, its channels and subscriptions. */
#ifndef VXD_SERVER_TRANSPORT_FOXGLOVE_VIEWER_INTERNAL_H
#define VXD_SERVER_TRANSPORT_FOXGLOVE_VIEWER_INTERNAL_H

#include <pthread.h>

#include "server/instance/instance.h"
#include "server/service/watch/watch.h"
#include "server/transport/foxglove/foxglove_internal.h"
#include "voxeld/v1/watch.pb-c.h"

/* Channels of a thing at most, those of a scene. */
#define VXD_FOX_MOST_CHANNELS 7
/* The ids of the transforms and of the log; others follow. */
#define VXD_FOX_TRANSFORMS_ID 1
#define VXD_FOX_LOG_ID 2
#define VXD_FOX_MOST_FRAME 64

enum vxd_fox_kind {
    VXD_FOX_SCENE,
    VXD_FOX_VOLUME,
    VXD_FOX_POSEGRAPH,
    VXD_FOX_ODOMETRY,
    VXD_FOX_N_KINDS
};

struct vxd_fox_thing {
    enum vxd_fox_kind kind;
    bool is_there; /* in the list that is being read */
    char name[VXD_NAME_BYTES];
    char frame[VXD_FOX_MOST_FRAME]; /* that its place is in */
    Voxeld__V1__Vec3 origin;
    bool has_place;
    uint64_t generation;
    /* The newest; of a volume its stamp, of a pose graph also how much is in it, of an odometry how often
     * it was seen to have changed. */
    uint64_t version;
    int64_t changed_ns;
    int64_t created_ns;
    uint32_t first_id; /* of its channels */
    /* Of a scene and an odometry: where the sensor of the newest scan was; not known where that is 0. */
    int64_t sensor_ns;
    double place[3];
    double turn[4];   /* x, y, z, w */
    uint64_t n_scans; /* of an odometry */
};

struct vxd_fox_subscription {
    uint32_t id;
    uint32_t channel;
    bool is_sent; /* the version below */
    bool failed;  /* and is to be tried again */
    uint64_t generation;
    uint64_t version;
    uint32_t level; /* of a scene, so that it fits */
    /* Of a volume: its surface as it was sent, in parts of so many blocks (0: of the usual number). */
    uint32_t n_parts;
    uint32_t part_blocks;
    uint64_t stamp; /* up to which it was sent whole; 0: it was not */
    int64_t began_ns;
    int64_t
        rests_until_ns; /* as long as sending took, so that the volume has time for others */
};

/* Requests that a viewer has under way, one of each kind at most. */
enum vxd_fox_work {
    VXD_FOX_HEADS,        /* the watch on all scenes */
    VXD_FOX_VOLUME_HEADS, /* the watch on all volumes */
    VXD_FOX_DATA,         /* lists, and what subscriptions get */
    VXD_FOX_N_WORK
};

/* What the request for data is for. */
enum vxd_fox_job_kind {
    VXD_FOX_NOTHING,
    VXD_FOX_LIST_SCENES,
    VXD_FOX_LIST_VOLUMES,
    VXD_FOX_LIST_POSEGRAPHS,
    VXD_FOX_LIST_ODOMETRIES,
    VXD_FOX_EXPORT,
    VXD_FOX_COSTMAP,
    VXD_FOX_MESH,
    VXD_FOX_GRAPH, /* a pose graph's poses or edges */
    VXD_FOX_RENDER /* a picture or a planar scan */
};

struct vxd_fox_job {
    enum vxd_fox_job_kind kind;
    enum vxd_foxglove_schema schema;
    uint32_t channel;
    uint32_t subscription;
    char name[VXD_NAME_BYTES];
    uint64_t generation;
    uint64_t version; /* as it was known when the request was made */
    int64_t changed_ns;
    uint32_t level;
    bool goes_on;  /* a mesh: there is more to ask for */
    bool is_check; /* whether the part has changed since */
    uint32_t part;
    uint32_t part_blocks;
    uint64_t first;                 /* block of the part */
    uint64_t since;                 /* stamp of what the viewer has; 0: nothing */
    uint64_t stamp;                 /* of what it is sent; 0: not known yet */
    char frame[VXD_FOX_MOST_FRAME]; /* of a picture and of a planar scan ... */
    double place[3];                /* ... which is from here */
};

struct vxd_foxglove {
    struct vxd_server *server;
    atomic_int references; /* the exchange's and its requests' */
    char token[VXD_TOKEN_BYTES];
    char certified[VXD_NAME_BYTES];
    char traceparent[VXD_TRACEPARENT_BYTES];
    char peer[VXD_NAME_BYTES];
    int64_t peer_uid;
    size_t max_bytes;
    struct vxd_watch_place place;

    pthread_mutex_t lock;      /* guards the rest */
    struct vxd_socket *socket; /* held; NULL before it is open */
    bool is_gone;
    struct vxd_request *work[VXD_FOX_N_WORK]; /* held */
    struct vxd_fox_job job;
    Voxeld__V1__WatchPoint after;
    bool has_after;
    bool must_list_scenes;
    int64_t
        listed_ns[VXD_FOX_N_KINDS]; /* when things of a kind were listed last; 0: never */
    Voxeld__V1__WatchPoint volumes_after;
    bool has_volumes_after;
    bool must_list_volumes;
    int64_t volumes_ns; /* they are not watched before, since that has failed */
    struct vxd_fox_thing *things;
    size_t n_things;
    size_t capacity;
    uint32_t next_id;
    uint64_t transforms_version;
    struct vxd_fox_subscription subscriptions[VXD_FOXGLOVE_MOST_SUBSCRIPTIONS];
    size_t n_subscriptions;
    size_t turn; /* of the subscriptions, whose turn it is */
};

/* --- channels.c: all with the lock held ------------------------------------------------------ */

/* The thing of this name, made where make is set; NULL where there is none, or no memory. */
struct vxd_fox_thing *vxd_fox_thing_find(struct vxd_foxglove *viewer,
                                         enum vxd_fox_kind kind, const char *name,
                                         bool make);
/* Takes the thing away, its channels and their subscriptions, and says so. */
void vxd_fox_thing_remove(struct vxd_foxglove *viewer, size_t index);
/* A list of all things of a kind: between these, those that are in it are marked as there. Things that are
 * new since n_before are advertised, and those that are not there taken away. */
size_t vxd_fox_list_begin(struct vxd_foxglove *viewer, enum vxd_fox_kind kind);
void vxd_fox_list_end(struct vxd_foxglove *viewer, size_t n_before);
/* The thing behind a channel, and which of its channels that is; NULL where there is none. */
struct vxd_fox_thing *vxd_fox_thing_of(struct vxd_foxglove *viewer, uint32_t channel,
                                       uint32_t *which);
/* Which schema a channel of a thing has. */
enum vxd_foxglove_schema vxd_fox_schema_of(const struct vxd_fox_thing *thing,
                                           uint32_t which);
void vxd_fox_send_server_info(struct vxd_foxglove *viewer);
/* Whether somebody has subscribed to a thing of this kind. */
bool vxd_fox_watches(struct vxd_foxglove *viewer, enum vxd_fox_kind kind);
/* Says which channels there are: the transforms' and those of things from this index on. */
void vxd_fox_advertise(struct vxd_foxglove *viewer, bool with_transforms, size_t from);
/* level: 0 information, 1 warning, 2 error. */
void vxd_fox_send_status(struct vxd_foxglove *viewer, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void vxd_fox_subscribe(struct vxd_foxglove *viewer,
                       const struct vxd_foxglove_command *command);
void vxd_fox_unsubscribe(struct vxd_foxglove *viewer,
                         const struct vxd_foxglove_command *command);

/* --- sensor_work.c: with the lock held -------------------------------------------------------- */

/* Whether a schema's messages depend on where a sensor was. */
bool vxd_fox_needs_sensor(enum vxd_foxglove_schema schema);
/* Takes the sensor's pose, NULL: none is known. */
void vxd_fox_take_sensor(struct vxd_fox_thing *thing, const Voxeld__V1__Pose *pose,
                         int64_t sensor_ns);
/* Writes the request of a picture or a planar scan, for the job. False: there is none to make, as
 * no sensor is known. */
bool vxd_fox_ask_render(struct vxd_fox_job *job, const struct vxd_fox_thing *thing,
                        char *body, size_t capacity);
/* Appends the message of its reply.
 * errors  INTERNAL, RESOURCE_EXHAUSTED (larger than max_bytes) */
enum vxd_status vxd_fox_take_render(const struct vxd_fox_job *job,
                                    const Voxeld__V1__SceneRenderResponse *output,
                                    size_t max_bytes, struct vxd_text *text,
                                    struct vxd_err *err);
/* Appends the pose of the thing's sensor. False: none is known. */
bool vxd_fox_append_pose(const struct vxd_fox_thing *thing, struct vxd_text *text);

/* --- volume_work.c: with the lock held --------------------------------------------------------- */

/* Completes the job of a volume's surface: what has changed of what was sent, or all. */
void vxd_fox_begin_mesh(struct vxd_fox_subscription *s, struct vxd_fox_job *job);
/* Writes the next request of the job. */
void vxd_fox_ask_mesh(const struct vxd_fox_job *job, char *body, size_t capacity);
/* Appends the message of its reply, if one is due: a part that has changed. While the job goes on
 * there is more to ask for. A part of more than max_bytes makes all parts smaller.
 * errors  INTERNAL, RESOURCE_EXHAUSTED (a block of more than max_bytes) */
enum vxd_status vxd_fox_take_mesh(struct vxd_fox_job *job, struct vxd_fox_subscription *s,
                                  const Voxeld__V1__VolumeExtractResponse *output,
                                  size_t max_bytes, struct vxd_text *text,
                                  struct vxd_err *err);

/* --- pose_work.c: with the lock held ------------------------------------------------------------ */

/* Takes what there is of a list. */
void vxd_fox_take_posegraphs(struct vxd_foxglove *viewer,
                             const Voxeld__V1__PosegraphListResponse *output);
void vxd_fox_take_odometries(struct vxd_foxglove *viewer,
                             const Voxeld__V1__OdometryListResponse *output);
/* Writes the request of a pose graph's poses, or edges. */
void vxd_fox_ask_graph(struct vxd_fox_job *job, char *body, size_t capacity);
/* Appends the message of its reply.
 * errors  INTERNAL, RESOURCE_EXHAUSTED (edges of more than max_bytes) */
enum vxd_status vxd_fox_take_graph(const struct vxd_fox_job *job,
                                   const Voxeld__V1__PosegraphReadResponse *output,
                                   size_t max_bytes, struct vxd_text *text,
                                   struct vxd_err *err);

/* --- work.c ----------------------------------------------------------------------------------- */

/* Begins what there is to do. Without the lock. */
void vxd_fox_work_on(struct vxd_foxglove *viewer);

#endif
