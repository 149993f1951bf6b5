// SPDX-License-Identifier: Apache-2.0
/* The emulated device: fibers, their scheduler, collectives and barriers.
 *
 * One kernel runs at a time, all of it on the thread that launched it, so a seed gives the same
 * run again. A fiber that cannot go on takes the next one off the list of those that can and
 * switches to it; where none can, control goes back to run_grid, which starts the next block or
 * has found a deadlock. This file is compiled without the hooks it provides (hooks.cpp). */
#include "tests/emulator/device.h"

#include <link.h>
#include <sys/mman.h>
#include <time.h>

#include <map>
#include <mutex>
#include <new>

#define STACK_BYTES ((size_t)128 << 10)
#define SHARED_BYTES ((size_t)256 << 10)
#define MOST_THREADS 1024

/* Switches between two looks at the clock. */
#define LOOK_EVERY 65536

enum wait_state {
    RUNNABLE,
    IN_COLLECTIVE,
    IN_BLOCK_SYNC,
    IN_GRID_SYNC,
    EXITED
};

struct block;

struct lane {
    void *sp;
    struct block *block;
    uint3 thread;
    unsigned warp;
    unsigned lane;
    enum wait_state state;
    emu_site site; /* of the collective or barrier it waits in, or was last in */
    unsigned mask;
    int result; /* of a block's barrier */
    struct emu_past past;
};

/* Lanes on their way into one collective, by mask. */
struct gathering {
    enum emu_collective kind;
    unsigned mask;
    unsigned there;
    emu_site site;
};

struct warp {
    unsigned exited; /* bits of lanes */
    unsigned n_gatherings;
    struct gathering gatherings[32];
    /* What lanes bring and get. */
    uint64_t values[32];
    uint64_t results[32];
    uint8_t from[32];
};

struct block {
    char *stacks;
    char *shared;
    size_t n_filled; /* bytes of shared made garbage for this block */
    uint3 index;
    unsigned n_threads;
    unsigned n_exited;
    unsigned n_in_sync;
    /* Of the barrier that some of its threads are at. */
    enum emu_count count;
    emu_site site;
    int sum;
    bool all;
    struct lane lanes[MOST_THREADS];
    struct warp warps[MOST_THREADS / 32];
};

/* The launch that runs. */
struct grid {
    const struct emu_launch *launch;
    uint64_t id;
    uint64_t n_blocks;
    uint64_t n_started;
    uint64_t n_done;
    unsigned n_resident;
    uint64_t n_in_sync;
    size_t shared_end; /* bytes of shared memory given to variables */
    unsigned pace;     /* mask of the accesses between two switches */
    uint64_t n_switches;
    bool has_progressed; /* since the last look at the clock */
    time_t progressed_s;
    long most_s;
    void *main_sp;
    struct lane **runnable;
    unsigned n_runnable;
    unsigned most_runnable;
};

static std::recursive_mutex device_mutex;
static struct grid grid;
static struct block **blocks; /* most_blocks, kept for all launches */
static unsigned most_blocks;
static uint64_t random_state;
static std::map<const void *, std::pair<const char *, void (*)(const void *)>> *registry;

/* NULL outside of kernels; a launch stays on its thread. */
static thread_local struct lane *self;
thread_local int emu_budget = 1 << 30;

/* Settings -------------------------------------------------------------------------------- */

static long setting(const char *name, long usual)
{
    const char *text = getenv(name);
    long value = text != NULL ? strtol(text, NULL, 10) : usual;

    return value > 0 ? value : usual;
}

unsigned emu_n_multiprocessors(void)
{
    static const long n = setting("VOXELD_EMULATOR_SMS", 3);

    return (unsigned)n;
}

unsigned emu_blocks_of(unsigned n_threads)
{
    static const long n = setting("VOXELD_EMULATOR_BLOCKS", 1);
    unsigned more = 512 / (n_threads > 512 ? 512 : n_threads);

    return (unsigned)n * (more < 8 ? more : 8);
}

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* Faults ---------------------------------------------------------------------------------- */

