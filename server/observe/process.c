// SPDX-License-Identifier: Apache-2.0
#include "server/observe/process.h"

#include <dirent.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void vxd_process_get_usage(struct vxd_process_usage *out)
{
    struct timespec cpu;
    char line[128];
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    FILE *statm = fopen("/proc/self/statm", "r");
    DIR *fds = opendir("/proc/self/fd");

    memset(out, 0, sizeof *out);
    if (statm != NULL) {
        /* The file begins with "VIRTUAL RESIDENT", in pages. */
        if (fgets(line, sizeof line, statm) != NULL) {
            char *rest = NULL;

            out->virtual_bytes = strtoull(line, &rest, 10) * page;
            out->resident_bytes = strtoull(rest, NULL, 10) * page;
        }
        (void)fclose(statm);
    }
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
