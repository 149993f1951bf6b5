// SPDX-License-Identifier: Apache-2.0
#include "server/web/web.h"

/* What CMake made of files/: VXD_WEB_FILES is X(symbol, "/path") for each. */
#define X(symbol, path)                                                                  \
    extern const char symbol[];                                                          \
    extern const size_t symbol##_bytes;
VXD_WEB_FILES
#undef X

#define X(symbol, path) {path, symbol, &symbol##_bytes},
const struct vxd_web_file vxd_web_files[] = {VXD_WEB_FILES};
#undef X

const size_t vxd_n_web_files = sizeof vxd_web_files / sizeof vxd_web_files[0];