static const char *name_of(const struct lane *lane)
{
    switch (lane->state) {
    case IN_COLLECTIVE:
        return "a warp's collective";
    case IN_BLOCK_SYNC:
        return "__syncthreads";
    case IN_GRID_SYNC:
        return "the grid's barrier";
    case EXITED:
        return "its end";
    default:
        return "running";
    }
}

/* Groups lanes that are at the same place, in order. */
static void tell_block(const struct block *block)
{
    for (unsigned first = 0, n = 0; first < block->n_threads; first += n) {
        const struct lane *lane = block->lanes + first;

        for (n = 1; first + n < block->n_threads; n++) {
            const struct lane *next = lane + n;

            if (next->state != lane->state ||
                (lane->state != EXITED && lane->state != RUNNABLE &&
                 (next->site.line != lane->site.line ||
                  (lane->state == IN_COLLECTIVE && next->mask != lane->mask)))) {
                break;
            }
        }
        fprintf(stderr, "emulator:   block %u threads %u to %u: %s", block->index.x, first,
                first + n - 1, name_of(lane));
        if (lane->state == IN_COLLECTIVE) {
            fprintf(stderr, " of lanes %08x", lane->mask);
        }
        if (lane->state != EXITED && lane->state != RUNNABLE) {
            fprintf(stderr, " at %s:%d", lane->site.file, lane->site.line);
        }
        fprintf(stderr, "\n");
    }
}

[[noreturn]] static void die(const char *what, const emu_site *site)
{
    struct lane *lane = self;

    self = NULL;
    fflush(stdout);
    fprintf(stderr, "emulator: %s", what);
    if (grid.launch != NULL) {
        fprintf(stderr, "; kernel %s", grid.launch->name);
    }
    if (lane != NULL) {
        fprintf(stderr, ", block %u, thread %u (warp %u, lane %u)", lane->block->index.x,
                lane->warp * 32 + lane->lane, lane->warp, lane->lane);
    }
    if (site != NULL) {
        fprintf(stderr, " at %s:%d", site->file, site->line);
    }
    fprintf(stderr, "; seed %ld\n", setting("VOXELD_EMULATOR_SEED", 1));
    for (unsigned i = 0; grid.launch != NULL && i < grid.n_resident; i++) {
        if (blocks[i]->n_exited < blocks[i]->n_threads) {
            tell_block(blocks[i]);
        }
    }
    abort();
}

void emu_fault(const char *what, emu_site site)
{
    die(what, &site);
}

/* Fibers ---------------------------------------------------------------------------------- */

extern "C" void emu_switch(void **save_sp, void *to_sp);
__asm__(".text\n"
        ".globl emu_switch\n"
        ".type emu_switch,@function\n"
        "emu_switch:\n"
        "    push %rbp\n"
        "    push %rbx\n"
        "    push %r12\n"
        "    push %r13\n"
        "    push %r14\n"
        "    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n"
        "    pop %r14\n"
        "    pop %r13\n"
        "    pop %r12\n"
        "    pop %rbx\n"
        "    pop %rbp\n"
        "    ret\n"
        ".size emu_switch,.-emu_switch\n");

/* Processor time of this thread; others may keep the processor for long. */
static time_t now_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec;
}

/* Where threads only run, and no collective or barrier ends and nobody exits, they spin. */
static void look_at_clock(void)
{
    if (grid.has_progressed) {
        grid.has_progressed = false;
        grid.progressed_s = now_s();
    } else if (now_s() - grid.progressed_s >= grid.most_s) {
        die("the kernel does not end", NULL);
    }
}

/* Mostly the fiber that became able to run last, whose memory is warm; often any other. */
static struct lane *take_runnable(void)
{
    uint64_t r = next_random();
    unsigned at = grid.n_runnable - 1;
    struct lane *lane;

    if ((r & 3) == 0) {
        at = (unsigned)((r >> 32) * grid.n_runnable >> 32);
    }
    lane = grid.runnable[at];
    grid.runnable[at] = grid.runnable[--grid.n_runnable];
    return lane;
}

