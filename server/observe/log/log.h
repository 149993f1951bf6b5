// SPDX-License-Identifier: Apache-2.0
/* One JSON object a line on stderr: ts, level, msg, then the given members. Never payloads
 * or tokens. Thread-safe; a line is one write(2). */
#ifndef VXD_SERVER_OBSERVE_LOG_LOG_H
#define VXD_SERVER_OBSERVE_LOG_LOG_H

#include "proto/base/base.h"

enum vxd_log_level {
    VXD_LOG_DEBUG = 0,
    VXD_LOG_INFO = 1,
    VXD_LOG_WARNING = 2,
    VXD_LOG_ERROR = 3
};

/* errors  INVALID_ARGUMENT  not debug, info, warning or error */
enum vxd_status vxd_log_level_parse(const char *name, enum vxd_log_level *out,
                                    struct vxd_err *err);
const char *vxd_log_level_name(enum vxd_log_level level);
enum vxd_log_level vxd_log_get_level(void);
void vxd_log_set_level(enum vxd_log_level level);

/* Members follow in pairs of key and value: vxd_log(VXD_LOG_INFO, "listening", "http",
 * address). All values are strings; numbers go through vxd_log_int and vxd_log_real, which
 * are written unquoted. A NULL key ends the line early, and a
 * member whose value is NULL is left out. */
#define vxd_log(level, ...) vxd_log_members(level, __VA_ARGS__, (const char *)NULL)

/* What vxd_log calls: message, then the pairs, ended by a NULL key. */
void vxd_log_members(enum vxd_log_level level, const char *message, ...);

/* The audit log is a file of its own, "" = none: who did what. Lines are as the log's, without a level
 * and a message. A new path, or the same one again after somebody has moved the file away, may be
 * set at any time.
 * errors  INVALID_ARGUMENT  it cannot be opened; the one before stays */
enum vxd_status vxd_audit_open(const char *path, struct vxd_err *err);
bool vxd_audit_is_open(void);
/* Members as vxd_log's. What the file does not take is lost, and counted. */
#define vxd_audit(...) vxd_audit_members(__VA_ARGS__, (const char *)NULL)
void vxd_audit_members(const char *key, ...);
uint64_t vxd_audit_n_lost(void);

/* A value written without quotes; the buffer lives in the caller's frame. */
struct vxd_log_number {
    char text[40];
};
const char *vxd_log_int(struct vxd_log_number *number, int64_t value);
const char *vxd_log_real(struct vxd_log_number *number, double value);

#endif
