// SPDX-License-Identifier: Apache-2.0
/* What the files of the rpc transport share; nobody else includes this. */
#ifndef VXD_SERVER_TRANSPORT_NNG_RPC_INTERNAL_H
#define VXD_SERVER_TRANSPORT_NNG_RPC_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "gpu/core/core.h"
#include "proto/base/name.h"
#include "proto/wire/wire.h"
#include "server/request/request.h"
#include "server/transport/tls/tls.h"
#include "voxeld/v1/rpc.pb-c.h"

/* What is read before a message has memory of its own. */
#define VXD_RPC_HEAD_BYTES 16384
/* The envelope's header comes on top of the largest body. */
#define VXD_RPC_ENVELOPE_BYTES 65536u

struct vxd_rpc_listener {
    int fd;
    bool is_ipc;
    bool is_tls;
    char path[VXD_PATH_BYTES]; /* of an ipc socket, removed at the end; "" otherwise */
};

/* A message of a peer, from its first byte until its request is done with it. Its bytes are the
 * route and the body; they begin at a multiple of 16, so that with a route of one word the body
 * begins where VXD_RPC_ORIGIN says. */
struct vxd_rpc_message {
    uint8_t *bytes;
    size_t n_bytes;
    size_t n_there;
    int64_t began_ns; /* when its first byte came */
    /* Where the body lies in shared memory, as the header says; region NULL: in the message. */
    struct vxd_rpc_shared {
        struct vxd_shared_region *region;
        uint64_t offset;
        uint64_t n_bytes;
        uint64_t reply_offset;
        uint64_t reply_bytes;
        struct vxd_upload_memory body; /* the copy of it */
    } shared;
    struct vxd_upload_memory
        memory; /* holds the bytes; empty: they stand behind the struct */
    struct vxd_server *server;
    struct vxd_sp_route route;
    struct vxd_rpc_connection *connection; /* with a reference */
    struct vxd_request *request; /* from submit until its reply; guarded by the lock */
    uint32_t tag;                /* of the method */
    bool is_open; /* in the connection's list, as the next two; guarded by its lock */
    struct vxd_rpc_message *next;
    struct vxd_rpc_message *previous;
};

/* A reply that was not sent yet, or not wholly. */
struct vxd_rpc_reply {
    struct vxd_rpc_reply *next;
    size_t n_bytes; /* with its head and route */
    size_t n_sent;
    uint8_t *bytes;
    struct vxd_buffer block; /* holds the bytes; empty: they stand behind the struct */
    struct vxd_context *context;
};

enum vxd_rpc_phase {
    VXD_RPC_HANDSHAKE, /* of TLS */
    VXD_RPC_GREETING,
    VXD_RPC_HEAD,   /* between messages, or at the begin of one */
    VXD_RPC_BODY,   /* the rest of a large one */
    VXD_RPC_DISCARD /* the rest of one that was refused */
};

/* One peer. Its loop reads; whoever has a reply writes, or leaves the writing to the loop. It
 * goes with its last reference: the loop's, and one of each message. */
struct vxd_rpc_connection {
    struct vxd_rpc_loop *loop;
    int fd;
    bool is_ipc;
    char peer[VXD_NAME_BYTES];
    int64_t uid;
    struct vxd_tls_session
        *tls; /* NULL: its bytes are in the clear. Used under the lock */
    atomic_int references;

    /* The loop's alone. */
    enum vxd_rpc_phase phase;
    bool wants_write;              /* VXD_RPC_HANDSHAKE */
    struct vxd_tls_peer certified; /* who the peer's certificate says it is */
    uint8_t *head;
    size_t n_head;
    struct vxd_rpc_message *message; /* VXD_RPC_BODY */
    uint64_t n_discard;              /* VXD_RPC_DISCARD: bytes to come */
    uint64_t n_discarded;            /* of this message */
    size_t n_turn;                   /* messages run in this turn */
    int64_t began_ns;   /* this greeting or message; 0: nothing is under way */
    int64_t moved_ns;   /* when bytes of it came last */
    uint64_t n_arrived; /* of it */
    uint32_t interest;  /* epoll's events */
    struct vxd_rpc_connection *next;
    struct vxd_rpc_connection *previous;

    /* Guarded by the lock. */
    pthread_mutex_t lock;
    struct vxd_rpc_reply *replies; /* unsent, the first one perhaps in part */
    struct vxd_rpc_reply **last_reply;
    size_t unsent_bytes;
    int64_t unsent_began_ns;      /* when replies began to wait */
    uint64_t n_sent;              /* bytes since then */
    int64_t unsent_since_ns;      /* that nothing has moved */
    struct vxd_rpc_message *open; /* requests without a reply */
    size_t n_open;
    bool waits_for_replies; /* nothing is read until some have gone */
    bool waits_for_turn;    /* its head memory has more, after the other connections */
    bool is_broken;         /* writing failed */
    bool is_closed;
    bool is_noted; /* in the loop's list of those to look at */
    struct vxd_rpc_connection *next_noted;
};

