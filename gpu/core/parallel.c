// SPDX-License-Identifier: Apache-2.0
/* Loops that still have pieces to give out are in a list. A worker takes one piece
 * from the loop at the head and moves that loop to the tail, so running loops share
 * the workers. A thread that finds no work spins for some microseconds before it
 * sleeps, because operations are chains of loops and waking a thread takes longer than
 * many a piece. */
#include "gpu/core/parallel.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/core/machine_limits.h"

#define COPY_PIECE_BYTES ((size_t)256 * 1024)

#define MAX_THREADS 256
#define N_SPINS 2000

/* On the stack of the thread that called vxd_parallel_for. */
struct loop {
    struct loop *previous;
    struct loop *next;
    vxd_loop_fn body;
    void *args;
    size_t n;
    size_t grain;
    size_t begin;         /* first index not yet taken */
    atomic_size_t n_left; /* pieces not yet finished; written with the mutex held */
};

struct vxd_pool {
    pthread_mutex_t mutex;
    pthread_cond_t work; /* a loop was added, or the pool stops */
    pthread_cond_t done; /* some loop's last piece has finished */
    struct loop *first;  /* loops with pieces not yet taken */
    struct loop *last;
    /* length of that list; written with the mutex held, read by threads that spin */
    atomic_int n_unfinished;
    int n_sleeping;
    bool stopping;
    int n_threads;
    int n_workers; /* threads started: n_threads - 1 once the pool is created */
    pthread_t workers[];
};

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void list_append(struct vxd_pool *pool, struct loop *loop)
{
    loop->previous = pool->last;
    loop->next = NULL;
    if (pool->last != NULL) {
        pool->last->next = loop;
    } else {
        pool->first = loop;
    }
    pool->last = loop;
    atomic_fetch_add_explicit(&pool->n_unfinished, 1, memory_order_release);
}

static void list_remove(struct vxd_pool *pool, struct loop *loop)
{
    if (loop->previous != NULL) {
        loop->previous->next = loop->next;
    } else {
        pool->first = loop->next;
    }
    if (loop->next != NULL) {
        loop->next->previous = loop->previous;
    } else {
        pool->last = loop->previous;
    }
    atomic_fetch_sub_explicit(&pool->n_unfinished, 1, memory_order_release);
}

/* Runs one piece of a loop that has one. The mutex is held at the call and at the
 * return. The loop may be gone afterwards unless the caller owns it. */
static void run_piece(struct vxd_pool *pool, struct loop *loop)
{
    size_t begin = loop->begin;
    size_t end = loop->n - begin > loop->grain ? begin + loop->grain : loop->n;

    loop->begin = end;
    list_remove(pool, loop);
    if (end < loop->n) {
        list_append(pool, loop);
    }
    (void)pthread_mutex_unlock(&pool->mutex);
    loop->body(loop->args, begin, end);
    (void)pthread_mutex_lock(&pool->mutex);
    if (atomic_fetch_sub_explicit(&loop->n_left, 1, memory_order_release) == 1) {
        (void)pthread_cond_broadcast(&pool->done);
    }
}

static void *worker_main(void *argument)
{
    struct vxd_pool *pool = argument;
    bool has_spun = false;

    (void)pthread_mutex_lock(&pool->mutex);
    while (!pool->stopping) {
        if (pool->first != NULL) {
            run_piece(pool, pool->first);
            has_spun = false;
        } else if (!has_spun) {
            (void)pthread_mutex_unlock(&pool->mutex);
            for (int i = 0; i < N_SPINS; i++) {
                if (atomic_load_explicit(&pool->n_unfinished, memory_order_acquire) > 0) {
                    break;
                }
                relax();
            }
            has_spun = true;
            (void)pthread_mutex_lock(&pool->mutex);
        } else {
            pool->n_sleeping++;
            (void)pthread_cond_wait(&pool->work, &pool->mutex);
            pool->n_sleeping--;
        }
    }
    (void)pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

/* Blocks all signals in workers: signals are for the threads of the program that owns
 * the pool. */
static enum vxd_status start_workers(struct vxd_pool *pool, struct vxd_err *err)
{
    sigset_t all;
    sigset_t before;
    int result = 0;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    while (result == 0 && pool->n_workers < pool->n_threads - 1) {
        result = pthread_create(&pool->workers[pool->n_workers], NULL, worker_main, pool);
        if (result == 0) {
            pool->n_workers++;
        }
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result != 0) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "n_threads",
                        "could start %d of %d threads", pool->n_workers + 1,
                        pool->n_threads);
    }
    return VXD_OK;
}

