// SPDX-License-Identifier: Apache-2.0
#include "client/c/call/shared_slots.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define IPC_PREFIX "ipc://"
#define ANSWER_TIMEOUT_S 1

struct vxd_shared_memory {
    pthread_mutex_t mutex;
    int fd; /* of the connection; -1 once closed */
    uint8_t *bytes;
    size_t n_bytes;
    uint8_t id[VXD_SHARED_ID_BYTES];
    size_t n_users;                /* slots, and 1 until it is closed */
    struct vxd_shared_slot *slots; /* in use, by their offset */
};

static size_t round_up(size_t n_bytes)
{
    return (n_bytes + VXD_SHARED_PAGE_BYTES - 1) / VXD_SHARED_PAGE_BYTES *
           VXD_SHARED_PAGE_BYTES;
}

/* A memfd as the daemon wants it. */
static int make_file(size_t n_bytes)
{
    int fd = memfd_create("voxeld", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd >= 0 &&
        (ftruncate(fd, (off_t)n_bytes) != 0 || fallocate(fd, 0, 0, (off_t)n_bytes) != 0 ||
         fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

/* Connects to the socket beside the ipc socket of the URL; -1 where nobody listens. */
static int connect_beside(const char *url)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval limit = {.tv_sec = ANSWER_TIMEOUT_S};
    int fd;
    int n;

    if (strncmp(url, IPC_PREFIX, strlen(IPC_PREFIX)) != 0) {
        return -1;
    }
    n = snprintf(address.sun_path, sizeof address.sun_path, "%s%s",
                 url + strlen(IPC_PREFIX), VXD_SHARED_SUFFIX);
    if (n < 0 || (size_t)n >= sizeof address.sun_path) {
        return -1;
    }
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd >= 0 &&
        (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0 ||
         setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0 ||
         connect(fd, (const struct sockaddr *)&address, sizeof address) != 0)) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

static bool send_hello(int fd, const char *token, size_t n_bytes, int file)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct vxd_shared_hello hello = {.magic = VXD_SHARED_MAGIC, .n_bytes = n_bytes};
    struct iovec part = {.iov_base = &hello, .iov_len = sizeof hello};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);

    if (strlen(token) >= sizeof hello.token) {
        return false;
    }
    (void)snprintf(hello.token, sizeof hello.token, "%s", token);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof file);
    memcpy(CMSG_DATA(rights), &file, sizeof file);
    return sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)sizeof hello;
}

/* Registers the file at the daemon. */
static enum vxd_status introduce(int fd, const char *token, size_t n_bytes, int file,
                                 struct vxd_shared_answer *answer, struct vxd_err *err)
{
    if (!send_hello(fd, token, n_bytes, file) ||
        recv(fd, answer, sizeof *answer, 0) != (ssize_t)sizeof *answer) {
        return vxd_fail(err, VXD_UNAVAILABLE, "shared_bytes",
                        "the daemon does not answer where memory is shared");
    }
    if (answer->code != VXD_OK) {
        answer->message[sizeof answer->message - 1] = '\0';
        return vxd_fail(err,
                        answer->code <= VXD_UNAUTHENTICATED
                            ? (enum vxd_status)answer->code
                            : VXD_UNKNOWN,
                        "shared_bytes", "%s", answer->message);
    }
    return VXD_OK;
}

enum vxd_status vxd_shared_open(const char *url, const char *token, size_t n_bytes,
                                struct vxd_shared_memory **out, struct vxd_err *err)
{
    struct vxd_shared_memory *memory = calloc(1, sizeof *memory);
    struct vxd_shared_answer answer = {0};
    void *bytes = MAP_FAILED;
    int file = -1;
    enum vxd_status status = VXD_OK;

    *out = NULL;
    if (memory == NULL || pthread_mutex_init(&memory->mutex, NULL) != 0) {
        free(memory);
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory or mutex");
    }
    memory->fd = connect_beside(url);
    if (memory->fd < 0) {
        status = vxd_fail(err, VXD_UNAVAILABLE, "shared_bytes",
                          "nobody listens at %s" VXD_SHARED_SUFFIX, url);
        goto out;
    }
    memory->n_bytes = round_up(n_bytes);
    file = make_file(memory->n_bytes);
    if (file >= 0) {
        bytes = mmap(NULL, memory->n_bytes, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_POPULATE, file, 0);
    }
    if (bytes == MAP_FAILED) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "shared_bytes",
                          "no memory of %zu bytes to share: %s", memory->n_bytes,
                          strerror(errno));
        goto out;
    }
    memory->bytes = bytes;
    VXD_TRY(introduce(memory->fd, token, memory->n_bytes, file, &answer, err));
    memcpy(memory->id, answer.id, sizeof memory->id);
    memory->n_users = 1;
    *out = memory;