static void make_runnable(struct lane *lane)
{
    lane->state = RUNNABLE;
    grid.runnable[grid.n_runnable++] = lane;
}

/* To any fiber that can run, or out of the grid. */
static void leave(struct lane *lane)
{
    if (++grid.n_switches % LOOK_EVERY == 0) {
        look_at_clock();
    }
    if (grid.n_runnable == 0) {
        self = NULL;
        emu_switch(&lane->sp, grid.main_sp);
    } else {
        struct lane *next = take_runnable();

        if (next != lane) {
            self = next;
            emu_switch(&lane->sp, next->sp);
        }
    }
    self = lane;
    emu_budget = 1 + (int)(next_random() & grid.pace);
}

void emu_preempt(void)
{
    struct lane *lane = self;

    if (lane == NULL) {
        emu_budget = 1 << 30;
        return;
    }
    make_runnable(lane);
    /* Among the others, not on top of them: who waits for them would be taken again. */
    std::swap(grid.runnable[next_random() % grid.n_runnable],
              grid.runnable[grid.n_runnable - 1]);
    leave(lane);
}

void emu_yield(void)
{
    emu_preempt();
}

bool emu_is_inside(void)
{
    return self != NULL;
}

static inline void order(struct lane *lane, enum emu_scope scope, bool is_new)
{
    if (emu_finds_races()) {
        emu_past_order(&lane->past, scope, is_new);
    }
}

void emu_fence(bool is_block)
{
    if (self != NULL) {
        order(self, is_block ? EMU_BLOCK : EMU_DEVICE, true);
    }
}

const struct emu_past *emu_own_past(void)
{
    return &self->past;
}

bool emu_is_stack(const void *at)
{
    const char *stacks = self->block->stacks;

    return (const char *)at >= stacks &&
           (const char *)at < stacks + MOST_THREADS * STACK_BYTES;
}

bool emu_is_shared(const void *at)
{
    const char *shared = self->block->shared;

    return (const char *)at >= shared && (const char *)at < shared + SHARED_BYTES;
}

uint64_t emu_launch_id(void)
{
    return grid.id;
}

const char *emu_kernel_name(void)
{
    return grid.launch->name;
}

static int first_image(struct dl_phdr_info *info, size_t, void *base)
{
    *(uintptr_t *)base = info->dlpi_addr;
    return 1;
}

uintptr_t emu_image_base(void)
{
    uintptr_t base = 0;

    (void)dl_iterate_phdr(first_image, &base);
    return base;
}

/* Barriers -------------------------------------------------------------------------------- */

static void finish_block_sync(struct block *block)
{
    int result = block->count == EMU_COUNT_AND ? block->all
                 : block->count == EMU_COUNT_OR ? block->sum != 0
                                                : block->sum;

    for (unsigned i = 0; i < block->n_threads; i++) {
        struct lane *lane = block->lanes + i;

        if (lane->state == IN_BLOCK_SYNC) {
            lane->result = result;
            order(lane, EMU_BLOCK, i == 0);
            make_runnable(lane);
        }
    }
    block->n_in_sync = 0;
    grid.has_progressed = true;
}

int emu_block_sync(enum emu_count count, int predicate, emu_site site)
{
    struct lane *lane = self;
    struct block *block = lane->block;

    if (block->n_in_sync == 0) {
        block->count = count;
        block->site = site;
        block->sum = 0;
        block->all = true;
    }
    if (block->site.line != site.line || block->count != count) {
        die("threads of a block are at different __syncthreads", &site);
    }
    block->sum += predicate != 0;
    block->all = block->all && predicate != 0;
    block->n_in_sync++;
    lane->site = site;
    lane->state = IN_BLOCK_SYNC;
    if (block->n_in_sync + block->n_exited == block->n_threads) {
        finish_block_sync(block);
    }
    leave(lane);
    return lane->result;
}

