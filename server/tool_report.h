// SPDX-License-Identifier: Apache-2.0
/* What voxeld prints where it does something instead of serving: text, or with --json an object on
 * standard output, and errors as voxelctl's are: an object on standard error. */
#ifndef VXD_SERVER_TOOL_REPORT_H
#define VXD_SERVER_TOOL_REPORT_H

#include "proto/base/base.h"
#include "proto/wire/wire.h"

/* Prints what went wrong: "WHAT: MESSAGE" (without `what`, "FIELD: MESSAGE" where there is a field)
 * and the help on a line of its own, or an object with the keys code, what, field, message and help,
 * as far as they are known. `what` and `help` may be NULL. Returns 2, the process's exit status. */
int vxd_tool_fail(bool json, const char *what, const struct vxd_err *err,
                  const char *help);

/* Appends "name": and a string, after a comma unless it is the first member. */
void vxd_tool_member(struct vxd_text *text, bool first, const char *name,
                     const char *value);

/* Prints the object on standard output, and frees it. Returns `result`, or 2 after a message where
 * there was no memory for it or standard output did not take it. */
int vxd_tool_print(struct vxd_text *text, int result);

#endif
