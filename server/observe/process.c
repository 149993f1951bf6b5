// SPDX-License-Identifier: Apache-2.0
#include "server/observe/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void vxd_process_get_memory(uint64_t *resident_bytes, uint64_t *virtual_bytes)
{
    char line[128];
    char *rest = NULL;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    int statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = statm >= 0 ? read(statm, line, sizeof line - 1) : 0;

    /* The file begins with "VIRTUAL RESIDENT", in pages. */
    line[n > 0 ? n : 0] = '\0';
    *virtual_bytes = strtoull(line, &rest, 10) * page;
    *resident_bytes = strtoull(rest, NULL, 10) * page;
    if (statm >= 0) {
        (void)close(statm);
    }
}

void vxd_process_get_usage(struct vxd_process_usage *out)
{
    struct timespec cpu;
    DIR *fds = opendir("/proc/self/fd");

    memset(out, 0, sizeof *out);
    vxd_process_get_memory(&out->resident_bytes, &out->virtual_bytes);
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) == 0) {
        out->cpu_seconds = (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9;
    }
    if (fds != NULL) {
        while (readdir(fds) != NULL) {
            out->n_open_fds++;
        }
        /* ".", "..", and the descriptor that lists. */
        out->n_open_fds -= out->n_open_fds >= 3 ? 3 : out->n_open_fds;
        (void)closedir(fds);
    }
}

void vxd_process_get_heap(uint64_t *used_bytes, uint64_t *free_bytes)
{
    *used_bytes = 0;
    *free_bytes = 0;
#if defined(__GLIBC__)
    {
        struct mallinfo2 info = mallinfo2();

        *used_bytes = info.uordblks + info.hblkhd;
        *free_bytes = info.fordblks;
    }
#endif
}
