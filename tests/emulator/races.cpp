// SPDX-License-Identifier: Apache-2.0
/* Races between plain accesses, for VOXELD_EMULATOR_RACES=1.
 *
 * Two threads that access the same bytes, at least one of them writing, need synchronisation in
 * between. Within a warp that is a collective or barrier that the first passed after its access,
 * and one that the second passed later, before its own access. Between warps it also needs one of
 * each warp in between that holds for a block, and between blocks one of each block that holds
 * for the device: a fence, an acquiring load, a releasing store, a grid's barrier. So the times
 * of barriers and fences are kept for each thread, warp and block, and for each word its last
 * writer and its readers. An access pair without that is a race by CUDA's rules, whatever the
 * order of this run was. Not all races are found, because the search does not know for which
 * thread a fence was meant. Atomic and volatile accesses never count as races, nor do writes of
 * the value that is already there, such as flags that many threads set. */
#include <link.h>
#include <unistd.h>

#include <set>
#include <utility>

#include "tests/emulator/device.h"

#define N_CELLS ((size_t)1 << 19)
#define WORD_BYTES 4
#define MAX_REPORTED 20

struct access {
    const struct emu_sync_history *history;
    uint64_t thread;
    uint32_t n_passed; /* number of barriers and fences passed */
    uint32_t bytes;    /* accessed bytes of the word, a bit each */
    const void *code;
};

struct cell {
    uintptr_t word;
    uint64_t launch;
    struct access write;
    struct access reads[2];
};

/* A write over another thread's write. It is a race if it changes the word, which is
 * known once it has been done. */
struct overwrite {
    const uint32_t *word; /* NULL: no such write */
    uint32_t before;
    struct access write;
    const struct emu_sync_history *history;
    const void *code;
};

static struct cell *cells;
static struct overwrite overwrite;
static uint64_t now;
static std::set<std::pair<const void *, const void *>> *reported;

bool emu_finds_races(void)
{
    static const char *const text = getenv("VOXELD_EMULATOR_RACES");
    static const bool is_on = text != NULL && text[0] != '\0';

    return is_on;
}

static void add_time(struct emu_times *times)
{
    if (times->n == 0 || times->at[(times->n - 1) % EMU_HISTORY] != now) {
        times->at[times->n++ % EMU_HISTORY] = now;
    }
}

void emu_sync_note(struct emu_sync_history *history, enum emu_scope scope, bool is_new)
{
    now += is_new;
    add_time(&history->own);
    if (scope >= EMU_BLOCK) {
        add_time(history->of_warp);
    }
    if (scope >= EMU_DEVICE) {
        add_time(history->of_block);
    }
}

/* The first time not before `from`; UINT64_MAX where there is none. Times that are
 * forgotten count as present. */
static uint64_t first_from(const struct emu_times *times, uint64_t from)
{
    uint32_t n_kept = times->n < EMU_HISTORY ? times->n : EMU_HISTORY;
    uint64_t first = UINT64_MAX;

    for (uint32_t i = 1; i <= n_kept; i++) {
        uint64_t at = times->at[(times->n - i) % EMU_HISTORY];

        if (at < from) {
            return first;
        }
        first = at;
    }
    return times->n > EMU_HISTORY ? from : first;
}

/* The last time not after `to`; 0 where there is none. */
static uint64_t last_to(const struct emu_times *times, uint64_t to)
{
    uint32_t n_kept = times->n < EMU_HISTORY ? times->n : EMU_HISTORY;

    for (uint32_t i = 1; i <= n_kept; i++) {
        uint64_t at = times->at[(times->n - i) % EMU_HISTORY];

        if (at <= to) {
            return at;
        }
    }
    return times->n > EMU_HISTORY ? to : 0;
}

/* Whether nothing orders an access and one that the thread of `history` makes at
 * present. */
static bool is_race(const struct access *before, const struct emu_sync_history *history)
{
    const struct emu_sync_history *other = before->history;
    uint32_t n_since;
    uint64_t from;
    uint64_t to;

    if (other == NULL || other == history || other->thread != before->thread) {
        return false; /* by no thread, by the same one, or by one that has ended */
    }
    n_since = other->own.n - before->n_passed;
    if (n_since == 0 || history->own.n == 0) {
        return true;
    }
    if (n_since > EMU_HISTORY) {
        return false;
    }
    from = other->own.at[before->n_passed % EMU_HISTORY];
    to = history->own.at[(history->own.n - 1) % EMU_HISTORY];
    if (other->block != history->block) {
        from = first_from(other->of_block, from);
        to = last_to(history->of_block, to);
    } else if (other->thread / 32 != history->thread / 32) {
        from = first_from(other->of_warp, from);
        to = last_to(history->of_warp, to);
    }
    return from > to;
}

static bool is_stack(const void *at)
{
    const char *stacks = emu_self->block->stacks;

    return (const char *)at >= stacks &&
           (const char *)at < stacks + MAX_THREADS * STACK_BYTES;
}

