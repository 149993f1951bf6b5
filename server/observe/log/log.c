// SPDX-License-Identifier: Apache-2.0
/* A line is built in a fixed buffer and written by one write(2), so lines of different
 * threads never mix and logging cannot fail for want of memory. What does not fit is cut,
 * and the line stays one valid JSON object. */
#include "server/observe/log/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    LINE_BYTES = 4096,
    TAIL_BYTES = 4,      /* space that is always kept for `"}\n` */
    NUMBER_MARK = '\x01' /* first byte of what vxd_log_int and vxd_log_real return */
};

struct line {
    char bytes[LINE_BYTES];
    size_t n_bytes;
};

/* The log sinks: the one piece of process-wide state the daemon has. */
static atomic_int log_level = VXD_LOG_INFO;
static atomic_int audit_fd = -1;
static atomic_bool audit_is_on;
static atomic_uint_fast64_t audit_lost;

static const char *const level_names[] = {"debug", "info", "warning", "error"};

enum vxd_status vxd_log_level_parse(const char *name, enum vxd_log_level *out,
                                    struct vxd_err *err)
{
    for (int i = VXD_LOG_DEBUG; i <= VXD_LOG_ERROR; i++) {
        if (strcmp(name, level_names[i]) == 0) {
            *out = (enum vxd_log_level)i;
            return VXD_OK;
        }
    }
    return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL,
                    "\"%.40s\" is no log level; known: debug, info, warning, error",
                    name);
}

const char *vxd_log_level_name(enum vxd_log_level level)
{
    return level_names[level];
}

enum vxd_log_level vxd_log_get_level(void)
{
    return (enum vxd_log_level)atomic_load_explicit(&log_level, memory_order_relaxed);
}

void vxd_log_set_level(enum vxd_log_level level)
{
    atomic_store_explicit(&log_level, level, memory_order_relaxed);
}

/* Appends all bytes or none, so that an escape is never cut in half. */
static bool append(struct line *line, const char *bytes, size_t n_bytes)
{
    if (n_bytes > LINE_BYTES - TAIL_BYTES - line->n_bytes) {
        return false;
    }
    memcpy(line->bytes + line->n_bytes, bytes, n_bytes);
    line->n_bytes += n_bytes;
    return true;
}

static void append_escaped(struct line *line, const char *s)
{
    for (; *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s;
        char escape[8];
        int n = 0;

        if (c == '"' || c == '\\') {
            n = snprintf(escape, sizeof escape, "\\%c", c);
        } else if (c < 0x20 || c >= 0x7f) {
            /* Bytes above ASCII are written as Latin-1: whatever arrives, the line is
             * valid JSON. */
            n = snprintf(escape, sizeof escape, "\\u%04x", c);
        } else {
            escape[0] = (char)c;
            n = 1;
        }
        if (!append(line, escape, (size_t)n)) {
            return;
        }
    }
}

/* True for what vxd_log_int and vxd_log_real made; a stranger's string that begins with
 * the mark and is no number is written as a string. */
static bool is_number(const char *value)
{
    return value[0] == NUMBER_MARK && value[1] != '\0' &&
           strspn(value + 1, "0123456789+-.e") == strlen(value + 1);
}

static void append_member(struct line *line, const char *key, const char *value)
{
    size_t before = line->n_bytes;
    const char *open = is_number(value) ? "\":" : "\":\"";

    if (!append(line, line->n_bytes > 1 ? ",\"" : "\"", line->n_bytes > 1 ? 2 : 1) ||
        !append(line, key, strlen(key)) || !append(line, open, strlen(open))) {
        line->n_bytes = before;
        return;
    }
    if (is_number(value)) {
        if (!append(line, value + 1, strlen(value + 1))) {
            line->n_bytes = before;
        }
        return;
    }
    append_escaped(line, value);
    /* The space of the tail has the closing quote where the value filled the line. */
    line->bytes[line->n_bytes++] = '"';
}

