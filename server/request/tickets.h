// SPDX-License-Identifier: Apache-2.0
/* Tickets: short-lived stand-ins for tokens where a token has to stand in a URL, since a browser cannot
 * set a header of a WebSocket. A ticket lets read, through WebSockets, whoever has it, for as long as
 * it and its token are valid. Any thread may call these functions. */
#ifndef VXD_SERVER_REQUEST_TICKETS_H
#define VXD_SERVER_REQUEST_TICKETS_H

#include "server/request/request_life.h"

struct vxd_tickets;

#define VXD_TICKET_BYTES 40
#define VXD_TICKET_S 3600

/* errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_tickets_create(struct vxd_tickets **out, struct vxd_err *err);
void vxd_tickets_destroy(struct vxd_tickets *tickets); /* NULL is fine */

/* Makes a ticket for a token, "" where none is needed. Of too many the oldest one ends.
 * errors  INTERNAL  no random numbers */
enum vxd_status vxd_tickets_issue(struct vxd_tickets *tickets, const char *token,
                                  char out[VXD_TICKET_BYTES], struct vxd_err *err);

/* Copies the token of a ticket; false where the text is none, or its time is over. */
bool vxd_tickets_find(struct vxd_tickets *tickets, const char *text,
                      char token[VXD_TOKEN_BYTES]);

#endif