/* A thread that reads from its connections and writes what others could not. */
struct vxd_rpc_loop {
    struct vxd_rpc *rpc;
    pthread_t thread;
    bool is_running;
    int epoll_fd;
    int wake_fd;
    struct vxd_rpc_connection *connections; /* its thread's alone */
    bool has_listeners;
    int64_t listeners_pause_until_ns; /* 0: they are not paused */

    pthread_mutex_t lock;
    struct vxd_rpc_connection *fresh; /* accepted, not yet watched */
    struct vxd_rpc_connection *noted;
};

#define VXD_RPC_MAX_LOOPS 8

struct vxd_rpc {
    struct vxd_server *server;
    struct vxd_rpc_listener listeners[VXD_CONFIG_MAX_LISTEN];
    size_t n_listeners;
    /* Beside them, those of shared memory: only their paths, the sockets belong to `shared`. */
    struct vxd_rpc_listener shared_listeners[VXD_CONFIG_MAX_LISTEN];
    size_t n_shared_listeners;
    struct vxd_shared *shared; /* NULL: nobody can share memory */
    struct vxd_rpc_loop loops[VXD_RPC_MAX_LOOPS];
    size_t n_loops;
    size_t next_loop; /* the first loop's thread's alone */
    size_t max_open;  /* requests of one connection under way */
    atomic_bool refusing;
    atomic_bool stopping;
    atomic_size_t n_connections;
    atomic_size_t n_open;       /* requests whose reply is not wholly sent */
    atomic_size_t n_unanswered; /* of them, those whose reply was not handed over */
    atomic_uint_fast64_t unsent_bytes;   /* of all replies that wait for their peers */
    atomic_uint_fast64_t arriving_bytes; /* of messages that are not complete */
};

/* rpc_listen.c */

/* One listener.
 * in      url    one of config->rpc
 * out     bound  the URL with the port really bound, VXD_PATH_BYTES
 * errors  INVALID_ARGUMENT  the URL, or what stands at the socket's path is no socket
 *         UNAVAILABLE       in use, or cannot be bound; names it
 *         NOT_FOUND         the socket's directory cannot be made */
enum vxd_status vxd_rpc_listen(const struct vxd_config *config, const char *url,
                               struct vxd_rpc_listener *out, char *bound,
                               struct vxd_err *err);
/* The socket beside an ipc socket where its clients share memory. The listener is empty for
 * other URLs, and where the path would be too long. Errors as of vxd_rpc_listen. */
enum vxd_status vxd_rpc_listen_shared(const struct vxd_config *config, const char *url,
                                      struct vxd_rpc_listener *out, struct vxd_err *err);
void vxd_rpc_unlisten(struct vxd_rpc_listener *listener);

/* Sets what this kind of socket wants, and finds who is at the other end: "ipc pid 4711" or
 * "tcp 10.0.0.7:4242", and its uid (-1 where it is unknown). */
void vxd_rpc_set_up_peer(int fd, bool is_ipc, char name[VXD_NAME_BYTES], int64_t *uid);

/* rpc_loop.c */

enum vxd_status vxd_rpc_loop_start(struct vxd_rpc_loop *loop, struct vxd_err *err);
/* Ends the thread and closes its connections. Harmless on one that was not started. */
void vxd_rpc_loop_stop(struct vxd_rpc_loop *loop);
/* Asks the loop to look at a connection; its lock is held. */
void vxd_rpc_note(struct vxd_rpc_connection *connection);

/* rpc_connection.c; all on the loop's thread */

/* Takes the descriptor; NULL where memory is short, and then it is closed. */
struct vxd_rpc_connection *
vxd_rpc_connection_create(struct vxd_rpc_loop *loop, int take_fd,
                          const struct vxd_rpc_listener *listener);
/* Reads what is there, up to a share, and runs what is complete. False: close it. */
bool vxd_rpc_connection_read(struct vxd_rpc_connection *connection);
/* Goes on after replies have gone. False: close it. */
bool vxd_rpc_connection_resume(struct vxd_rpc_connection *connection);
/* Ends it: its open requests are cancelled. */
void vxd_rpc_connection_close(struct vxd_rpc_connection *connection);
void vxd_rpc_connection_drop(struct vxd_rpc_connection *connection);

/* rpc_stream.c: the bytes of a connection. All but send, which is called with the lock held, are on
 * the loop's thread, without the lock. */

