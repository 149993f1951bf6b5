// SPDX-License-Identifier: Apache-2.0
/* The list of loaded networks in the data directory: the file "networks", whose first line is
 * "voxeld-networks/1" and every other one a name and a precision: "minkunet42 auto". It is written
 * anew, beside the old one, whenever a call loads or unloads a network. Weights stay where they are. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/observe/log/log.h"
#include "server/instance/instance.h"
#include "server/registry/networks/networks_kept.h"

#define FIRST_LINE "voxeld-networks/1\n"

enum {
    LINE_BYTES = VXD_MODEL_NAME_BYTES + 8 + VXD_NAME_BYTES,
    LIST_BYTES = sizeof FIRST_LINE + (size_t)VXD_NETWORKS_MAX * LINE_BYTES
};

static const struct {
    const char *name;
    int precision;
} precisions[] = {
    {"config", VXD_MODEL_ITS_PRECISION},
    {"auto", VXD_MODEL_AUTO_PRECISION},
    {"fp32", VXD_NET_FP32},
    {"tf32", VXD_NET_TF32},
    {"fp16", VXD_NET_FP16},
    {"bf16", VXD_NET_BF16},
};

enum {
    N_PRECISIONS = sizeof precisions / sizeof precisions[0]
};

static const char *precision_name(int precision)
{
    for (size_t i = 0; i < N_PRECISIONS; i++) {
        if (precisions[i].precision == precision) {
            return precisions[i].name;
        }
    }
    return precisions[0].name;
}

/* Writes the list's text; *n_bytes is its length. */
static enum vxd_status describe(struct vxd_names *networks, char text[LIST_BYTES],
                                size_t *n_bytes, struct vxd_err *err)
{
    struct vxd_named **held;
    size_t at = (size_t)snprintf(text, LIST_BYTES, "%s", FIRST_LINE);
    size_t n;
    enum vxd_status status = vxd_names_hold_all(networks, &held, &n, err);

    for (size_t i = 0; i < n; i++) {
        const struct vxd_network *network = (const struct vxd_network *)held[i];
        const char *owner = network->named.terms.owner;

        if (i < VXD_NETWORKS_MAX) {
            at += (size_t)snprintf(text + at, LIST_BYTES - at, "%s %s%s%s\n",
                                   network->named.terms.name,
                                   precision_name(network->wished_precision),
                                   owner[0] != '\0' ? " " : "", owner);
        }
        vxd_named_let_go(held[i], NULL);
    }
    free(held);
    *n_bytes = at;
    return status;
}

