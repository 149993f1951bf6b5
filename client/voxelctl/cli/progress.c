// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/voxelctl/cli/cli.h"

enum {
    BAR_CHARS = 24,
    NAME_CHARS = 40,
    FIRST_MS = 1000, /* until which nothing is shown */
    TURN_MS = 250
};

static const char *const wheel[] = {"|", "/", "-", "\\"};

static bool is_drawn(size_t total)
{
    return total > 1 && isatty(STDERR_FILENO) == 1;
}

static const char *end_of(const char *name)
{
    size_t n = strlen(name);

    return name + (n > NAME_CHARS ? n - NAME_CHARS : 0);
}

void ctl_progress_show(size_t n_done, size_t total, const char *name)
{
    char bar[BAR_CHARS + 1];

    if (!is_drawn(total)) {
        return;
    }
    for (size_t i = 0; i < BAR_CHARS; i++) {
        bar[i] = i < BAR_CHARS * n_done / total ? '#' : ' ';
    }
    bar[BAR_CHARS] = '\0';
    (void)fprintf(stderr, "\r[%s] %zu/%zu %s\033[K", bar, n_done, total,
                  end_of(name)); /* the file's name is there */
    (void)fflush(stderr);
}

void ctl_progress_waiting(void *user, uint32_t waited_ms, uint32_t timeout_ms)
{
    (void)user;
    if (isatty(STDERR_FILENO) != 1) {
        return;
    }
    if (waited_ms == 0) {
        (void)fputs("\r\033[K", stderr);
    } else {
        (void)fprintf(stderr,
                      "\r%s waiting for the daemon, %" PRIu32 " s of at most %" PRIu32
                      "\033[K",
                      wheel[waited_ms / 250 % 4], waited_ms / 1000, timeout_ms / 1000);
    }
    (void)fflush(stderr);
}

void ctl_progress_clear(size_t total)
{
    if (is_drawn(total)) {
        (void)fputs("\r\033[K", stderr);
        (void)fflush(stderr);
    }
}

/* --- work of this process ----------------------------------------------------------------- */

/* The work goes on in the caller's thread, within libraries that know no terminals; another thread
 * draws. */
struct ctl_progress {
    const char *doing;
    char name[NAME_CHARS + 1]; /* the end of it */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ending;
    bool is_over;
};

static struct timespec later(struct timespec since, unsigned ms)
{
    long ns = since.tv_nsec + (long)(ms % 1000) * 1000000;

    return (struct timespec){.tv_sec =
                                 since.tv_sec + (time_t)(ms / 1000) + ns / 1000000000,
                             .tv_nsec = ns % 1000000000};
}

static void *draw(void *arg)
{
    struct ctl_progress *progress = arg;
    struct timespec since;
    bool is_drawn_once = false;
    unsigned ms = FIRST_MS;

    (void)clock_gettime(CLOCK_MONOTONIC, &since);
    (void)pthread_mutex_lock(&progress->lock);
    while (!progress->is_over) {
        struct timespec until = later(since, ms);

        if (pthread_cond_timedwait(&progress->ending, &progress->lock, &until) == 0) {
            continue; /* it is over, or nothing has happened */
        }
        (void)fprintf(stderr, "\r%s %s %s, %u s\033[K", wheel[ms / TURN_MS % 4],
                      progress->doing, progress->name, ms / 1000);
        (void)fflush(stderr);
        is_drawn_once = true;
        ms += TURN_MS;
    }
    (void)pthread_mutex_unlock(&progress->lock);
    if (is_drawn_once) {
        (void)fputs("\r\033[K", stderr);
        (void)fflush(stderr);
    }
    return NULL;
}

static bool make_ending(pthread_cond_t *ending)
{
    pthread_condattr_t monotonic;
    bool is_made;

    if (pthread_condattr_init(&monotonic) != 0) {
        return false;
    }
    is_made = pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0 &&
              pthread_cond_init(ending, &monotonic) == 0;
    (void)pthread_condattr_destroy(&monotonic);
    return is_made;
}

static struct ctl_progress *begin(const char *doing, const char *name)
{
    struct ctl_progress *progress =
        isatty(STDERR_FILENO) == 1 ? calloc(1, sizeof *progress) : NULL;

    if (progress == NULL) {
        return NULL;
    }
    progress->doing = doing;
    (void)snprintf(progress->name, sizeof progress->name, "%s", end_of(name));
    if (pthread_mutex_init(&progress->lock, NULL) != 0) {
        free(progress);
        return NULL;
    }
    if (!make_ending(&progress->ending)) {
        (void)pthread_mutex_destroy(&progress->lock);
        free(progress);
        return NULL;
    }
    if (pthread_create(&progress->thread, NULL, draw, progress) != 0) {
        (void)pthread_cond_destroy(&progress->ending);
        (void)pthread_mutex_destroy(&progress->lock);
        free(progress);
        return NULL;
    }
    return progress;
}

struct ctl_progress *ctl_progress_begin_reading(const char *path)
{
    if (strcmp(path, "-") != 0) {
        return begin("reading", path);
    }
    return isatty(STDIN_FILENO) == 1 ? NULL : begin("reading", "standard input");
}

struct ctl_progress *ctl_progress_begin_writing(const char *path)
{
    if (strcmp(path, "-") != 0) {
        return begin("writing", path);
    }
    return isatty(STDOUT_FILENO) == 1 ? NULL : begin("writing", "standard output");
}

void ctl_progress_end(struct ctl_progress *progress)
{
    if (progress == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&progress->lock);
    progress->is_over = true;
    (void)pthread_cond_signal(&progress->ending);
    (void)pthread_mutex_unlock(&progress->lock);
    (void)pthread_join(progress->thread, NULL);
    (void)pthread_cond_destroy(&progress->ending);
    (void)pthread_mutex_destroy(&progress->lock);
    free(progress);
}

enum voxeld_status ctl_read_cloud(const char *path, const char *format,
                                  struct voxeld_cloud **out, struct voxeld_error *error)
{
    struct ctl_progress *progress = ctl_progress_begin_reading(path);
    enum voxeld_status status = voxeld_cloud_read_file(path, format, out, error);

    ctl_progress_end(progress);
    return status;
}

int ctl_read_cloud_file(const char *path, const char *format, struct voxeld_cloud **out)
{
    struct voxeld_error error;

    return ctl_read_cloud(path, format, out, &error) == VOXELD_OK
               ? CTL_OK
               : ctl_failed(path, &error);
}