out:
    if (file >= 0) {
        (void)close(file); /* the mapping stays */
    }
    if (status != VXD_OK) {
        if (bytes != MAP_FAILED) {
            (void)munmap(bytes, memory->n_bytes);
        }
        if (memory->fd >= 0) {
            (void)close(memory->fd);
        }
        (void)pthread_mutex_destroy(&memory->mutex);
        free(memory);
    }
    return status;
}

/* Gives back one use. The mutex is not held. */
static void drop(struct vxd_shared_memory *memory)
{
    bool is_last;

    (void)pthread_mutex_lock(&memory->mutex);
    is_last = --memory->n_users == 0;
    (void)pthread_mutex_unlock(&memory->mutex);
    if (is_last) {
        while (memory->slots != NULL) { /* abandoned ones */
            struct vxd_shared_slot *next = memory->slots->next;

            free(memory->slots);
            memory->slots = next;
        }
        (void)munmap(memory->bytes, memory->n_bytes);
        (void)pthread_mutex_destroy(&memory->mutex);
        free(memory);
    }
}

void vxd_shared_close(struct vxd_shared_memory *memory)
{
    if (memory != NULL) {
        (void)close(memory->fd);
        memory->fd = -1;
        drop(memory);
    }
}

bool vxd_shared_stands(struct vxd_shared_memory *memory)
{
    struct pollfd polled = {.fd = memory->fd, .events = POLLIN};

    /* The daemon says nothing after its answer: whatever comes is its end. */
    return poll(&polled, 1, 0) == 0;
}

const uint8_t *vxd_shared_id(const struct vxd_shared_memory *memory)
{
    return memory->id;
}

struct vxd_shared_slot *vxd_shared_slot_take(struct vxd_shared_memory *memory,
                                             size_t n_bytes, size_t n_reply_bytes)
{
    struct vxd_shared_slot *slot;
    struct vxd_shared_slot **link = &memory->slots;
    size_t n_all = round_up(n_bytes) + round_up(n_reply_bytes);
    size_t at = 0;

    if (n_bytes > memory->n_bytes || n_reply_bytes > memory->n_bytes - n_bytes ||
        n_all > memory->n_bytes || (slot = calloc(1, sizeof *slot)) == NULL) {
        return NULL;
    }
    (void)pthread_mutex_lock(&memory->mutex);
    for (; *link != NULL && (*link)->offset - at < n_all; link = &(*link)->next) {
        at = (*link)->offset + (*link)->n_bytes + (*link)->n_reply_bytes;
    }
    if (memory->n_bytes - at >= n_all) {
        *slot = (struct vxd_shared_slot){.memory = memory,
                                         .offset = at,
                                         .n_bytes = round_up(n_bytes),
                                         .n_reply_bytes = round_up(n_reply_bytes),
                                         .next = *link};
        *link = slot;
        memory->n_users++;
    } else {
        free(slot);
        slot = NULL;
    }
    (void)pthread_mutex_unlock(&memory->mutex);
    return slot;
}

uint8_t *vxd_shared_slot_request(const struct vxd_shared_slot *slot)
{
    return slot->memory->bytes + slot->offset;
}

uint8_t *vxd_shared_slot_reply(const struct vxd_shared_slot *slot)
{
    return slot->memory->bytes + slot->offset + slot->n_bytes;
}

void vxd_shared_slot_give(struct vxd_shared_slot *slot)
{
    struct vxd_shared_memory *memory;
    struct vxd_shared_slot **link;

    if (slot == NULL) {
        return;
    }
    memory = slot->memory;
    (void)pthread_mutex_lock(&memory->mutex);
    for (link = &memory->slots; *link != slot; link = &(*link)->next) {
    }
    *link = slot->next;
    (void)pthread_mutex_unlock(&memory->mutex);
    free(slot);
    drop(memory);
}

void vxd_shared_slot_abandon(struct vxd_shared_slot *slot)
{
    if (slot != NULL) {
        /* It stays in the list, which keeps its place, and is freed with the region. */
        drop(slot->memory);
    }
}
