// SPDX-License-Identifier: Apache-2.0
/* Launches: the blocks of a grid, as many at a time as the device holds, and their
 * memory. */
#include <sys/mman.h>

#include <map>
#include <mutex>
#include <new>

#include "tests/emulator/device.h"

struct emu_grid emu_grid;
struct emu_block **emu_blocks;
static unsigned most_blocks; /* number of emu_blocks, which are kept for all launches */
static std::recursive_mutex device_mutex;
static std::map<const void *, std::pair<const char *, void (*)(const void *)>> *registry;

long emu_setting(const char *name, long usual)
{
    const char *text = getenv(name);
    long value = text != NULL ? strtol(text, NULL, 10) : usual;

    return value > 0 ? value : usual;
}

unsigned emu_n_multiprocessors(void)
{
    static const long n = emu_setting("VOXELD_EMULATOR_SMS", 3);

    return (unsigned)n;
}

unsigned emu_blocks_of(unsigned n_threads)
{
    static const long n = emu_setting("VOXELD_EMULATOR_BLOCKS", 1);
    unsigned more = 512 / (n_threads > 512 ? 512 : n_threads);

    return (unsigned)n * (more < 8 ? more : 8);
}

/* Shared memory --------------------------------------------------------------------------- */

static void *shared_at(size_t at, size_t n_bytes)
{
    struct emu_block *block = emu_self->block;

    if (at + n_bytes > block->n_filled) {
        memset(block->shared + block->n_filled, 0xa5, at + n_bytes - block->n_filled);
        block->n_filled = at + n_bytes;
    }
    return block->shared + at;
}

void *emu_shared(struct emu_slot *slot, size_t n_bytes, size_t alignment)
{
    if (slot->launch != emu_grid.id) {
        slot->launch = emu_grid.id;
        slot->at = (emu_grid.shared_end + alignment - 1) / alignment * alignment;
        emu_grid.shared_end = slot->at + n_bytes;
        if (emu_grid.shared_end > SHARED_BYTES) {
            emu_die("shared memory is used up", NULL);
        }
    }
    return shared_at(slot->at, n_bytes);
}

void *emu_dynamic_shared(void)
{
    return shared_at(0, emu_grid.launch->n_shared);
}

/* Grids ----------------------------------------------------------------------------------- */

static void run_lane(void)
{
    struct emu_lane *lane = emu_self;

    emu_begin_budget();
    emu_grid.launch->body(emu_grid.launch->args);
    emu_exit_lane(lane);
    if (lane->block->n_exited == lane->block->n_threads) {
        emu_self = NULL;
        emu_switch(&lane->sp, emu_grid.main_sp); /* the launch starts another block */
    }
    emu_leave(lane);
    abort(); /* no fiber switches to one that has exited */
}

static struct emu_block *new_block(void)
{
    size_t n_bytes = MAX_THREADS * STACK_BYTES;
    struct emu_block *block = new struct emu_block();
    void *stacks = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (stacks == MAP_FAILED) {
        emu_die("no memory for a block", NULL);
    }
    block->stacks = (char *)stacks;
    block->shared = new (std::align_val_t(256)) char[SHARED_BYTES];
    for (size_t i = 0; i < MAX_THREADS; i++) { /* so that a stack overflow faults */
        (void)mprotect(block->stacks + i * STACK_BYTES, 4096, PROT_NONE);
    }
    return block;
}

static void make_blocks(unsigned n)
{
    struct emu_block **more;

    if (n <= most_blocks) {
        return;
    }
    more = new struct emu_block *[n];
    for (unsigned i = 0; i < n; i++) {
        more[i] = i < most_blocks ? emu_blocks[i] : new_block();
    }
    delete[] emu_blocks;
    emu_blocks = more;
    most_blocks = n;
}

static void start_lane(struct emu_block *block, unsigned i)
{
    struct emu_lane *lane = block->lanes + i;
    dim3 n = emu_grid.launch->block;
    char *top = block->stacks + (size_t)(i + 1) * STACK_BYTES - (i % 16) * 256;
    void **sp = (void **)(void *)top - 8;

    lane->block = block;
    lane->thread = {i % n.x, i / n.x % n.y, i / n.x / n.y};
    lane->warp = i / 32;
    lane->lane = i % 32;
    memset(sp, 0, 8 * sizeof *sp);
    /* above six saved registers: where the switch returns to */
    sp[6] = (void *)run_lane;
    lane->sp = sp;
    lane->history.thread = (emu_grid.n_started - 1) * MAX_THREADS + i;
    lane->history.block = (uint32_t)(emu_grid.n_started - 1);
    lane->history.own.n = 0;
    lane->history.of_warp = &block->warps[lane->warp].times;
    lane->history.of_block = &block->times;
    emu_make_runnable(lane);
}

