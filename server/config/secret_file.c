// SPDX-License-Identifier: Apache-2.0
#include "server/config/secret_file.h"

#include <sys/stat.h>

enum {
    MODE_BITS = 07777
};

enum vxd_status vxd_secret_file_check(int fd, const char *path, const char *field,
                                      struct vxd_err *err)
{
    struct stat info;

    if (fstat(fd, &info) == 0 && (info.st_mode & (S_IROTH | S_IWOTH)) != 0) {
        return vxd_fail(err, VXD_PERMISSION_DENIED, field,
                        "%.140s can be read or written by every user of this machine "
                        "(mode %04o): chmod 640",
                        path, (unsigned)(info.st_mode & MODE_BITS));
    }
    return VXD_OK;
}