void emu_grid_sync(emu_site site)
{
    struct lane *lane = self;

    if (!grid.launch->is_cooperative) {
        die("a grid's barrier in a kernel that was not launched for it", &site);
    }
    lane->site = site;
    lane->state = IN_GRID_SYNC;
    grid.n_in_sync++;
    if (grid.n_in_sync == grid.n_blocks * lane->block->n_threads) {
        for (unsigned i = 0; i < grid.n_resident; i++) {
            for (unsigned j = 0; j < blocks[i]->n_threads; j++) {
                order(blocks[i]->lanes + j, EMU_DEVICE, i + j == 0);
                make_runnable(blocks[i]->lanes + j);
            }
        }
        grid.n_in_sync = 0;
        grid.has_progressed = true;
    }
    leave(lane);
}

/* Collectives ----------------------------------------------------------------------------- */

static uint64_t reduce(enum emu_collective kind, uint64_t a, uint64_t b)
{
    switch (kind) {
    case EMU_ADD:
        return (uint32_t)(a + b);
    case EMU_OR:
        return a | b;
    case EMU_AND:
        return a & b;
    case EMU_XOR:
        return a ^ b;
    case EMU_MIN:
        return a < b ? a : b;
    default:
        return a > b ? a : b;
    }
}

/* What all of `in` get alike. */
static uint64_t uniform_result(const struct warp *warp, enum emu_collective kind, unsigned in)
{
    uint64_t result = kind == EMU_BALLOT ? 0 : warp->values[__builtin_ctz(in)];

    for (unsigned left = kind == EMU_BALLOT ? in : in & (in - 1); left != 0;
         left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);

        result = kind == EMU_BALLOT ? result | warp->values[i] << i
                                    : reduce(kind, result, warp->values[i]);
    }
    return result;
}

static uint64_t match(const struct warp *warp, unsigned in, unsigned lane)
{
    uint64_t equal = 0;

    for (unsigned left = in; left != 0; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);

        equal |= (uint64_t)(warp->values[i] == warp->values[lane]) << i;
    }
    return equal;
}

/* Ends a collective whose lanes are all there. */
static void finish_collective(struct block *block, struct warp *warp, struct gathering *at)
{
    struct lane *lanes = block->lanes + (warp - block->warps) * 32;
    enum emu_collective kind = at->kind;
    unsigned in = at->there;
    uint64_t uniform =
        kind < EMU_BALLOT || kind == EMU_MATCH ? 0 : uniform_result(warp, kind, in);

    grid.has_progressed = true;
    *at = warp->gatherings[--warp->n_gatherings];
    for (unsigned left = in; left != 0; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        unsigned from = warp->from[i];

        /* What is shuffled from a lane that takes no part is undefined. */
        warp->results[i] = kind == EMU_MATCH     ? match(warp, in, i)
                           : kind != EMU_SHUFFLE ? uniform
                           : (in >> from & 1) != 0 ? warp->values[from]
                                                   : 0xa5a5a5a5deadbeefULL;
        order(lanes + i, EMU_WARP, left == in);
        make_runnable(lanes + i);
    }
}

static struct gathering *find_gathering(struct warp *warp, enum emu_collective kind,
                                        unsigned mask, emu_site site)
{
    struct gathering *at = warp->gatherings;
    struct gathering *end = at + warp->n_gatherings;

    while (at < end && at->mask != mask) {
        at++;
    }
    if (at == end) {
        warp->n_gatherings++;
        *at = {kind, mask, 0, site};
    }
    if (at->kind != kind || (kind != EMU_SYNC && at->site.line != site.line)) {
        die("lanes of one mask are in different collectives", &site);
    }
    return at;
}

uint64_t emu_collect(enum emu_collective kind, unsigned mask, uint64_t value, int aux,
                     emu_site site)
{
    struct lane *lane = self;
    struct block *block = lane->block;
    struct warp *warp = block->warps + lane->warp;
    struct gathering *at;

    if ((mask >> lane->lane & 1) == 0) {
        die("a lane that its own mask does not name", &site);
    }
    at = find_gathering(warp, kind, mask, site);
    at->there |= 1u << lane->lane;
    warp->values[lane->lane] = value;
    warp->from[lane->lane] = (uint8_t)(aux & 31);
    lane->mask = mask;
    lane->site = site;
    lane->state = IN_COLLECTIVE;
    if (((at->there | warp->exited) & mask) == mask) {
        finish_collective(block, warp, at);
    }
    leave(lane);
    return warp->results[lane->lane];
}