static void start_block(struct emu_block *block)
{
    dim3 n = emu_grid.launch->grid;
    uint64_t i = emu_grid.n_started++;

    block->index = {(unsigned)(i % n.x), (unsigned)(i / n.x % n.y),
                    (unsigned)(i / n.x / n.y)};
    block->n_threads =
        emu_grid.launch->block.x * emu_grid.launch->block.y * emu_grid.launch->block.z;
    block->n_exited = 0;
    block->n_in_sync = 0;
    block->n_filled = 0;
    block->times.n = 0;
    for (unsigned j = 0; j * 32 < block->n_threads; j++) {
        unsigned n_lanes = block->n_threads - j * 32;

        block->warps[j].n_gatherings = 0;
        block->warps[j].times.n = 0;
        /* Lanes that do not exist count as exited, so nothing waits for them. */
        block->warps[j].exited = n_lanes < 32 ? ~0u << n_lanes : 0;
    }
    for (unsigned j = 0; j < block->n_threads; j++) {
        start_lane(block, j);
    }
}

static void run_grid(void)
{
    struct emu_lane *lane;

    for (unsigned i = 0; i < emu_grid.n_resident; i++) {
        start_block(emu_blocks[i]);
    }
    while (emu_grid.n_done < emu_grid.n_blocks) {
        if (emu_grid.n_runnable == 0) {
            emu_die("threads wait for ever", NULL);
        }
        lane = emu_take_runnable();
        emu_self = lane;
        emu_switch(&emu_grid.main_sp, lane->sp);
        for (unsigned i = 0; i < emu_grid.n_resident; i++) {
            struct emu_block *block = emu_blocks[i];

            if (block->n_threads > 0 && block->n_exited == block->n_threads) {
                block->n_threads = 0;
                emu_grid.n_done++;
                if (emu_grid.n_started < emu_grid.n_blocks) {
                    start_block(block);
                }
            }
        }
    }
}

bool emu_run(const struct emu_launch *launch)
{
    uint64_t n_threads = (uint64_t)launch->block.x * launch->block.y * launch->block.z;
    uint64_t n_blocks = (uint64_t)launch->grid.x * launch->grid.y * launch->grid.z;
    const std::lock_guard<std::recursive_mutex> lock(device_mutex);
    uint64_t n_resident;

    if (n_threads == 0 || n_threads > MAX_THREADS || n_blocks == 0 ||
        launch->grid.x > INT32_MAX || launch->grid.y > 65535 || launch->grid.z > 65535 ||
        launch->n_shared > SHARED_BYTES) {
        return false;
    }
    n_resident = (uint64_t)emu_n_multiprocessors() * emu_blocks_of((unsigned)n_threads);
    if (launch->is_cooperative && n_blocks > n_resident) {
        return false;
    }
    n_resident = n_resident < n_blocks ? n_resident : n_blocks;
    make_blocks((unsigned)n_resident);
    emu_grid.launch = launch;
    emu_grid.id++;
    emu_grid.n_blocks = n_blocks;
    emu_grid.n_started = 0;
    emu_grid.n_done = 0;
    emu_grid.n_resident = (unsigned)n_resident;
    emu_grid.n_in_sync = 0;
    emu_grid.shared_end = launch->n_shared;
    emu_grid.pace = (emu_random() & 3) == 0 ? 63 : 1023;
    emu_grid.has_progressed = true;
    emu_grid.most_s = emu_setting("VOXELD_EMULATOR_SECONDS", 60);
    emu_grid.n_runnable = 0;
    if (emu_grid.most_runnable < n_resident * n_threads) {
        emu_grid.most_runnable = (unsigned)(n_resident * n_threads);
        delete[] emu_grid.runnable;
        emu_grid.runnable = new struct emu_lane *[emu_grid.most_runnable];
    }
    run_grid();
    emu_race_settle();
    emu_grid.launch = NULL;
    emu_budget = 1 << 30;
    return true;
}

void emu_register(const void *kernel, const char *name, void (*body)(const void *args))
{
    if (registry == NULL) {
        registry =
            new std::map<const void *, std::pair<const char *, void (*)(const void *)>>;
    }
    (*registry)[kernel] = {name, body};
}

bool emu_find(const void *kernel, struct emu_launch *launch)
{
    if (registry == NULL || registry->count(kernel) == 0) {
        return false;
    }
    auto found = registry->find(kernel);

    launch->name = found->second.first;
    launch->body = found->second.second;
    return true;
}

uint3 emu_thread_idx(void)
{
    return emu_self->thread;
}

uint3 emu_block_idx(void)
{
    return emu_self->block->index;
}

uint3 emu_block_dim(void)
{
    return {emu_grid.launch->block.x, emu_grid.launch->block.y, emu_grid.launch->block.z};
}

uint3 emu_grid_dim(void)
{
    return {emu_grid.launch->grid.x, emu_grid.launch->grid.y, emu_grid.launch->grid.z};
}