static bool is_shared(const void *at)
{
    for (unsigned i = 0; i < emu_grid.n_resident; i++) {
        const char *shared = emu_blocks[i]->shared;

        if ((const char *)at >= shared && (const char *)at < shared + SHARED_BYTES) {
            return true;
        }
    }
    return false;
}

static int first_image(struct dl_phdr_info *info, size_t, void *base)
{
    *(uintptr_t *)base = info->dlpi_addr;
    return 1;
}

/* What is subtracted from an address of this program to get that in its file. */
static uintptr_t image_base(void)
{
    uintptr_t base = 0;

    (void)dl_iterate_phdr(first_image, &base);
    return base;
}

static void print_line(const void *code)
{
    char command[128];

    (void)snprintf(command, sizeof command, "addr2line -p -i -s -e /proc/%d/exe %p 1>&2",
                   (int)getpid(), (void *)((const char *)code - 1 - image_base()));
    if (system(command) != 0) {
        fprintf(stderr, "%p\n", code);
    }
}

static void end_with_races(void)
{
    fprintf(stderr, "emulator: %zu pairs of places race\n", reported->size());
    _exit(66);
}

static void report(const struct access *before, const char *did,
                   const struct emu_sync_history *history, const char *does,
                   const void *code, const void *at)
{
    if (reported == NULL) {
        reported = new std::set<std::pair<const void *, const void *>>;
        (void)atexit(end_with_races);
    }
    if (!reported->insert({before->code, code}).second ||
        reported->size() > MAX_REPORTED) {
        return;
    }
    fprintf(stderr,
            "emulator: race in kernel %s, %s memory: thread %u of block %u %s at ",
            emu_grid.launch->name, is_shared(at) ? "shared" : "global",
            (unsigned)(history->thread % 1024), history->block, does);
    print_line(code);
    fprintf(stderr, "emulator:   what thread %u of block %u %s at ",
            (unsigned)(before->thread % 1024), before->history->block, did);
    print_line(before->code);
}

/* Called before any other access, so that only that write has been done since. */
void emu_race_settle(void)
{
    const uint32_t *word = overwrite.word;

    overwrite.word = NULL;
    if (word != NULL && *word != overwrite.before) {
        report(&overwrite.write, "wrote", overwrite.history, "writes", overwrite.code,
               word);
    }
}

static void look(struct cell *cell, const struct emu_sync_history *history,
                 uint32_t bytes, bool is_write, const void *code, const void *at)
{
    if ((cell->write.bytes & bytes) != 0 && is_race(&cell->write, history)) {
        if (is_write) {
            const uint32_t *word = (const uint32_t *)(cell->word * WORD_BYTES);

            overwrite = {word, *word, cell->write, history, code};
        } else {
            report(&cell->write, "wrote", history, "reads", code, at);
        }
    }
    for (int i = 0; is_write && i < 2; i++) {
        if ((cell->reads[i].bytes & bytes) != 0 && is_race(&cell->reads[i], history)) {
            report(&cell->reads[i], "read", history, "writes", code, at);
        }
    }
}

static void note(struct cell *cell, const struct emu_sync_history *history,
                 uint32_t bytes, bool is_write, const void *code)
{
    struct access *access = is_write ? &cell->write : &cell->reads[0];

    if (access->history == history && access->thread == history->thread) {
        bytes |= access->n_passed == history->own.n ? access->bytes : 0;
    } else if (!is_write) {
        cell->reads[1] = cell->reads[0];
    }
    access->history = history;
    access->thread = history->thread;
    access->n_passed = history->own.n;
    access->bytes = bytes;
    access->code = code;
}

void emu_race_look(const void *at, size_t n_bytes, bool is_write, const void *code)
{
    const struct emu_sync_history *history = &emu_self->history;
    uintptr_t begin = (uintptr_t)at;
    uintptr_t end = begin + n_bytes;

    emu_race_settle();
    if (is_stack(at)) {
        return;
    }
    if (cells == NULL) {
        cells = new struct cell[N_CELLS]();
    }
    for (uintptr_t word = begin / WORD_BYTES; word * WORD_BYTES < end; word++) {
        struct cell *cell = cells + (word * 0x9e3779b97f4a7c15ULL >> 20 & (N_CELLS - 1));
        uint32_t bytes = 0;

        for (uintptr_t i = 0; i < WORD_BYTES; i++) {
            uintptr_t byte = word * WORD_BYTES + i;

            bytes |= (uint32_t)(byte >= begin && byte < end) << i;
        }
        if (cell->word != word || cell->launch != emu_grid.id) {
            memset(cell, 0, sizeof *cell);
            cell->word = word;
            cell->launch = emu_grid.id;
        }
        look(cell, history, bytes, is_write, code, at);
        note(cell, history, bytes, is_write, code);
    }
}