/* Shared memory --------------------------------------------------------------------------- */

static void *shared_at(size_t at, size_t n_bytes)
{
    struct block *block = self->block;

    if (at + n_bytes > block->n_filled) {
        memset(block->shared + block->n_filled, 0xa5, at + n_bytes - block->n_filled);
        block->n_filled = at + n_bytes;
    }
    return block->shared + at;
}

void *emu_shared(struct emu_slot *slot, size_t n_bytes, size_t alignment)
{
    if (slot->launch != grid.id) {
        slot->launch = grid.id;
        slot->at = (grid.shared_end + alignment - 1) / alignment * alignment;
        grid.shared_end = slot->at + n_bytes;
        if (grid.shared_end > SHARED_BYTES) {
            die("shared memory is used up", NULL);
        }
    }
    return shared_at(slot->at, n_bytes);
}

void *emu_dynamic_shared(void)
{
    return shared_at(0, grid.launch->n_shared);
}

/* Grids ----------------------------------------------------------------------------------- */

static void exit_lane(struct lane *lane)
{
    struct block *block = lane->block;
    struct warp *warp = block->warps + lane->warp;

    grid.has_progressed = true;
    lane->state = EXITED;
    block->n_exited++;
    warp->exited |= 1u << lane->lane;
    /* Who waited for this one alone goes on. */
    for (unsigned i = warp->n_gatherings; i-- > 0;) {
        struct gathering *at = warp->gatherings + i;

        if (((at->there | warp->exited) & at->mask) == at->mask) {
            finish_collective(block, warp, at);
        }
    }
    if (block->n_in_sync > 0 && block->n_in_sync + block->n_exited == block->n_threads) {
        finish_block_sync(block);
    }
}

static void run_lane(void)
{
    struct lane *lane = self;

    emu_budget = 1 + (int)(next_random() & grid.pace);
    grid.launch->body(grid.launch->args);
    exit_lane(lane);
    if (lane->block->n_exited == lane->block->n_threads) {
        self = NULL;
        emu_switch(&lane->sp, grid.main_sp); /* starts another block */
    }
    leave(lane);
    abort(); /* nobody switches to a fiber that has exited */
}

static struct block *new_block(void)
{
    size_t n_bytes = MOST_THREADS * STACK_BYTES;
    struct block *block = new struct block();
    void *stacks = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (stacks == MAP_FAILED) {
        die("no memory for a block", NULL);
    }
    block->stacks = (char *)stacks;
    block->shared = new (std::align_val_t(256)) char[SHARED_BYTES];
    for (size_t i = 0; i < MOST_THREADS; i++) { /* a stack that overflows faults */
        (void)mprotect(block->stacks + i * STACK_BYTES, 4096, PROT_NONE);
    }
    return block;
}

static void make_blocks(unsigned n)
{
    struct block **more;

    if (n <= most_blocks) {
        return;
    }
    more = new struct block *[n];
    for (unsigned i = 0; i < n; i++) {
        more[i] = i < most_blocks ? blocks[i] : new_block();
    }
    delete[] blocks;
    blocks = more;
    most_blocks = n;
}

static void start_lane(struct block *block, unsigned i)
{
    struct lane *lane = block->lanes + i;
    dim3 n = grid.launch->block;
    char *top = block->stacks + (size_t)(i + 1) * STACK_BYTES - (i % 16) * 256;
    void **sp = (void **)(void *)top - 8;

    lane->block = block;
    lane->thread = {i % n.x, i / n.x % n.y, i / n.x / n.y};
    lane->warp = i / 32;
    lane->lane = i % 32;
    memset(sp, 0, 8 * sizeof *sp);
    sp[6] = (void *)run_lane; /* above six registers: where the switch returns to */
    lane->sp = sp;
    if (emu_finds_races()) {
        emu_past_begin(&lane->past, (grid.n_started - 1) * MOST_THREADS + i,
                       (uint32_t)(grid.n_started - 1));
    }
    make_runnable(lane);
}

