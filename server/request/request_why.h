// SPDX-License-Identifier: Apache-2.0
/* Of this folder alone. */
#ifndef VXD_SERVER_REQUEST_REQUEST_WHY_H
#define VXD_SERVER_REQUEST_REQUEST_WHY_H

#include "server/request/request_life.h"

/* Once it is answered: err, stages and times are set. */
void vxd_request_note_why(const struct vxd_request *request);

#endif