static void format_time(char *text, size_t n_bytes)
{
    struct timespec now;
    struct tm tm;
    char date[32];

    if (clock_gettime(CLOCK_REALTIME, &now) != 0 || gmtime_r(&now.tv_sec, &tm) == NULL ||
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &tm) == 0) {
        text[0] = '\0';
        return;
    }
    (void)snprintf(text, n_bytes, "%s.%03ldZ", date, now.tv_nsec / 1000000);
}

/* Ends a line and writes it; false where that is not possible. */
static bool write_line(int fd, struct line *line)
{
    size_t written = 0;

    line->bytes[line->n_bytes++] = '}';
    line->bytes[line->n_bytes++] = '\n';
    while (written < line->n_bytes) {
        ssize_t n = write(fd, line->bytes + written, line->n_bytes - written);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        written += (size_t)n;
    }
    return true;
}

static void begin_line(struct line *line)
{
    char time_text[64];

    line->n_bytes = 0;
    (void)append(line, "{", 1);
    format_time(time_text, sizeof time_text);
    append_member(line, "ts", time_text);
}

/* Pairs of key and value, ended by a NULL key. */
static void append_members(struct line *line, const char *key, va_list members)
{
    for (; key != NULL; key = va_arg(members, const char *)) {
        const char *value = va_arg(members, const char *);

        if (value != NULL && line->n_bytes < LINE_BYTES - TAIL_BYTES) {
            append_member(line, key, value);
        }
    }
}

void vxd_log_members(enum vxd_log_level level, const char *message, ...)
{
    struct line line;
    va_list members;

    if (level < vxd_log_get_level()) {
        return;
    }
    begin_line(&line);
    append_member(&line, "level", level_names[level]);
    append_member(&line, "msg", message);
    va_start(members, message);
    append_members(&line, va_arg(members, const char *), members);
    va_end(members);
    (void)write_line(STDERR_FILENO, &line); /* there is nowhere to report it */
}

/* The descriptor keeps its number from the first file on: whoever writes meanwhile writes into the one
 * or the other. */
enum vxd_status vxd_audit_open(const char *path, struct vxd_err *err)
{
    bool is_wanted = path[0] != '\0';
    int before = atomic_load(&audit_fd);
    int fd;

    if (!is_wanted && before < 0) {
        return VXD_OK;
    }
    fd = open(is_wanted ? path : "/dev/null", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
              0600);
    if (fd < 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "audit.file", "cannot open %.150s: %s",
                        path, strerror(errno));
    }
    if (before < 0) {
        atomic_store(&audit_fd, fd);
    } else {
        (void)dup2(fd, before);
        (void)fcntl(before, F_SETFD, FD_CLOEXEC);
        (void)close(fd);
    }
    atomic_store(&audit_is_on, is_wanted);
    return VXD_OK;
}

bool vxd_audit_is_open(void)
{
    return atomic_load_explicit(&audit_is_on, memory_order_relaxed);
}

void vxd_audit_members(const char *key, ...)
{
    struct line line;
    va_list members;

    if (!vxd_audit_is_open()) {
        return;
    }
    begin_line(&line);
    va_start(members, key);
    append_members(&line, key, members);
    va_end(members);
    if (!write_line(atomic_load(&audit_fd), &line)) {
        atomic_fetch_add(&audit_lost, 1);
    }
}

uint64_t vxd_audit_n_lost(void)
{
    return atomic_load(&audit_lost);
}

const char *vxd_log_int(struct vxd_log_number *number, int64_t value)
{
    (void)snprintf(number->text, sizeof number->text, "%c%" PRId64, NUMBER_MARK, value);
    return number->text;
}

const char *vxd_log_real(struct vxd_log_number *number, double value)
{
    /* JSON has no NaN and no infinity. */
    if (!(value <= 1e300 && value >= -1e300)) {
        value = 0;
    }
    (void)snprintf(number->text, sizeof number->text, "%c%.6g", NUMBER_MARK, value);
    return number->text;
}