static enum vxd_status write_file(const struct vxd_data_dir *dir, const char *path,
                                  const char *text, size_t n_bytes, struct vxd_err *err)
{
    const struct vxd_file_ops *ops = dir->ops;
    int file = ops->open(ops->user, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    enum vxd_status status;
    int result;

    if (file < 0) {
        return vxd_file_fail(err, file, "make", path);
    }
    VXD_TRY(vxd_file_write_all(ops, file, text, n_bytes, 0, path, err));
    result = ops->sync(ops->user, file);
    if (result < 0) {
        status = vxd_file_fail(err, result, "sync", path);
    }
out:
    (void)ops->close(ops->user, file);
    return status;
}

enum vxd_status vxd_networks_write_list(struct vxd_names *networks,
                                        const struct vxd_data_dir *dir,
                                        struct vxd_err *err)
{
    char path[VXD_DURABLE_PATH_BYTES];
    char beside[VXD_DURABLE_PATH_BYTES];
    char text[LIST_BYTES];
    size_t n_bytes;
    enum vxd_status status;
    int result;

    VXD_TRY(describe(networks, text, &n_bytes, err));
    (void)snprintf(path, sizeof path, "%s/networks", dir->path);
    (void)snprintf(beside, sizeof beside, "%s/networks.new", dir->path);
    VXD_TRY(write_file(dir, beside, text, n_bytes, err));
    result = dir->ops->rename(dir->ops->user, beside, path);
    if (result < 0) {
        status = vxd_file_fail(err, result, "rename", beside);
        goto out;
    }
    status = vxd_file_sync_directory(dir->ops, dir->path, err);
out:
    return status;
}

/* Reads the file; 0 bytes where there is none. */
static enum vxd_status read_file(const struct vxd_data_dir *dir, char text[LIST_BYTES],
                                 size_t *n_bytes, struct vxd_err *err)
{
    const struct vxd_file_ops *ops = dir->ops;
    char path[VXD_DURABLE_PATH_BYTES];
    int64_t result;
    int file;

    *n_bytes = 0;
    (void)snprintf(path, sizeof path, "%s/networks", dir->path);
    file = ops->open(ops->user, path, O_RDONLY | O_CLOEXEC, 0);
    if (file == -ENOENT) {
        return VXD_OK;
    }
    if (file < 0) {
        return vxd_file_fail(err, file, "open", path);
    }
    result = ops->read(ops->user, file, text, LIST_BYTES - 1, 0);
    (void)ops->close(ops->user, file);
    if (result < 0) {
        return vxd_file_fail(err, result, "read", path);
    }
    *n_bytes = (size_t)result;
    text[*n_bytes] = '\0';
    if (strncmp(text, FIRST_LINE, sizeof FIRST_LINE - 1) != 0) {
        return vxd_fail(err, VXD_DATA_LOSS, NULL, "%s is no list of networks", path);
    }
    return VXD_OK;
}

/* A line of the list. */
struct kept {
    char name[VXD_MODEL_NAME_BYTES];
    char owner[VXD_NAME_BYTES]; /* "" = none */
    int precision;
};

/* Takes the next word of a line, up to a space; false where it is empty or too long. */
static bool take_word(const char **at, const char *end, char *out, size_t n_out)
{
    const char *space = *at < end ? memchr(*at, ' ', (size_t)(end - *at)) : NULL;
    size_t n = (size_t)((space != NULL ? space : end) - *at);

    if (n == 0 || n >= n_out) {
        return false;
    }
    memcpy(out, *at, n);
    out[n] = '\0';
    *at += n + (space != NULL ? 1 : 0);
    return true;
}

/* Takes one line: "minkunet42 auto planner", the owner being left out where there is none. False
 * where it is none. */
static bool read_line(const char *line, size_t n, struct kept *out)
{
    const char *end = line + n;
    char word[VXD_NAME_BYTES];

    out->owner[0] = '\0';
    if (!take_word(&line, end, out->name, sizeof out->name) ||
        !take_word(&line, end, word, sizeof word) ||
        (line < end && !take_word(&line, end, out->owner, sizeof out->owner))) {
        return false;
    }
    for (size_t i = 0; i < N_PRECISIONS; i++) {
        if (strcmp(word, precisions[i].name) == 0) {
            out->precision = precisions[i].precision;
            return line == end;
        }
    }
    return false;
}

static enum vxd_status load_one(struct vxd_names *networks, struct vxd_queue *queue,
                                const struct kept *kept, struct vxd_err *err)
{
    struct vxd_network *network = vxd_networks_find(networks, kept->name);
    bool existed;
    enum vxd_status status = VXD_OK;

    if (network == NULL) { /* else the configuration has it */
        status = vxd_networks_load(networks, queue, kept->name, kept->precision,
                                   kept->owner, &existed, &network, err);
        if (status == VXD_OK) {
            (void)vxd_named_replace(&network->named, NULL);
            vxd_log(VXD_LOG_INFO, "network loaded again", "network", kept->name, "digest",
                    vxd_model_digest(network->model));
        }
    }
    vxd_network_drop(network);
    return status;
}

enum vxd_status vxd_networks_read_list(struct vxd_names *networks,
                                       const struct vxd_data_dir *dir,
                                       struct vxd_err *err)
{
    const struct vxd_server *server = vxd_networks_server(networks);
    char text[LIST_BYTES];
    const char *line = text + sizeof FIRST_LINE - 1;
    struct vxd_queue *queue = NULL;
    size_t n_bytes;
    enum vxd_status status;

    VXD_TRY(read_file(dir, text, &n_bytes, err));
    if (n_bytes == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_queue_create(server->context, &queue, err));
    while (*line != '\0') {
        size_t n = strcspn(line, "\n");
        struct vxd_err why = {.message = "the line is damaged"};
        struct kept kept;

        if (!read_line(line, n, &kept) ||
            load_one(networks, queue, &kept, &why) != VXD_OK) {
            char shown[LINE_BYTES];

            (void)snprintf(shown, sizeof shown, "%.*s", (int)n, line);
            vxd_log(VXD_LOG_WARNING,
                    "a network that was loaded before the restart cannot be loaded again",
                    "network", shown, "error", why.message);
        }
        line += n + (line[n] == '\n' ? 1 : 0);
    }
out:
    vxd_queue_destroy(queue);
    return status;
}