/* Greets the peer, or prepares the handshake that comes before. False: no memory. */
bool vxd_rpc_stream_create(struct vxd_rpc_connection *connection, bool is_tls);
/* Goes on with the handshake, after which the phase is VXD_RPC_GREETING. False: it failed. */
bool vxd_rpc_stream_shake_hands(struct vxd_rpc_connection *connection);
/* Whether the peer's certificate is accepted by the files of now; sets `certified`. */
bool vxd_rpc_stream_is_accepted(struct vxd_rpc_connection *connection);
/* As recv(2) and send(2) of a socket that does not block; see vxd_tls_session_send. */
ssize_t vxd_rpc_stream_recv(struct vxd_rpc_connection *connection, void *bytes,
                            size_t n_bytes);
ssize_t vxd_rpc_stream_send(struct vxd_rpc_connection *connection, const void *bytes,
                            size_t n_bytes);
/* Whether there are bytes for which the socket will not wake us. */
bool vxd_rpc_stream_has_more(struct vxd_rpc_connection *connection);
/* Closes the descriptor; with the lock held. */
void vxd_rpc_stream_close(struct vxd_rpc_connection *connection);

/* rpc_send.c; from any thread */

/* Sends a reply, or leaves it to the loop; takes it. NULL (no memory even for an error) ends the
 * connection, so that its peer does not wait. */
void vxd_rpc_send(struct vxd_rpc_connection *connection,
                  struct vxd_rpc_reply *take_reply);
/* Sends what waits, up to what the socket takes. False: the connection is broken. The lock is
 * held. */
bool vxd_rpc_flush(struct vxd_rpc_connection *connection);
void vxd_rpc_reply_free(struct vxd_rpc_reply *reply);

/* rpc_message.c */

/* Memory for a message of so many bytes; NULL when there is none. */
struct vxd_rpc_message *vxd_rpc_message_create(struct vxd_rpc_connection *connection,
                                               size_t n_bytes);
/* Also gives back its connection's reference. */
void vxd_rpc_message_destroy(struct vxd_rpc_message *message);
/* Takes a message out of its connection's open requests, where it is in; the connection's lock is
 * held. */
void vxd_rpc_message_unlink(struct vxd_rpc_message *message);
/* Runs a complete message whose route was read; takes it. */
void vxd_rpc_message_run(struct vxd_rpc_message *take_message);
/* Whether the sender of a large message may send it at all, by its first bytes.
 * errors  UNAUTHENTICATED; RESOURCE_EXHAUSTED (too large); INVALID_ARGUMENT (its header does
 *         not stand within the first VXD_RPC_HEAD_BYTES) */
enum vxd_status vxd_rpc_message_check(struct vxd_rpc_connection *connection,
                                      const uint8_t *body, size_t n_there, size_t n_bytes,
                                      char request_id[VXD_NAME_BYTES],
                                      struct vxd_err *err);
/* The reply to a message that has no request. */
struct vxd_rpc_reply *vxd_rpc_pack_error(struct vxd_rpc_connection *connection,
                                         const struct vxd_sp_route *route,
                                         const char *request_id,
                                         const struct vxd_err *why);

/* rpc_reply.c */

/* What a reply says about its request. */
struct vxd_rpc_answer {
    uint64_t shared_bytes; /* > 0: the output was written to shared memory */
    const char *request_id;
    const struct vxd_err *err;      /* code VXD_OK, or why there is no output */
    const ProtobufCMessage *output; /* NULL unless OK */
    uint32_t tag;                   /* of the method, in Response */
    bool replayed;                  /* see ResponseHeader */
    bool arrays_dropped;
    double queue_ms;
    double total_ms;
    const struct vxd_stage_times *stages; /* NULL: of no request, as the next one */
    const struct vxd_trace *trace;
};

/* A Response with its head and route; NULL when memory ran out. Its big data are copied by the
 * context's pool. */
struct vxd_rpc_reply *vxd_rpc_pack(struct vxd_context *context, bool is_ipc,
                                   const struct vxd_sp_route *route,
                                   const struct vxd_rpc_answer *answer);

/* rpc_shared.c: bodies in memory that a client shares */

/* Holds the region that the header names and checks what the header says about it; *envelope
 * then has the body's size, and its bytes are there after vxd_rpc_shared_copy. Does nothing for
 * a header that names none.
 * errors  INVALID_ARGUMENT     not over ipc, a body here as well, or a place outside the region
 *         FAILED_PRECONDITION  no such region */
enum vxd_status vxd_rpc_shared_open(struct vxd_rpc_message *message,
                                    const Voxeld__V1__SharedBody *shared,
                                    struct vxd_envelope *envelope, struct vxd_err *err);
/* Copies the body out of the region, for a request that was admitted.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_rpc_shared_copy(struct vxd_rpc_message *message,
                                    struct vxd_envelope *envelope, struct vxd_err *err);
/* Writes the output to where the client wants it. 0: it is small, or does not fit. */
uint64_t vxd_rpc_shared_reply(struct vxd_rpc_message *message,
                              const ProtobufCMessage *output);
void vxd_rpc_shared_close(struct vxd_rpc_message *message);

#endif
