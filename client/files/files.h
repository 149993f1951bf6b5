// SPDX-License-Identifier: Apache-2.0
/* Readers and writers of point clouds and arrays; the server's too. */
#ifndef VXD_CLIENT_FILES_FILES_H
#define VXD_CLIENT_FILES_FILES_H

#include "client/files/array_file.h"
#include "client/files/cloud_file.h"
#include "client/files/write.h"
#include "client/files/writer.h"

#endif