enum vxd_status vxd_pool_create(int n_threads, struct vxd_pool **out, struct vxd_err *err)
{
    struct vxd_pool *pool;
    enum vxd_status status;

    *out = NULL;
    if (n_threads < 0 || n_threads > MAX_THREADS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n_threads", "%d is not 0 to %d",
                        n_threads, MAX_THREADS);
    }
    if (n_threads == 0) {
        n_threads = vxd_machine_cpus();
        n_threads = n_threads < MAX_THREADS ? n_threads : MAX_THREADS;
    }
    pool = calloc(1, sizeof *pool + (size_t)n_threads * sizeof pool->workers[0]);
    if (pool == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a thread pool");
    }
    pool->n_threads = n_threads;
    atomic_init(&pool->n_unfinished, 0);
    (void)pthread_mutex_init(&pool->mutex, NULL);
    (void)pthread_cond_init(&pool->work, NULL);
    (void)pthread_cond_init(&pool->done, NULL);
    status = start_workers(pool, err);
    if (status != VXD_OK) {
        vxd_pool_destroy(pool);
        return status;
    }
    *out = pool;
    return VXD_OK;
}

void vxd_pool_destroy(struct vxd_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&pool->mutex);
    pool->stopping = true;
    (void)pthread_cond_broadcast(&pool->work);
    (void)pthread_mutex_unlock(&pool->mutex);
    for (int i = 0; i < pool->n_workers; i++) {
        (void)pthread_join(pool->workers[i], NULL);
    }
    (void)pthread_cond_destroy(&pool->done);
    (void)pthread_cond_destroy(&pool->work);
    (void)pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

int vxd_pool_n_threads(const struct vxd_pool *pool)
{
    return pool->n_threads;
}

/* Waits for the pieces that other threads run, after the calling thread found none
 * left. */
static void wait_for_others(struct vxd_pool *pool, struct loop *loop)
{
    if (atomic_load_explicit(&loop->n_left, memory_order_acquire) > 0) {
        (void)pthread_mutex_unlock(&pool->mutex);
        for (int i = 0; i < N_SPINS; i++) {
            if (atomic_load_explicit(&loop->n_left, memory_order_acquire) == 0) {
                break;
            }
            relax();
        }
        (void)pthread_mutex_lock(&pool->mutex);
    }
    while (atomic_load_explicit(&loop->n_left, memory_order_acquire) > 0) {
        (void)pthread_cond_wait(&pool->done, &pool->mutex);
    }
}

void vxd_parallel_for(struct vxd_pool *pool, size_t n, size_t grain, vxd_loop_fn body,
                      void *args)
{
    struct loop loop = {
        .body = body, .args = args, .n = n, .grain = grain > 0 ? grain : 1};
    size_t n_pieces = n / loop.grain + (n % loop.grain != 0 ? 1 : 0);

    if (n_pieces <= 1 || pool->n_threads == 1) {
        for (size_t begin = 0; begin < n;) {
            size_t end = n - begin > loop.grain ? begin + loop.grain : n;

            body(args, begin, end);
            begin = end;
        }
        return;
    }
    atomic_init(&loop.n_left, n_pieces);
    (void)pthread_mutex_lock(&pool->mutex);
    list_append(pool, &loop);
    if (pool->n_sleeping > 0) {
        if (n_pieces > (size_t)pool->n_sleeping) {
            (void)pthread_cond_broadcast(&pool->work);
        } else {
            for (size_t i = 0; i + 1 < n_pieces; i++) {
                (void)pthread_cond_signal(&pool->work);
            }
        }
    }
    while (loop.begin < loop.n) {
        run_piece(pool, &loop);
    }
    wait_for_others(pool, &loop);
    (void)pthread_mutex_unlock(&pool->mutex);
}

/* Arrays of a large copy. */
struct copy {
    uint8_t *to;
    const uint8_t *from;
};

static void copy_piece(void *args, size_t begin, size_t end)
{
    const struct copy *copy = args;

    memcpy(copy->to + begin, copy->from + begin, end - begin);
}

void vxd_parallel_copy(void *pool, void *to, const void *from, size_t n_bytes)
{
    struct copy copy = {to, from};

    vxd_parallel_for(pool, n_bytes, COPY_PIECE_BYTES, copy_piece, &copy);
}