static void start_block(struct block *block)
{
    dim3 n = grid.launch->grid;
    uint64_t i = grid.n_started++;

    block->index = {(unsigned)(i % n.x), (unsigned)(i / n.x % n.y),
                    (unsigned)(i / n.x / n.y)};
    block->n_threads = grid.launch->block.x * grid.launch->block.y * grid.launch->block.z;
    block->n_exited = 0;
    block->n_in_sync = 0;
    block->n_filled = 0;
    for (unsigned j = 0; j * 32 < block->n_threads; j++) {
        unsigned n_lanes = block->n_threads - j * 32;

        block->warps[j].n_gatherings = 0;
        /* Lanes that are not there are waited for as little. */
        block->warps[j].exited = n_lanes < 32 ? ~0u << n_lanes : 0;
    }
    for (unsigned j = 0; j < block->n_threads; j++) {
        start_lane(block, j);
    }
}

static void run_grid(void)
{
    struct lane *lane;

    for (unsigned i = 0; i < grid.n_resident; i++) {
        start_block(blocks[i]);
    }
    while (grid.n_done < grid.n_blocks) {
        if (grid.n_runnable == 0) {
            die("threads wait for ever", NULL);
        }
        lane = take_runnable();
        self = lane;
        emu_switch(&grid.main_sp, lane->sp);
        for (unsigned i = 0; i < grid.n_resident; i++) {
            struct block *block = blocks[i];

            if (block->n_threads > 0 && block->n_exited == block->n_threads) {
                block->n_threads = 0;
                grid.n_done++;
                if (grid.n_started < grid.n_blocks) {
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

    if (n_threads == 0 || n_threads > MOST_THREADS || n_blocks == 0 ||
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
    if (random_state == 0) {
        random_state = (uint64_t)setting("VOXELD_EMULATOR_SEED", 1) * 0x9e3779b97f4a7c15ULL;
        random_state |= 1;
    }
    grid.launch = launch;
    grid.id++;
    grid.n_blocks = n_blocks;
    grid.n_started = 0;
    grid.n_done = 0;
    grid.n_resident = (unsigned)n_resident;
    grid.n_in_sync = 0;
    grid.shared_end = launch->n_shared;
    grid.pace = (next_random() & 3) == 0 ? 63 : 1023;
    grid.has_progressed = true;
    grid.most_s = setting("VOXELD_EMULATOR_SECONDS", 60);
    grid.n_runnable = 0;
    if (grid.most_runnable < n_resident * n_threads) {
        grid.most_runnable = (unsigned)(n_resident * n_threads);
        delete[] grid.runnable;
        grid.runnable = new struct lane *[grid.most_runnable];
    }
    run_grid();
    grid.launch = NULL;
    emu_budget = 1 << 30;
    return true;
}

void emu_register(const void *kernel, const char *name, void (*body)(const void *args))
{
    if (registry == NULL) {
        registry = new std::map<const void *, std::pair<const char *, void (*)(const void *)>>;
    }
    (*registry)[kernel] = {name, body};
}

bool emu_find(const void *kernel, struct emu_launch *launch)
{
    auto found = registry->find(kernel);

    if (found == registry->end()) {
        return false;
    }
    launch->name = found->second.first;
    launch->body = found->second.second;
    return true;
}

uint3 emu_thread_idx(void)
{
    return self->thread;
}

uint3 emu_block_idx(void)
{
    return self->block->index;
}

uint3 emu_block_dim(void)
{
    return {grid.launch->block.x, grid.launch->block.y, grid.launch->block.z};
}

uint3 emu_grid_dim(void)
{
    return {grid.launch->grid.x, grid.launch->grid.y, grid.launch->grid.z};
}
